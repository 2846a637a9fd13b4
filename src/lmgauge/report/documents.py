"""Which document shows a result: one table from kinds of results to the builders of this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from lmgauge.report.blocks import Document

_Builder = Callable[[Any], Document]


def _by(module: str, function: str = "blocks", *, alone: bool = False) -> _Builder:
    def build(result: Any) -> Document:
        builder = getattr(import_module(f"lmgauge.report.{module}"), function)
        return tuple(builder([result] if alone else result))

    return build


_BUILDERS: Mapping[str, _Builder] = {
    "Evaluation": _by("evaluations", alone=True),
    "Evaluations": _by("evaluations"),
    "SplitEvaluation": _by("overlap", "split_blocks"),
    "Comparison": _by("comparison", "blocks_of_one"),
    "Comparisons": _by("comparison"),
    "RecipeComparison": _by("recipes", alone=True),
    "RecipeComparisons": _by("recipes"),
    "ContextCurve": _by("context_curve"),
    "Diagnosis": _by("diagnosis"),
    "Ladder": _by("ladder"),
    "Divergence": _by("divergence"),
    "CandidateDivergences": _by("candidates"),
    "SavedBase": _by("stored_base"),
    "Audit": _by("audit"),
    "Overlap": _by("overlap"),
    "Membership": _by("membership"),
    "Choices": _by("choices"),
    "Systems": _by("tasks"),
    "BleuScore": _by("tasks", "score_blocks"),
    "ChrfScore": _by("tasks", "score_blocks"),
    "TerScore": _by("tasks", "score_blocks"),
    "ErrorRates": _by("tasks", "score_blocks"),
    "F1Score": _by("tasks", "score_blocks"),
    "LabelScores": _by("tasks", "label_blocks"),
    "Alignment": _by("alignments", "blocks_of_one"),
    "AlignedSegment": _by("alignments", alone=True),
    "ErrorCounts": _by("alignments", "error_blocks_of_one"),
    "Rescored": _by("rescore"),
    "Correlation": _by("correlation"),
    "CalcResult": _by("calc"),
    "Info": _by("info"),
    "Checkup": _by("doctor"),
    "Selection": _by("selection"),
    "SplitText": _by("split"),
    "ScoredText": _by("scored_text"),
    "ScoredTexts": _by("scored_text", "blocks_of_several"),
    "WordSurprisals": _by("words"),
    "MixtureModel": _by("mixture"),
    "SpelledModel": _by("spelling", "model_blocks"),
    "MixtureFit": _by("mixture", "fit_blocks"),
    "PrunedModel": _by("pruning"),
    "StaticMixture": _by("mixture", "static_blocks"),
    "Percentiles": _by("percentiles"),
    "NeuralTraining": _by("training"),
    "FinishedShard": _by("shards"),
    "FilteredDocuments": _by("filtering"),
}
"""The builder of each kind of result, by the name of its class, so that no result is loaded to show another."""

KINDS = tuple(_BUILDERS)
"""Names of the classes of results that can be shown."""


def document_of(result: object) -> Document:
    """Return what is shown of a result, in the terminal, in a notebook and on a page."""
    for kind in type(result).__mro__:
        if kind.__name__ in _BUILDERS and kind.__module__.startswith("lmgauge."):
            return _BUILDERS[kind.__name__](result)
    if isinstance(result, Sequence) and not isinstance(result, str | bytes):
        return tuple(block for item in result for block in document_of(item))
    raise TypeError(f"{type(result).__name__} is not a result that can be shown")
