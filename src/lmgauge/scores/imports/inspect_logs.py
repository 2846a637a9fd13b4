"""Logs of Inspect (`.eval`, a zip of JSON files, or `.json`), with log-probabilities in the output of samples."""

# `prompt_logprobs` are of the text that a sample gave to the model, without its first token; `logprobs` of what it wrote.

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from lmgauge.errors import InputError
from lmgauge.scores.imports.log import Log, LoggedSegment, shown
from lmgauge.scores.imports.log_file import LARGEST_VALUE, LogFile, of_object, parsed
from lmgauge.scores.imports.replies import OWN_OUTPUT, ReplyError, read_echo

_ZIP = b"PK\x03\x04"
_HEADER = "header.json"


def recognizes(head: bytes) -> bool:
    """Return True if a file begins as a log of Inspect does."""
    return head.startswith(_ZIP) or re.match(rb'\s*\{\s*"version"\s*:\s*\d+,\s*"status"\s*:', head) is not None


def parse(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield what the samples of a log scored."""
    log.states("nats", "Inspect")
    scored = 0
    for where, sample in _samples(file, log):
        output = of_object(sample, "output", dict, where)
        for choice in output.get("choices") or []:
            segment = _segment(choice, str(sample.get("id", "")), where, log)
            scored += segment is not None
            if segment is not None:
                yield segment
            else:
                log.remark("{:,} outputs have no log-probabilities, and are left out")
    if not scored:
        raise InputError(
            f"{file.path}: no sample has log-probabilities: evaluate with --logprobs, or with prompt_logprobs (vLLM)"
        )


def _segment(choice: Any, sample: str, where: str, log: Log) -> LoggedSegment | None:
    if not isinstance(choice, dict):
        raise InputError(f"{where}: a choice of the output is not an object")
    prompt, own = choice.get("prompt_logprobs"), choice.get("logprobs")
    try:
        tokens = read_echo({"choices": [{"logprobs": prompt or own}]})
    except ReplyError as error:
        raise InputError(f"{where}: the output {error}") from error
    if tokens is None or not tokens.pieces:
        return None
    if prompt:
        log.remark("{:,} prompts are without their first token: Inspect leaves out what has no score")
    else:
        log.remark(OWN_OUTPUT)
    return LoggedSegment(where, tokens.pieces, tokens.logprob, document=sample, headless=bool(prompt))


def _samples(file: LogFile, log: Log) -> Iterator[tuple[str, Any]]:
    if not file.head.startswith(_ZIP):
        for where, content in file.values():
            _take_model(content, log)
            for number, sample in enumerate(of_object(content, "samples", list, where), 1):
                yield f"{where}, sample {number}", sample
        return
    try:
        with zipfile.ZipFile(file.path) as archive:
            names = archive.namelist()
            if _HEADER in names:
                _take_model(parsed(_member(archive, _HEADER, file), f"{file.path}, {_HEADER}"), log)
            for name in names:
                if name.startswith("samples/") and name.endswith(".json"):
                    where = f"{file.path}, {shown(name)}"
                    yield where, parsed(_member(archive, name, file), where)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{file.path}: cannot be read as a log of Inspect: {shown(error)}; write it as JSON (`inspect log convert`)"
        ) from error


def _member(archive: zipfile.ZipFile, name: str, file: LogFile) -> bytes:
    with archive.open(name) as member:
        content = member.read(LARGEST_VALUE + 1)
    if len(content) > LARGEST_VALUE:
        raise InputError(f"{file.path}, {shown(name)}: is larger than {LARGEST_VALUE:,} bytes")
    return content


def _take_model(content: Any, log: Log) -> None:
    spec = content.get("eval") if isinstance(content, dict) else None
    if isinstance(spec, dict) and isinstance(spec.get("model"), str):
        log.model = spec["model"]
