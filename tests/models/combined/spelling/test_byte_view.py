"""Models seen as models of bytes: rows, distributions, and which models cannot be read so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import UsageError
from lmgauge.models.combined.mixture.model import MixtureModel
from lmgauge.models.combined.spelling.byte_view import ByteView, byte_views, is_readable, why_not_readable
from lmgauge.models.combined.spelling.model import SpelledModel
from lmgauge.models.protocol import LanguageModel
from lmgauge.text.vocabulary import BOS, EOS, UNK

LINES = [
    *("the cat sat on the mat", "the  dog ran, for the cat", "a bird ät das Brot", "naïve café — €5 and €6"),
    *("  leading and trailing  ", "", "the theme then", "tabs\tare here", "x y z", "日本 語"),
] * 2
TEXTS = [
    *("", " ", "the cat", " the  cat \t", "日本語", "unseen thx", "€7 €5", "thé", "a\x85b", "\u3000", "😀 <unk>"),
    *("\t\t the", "the  the  the", "ä", "<s> </s>"),
]
_FIRST = 3
train: Any = lmgauge.train
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("kneser-ney", {"order": 3}),
    ("witten-bell", {"order": 1}),
    ("laplace", {"order": 2}),
    ("modified-kneser-ney", {"order": 2, "min_count": 2}),
    ("witten-bell", {"order": 1, "tokenizer": "character"}),
    ("witten-bell", {"order": 4, "tokenizer": "character"}),
]


def spelled(kind: str, lines: Sequence[str] = LINES, **options: Any) -> SpelledModel:
    model: SpelledModel = train(kind, Corpus.from_strings(lines), vocabulary="spelled", reserved="escape", **options)
    return model


def of_bytes(lines: Sequence[str] = LINES, **options: Any) -> LanguageModel:
    model: LanguageModel = train("witten-bell", Corpus.from_strings(lines), tokenizer="byte", **options)
    return model


def rows(model: LanguageModel, texts: Sequence[str] = TEXTS, block_bytes: int = 40) -> list[list[float]]:
    """The log-probabilities of each text."""
    each: list[list[float]] = []
    for batch in model.score(Corpus.from_strings(texts, block_bytes=block_bytes)):
        each += [part.tolist() for part in np.split(batch.logprob, np.cumsum(batch.segment_events)[:-1])]
    return each


def ids_of(text: str) -> list[int]:
    return [*(_FIRST + byte for byte in text.encode()), EOS]


def distance_to_distributions(view: ByteView, texts: Sequence[str] = TEXTS) -> float:
    """How far rows are from what `log_distribution` has, nats, at most; which sums to one as far as 32 bits can."""
    furthest = 0.0
    for text, scored in zip(texts, rows(view, texts), strict=True):
        seen = [BOS]
        for token, logprob in zip(ids_of(text), scored, strict=True):
            following = view.log_distribution(np.array(seen, np.uint32))
            furthest = max(furthest, abs(following[token] - logprob))
            assert np.exp(following).sum() == pytest.approx(1, abs=2e-7)
            seen.append(token)
    return furthest


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_rows_of_bytes_sum_to_those_of_the_model(kind: str, options: dict[str, Any]) -> None:
    model = spelled(kind, **options)
    view = ByteView(model)
    assert isinstance(view, LanguageModel)
    for own, by_byte, text in zip(rows(model), rows(view), TEXTS, strict=True):
        assert len(by_byte) == len(text.encode()) + 1
        assert math.fsum(by_byte) == pytest.approx(math.fsum(own), abs=1e-9)


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_rows_are_those_of_the_distributions(kind: str, options: dict[str, Any]) -> None:
    assert distance_to_distributions(ByteView(spelled(kind, **options)), TEXTS[2:9]) < 1e-9


def test_a_distribution_is_what_spelling_and_separators_say() -> None:
    """In the middle of a word, by hand: unseen letters and known words, and both ways to go on after the word."""
    model = spelled("witten-bell", ["a b", "ab c", "abc"], order=1)
    view, speller = ByteView(model), model.speller
    assert speller is not None
    assert model.separators is not None
    following = np.exp(view.log_distribution(np.array([BOS, *ids_of("ab")[:-1]], np.uint32)))
    p = np.exp(model.log_distribution([BOS]))
    alphabet = speller.characters.vocabulary
    begins = float(np.prod([model.spelling.next_character("ab"[:i])[alphabet.id("ab"[i])] for i in range(2)]))
    third = begins * model.spelling.next_character("ab")
    total = p[model.vocabulary.id("ab")] + p[model.vocabulary.id("abc")] + p[UNK] * begins
    # "ab" is known, so that no unseen word ends here; "abc" is known, and unseen words may begin with it.
    assert following[_FIRST + ord("c")] == pytest.approx(
        (p[model.vocabulary.id("abc")] + p[UNK] * third[alphabet.id("c")]) / total, rel=1e-6
    )
    after = np.exp(model.log_distribution([BOS, model.vocabulary.id("ab")]))
    last = model.separators.context_of(2, b"b", b"", "", quoted=False)
    empty = model.separators.probabilities(last)[model.separators.known.index("")]
    assert following[EOS] == pytest.approx(p[model.vocabulary.id("ab")] / total * after[EOS] * empty, rel=1e-6)


def test_spans_and_kinds_are_those_of_bytes() -> None:
    view = ByteView(spelled("witten-bell"))
    scored = view.score_text("ä b")
    assert scored.tokens == ("<0xC3>", "<0xA4>", "<0x20>", "<0x62>", "</s>")
    assert scored.kinds == ("token",) * 4 + ("eos",)
    assert scored.spans == ((0, 1), (1, 2), (2, 3), (3, 4), (4, 4))
    assert (view.label, view.tokenizer.name, view.blocks_are_independent, view.tolerance) == (
        "wb3+spelled",
        "byte",
        True,
        0.0,
    )
    (batch,) = view.score(Corpus.from_strings(["a", "b"]), spans=False)
    assert not len(batch.ends)


def test_unseen_bytes_share_what_unk_has() -> None:
    view = ByteView(of_bytes(["ab"], order=1))
    p = np.exp(view.log_distribution([BOS]))
    assert p.sum() == pytest.approx(1, abs=1e-7)
    assert len(set(p[_FIRST : _FIRST + 97].round(12).tolist())) == 1
    assert distance_to_distributions(view) < 1e-9
    assert all(logprob > -np.inf for scored in rows(view) for logprob in scored)


def test_what_sums_to_one_is_all_bytes() -> None:
    """A model that knows every byte gives NUL its part; one with `<unk>` besides gives a part to nothing."""
    every = [f"<0x{byte:02X}>" for byte in range(256)]
    view = ByteView(of_bytes(["ab </s>"], order=3, words=every, vocabulary="closed"))
    for begin in (b"", b"a", b"ab </"):
        p = np.exp(view.log_distribution([BOS, *(_FIRST + byte for byte in begin)]))
        assert p.sum() == pytest.approx(1, abs=1e-6)
    with pytest.raises(UsageError, match="closed vocabulary"):
        ByteView(of_bytes(["ab"], order=1, words=every))


def test_words_that_look_reserved_are_themselves() -> None:
    lines = ["the <unk> sat", "a <unk> <s> x", "the <<unk>>"] * 3 + ["new words"]
    model = spelled("kneser-ney", lines)
    view, texts = ByteView(model), ["the <unk> sat", "<<unk>> <unk> </s>", "<<<s>>>"]
    in_all = [math.fsum(math.fsum(one) for one in rows(each, texts)) for each in (view, model)]
    assert in_all[0] == pytest.approx(in_all[1], abs=1e-9)
    assert distance_to_distributions(view, texts) < 1e-9
    report = lmgauge.audit(model, Corpus.from_strings(texts))
    assert report.passed, report


@pytest.mark.parametrize(
    "begin", [b"\xff", b"the \xe2\x28", b"\x80", b"a\x00b", b"\xed\xa0", b"\xf4\x90", b"\xc0", b"\xe0\x80"]
)
@pytest.mark.parametrize("model", [spelled("witten-bell"), spelled("witten-bell", tokenizer="character")])
def test_after_what_cannot_be_text_all_bytes_are_alike(model: SpelledModel, begin: bytes) -> None:
    view, ids = ByteView(model), [BOS, *(_FIRST + byte for byte in begin)]
    before = view.log_distribution(ids[: len(ids) - 1 - (begin[-1:] == b"b")])
    assert before[ids[len(before) and len(ids) - 1 - (begin[-1:] == b"b")]] == -np.inf or begin.endswith(b"\x28")
    p = np.exp(view.log_distribution(ids))
    assert p[[EOS, _FIRST + 1, _FIRST + 255]].tolist() == pytest.approx([1 / 256] * 3)
    assert p.sum() == pytest.approx(1)


def test_an_impossible_word_is_impossible_once() -> None:
    """MLE leaves nothing to unseen words: the first byte that leads to none is impossible, and then nothing is known."""
    model = spelled("mle", ["the cat", "a dog"], order=1)
    (scored,) = rows(ByteView(model), ["cx dog"])
    assert scored[1] == -np.inf
    assert [value > -np.inf for value in scored] == [True, False, True, True, True, True, True]
    (own,) = rows(model, ["cx dog"])
    assert -np.inf in own


def test_other_models_inside_are_summed_whole() -> None:
    """A mixture has no list of what follows each context: its whole distributions are added up, to the same figures."""
    parts = [spelled("witten-bell", order=n) for n in (1, 2)]
    mixture = MixtureModel([part.inner for part in parts], [0.5, 0.5])
    model = SpelledModel(mixture, parts[0].speller, parts[0].separators)
    for own, by_byte in zip(rows(model), rows(ByteView(model)), strict=True):
        assert math.fsum(by_byte) == pytest.approx(math.fsum(own), abs=1e-9)
    assert distance_to_distributions(ByteView(model), TEXTS[3:7]) < 1e-9


def test_models_that_cannot_be_read_are_refused() -> None:
    lines = Corpus.from_strings(LINES)
    plain = lmgauge.train("witten-bell", lines)
    with pytest.raises(UsageError, match=r"wb3 cannot be read as bytes: it gives all unseen words one .*lmgauge spell"):
        ByteView(plain)
    with pytest.raises(UsageError, match="mine cannot be read as bytes"):
        byte_views([plain], ["mine"])
    letters = lmgauge.train("witten-bell", lines, tokenizer="character")
    assert "unseen characters" in why_not_readable(letters)
    assert "ends of lines" in why_not_readable(lmgauge.train("witten-bell", lines, eos=False))
    assert "--context sentence" in why_not_readable(spelled("witten-bell", context="stream"))
    assert is_readable(lmgauge.train("witten-bell", lines, tokenizer="character", vocabulary="closed"))


def test_white_space_that_depends_on_what_follows_is_refused() -> None:
    pytest.importorskip("icu4py")
    assert "depends on the word behind it" in why_not_readable(spelled("witten-bell", tokenizer="icu"))


def test_treebank_words_are_refused() -> None:
    assert "depends on the word behind it" in why_not_readable(spelled("witten-bell", tokenizer="treebank"))


def test_given_text_is_refused() -> None:
    block = next(iter(Corpus.from_strings([" sat"], given=["the cat"])))
    with pytest.raises(UsageError, match="takes no given text"):
        ByteView(spelled("witten-bell")).score_block(block)


def test_ids_outside_the_vocabulary_are_refused() -> None:
    with pytest.raises(UsageError, match="between 0 and 258"):
        ByteView(of_bytes()).log_distribution([BOS, 259])


def test_blocks_and_threads_change_nothing() -> None:
    view = ByteView(spelled("kneser-ney"))
    assert rows(view) == rows(view, block_bytes=1 << 20)


def test_closed_characters_are_read() -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(["aé b"]), tokenizer="character", vocabulary="closed")
    view = ByteView(model)
    assert math.fsum(rows(view, ["é a"])[0]) == pytest.approx(math.fsum(rows(model, ["é a"])[0]), abs=1e-9)
    assert np.exp(view.log_distribution([BOS])).sum() == pytest.approx(1, abs=1e-7)
    assert -np.inf in rows(view, ["ü"])[0]
