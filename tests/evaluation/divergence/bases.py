"""Small base files for the tests, and their bytes changed."""

from __future__ import annotations

import hashlib
import random
import re
from pathlib import Path

import numpy as np
from tests.scores.distributions.stored import random_logprob, tile

from lmgauge.base.errors import InputError
from lmgauge.evaluation.divergence.base_file import (
    BaseFile,
    BaseHeader,
    Rows,
    StateRows,
    StatesHeader,
    to_table,
    whole_rows,
    writing_base,
)
from lmgauge.scores.distributions.stored_rows import possible_tokens, stored_rows

VOCABULARY, EVENTS = 40, 12


def header_of(stored: str = "top", /, **changes: object) -> BaseHeader:
    """Return the header of `rows_of`, and with changes."""
    values = {
        "model": "small",
        "model_fingerprint": "f" * 64,
        "tokenizer_fingerprint": "a",
        "vocabulary_fingerprint": "b",
        "vocabulary_size": VOCABULARY,
        "context": "sentence",
        "text_sha256": "c" * 64,
        "asked_events": None,
        "events": EVENTS,
        "total_events": EVENTS,
        "segments": 2,
        "total_segments": 2,
        "stored": stored,
        "top": 4 if stored == "top" else 0,
        "samples": 16 if stored == "top" else 0,
        "seed": 3,
        "ruled_out": (39,),
        "lmgauge": "0",
        "states": StatesHeader(6, "bfloat16", "d" * 64, "") if stored == "states" else None,
    }
    return BaseHeader(**(values | changes))  # type: ignore[arg-type]


def logprobs() -> np.ndarray:
    """Return float64 [events, vocabulary], nats; the last token cannot come."""
    values = random_logprob(np.random.default_rng(0), EVENTS, VOCABULARY - 1)
    return np.concatenate([values, np.full((EVENTS, 1), -np.inf)], axis=1)


def rows_of(stored: str = "top") -> Rows:
    """Return rows of a kind."""
    assert not possible_tokens(tile(logprobs()))[39]
    if stored == "states":
        whole = rows_of("float32")
        values = (np.arange(6 * EVENTS) / 4).reshape(EVENTS, 6).astype(np.float32)  # bfloat16 has all of them
        values[3] = np.nan
        return StateRows(whole.token, whole.kind, whole.logprob, whole.mass, values)
    return stored_rows(tile(logprobs()), 0, 4, 16, 3) if stored == "top" else whole_rows(tile(logprobs()))


def write(path: Path, kind: str = "top", rows: Rows | None = None, **changes: object) -> Path:
    """Write a base file."""
    header = header_of(kind)
    with writing_base(path, header) as writer:
        writer.write(to_table(rows_of(kind) if rows is None else rows, header))
        writer.header = header_of(kind, **changes)
    return path


def read(path: Path) -> list[Rows]:
    """Read all of a base file."""
    with BaseFile(path) as file:
        return list(file.rows())


def sealed(data: bytes) -> bytes:
    """Return bytes with the seal that a base file of them has, if there is a place for one."""
    match = re.search(rb"sha256:[0-9a-f]{64}", data[len(data) // 2 :])
    if match is None:
        return data
    begin = len(data) // 2 + match.start() + 7
    plain = data[:begin] + b"0" * 64 + data[begin + 64 :]
    return plain[:begin] + hashlib.sha256(plain).hexdigest().encode() + plain[begin + 64 :]


def changed(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with a few of them changed, left out, doubled or exchanged; half of the time sealed again."""
    own = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        at = chance.randrange(len(own))
        if chance.random() < 0.5:  # where the footer is
            at = chance.randrange(max(0, len(own) - 2500), len(own))
        match chance.randrange(7):
            case 0 | 1:
                own[at] = chance.randrange(256)
            case 2:
                own[at] ^= 1 << chance.randrange(8)
            case 3:
                del own[at : at + chance.choice((1, 2, 8, 64))]
            case 4:
                own[at:at] = own[at : at + chance.choice((1, 4, 32))]
            case 5:
                own[at : at + 4] = chance.choice((b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f", b"\x80\x80\x80\x80"))
            case _:
                own = own[: chance.randrange(12, len(own) + 1)]
        if len(own) < 16:
            break
    return sealed(bytes(own)) if chance.random() < 0.7 else bytes(own)


def attempt(path: Path, data: bytes) -> str:
    """Read bytes as a base file; return how that ended: "read", or the reason in the one line that a user gets."""
    path.write_bytes(data)
    try:
        read(path)
    except InputError as error:
        return str(error).removeprefix(f"{path}: ")
    return "read"
