"""The torchmetrics metric against the numbers of lmgauge, in one process and in two."""

from __future__ import annotations

import json
import math
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchmetrics import MetricCollection

from lmgauge.base.errors import InputError, UsageError
from lmgauge.evaluation.evaluate import evaluate
from lmgauge.integrations import PerplexityMetric
from lmgauge.models.custom import CustomModel
from lmgauge.numerics.perplexity import score_sequence
from lmgauge.text.documents import Corpus
from tests.integrations.tiny import run_python, run_two

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def batch(seed: int, shape: tuple[int, ...] = (3, 7), vocabulary: int = 11) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 6 * torch.randn(*shape, vocabulary, generator=generator)
    targets = torch.randint(0, vocabulary, shape, generator=generator)
    return logits, targets


def nats_of(logits: torch.Tensor, targets: torch.Tensor) -> np.ndarray[Any, Any]:
    """float64 [n], by the plain formula over all logits at once."""
    of_all = torch.log_softmax(logits.double(), dim=-1)
    return of_all.gather(-1, targets[..., None]).flatten().numpy()


def value(metric: PerplexityMetric, name: str) -> float:
    return float(metric.compute()[name])


@pytest.mark.parametrize("dtype", DTYPES)
def test_figures_are_those_of_a_sequence(dtype: torch.dtype) -> None:
    logits, targets = batch(1)
    logits = logits.to(dtype)
    metric = PerplexityMetric()
    metric.update(logits, targets)
    expected = score_sequence(nats_of(logits, targets), unit="nats")
    found = {name: float(tensor) for name, tensor in metric.compute().items()}
    assert found == {
        "perplexity": pytest.approx(expected.perplexity, rel=1e-12),
        "cross_entropy": pytest.approx(expected.cross_entropy, rel=1e-12),
        "bits_per_token": pytest.approx(expected.bits_per_event, rel=1e-12),
        "events": 21,
        "zero_probability_events": 0,
    }


def test_figures_are_those_of_lmgauge_evaluate() -> None:
    """A model of one's own, evaluated as a text and as batches of its logits."""
    words = ["<unk>", "<s>", "</s>", "a", "b", "c"]
    table = np.random.default_rng(5).normal(size=(6, 6)) * 3

    class TableModel(CustomModel):
        def log_distribution(self, context_ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            logits = table[int(context_ids[-1])].copy()
            logits[1] = -np.inf  # nothing predicts the beginning
            return np.asarray(logits - np.logaddexp.reduce(logits))

    model = TableModel(words[3:])
    lines = ["a b c", "c", "b b a a c"]
    evaluation = evaluate([model], Corpus.from_strings(lines))[0]
    metric = PerplexityMetric(predictions="log-probabilities")
    for line in lines:
        ids = [1, *(words.index(word) for word in line.split()), 2]
        rows = np.stack([model.log_distribution(np.array(ids[: i + 1])) for i in range(len(ids) - 1)])
        counts = {"bytes": len(line), "characters": len(line), "words": len(line.split())}
        metric.update(torch.from_numpy(rows), torch.tensor(ids[1:]), **counts)
    found = {name: float(tensor) for name, tensor in metric.compute().items()}
    for name in ("perplexity", "cross_entropy", "bits_per_token", "bits_per_byte", "bits_per_character", "bits_per_word"):
        assert found[name] == pytest.approx(getattr(evaluation, name), rel=1e-12), name
    assert found["word_perplexity"] == pytest.approx(evaluation.word_perplexity, rel=1e-12)
    assert found["events"] == evaluation.events


@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(1, 20), max_size=4), forward=st.booleans())
def test_no_cut_into_batches_changes_a_digit(seed: int, cuts: list[int], forward: bool) -> None:
    logits, targets = batch(seed, (21,))
    whole, parts = PerplexityMetric(), PerplexityMetric()
    whole.update(logits, targets)
    bounds = [0, *sorted(cuts), 21]
    for begin, end in pairwise(bounds):
        (parts if forward and end > begin else parts.update)(logits[begin:end], targets[begin:end])
    assert parts.compute() == whole.compute()


