"""A metric of floats and source texts goes through all that BLEU does: groups, intervals, tests, files, parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.learned import Learned

from lmgauge.base.errors import InputError, UsageError
from lmgauge.tasks import WER, ComparisonSettings, Systems, score_files, score_segments, score_systems
from lmgauge.tasks.metrics.protocol import with_whole_statistics
from lmgauge.tasks.texts import References, Texts

COUNT = 40
SOURCES = [f"quelle {i} {'wort ' * (i % 7)}".strip() for i in range(COUNT)]
REFERENCES = [f"source {i} {'word ' * (i % 7)}".strip() for i in range(COUNT)]
OUTPUTS = {
    "good": REFERENCES,
    "worse": [line.replace("source", "the") for line in REFERENCES],
    "worst": ["nothing of the kind"] * COUNT,
}
GIVEN: dict[str, Any] = {"hypotheses": OUTPUTS, "references": REFERENCES, "sources": SOURCES}


def qualities(system: str) -> list[float]:
    return [Learned.quality(s, h, [r]) for s, h, r in zip(SOURCES, OUTPUTS[system], REFERENCES, strict=True)]


@pytest.fixture(scope="module")
def systems() -> Systems:
    return score_systems(Learned(), **GIVEN, groups=[f"g{i % 3}" for i in range(COUNT)])


def test_scores_are_means_of_the_segments(systems: Systems) -> None:
    for item in systems:
        wanted = math.fsum(qualities(item.system)) / COUNT
        assert item.score.score == pytest.approx(wanted, abs=1e-9)
        for name, score in item.groups.items():
            part = qualities(item.system)[int(name[1]) :: 3]
            assert score.score == pytest.approx(math.fsum(part) / len(part), abs=1e-9)
    assert systems[2].score.score < 0
    assert systems.signature == "nrefs:1|independent:unknown|model:made-up"


def test_intervals_and_tests(systems: Systems) -> None:
    first, worse, worst = systems
    assert all(item.interval.low < item.score.score < item.interval.high for item in systems)
    assert worst.interval.low < 0
    assert first.p_value is None
    assert worse.significant
    assert worst.significant
    assert worse.difference_interval.high < 0
    assert systems.best.system == "good"
    again = score_systems(
        Learned(), **GIVEN, settings=ComparisonSettings(significance="sacrebleu-bootstrap", resamples=200, threads=2)
    )
    assert again[2].p_value == 1 / 201


def test_documents_are_left_out() -> None:
    found = score_systems(Learned(), **GIVEN, documents=[f"talk {i // 5}" for i in range(COUNT)])
    assert (found.unit, found.units, found.trials) == ("documents", 8, None)
    assert all(item.interval.low < item.score.score < item.interval.high for item in found)
    assert found[2].p_value == 1 / 128  # no less: the signs of eight


def test_files_with_sources(tmp_path: Path, systems: Systems) -> None:
    files = {"src": SOURCES, "ref": REFERENCES, "groups": [f"g{i % 3}" for i in range(COUNT)]} | OUTPUTS
    for name, lines in files.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    from lmgauge.tasks import Reading

    paths: dict[str, Any] = {
        "references": tmp_path / "ref.txt",
        "hypotheses": [tmp_path / f"{name}.txt" for name in OUTPUTS],
        "sources": tmp_path / "src.txt",
        "reading": Reading(group=str(tmp_path / "groups.txt")),
    }
    assert score_files(Learned(), **paths) == systems
    (block,) = score_segments(Learned(), **paths)
    assert block.names == tuple(OUTPUTS)
    assert block.scores[1].tolist() == qualities("worse")
    (tmp_path / "src.txt").write_text("too short\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"src.txt ends first, after 1 line"):
        score_files(Learned(), **paths)


@given(st.permutations(range(COUNT)))
def test_floats_add_up_to_the_last_digit_in_any_order(order: list[int]) -> None:
    (item,) = score_systems(Learned(), hypotheses=OUTPUTS["worse"], references=REFERENCES, sources=SOURCES)
    columns = ([column[i] for i in order] for column in (OUTPUTS["worse"], REFERENCES, SOURCES))
    hypotheses, references, sources = columns
    (other,) = score_systems(Learned(), hypotheses=hypotheses, references=references, sources=sources)
    assert other.score.score == item.score.score
    assert item.interval.low < item.score.score


def test_sources_are_given_where_they_are_needed() -> None:
    without = {name: value for name, value in GIVEN.items() if name != "sources"}
    with pytest.raises(UsageError, match="learned needs the source texts"):
        score_systems(Learned(), **without)
    with pytest.raises(UsageError, match="WER does not use source texts"):
        score_systems(WER(), **GIVEN)
    with pytest.raises(InputError, match="39 sources for 40 segments"):
        score_systems(Learned(), **without, sources=SOURCES[1:])
    with pytest.raises(InputError, match="all 2 hypotheses are blank"):
        score_systems(Learned(), hypotheses=["", " "], references=["a", "b"], sources=["x", "y"])


@dataclass(frozen=True)
class Wrong(Learned):
    value: float = math.nan

    def statistics(self, *given: Any, **named: Any) -> Any:
        rows = super().statistics(*given, **named)
        rows[-1, 0] = self.value
        return rows if abs(self.value) != 7 else rows[:, :1]


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e4, 7])
def test_statistics_that_are_not_numbers_are_refused(value: float) -> None:
    with pytest.raises(UsageError, match="statistics of segment 40 are" if value != 7 else r"shape \(40, 1\)"):
        score_systems(Wrong(value=value), **GIVEN)


def test_whole_statistics_stay_as_they_are() -> None:
    assert with_whole_statistics(WER()) == WER()
    exact = with_whole_statistics(Learned())
    texts = Texts.of_strings(["a b"])
    rows = exact.statistics(texts, References.single(texts), None, texts)
    assert (rows.dtype, rows[0, 1]) == (np.int64, 1 << 32)
    assert (exact.columns, exact.name) == (("quality", "segments"), "learned")
