"""What is said of several evaluations in one table: which figures may be compared."""

from __future__ import annotations

from pathlib import Path

import pytest

import lmgauge
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.results import Evaluations, comparison_notes
from lmgauge.report.evaluations import footnotes
from lmgauge.text.documents import Corpus

LINES = ["the cat sat on the mat", "the dog sat on the log", "a bird sang in the tree"] * 4


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("results") / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


def evaluated(text: Path, **options: dict[str, object]) -> Evaluations:
    models = [lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2, **given) for given in options.values()]  # type: ignore[arg-type]
    origins = [Origin.of_model(model, name) for model, name in zip(models, options, strict=True)]
    return lmgauge.evaluation.evaluate.evaluate(models, Corpus.from_files([text]), origins=origins, by_group=True)


def test_models_of_the_same_events_may_be_compared(text: Path) -> None:
    results = evaluated(text, a={}, b={"interpolate": False})
    assert comparison_notes(results) == []
    assert not any("compared" in note for plain in results.to_dict() for note in plain["notes"])


def test_words_and_characters_may_not(text: Path) -> None:
    results = evaluated(text, words={}, more={"interpolate": False}, characters={"tokenizer": "character"})
    wanted = (
        "perplexity may not be compared between words, more (84 words) | characters (280 characters): units and "
        "vocabularies differ; compare bits per byte"
    )
    assert comparison_notes(results) == [wanted]
    assert wanted in list(footnotes(results))
    assert [wanted in plain["notes"] for plain in results.to_dict()] == [
        plain["group"] is None for plain in results.to_dict()
    ]
    assert all(wanted not in result.notes for result in results)  # nor in the folder of one run


def test_other_vocabularies_and_bounds_are_told(text: Path) -> None:
    results = evaluated(text, all={}, few={"vocab_size": 4})
    [note] = comparison_notes(results)
    assert note == (
        "perplexity may not be compared between all (84 words) | few (84 words): vocabularies differ; compare bits per "
        "byte, a lower bound for few"
    )
    closed = evaluated(text, open={}, closed={"vocabulary": "closed"})
    assert "unseen words differ" in comparison_notes(closed)[0]


def test_parts_of_a_text_are_not_put_side_by_side(text: Path) -> None:
    results = evaluated(text, a={}, b={"tokenizer": "character"})
    assert comparison_notes([result for result in results if result.group is not None]) == []
    assert comparison_notes([results[0]]) == []
    assert comparison_notes([]) == []
