"""The same tokens in another order of ids: the same model."""

from __future__ import annotations

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.combined.mixture.compatibility import aligned, over_common_tokens
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.torch.model import NeuralModel
from lmgauge.models.protocol import LanguageModel
from lmgauge.scores.distributions import Divergences, Entropy, Rank, TopK, reduce, reduce_pair
from lmgauge.text.vocabulary import BOS, EOS

LINES = ["a b c", "b c a", "a b", ""]
TEST = ["c b a x", "b", "a a"]


def train(words: list[str], lines: list[str] = LINES, **options: object) -> NgramModel:
    return lmgauge.train("witten-bell", Corpus.from_strings(lines), order=3, words=words, **options)  # type: ignore[arg-type]


def test_the_same_order_is_the_model_itself() -> None:
    model = train(["a", "b", "c"])
    assert aligned(model, train(["a", "b", "c"])) is model


@pytest.mark.parametrize("context", ["sentence", "stream"])
def test_another_order_changes_ids_alone(context: str) -> None:
    straight, shuffled = train(["a", "b", "c"], context=context), train(["c", "a", "b"], context=context)
    view = aligned(shuffled, straight)
    assert isinstance(view, LanguageModel)
    assert view.vocabulary is straight.vocabulary
    assert (view.fingerprint, view.label, str(view.context_policy)) == (shuffled.fingerprint, "wb3", context)
    assert view.blocks_are_independent == (context == "sentence")
    for ours, theirs in zip(view.score(Corpus.from_strings(TEST)), straight.score(Corpus.from_strings(TEST)), strict=True):
        assert ours.token_ids.tolist() == theirs.token_ids.tolist()
        assert ours.logprob.tolist() == theirs.logprob.tolist()
        assert ours.ends.tolist() == theirs.ends.tolist()
        assert [ours.strings.tokens[i] for i in ours.token_ids] == [theirs.strings.tokens[i] for i in theirs.token_ids]
    for words in ([], ["a"], ["c", "b"]):
        context_ids = np.array([BOS, *straight.vocabulary.ids(words)], np.uint32)
        assert np.array_equal(view.log_distribution(context_ids), straight.log_distribution(context_ids))


def test_whole_distributions_have_the_common_ids() -> None:
    straight, view = train(["a", "b", "c"]), aligned(train(["c", "b", "a"]), train(["a", "b", "c"]))
    for ours, theirs in zip(
        *(reduce(m, Corpus.from_strings(TEST), [TopK(3), Rank(), Entropy()]) for m in (view, straight)), strict=True
    ):
        assert ours.extra["rank"].tolist() == theirs.extra["rank"].tolist()
        np.testing.assert_allclose(ours.extra["entropy"], theirs.extra["entropy"], rtol=1e-13)
        np.testing.assert_allclose(ours.extra["top_logprobs"], theirs.extra["top_logprobs"], rtol=1e-13)
        assert ours.extra["top_ids"].tolist() == theirs.extra["top_ids"].tolist()


def test_blocks_are_reordered_too() -> None:
    straight, view = train(["a", "b", "c"]), aligned(train(["c", "b", "a"]), train(["a", "b", "c"]))
    block = next(iter(Corpus.from_strings(TEST)))
    assert view.score_block(block).token_ids.tolist() == straight.score_block(block).token_ids.tolist()
    assert view.score_block(block).token_ids[-1] == EOS


def test_ids_outside_the_vocabulary_are_refused() -> None:
    view = aligned(train(["c", "b", "a"]), train(["a", "b", "c"]))
    with pytest.raises(UsageError, match="between 0 and 5"):
        view.log_distribution(np.array([6], np.uint32))


def test_other_tokens_are_told() -> None:
    with pytest.raises(InputError, match=r"1 token is only in wb3 \('d'\), 2 tokens are only in two \('a', 'c'\).*--words"):
        aligned(train(["d", "b"]), train(["a", "b", "c"]), names=("wb3", "two"))
    with pytest.raises(InputError, match=r"5 tokens are only in one \('c', 'd', 'e', \.\.\.\); train"):
        aligned(train(["a", "b"]), train(["a", "b", "c", "d", "e", "f", "g"]), names=("other", "one"))