def test_ignored_targets_are_no_events() -> None:
    logits, targets = batch(2)
    padded = targets.clone()
    padded[1, 3:] = -100
    metric, few = PerplexityMetric(), PerplexityMetric()
    metric.update(logits, padded)
    kept = padded != -100
    few.update(logits[kept], targets[kept])
    assert metric.compute() == few.compute()
    assert value(metric, "events") == 17


def test_ignored_positions_may_hold_anything() -> None:
    logits, targets = batch(2)
    targets[0, 0] = -100
    logits[0, 0] = torch.nan
    metric = PerplexityMetric()
    metric.update(logits, targets)
    assert math.isfinite(value(metric, "perplexity"))


def test_shift_is_that_of_transformers_labels() -> None:
    logits, labels = batch(3)
    metric, aligned = PerplexityMetric(shift=True), PerplexityMetric()
    metric.update(logits, labels)
    aligned.update(logits[:, :-1], labels[:, 1:])
    assert metric.compute() == aligned.compute()


def test_far_logits_stay_finite() -> None:
    """Softmax and then log gives infinity here; see `log_softmax`."""
    metric = PerplexityMetric("cross_entropy")
    metric.update(torch.tensor([[0.0, -120.0, -1.0]]), torch.tensor([1]))
    assert float(metric.compute()) == pytest.approx(120 + math.log(1 + math.exp(-1)), rel=1e-12)


def test_counts_stay_exact_beyond_single_precision() -> None:
    metric = PerplexityMetric()
    logits, targets = batch(4)
    metric.update(logits, targets, bytes=1 << 24)
    metric.update(logits, targets, bytes=1)
    assert int(metric.bytes) == (1 << 24) + 1
    once = PerplexityMetric()
    once.update(logits, targets)
    assert value(metric, "cross_entropy") == value(once, "cross_entropy")


def test_casting_the_metric_loses_nothing() -> None:
    logits, targets = batch(4)
    metric, other = PerplexityMetric(), PerplexityMetric()
    module = torch.nn.ModuleDict({"metric": metric, "layer": torch.nn.Linear(2, 2)}).half().to(torch.bfloat16)
    assert module["layer"].weight.dtype == torch.bfloat16
    metric.half().set_dtype(torch.float16).update(logits, targets)
    other.update(logits, targets)
    assert metric.to(torch.float16).compute() == other.compute()


def test_zero_probability_is_infinite_and_counted() -> None:
    logits, targets = batch(6)
    logits[0, 1, targets[0, 1]] = -torch.inf
    metric = PerplexityMetric()
    metric.update(logits, targets, bytes=30)
    found = {name: float(tensor) for name, tensor in metric.compute().items()}
    assert found["perplexity"] == found["cross_entropy"] == found["bits_per_byte"] == math.inf
    assert found["zero_probability_events"] == 1
    nats = nats_of(logits, targets)
    expected = score_sequence(nats, unit="nats").perplexity_without_zeros
    assert found["perplexity_without_zeros"] == pytest.approx(expected, rel=1e-12)
    metric.reset()
    metric.update(torch.tensor([[-torch.inf, 0.0]]), torch.tensor([0]))
    assert "perplexity_without_zeros" not in metric.compute()


