"""The names that `import lmgauge` has: few, and those of version 0.2 still lead to what they name."""

from __future__ import annotations

import warnings

import pytest

import lmgauge
from lmgauge.base.public_names import homes_of

MOVED = {
    name: space
    for space in ("results", "settings", "models", "sharding", "errors")
    for name in getattr(lmgauge, space).__all__
}
OF_0_2 = [
    "Audit",
    "CandidateDivergences",
    "CheckFailedError",
    "Checkup",
    "Choices",
    "Comparison",
    "Comparisons",
    "ContextCurve",
    "Corpus",
    "CustomModel",
    "Diagnosis",
    "Divergence",
    "DocumentScores",
    "Evaluation",
    "EvaluationJob",
    "Evaluations",
    "FilterRules",
    "FilterWork",
    "FilteredDocuments",
    "FinishedShard",
    "Info",
    "InputError",
    "Ladder",
    "LanguageModel",
    "LmgaugeError",
    "Membership",
    "MissingExtraError",
    "MixtureModel",
    "ModelFileError",
    "NbestReading",
    "NeuralModel",
    "NgramModel",
    "Outputs",
    "Overlap",
    "OverlapSettings",
    "PairFields",
    "Percentiles",
    "PrunedModel",
    "QuestionFields",
    "ReadingOptions",
    "RecordOptions",
    "Report",
    "RescoreSettings",
    "Rescored",
    "RunRows",
    "SavedBase",
    "ScoreBatch",
    "ScoredText",
    "ScoredTexts",
    "Scorer",
    "ScoringOptions",
    "Selection",
    "SelectionSettings",
    "SpelledModel",
    "SplitText",
    "StaticMixture",
    "UsageError",
    "Vocabulary",
    "WordSurprisals",
    "__version__",
    "audit",
    "audit_run",
    "baseline",
    "cache",
    "calc",
    "compare",
    "compare_recipes",
    "context_curve",
    "diagnose",
    "distributions",
    "divergence",
    "doctor",
    "evaluate",
    "evaluate_scores",
    "explore",
    "filter_documents",
    "import_scores",
    "info",
    "information",
    "learn_percentiles",
    "load_model",
    "membership",
    "merge",
    "mix",
    "multiple_choice",
    "overlap",
    "pairs",
    "perplexity",
    "prune",
    "read_arpa",
    "read_run",
    "read_scores",
    "register_architectures",
    "report",
    "rescore",
    "run_shard",
    "sample",
    "save_base",
    "score_documents",
    "score_text",
    "select_documents",
    "spell",
    "split",
    "tasks",
    "train",
    "train_neural",
    "word_surprisal",
    "write_arpa",
]


def test_a_stranger_can_read_all_of_them() -> None:
    assert len(lmgauge.__all__) <= 63


def test_no_name_has_two_homes() -> None:
    assert set(MOVED) & set(lmgauge.__all__) == set()


@pytest.mark.parametrize("name", OF_0_2)
def test_names_of_0_2_lead_to_what_they_name(name: str) -> None:
    if name in lmgauge.__all__:
        assert getattr(lmgauge, name) is not None
        return
    with pytest.warns(DeprecationWarning, match=rf"lmgauge\.{name} is lmgauge\.{MOVED[name]}\.{name}"):
        moved = getattr(lmgauge, name)
    assert moved is getattr(getattr(lmgauge, MOVED[name]), name)


def test_a_name_that_is_nowhere_is_an_attribute_error_without_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not hasattr(lmgauge, "nothing_at_all")


def test_the_stub_is_the_list() -> None:
    assert set(homes_of(str(lmgauge.settings.__file__))) == set(lmgauge.settings.__all__)
