"""The same tokens in another order of ids: the same model."""

from __future__ import annotations

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus, InputError, NgramModel, UsageError
from lmgauge.distributions import Entropy, Rank, TopK, reduce
from lmgauge.models.mixture.vocabulary_alignment import aligned
from lmgauge.models.protocol import LanguageModel
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
