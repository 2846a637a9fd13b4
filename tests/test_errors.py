"""What messages may hold of what files, libraries and servers say."""

from __future__ import annotations

import pickle

import pytest

from lmgauge.errors import InputError, ModelFileError
from lmgauge.files import OutputError


@pytest.mark.parametrize("kind", [InputError, ModelFileError, OutputError])
def test_a_message_cannot_drive_a_terminal(kind: type[Exception]) -> None:
    error = kind("a\x1b[31m\x07\x7f\x9b\u202e.txt: no such file\n\ttry again")
    assert str(error) == "a\ufffd[31m\ufffd\ufffd\ufffd\ufffd.txt: no such file\n\ttry again"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_message_that_repeats_its_input_is_cut_in_the_middle() -> None:
    message = str(InputError("a.json: not a number: " + "9" * 10**6 + "; write one"))
    assert len(message) < 3000
    assert message.startswith("a.json: not")
    assert message.endswith("9; write one")
