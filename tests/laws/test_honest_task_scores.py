"""Law 7 for BLEU, chrF, TER, WER and CER, by simulation on real transcripts: tests err and intervals miss as they say.

Two recognizers' outputs of calls; a coin for each call decides whose is whose, so that no difference is real, or calls are
drawn with replacement, so that the truth is that of all calls. Segments of a call are alike, and what takes them as
independent raises a false alarm in half of the draws. Seeds are fixed: what passes once passes always.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmgauge.numerics.resampling import document_sums
from lmgauge.tasks import BLEU, CER, TER, WER, ChrF
from lmgauge.tasks.alignment import INSERT, align_all
from lmgauge.tasks.comparison import Systems, compare_systems
from lmgauge.tasks.scoring import block_of_strings, block_statistics
from lmgauge.tasks.significance import IndependentRows
from lmgauge.tasks.texts import Texts

Table = np.ndarray
DRAWS = 300
METRICS = [WER(), CER(), BLEU(), ChrF(), TER()]
KNOWN, UNKNOWN, AS_SEGMENTS = "known", "unknown", "segments"
TRANSCRIPTS = Path(__file__).parents[2] / "docs" / "data"


@dataclass(frozen=True)
class Calls:
    """References and outputs of segments, and the call of each, from 0."""

    references: Sequence[str]
    outputs: dict[str, Sequence[str]]
    call: Table

    def statistics(self, metric: Any, *systems: str) -> list[Table]:
        block = block_of_strings(metric, {name: self.outputs[name] for name in systems}, self.references)
        return list(block_statistics(metric, block, 1))

    def drawn(self, draw: np.random.Generator) -> tuple[Table, Table]:
        """The segments of as many calls, drawn with replacement, and the number of the draw that each is of."""
        ends = np.searchsorted(self.call, np.arange(self.call[-1] + 2))
        picked = draw.integers(0, self.call[-1] + 1, self.call[-1] + 1)
        rows = [np.arange(ends[one], ends[one + 1]) for one in picked]
        return np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(row) for row in rows])


@pytest.fixture(scope="module")
def transcripts() -> Calls:
    """The transcripts of the book: 22 calls, 8 segments of each."""
    texts = {}
    for name in ("ref", "google", "amazon"):
        with (TRANSCRIPTS / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
            texts[name] = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    _, call = np.unique([row["call"] for row in texts["ref"]], return_inverse=True)
    lines = {name: [row["text"] for row in rows] for name, rows in texts.items()}
    return Calls(lines.pop("ref"), lines, call)


@cache
def whole_calls(folder: Path, words: int = 25) -> Calls:
    """The whole calls in pieces of so many words of the reference."""
    texts = {}
    for name in ("ref", "google", "amazon", "microsoft"):
        with gzip.open(folder / f"{name}.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
            texts[name] = [row.rstrip("\n").split("\t", 1)[1].lower() for row in file]
    references = Texts.of_strings(texts.pop("ref"))
    outputs: dict[str, Sequence[str]] = {}
    for name, lines in texts.items():
        pieces: list[tuple[str, str, int]] = []
        for call, alignment in enumerate(align_all(references, Texts.of_strings(lines))):
            count = max(1, len(alignment.reference) // words)
            sides: list[tuple[list[str], list[str]]] = [([], []) for _ in range(count)]
            at = np.minimum(np.cumsum(alignment.operations != INSERT) // words, count - 1)
            for piece, (_, word, heard) in zip(at.tolist(), alignment.pairs(), strict=True):
                for side, text in zip(sides[piece], (word, heard), strict=True):
                    side += [] if text is None else [text]
            pieces += [(" ".join(right), " ".join(heard), call) for right, heard in sides]
        outputs[name] = [heard for _, heard, _ in pieces]
    return Calls([right for right, _, _ in pieces], outputs, np.array([call for _, _, call in pieces]))


def result(metric: Any, tables: Sequence[Table], call: Table, way: str) -> Systems:
    rows = IndependentRows(tables, documents_by={KNOWN: "calls", UNKNOWN: "unknown", AS_SEGMENTS: "segments"}[way])
    if way == KNOWN:
        rows = rows.with_documents(document_sums(tables, call))
    return compare_systems(metric, ["first", "second"], rows, 1)


def false_alarms(calls: Calls, metric: Any, way: str, draws: int = DRAWS) -> float:
    """The share of draws in which recognizers differ whose outputs are exchanged by call, at random."""
    first, second = calls.statistics(metric, "google", "amazon")
    draw, alarms = np.random.default_rng(7), 0
    for _ in range(draws):
        exchanged = draw.integers(0, 2, calls.call[-1] + 1).astype(bool)[calls.call, None]
        tables = [np.where(exchanged, second, first), np.where(exchanged, first, second)]
        found = result(metric, tables, calls.call, way)[1]
        assert found.p_value is not None
        assert found.difference_interval is not None
        assert found.significant == (not found.difference_interval.low <= 0 <= found.difference_interval.high)
        alarms += found.p_value < 0.05
    return alarms / draws


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_transcripts_of_the_book(transcripts: Calls, metric: Any) -> None:
    """So short that neighbors hardly tell how alike they are."""
    assert false_alarms(transcripts, metric, KNOWN) <= 0.07
    assert false_alarms(transcripts, metric, UNKNOWN) <= 0.12


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_whole_calls(shared_data: Path, metric: Any) -> None:
    calls = whole_calls(shared_data / "open" / "asr-earnings21")
    assert false_alarms(calls, metric, KNOWN) <= 0.07
    assert false_alarms(calls, metric, UNKNOWN) <= 0.1
    assert false_alarms(calls, metric, AS_SEGMENTS, 40) > 0.3


@pytest.mark.parametrize("metric", [WER(), BLEU()], ids=lambda metric: metric.name)
def test_a_real_difference_is_found_and_intervals_hold_the_truth(shared_data: Path, metric: Any) -> None:
    """As often where documents are not known as where they are."""
    calls = whole_calls(shared_data / "open" / "asr-earnings21", 50)
    tables = calls.statistics(metric, "amazon", "microsoft")
    truth = [float(metric.scores(table.sum(axis=0)[None].astype(float))[0]) for table in tables]
    for way in (KNOWN, UNKNOWN):
        draw, seen, missed = np.random.default_rng(22), 0, np.zeros(3)
        for _ in range(DRAWS):
            rows, call = calls.drawn(draw)
            found = result(metric, [table[rows] for table in tables], call, way)
            seen += bool(found[1].significant)
            ends = [found[0].interval, found[1].interval, found[1].difference_interval]
            for i, (true, interval) in enumerate(zip([*truth, truth[1] - truth[0]], ends, strict=True)):
                assert interval is not None
                missed[i] += not interval.low <= true <= interval.high
        assert seen / DRAWS > 0.95
        assert missed.max() / DRAWS <= 0.1, missed
