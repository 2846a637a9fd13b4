"""Scores of any causal network beside a plain loop at batch size one that holds all logits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.models.network.conftest import TEXT, network, rounding  # noqa: E402

from lmgauge import evaluate  # noqa: E402
from lmgauge.base.errors import InputError, ModelFileError, UsageError  # noqa: E402
from lmgauge.evaluation.audit.audit import audit  # noqa: E402
from lmgauge.evaluation.options import AuditSettings  # noqa: E402
from lmgauge.models.network.options import ScoringOptions  # noqa: E402
from lmgauge.models.network.torch.model import NeuralModel, load_neural  # noqa: E402
from lmgauge.models.network.torch.split_network import _fused_norm  # noqa: E402
from lmgauge.scores import ScoreBatch  # noqa: E402
from lmgauge.text.documents import Corpus  # noqa: E402

Folder = Callable[..., Path]
POSITIONS = {"gpt2": 48, "llama": 64, "gemma2": 64, "cohere": 64, "mamba": None, "gptj": 48, "bloom": None, "opt": 48}


def batches(model: Any, text: str = TEXT, **options: Any) -> list[ScoreBatch]:
    return list(model.score(Corpus.from_strings(text.splitlines(), **options)))


def logprobs(model: Any, text: str = TEXT) -> np.ndarray:
    return np.concatenate([batch.logprob for batch in batches(model, text)])


@torch.inference_mode()
def plain(folder: Path, pieces: list[str], context: int | None = None, stride: int | None = None) -> np.ndarray:
    """The loop of the transformers documentation, at batch size one: windows of the text, new predictions of each kept."""
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for piece in pieces:
        ids = tokenizer(piece, add_special_tokens=False)["input_ids"]
        ids = [tokenizer.bos_token_id, *ids]
        size, step = context or len(ids), stride or context or len(ids)
        known = 1
        for begin in range(0, len(ids), step):
            end = min(begin + size, len(ids))
            reach = min(begin + size + 1, len(ids))
            logits = network(torch.tensor([ids[begin:end]])).logits[0].double().log_softmax(-1)
            for position in range(known, reach):
                found.append(float(logits[position - 1 - begin, ids[position]]))
            known = reach
            if reach == len(ids):
                break
    return np.array(found)


@pytest.mark.parametrize("kind", POSITIONS)
def test_scores_are_those_of_a_plain_loop(kind: str, checkpoint: Folder) -> None:
    folder = checkpoint(kind)
    model = load_neural(folder, ScoringOptions(batch_tokens=64))
    expected = plain(folder, [line + "\n" for line in TEXT.splitlines()], POSITIONS[kind])
    # Strings are records without line ends: the newline is put where a line of a file has it.
    corpus = Corpus.from_strings([line + "\n" for line in TEXT.splitlines()])
    found = np.concatenate([batch.logprob for batch in model.score(corpus)])
    np.testing.assert_allclose(found, expected, atol=rounding(model))


@pytest.mark.parametrize("kind", POSITIONS)
def test_output_layer_is_found_without_full_logits(kind: str, checkpoint: Folder) -> None:
    assert load_neural(checkpoint(kind)).engine.split.output is not None


@pytest.mark.parametrize(("context", "stride"), [(48, 48), (16, 16), (16, 8), (16, 1), (7, 3), (1, 1)])
def test_windows_are_those_of_a_plain_loop(context: int, stride: int, checkpoint: Folder) -> None:
    folder = checkpoint("gpt2")
    document = TEXT * 3
    model = load_neural(folder, ScoringOptions(context=context, stride=stride, batch_tokens=100))
    found = np.concatenate([batch.logprob for batch in model.score(Corpus.from_strings([document]))])
    np.testing.assert_allclose(found, plain(folder, [document], context, stride), atol=2e-5)


def test_a_window_as_long_as_the_text_is_no_window(checkpoint: Folder) -> None:
    line = "The cat sat on the mat ."
    whole = logprobs(load_neural(checkpoint("gpt2")), line)
    assert len(whole) <= 40
    for stride in (1, 20, 40):
        windowed = logprobs(load_neural(checkpoint("gpt2"), ScoringOptions(context=40, stride=stride)), line)
        np.testing.assert_allclose(windowed, whole, atol=2e-6)


@pytest.mark.parametrize("tokens", [1, 40, 1000])
def test_batch_size_and_order_change_nothing(tokens: int, checkpoint: Folder) -> None:
    reference = logprobs(load_neural(checkpoint("llama"), ScoringOptions(batch_tokens=1)))
    found = logprobs(load_neural(checkpoint("llama"), ScoringOptions(batch_tokens=tokens)))
    np.testing.assert_allclose(found, reference, atol=1e-5)


def test_a_stream_is_one_long_document(checkpoint: Folder, text_file: Path) -> None:
    options = {"context": 16, "stride": 8}
    stream = load_neural(checkpoint("gpt2"), ScoringOptions(stream=True, **options))
    tokens = stream.tokenizer
    found = np.concatenate([b.logprob for b in stream.score(Corpus.from_files(text_file, block_bytes=32))])
    pieces = [piece for line in TEXT.splitlines(keepends=True) for piece in [line]]
    ids = [i for piece in pieces for i in transformers.AutoTokenizer.from_pretrained(checkpoint("gpt2"))(piece)["input_ids"]]
    assert len(found) == len(ids)
    network = transformers.AutoModelForCausalLM.from_pretrained(checkpoint("gpt2")).eval()
    sequence = [0, *ids]
    for position in (1, 5, 16, 17, 24, 25, 30, len(sequence) - 1):
        k = max(0, -(-(position - 16) // 8))
        with torch.inference_mode():
            logits = network(torch.tensor([sequence[8 * k : position]])).logits[0, -1].double().log_softmax(-1)
        assert found[position - 1] == pytest.approx(float(logits[sequence[position]]), abs=2e-5)
    assert tokens.unit == "subword"


@pytest.mark.parametrize("tokenizer", ["byte-level", "byte-fallback"])
def test_spans_are_the_bytes_of_the_source(tokenizer: str, checkpoint: Folder, text_file: Path) -> None:
    model = load_neural(checkpoint("llama", tokenizer))
    for block in Corpus.from_files(text_file):
        (batch,) = model.score([block])
        spelled = {"Ġ": " ", "▁": " "}
        at = 0
        for segment, events in enumerate(batch.segment_events.tolist()):
            ends = batch.ends[at : at + events]
            assert ends[-1] == len(block.text(segment))
            assert (np.diff(ends, prepend=0) >= 0).all()
            at += events
        # A character of three bytes that is spelled by three tokens has a byte for each of them.
        text = block.text(3)
        rows = slice(int(batch.segment_events[:3].sum()), int(batch.segment_events[:4].sum()))
        strings = [model.vocabulary.tokens[i] for i in batch.token_ids[rows]]
        starts = [0, *batch.ends[rows][:-1].tolist()]
        for string, start, end in zip(strings, starts, batch.ends[rows].tolist(), strict=True):
            if string in ("<0x0A>", "Ċ"):
                assert start == end == len(text)
            elif string.startswith("<0x"):
                assert text[start:end] == bytes([int(string[3:5], 16)])
            elif string.isascii() and start:
                assert text[start:end].decode() == string
            for mark, character in spelled.items():
                if string == mark and start:
                    assert text[start:end].decode() == character


def test_a_lossy_tokenizer_is_told(checkpoint: Folder, text_file: Path) -> None:
    result = evaluate(load_neural(checkpoint("llama", "lowercasing")), text_file)
    assert result.bits_per_byte_is_bound
    assert result.lossy_segments
    assert result.oov


def test_audit_passes(checkpoint: Folder, text_file: Path) -> None:
    for kind, options in (
        ("gpt2", ScoringOptions(context=8, stride=4)),
        ("gpt2", ScoringOptions(stream=True, context=16, stride=16)),
        ("llama", ScoringOptions(end="eos", first_token="uniform")),
        ("mamba", ScoringOptions(end="none")),
    ):
        tokenizer = "byte-fallback" if kind == "llama" else "byte-level"
        model = load_neural(checkpoint(kind, tokenizer), options)
        found = audit(model, Corpus.from_files(text_file), AuditSettings(contexts=20))
        assert found.passed, found


def test_rows_of_the_head_without_a_token_have_probability(checkpoint: Folder) -> None:
    model = load_neural(checkpoint("gpt2", extra_rows=5))
    assert model.vocabulary.tokens[-1].startswith("<row ")
    distribution = model.log_distribution(np.array([1, 40, 41], np.uint32))
    assert np.exp(distribution).sum() == pytest.approx(1, abs=1e-12)
    assert np.isneginf(distribution[:2]).all()  # no <unk>, and what begins texts is predicted as their end


def test_first_tokens(checkpoint: Folder) -> None:
    line = "The cat sat on the mat ."
    of = {
        name: batches(load_neural(checkpoint("llama", "byte-fallback"), ScoringOptions(first_token=name)), line)[0]
        for name in ("bos", "eos", "uniform", "unscored")
    }
    assert of["uniform"].logprob[0] == pytest.approx(-np.log(330))
    assert len(of["unscored"]) == len(of["bos"]) - 1
    assert of["unscored"].ends[0] == of["bos"].ends[1]
    assert of["unscored"].lossy_segments == 1
    assert of["bos"].logprob[0] != of["eos"].logprob[0]
    np.testing.assert_allclose(of["uniform"].logprob[1:], of["unscored"].logprob)
    lowercasing = load_neural(checkpoint("llama", "lowercasing"))
    assert str(lowercasing.context_policy) == "sentence,64/64,first=uniform,end=newline"


def test_ends_of_lines(checkpoint: Folder, text_file: Path) -> None:
    results = {
        end: evaluate(load_neural(checkpoint("llama", "byte-fallback"), ScoringOptions(end=end)), text_file)
        for end in ("eos", "newline", "none")
    }
    assert results["eos"].sentence_ends == 6
    assert results["newline"].sentence_ends == results["none"].sentence_ends == 0
    size = len(TEXT.encode())
    assert [results[end].bytes for end in ("eos", "newline", "none")] == [size, size, size - 6]
    assert "context:sentence,64/64,end=none" in results["none"].signature


@pytest.mark.usefixtures("bfloat16_products")
def test_bfloat16_is_close(checkpoint: Folder, text_file: Path) -> None:
    exact = evaluate(load_neural(checkpoint("llama")), text_file)
    coarse = evaluate(load_neural(checkpoint("llama"), ScoringOptions(dtype="bfloat16")), text_file)
    assert coarse.cross_entropy == pytest.approx(exact.cross_entropy, rel=0.01)
    assert coarse.fingerprints["model"] != exact.fingerprints["model"]


@pytest.mark.parametrize("network", [None, "gpt2"])
def test_what_is_not_a_network_cannot_be_wrapped(network: Any) -> None:
    with pytest.raises(UsageError, match="not a network of the transformers library"):
        NeuralModel.wrap(network, None)


def test_a_wrapped_network_scores_as_its_checkpoint(checkpoint: Folder) -> None:
    folder = checkpoint("llama")
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    wrapped = NeuralModel.wrap(network, transformers.AutoTokenizer.from_pretrained(folder))
    loaded = load_neural(folder, ScoringOptions(device="cpu"))
    np.testing.assert_array_equal(logprobs(wrapped), logprobs(loaded))
    assert wrapped.fingerprint == loaded.fingerprint


def test_a_network_whose_logits_are_its_own_secret_is_asked_for_them(checkpoint: Folder) -> None:
    folder = checkpoint("llama")
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    inner = network.forward

    def forward(*arguments: Any, **options: Any) -> Any:
        found = inner(*arguments, **options)
        found.logits = found.logits.abs().sqrt()
        return found

    network.forward = forward
    model = NeuralModel.wrap(network, transformers.AutoTokenizer.from_pretrained(folder))
    assert model.engine.split.output is None
    line = "The cat sat"
    ids = [0, *transformers.AutoTokenizer.from_pretrained(folder)(line)["input_ids"]]
    with torch.inference_mode():
        wanted = network(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
    expected = [float(wanted[i - 1, ids[i]]) for i in range(1, len(ids))]
    np.testing.assert_allclose(logprobs(model, line), expected, atol=1e-6)


def test_nan_is_told_with_its_layer_and_segment(checkpoint: Folder) -> None:
    network = transformers.AutoModelForCausalLM.from_pretrained(checkpoint("llama"), dtype=torch.float32).eval()
    model = NeuralModel.wrap(network, transformers.AutoTokenizer.from_pretrained(checkpoint("llama")))
    with torch.no_grad():
        network.model.layers[1].mlp.up_proj.weight[0, 0] = float("nan")
    with pytest.raises(ModelFileError, match=r"NaN in segment 4, first in its layer model\.layers\.1\.mlp\.up_proj"):
        logprobs(model)


def test_memory_that_runs_out_means_smaller_batches(checkpoint: Folder) -> None:
    model = load_neural(checkpoint("llama"), ScoringOptions(batch_tokens=1000))
    text = TEXT * 5
    expected = logprobs(model, text)
    compute = model.engine._compute
    refused = []

    def limited(batch: Any, head: Any) -> Any:
        if batch.ids.size > 100:
            refused.append(batch.ids.size)
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return compute(batch, head)

    model.engine._compute = limited  # type: ignore[method-assign]
    np.testing.assert_allclose(logprobs(model, text), expected, atol=1e-5)
    assert refused
    model.engine._compute = lambda batch, head: limited(replace(batch, ids=np.zeros((1, 101))), head)  # type: ignore[method-assign]
    with pytest.raises(UsageError, match=r"not enough memory .* smaller --context"):
        logprobs(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": 49}, "positions for 48 tokens"),
        ({"context": 8, "stride": 9}, "longer than the context"),
        ({"context": 0}, "1 or more"),
        ({"first_token": "nothing"}, "choose one of bos, eos, uniform, unscored"),
        ({"device": "cuda:9"}, "cannot be used here"),
    ],
)
def test_options_that_cannot_be_followed(options: dict[str, Any], message: str, checkpoint: Folder) -> None:
    with pytest.raises(UsageError, match=message):
        load_neural(checkpoint("gpt2"), ScoringOptions(**options))


@pytest.mark.parametrize(("kind", "same"), [("llama", True), ("mamba", True), ("gemma2", False)])
def test_a_norm_in_one_pass_over_memory_is_the_network_s_own(kind: str, same: bool) -> None:
    """It stands in for it on GPUs; Gemma's, which adds 1 to its weights, is left as it is."""
    made = network(kind, 100)
    norms = [module for module in made.modules() if type(module).__name__.endswith("RMSNorm")]
    assert norms
    states = torch.randn(7, 32)
    for norm in norms:
        fast = _fused_norm(norm)
        assert (fast is not None) == same
        if fast is not None:
            torch.testing.assert_close(fast(states), norm(states))


def test_a_stream_needs_a_window(checkpoint: Folder) -> None:
    with pytest.raises(UsageError, match="needs --context"):
        load_neural(checkpoint("mamba"), ScoringOptions(stream=True))


def test_empty_text(checkpoint: Folder, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    with pytest.raises(InputError, match="nothing to evaluate"):
        evaluate(load_neural(checkpoint("gpt2")), empty)
