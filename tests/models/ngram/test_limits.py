"""What a training may take: every contradiction is refused before anything is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lmgauge.base.errors import NotEnoughMemoryError, UsageError
from lmgauge.models.ngram import limits as module
from lmgauge.models.ngram.limits import MemoryLimits, TrainingResources


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": "2X"}, "'2X' is not a size"),
        ({"memory": 2}, "2 bytes is too little to train in; give 16.8 MB or more, such as 2G"),
        ({"memory": "2G", "output": None}, "need an output, the folder"),
        ({"workers": 2, "output": None}, "need an output, the folder"),
        ({"memory": "2G", "output": "kn.arpa"}, "train into a folder, then `lmgauge convert` it"),
        ({"workers": 2, "output": "kn.binary"}, "train into a folder, then `lmgauge convert` it"),
        ({"resume": True}, "give --memory as in the run that was stopped"),
        ({"workers": 0}, "workers must be a whole number, 1 or more"),
        ({"memory": "2G", "temp": "not/there"}, "temp: not/there is not a folder; name a folder that is there"),
    ],
)
def test_contradictions_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        TrainingResources(**({"output": "kn"} | options))
    assert message in str(refusal.value)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_temp_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="cannot be written to"):
        TrainingResources(output="kn", memory="2G", temp=tmp_path)


def test_limits_are_what_was_asked_for(tmp_path: Path) -> None:
    asked = TrainingResources("models/kn5", "1.5GB", tmp_path, True, 3)
    assert asked.limits(threads=2) == MemoryLimits(1_500_000_000, tmp_path, True, 3, True)
    assert asked.limits().work_folder(Path("models/kn5")) == tmp_path / "kn5.parts"
    threads = TrainingResources("models/kn5", "1.5GB").limits(threads=2)
    assert (threads.workers, threads.processes) == (2, False)


def test_without_a_number_most_of_what_is_free_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not TrainingResources().asked
    monkeypatch.setattr(module, "free_memory", lambda: 10 << 30)
    assert TrainingResources("kn", workers=2).limits().memory == 8 << 30
    monkeypatch.setattr(module, "free_memory", lambda: 10 << 20)
    with pytest.raises(NotEnoughMemoryError, match=r"10.5 MB of memory are free"):
        TrainingResources("kn", workers=2).limits()
    monkeypatch.setattr(module, "free_memory", lambda: None)
    with pytest.raises(UsageError, match="such as --memory 2G"):
        TrainingResources("kn", workers=2).limits()
