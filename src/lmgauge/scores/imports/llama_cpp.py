"""Output of llama.cpp's `llama-perplexity`: the perplexity after each chunk, `[1]381.2549,[2]415.0472,...`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from lmgauge.errors import InputError
from lmgauge.scores.imports.log import Log, LoggedSegment
from lmgauge.scores.imports.log_file import LogFile

_RUNNING = re.compile(r"\[([0-9]{1,9})\]([0-9]{1,30}\.[0-9]{1,9}|inf|-?nan),")
_WINDOW = re.compile(r"n_ctx=([0-9]{1,9})\b")
_FINAL = re.compile(r"Final estimate: PPL = ([0-9]{1,30}\.[0-9]{1,9})")
_HALF_DIGIT = 0.5e-4
_TOKENS = "each is one row, the mean of the {tokens} tokens that llama.cpp scores in a chunk of {window}"


def recognizes(head: bytes) -> bool:
    """Return True if a file has running perplexities of chunks."""
    # recognizes(b"[1]381.2549,[2]415.0472,") -> True
    return re.search(rb"\[1\](?:[0-9]{1,30}\.[0-9]{4}|inf|-?nan),", head) is not None


def parse(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the chunks, each with one row: the mean log-probability of its scored tokens."""
    # Every chunk has the same number of scored tokens, so that this mean follows from the perplexities before and after it,
    # and the perplexity over the rows is the perplexity over the tokens.
    log.states("nats", "llama.cpp")
    seen, total, last, window, final = 0, 0.0, math.nan, 0, ""
    for line, text in file.lines():
        if found := _WINDOW.search(text):
            window = int(found[1])
        if found := _FINAL.search(text):
            final = found[1]
        for match in _RUNNING.finditer(text):
            where = f"{file.path}, line {line}"
            seen, last = seen + 1, float(match[2])
            if int(match[1]) != seen:
                raise InputError(f"{where}: chunk {match[1]} stands where chunk {seen} should; is it one whole output?")
            if not 1 <= last < math.inf:
                raise InputError(f"{where}: the perplexity after chunk {seen} is {match[2]}; the model is damaged")
            after = seen * math.log(last)
            # Of probability one within the rounding of four decimals, of what was and what is.
            if after < total - 2 * seen * _HALF_DIGIT:
                raise InputError(f"{where}: the perplexity falls so far with chunk {seen} that it would be below 1")
            yield LoggedSegment(where, [""], [-max(after - total, 0.0)])
            total = after
    if not seen:
        raise InputError(f"{file.path}: has no perplexities of chunks")
    if final and abs(float(final) - last) > 2 * _HALF_DIGIT:
        raise InputError(f"{file.path}: the final estimate is {final}, and that after its last chunk {last:.4f}")
    scored = window - window // 2 - 1
    of_tokens = _TOKENS.format(tokens=f"{scored:,}", window=f"{window:,}") if scored > 0 else "each is one row, their mean"
    log.remark(
        "{:,} chunks are known by their perplexity only, to four decimals: " + of_tokens + "; events are chunks, and the "
        "first half of each chunk, and the tail of the text behind the last, have no score",
        seen,
    )
