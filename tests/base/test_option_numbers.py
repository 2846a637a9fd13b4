"""Whole numbers and paths that are given to functions: what is no such thing is refused in words, whatever it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import lmgauge
from lmgauge.base.option_numbers import check_whole

CORPUS = lmgauge.Corpus.from_strings(["a b c", "a d e f"])
MODEL = lmgauge.train("witten-bell", CORPUS, order=2, threads=1)
NO_NUMBERS = ("2", math.nan, 2.0, 2**64, 0, -1, True, [], np.True_)

NUMBERS: dict[str, Callable[[object], object]] = {
    "threads": lambda value: lmgauge.evaluate(MODEL, CORPUS, threads=value),  # type: ignore[arg-type]
    "order": lambda value: lmgauge.train("laplace", CORPUS, order=value),  # type: ignore[arg-type]
    "min_count": lambda value: lmgauge.train("laplace", CORPUS, min_count=value),  # type: ignore[arg-type]
    "n": lambda value: lmgauge.overlap(CORPUS, CORPUS, n=value),  # type: ignore[arg-type]
    "order of a cache": lambda value: lmgauge.cache(MODEL, order=value),  # type: ignore[arg-type]
    "bleu": lambda value: lmgauge.tasks.bleu(hypotheses=["a"], references=["a"], order=value),  # type: ignore[arg-type]
}
PATHS: dict[str, Callable[[str], object]] = {
    "evaluate": lambda path: lmgauge.evaluate(MODEL, path),
    "model": lambda path: lmgauge.evaluate(path, CORPUS),
    "output": lambda path: lmgauge.evaluate(MODEL, CORPUS, output=path),
    "load_model": lmgauge.load_model,
    "diagnose": lmgauge.diagnose,
    "audit": lambda path: lmgauge.audit(path, CORPUS),
    "audit_run": lmgauge.audit_run,
    "report": lmgauge.report,
    "reports": lambda path: lmgauge.report([path, path]),
    "page": lambda path: lmgauge.evaluate(MODEL, CORPUS).report(path),
    "merge": lmgauge.merge,
    "info": lmgauge.info,
    "read_run": lmgauge.read_run,
    "train": lambda path: lmgauge.train("laplace", CORPUS, output=path),
    "save": MODEL.save,
    "read_arpa": lmgauge.models.read_arpa,
    "write_arpa": lambda path: lmgauge.models.write_arpa(MODEL, path),
    "overlap": lambda path: lmgauge.overlap(CORPUS, CORPUS, write_clean=path),
    "percentiles": lmgauge.results.Percentiles.load,
    "split": lambda path: lmgauge.split(CORPUS, output=path),
}


@pytest.mark.parametrize("option", NUMBERS)
@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_whole_number_is_refused(option: str, value: object) -> None:
    with pytest.raises(lmgauge.base.errors.UsageError, match="must be a whole number"):
        NUMBERS[option](value)


def test_whole_numbers_of_other_libraries_are_taken() -> None:
    check_whole("threads", np.int64(2), 1, 4)
    with pytest.raises(lmgauge.base.errors.UsageError, match="n must be a whole number, 0 or more; got -1"):
        check_whole("n", -1, 0)


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("path", ["x" * 5000, "/".join(["y" * 200] * 30), "a\0b"], ids=["long", "deep", "NUL"])
def test_paths_that_cannot_be_are_refused_in_words(
    name: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lmgauge.LmgaugeError):
        PATHS[name](path)
    assert not list(tmp_path.iterdir())
