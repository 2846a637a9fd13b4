"""Run folders: there as a whole, or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from lmgauge.files import OutputError
from lmgauge.report.run_folder import RunFolders


@pytest.mark.parametrize("names", [["one"], ["one", "two"]], ids=len)
@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_the_output_as_it_was(tmp_path: Path, names: list[str], there: bool) -> None:
    output = tmp_path / "new" / "o"
    if there:
        output.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputError) as raised, RunFolders(output, names):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(raised.value).startswith(f"{output}")
    assert ".tmp" not in str(raised.value)
    assert sorted(tmp_path.rglob("*")) == before
