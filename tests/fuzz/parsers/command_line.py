"""What holds for every command line, whatever is on it and in the files that it names."""

from __future__ import annotations

import gc
import io
import json
import logging
import random
import re
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from lmgauge.cli.main import main
from lmgauge.explore import server
from tests.fuzz.parsers.reading import standard_input
from tests.fuzz.parsers.score_table import refuse_nan

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_MOST_LINES = 8  # of standard error: notes, and the error
_LONGEST = 6000


def check_command(folder: Path, arguments: Sequence[str], outputs: Sequence[str] = (), stdin: bytes = b"") -> str:
    """Run a command in this process and hold what it does against what all commands promise.

    Args:
        folder: where its files are: nothing else than `outputs` may be new there when it has ended.
        arguments: of the command.
        outputs: names of files and folders in `folder` that it may write.
        stdin: what standard input holds.

    Returns:
        "read" for the exit codes 0 and 1, "refused" for 2.
    """
    temporary, here = folder / "temporary", folder / "here"
    for own in (temporary, here):
        own.mkdir(exist_ok=True)
    before = set(folder.iterdir())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        patch.chdir(here)
        code, shown, said = _run(arguments, stdin)
    assert code in (0, 1, 2), (code, said)
    assert "Traceback" not in said, said
    for stream, text in (("output", shown), ("error", said)):
        control = _CONTROLS.search(text)
        assert control is None, f"{control[0]!r} on standard {stream}: {text[max(0, control.start() - 200) :][:400]!r}"
    _check_words(str(code), said)
    if "--json" in arguments and "--help-all" not in arguments and code != 2 and shown.strip():
        rows = {"--sentence", "--align"} & set(arguments)
        for text in shown.strip().split("\n") if rows else [shown]:
            json.loads(text, parse_constant=refuse_nan)
    stays = [path for path in temporary.iterdir() if not path.name.startswith("torchinductor")]  # torch makes it
    assert not stays, f"temporary files stay: {stays}"
    new = {path.name for path in set(folder.iterdir()) - before} - set(outputs if code != 2 else ())
    new |= {path.name for path in here.iterdir() if not any(path.name in word for word in [*arguments, "report.html"])}
    assert not new, f"files that nobody named (exit code {code}): {new}"
    for path in [*(folder / name for name in outputs), *here.iterdir()]:
        _remove(path)
    return "refused" if code == 2 else "read"


def run_quietly(arguments: Sequence[str]) -> str:
    """Return what a command prints that must end well."""
    code, shown, said = _run(arguments, b"")
    assert code == 0, said
    return shown


def _run(arguments: Sequence[str], stdin: bytes) -> tuple[object, str, str]:
    """Return the exit code of a command, its output, and what it says on standard error."""
    out, errors = _Stream(), _Stream()
    code: object = None
    with pytest.MonkeyPatch.context() as patch, standard_input(stdin), redirect_stdout(out), redirect_stderr(errors):
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setattr(server, "run", _interrupted)  # the explorer serves until then
        patch.setattr(gc, "freeze", lambda: None)  # what a command that ends does
        handlers = list(logging.getLogger("lmgauge").handlers)
        try:
            main(arguments)
        except SystemExit as error:
            code = error.code
        finally:
            logging.getLogger("lmgauge").handlers[:] = handlers
    return code, out.text(), errors.text()


class _Stream(io.TextIOWrapper):
    """A standard stream that keeps what is written."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)

    def text(self) -> str:
        """Return what was written."""
        self.flush()
        written: bytes = self.buffer.getvalue()  # type: ignore[attr-defined]
        return written.decode()


def _check_words(code: str, said: str) -> None:
    lines = said.strip().split("\n")
    if code == "2":
        assert lines[-1].startswith("lmgauge: error: "), said
        assert len(lines[-1]) > 20, said
        assert len(lines) <= _MOST_LINES, said
    assert max(map(len, lines)) <= _LONGEST, f"{max(map(len, lines))} characters on one line: {max(lines, key=len)[:300]}"


def _interrupted(*arguments: object) -> None:
    raise KeyboardInterrupt


def _remove(path: Path) -> None:
    import shutil

    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def some(chance: random.Random, *options: Sequence[str], rate: float = 0.2) -> list[str]:
    """Return some of the options, each with its values."""
    return [word for option in options if chance.random() < rate for word in option]
