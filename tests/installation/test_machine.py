"""The machine, as far as a system says; programs and folders are made for the test."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lmgauge.installation import machine


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


needs_sh = pytest.mark.skipif(sys.platform == "win32", reason="needs programs that are scripts of sh")


@needs_sh
def test_compilers_are_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "g++", "echo 'g++ 14.2'; echo more")
    (tmp_path / "c++").symlink_to(tmp_path / "g++")
    program(tmp_path / "clang++", "exit 3")
    program(tmp_path / "mine", "echo mine 1 >&2")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("CXX", str(tmp_path / "mine"))
    named = machine.compilers()
    assert {name: named[name] for name in (str(tmp_path / "mine"), "c++", "clang++")} == {
        str(tmp_path / "mine"): "mine 1",
        "c++": "g++ 14.2",
        "clang++": "does not say its version",
    }


@needs_sh
def test_cards_are_those_of_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.graphics_cards() == []
    program(tmp_path / "nvidia-smi", "echo 'NVIDIA H100, 550.54, 81559 MiB'; echo 'odd line'")
    assert machine.graphics_cards() == ["NVIDIA H100, 81559 MiB, driver 550.54"]
    program(tmp_path / "nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")
    assert machine.graphics_cards() == []


def test_places_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    temporary, cache = machine.places(tmp_path / "not" / "yet")
    assert (temporary.name, temporary.error, cache.error) == (machine.TEMPORARY, "", "")
    assert temporary.free_bytes
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    (tmp_path / "file").write_text("")
    _, cache = machine.places(tmp_path / "file" / "cache")
    assert cache.error


def test_no_temporary_folder_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nowhere() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    place, _ = machine.places(tmp_path)
    assert place.error == "No usable temporary directory found"


def test_the_name_of_the_user_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv("USERPROFILE", "/home/ann")
    assert machine.without_home("/home/ann/.cache") == "~/.cache"
    assert machine.without_home("/home/anna/.cache") == "/home/anna/.cache"
    monkeypatch.setenv("HOME", "/")
    monkeypatch.setenv("USERPROFILE", "/")
    assert machine.without_home("/tmp/x") == "/tmp/x"


def test_a_machine_that_says_nothing(tmp_path: Path) -> None:
    assert machine.vector_instructions(tmp_path) == []
    assert machine.processor(tmp_path)
    assert machine.hardware()["cores"] == len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else True
