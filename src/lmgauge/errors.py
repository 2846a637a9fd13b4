"""The errors a user can meet.

LmgaugeError
├── InputError         a text, table or number given is not what it should be
├── UsageError         options that contradict each other or are out of range
├── ModelFileError     a model directory or ARPA file cannot be trusted
├── MissingExtraError  an optional library is needed: says which extra brings it
└── CheckFailedError   the work was done and the check it stands for failed (exit code 1)

Every message is one line: what is wrong, where (file, line, byte), what to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class LmgaugeError(Exception):
    """Root of all errors that are the user's to mend; the command line prints the message and exits with `exit_code`."""

    exit_code = 2


class InputError(LmgaugeError, ValueError):
    """Raised when a text, a score table or a number cannot be used as it is."""


class UsageError(LmgaugeError, ValueError):
    """Raised when options contradict each other or are out of range."""


class ModelFileError(LmgaugeError, ValueError):
    """Raised when a model directory or an ARPA file is damaged, truncated or not of the kind asked for."""


class ProbabilityError(ModelFileError):
    """Raised when a model gives an event a probability above one; an audit reports it as a failed check."""


class MissingExtraError(LmgaugeError, ImportError):
    """Raised when a feature needs an optional library that is not installed."""

    def __init__(self, library: str, *, extra: str) -> None:
        super().__init__(f"this needs {library}, which is not installed: pip install 'lmgauge[{extra}]'")


@contextmanager
def needing(library: str, *, extra: str) -> Iterator[None]:
    """Import an optional library in the block.

    Args:
        library: its name on the package index.
        extra: the extra of this package that installs it.

    Raises:
        MissingExtraError: it is not installed.

    Example:
        >>> with needing("no-such-library", extra="icu"):
        ...     import no_such_library
        Traceback (most recent call last):
        lmgauge.errors.MissingExtraError: this needs no-such-library, which is not installed: pip install 'lmgauge[icu]'
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(library, extra=extra) from error


class CheckFailedError(LmgaugeError):
    """Raised when a check ran to its end and failed."""

    exit_code = 1
