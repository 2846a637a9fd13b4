"""The errors a user can meet.

LmgaugeError
├── InputError         a text, table or number given is not what it should be
├── UsageError         options that contradict each other or are out of range
├── ModelFileError     a model directory, ARPA or KenLM file cannot be trusted
├── MissingExtraError  an optional library is needed: says which extra brings it
└── CheckFailedError   the work was done and the check it stands for failed (exit code 1)

Every message is one line: what is wrong, where (file, line, byte), what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lmgauge.base.escaping import visible_on_page
from lmgauge.base.remote.addresses import without_secrets

__all__ = ["CheckFailedError", "InputError", "MissingExtraError", "ModelFileError", "UsageError"]

# A message may quote a file, a library or a server; a program that prints it need not know of terminals.
_CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
_LONGEST = 3000  # characters: room for a path, but not for an input that is repeated


class LmgaugeError(Exception):
    """Root of all errors that are the user's to mend; the command line prints the message and exits with `exit_code`.

    Example:
        >>> import lmgauge
        >>> try:
        ...     lmgauge.load_model("nowhere/")
        ... except lmgauge.LmgaugeError as error:
        ...     print(type(error).__name__, error.exit_code)
        ModelFileError 2
    """

    exit_code = 2

    def __init__(self, *texts: object) -> None:
        super().__init__(*(_harmless(text) if isinstance(text, str) else text for text in texts))

    def __reduce__(self) -> tuple[Any, ...]:
        # Not by its constructor, which may take other arguments than a message.
        return _again, (type(self), self.args), vars(self)


def _again(kind: type[LmgaugeError], texts: tuple[object, ...]) -> LmgaugeError:
    error = kind.__new__(kind, *texts)
    error.args = texts  # which those of the operating system do not set
    return error


def _harmless(text: str) -> str:
    text = without_secrets(text)  # before it is cut: of half an address nobody knows that it is one
    if len(text) > _LONGEST:  # it quotes a value of a file: what is wrong stands first, what to do last
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 4 :]}"
    return re.sub(_CONTROLS, lambda control: visible_on_page(control[0]), text)


class InputError(LmgaugeError, ValueError):
    """Raised when a text, a score table or a number cannot be used as it is.

    Example:
        >>> import lmgauge
        >>> lmgauge.Corpus.from_files("missing.txt")
        Traceback (most recent call last):
        lmgauge.base.errors.InputError: 'missing.txt': no such file
    """


class UsageError(LmgaugeError, ValueError):
    """Raised when options contradict each other or are out of range.

    Example:
        >>> import lmgauge
        >>> lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b"]), order=0)
        Traceback (most recent call last):
        lmgauge.base.errors.UsageError: order must be a whole number from 1 to 64; got 0
    """


class ModelFileError(LmgaugeError, ValueError):
    """Raised when a model directory or an ARPA file is damaged, truncated or not of the kind asked for.

    Example:
        >>> import lmgauge
        >>> lmgauge.load_model("nowhere/")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        lmgauge.base.errors.ModelFileError: nowhere: no such model; ...
    """


class ProbabilityError(ModelFileError):
    """Raised when a model gives an event a probability above one; an audit reports it as a failed check."""


class NotEnoughMemoryError(UsageError):
    """Raised before work begins that needs more memory than is free; what can be done about it is in the message."""


class MissingExtraError(LmgaugeError, ImportError):
    """Raised when a feature needs an optional library that is not installed.

    Args:
        library: its name on the package index.
        extra: the extra of this package that installs it; None if none does.

    Example:
        >>> print(MissingExtraError("pandas", extra="pandas"))
        this needs pandas, which is not installed: pip install 'lmgauge[pandas]'
    """

    def __init__(self, library: str, *, extra: str | None) -> None:
        command = f"pip install {library}" if extra is None else install_command(extra)
        super().__init__(f"this needs {library}, which is not installed: {command}")


def install_command(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    return f"pip install 'lmgauge[{extra}]'"


@contextmanager
def needing(library: str, *, extra: str) -> Iterator[None]:
    """Import an optional library in the block.

    >>> with needing("no-such-library", extra="icu"):
    ...     import no_such_library
    Traceback (most recent call last):
    lmgauge.base.errors.MissingExtraError: this needs no-such-library, which is not installed: pip install 'lmgauge[icu]'
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(library, extra=extra) from error


class CheckFailedError(LmgaugeError):
    """Raised when a check ran to its end and failed.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat on the mat"])
        >>> lmgauge.overlap(text, text, n=3).require(0.1)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        lmgauge.base.errors.CheckFailedError: 100 % of the test's bytes are in the training text, ...
    """

    exit_code = 1
