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
    from lmgauge.api.compare import compare, compare_recipes
    from lmgauge.api.diagnose import diagnose
    from lmgauge.api.divergence import divergence
    from lmgauge.api.evaluate import evaluate, evaluate_scores
    from lmgauge.api.info import Info, info
    from lmgauge.api.mix import mix
    from lmgauge.api.outputs import Outputs
    from lmgauge.api.overlap import overlap
    from lmgauge.api.sample import sample
    from lmgauge.api.sentences import perplexity, score_text
    from lmgauge.api.split import SplitText, split
    from lmgauge.api.train import train, train_neural
    from lmgauge.errors import CheckFailedError, InputError, LmgaugeError, MissingExtraError, ModelFileError, UsageError
    from lmgauge.evaluation.audit.results import Audit
    from lmgauge.evaluation.comparison.results import Comparison, Comparisons
    from lmgauge.evaluation.diagnosis.results import Diagnosis
    from lmgauge.evaluation.divergence.divergence import Divergence
    from lmgauge.evaluation.results import Evaluation, Evaluations
    from lmgauge.models.custom import CustomModel
    from lmgauge.models.mixture.model import MixtureModel
    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.models.network.torch.architectures import register_architectures
    from lmgauge.models.network.torch.model import NeuralModel
    from lmgauge.models.ngram.arpa_reader import read_arpa
    from lmgauge.models.ngram.arpa_writer import write_arpa
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.models.registry import load_model
    from lmgauge.models.scored_text import ScoredText, ScoredTexts
    from lmgauge.scores import ScoreBatch, read_scores
    from lmgauge.text.documents import Corpus
    from lmgauge.text.overlap.results import Overlap
    from lmgauge.text.reading_options import ReadingOptions
    from lmgauge.text.vocabulary import Vocabulary

_HOMES = {
    "Audit": "lmgauge.evaluation.audit.results",
    "CheckFailedError": "lmgauge.errors",
    "Comparison": "lmgauge.evaluation.comparison.results",
    "Comparisons": "lmgauge.evaluation.comparison.results",
    "Corpus": "lmgauge.text.documents",
    "CustomModel": "lmgauge.models.custom",
    "Diagnosis": "lmgauge.evaluation.diagnosis.results",
    "Divergence": "lmgauge.evaluation.divergence.divergence",
    "Evaluation": "lmgauge.evaluation.results",
    "Evaluations": "lmgauge.evaluation.results",
    "Info": "lmgauge.api.info",
    "InputError": "lmgauge.errors",
    "LanguageModel": "lmgauge.models.protocol",
    "LmgaugeError": "lmgauge.errors",
    "MissingExtraError": "lmgauge.errors",
    "MixtureModel": "lmgauge.models.mixture.model",
    "ModelFileError": "lmgauge.errors",
    "NeuralModel": "lmgauge.models.network.torch.model",
    "NgramModel": "lmgauge.models.ngram.model",
    "Outputs": "lmgauge.api.outputs",
    "Overlap": "lmgauge.text.overlap.results",
    "ReadingOptions": "lmgauge.text.reading_options",
    "ScoreBatch": "lmgauge.scores",
    "ScoredText": "lmgauge.models.scored_text",
    "ScoredTexts": "lmgauge.models.scored_text",
    "ScoringOptions": "lmgauge.models.network.options",
    "SplitText": "lmgauge.api.split",
    "UsageError": "lmgauge.errors",
    "Vocabulary": "lmgauge.text.vocabulary",
    "audit": "lmgauge.api.audit",
    "audit_run": "lmgauge.api.audit",
    "calc": "lmgauge.api.calc",
    "compare": "lmgauge.api.compare",
    "compare_recipes": "lmgauge.api.compare",
    "diagnose": "lmgauge.api.diagnose",
    "divergence": "lmgauge.api.divergence",
    "evaluate": "lmgauge.api.evaluate",
    "evaluate_scores": "lmgauge.api.evaluate",
    "info": "lmgauge.api.info",
    "load_model": "lmgauge.models.registry",
    "mix": "lmgauge.api.mix",
    "overlap": "lmgauge.api.overlap",
    "perplexity": "lmgauge.api.sentences",
    "read_arpa": "lmgauge.models.ngram.arpa_reader",
    "read_scores": "lmgauge.scores",
    "register_architectures": "lmgauge.models.network.torch.architectures",
    "sample": "lmgauge.api.sample",
    "score_text": "lmgauge.api.sentences",
    "split": "lmgauge.api.split",
    "train": "lmgauge.api.train",
    "train_neural": "lmgauge.api.train",
    "write_arpa": "lmgauge.models.ngram.arpa_writer",
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
    "Info",
    "InputError",
    "LanguageModel",
    "LmgaugeError",
    "MissingExtraError",
    "MixtureModel",
    "ModelFileError",
    "NeuralModel",
    "NgramModel",
    "Outputs",
    "Overlap",
    "ReadingOptions",
    "ScoreBatch",
    "ScoredText",
    "ScoredTexts",
    "ScoringOptions",
    "SplitText",
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
    "info",
    "information",
    "load_model",
    "mix",
    "overlap",
    "perplexity",
    "read_arpa",
    "read_scores",
    "register_architectures",
    "sample",
    "score_text",
    "split",
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
