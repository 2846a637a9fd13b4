"""lmgauge measures how well a language model predicts a text, exactly.

    import lmgauge

    model = lmgauge.train("modified-kneser-ney", "train.txt", order=5)
    print(lmgauge.evaluate(model, "test.txt"))

The names below are imported on first use, so that `import lmgauge` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lmgauge.version import __version__

if TYPE_CHECKING:
    from lmgauge import information
    from lmgauge.api.audit import audit, audit_run
    from lmgauge.api.models import evaluate, evaluate_scores, sample
    from lmgauge.api.overlap import overlap
    from lmgauge.api.task_scores import (
        align_files,
        bleu,
        cer,
        chrf,
        correlate_tables,
        score_files,
        score_label_files,
        score_labels,
        score_segments,
        score_systems,
        ter,
        wer,
    )
    from lmgauge.api.train import train, train_neural
    from lmgauge.api.verdicts import compare, compare_recipes, diagnose, divergence, mix
    from lmgauge.errors import CheckFailedError, InputError, LmgaugeError, MissingExtraError, ModelFileError, UsageError
    from lmgauge.evaluation.audit import Audit
    from lmgauge.evaluation.comparison.results import Comparison, Comparisons
    from lmgauge.evaluation.diagnosis.results import Diagnosis
    from lmgauge.evaluation.divergence.divergence import Divergence
    from lmgauge.evaluation.results import Evaluation, Evaluations
    from lmgauge.models.custom import CustomModel
    from lmgauge.models.mixture.model import MixtureModel
    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.models.network.torch.model import NeuralModel
    from lmgauge.models.ngram.arpa import read_arpa, write_arpa
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.models.registry import load_model
    from lmgauge.scores import ScoreBatch, read_scores
    from lmgauge.tasks.accumulator import Accumulator
    from lmgauge.tasks.alignment import align
    from lmgauge.tasks.bleu import BLEU
    from lmgauge.tasks.chrf import ChrF
    from lmgauge.tasks.comparison import Systems
    from lmgauge.tasks.correlation import Correlation, correlate
    from lmgauge.tasks.error_rates import CER, WER
    from lmgauge.tasks.labels import label_scores
    from lmgauge.tasks.ter import TER
    from lmgauge.text.documents import Corpus
    from lmgauge.text.overlap.results import Overlap
    from lmgauge.text.vocabulary import Vocabulary

_HOMES = {
    "Accumulator": "lmgauge.tasks.accumulator",
    "Audit": "lmgauge.evaluation.audit",
    "BLEU": "lmgauge.tasks.bleu",
    "CER": "lmgauge.tasks.error_rates",
    "CheckFailedError": "lmgauge.errors",
    "ChrF": "lmgauge.tasks.chrf",
    "Comparison": "lmgauge.evaluation.comparison.results",
    "Comparisons": "lmgauge.evaluation.comparison.results",
    "Corpus": "lmgauge.text.documents",
    "Correlation": "lmgauge.tasks.correlation",
    "CustomModel": "lmgauge.models.custom",
    "Diagnosis": "lmgauge.evaluation.diagnosis.results",
    "Divergence": "lmgauge.evaluation.divergence.divergence",
    "Evaluation": "lmgauge.evaluation.results",
    "Evaluations": "lmgauge.evaluation.results",
    "InputError": "lmgauge.errors",
    "LanguageModel": "lmgauge.models.protocol",
    "LmgaugeError": "lmgauge.errors",
    "MissingExtraError": "lmgauge.errors",
    "MixtureModel": "lmgauge.models.mixture.model",
    "ModelFileError": "lmgauge.errors",
    "NeuralModel": "lmgauge.models.network.torch.model",
    "NgramModel": "lmgauge.models.ngram.model",
    "Overlap": "lmgauge.text.overlap.results",
    "ScoreBatch": "lmgauge.scores",
    "ScoringOptions": "lmgauge.models.network.options",
    "Systems": "lmgauge.tasks.comparison",
    "TER": "lmgauge.tasks.ter",
    "UsageError": "lmgauge.errors",
    "Vocabulary": "lmgauge.text.vocabulary",
    "WER": "lmgauge.tasks.error_rates",
    "align": "lmgauge.tasks.alignment",
    "align_files": "lmgauge.api.task_scores",
    "audit": "lmgauge.api.audit",
    "audit_run": "lmgauge.api.audit",
    "bleu": "lmgauge.api.task_scores",
    "cer": "lmgauge.api.task_scores",
    "chrf": "lmgauge.api.task_scores",
    "compare": "lmgauge.api.verdicts",
    "compare_recipes": "lmgauge.api.verdicts",
    "correlate": "lmgauge.tasks.correlation",
    "correlate_tables": "lmgauge.api.task_scores",
    "diagnose": "lmgauge.api.verdicts",
    "divergence": "lmgauge.api.verdicts",
    "evaluate": "lmgauge.api.models",
    "evaluate_scores": "lmgauge.api.models",
    "label_scores": "lmgauge.tasks.labels",
    "load_model": "lmgauge.models.registry",
    "mix": "lmgauge.api.verdicts",
    "overlap": "lmgauge.api.overlap",
    "read_arpa": "lmgauge.models.ngram.arpa",
    "read_scores": "lmgauge.scores",
    "sample": "lmgauge.api.models",
    "score_files": "lmgauge.api.task_scores",
    "score_label_files": "lmgauge.api.task_scores",
    "score_labels": "lmgauge.api.task_scores",
    "score_segments": "lmgauge.api.task_scores",
    "score_systems": "lmgauge.api.task_scores",
    "ter": "lmgauge.api.task_scores",
    "train": "lmgauge.api.train",
    "train_neural": "lmgauge.api.train",
    "wer": "lmgauge.api.task_scores",
    "write_arpa": "lmgauge.models.ngram.arpa",
}

_NAMESPACES = ("information",)
"""Folders with names of their own, such as `lmgauge.information.entropy`."""

__all__ = [
    "BLEU",
    "CER",
    "TER",
    "WER",
    "Accumulator",
    "Audit",
    "CheckFailedError",
    "ChrF",
    "Comparison",
    "Comparisons",
    "Corpus",
    "Correlation",
    "CustomModel",
    "Diagnosis",
    "Divergence",
    "Evaluation",
    "Evaluations",
    "InputError",
    "LanguageModel",
    "LmgaugeError",
    "MissingExtraError",
    "MixtureModel",
    "ModelFileError",
    "NeuralModel",
    "NgramModel",
    "Overlap",
    "ScoreBatch",
    "ScoringOptions",
    "Systems",
    "UsageError",
    "Vocabulary",
    "__version__",
    "align",
    "align_files",
    "audit",
    "audit_run",
    "bleu",
    "cer",
    "chrf",
    "compare",
    "compare_recipes",
    "correlate",
    "correlate_tables",
    "diagnose",
    "divergence",
    "evaluate",
    "evaluate_scores",
    "information",
    "label_scores",
    "load_model",
    "mix",
    "overlap",
    "read_arpa",
    "read_scores",
    "sample",
    "score_files",
    "score_label_files",
    "score_labels",
    "score_segments",
    "score_systems",
    "ter",
    "train",
    "train_neural",
    "wer",
    "write_arpa",
]


def __getattr__(name: str) -> object:
    if name in _NAMESPACES:
        return import_module(f"lmgauge.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'lmgauge' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
