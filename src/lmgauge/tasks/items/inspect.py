"""Logs of Inspect: one JSON object (`.json`), or a zip file with a header and a part for each sample (`.eval`)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from lmgauge.base.files import digest
from lmgauge.records.compression import zip_parts
from lmgauge.scores.imports.log import LogFile, parsed
from lmgauge.tasks.items.logs import LoggedItem

_NUMBERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "no": 0.0}
"""What Inspect's `value_to_float` makes of words: correct, incorrect, partially correct, no answer."""


def inspect(file: LogFile) -> Iterator[LoggedItem]:
    """Read a log of Inspect, .json or .eval."""
    if file.head.startswith(b"PK\x03\x04"):
        # The header is written last: a log of what was broken off has what was known at its start.
        header = [parsed(part, name) for name, part in zip_parts(file.path, r"_journal/start\.json|header\.json")][-1]
        samples = ((name, parsed(part, name)) for name, part in zip_parts(file.path, r"samples/.*\.json"))
    elif re.match(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:', file.head):
        header = next(value for _, value in file.values())
        samples = ((f"{file.path}, sample {number}", sample) for number, sample in enumerate(header.get("samples") or (), 1))
    else:
        return
    task, model, status = header["eval"]["task"], header["eval"]["model"], header.get("status", "started")
    note = "" if status == "success" else f"the log says of its evaluation: {status}; samples may be missing"
    metadata = header["eval"].get("metadata") or {}
    ours = "rows_sha256" in metadata  # `lmgauge export` wrote it, of items that have names
    for where, sample in samples:
        content = sample["input"]
        if not isinstance(content, str):  # messages, with ids that each run draws anew
            content = [[message["role"], message["content"]] for message in content]
        scores, fields = dict(_numbers(sample.get("scores") or {})), (sample.get("metadata") or {}) | sample
        about = {"subset": task, "content": digest([content]) if content else "", "lower_is_better": ()}
        if ours:
            about |= {name: fields[name] for name in ("subset", "cluster", "prompt", "content")}
            about["lower_is_better"] = tuple(metadata.get("lower_is_better", ()))
        item = fields["item"] if ours else sample["id"]
        yield LoggedItem(where, item, scores, fields, sample["epoch"], model=model, note=note, **about)


def _numbers(scores: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    # Numbers by the names of their scorers, of several values by SCORER/NAME; NaN is left out.
    for scorer, score in scores.items():
        value = score["value"]
        for name, one in value.items() if isinstance(value, dict) else [("", value)]:
            one = _NUMBERS.get(one, one) if isinstance(one, str) else one
            yield f"{scorer}/{name}".rstrip("/"), None if isinstance(one, float) and math.isnan(one) else one
