"""Damaged and hostile logs: refused in one line, or read; never a traceback, and never what is not a log-probability."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from tests.scores.imports.outputs import LINES, OUTPUTS

from lmgauge.choices import PROGRAMS, Program
from lmgauge.errors import InputError, UsageError
from lmgauge.scores.imports import programs
from lmgauge.scores.imports.programs import open_logs
from lmgauge.scores.imports.rows import rows, rows_on_text
from lmgauge.text.documents import Corpus

TRIALS = 150
HOSTILE = [
    *(b"nan", b"-inf", b"1e999", b"null", b"true", b"[]", b"{}", b'""', b"\x00", b"\xff", b"\xed\xa0\x80", b"\\ud800"),
    *(
        b"\x1b[31m",
        b"9" * 400,
        b"\t",
        b"\n",
        b"\r\n",
        b"=",
        b"</s>",
        b"<unk>",
        b"[" * 2000,
        b"n_ctx=999999999",
        b"-1",
        b"1.5",
    ),
    *(b"[OOV] 0 [ -inf ]", b'"logprob":', b'"bytes":[300]', b'"prompt_token_ids":[1,2]', b"Total: ", b'"a"', b",", b":"),
]


def mutated(chance: random.Random, content: bytes) -> bytes:
    """A file with some bytes left out, repeated or put in place of others, or one of its values."""
    data = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 4])):
        begin = chance.randrange(len(data) + 1)
        end = min(len(data), begin + chance.choice([1, 2, 5, 20, 200]))
        values = list(re.finditer(rb'-?[0-9.]+|"[^"]*"', bytes(data)))
        match chance.randrange(6):
            case 0:
                data[begin:end] = b""
            case 1:
                data[begin:end] = chance.choice(HOSTILE)
            case 2:
                data[begin:begin] = data[begin:end] * chance.choice([1, 20])
            case 3:
                del data[begin:]
            case 4 if values:
                value = chance.choice(values)
                data[value.start() : value.end()] = chance.choice(HOSTILE)
            case _:
                data[begin:end] = bytes([chance.randrange(256)])
    return bytes(data)


@pytest.mark.parametrize("program", [program for program in PROGRAMS if program != "score-table"])
def test_damaged_files(tmp_path: Path, program: Program) -> None:
    chance, path = random.Random(1), tmp_path / "log"
    output, text = programs.OUTPUTS[program], Corpus.from_strings(LINES)
    read, refusals = 0, list[str]()
    for trial in range(TRIALS):
        path.write_bytes(mutated(chance, chance.choice(OUTPUTS[program])))
        try:
            logs = open_logs([path], program, "nats" if program == "minicons" and trial % 2 else None)
            if output.places and trial % 3 == 0:
                batches = [batch for batch, _ in rows_on_text(logs.segments(), text, logs.log, words=output.words)]
            else:
                batches = list(rows(logs.segments(), logs.log))
        except (InputError, UsageError) as error:
            refusals.append(str(error))
            continue
        read += 1
        assert all((batch.logprob <= 0).all() and not np.isnan(batch.logprob).any() for batch in batches)
    assert 0 < read < TRIALS
    assert all(len(words) < 2000 and "\x1b" not in words for words in refusals)
