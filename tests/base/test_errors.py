"""Errors carry words, and nothing that drives a terminal."""

from __future__ import annotations

import pickle

import pytest

from lmgauge.base import errors
from lmgauge.base.files import OutputError


@pytest.mark.parametrize("kind", [errors.InputError, errors.UsageError, errors.ModelFileError, errors.CheckFailedError])
def test_a_message_has_no_control_characters(kind: type[errors.LmgaugeError]) -> None:
    assert str(kind("a library says \x0f\x1b[31m, a file \ud800")) == "a library says \ufffd\ufffd[31m, a file \ufffd"


def test_a_message_keeps_its_lines_and_its_letters() -> None:
    assert str(errors.InputError("für\n\t東京 👩‍👩‍👧")) == "für\n\t東京 👩‍👩‍👧"


def test_a_message_is_not_as_long_as_the_value_it_quotes() -> None:
    message = str(errors.InputError(f"file: the field holds {'a' * 100_000}; write it again"))
    assert len(message) < 3000
    assert message.startswith("file: the field holds aaa")
    assert message.endswith("aaa; write it again")


@pytest.mark.parametrize(
    "error",
    [
        errors.InputError("train.txt:3: not UTF-8"),
        errors.MissingExtraError("icu4py", extra="icu"),
        OutputError("models: the disk is full"),
    ],
)
def test_an_error_is_the_same_in_another_process(error: errors.LmgaugeError) -> None:
    error.add_note("where it was raised")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.__notes__) == (type(error), str(error), ["where it was raised"])