def test_log_probabilities_give_the_same_as_logits() -> None:
    logits, targets = batch(7)
    metric, other = PerplexityMetric(predictions="log-probabilities"), PerplexityMetric()
    metric.update(torch.log_softmax(logits.double(), -1), targets)
    other.update(logits, targets)
    assert value(metric, "cross_entropy") == pytest.approx(value(other, "cross_entropy"), rel=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_log_probabilities_of_any_precision_are_distributions(dtype: torch.dtype) -> None:
    logits, targets = batch(8, (4, 9), 500)
    metric = PerplexityMetric(predictions="log-probabilities")
    metric.update(torch.log_softmax(logits, -1).to(dtype), targets)
    assert value(metric, "events") == 36


def bad_nan(logits: torch.Tensor, targets: torch.Tensor) -> None:
    logits[1, 2, 3] = torch.nan


def bad_infinity(logits: torch.Tensor, targets: torch.Tensor) -> None:
    logits[1, 2, 3] = torch.inf


def bad_nothing_possible(logits: torch.Tensor, targets: torch.Tensor) -> None:
    logits[1, 2] = -torch.inf


def bad_target(logits: torch.Tensor, targets: torch.Tensor) -> None:
    targets[1, 2] = 11


def bad_negative(logits: torch.Tensor, targets: torch.Tensor) -> None:
    targets[1, 2] = -1


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (bad_nan, r"predictions \[1, 2\] have 1 NaN among 11 values"),
        (bad_infinity, r"predictions \[1, 2\] have a logit of \+inf"),
        (bad_nothing_possible, r"predictions \[1, 2\] have no finite logit"),
        (bad_target, r"target \[1, 2\] is 11, outside the vocabulary of 11"),
        (bad_negative, r"target \[1, 2\] is -1, outside the vocabulary of 11: leave it out with ignore_index"),
    ],
)
def test_bad_input_is_refused_and_adds_nothing(spoil: Any, words: str) -> None:
    metric = PerplexityMetric()
    metric.update(*batch(1), bytes=5)
    before = {name: tensor.clone() for name, tensor in metric.metric_state.items()}
    logits, targets = batch(9)
    spoil(logits, targets)
    with pytest.raises(InputError, match=words):
        metric.update(logits, targets, bytes=5)
    assert metric.metric_state == before


def test_logits_are_not_taken_for_log_probabilities() -> None:
    metric = PerplexityMetric(predictions="log-probabilities")
    with pytest.raises(InputError, match=r"predictions \[0, 0\] sum to .*, not to 1"):
        metric.update(*batch(1))
    with pytest.raises(InputError, match="NaN"):
        metric.update(torch.full((1, 2), torch.nan), torch.tensor([0]))


def test_mask_values_are_refused() -> None:
    metric = PerplexityMetric()
    with pytest.raises(InputError, match="a mask value such as -1e9 must be -inf"):
        metric.update(torch.tensor([[0.0, -1e38]]), torch.tensor([1]))


@pytest.mark.parametrize(
    ("predictions", "targets", "words"),
    [
        (torch.zeros(2, 3), torch.zeros(3, dtype=torch.int64), r"shapes \(2, 3\) and \(3,\)"),
        (torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, dtype=torch.int64), "predictions are torch.int64"),
        (torch.zeros(2, 3), torch.zeros(2), "targets are torch.float32"),
        (torch.zeros(2, 3, device="meta"), torch.zeros(2, dtype=torch.int64), "predictions are on meta, targets on cpu"),
    ],
)
def test_wrong_tensors_are_told(predictions: torch.Tensor, targets: torch.Tensor, words: str) -> None:
    metric = PerplexityMetric()
    with pytest.raises(InputError, match=words):
        metric.update(predictions, targets)


def test_wrong_choices_are_told() -> None:
    with pytest.raises(UsageError, match="figure 'ppl' is unknown"):
        PerplexityMetric("ppl")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="predictions 'probabilities'"):
        PerplexityMetric(predictions="probabilities")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="bytes is -1"):
        PerplexityMetric().update(*batch(1), bytes=-1)
    with pytest.raises(InputError, match=r"words is 1\.5"):
        PerplexityMetric().update(*batch(1), words=1.5)  # type: ignore[arg-type]


def test_counts_come_with_all_updates_or_with_none() -> None:
    metric = PerplexityMetric()
    metric.update(*batch(1), bytes=torch.tensor([3, 4]))
    assert int(metric.bytes) == 7
    metric.update(*batch(1))
    with pytest.raises(UsageError, match="bytes came with 1 of 2 updates"):
        metric.compute()


def test_a_figure_without_its_counts_is_told() -> None:
    metric = PerplexityMetric("bits_per_byte")
    metric.update(*batch(1))
    with pytest.raises(UsageError, match="bits_per_byte needs counts of the source text"):
        metric.compute()


def test_nothing_is_no_number() -> None:
    metric = PerplexityMetric()
    metric.update(torch.zeros(2, 3), torch.tensor([-100, -100]))
    with pytest.raises(InputError, match="nothing to evaluate"):
        metric.compute()
    metric.update(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64))
    assert math.isnan(metric(torch.zeros(2, 3), torch.tensor([-100, -100]))["perplexity"])
    metric.update(torch.zeros(2, 4), torch.tensor([0, 1]))
    assert value(metric, "perplexity") == pytest.approx(4)


