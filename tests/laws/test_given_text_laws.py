"""Text that is given and not scored: what it does to the numbers of the text after it, over random texts and models."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus
from lmgauge.evaluation.evaluate import evaluate
from lmgauge.models.protocol import LanguageModel

TRAINING = ["the cat sat on the mat", "a dog sat on a log", "für das 漢字 the dog ran", "the cat ran  on"]
PIECES = ["the", " cat", " sat", "on", " ", "  ", "\n", "für", " 漢", "字", "x", " dog ran", ".", "🙂"]
texts = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
targets = texts.filter(bool)
pairs = st.lists(st.tuples(texts, targets), min_size=1, max_size=5)

MODELS = {
    f"{kind}, {tokenizer}, eos {eos}": lmgauge.train(
        kind, Corpus.from_strings(TRAINING), order=3, tokenizer=tokenizer, eos=eos
    )
    for kind, tokenizer, eos in [
        ("witten-bell", "whitespace", True),
        ("modified-kneser-ney", "character", True),
        ("witten-bell", "byte", False),
    ]
}
MODELS["mixture"] = lmgauge.mix([MODELS["witten-bell, whitespace, eos True"]] * 2, weights=[0.25, 0.75])
MODELS["union"] = lmgauge.mix(
    [lmgauge.train("witten-bell", Corpus.from_strings(part), order=2) for part in (TRAINING[:2], TRAINING[2:])],
    weights=[0.5, 0.5],
)


def ids_of(model: LanguageModel, text: str, *, end: bool) -> list[int]:
    """All tokens of a text, `</s>` among them if the model predicts it and the text ends here."""
    (batch,) = model.score(Corpus.from_strings([text]))
    return [int(i) for i, kind in zip(batch.token_ids, batch.kind, strict=True) if end or kind != 2]


@settings(max_examples=40)
@given(st.sampled_from(sorted(MODELS)), texts, targets)
def test_the_chain_rule(name: str, before: str, text: str) -> None:
    """p(given and text) = p(given) p(text | given): the rows of the text are the last rows of both as one segment."""
    model = MODELS[name]
    (whole,) = model.score(Corpus.from_strings([before + text]))
    size = len(before.encode())
    own = [i for i, end in enumerate(whole.ends.tolist()) if end > size or not size or whole.kind[i] == 2]
    eos = bool((whole.kind == 2).any())
    if not own:
        with pytest.raises(lmgauge.base.errors.InputError, match="nothing to score"):
            list(model.score(Corpus.from_strings([text], given=[before])))
        return
    (batch,) = model.score(Corpus.from_strings([text], given=[before]))
    assert batch.before is not None
    assert batch.logprob.tolist() == whole.logprob[own].tolist()
    assert batch.token_ids.tolist() == whole.token_ids[own].tolist()
    assert [*batch.before.ids.tolist(), *batch.token_ids.tolist()] == whole.token_ids.tolist()
    assert batch.ends.tolist() == [max(0, end - size) for end in whole.ends[own].tolist()]
    assert batch.ends[-1] == len(text.encode()) or (not eos and not text.split())


@settings(max_examples=40)
@given(st.sampled_from(sorted(MODELS)), texts, targets)
def test_apart_every_text_is_cut_on_its_own(name: str, before: str, text: str) -> None:
    """The log-probabilities are those of the distributions after the given ids and the ids of the text, cut apart."""
    model = MODELS[name]
    corpus = Corpus.from_strings([text], given=[before], boundary="apart")
    try:
        (batch,) = model.score(corpus)
    except lmgauge.base.errors.InputError:
        assert not ids_of(model, text, end=True)
        return
    assert batch.token_ids.tolist() == ids_of(model, text, end=True)
    context = [1, *(ids_of(model, before, end=False) if before else [])]
    for i, token in enumerate(batch.token_ids.tolist()):
        expected = float(model.log_distribution(np.array([*context, *batch.token_ids[:i]], np.uint32))[token])
        assert float(batch.logprob[i]) == pytest.approx(expected, abs=1e-9)
    assert batch.before is not None
    assert not batch.before.crossing.any()


@settings(max_examples=25)
@given(st.sampled_from(sorted(MODELS)), pairs, st.sampled_from(["joint", "apart"]), st.integers(1, 40))
def test_neighbors_and_blocks_change_nothing(name: str, asked: list[tuple[str, str]], rule: str, block_bytes: int) -> None:
    model = MODELS[name]
    asked = [(before, f"w{text}") for before, text in asked]  # some token of its own
    befores, own = zip(*asked, strict=True)
    whole = list(model.score(Corpus.from_strings(own, given=befores, boundary=rule, block_bytes=block_bytes)))  # type: ignore[arg-type]
    alone = [next(model.score(Corpus.from_strings([text], given=[before], boundary=rule))) for before, text in asked]  # type: ignore[arg-type]
    assert np.concatenate([batch.logprob for batch in whole]).tolist() == [x for batch in alone for x in batch.logprob]
    assert np.concatenate([batch.ends for batch in whole]).tolist() == [x for batch in alone for x in batch.ends]
    assert [x for batch in whole for x in batch.segment_events] == [len(batch) for batch in alone]


@settings(max_examples=20)
@given(pairs, st.lists(st.sampled_from(["math", "law"]), min_size=5, max_size=5))
def test_bits_add_up_over_groups_and_denominators_are_of_the_text_alone(
    asked: list[tuple[str, str]], labels: list[str]
) -> None:
    befores, own = zip(*[(before, f"w{text}") for before, text in asked], strict=True)
    corpus = Corpus.from_strings(own, given=befores, groups=labels[: len(own)])
    whole, *parts = evaluate([MODELS["modified-kneser-ney, character, eos True"]], corpus, by_group=True)
    plain = evaluate([MODELS["modified-kneser-ney, character, eos True"]], Corpus.from_strings(own))[0]
    assert whole.bytes == plain.bytes == sum(len(text.encode()) for text in own)
    assert (whole.words, whole.characters, whole.events) == (plain.words, plain.characters, plain.events)
    assert whole.given_bytes == sum(len(before.encode()) for before in befores)
    for name in ("events", "bytes", "given_bytes", "crossing_tokens"):
        assert sum(getattr(part, name) for part in parts) == getattr(whole, name)
    assert math.fsum(part.log_probability for part in parts) == pytest.approx(whole.log_probability, rel=1e-12)
    bits = [part.bits_per_byte * part.bytes for part in parts if part.bits_per_byte is not None and part.bytes]
    assert math.fsum(bits) == pytest.approx(whole.bits_per_byte * whole.bytes, rel=1e-12)  # type: ignore[operator]
