"""Folders and names that are no model, or not the one they seem: clear words, and nothing random or made up is scored."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402
from tests.models.network.conftest import TEXT, lowercasing  # noqa: E402

from lmgauge import evaluate, load_model  # noqa: E402
from lmgauge.base.errors import LmgaugeError, ModelFileError, UsageError  # noqa: E402
from lmgauge.models.network.options import ScoringOptions  # noqa: E402
from lmgauge.models.network.torch import checkpoint as module  # noqa: E402
from lmgauge.models.network.torch.architectures import RecurrentConfig, RecurrentForCausalLM  # noqa: E402
from lmgauge.models.network.torch.checkpoint import choose_device, choose_dtype, positions_of, read_scoring  # noqa: E402
from lmgauge.models.network.torch.model import NeuralModel, load_neural  # noqa: E402
from lmgauge.models.network.torch.output_layer import unchanged  # noqa: E402
from lmgauge.models.training.tokenizers import write_tokenizer  # noqa: E402
from lmgauge.text.documents import Corpus  # noqa: E402
from lmgauge.text.tokenizers import make_tokenizer  # noqa: E402
from lmgauge.text.vocabulary import Vocabulary  # noqa: E402

Folder = Callable[..., Path]
Copy = Callable[..., Path]


@pytest.fixture
def copy(checkpoint: Folder, tmp_path: Path) -> Copy:
    """A copy of a checkpoint that a test may damage."""

    def make(kind: str = "gpt2", tokenizer: str = "byte-level", **options: Any) -> Path:
        return Path(shutil.copytree(checkpoint(kind, tokenizer, **options), tmp_path / "model"))

    return make


def assert_refused(source: Path | str, message: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of a model that cannot be used: one line, and nothing beside it."""
    capsys.readouterr()
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(source)
    text = str(caught.value)
    assert str(source) in text
    assert "\n" not in text
    assert not text.rstrip().endswith(":"), "the reason is missing"
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""
    return text


