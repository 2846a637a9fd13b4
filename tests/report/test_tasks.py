"""The table of systems: what it shows, what goes where there is no room, and what a pipe gets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.tasks.share import ErrorShare, Share, compared, grouped

from lmgauge.report.tasks import blocks, blocks_of_several
from lmgauge.report.terminal import as_text, show
from lmgauge.tasks.metrics.bleu import BLEU
from lmgauge.tasks.texts import References, Texts

GOOD = np.array([(8, 10), (9, 10), (7, 9)] * 20, dtype=np.int64)
BAD = np.array([(5, 10), (6, 10), (6, 9)] * 20, dtype=np.int64)
NAMES = ("Online-B", "evil\x1b[31m\nname")


def printed(capsys: pytest.CaptureFixture[str], *statistics: np.ndarray, metric: Any = None, **options: Any) -> str:
    options = {"test": "sacrebleu-bootstrap"} | options
    show(blocks(compared(metric or Share(), NAMES[: len(statistics)], statistics, **options)))
    return capsys.readouterr().out


def test_scores_intervals_and_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, GOOD, BAD)
    lines = out.splitlines()
    assert lines[0] == "# share, 60 segments"
    assert lines[1].split("\t") == ["system", "share", "95 % interval", "difference", "p"]
    assert lines[2].split("\t")[:2] == ["Online-B", "82.76"]
    assert lines[3].split("\t")[3:] == ["-24.14", "* 0.0010"]
    assert "# * differs from Online-B at 5 % (paired bootstrap, 1,000 resamples)." in lines
    assert lines[-1] == "# share|nrefs:1|bs:1000|seed:12345"
    assert "\x1b" not in out


def test_equal_systems_get_no_mark_and_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, GOOD, GOOD, test="sacrebleu", resamples=50)
    assert "*" not in out
    assert "none differs from Online-B at 5 % (approximate randomization, 50 trials)." in out
    assert "the same counts as Online-B in every segment" in out


def test_one_system_without_draws_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, GOOD, test=None)
    assert [word for word in ("interval", "difference", " p") if word in out] == []
    assert "82.76" in out


def test_rates_of_errors_are_in_per_cent(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, GOOD, BAD, metric=ErrorShare())
    assert "share %" in out
    assert "17.24" in out
    assert "+24.14" in out


def test_groups_have_a_table_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    groups = grouped(np.arange(60) % 3, ["news", "chat", "x\ty"], [GOOD, BAD])
    out = printed(capsys, GOOD, BAD, groups=groups).splitlines()
    begin = out.index("# share by group")
    assert out[begin + 1].split()[:2] == ["group", "Online-B"]
    assert [line.split("\t")[1:] for line in out[begin + 2 : begin + 5]] == [
        ["80.00", "50.00"],
        ["90.00", "60.00"],
        ["77.78", "66.67"],
    ]


def bleu_systems() -> Any:
    lines = ["the cat sat on the mat today", "a dog barked at the cat again", "it rains again in the north"] * 12
    others = ["the cat sits on a mat today", "a dog barks at the cat again", "rain is in the north"] * 12
    references = References.of_lists(lines)
    metric = BLEU()
    tokens = [metric.prepared(Texts.of_strings(texts)) for texts in (lines, others)]
    prepared = references.with_texts(metric.prepared_references(references.texts))
    return compared(
        metric, ["one", "two"], [metric.statistics(text, prepared) for text in tokens], test="sacrebleu-bootstrap"
    )


@pytest.mark.parametrize(
    ("width", "gone"),
    [
        (110, ()),
        (90, ("precisions",)),
        (70, ("ratio", "precisions")),
        (60, ("ratio", "precisions", "BP")),
        (40, ("ratio", "precisions", "BP", "interval")),
    ],
)
def test_narrow_terminals_lose_the_least_telling(width: int, gone: tuple[str, ...]) -> None:
    shown = as_text(blocks(bleu_systems()), width).split("\n\n")[0]
    table, _, note = shown.partition("not shown at this width: ")
    assert [word for word in ("ratio", "precisions", "BP", "interval") if word not in table] == list(gone)
    assert all(word in note for word in gone)
    assert "BLEU" in table
    assert "difference" in table
    assert max(map(len, table.splitlines())) <= width


def test_the_first_metric_keeps_its_p_value_longest() -> None:
    one = compared(Share(), ["x", "y"], [GOOD, BAD])
    several = [replace(one, metric=name) for name in ("first", "second", "third")]
    note = " ".join(as_text(blocks_of_several(several), 60).partition("not shown at this width: ")[2].split())
    names = note.partition("; see --json")[0].split("; ")
    assert names[:3] == ["first, 95 % interval", "second, 95 % interval", "third, 95 % interval"][: len(names)]
    assert "first, p" not in names
    wide = as_text(blocks_of_several(several), 90).partition("not shown at this width: ")[2]
    assert wide.startswith(("second, 95 % interval; third", "third, 95 % interval; see"))


def test_digits_are_the_caller_s(capsys: pytest.CaptureFixture[str]) -> None:
    show(blocks(compared(Share(), ["x"], [GOOD], test=None), width=4))
    assert "82.7586" in capsys.readouterr().out
