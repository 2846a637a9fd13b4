"""Networks that are trained with spelled vocabularies: an ordinary checkpoint, with a speller in its folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from transformers import AutoModelForCausalLM, AutoTokenizer

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import UsageError
from lmgauge.models import SpelledModel
from lmgauge.models.training.settings import NEURAL_KINDS, NeuralKind

TEXT = Corpus.from_strings(["the cat sat", "the dog sat", "a cat  ran", " a dog ran"] * 3)
STRANGE = ["the zebra  sat", "", "a\tcat Ω"]
TINY: dict[str, Any] = {"embedding_size": 4, "hidden_size": 4, "num_layers": 1, "epochs": 1, "batch_size": 2, "min_count": 2}


def trained(kind: NeuralKind, output: Path, **options: Any) -> Any:
    sizes = TINY | ({"heads": 2} if kind == "transformer" else {}) | options
    return lmgauge.train_neural(kind, TEXT, output=output, **{"vocabulary": "spelled", **sizes})


def nats(model: lmgauge.LanguageModel) -> list[float]:
    return [float(x) for batch in model.score(Corpus.from_strings(STRANGE)) for x in batch.logprob]


@pytest.mark.parametrize("kind", NEURAL_KINDS)
def test_every_text_has_a_probability(kind: NeuralKind, tmp_path: Path) -> None:
    result = trained(kind, tmp_path / "model")
    model = lmgauge.load_model(tmp_path / "model")
    assert isinstance(model, SpelledModel)
    assert model.learned() == result.learned
    assert all(math.isfinite(x) for x in nats(model))
    scored = model.score_text(STRANGE[0])
    assert scored.kinds == ("token", "spelled", "token", "eos")
    assert scored.spans == ((0, 3), (3, 9), (9, 14), (14, 14))
    assert not lmgauge.evaluate(model, texts=STRANGE).bits_per_byte_is_bound
    AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert AutoTokenizer.from_pretrained(tmp_path / "model")("the cat")["input_ids"]


def test_the_network_is_the_one_without_a_speller(tmp_path: Path) -> None:
    assert trained("gru", tmp_path / "plain", vocabulary="open").learned is None
    trained("gru", tmp_path / "spelled")
    plain, spelled = (lmgauge.load_model(tmp_path / name) for name in ("plain", "spelled"))
    assert isinstance(spelled, SpelledModel)
    assert spelled.inner.fingerprint == plain.fingerprint
    assert lmgauge.spell(plain, TEXT).fingerprint == spelled.fingerprint
    lmgauge.spell(tmp_path / "plain", TEXT, output=tmp_path / "plain")
    assert lmgauge.load_model(tmp_path / "plain").fingerprint == spelled.fingerprint


def test_a_trained_network_is_replaced_and_copied_with_its_speller(tmp_path: Path) -> None:
    trained("lstm", tmp_path / "model")
    trained("lstm", tmp_path / "model", tokenizer="treebank")
    model = lmgauge.load_model(tmp_path / "model")
    assert model.tokenizer.name == "treebank"
    assert isinstance(model, SpelledModel)
    for _ in range(2):
        model.save(tmp_path / "copy")
    assert nats(lmgauge.load_model(tmp_path / "copy")) == nats(model)
    copied = lmgauge.spell(tmp_path / "model", TEXT, output=tmp_path / "other", replace=True, order=2)
    assert lmgauge.load_model(tmp_path / "other").fingerprint == copied.fingerprint
    trained("lstm", tmp_path / "model", vocabulary="open")
    assert not (tmp_path / "model" / "spelling").exists()


def test_characters_share_out_what_is_unseen(tmp_path: Path) -> None:
    assert trained("rnn", tmp_path / "model", tokenizer="character", context="sentence").learned == {}
    model = lmgauge.load_model(tmp_path / "model")
    assert all(math.isfinite(x) for x in nats(model))
    assert model.score_text("aΩ").kinds == ("token", "spelled", "eos")


def test_a_run_that_was_stopped_goes_on_to_the_same_folder(tmp_path: Path) -> None:
    def stop(event: object) -> None:
        raise KeyboardInterrupt

    trained("lstm", tmp_path / "whole", epochs=2)
    with pytest.raises(KeyboardInterrupt):
        trained("lstm", tmp_path / "parts", epochs=2, checkpoint_every=1, watch=stop)
    assert not (tmp_path / "parts").exists()
    trained("lstm", tmp_path / "parts", epochs=2, checkpoint_every=1, resume=True)
    whole, parts = (lmgauge.load_model(tmp_path / name) for name in ("whole", "parts"))
    assert whole.fingerprint == parts.fingerprint


@pytest.mark.parametrize("tokenizer", ["byte", "bpe:300", "unigram:300"])
def test_what_is_spelled_already_is_refused_at_once(tokenizer: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a probability already"):
        trained("gru", tmp_path / "model", tokenizer=tokenizer)
    assert list(tmp_path.iterdir()) == []


# -- how it computes is the network's affair ----------------------------------------------------------------------------
def test_options_of_networks_reach_the_network(tmp_path: Path) -> None:
    trained("transformer", tmp_path / "model", context="sentence")
    chosen = lmgauge.load_model(tmp_path / "model", context=8, dtype="float32", batch_tokens=64)
    assert isinstance(chosen, SpelledModel)
    assert chosen.options.context == 8
    assert str(chosen.context_policy) == str(chosen.inner.context_policy)
    with pytest.raises(UsageError, match="bos is for"):
        lmgauge.load_model(tmp_path / "model", bos="<s>")
    ngrams = lmgauge.train("witten-bell", TEXT, vocabulary="spelled", output=tmp_path / "ngrams")
    assert (ngrams.options, ngrams.progress) == (None, None)
    with pytest.raises(UsageError, match="is for neural models"):
        lmgauge.load_model(tmp_path / "ngrams", context=8)


def test_what_leaves_tokens_out_is_refused(tmp_path: Path) -> None:
    trained("transformer", tmp_path / "model", context="sentence")
    for options in ({"end": "none"}, {"first_token": "unscored"}, {"protocol": "gptq"}):
        with pytest.raises(UsageError, match="leave out end, first-token and protocol"):
            lmgauge.load_model(tmp_path / "model", **options)


def test_contexts_of_a_length_are_spelled_too(tmp_path: Path) -> None:
    trained("transformer", tmp_path / "model", context="sentence")
    curve = lmgauge.context_curve(tmp_path / "model", Corpus.from_strings(["the zebra  sat " * 9] * 3), contexts=[2, 4])
    plain = lmgauge.load_model(tmp_path / "model")
    assert curve.to_dict()["fingerprints"]["model"] == plain.fingerprint


def test_progress_and_journals_are_the_networks(tmp_path: Path) -> None:
    trained("transformer", tmp_path / "model", context="sentence")
    model = lmgauge.load_model(tmp_path / "model")
    assert isinstance(model, SpelledModel)
    seen: list[int] = []
    model.progress = seen.append
    before = nats(model)
    assert sum(seen) > 0
    journal = model.keep_journal(tmp_path / "journal")
    assert journal is not None
    assert nats(model) == before
    journal.close()
    assert lmgauge.train("witten-bell", TEXT, vocabulary="spelled").keep_journal(tmp_path / "none") is None
