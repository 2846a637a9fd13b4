"""The programs whose scores are read, a row each: how their output is recognized, and what reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmgauge.choices import PROGRAMS, LogUnit, Program
from lmgauge.errors import InputError, UsageError
from lmgauge.readable import first_few
from lmgauge.records.formats import format_of
from lmgauge.scores.imports import frames, harness, printed, replies
from lmgauge.scores.imports.log import Log, LogFile, LoggedSegment


@dataclass(frozen=True)
class ProgramOutput:
    """What a program writes."""

    recognizes: Callable[[bytes], bool]  # returns True for the first bytes of its output
    # yields the segments of a file; None for a score table, which is rows already
    parse: Callable[[LogFile, Log], Iterator[LoggedSegment]] | None = None
    unit: str = "token"  # of its tokens, as signatures name it
    words: bool = False  # True if tokens are the words of a text, between white space
    places: bool = True  # True if what it writes has a place in the text
    has_text: bool = False  # True if it writes the text of every segment


OUTPUTS: dict[Program, ProgramOutput] = {
    "lm-evaluation-harness": ProgramOutput(harness.recognizes, harness.parse, unit="document", has_text=True),
    "vllm": ProgramOutput(replies.recognizes_vllm, replies.parse_vllm),
    "openai": ProgramOutput(replies.recognizes_openai, replies.parse_openai),
    "llama.cpp": ProgramOutput(printed.recognizes_llama_cpp, printed.parse_llama_cpp, unit="chunk", places=False),
    "srilm": ProgramOutput(printed.recognizes_srilm, printed.parse_srilm, unit="word", words=True),
    "kenlm": ProgramOutput(printed.recognizes_kenlm, printed.parse_kenlm, unit="word", words=True),
    "minicons": ProgramOutput(frames.recognizes, frames.parse),
    "score-table": ProgramOutput(lambda head: False),  # known by its columns
}
"""In the order in which they are tried: what is more special first."""


@dataclass(frozen=True)
class Logs:
    """Files of one program, opened."""

    program: Program
    files: tuple[LogFile, ...]
    log: Log  # what is found out while they are read

    def segments(self) -> Iterator[LoggedSegment]:
        """Yield what the program wrote of each segment, file by file."""
        parse = OUTPUTS[self.program].parse
        assert parse is not None, "a score table has rows, not segments"
        for file in self.files:
            yield from parse(file, self.log)


def open_logs(
    paths: Sequence[Path], program: Program | None = None, log_unit: LogUnit | None = None, logprob: str | None = None
) -> Logs:
    """Open files that a program wrote."""
    if not paths:
        raise UsageError("name the files that a program wrote")
    if logprob is not None and program not in (None, "minicons"):
        raise UsageError(f"logprob names a column of a table; output of {program} is none: leave one of the two out")
    files = tuple(map(LogFile, paths))
    for file in files:
        _ = file.head  # a file that cannot be read is known before the first is parsed
    log = Log(log_unit, column=logprob or "", model=logprob or "")
    chosen = program if logprob is None else "minicons"
    for file in files if chosen is None else ():
        own = _recognized(file)
        chosen = chosen or own
        if own != chosen:
            raise UsageError(f"{paths[0]} is of {chosen}, and {file.path} of {own}: import the files of each on their own")
    assert chosen is not None
    if OUTPUTS[chosen].parse is None:
        log.states("nats", "a score table")
        if len(files) > 1:
            raise UsageError(f"{paths[0]} is a score table, which is of a whole text: import each on its own")
    return Logs(chosen, files, log)


def _recognized(file: LogFile) -> Program:
    known = next((name for name, output in OUTPUTS.items() if output.recognizes(file.head)), None)
    if known is not None:
        return known
    names = file.columns()
    if {"segment", "logprob"} <= {*names}:
        return "score-table"
    if frames.is_table(names):
        return "minicons"
    if names and format_of(file.path) != "text":
        raise InputError(
            f"{file.path}: is a table with the columns {first_few(names)}; name the one with the "
            f"log-probabilities of tokens: lmgauge import {file.path} --logprob COLUMN --log-unit nats -o RUN"
        )
    raise InputError(
        f"{file.path}: is not output that lmgauge knows ({', '.join(PROGRAMS)}); name the program with --program, or "
        "write a score table (JSON lines with segment and logprob)"
    )