def test_other_tokenizers_and_closed_vocabularies_are_refused() -> None:
    words = train(["a", "b", "c"])
    with pytest.raises(InputError, match=r"'character'.*'whitespace'.*--tokenizer"):
        aligned(train(["a", "b", "c"], tokenizer="character"), words)
    closed = lmgauge.train("witten-bell", Corpus.from_strings(LINES), vocabulary="closed")
    opened = lmgauge.train("witten-bell", Corpus.from_strings(LINES))
    with pytest.raises(InputError, match=r"impossible for shut .* one event <unk> for wide .* --vocabulary"):
        aligned(opened, closed, names=("wide", "shut"))


# --- networks, row by row ---------------------------------------------------------------------------------------------

TOKENS = ["#", "a", "b", "ab", " "]
NETWORK_TEST = ["b a", "a b b", "", "ba"]


def network(rows: int = 5, seed: int = 1, merges: bool = True, tokens: list[str] = TOKENS) -> NeuralModel:
    """A random network; those of one seed have the same weights, and rows beyond the tokenizer's add to them."""
    torch = pytest.importorskip("torch")
    from tokenizers import Tokenizer, models
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges=[("a", "b")] if merges else []))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=tokens[0], eos_token=tokens[0])
    torch.manual_seed(seed)
    sizes = {"n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 1, "bos_token_id": 0, "eos_token_id": 0}
    whole = GPT2LMHeadModel(GPT2Config(vocab_size=8, **sizes)).eval()
    with torch.no_grad():
        whole.transformer.wte.weight.mul_(20)
        whole.transformer.wpe.weight.mul_(20)
    part = GPT2LMHeadModel(GPT2Config(vocab_size=rows, **sizes)).eval()
    weights = whole.state_dict()
    weights |= {name: weights[name][:rows] for name in ("transformer.wte.weight", "lm_head.weight")}
    part.load_state_dict(weights)
    return NeuralModel.wrap(part, tokenizer, ScoringOptions(end="none"), label=f"rows-{rows}")


def by_hand(a: NeuralModel, b: NeuralModel, lines: list[str]) -> tuple[list[float], list[float], list[float]]:
    """KL over the tokens with ids in the smaller vocabulary, and what both have of them, event by event."""
    common = min(len(a.vocabulary), len(b.vocabulary))
    kl, mass_a, mass_b = [], [], []
    for line in lines:
        ids = [BOS, *next(iter(a.score(Corpus.from_strings([line])))).token_ids.tolist()]
        for n in range(1, len(ids)):
            p, q = (np.exp(model.log_distribution(ids[:n])[:common]) for model in (a, b))
            mass_a.append(p.sum())
            mass_b.append(q.sum())
            p, q = p / p.sum(), q / q.sum()
            some = p > 0
            kl.append(float((p[some] * np.log(p[some] / q[some])).sum()))
    return kl, mass_a, mass_b


@pytest.mark.parametrize(("rows_a", "rows_b"), [(5, 8), (8, 5), (7, 8)])
@pytest.mark.parametrize("seed_b", [1, 2])
def test_rows_that_only_one_has_are_left_out_of_both(rows_a: int, rows_b: int, seed_b: int) -> None:
    a, b = network(rows_a), network(rows_b, seed_b)
    base, other = over_common_tokens([a, b])
    text = Corpus.from_strings(NETWORK_TEST)
    [(one, two, columns)] = list(reduce_pair(base, other, text, Divergences()))
    kl, mass_a, mass_b = by_hand(a, b, NETWORK_TEST)
    assert columns["kl_ab"] == pytest.approx(kl, abs=1e-6)
    assert columns["mass_a"] == pytest.approx(mass_a, abs=1e-6)
    assert columns["mass_b"] == pytest.approx(mass_b, abs=1e-6)
    assert (min(mass_b) < 0.95) == (rows_b > rows_a)
    if seed_b == 1:  # the same network: the rows left out are all that differs
        assert columns["kl_ab"].max() < 1e-9
    assert one.token_ids.tolist() == two.token_ids.tolist()
    for model, batch in ((a, one), (b, two)):
        assert batch.logprob == pytest.approx(next(iter(model.score(text))).logprob, abs=1e-5)
    words = [getattr(view, "alignment", "") for view in (base, other)]
    larger = 0 if rows_a > rows_b else 1
    extra = abs(rows_a - rows_b)
    row = f"'<row {min(rows_a, rows_b)}>'"
    assert words[larger] == (
        f"left out: {extra} rows of rows-{max(rows_a, rows_b)} that not all models have ({row}, ...)"
        if extra > 1
        else f"left out: 1 row of rows-{max(rows_a, rows_b)} that not all models have ({row})"
    )
    assert words[1 - larger] == ""


def test_several_networks_are_compared_over_what_all_have() -> None:
    models = [network(7), network(8), network(5, 2)]
    views = over_common_tokens(models)
    contexts = [[BOS], [BOS, 3, 4]]
    for context in contexts:
        for view, model in zip(views, models, strict=True):
            found, own = view.log_distribution(np.array(context, np.uint32)), model.log_distribution(context)
            size = len(models[2].vocabulary)
            assert len(found) == len(models[0].vocabulary)
            assert np.allclose(found[:size], own[:size], atol=1e-6)
            assert (found[size:] == -np.inf).all()
    with pytest.raises(UsageError, match="no such token as one of the context"):
        views[2].log_distribution(np.array([BOS, len(models[0].vocabulary) - 1], np.uint32))


def test_other_tokenizers_are_the_same_where_they_make_the_same_of_a_text() -> None:
    a, b = network(merges=True), network(seed=2, merges=False)
    assert a.tokenizer.fingerprint != b.tokenizer.fingerprint
    base, other = over_common_tokens([a, b], ["one", "two"])
    assert base is a
    assert getattr(other, "alignment", "") == "one and two have the same tokens, row by row, and split this text alike"
    [(_, _, columns)] = list(reduce_pair(base, other, Corpus.from_strings(NETWORK_TEST), Divergences()))
    assert columns["kl_ab"] == pytest.approx(by_hand(a, b, NETWORK_TEST)[0], abs=1e-6)
    different = Corpus.from_strings(["b a", "a ab b"])
    words = r"two and one cut the text into different tokens, first in segment 2: 'a' 'b' ' ' and 'ab' ' ' 'b'"
    for work in (
        lambda: list(reduce_pair(base, other, different, Divergences())),
        lambda: list(other.score(different)),
        lambda: other.score_block(next(iter(different))),
    ):
        with pytest.raises(InputError, match=words):
            work()


def test_networks_with_other_tokens_are_refused() -> None:
    with pytest.raises(InputError, match=r"two and one have different tokens: 2 rows .* row 1 stands for 'b' and"):
        over_common_tokens([network(), network(merges=False, tokens=["#", "b", "a", "ab", " "])], ["one", "two"])
    with pytest.raises(InputError, match="whose tokens are not the same events"):
        over_common_tokens([network(), train(["a", "b"])])


def test_models_with_the_same_tokens_are_themselves() -> None:
    models = [network(), network(seed=2)]
    assert over_common_tokens(models) == models
    words = [train(["a", "b"]), train(["b", "a"])]
    assert over_common_tokens(words)[0] is words[0]
    assert over_common_tokens(words)[1].vocabulary is words[0].vocabulary


def test_the_report_says_what_was_left_out() -> None:
    text = Corpus.from_strings(NETWORK_TEST)
    result = lmgauge.divergence(network(5), network(8), text)
    assert result.missing_mass_b > 0.1
    assert abs(result.missing_mass_a) < 1e-6
    assert result.kl_ab_nats.value is not None
    assert result.kl_ab_nats.value < 1e-9
    assert "left out: 3 rows of rows-8 that not all models have ('<row 5>', ...)" in result.notes
