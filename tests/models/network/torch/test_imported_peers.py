"""One network scored here, by lm-evaluation-harness and by minicons, whose logs are imported: `compare` finds them equal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import lmgauge
from lmgauge.settings import ScoringOptions

TEXTS = ["the cat sees a dog", "a dog hears it, and then it runs", "“naïve” 東京 café", "then the cat"]
# The peers use what Python and torch have deprecated since.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def own(checkpoint: Callable[..., Path], tmp_path: Path) -> tuple[Path, Path, Path]:
    """A checkpoint, a text of records, and the run of both."""
    text = tmp_path / "text.jsonl"
    text.write_text("".join(json.dumps({"text": line}) + "\n" for line in TEXTS), encoding="utf-8")
    options = ScoringOptions(first_token="bos", end="none")
    lmgauge.evaluate(checkpoint(), text, output=tmp_path / "own", scoring=options)
    return checkpoint(), text, tmp_path / "own"


def assert_equal(one: Path, other: Path) -> None:
    [comparison] = lmgauge.compare([one, other])
    by_metric = {verdict.metric: verdict for verdict in comparison.verdicts}
    assert by_metric["bits_per_byte"].comparable, by_metric["bits_per_byte"].reasons
    bits = next(part for part in comparison.differences if part.metric == "bits_per_byte")
    assert abs(bits.difference) < 1e-6


def test_the_harness(own: tuple[Path, Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("lm_eval")
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, text, run = own
    network = AutoModelForCausalLM.from_pretrained(folder).eval()
    model: Any = HFLM(pretrained=network, tokenizer=AutoTokenizer.from_pretrained(folder), device="cpu", batch_size=2)
    requests = [Instance("loglikelihood_rolling", {}, (line,), number) for number, line in enumerate(TEXTS)]
    scores = model.loglikelihood_rolling(requests, disable_tqdm=True)
    samples = [
        {"doc_id": i, "doc": {"text": line}, "arguments": {"gen_args_0": {"arg_0": line}}, "resps": [[str(score)]]}
        for i, (line, score) in enumerate(zip(TEXTS, scores, strict=True))
    ]
    log = tmp_path / "samples.jsonl"
    log.write_text("".join(json.dumps(sample) + "\n" for sample in samples), encoding="utf-8")
    result = lmgauge.import_scores(log, tmp_path / "theirs", text=text)
    assert result.log_probability == pytest.approx(sum(scores), rel=1e-12)
    assert_equal(run, tmp_path / "theirs")


@pytest.mark.parametrize(("base_two", "unit"), [(False, "nats"), (True, "bits")])
def test_minicons(own: tuple[Path, Path, Path], tmp_path: Path, base_two: bool, unit: Any) -> None:
    scorer = pytest.importorskip("minicons.scorer")
    folder, text, run = own
    model = scorer.IncrementalLMScorer(str(folder), "cpu")
    log = tmp_path / "minicons.json"
    log.write_text(json.dumps(model.token_score(TEXTS, bos_token=True, base_two=base_two)), encoding="utf-8")
    result = lmgauge.import_scores(log, tmp_path / "theirs", log_unit=unit, text=text)
    assert (result.lossy_segments, result.bits_per_byte_is_bound) == (0, False)
    assert_equal(run, tmp_path / "theirs")
    ours, theirs = (lmgauge.read_run(path, text).to_arrow("token").to_pydict() for path in (run, tmp_path / "theirs"))
    assert theirs["start"] == ours["start"]
    assert theirs["end"] == ours["end"]
    assert np.allclose(theirs["logprob"], ours["logprob"], atol=2e-5)
