"""What small functions of the modules beside the folders give for an example each."""

from __future__ import annotations

from pathlib import Path

from lmgauge.base import errors, files, memory
from lmgauge.base import escaping as readable
from lmgauge.numerics import signature
from lmgauge.scores import context_policy, scoring


def test_errors() -> None:
    assert errors.install_command("audit") == "pip install 'lmgauge[audit]'"


def test_files() -> None:
    assert files.reason_of(FileNotFoundError()) == "no such file"
    assert files.folder_named("org/model") == "org_model"
    assert files.folder_named("..") == "_"
    assert files.folder_named("") == "_"


def test_memory() -> None:
    assert memory.is_larger_than_free(Path("small.model"), 1) is False


def test_protocols() -> None:
    assert context_policy.PROTOCOLS["llama.cpp"].first_scored(512) == 257
    assert context_policy.PROTOCOLS["gptq"].first_scored(2048) == 1


def test_readable() -> None:
    assert readable.first_few(["a", "b", "c"], 2) == "'a', 'b' and 1 more"


def test_scoring() -> None:
    assert (
        str(scoring.different_events(", near segment 3")).partition(":")[0]
        == "the models cut the text into different events, near segment 3"
    )


def test_signature() -> None:
    assert signature.text_parts("subword", "ccnet") == {"unit": "subword", "norm": "ccnet"}
