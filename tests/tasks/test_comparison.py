"""Several systems: the digits of sacreBLEU's own test on real outputs, and what a table may and may not say."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tasks.share import ErrorShare, Share, grouped, statistics
from tests.tasks.share import compared as compare

from lmgauge.base.errors import MissingExtraError, UsageError
from lmgauge.tasks.comparison import Systems
from lmgauge.tasks.metrics.bleu import BLEU
from lmgauge.tasks.metrics.chrf import ChrF
from lmgauge.tasks.metrics.ter import TER

NAMES = ("Online-B", "JDExploreAcademy", "Lan-Bridge")


@pytest.fixture(scope="session")
def outputs(shared_file: Callable[..., Path]) -> tuple[list[list[str]], list[str]]:
    """300 segments of three systems of WMT 22, English to German, and reference A."""

    def lines(archive: tarfile.TarFile, name: str) -> list[str]:
        file = archive.extractfile(name)
        assert file is not None
        return file.read().decode().split("\n")[:300]

    with tarfile.open(shared_file("restricted", "wmt22", "en-de.tar.gz")) as archive:
        return [lines(archive, f"hyp.{name}.de") for name in NAMES], lines(archive, "ref.A.de")


@pytest.mark.parametrize(
    ("metric", "theirs"), [(BLEU(), "BLEU"), (ChrF(), "CHRF"), (ChrF(word_order=2), "CHRF"), (TER(), "TER")], ids=str
)
@pytest.mark.parametrize("test", ["sacrebleu-bootstrap", "sacrebleu"])
def test_scores_intervals_and_p_values_are_sacrebleu_s(
    outputs: tuple[list[list[str]], list[str]], metric: Any, theirs: str, test: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    from sacrebleu.significance import PairedTest

    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    hypotheses, references = outputs
    options = {"word_order": metric.word_order} if isinstance(metric, ChrF) else {}
    judge = getattr(sacrebleu.metrics, theirs)(**options)
    named = list(zip(NAMES, hypotheses, strict=True))
    kind = {"sacrebleu-bootstrap": "bs", "sacrebleu": "ar"}[test]
    trials = 1000
    found = PairedTest(named, {theirs: judge}, [references], test_type=kind, n_samples=trials)
    signatures, columns = found()
    ours = compare(metric, NAMES, [statistics(metric, h, references) for h in hypotheses], test=test, resamples=trials)
    (name,) = signatures
    assert ours.metric == name
    for item, expected in zip(ours, columns[name], strict=True):
        assert item.score.score == pytest.approx(expected.score, abs=1e-9)
        assert item.p_value == expected.p_value
        if test == "sacrebleu-bootstrap":
            assert item.mean == pytest.approx(expected.mean, abs=1e-4)
            assert item.half_width == pytest.approx(expected.ci, abs=1e-4)
    keys = [key for key in ours.signature.split("|") if not key.startswith("lmgauge:")]
    if test == "sacrebleu-bootstrap":
        assert "|".join(keys) == str(signatures[name])
    else:
        assert keys[1:4] == ["bs:1000", "ar:1000", "seed:12345"]


def rows(*pairs: tuple[int, int], times: int = 20) -> np.ndarray:
    return np.array(pairs * times, dtype=np.int64)


GOOD, BAD, EQUAL = rows((8, 10), (9, 10), (7, 9)), rows((5, 10), (6, 10), (6, 9)), rows((9, 10), (7, 9), (8, 10))


def compared(*statistics: np.ndarray, metric: Any = None, **options: Any) -> Systems:
    return compare(
        metric or Share(),
        [f"s{i}" for i in range(len(statistics))],
        statistics,
        **({"test": "sacrebleu-bootstrap"} | options),
    )


@pytest.mark.parametrize("test", ["student", "sacrebleu-bootstrap", "sacrebleu"])
def test_a_real_difference_is_found_and_an_equal_system_is_not(test: str) -> None:
    found = compared(GOOD, BAD, EQUAL, test=test)
    first, bad, equal = found
    assert (first.difference, first.p_value, first.p_value_holm, first.significant) == (None, None, None, None)
    assert bad.significant
    assert bad.difference == pytest.approx(100 * (17 - 24) / 29)
    assert bad.difference_interval.low < bad.difference < bad.difference_interval.high < 0
    assert equal.significant is False
    assert equal.difference == 0
    assert bad.p_value_holm == 2 * bad.p_value
    assert found.best is first
    assert not found.notes


@pytest.mark.parametrize("test", ["student", "sacrebleu-bootstrap", "sacrebleu"])
def test_identical_systems_are_not_told_apart(test: str) -> None:
    """By the rules nothing exceeds a difference of 0, and p would be the least there is: significant."""
    found = compared(GOOD, GOOD.copy(), test=test)
    assert (found[1].p_value, found[1].significant) == (1.0, False)
    assert "s1: the same counts as s0 in every segment" in found.notes[0]


def test_the_bootstrap_s_lenient_rule_is_doubted_where_the_interval_holds_zero() -> None:
    """Differences with mean 0.55 and standard deviation 2, of 40 segments: 1.75 standard errors."""
    noise = np.random.default_rng(4).normal(size=40)
    noise = (noise - noise.mean()) / noise.std()
    base = np.full(40, 500)
    first = np.stack([base, np.full(40, 1000)], axis=1)
    second = np.stack([base + np.round(55 + 200 * noise).astype(np.int64), np.full(40, 1000)], axis=1)
    found = compared(first, second)
    assert found[1].difference_interval.low < 0 < found[1].difference_interval.high
    assert found[1].significant
    assert any("counts one side only" in note for note in found.notes)
    assert not compared(first, second, test="sacrebleu")[1].significant


def test_nothing_is_drawn_where_nothing_was_asked_for() -> None:
    found = compared(GOOD, BAD, test=None)
    assert (found.test, found.resamples, found.trials, found.seed) == (None, None, None, None)
    assert [(item.interval, item.p_value, item.mean) for item in found] == [(None, None, None)] * 2
    assert found[1].difference == pytest.approx(100 * (17 - 24) / 29)
    assert found.signature == "nrefs:1"


def test_signatures_say_what_was_drawn() -> None:
    assert compared(GOOD).signature == "nrefs:1|bs:1000|seed:12345"
    assert compared(GOOD, BAD, resamples=50, seed=3).signature == "nrefs:1|bs:50|seed:3"
    both = compared(GOOD, BAD, test="sacrebleu", resamples=99)
    assert both.signature == "nrefs:1|bs:1000|ar:99|seed:12345"
    assert (both.resamples, both.trials) == (1000, 99)
    assert compared(GOOD, BAD, test="sacrebleu").trials == 10_000
    blocks = compared(GOOD, segments=240, segments_per_row=4)
    assert blocks.signature == "nrefs:1|bs:1000|seed:12345|block:4"
    assert blocks.segments == 240
    assert "4 neighboring segments" in blocks.notes[0]
    assert compared(GOOD, test="student").signature == "nrefs:1|independent:unknown"
    assert compared(GOOD, test="student", segments_per_row=4).signature == "nrefs:1|block:4|independent:unknown"
    assert compared(GOOD[:3], test="student").signature == "nrefs:1|independent:none"


def test_few_segments_are_no_test() -> None:
    one = compared(GOOD[:1], BAD[:1])
    assert (one[0].interval, one[1].p_value, one[1].difference) == (None, None, -30.0)
    assert "one segment" in one.notes[0]
    few = compared(GOOD[:3], BAD[:3])
    assert few[1].p_value is not None
    assert "3 segments are few" in few.notes[0]
    five, six = (compared(GOOD[:rows], BAD[:rows], test="student") for rows in (5, 6))
    assert (five[0].interval, five[1].p_value, five[1].difference_interval) == (None, None, None)
    assert "no interval and no test" in five.notes[0]
    assert six[1].p_value == 1 / 32


def test_systems_that_differ_in_few_segments_are_not_told_apart() -> None:
    """Five of 60, all one way: t is 2.2, and the coins of five signs say 2 / 2^5."""
    other = GOOD.copy()
    other[2:60:13, 0] -= 1
    found = compared(GOOD, other, test="student")
    assert (found[1].p_value, found[1].difference_interval, found[1].significant) == (1 / 16, None, False)
    assert "s1: differs from s0 in 5 segments; fewer than 6 show no difference" in found.notes
    other[8, 0] -= 1
    found = compared(GOOD, other, test="student")
    assert (found[1].p_value, found[1].significant) == (1 / 32, True)
    assert found[1].difference_interval.high < 0


def test_one_system_has_an_interval_and_no_test() -> None:
    for test in ("student", "sacrebleu-bootstrap", "sacrebleu"):
        (only,) = compared(GOOD, test=test)
        assert only.interval.low < only.score.score < only.interval.high
        assert (only.p_value, only.p_value_holm, only.difference) == (None, None, None)


def test_errors_are_better_when_lower() -> None:
    found = compared(GOOD, BAD, metric=ErrorShare())
    assert found.best.system == "s0"
    assert found.percent
    assert "s0 17.24 %" in repr(found)


def test_groups_are_scored_from_their_sums() -> None:
    codes = np.arange(60) % 2
    groups = grouped(codes, ["news", "chat"], [GOOD, BAD])
    found = compared(GOOD, BAD, groups=groups)
    for item, table in zip(found, (GOOD, BAD), strict=True):
        for code, name in enumerate(("news", "chat")):
            sums = table[codes == code].sum(axis=0)
            assert item.groups[name].score == 100 * sums[0] / sums[1]
        assert sum(score.hits for score in item.groups.values()) == item.score.hits  # type: ignore[attr-defined]


def test_dicts_rows_and_frames() -> None:
    found = compared(GOOD, BAD, groups=grouped(np.zeros(60, dtype=np.int64), ["all"], [GOOD, BAD]))
    told = found.to_dict()
    assert told["best"] == "s0"
    assert [system["system"] for system in told["systems"]] == ["s0", "s1"]
    assert told["systems"][1]["score"] == found[1].score.score
    assert told["systems"][1]["groups"]["all"]["hits"] == 340
    assert [(row["system"], row["group"]) for row in found.to_rows()] == [
        (s, g) for s in ("s0", "s1") for g in (None, "all")
    ]
    pandas = pytest.importorskip("pandas")
    frame = found.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["hits"].tolist() == [480, 480, 340, 340]


def test_lists_of_parts_become_columns(outputs: tuple[list[list[str]], list[str]]) -> None:
    hypotheses, references = outputs
    found = compare(ChrF(), ["x"], [statistics(ChrF(), hypotheses[0], references)], test=None)
    row = found.to_rows()[0]
    assert row["matches_6"] == found[0].score.to_dict()["matches"][5]
    assert not any(isinstance(value, (list, dict)) for value in row.values())


def test_pandas_may_be_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"lmgauge\[pandas\]"):
        compared(GOOD).to_pandas()


def test_a_row_for_each_system_then_what_they_rest_on() -> None:
    found = compare(Share(), ["a", "b"], [GOOD, BAD])
    lines = str(found).splitlines()
    assert re.fullmatch(r"a +\d+\.\d\d +\S+ – \S+ +– +–", lines[3])
    assert re.fullmatch(r"b +\d+\.\d\d +\S+ – \S+ +-\S+ +\* \S.*", lines[4])
    assert found.independence in " ".join(lines)
    assert lines[-1].endswith(found.signature)
    assert found.to_rows()[0]["interval_unit"] == found.unit


@pytest.mark.parametrize(
    ("names", "options", "words"),
    [
        (["a", "a"], {}, "two systems are called 'a'"),
        (["a"], {}, "1 names for 2 systems"),
        (["a", "b"], {"test": "t-test"}, "choose one of student, sacrebleu"),
        (["a", "b"], {"test": "sacrebleu-bootstrap", "resamples": 39}, "at least 40"),
        (["a", "b"], {"test": "sacrebleu", "seed": -1}, "seed"),
        (["a", "b"], {"resamples": 99}, "only sacreBLEU's tests draw resamples"),
        (["a", "b"], {"test": None, "resamples": 99}, "only sacreBLEU's tests draw resamples"),
    ],
)
def test_contradictions_are_refused(names: list[str], options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        compare(Share(), names, [GOOD, BAD], **options)
