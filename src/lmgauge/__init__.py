"""lmgauge measures how well a language model predicts a text, exactly.

    import lmgauge

    model = lmgauge.train("modified-kneser-ney", "train.txt", order=5)
    print(lmgauge.evaluate(model, "test.txt"))

The scores of tasks (BLEU, chrF, TER, WER, CER, F1) are in `lmgauge.tasks`.

The names below are imported on first use, so that `import lmgauge` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lmgauge.version import __version__

if TYPE_CHECKING:
    from lmgauge import information, tasks
    from lmgauge.api.audit import audit, audit_run
    from lmgauge.api.calc import calc
    from lmgauge.api.models import evaluate, evaluate_scores, sample
    from lmgauge.api.overlap import overlap
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
    from lmgauge.text.documents import Corpus
    from lmgauge.text.overlap.results import Overlap
    from lmgauge.text.vocabulary import Vocabulary

_HOMES = {
    "Audit": "lmgauge.evaluation.audit",
    "CheckFailedError": "lmgauge.errors",
    "Comparison": "lmgauge.evaluation.comparison.results",
    "Comparisons": "lmgauge.evaluation.comparison.results",
    "Corpus": "lmgauge.text.documents",
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
    "UsageError": "lmgauge.errors",
    "Vocabulary": "lmgauge.text.vocabulary",
    "audit": "lmgauge.api.audit",
    "audit_run": "lmgauge.api.audit",
    "calc": "lmgauge.api.calc",
    "compare": "lmgauge.api.verdicts",
    "compare_recipes": "lmgauge.api.verdicts",
    "diagnose": "lmgauge.api.verdicts",
    "divergence": "lmgauge.api.verdicts",
    "evaluate": "lmgauge.api.models",
    "evaluate_scores": "lmgauge.api.models",
    "load_model": "lmgauge.models.registry",
    "mix": "lmgauge.api.verdicts",
    "overlap": "lmgauge.api.overlap",
    "read_arpa": "lmgauge.models.ngram.arpa",
    "read_scores": "lmgauge.scores",
    "sample": "lmgauge.api.models",
    "train": "lmgauge.api.train",
    "train_neural": "lmgauge.api.train",
    "write_arpa": "lmgauge.models.ngram.arpa",
}

_NAMESPACES = ("information", "tasks")
"""Folders with names of their own, such as `lmgauge.tasks.bleu`."""

__all__ = [
    "Audit",
    "CheckFailedError",
    "Comparison",
    "Comparisons",
    "Corpus",
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
    "UsageError",
    "Vocabulary",
    "__version__",
    "audit",
    "audit_run",
    "calc",
    "compare",
    "compare_recipes",
    "diagnose",
    "divergence",
    "evaluate",
    "evaluate_scores",
    "information",
    "load_model",
    "mix",
    "overlap",
    "read_arpa",
    "read_scores",
    "sample",
    "tasks",
    "train",
    "train_neural",
    "write_arpa",
]


def __getattr__(name: str) -> object:
    if name in _NAMESPACES:
        return import_module(f"lmgauge.{name}")
    if name not in _HOMES:
        homes = (import_module(f"lmgauge.{space}") for space in _NAMESPACES if not name.startswith("_"))
        moved = next((f"; it is {home.__name__}.{name}" for home in homes if name in home.__all__), "")
        raise AttributeError(f"module 'lmgauge' has no attribute {name!r}{moved}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
