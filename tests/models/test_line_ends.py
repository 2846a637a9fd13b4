"""n-gram models without `</s>` (`eos=False`, `--no-eos`): what is counted, scored, stored, drawn and compared."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import InputError, UsageError
from lmgauge.text.vocabulary import EOS

LINES = ["the cat sat ", "", " the dog sat", "the cat ran"]


@pytest.fixture(scope="module")
def model() -> NgramModel:
    return lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2, eos=False)


def test_no_line_end_is_counted(model: NgramModel) -> None:
    assert model.record.training["events"] == 9
    assert model.types == [6, 6]  # the cat sat dog ran <unk>; <s> the, the cat, cat sat, the dog, dog sat, cat ran
    with_ends = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2)
    assert with_ends.fingerprint != model.fingerprint
    assert "eos" not in with_ends.to_dict()  # as ever
    assert model.to_dict()["eos"] is False


@pytest.mark.parametrize("context", ["sentence", "stream"])
def test_only_tokens_are_scored(context: str) -> None:
    model = lmgauge.train("laplace", Corpus.from_strings(LINES), order=3, eos=False, context=context)  # type: ignore[arg-type]
    batches = list(model.score(Corpus.from_strings(LINES, block_bytes=8)))
    assert np.concatenate([b.segment_events for b in batches]).tolist() == [3, 0, 3, 3]
    assert EOS not in np.concatenate([b.token_ids for b in batches])
    ends = np.concatenate([b.ends for b in batches]).tolist()
    assert ends == [3, 7, 12, 4, 8, 12, 3, 7, 11]  # the blank after "sat" belongs to it
    evaluation = lmgauge.evaluate(model, Corpus.from_strings(LINES))
    assert (evaluation.events, evaluation.sentence_ends) == (9, 0)
    assert evaluation.bytes == sum(map(len, LINES))


def test_line_ends_are_not_among_the_bytes(model: NgramModel, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n")
    evaluation = lmgauge.evaluate(model, path)
    assert evaluation.bytes == sum(map(len, LINES))
    assert "eos:no" in str(evaluation.signature)
    assert "context:sentence,end=none" in str(evaluation.signature)
    with_ends = lmgauge.evaluate(lmgauge.train("witten-bell", path, order=2), path)
    assert with_ends.bytes == evaluation.bytes + len(LINES)


def test_it_stays_through_saving(model: NgramModel, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    assert json.loads((tmp_path / "m" / "config.json").read_text())["eos"] is False
    loaded = lmgauge.load_model(tmp_path / "m")
    assert isinstance(loaded, NgramModel)
    assert loaded.settings == model.settings
    assert loaded.fingerprint == model.fingerprint


def test_there_is_no_arpa_form(model: NgramModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="an ARPA file needs </s>"):
        model.save(tmp_path / "m.arpa")


def test_samples_run_to_the_number_of_tokens(model: NgramModel) -> None:
    assert [len(text.split()) for text in lmgauge.sample(model, 3, seed=1, max_tokens=12)] == [12, 12, 12]


def test_pruned_and_with_another_policy(model: NgramModel) -> None:
    pruned = lmgauge.train("kneser-ney", Corpus.from_strings(LINES), order=3, eos=False, prune=1e-3)
    assert not pruned.settings.eos
    assert not model.with_reserved("escape").settings.eos


def test_a_text_without_words_is_refused() -> None:
    with pytest.raises(InputError, match="no words"):
        lmgauge.train("laplace", Corpus.from_strings(["", " "]), eos=False)


def test_models_with_and_without_do_not_mix(model: NgramModel) -> None:
    other = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2)
    with pytest.raises(InputError, match=r"</s>"):
        lmgauge.models.MixtureModel([model, other], [0.5, 0.5])
    mixed = lmgauge.models.MixtureModel([model, model], [0.5, 0.5])
    assert str(mixed.context_policy) == "sentence,end=none"
    assert lmgauge.evaluate(mixed, Corpus.from_strings(LINES)).events == 9
