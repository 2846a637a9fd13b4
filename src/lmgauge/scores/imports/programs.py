"""The programs whose scores are read, a row each: what recognizes their output, and what reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lmgauge.base.choices import PROGRAMS, LogUnit
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import first_few
from lmgauge.base.plugins import Plugins
from lmgauge.records.formats import format_of
from lmgauge.scores.imports.frames import is_table
from lmgauge.scores.imports.log import Log, LogFile, LoggedSegment, NoLogprobsError, ProgramOutput

IMPORTERS = Plugins(
    "importers",
    """
    lm-evaluation-harness = lmgauge.scores.imports.harness:OUTPUT
    vllm = lmgauge.scores.imports.replies:OF_VLLM
    openai = lmgauge.scores.imports.replies:OF_OPENAI
    llama.cpp = lmgauge.scores.imports.printed:OF_LLAMA_CPP
    srilm = lmgauge.scores.imports.printed:OF_SRILM
    kenlm = lmgauge.scores.imports.printed:OF_KENLM
    minicons = lmgauge.scores.imports.frames:OUTPUT
    score-table = lmgauge.scores.imports.log:SCORE_TABLE
    """,
)
"""A `ProgramOutput` by the name of the program, in the order in which they are tried: what is more special first."""


@dataclass(frozen=True)
class Logs:
    """Files of one program, opened."""

    program: str
    files: tuple[LogFile, ...]
    log: Log  # what is found out while they are read

    @cached_property
    def output(self) -> ProgramOutput:
        """Return what the program writes."""
        output: ProgramOutput = IMPORTERS.find(self.program)
        return output

    def segments(self) -> Iterator[LoggedSegment]:
        """Yield what the program wrote of each segment, file by file."""
        assert self.output.parse is not None, "a score table has rows, not segments"
        for file in self.files:
            yield from self.output.parse(file, self.log)


def open_logs(
    paths: Sequence[Path | LogFile], program: str | None = None, log_unit: LogUnit | None = None, logprob: str | None = None
) -> Logs:
    """Open files that a program wrote."""
    if not paths:
        raise UsageError("name the files that a program wrote")
    if logprob is not None and program not in (None, "minicons"):
        raise UsageError(f"logprob names a column of a table; output of {program} is none: leave one of the two out")
    files = tuple(path if isinstance(path, LogFile) else LogFile(path) for path in paths)
    for file in files:
        _ = file.head  # a file that cannot be read is known before the first is parsed
    log = Log(log_unit, column=logprob or "", model=logprob or "")
    chosen = "minicons" if logprob is not None or files[0].frame is not None else program
    for file in files if chosen is None else ():
        own = _recognized(file)
        chosen = chosen or own
        if own != chosen:
            raise UsageError(f"{files[0].path} is of {chosen}, and {file.path} of {own}: import those of each on their own")
    assert chosen is not None
    logs = Logs(chosen, files, log)
    if logs.output.parse is None:
        log.states("nats", "a score table")
        if len(files) > 1:
            raise UsageError(f"{paths[0]} is a score table, which is of a whole text: import each on its own")
    return logs


def _recognized(file: LogFile) -> str:
    known = _first_that_recognizes(file, IMPORTERS.ours)
    if known is not None:
        return known
    names = file.columns()
    if {"segment", "logprob"} <= {*names}:
        return "score-table"
    if is_table(names):
        return "minicons"
    if (of_plugin := _first_that_recognizes(file, IMPORTERS.names()[len(IMPORTERS.ours) :])) is not None:
        return of_plugin
    if names and format_of(file.path) != "text":
        raise InputError(
            f"{file.path}: is a table with the columns {first_few(names)}; name those with the log-probabilities of tokens: "
            f"lmgauge import {file.path} --logprob COLUMN --logprob COLUMN --log-unit nats -o RUNS; "
            "or one with scores of items: --score COLUMN"
        )
    raise NoLogprobsError(
        f"{file.path}: is not output that lmgauge knows ({', '.join(PROGRAMS)}); name the program with --program, or "
        "write a score table (JSON lines with segment and logprob)"
    )


def _first_that_recognizes(file: LogFile, names: Iterable[str]) -> str | None:
    return next((name for name in names if IMPORTERS.find(name).recognizes(file.head)), None)