def edit(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def remove(folder: Path, pattern: str) -> None:
    for file in folder.glob(pattern):
        file.unlink()


# -- weights ------------------------------------------------------------------------------------------------------------


def test_no_weights(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy()
    remove(folder, "*.safetensors")
    assert_refused(folder, "has a config.json but no weights", capsys)
    (folder / "training_args.bin").write_bytes(b"no weights either")
    assert_refused(folder, "no weights|no file named model.safetensors", capsys)


def test_model_type_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    assert_refused(tmp_path, "has a config.json but no weights", capsys)


@pytest.mark.parametrize("kept", [0, 4, 8, 100, 1000, -1])
def test_truncated_weights(kept: int, copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    file = copy() / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    assert_refused(file.parent, "cannot be loaded: .*(header|metadata|incomplete|small|length)", capsys)


def test_weights_that_are_something_else(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    file = copy() / "model.safetensors"
    file.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 548105171\n")
    assert_refused(file.parent, "cannot be loaded", capsys)


@pytest.mark.parametrize("name", ["transformer.h.1.mlp.c_fc.weight", "transformer.ln_f.bias", "transformer.wte.weight"])
def test_missing_weights_are_never_random(name: str, copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    file = copy() / "model.safetensors"
    weights = load_file(file)
    del weights[name]
    save_file(weights, file, {"format": "pt"})
    assert_refused(file.parent, "weights are missing, .* for one, and would be random", capsys)


def test_weights_of_another_size(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy()
    edit(folder, n_embd=64)
    text = assert_refused(folder, "do not belong together", capsys)
    assert "report above" not in text.lower().replace("above report", "report above"), "nothing stands above"


def test_more_layers_than_weights_are_not_built(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    """It would take for ever, and all memory."""
    folder = copy()
    edit(folder, n_layer=2**31 - 1)
    assert_refused(folder, r"config\.json asks for 2,147,483,647 layers, and there are \d+ weights", capsys)


@pytest.mark.parametrize("context", ["stream", "sentence"])
def test_weights_that_are_no_numbers(context: str, tmp_path: Path) -> None:
    """A state that runs through the text carries NaN along as easily as a batch does."""
    folder = recurrent(tmp_path, context)
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.weight_hh_l1"][0, 0] = float("nan")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelFileError, match="gives NaN in segment"):
        evaluate(load_model(folder), Corpus.from_strings(["the cat", "the dog"]))


def recurrent(path: Path, context: str = "stream", words: tuple[str, ...] = ("the", "cat", "dog")) -> Path:
    """The folder of a random LSTM, as training writes it."""
    torch.manual_seed(4)
    vocabulary, tokenizer = Vocabulary.from_tokens(words), make_tokenizer("whitespace")
    config = RecurrentConfig(vocab_size=len(vocabulary), embedding_size=6, hidden_size=6, initializer_range=1.0)
    config.lmgauge = {
        "kind": "lstm",
        "tokenizer": tokenizer.settings(),
        "vocabulary": "open",
        "reserved": "refuse",
        "context": context,
        "format_version": 1,
    }
    folder = path / "lstm"
    RecurrentForCausalLM(config).save_pretrained(folder)
    write_tokenizer(tokenizer, vocabulary, folder)
    return folder


# -- tokenizers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "tokenizer"), [("gpt2", "byte-level"), ("llama", "byte-fallback"), ("mamba", "byte-level")]
)
def test_no_tokenizer_and_none_is_made_up(kind: str, tokenizer: str, copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy(kind, tokenizer)
    remove(folder, "tokenizer*")
    assert_refused(folder, "tokenizer", capsys)


def test_a_damaged_tokenizer(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy()
    (folder / "tokenizer.json").write_text('{"version": ')
    assert_refused(folder, "cannot be loaded", capsys)


def test_the_tokenizer_of_another_model(copy: Copy, checkpoint: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy()
    shutil.copyfile(checkpoint("llama", "byte-fallback") / "tokenizer.json", folder / "tokenizer.json")
    with pytest.raises(ModelFileError, match=r"token with id .* does not belong to this model"):
        load_model(folder)


def test_no_tokenizer_of_a_model_trained_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = recurrent(tmp_path)
    remove(folder, "tokenizer.json")
    assert_refused(folder, r"has no tokenizer\.json; copy the whole folder", capsys)


# -- kinds --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"model_type": 5}', "{}"])
def test_a_damaged_config(content: str, copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy()
    (folder / "config.json").write_text(content)
    assert_refused(folder, "cannot be read|not a JSON object|has no model_type", capsys)


@pytest.mark.parametrize("kind", ["no-such-kind", "t5", "vit", ""])
def test_kinds_that_do_not_predict_the_next_token(kind: str, copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy()
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    text = assert_refused(folder, "is not known here|not a causal language model", capsys)
    assert len(text) < 400 + len(str(folder))


def test_a_network_that_sees_what_comes_later_is_refused(tmp_path: Path) -> None:
    """BERT loads as a causal model and is none, unless its config says is_decoder: it is shown the answer."""
    tokenizer = lowercasing()
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 40}
    config = transformers.BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **sizes)
    for decoder in (False, True):
        folder = tmp_path / str(decoder)
        torch.manual_seed(1)
        config.is_decoder = decoder
        transformers.BertLMHeadModel(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if decoder:
            assert evaluate(load_model(folder), Corpus.from_strings(["the cat sat ."])).perplexity > 1
        else:
            with pytest.raises(ModelFileError, match=r"later|bidirectional|causal"):
                load_model(folder)


def test_code_of_its_own_does_not_run(copy: Copy, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy()
    edit(folder, model_type="mine", auto_map={"AutoConfig": "code.C", "AutoModelForCausalLM": "code.M"})
    (folder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    assert_refused(folder, "does not run unless you trust it: --trust-remote-code", capsys)
    assert not (tmp_path / "ran").exists()


def test_a_folder_without_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(tmp_path, r"not a model, as it has no config\.json", capsys)


# -- names on a hub -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["no-such-model", "nobody/no-such-model"])
def test_a_hub_name_without_network(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(name, "no such model: no folder of that name is here, and nothing could be had from the hub", capsys)


@pytest.mark.parametrize("name", ["no/such/folder", "models/kn5/", "./gpt2", "~/gpt2", "x y"])
def test_a_path_that_is_no_hub_name(name: str) -> None:
    with pytest.raises(ModelFileError, match="no such model"):
        load_model(name)


def test_a_hub_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(module, "getproxies", dict)
    began = time.perf_counter()
    assert not module._hub_answers()
    assert time.perf_counter() - began < 2 * module._HUB_SECONDS
    for endpoint in ("nonsense", "https://host:port", "http://"):
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        assert not module._hub_answers()


# -- what it is -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "changes"),
    [("llama", {"rms_norm_eps": 0.5}), ("gpt2", {"n_head": 4}), ("gemma2", {"final_logit_softcapping": 9.0})],
)
def test_fingerprints_tell_configurations_apart(kind: str, changes: dict[str, Any], copy: Copy, checkpoint: Folder) -> None:
    """The same weights put together in another way are another model."""
    folder = copy(kind)
    assert load_neural(folder).fingerprint == load_neural(checkpoint(kind)).fingerprint
    edit(folder, **changes)
    corpus = Corpus.from_strings([TEXT[:60]])
    one, other = load_neural(checkpoint(kind)), load_neural(folder)
    assert evaluate(one, corpus).perplexity != evaluate(other, corpus).perplexity
    assert one.fingerprint != other.fingerprint


@pytest.mark.usefixtures("bfloat16_products")
def test_fingerprints_tell_policies_and_tokenizers_apart(checkpoint: Folder) -> None:
    folder = checkpoint("gpt2")
    found = {
        load_neural(folder, ScoringOptions(**options)).fingerprint  # type: ignore[arg-type]
        for options in (
            {},
            {"context": 16},
            {"context": 16, "stride": 8},
            {"end": "none"},
            {"first_token": "uniform"},
            {"dtype": "bfloat16"},
        )
    }
    assert len(found) == 6
    assert load_neural(folder, ScoringOptions(batch_tokens=7)).fingerprint in found


@pytest.mark.usefixtures("bfloat16_products")
@pytest.mark.parametrize("scale", [0.2, 1.0])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_a_config_says_of_logits_is_done(dtype: str, scale: float, copy: Copy) -> None:
    """Soft capping hardly changes small logits: that it is there is told by the config, not by a probe of few tokens."""
    folder = copy("gemma2")
    edit(folder, final_logit_softcapping=30.0)
    file = folder / "model.safetensors"
    weights = load_file(file)
    weights["model.norm.weight"] = (1 + weights["model.norm.weight"]) * scale - 1
    save_file(weights, file, {"format": "pt"})
    model = load_neural(folder, ScoringOptions(dtype=dtype))  # type: ignore[arg-type]
    assert model.engine.split.output is None or model.engine.split.output.adjust is not unchanged


def test_a_network_without_an_output_layer_is_told(checkpoint: Folder) -> None:
    base = transformers.AutoModel.from_pretrained(checkpoint("gpt2"))
    with pytest.raises(LmgaugeError, match="no output layer"):
        NeuralModel.wrap(base, transformers.AutoTokenizer.from_pretrained(checkpoint("gpt2")))


@pytest.mark.parametrize(("kind", "positions"), [("gpt2", 48), ("llama", 64), ("bloom", None), ("mamba", None)])
def test_positions(kind: str, positions: int | None, checkpoint: Folder) -> None:
    assert positions_of(load_neural(checkpoint(kind)).network) == positions


def test_positions_of_models_trained_here(tmp_path: Path) -> None:
    model = load_neural(recurrent(tmp_path))
    assert positions_of(model.network) is None
    assert str(model.context_policy) == "stream"
    assert str(load_neural(recurrent(tmp_path), ScoringOptions(stream=False)).context_policy) == "sentence"
    with pytest.raises(UsageError, match="trained to end lines with </s>"):
        load_neural(recurrent(tmp_path), ScoringOptions(end="newline"))


@pytest.mark.parametrize("name", ["cuda:99", "nothing", ""])
def test_devices_that_are_not_there(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be used here") as caught:
        choose_device(name)
    assert "\n" not in str(caught.value)


def test_dtypes() -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert [choose_dtype(name, cpu) for name in ("auto", "float32", "bfloat16")] == [
        torch.float32,
        torch.float32,
        torch.bfloat16,
    ]
    assert [choose_dtype(name, gpu) for name in ("auto", "float32")] == [torch.bfloat16, torch.float32]


# -- copies ---------------------------------------------------------------------------------------------------------------


def test_a_copy_is_the_same_model(checkpoint: Folder, tmp_path: Path) -> None:
    model = load_neural(checkpoint("gpt2"), ScoringOptions(context=16, end="none", batch_tokens=9))
    model.save(tmp_path / "copy")
    back = load_model(tmp_path / "copy")
    assert back.fingerprint == model.fingerprint
    assert str(back.context_policy) == "sentence,16/16,end=none"
    assert read_scoring(tmp_path / "copy") == {"context": 16, "end": "none", "dtype": "float32"}


@pytest.mark.usefixtures("bfloat16_products")
def test_a_copy_in_another_precision_is_the_same_model(checkpoint: Folder, tmp_path: Path) -> None:
    """A mixture asks for the fingerprint of what was mixed: what was chosen then is what is loaded again."""
    model = load_neural(checkpoint("gpt2"), ScoringOptions(dtype="bfloat16"))
    model.save(tmp_path / "copy")
    assert load_model(tmp_path / "copy").fingerprint == model.fingerprint


def test_what_was_never_in_a_folder_cannot_be_copied(checkpoint: Folder, tmp_path: Path) -> None:
    network = transformers.AutoModelForCausalLM.from_pretrained(checkpoint("gpt2"))
    model = NeuralModel.wrap(network, transformers.AutoTokenizer.from_pretrained(checkpoint("gpt2")), label="mine")
    with pytest.raises(UsageError, match="mine: was not loaded from a folder"):
        model.save(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    "content", ["{", "[1]", '{"context": 0}', '{"context": "many"}', '{"end": 3}', '{"other": 1}', "\xff"]
)
def test_damaged_scoring(content: str, copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy()
    (folder / "scoring.json").write_text(content, encoding="latin-1")
    assert_refused(folder, r"scoring\.json: is damaged", capsys)


def test_a_model_without_scoring_choices(checkpoint: Folder) -> None:
    assert read_scoring(checkpoint("gpt2")) == {}
    assert np.isfinite(load_neural(checkpoint("gpt2")).log_distribution([1])).any()
