"""Protocols beside the programs they are of: the harness itself, and loops written after the others' own code.

Two tiny checkpoints: GPT-2's kind, whose tokenizer puts nothing before a text, and Llama's, whose tokenizer puts BOS there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.models.network.conftest import SIZES, TEXT, byte_fallback, byte_level
from tests.reference import protocols as reference

import lmgauge
from lmgauge.base.choices import ProtocolName
from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.torch.model import NeuralModel

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

POSITIONS = 600
LINES = TEXT.splitlines() * 12
CLOSE = {"rel": 1e-6, "abs": 0.0}  # asked for is 1e-4; only the order of float32 products differs


class Tiny:
    """A network, its tokenizer, and both as a model that follows a protocol."""

    def __init__(self, *, bos: bool) -> None:
        self.tokenizer = byte_fallback() if bos else byte_level()
        self.bos = self.tokenizer.bos_token_id if bos else None
        if bos:
            from tokenizers.processors import TemplateProcessing

            special = [("<s>", self.bos)]
            self.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=special)
        torch.manual_seed(3)
        ends = {"vocab_size": len(self.tokenizer), "bos_token_id": 1, "eos_token_id": 2}
        sizes = {"n_embd": 16, "n_layer": 1, "n_head": 1}
        config = (
            transformers.LlamaConfig(max_position_embeddings=POSITIONS, **SIZES, **ends)
            if bos
            else transformers.GPT2Config(n_positions=POSITIONS, **sizes, **ends)
        )
        self.network = transformers.AutoModelForCausalLM.from_config(config).eval()
        with torch.no_grad():
            for weight in self.network.parameters():
                weight.mul_(4 if weight.dim() > 1 else 1)

    def ids(self, separator: str) -> list[int]:
        return list(self.tokenizer(separator.join(LINES))["input_ids"])

    def model(self, **options: Any) -> NeuralModel:
        return NeuralModel.wrap(self.network, self.tokenizer, ScoringOptions(**options))

    def printed(self, name: ProtocolName, context: int | None = None) -> dict[str, float]:
        return lmgauge.evaluate(self.model(protocol=name, context=context), texts=LINES).source_figures


@pytest.fixture(scope="module", params=[False, True], ids=["no BOS", "BOS"])
def tiny(request: pytest.FixtureRequest) -> Tiny:
    return Tiny(bos=request.param)


@pytest.mark.parametrize("window", [None, 520])
def test_the_guide(tiny: Tiny, window: int | None) -> None:
    printed, plain = reference.guide(tiny.network, tiny.ids("\n\n"), window or POSITIONS, 512)
    result = lmgauge.evaluate(tiny.model(protocol="hf-guide", context=window), texts=LINES)
    assert result.source_figures == {"ppl": pytest.approx(printed, **CLOSE)}
    assert result.perplexity == pytest.approx(plain, **CLOSE)
    assert result.events == len(tiny.ids("\n\n")) - 1


@pytest.mark.parametrize("chunk", [None, 100, 7])
def test_gptq(tiny: Tiny, chunk: int | None) -> None:
    expected = reference.gptq(tiny.network, tiny.ids("\n\n"), chunk or POSITIONS)
    assert tiny.printed("gptq", chunk) == {"ppl": pytest.approx(expected, **CLOSE)}


@pytest.mark.parametrize("chunk", [None, 100, 33])
def test_llama_cpp(tiny: Tiny, chunk: int | None) -> None:
    expected = reference.llama_cpp(tiny.network, tiny.ids("\n"), chunk or 512, tiny.bos)
    assert tiny.printed("llama.cpp", chunk) == {"PPL": pytest.approx(expected, **CLOSE)}


def harness(tiny: Tiny, folder: Path, documents: Sequence[str], context: int) -> dict[str, float]:
    """What lm-evaluation-harness makes of documents, by its own code for a rolling log-likelihood."""
    huggingface = pytest.importorskip("lm_eval.models.huggingface")
    from lm_eval.api.instance import Instance

    tiny.tokenizer.save_pretrained(folder)
    own = transformers.AutoTokenizer.from_pretrained(folder)
    settings = {"max_length": context, "device": "cpu", "batch_size": 1, "add_bos_token": False}
    runner = huggingface.HFLM(pretrained=tiny.network, tokenizer=own, **settings)
    requests = [Instance("loglikelihood_rolling", {}, (text,), 0) for text in documents]
    nats = sum(runner.loglikelihood_rolling(requests, disable_tqdm=True))
    words = sum(len(re.split(r"\s+", text)) for text in documents)  # lm_eval/tasks/wikitext/preprocess_wikitext.py
    size = sum(len(text.encode()) for text in documents)
    figures = math.exp(-nats / words), math.exp(-nats / size), -nats / size / math.log(2)
    return dict(zip(("word_perplexity", "byte_perplexity", "bits_per_byte"), figures, strict=True))


@pytest.mark.parametrize("context", [POSITIONS, 100, 7])
def test_the_harness(tiny: Tiny, tmp_path: Path, context: int) -> None:
    documents = [" = A title = \n\n" + TEXT, TEXT * 5 + "\nend\n", "", "x", "a b"]
    expected = harness(tiny, tmp_path, documents, context)
    result = lmgauge.evaluate(tiny.model(protocol="harness", context=context), texts=documents)
    assert result.source_figures == {name: pytest.approx(value, rel=1e-5) for name, value in expected.items()}
    assert result.bits_per_byte == pytest.approx(expected["bits_per_byte"], **CLOSE)
    assert any("add_bos_token=False" in note for note in result.notes) == (tiny.bos is not None)


@pytest.mark.parametrize("name", ["hf-guide", "gptq", "llama.cpp"])
def test_whole_distributions_and_rows_are_of_the_same_events(tiny: Tiny, name: ProtocolName, tmp_path: Path) -> None:
    """Columns come from the distributions: their targets have the log-probabilities of the rows, at the same spans."""
    text = tmp_path / "text.txt"
    text.write_text("\n".join(LINES[:80]) + "\n", encoding="utf-8")
    for columns in ((), ("entropy", "top1")):
        lmgauge.evaluate(
            tiny.model(protocol=name, context=520 if name == "hf-guide" else 50),
            text,
            output=lmgauge.settings.Outputs(tmp_path / f"run{len(columns)}", columns=columns),
        )
    plain, whole = (_rows(tmp_path / run) for run in ("run0", "run2"))
    assert plain["start"] == whole["start"]
    assert plain["end"] == whole["end"]
    assert plain["logprob"] == pytest.approx(whole["logprob"], abs=1e-4)


def _rows(folder: Path) -> dict[str, list[Any]]:
    import pyarrow.parquet as pq

    return pq.read_table(folder / "scores.parquet", columns=["start", "end", "logprob"]).to_pydict()


def test_every_window_begins_with_bos(tiny: Tiny) -> None:
    """Beside a loop: the windows of one text, each with BOS in the place of its first token; lengths and places stay."""
    ids, context, stride = [1, *tiny.tokenizer(TEXT, add_special_tokens=False)["input_ids"]], 20, 8
    bos = tiny.tokenizer.bos_token_id
    ids[0] = bos
    expected: list[float] = []
    for begin in range(0, len(ids) - 1, stride):
        shown = [bos, *ids[begin + 1 : begin + context + 1]]
        nats = reference.nats(tiny.network, shown)
        expected += nats[len(expected) - begin :]
    model = tiny.model(context=context, stride=stride, end="none", bos_each_window=True)
    batch = next(model.score(lmgauge.Corpus.from_strings([TEXT])))
    assert (-batch.logprob).tolist() == pytest.approx(expected, abs=1e-4)
    assert str(model.context_policy) == "sentence,20/8,end=none,bos=each"
    assert batch.token_ids[40] == model.tokens.network_ids.tolist().index(ids[41])
    before = [int(token) for token in batch.token_ids[:40]]
    assert model.log_distribution([1, *before])[batch.token_ids[40]] == pytest.approx(-expected[40], abs=1e-4)


def test_a_stream_of_segments_has_the_windows_of_the_whole_text() -> None:
    tiny, options = Tiny(bos=False), {"context": 20, "stride": 8, "end": "none", "bos_each_window": True}
    parts = ["the cat sat on the mat .", " It was a long day ; nobody came .", " The end"] * 3
    together = next(tiny.model(**options).score(lmgauge.Corpus.from_strings(["".join(parts)])))
    apart = tiny.model(stream=True, **options).score(lmgauge.Corpus.from_strings(parts))
    assert together.logprob.tolist() == pytest.approx([nats for batch in apart for nats in batch.logprob.tolist()], abs=1e-4)


def test_texts_that_a_protocol_cannot_score_are_refused_in_a_line(tiny: Tiny) -> None:
    with pytest.raises(InputError, match="fills no chunk of 512"):
        lmgauge.evaluate(tiny.model(protocol="llama.cpp"), texts=["the cat"])
    with pytest.raises(UsageError, match="several segments"):
        list(tiny.model(protocol="gptq", context=4).score(lmgauge.Corpus.from_strings(["the cat sat", "on the mat"])))
    with pytest.raises(UsageError, match="no groups"):
        lmgauge.evaluate(tiny.model(protocol="gptq"), texts=LINES, by_group=True)
    with pytest.raises(UsageError, match="different protocols"):
        lmgauge.evaluate([tiny.model(protocol="gptq"), tiny.model(protocol="llama.cpp")], texts=LINES)


def test_a_model_that_is_no_network_cannot_follow(tiny: Tiny) -> None:
    counted = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b"]), order=2)
    with pytest.raises(UsageError, match="protocol gptq: laplace2 cannot follow it"):
        lmgauge.evaluate([tiny.model(protocol="gptq"), counted], texts=LINES)


def test_audits_of_such_models_speak_of_the_protocol(tiny: Tiny) -> None:
    text = lmgauge.Corpus.from_strings(["the cat sat on the mat ."])
    with pytest.raises(UsageError, match="protocol gptq leaves tokens out"):
        lmgauge.audit(tiny.model(protocol="gptq", context=4), text)


def test_an_audit_finds_that_the_harness_looks_at_where_the_text_ends() -> None:
    tiny = Tiny(bos=False)
    for context, verdict in ((20, "FAIL"), (POSITIONS, "PASS")):
        audit = lmgauge.audit(
            tiny.model(protocol="harness", context=context), lmgauge.Corpus.from_strings([TEXT]), levels=("causality",)
        )
        (check,) = [check for check in audit.checks if check.name == "later text"]
        assert check.verdict == verdict
