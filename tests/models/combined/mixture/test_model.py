"""Mixtures: the weighted mean of their components, event by event; stored whole or not at all."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.models.combined.mixture.compatibility import agreeing
from lmgauge.models.combined.mixture.model import MixtureModel
from lmgauge.models.protocol import LanguageModel
from lmgauge.scores.scoring import score_together, with_same_events
from lmgauge.text.vocabulary import BOS, EOS

LINES = ["a b c", "b c a", "a b", "c c c c", ""]
TEST = ["a b c d", "c", "", "b b a", "c c"]
WORDS = ["a", "b", "c"]


def train(
    kind: str = "witten-bell", words: Sequence[str] = WORDS, lines: Sequence[str] = LINES, **options: Any
) -> NgramModel:
    return lmgauge.train(kind, Corpus.from_strings(lines), words=list(words), **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def components() -> tuple[NgramModel, NgramModel]:
    return train(order=3), train("laplace", ["c", "a", "b"], order=2)


def logprobs(model: LanguageModel, lines: Sequence[str] = TEST, block_bytes: int = 1 << 20, **options: Any) -> list[float]:
    corpus = Corpus.from_strings(lines, block_bytes=block_bytes)
    return [value for batch in model.score(corpus, **options) for value in batch.logprob.tolist()]


class Foreign:
    """A model of somebody else: only the protocol, no `save`."""

    def __init__(self, model: NgramModel) -> None:
        self._model = model
        self.label = "foreign"

    def __getattr__(self, name: str) -> Any:
        if name == "save":
            raise AttributeError(name)
        return getattr(self._model, name)


# -- probabilities ------------------------------------------------------------------------------------------------------


def test_events_are_weighted_means(components: tuple[NgramModel, NgramModel]) -> None:
    mixture = MixtureModel(components, [0.3, 0.7])
    expected = [0.3 * math.exp(p) + 0.7 * math.exp(q) for p, q in zip(*map(logprobs, components), strict=True)]
    assert np.exp(logprobs(mixture)) == pytest.approx(expected, rel=1e-14)
    assert isinstance(mixture, LanguageModel)
    assert mixture.label == "mix(wb3+laplace2)"
    assert "0.3000 wb3 + 0.7000 laplace2" in repr(mixture)


def test_columns_are_those_of_the_components(components: tuple[NgramModel, NgramModel]) -> None:
    mixture = MixtureModel(components, [0.5, 0.5])
    (batch,) = mixture.score(Corpus.from_strings(TEST))
    first, second = (next(iter(component.score(Corpus.from_strings(TEST)))) for component in components)
    assert batch.ends.tolist() == first.ends.tolist()
    assert batch.kind.tolist() == first.kind.tolist()
    assert [batch.strings.tokens[i] for i in batch.token_ids] == [second.strings.tokens[i] for i in second.token_ids]
    assert batch.extra["context"].tolist() == np.maximum(first.extra["context"], second.extra["context"]).tolist()
    block = next(iter(Corpus.from_strings(TEST)))
    assert mixture.score_block(block).logprob.tolist() == batch.logprob.tolist()


@given(st.floats(0, 1), st.lists(st.sampled_from(["a", "b", "c", "</s>", "<unk>"]), max_size=5))
def test_distributions_sum_to_one(weight: float, words: list[str]) -> None:
    parts = [train(order=3), train("laplace", ["c", "a", "b"], order=2), train("mle", order=2, context="stream")]
    mixture = MixtureModel(parts, [weight, 0.5 * (1 - weight), 1 - weight - 0.5 * (1 - weight)])
    context = [BOS, *mixture.vocabulary.ids(words).tolist()]
    possible = parts[2].log_distribution(context).max() > -math.inf  # an unsmoothed model may know of nothing that follows
    total = float(np.exp(mixture.log_distribution(context)).sum())
    assert total == pytest.approx(1.0 if possible else 1.0 - mixture.weights[2], abs=1e-6)


def histories(batch_ids: Sequence[int], policy: str) -> list[list[int]]:
    found, history = [], [BOS]
    for token in batch_ids:
        found.append(list(history))
        history.append(token)
        if token == EOS and policy == "sentence":
            history = [BOS]
    return found


@pytest.mark.parametrize("policies", [("sentence", "sentence"), ("sentence", "stream"), ("stream", "stream")])
def test_score_is_what_the_distribution_says(policies: tuple[str, str]) -> None:
    parts = [train(order=3, context=policies[0]), train("laplace", ["c", "a", "b"], order=3, context=policies[1])]
    mixture = MixtureModel(parts, [0.25, 0.75])
    assert str(mixture.context_policy) == ("sentence" if set(policies) == {"sentence"} else "stream")
    assert mixture.blocks_are_independent == (str(mixture.context_policy) == "sentence")
    ids = [int(i) for batch in mixture.score(Corpus.from_strings(TEST)) for i in batch.token_ids]
    expected = [
        mixture.log_distribution(history)[token]
        for history, token in zip(histories(ids, str(mixture.context_policy)), ids, strict=True)
    ]
    assert logprobs(mixture) == pytest.approx(expected, rel=1e-12)


def test_a_sentence_component_sees_its_sentence_alone() -> None:
    sentence, stream = train(order=3), train(order=3, context="stream")
    mixture = MixtureModel([sentence, stream], [1.0, 0.0])
    a, b = sentence.vocabulary.ids(["a", "b"]).tolist()
    for context, seen in [([BOS, a, EOS, b], [BOS, b]), ([BOS, a, EOS], [BOS]), ([BOS, a, b], [BOS, a, b])]:
        assert np.allclose(np.exp(mixture.log_distribution(context)), np.exp(sentence.log_distribution(seen)), rtol=1e-15)


@pytest.mark.parametrize("context", ["sentence", "stream"])
def test_no_value_depends_on_blocks_or_threads(context: str) -> None:
    parts = [train(order=k, context=context) for k in range(1, 11)]
    mixture = MixtureModel(parts, [0.1] * 10)
    lines = TEST * 20
    expected = logprobs(mixture, lines)
    for block_bytes in (1, 7, 50):
        for threads in (1, 3):
            assert logprobs(mixture, lines, block_bytes, threads=threads) == expected


def test_zero_weights_and_zero_probabilities() -> None:
    sharp, smooth = train("mle", order=2), train(order=2)
    assert logprobs(MixtureModel([sharp, smooth], [0.0, 1.0])) == logprobs(smooth)
    only = logprobs(MixtureModel([sharp, train("mle", order=1)], [1.0, 0.0]))
    assert only == logprobs(sharp)
    assert -math.inf in only
    mixed = logprobs(MixtureModel([sharp, smooth], [0.5, 0.5]))
    halves = [math.log(0.5) + q for p, q in zip(logprobs(sharp), logprobs(smooth), strict=True) if p == -math.inf]
    assert [m for m, p in zip(mixed, logprobs(sharp), strict=True) if p == -math.inf] == pytest.approx(halves)


def test_a_certain_event_is_never_more_than_certain() -> None:
    certain = [train("mle", lines=["a a a"], order=3), train("mle", lines=["a a a"], order=2)]
    for weight in (0.1, 0.3, 1 / 3, 0.7):
        assert max(logprobs(MixtureModel(certain, [weight, 1 - weight]), ["a a a"])) <= 0.0


def test_mixtures_nest(components: tuple[NgramModel, NgramModel]) -> None:
    third = train("kneser-ney", ["b", "c", "a"], order=2, context="stream")
    nested = MixtureModel([third, MixtureModel(components, [0.5, 0.5])], [0.2, 0.8])
    flat = MixtureModel([*components, third], [0.4, 0.4, 0.2])
    assert logprobs(nested) == pytest.approx(logprobs(flat), rel=1e-13)
    assert nested.label == "mix(kn2+mix(wb3+laplace2))"
    assert list(lmgauge.sample(nested, 3, seed=1))
    assert len({nested.fingerprint, flat.fingerprint, MixtureModel([*components, third], [0.4, 0.2, 0.4]).fingerprint}) == 3


# -- what cannot be mixed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "1 weights for 2 models"),
        ([0.5, 0.6], r"sum to 1\.1; they must sum to 1"),
        ([1.5, -0.5], r"weight -0\.5"),
        ([math.nan, 0.5], "weight nan"),
        ([math.inf, 0.5], "weight inf"),
    ],
)
def test_weights_are_shares(components: tuple[NgramModel, NgramModel], weights: list[float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MixtureModel(components, weights)


def test_one_model_is_no_mixture(components: tuple[NgramModel, NgramModel]) -> None:
    with pytest.raises(UsageError, match="at least two"):
        MixtureModel(components[:1], [1.0])


def test_reserved_tokens_mean_one_thing(components: tuple[NgramModel, NgramModel]) -> None:
    lenient = train(reserved="unk")
    with pytest.raises(InputError, match=r"'refuse' to wb3 and 'unk' to other.*--reserved"):
        MixtureModel([components[0], lenient], [0.5, 0.5], names=("wb3", "other"))
    mixture = MixtureModel(components, [0.5, 0.5])
    assert mixture.reserved == "refuse"
    with pytest.raises(InputError, match="reserved token <unk>"):
        logprobs(mixture, ["a <unk>"])
    changed = mixture.with_reserved("unk")
    assert changed.reserved == "unk"
    assert len(logprobs(changed, ["a <unk>"])) == 3
    with pytest.raises(InputError, match="'unk' to a and 'refuse' to b"):
        agreeing([changed, mixture], ["a", "b"])


def test_components_that_cut_the_text_differently_are_caught() -> None:
    class Shorter(Foreign):
        def score_block(self, block: Any, *, spans: bool = True) -> Any:
            from dataclasses import replace

            batch = self._model.score_block(block, spans=spans)
            return replace(batch, token_ids=np.zeros_like(batch.token_ids))

    with pytest.raises(InputError, match="different events, near segment 1:"):
        list(score_together([train(), Shorter(train())], Corpus.from_strings(TEST), with_same_events))


def test_a_model_without_save_is_mixed_but_not_stored(tmp_path: Path) -> None:
    mixture = MixtureModel([train(), Foreign(train("laplace"))], [0.5, 0.5])
    assert len(logprobs(mixture)) == 15
    assert mixture.reserved == "refuse"
    with pytest.raises(UsageError, match=r"foreign: the model has no method save\(path\)"):
        mixture.save(tmp_path / "mixed")
    assert list(tmp_path.iterdir()) == []


# -- stored -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(components: tuple[NgramModel, NgramModel], tmp_path: Path) -> Path:
    inner = MixtureModel(components, [1 / 3, 2 / 3])
    MixtureModel([train("kneser-ney", order=4), inner], [0.1, 0.9], estimation={"events": 5}).save(tmp_path / "mixed")
    return tmp_path / "mixed"


def test_saved_and_loaded_is_the_same(saved: Path, components: tuple[NgramModel, NgramModel]) -> None:
    loaded = lmgauge.load_model(saved)
    assert isinstance(loaded, MixtureModel)
    assert loaded.weights == (0.1, 0.9)
    assert loaded.estimation == {"events": 5}
    assert isinstance(loaded.components[1], MixtureModel)
    assert loaded.components[1].weights == (1 / 3, 2 / 3)
    original = MixtureModel([train("kneser-ney", order=4), MixtureModel(components, [1 / 3, 2 / 3])], [0.1, 0.9])
    assert loaded.fingerprint == original.fingerprint
    assert logprobs(loaded) == logprobs(original)
    assert sorted(path.name for path in saved.iterdir()) == ["component-1", "component-2", "config.json"]
    assert lmgauge.load_model(saved / "component-1").label == "kn4"
    assert lmgauge.evaluate(saved, Corpus.from_strings(TEST)).events == 15


def test_a_mixture_replaces_a_mixture_and_nothing_else(saved: Path, components: tuple[NgramModel, NgramModel]) -> None:
    other = MixtureModel(components, [0.5, 0.5])
    other.save(saved)
    assert lmgauge.load_model(saved).fingerprint == other.fingerprint
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="exists and was not written by lmgauge"):
        other.save(saved)
    assert (saved / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_nothing_half_written_remains(
    components: tuple[NgramModel, NgramModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    first, second = components
    mixture = MixtureModel([first, second], [0.5, 0.5])

    def fail(path: Path) -> None:
        path.mkdir()
        raise error

    monkeypatch.setattr(second, "save", fail, raising=False)
    with pytest.raises((KeyboardInterrupt, lmgauge.LmgaugeError)):
        mixture.save(tmp_path / "mixed")
    assert list(tmp_path.iterdir()) == []


def edit(folder: Path, change: Callable[[dict[str, Any]], object], *, sign: bool = True) -> None:
    """Changes config.json; signed anew, as one who knows the format can."""
    config = json.loads((folder / "config.json").read_text())
    change(config)
    if sign:
        content = {key: value for key, value in config.items() if key != "sha256"}
        config["sha256"] = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["components"][0].update(weight=0.2), "sum to 1.1"),
        (lambda c: [p.update(weight=w) for p, w in zip(c["components"], (0.2, 0.8), strict=True)], "fingerprint"),
        (lambda c: [p.update(weight=w) for p, w in zip(c["components"], (-0.5, 1.5), strict=True)], "weight -0.5"),
        (lambda c: c["components"][0].update(weight="x"), r"got `str` - at `\$\.components\[0\]\.weight`"),
        (lambda c: c["components"][0].update(weight="0.5"), r"got `str` - at `\$\.components\[0\]\.weight`"),
        (lambda c: c["components"][0].update(weight=10**400), "a whole number has 401 digits"),
        (lambda c: c["components"][0].update(folder="../mixed/component-1"), "not a folder in it"),
        (lambda c: c["components"][0].update(folder=".."), "not a folder in it"),
        (lambda c: c["components"][0].update(folder="."), "not a folder in it"),
        (lambda c: c["components"][0].update(folder=7), r"at `\$\.components\[0\]\.folder`"),
        (lambda c: c["components"][0].update(folder="/tmp"), "not a folder in it"),
        (lambda c: c["components"][0].update(folder="component-9"), "component-9: missing"),
        (lambda c: c["components"][0].update(folder="component-2"), "not the model that was mixed"),
        (lambda c: c["components"].pop(), "at least two"),
        (lambda c: c.pop("components"), "missing required field `components`"),
        (lambda c: c.update(components=[1, 2]), r"at `\$\.components\[0\]`"),
        (lambda c: c.update(format_version=2), "format 2"),
    ],
)
def test_a_config_that_lies_is_refused(saved: Path, change: Callable[[dict[str, Any]], object], message: str) -> None:
    edit(saved, change)
    with pytest.raises(ModelFileError, match=message):
        lmgauge.load_model(saved)


def test_damage_is_noticed(saved: Path) -> None:
    edit(saved, lambda config: config.update(estimation={"events": 6}), sign=False)
    with pytest.raises(ModelFileError, match="sha256 does not fit"):
        lmgauge.load_model(saved)
    (saved / "config.json").write_text("{")
    with pytest.raises(ModelFileError, match="cannot be read"):
        lmgauge.load_model(saved)


def test_a_missing_or_exchanged_component_is_noticed(saved: Path, tmp_path: Path) -> None:
    train("laplace", order=2).save(tmp_path / "other")
    shutil.rmtree(saved / "component-1")
    with pytest.raises(ModelFileError, match="component-1: missing"):
        lmgauge.load_model(saved)
    shutil.copytree(tmp_path / "other", saved / "component-1")
    with pytest.raises(ModelFileError, match="a folder was exchanged"):
        lmgauge.load_model(saved)


def test_a_link_out_of_the_folder_is_not_followed(saved: Path, tmp_path: Path) -> None:
    shutil.move(saved / "component-1", tmp_path / "elsewhere")
    (saved / "component-1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelFileError, match="not a folder in it"):
        lmgauge.load_model(saved)


@pytest.mark.parametrize("weights", [["a", "b"], ["1", "0"], [None, 1.0], [1e308, 1e308], [-1.0, 2.0], [float("nan"), 1.0]])
def test_what_is_not_a_share_is_refused(components: tuple[NgramModel, NgramModel], weights: Any) -> None:
    with pytest.raises(UsageError, match="weight"):
        lmgauge.mix(components, weights=weights)


@pytest.mark.parametrize("ids", [["a"], [10**30], [-1], [10**9], [None]])
def test_a_context_of_anything_but_ids_is_refused(components: tuple[NgramModel, NgramModel], ids: Any) -> None:
    with pytest.raises(UsageError, match="the vocabulary's last"):
        components[0].log_distribution(ids)