def test_calling_gives_the_batch_and_keeps_the_whole() -> None:
    metric = PerplexityMetric("perplexity")
    parts = [batch(seed) for seed in (1, 2)]
    for logits, targets in parts:
        expected = score_sequence(nats_of(logits, targets), unit="nats").perplexity
        assert float(metric(logits, targets)) == pytest.approx(expected, rel=1e-12)
    both = np.concatenate([nats_of(*part) for part in parts])
    assert float(metric.compute()) == pytest.approx(score_sequence(both, unit="nats").perplexity, rel=1e-12)


def test_in_a_collection() -> None:
    collection = MetricCollection({"bits": PerplexityMetric("bits_per_token"), "all": PerplexityMetric()})
    collection.update(*batch(1))
    found = collection.compute()
    assert float(found["bits"]) == pytest.approx(float(found["bits_per_token"]))


@pytest.mark.skipif(not hasattr(PerplexityMetric, "merge_state"), reason="torchmetrics merges states from 1.6 on")
def test_merged() -> None:
    one, two, whole = PerplexityMetric(), PerplexityMetric(), PerplexityMetric()
    one.update(*batch(1))
    two.update(*batch(2))
    for seed in (1, 2):
        whole.update(*batch(seed))
    one.merge_state(two)
    assert one.compute() == whole.compute()


def test_states_are_saved_and_loaded() -> None:
    metric, other = PerplexityMetric(), PerplexityMetric()
    metric.persistent(True)
    other.persistent(True)
    metric.update(*batch(1), words=3)
    other.load_state_dict(metric.state_dict())
    other.update(*batch(2), words=4)
    metric.update(*batch(2), words=4)
    assert other.compute() == metric.compute()


def test_no_copy_of_the_logits_is_made() -> None:
    """In a process of its own, whose largest memory is asked before and after."""
    program = """
import resource, torch
from lmgauge.integrations import PerplexityMetric
metric = PerplexityMetric(shift=True)
metric.update(torch.zeros(2, 64, 1000, dtype=torch.bfloat16), torch.zeros(2, 64, dtype=torch.int64))
logits = torch.zeros(2, 1024, 32000, dtype=torch.bfloat16)  # 131 MB; 524 MB in float64
logits += 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
metric.update(logits, torch.zeros(2, 1024, dtype=torch.int64))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    if sys.platform == "win32":
        pytest.skip("the resource module is not on Windows")
    with run_python(program) as worker:
        output, errors = worker.communicate(timeout=120)
    assert worker.returncode == 0, errors
    unit = 1024 if sys.platform == "darwin" else 1
    assert float(output) / unit < 100


WORKER = """
import json, sys
import torch
import torch.distributed as distributed
from lmgauge.integrations import PerplexityMetric

folder, rank = sys.argv[1], int(sys.argv[2])
distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
metric = PerplexityMetric()
logits, targets = torch.load(f"{folder}/batches.pt", weights_only=True)
# The first process gets one batch and the other all the rest, the first of them by a call.
mine = range(1) if rank == 0 else range(1, len(targets))
for i in mine:
    if i == 1:
        alone = float(metric(logits[i], targets[i], bytes=10)["events"])
        assert alone == targets[i].numel(), alone
    else:
        metric.update(logits[i], targets[i], bytes=10)
found = {name: float(value) for name, value in metric.compute().items()}
assert int(metric.events) == targets[0].numel() * len(mine)  # its own again once computed
with open(f"{folder}/{rank}.json", "w") as file:
    json.dump(found, file)
distributed.destroy_process_group()
"""


def test_two_processes_give_what_one_gives(tmp_path: Path) -> None:
    logits, targets = batch(11, (5, 4, 9), 50)
    torch.save((logits, targets), tmp_path / "batches.pt")
    run_two(WORKER, tmp_path)
    metric = PerplexityMetric()
    metric.update(logits, targets, bytes=50)
    expected = {name: float(tensor) for name, tensor in metric.compute().items()}
    assert [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)] == [expected, expected]
