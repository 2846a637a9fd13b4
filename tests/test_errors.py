"""Errors carry words, and nothing that drives a terminal."""

from __future__ import annotations

import pytest

from lmgauge import errors


@pytest.mark.parametrize("kind", [errors.InputError, errors.UsageError, errors.ModelFileError, errors.CheckFailedError])
def test_a_message_has_no_control_characters(kind: type[errors.LmgaugeError]) -> None:
    assert str(kind("a library says \x0f\x1b[31m, a file \ud800")) == "a library says \ufffd\ufffd[31m, a file \ufffd"


def test_a_message_keeps_its_lines_and_its_letters() -> None:
    assert str(errors.InputError("für\n\t東京 👩‍👩‍👧")) == "für\n\t東京 👩‍👩‍👧"


def test_a_message_that_repeats_its_input_is_cut_in_the_middle() -> None:
    message = str(errors.InputError("a.json: not a number: " + "9" * 10**6 + "; write one"))
    assert len(message) < 3000
    assert message.startswith("a.json: not")
    assert message.endswith("9; write one")
