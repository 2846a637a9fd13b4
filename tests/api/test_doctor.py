"""What the package asks for and what is there, read from metadata written for the test."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from lmgauge.api import doctor
from lmgauge.api.doctor import Extra, Library, compared, core_and_extras

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Writes the metadata of a package into a folder that is all that is installed."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])

    def write(name: str, version: str, *lines: str, files: str = "") -> None:
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (folder / "METADATA").write_text(head + "".join(f"{line}\n" for line in lines))
        (folder / "RECORD").write_text(files)

    return write


@pytest.mark.parametrize(
    ("installed", "asked", "result"),
    [
        ("1.26", ">=1.26", "ok"),
        ("1.26.0", ">=1.26", "ok"),
        ("1.9", ">=1.26", "too old"),
        ("10.0", ">=9.1", "ok"),
        ("2.0.0rc1", ">=2.0", "too old"),
        ("2.0.0.dev3", ">=2", "too old"),
        ("2.0.0.post1", ">=2.0", "ok"),
        ("2.13.0+cpu", ">=2.9", "ok"),
        ("9.0", ">=8.1,<9", "too new"),
        ("8.5.1", "<9,>=8.1", "ok"),
        ("2026.9.0", ">=2024.6", "ok"),
        ("1.4", "==1.4.*", "ok"),
        ("no version", ">=2", "ok"),
        ("1.0", "", "ok"),
    ],
)
def test_versions_are_compared_as_pip_does(installed: str, asked: str, result: str) -> None:
    assert compared(installed, asked) == result


def test_extras_are_followed_to_their_libraries(install: Install) -> None:
    install(
        "lmgauge",
        "0.2.0",
        "Provides-Extra: neural",
        "Provides-Extra: lightning",
        "Provides-Extra: ja",
        "Provides-Extra: all",
        "Requires-Dist: not-there>=1.26",
        'Requires-Dist: torch>=2.9; extra == "neural"',
        'Requires-Dist: kenlm>=0.3; sys_platform == "amiga" and extra == "neural"',
        'Requires-Dist: tomli; python_version < "3.11" and extra == "neural"',
        'Requires-Dist: lmgauge[neural]; extra == "lightning"',
        'Requires-Dist: lightning>=2.4; extra == "lightning"',
        'Requires-Dist: sacrebleu[ja]>=2.6 ; extra == "ja"',
        'Requires-Dist: lmgauge[neural,lightning]; extra == "all"',
    )
    install(
        "sacrebleu",
        "2.6.0",
        "Provides-Extra: ja",
        'Requires-Dist: ipadic<2.0; extra == "ja"',
        files="sacrebleu/__init__.py,,\n",
    )
    install("torch", "2.8.1", files="torch/__init__.py,,\nfunctorch/__init__.py,,\ntorch/nn/__init__.py,,\n")
    core, extras = core_and_extras()
    assert core == (Library("not-there", ">=1.26"),)
    by_name = {extra.name: extra for extra in extras}
    assert list(by_name) == ["neural", "lightning", "ja"]
    assert [(one.name, one.state, one.modules) for one in by_name["neural"].libraries] == [("torch", "too old", ("torch",))]
    assert [one.name for one in by_name["lightning"].libraries] == ["lightning", "torch"]
    assert [(one.name, one.state) for one in by_name["ja"].libraries] == [("sacrebleu", "ok"), ("ipadic", "missing")]
    assert [extra.state for extra in extras] == ["too old", "too old", "missing"]
    assert by_name["neural"].libraries[0].remedy == "pip install --upgrade 'torch>=2.9'"


def test_a_library_without_metadata_is_there_if_it_can_be_found(install: Install, tmp_path: Path) -> None:
    install("lmgauge", "0.2.0", "Requires-Dist: no-metadata>=3")
    (tmp_path / "no_metadata.py").write_text("")
    (library,), _ = core_and_extras()
    assert (library.state, library.installed, library.modules) == ("ok", "unknown", ("no_metadata",))


def test_without_metadata_of_the_package_nothing_is_known(install: Install) -> None:
    assert core_and_extras() == ((), ())
    assert doctor.installed_version() == ""


def test_damaged_metadata_of_another_package_is_a_broken_library(install: Install, tmp_path: Path) -> None:
    install("lmgauge", "0.2.0", "Requires-Dist: hurt")
    (tmp_path / "hurt-1.0.dist-info").mkdir()
    (tmp_path / "hurt-1.0.dist-info" / "METADATA").write_bytes(b"\xff\xfe\x00 no header")
    (library,), _ = core_and_extras()
    assert library.state == "broken"


def test_a_module_that_is_called_otherwise_is_found(install: Install) -> None:
    install("scikit-learn", "1.9", files="sklearn/__init__.py,,\n_private/__init__.py,,\ntests/__init__.py,,\n")
    assert doctor.modules_of(metadata.distribution("scikit-learn")) == ("sklearn",)


def test_the_worst_state_counts() -> None:
    libraries = Library("a", "", state="ok"), Library("b", "", state="missing"), Library("c", "", state="too old")
    assert Extra("x", "", libraries).state == "too old"
    assert Extra("x", "", ()).state == "ok"
