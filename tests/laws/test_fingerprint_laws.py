"""Laws of fingerprints: that of a vocabulary is of a set of words; models that say different things have different ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus
from lmgauge.base.choices import RESERVED_POLICIES
from lmgauge.base.errors import LmgaugeError
from lmgauge.models.combined.cache_model import CacheModel
from lmgauge.models.model_settings import CacheSettings
from lmgauge.text.vocabulary import Vocabulary

TEXT = Corpus.from_strings(["a b c", "b a", "c c a d", "a b", "d"])
PROBES = ("a b c zzz", "c c b b a", "<unk> a", "a </s>", "A b.", "")
WORDS = st.text(alphabet="ab\0é", min_size=1, max_size=3)


@given(st.lists(WORDS, unique=True, max_size=6), st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_words_leaves_a_vocabulary_what_it_is(words: list[str], random: Any, closed: bool) -> None:
    other = random.sample(words, len(words))
    one, two = (Vocabulary.from_tokens(tokens, closed=closed) for tokens in (words, other))
    assert one.fingerprint == two.fingerprint
    assert (one.ids_fingerprint == two.ids_fingerprint) == (words == other)


@given(*[st.tuples(st.lists(WORDS, unique=True, max_size=4), st.booleans())] * 2)
def test_other_words_are_another_vocabulary(one: tuple[list[str], bool], two: tuple[list[str], bool]) -> None:
    prints = [Vocabulary.from_tokens(words, closed=closed).fingerprint for words, closed in (one, two)]
    assert (prints[0] == prints[1]) == ((set(one[0]), one[1]) == (set(two[0]), two[1]))


BASE = lmgauge.train("witten-bell", TEXT, order=2)
SPELLED = lmgauge.train("witten-bell", TEXT, order=2, vocabulary="spelled")
RESERVED = st.sampled_from(RESERVED_POLICIES)
OPTIONS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "n-gram": {
        "kind": st.sampled_from(["witten-bell", "laplace", "mle"]),
        "order": st.integers(1, 3),
        "context": st.sampled_from(["sentence", "stream"]),
        "tokenizer": st.sampled_from(["whitespace", "treebank", "character"]),
        "reserved": RESERVED,
        "vocabulary": st.sampled_from(["open", "closed"]),
        "eos": st.booleans(),
        "min_count": st.integers(1, 2),
    },
    "cache": {"order": st.integers(1, 2), "window": st.sampled_from([None, 1, 2]), "reserved": RESERVED},
    "mixture": {"weight": st.sampled_from([0.25, 0.5]), "window": st.sampled_from([None, 1]), "reserved": RESERVED},
    "spelled": {"reserved": RESERVED},
}
"""The options of models of each kind: what they may be."""


def made(kind: str, options: dict[str, Any]) -> lmgauge.LanguageModel:
    if kind == "n-gram":
        options = dict(options)
        return lmgauge.train(options.pop("kind"), TEXT, **options)
    if kind == "spelled":
        return SPELLED.with_reserved(options["reserved"])
    base = BASE.with_reserved(options["reserved"])
    cache = CacheModel.beside(base, CacheSettings(order=options.get("order", 1), window=options["window"]))
    return (
        cache if kind == "cache" else lmgauge.models.MixtureModel([base, cache], [options["weight"], 1 - options["weight"]])
    )


def said(model: lmgauge.LanguageModel) -> list[Any]:
    """What a model makes of some texts: its tokens and what they cost, or why it refuses."""

    def of(lines: Sequence[str]) -> Any:
        try:
            return [
                ([batch.strings.tokens[i] for i in batch.token_ids.tolist()], batch.kind.tolist(), batch.logprob.tolist())
                for batch in model.score(Corpus.from_strings(lines))
            ]
        except LmgaugeError as error:
            return type(error)

    return [of([probe]) for probe in PROBES] + [of(PROBES[:2])]


@settings(max_examples=150)
@given(st.sampled_from(sorted(OPTIONS)), st.data())
def test_models_that_say_different_things_have_different_fingerprints(kind: str, data: st.DataObject) -> None:
    """Two models that differ in one option, where one says something else about a text."""
    options = data.draw(st.fixed_dictionaries(OPTIONS[kind]))
    name = data.draw(st.sampled_from(sorted(options)))
    other = options | {name: data.draw(OPTIONS[kind][name])}
    one, two = made(kind, options), made(kind, other)
    if one.fingerprint == two.fingerprint:
        assert said(one) == said(two)
