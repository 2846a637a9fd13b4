"""Files at a local path, by the functions that take an address as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmgauge.base import paths as places
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import OutputError, refuse_replacing, writing, writing_directory
from lmgauge.base.remote import stores
from lmgauge.base.remote.addresses import shown_name


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local path must not come near what connects to servers."""
    monkeypatch.setattr(stores, "store_of", None)
    monkeypatch.setattr(places, "store_of", None)


def test_files(tmp_path: Path) -> None:
    path = str(tmp_path / "folder" / "a.json")
    places.make_folder(tmp_path / "folder")
    assert not places.exists(path)
    with writing(path) as file:
        file.write(b'{"a": [1, "inf"]}')
    assert places.read_json(path, dict[str, Any], "a", "b") == {"a": [1, "inf"]}
    assert places.exists(path)
    assert places.file_states([path, path])[0] == places.file_state(Path(path))
    assert places.file_state(path).size == Path(path).stat().st_size
    assert places.expand(str(tmp_path / "*" / "a.*")) == [path]


def test_problems(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    for function in (places.file_state, places.open_reading):
        with pytest.raises(InputError, match="missing': no such file"):
            function(missing)
    with pytest.raises(InputError, match="missing': no such file"):
        places.read_json(missing, int, "a number", "write it again")
    with pytest.raises(InputError, match="no file matches this pattern"):
        places.expand(f"{missing}*")
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(InputError, match=r"a\.json: is not a number as lmgauge writes it: .*; write it again"):
        places.read_json(tmp_path / "a.json", int, "a number", "write it again")
    with pytest.raises(OutputError, match=r"a\.json/b: cannot be written"):
        places.make_folder(tmp_path / "a.json" / "b")


@pytest.mark.parametrize("path", ["s3://bucket/run", Path("s3://bucket/run"), "https://me:pw@host/run?token=1"])
def test_folders_are_written_to_local_paths_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | Path) -> None:
    monkeypatch.chdir(tmp_path)
    shown = shown_name(path) if isinstance(path, str) else "s3://bucket/run"
    with (
        pytest.raises(OutputError, match=f"^{shown}: this is written to local paths only$"),
        writing_directory(path, is_ours=lambda folder: True),
    ):
        pass
    with pytest.raises(OutputError, match="written to local paths only"), writing(Path(path)):
        pass
    assert list(tmp_path.iterdir()) == []


def test_outputs_at_the_address_of_an_input() -> None:
    with pytest.raises(UsageError, match=r"^-o s3://bucket/a would replace what this command reads"):
        refuse_replacing({"-o": "s3://bucket/a"}, ["s3://bucket/a"])
    with pytest.raises(UsageError, match=r"^-o s3://bucket/a and --rows s3://bucket/a would replace each other"):
        refuse_replacing({"-o": "s3://bucket/a", "--rows": "s3://bucket/a"}, ["a"])
    refuse_replacing({"-o": "s3://bucket/b"}, ["s3://bucket/a"])
