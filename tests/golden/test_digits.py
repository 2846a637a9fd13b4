"""The recorded digits of a reference set, on this machine; see digits.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.golden.digit_jobs import JOBS
from tests.golden.digits import POLICY, Difference, agree, differences, measured, missing, read_record, write_record

MOST_SHOWN = 12


@pytest.mark.parametrize("name", JOBS)
def test_no_digit_has_changed(name: str) -> None:
    job = JOBS[name]
    if missing(job):
        pytest.skip(f"needs {job.needs}")
    changes = list(differences(name, read_record()[1].get(name, {}), measured(job), job.tolerance))
    shown = "\n".join(map(str, changes[:MOST_SHOWN]))
    assert not changes, f"{len(changes)} digits changed:\n{shown}\n{POLICY}"


def test_every_recorded_job_is_still_run() -> None:
    assert set(read_record()[1]) == set(JOBS)


def test_the_last_bit_counts() -> None:
    assert agree(0.1 + 0.2, 0.30000000000000004, 0.0)
    assert not agree(0.1 + 0.2, 0.3, 0.0)
    assert agree(0.1 + 0.2, 0.3, 1e-13)
    assert not agree(3, 4, 1.0)
    assert not agree(3, 3.0, 1.0)
    assert agree(float("inf"), float("inf"), 0.0)
    assert not agree(float("inf"), 1.0, 1.0)


def test_a_value_that_is_new_or_gone_differs() -> None:
    assert list(differences("job", {"a": 1, "b": 2}, {"b": 2, "c": 3}, 0.0)) == [
        Difference("job: a", 1, None),
        Difference("job: c", None, 3),
    ]


def test_a_record_keeps_every_bit(tmp_path: Path) -> None:
    values = {"job": {"third": 1 / 3, "count": 3, "text": "0x1p0", "none": float("inf")}}
    write_record("1.2.3", values, tmp_path / "digits.json")
    assert read_record(tmp_path / "digits.json") == ("1.2.3", values)
