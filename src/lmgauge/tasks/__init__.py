"""Scores of tasks that a better language model should help: translation, speech recognition, labels.

    >>> import lmgauge
    >>> score = lmgauge.tasks.bleu(hypotheses=["The cat sat on the mat"], references=["The cat sits on the mat"], order=3)
    >>> score.score  # the cube root of 5/6 x 3/5 x 1/4, in per cent
    50.0
    >>> lmgauge.tasks.wer(hypotheses=["This test"], references=["This is a test"]).score
    0.5

BLEU, chrF and TER are percent, as in sacreBLEU; WER, CER and their like are ratios, as in jiwer: 0.5 is 50 %.

Hypotheses and references are named, as exchanged they would give a plausible wrong number. Several systems are scored on the
same segments, with intervals and a test of each against the first:

    >>> outputs = {"a": ["a dog barks", "it rains"], "b": ["the dog barks", "it rains"]}
    >>> systems = lmgauge.tasks.score_systems(
    ...     lmgauge.tasks.WER(), hypotheses=outputs, references=["the dog barks", "it is raining"]
    ... )
    >>> [(item.system, item.score.errors) for item in systems]
    [('a', 3), ('b', 2)]

The names below are imported on first use. Inside: `metrics/` has a file for each metric, its formula on top; a metric is
statistics per segment and one function of their sum, so corpus scores, groups, intervals and tests of significance are one
mechanism. May import `text`, `numerics` and `_kernels`; never a model, `report` or `cli`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmgauge.api.task_correlation import correlate_tables
    from lmgauge.api.task_labels import score_label_files, score_labels
    from lmgauge.api.task_metrics import bleu, cer, chrf, ter, wer
    from lmgauge.api.task_scores import align_files, score_files, score_segments, score_systems
    from lmgauge.tasks.accumulator import Accumulator
    from lmgauge.tasks.alignment import align
    from lmgauge.tasks.comparison import Systems
    from lmgauge.tasks.correlation import Correlation, correlate
    from lmgauge.tasks.metrics.bleu import BLEU
    from lmgauge.tasks.metrics.chrf import ChrF
    from lmgauge.tasks.metrics.error_rates import CER, WER
    from lmgauge.tasks.metrics.labels import label_scores
    from lmgauge.tasks.metrics.protocol import TaskMetric
    from lmgauge.tasks.metrics.ter import TER
    from lmgauge.tasks.public_sets import find_public_set
    from lmgauge.tasks.settings import ComparisonSettings, CorrelationSettings, Reading

_HOMES = {
    "lmgauge.api.task_correlation": ("correlate_tables",),
    "lmgauge.api.task_labels": ("score_label_files", "score_labels"),
    "lmgauge.api.task_metrics": ("bleu", "cer", "chrf", "ter", "wer"),
    "lmgauge.api.task_scores": ("align_files", "score_files", "score_segments", "score_systems"),
    "lmgauge.tasks.accumulator": ("Accumulator",),
    "lmgauge.tasks.alignment": ("align",),
    "lmgauge.tasks.comparison": ("Systems",),
    "lmgauge.tasks.correlation": ("Correlation", "correlate"),
    "lmgauge.tasks.metrics.bleu": ("BLEU",),
    "lmgauge.tasks.metrics.chrf": ("ChrF",),
    "lmgauge.tasks.metrics.error_rates": ("CER", "WER"),
    "lmgauge.tasks.metrics.labels": ("label_scores",),
    "lmgauge.tasks.metrics.protocol": ("TaskMetric",),
    "lmgauge.tasks.metrics.ter": ("TER",),
    "lmgauge.tasks.public_sets": ("find_public_set",),
    "lmgauge.tasks.settings": ("ComparisonSettings", "CorrelationSettings", "Reading"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BLEU",
    "CER",
    "TER",
    "WER",
    "Accumulator",
    "ChrF",
    "ComparisonSettings",
    "Correlation",
    "CorrelationSettings",
    "Reading",
    "Systems",
    "TaskMetric",
    "align",
    "align_files",
    "bleu",
    "cer",
    "chrf",
    "correlate",
    "correlate_tables",
    "find_public_set",
    "label_scores",
    "score_files",
    "score_label_files",
    "score_labels",
    "score_segments",
    "score_systems",
    "ter",
    "wer",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lmgauge.tasks' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
