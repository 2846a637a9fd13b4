"""N-gram models trained and tested on real text, against KenLM, SRILM and the literature; see ngram_rows.py."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.golden.ngram_rows import (
    DISCOUNTS,
    EVENT_TYPES,
    EVENTS,
    MATCHED,
    NGRAM_TYPES,
    ROWS,
    SEGMENTS,
    Row,
)

import lmgauge

# The package keeps probabilities in float32 and discounts in fixed point; the reference is float64.
STORED_REL = 2e-7
DISCOUNT_ABS = 1e-8

MODELS: dict[str, list[Row]] = {}
for _row in ROWS:
    MODELS.setdefault(_row.model, []).append(_row)


@dataclass(frozen=True)
class Result:
    """A model, its evaluation on the test text, and the figures it should have."""

    rows: list[Row]
    model: Any
    evaluation: Any

    @property
    def row(self) -> Row:
        return self.rows[0]


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")  # not splitlines: it also splits at U+0085 and others


def _filtered(source: Path, target: Path, change: Callable[[str], str | None]) -> Path:
    """Write the lines of `source` as `change` has them, leaving out those it answers with None."""
    if not target.exists():
        changed = (change(line) for line in _lines(source))
        target.write_text("".join(f"{line}\n" for line in changed if line is not None), encoding="utf-8", newline="\n")
    return target


@pytest.fixture(scope="module")
def files(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """From the name of a text to its training and its test file."""
    made = tmp_path_factory.mktemp("texts")
    treebank, wikitext = shared_data / "restricted" / "ptb", shared_data / "open" / "wikitext-2"

    def find(text: str) -> tuple[Path, Path]:
        match text:
            case "ptb" | "ptb-unk-removed":
                train, test = treebank / "ptb.train.txt.gz", treebank / "ptb.test.txt.gz"
            case _:
                train, test = wikitext / "train.txt.gz", wikitext / "test.txt.gz"
        if not (train.exists() and test.exists()):
            pytest.skip(f"no {train.name} and {test.name} in {train.parent.name}")
        if text == "ptb-unk-removed":
            train = _filtered(train, made / "ptb-train.txt", lambda line: line.replace("<unk>", ""))
        elif text == "wikitext-2-nonblank":
            train, test = (
                _filtered(path, made / f"{path.name}.nonblank.txt", lambda line: line if line.strip() else None)
                for path in (train, test)
            )
        else:  # unpacked once, for the many models
            train, test = (_filtered(path, made / f"{text}.{path.stem}", lambda line: line) for path in (train, test))
        return train, test

    return find


@pytest.fixture(scope="module", params=MODELS, ids=lambda name: name.replace(" ", "-"))
def result(request: pytest.FixtureRequest, files: Callable[[str], tuple[Path, Path]]) -> Result:
    rows = MODELS[request.param]
    row = rows[0]
    train, test = files(row.text)
    # The texts spell rare words <unk>: a word like any other, except where a row has it out of vocabulary.
    reserved = "unk" if row.text == "ptb-unk-removed" else "escape"
    model = lmgauge.train(row.kind, str(train), order=row.order, reserved=reserved, **row.options)
    return Result(rows, model, lmgauge.evaluate(model, str(test)))


def test_perplexity_is_that_of_the_source(result: Result) -> None:
    for row in result.rows:
        seen = result.evaluation.perplexity_without_zeros if row.zeros else result.evaluation.perplexity
        assert seen == pytest.approx(row.perplexity, rel=row.rel), row.source


def test_perplexity_is_that_of_the_reference(result: Result) -> None:
    row = result.row
    seen = result.evaluation.perplexity_without_zeros if row.zeros else result.evaluation.perplexity
    assert seen == pytest.approx(row.reference, rel=STORED_REL)


def test_events_are_words_and_line_ends(result: Result) -> None:
    assert result.evaluation.events == EVENTS[result.row.text]
    assert result.evaluation.segments == SEGMENTS[result.row.text]


def test_zeros_are_counted_and_make_the_perplexity_infinite(result: Result) -> None:
    assert result.evaluation.zero_probability_events == result.row.zeros
    assert np.isinf(result.evaluation.perplexity) == (result.row.zeros > 0)


def test_unknown_words_are_counted(result: Result) -> None:
    row = result.row
    assert result.evaluation.oov == row.oov
    if row.without_oov is not None:
        assert result.evaluation.perplexity_without_oov == pytest.approx(row.without_oov, rel=row.rel)


def test_events_by_matched_order(result: Result) -> None:
    row = result.row
    assert tuple(result.evaluation.events_by_matched_order) == MATCHED[row.text, row.drops_singletons, row.order]


def test_ngram_types(result: Result) -> None:
    row = result.row
    types = NGRAM_TYPES[row.text, row.drops_singletons] if row.order > 1 else ()
    assert tuple(result.model.types)[1:] == types[: row.order - 1]


@pytest.mark.parametrize("result", [name for name, rows in MODELS.items() if rows[0].kind != "mle"], indirect=True)
def test_predicted_words(result: Result) -> None:
    """Every word of the text and </s> can be predicted, <unk> in an open vocabulary, <s> never."""
    row = result.row
    unknown = 0 if row.options.get("vocabulary") == "closed" else 1
    log_probabilities = result.model.log_distribution(np.array([], np.uint32))
    assert np.count_nonzero(np.isfinite(log_probabilities)) == EVENT_TYPES[row.text] + unknown
    assert np.exp(log_probabilities).sum() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("result", [name for name in MODELS if name.startswith("ptb modified-kneser-ney")], indirect=True)
def test_discounts(result: Result) -> None:
    row = result.row
    assert len(result.model.discounts) == row.order
    for seen, expected in zip(result.model.discounts, DISCOUNTS[row.order], strict=True):
        assert tuple(seen) == pytest.approx(expected, abs=DISCOUNT_ABS)
