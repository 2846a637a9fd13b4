"""What other programs print: logs of KenLM, SRILM, llama.cpp, the harness, vLLM, OpenAI's servers and minicons."""

from __future__ import annotations

import random
import re
from pathlib import Path

from lmgauge.base.choices import PROGRAMS
from lmgauge.scores.imports.programs import IMPORTERS, open_logs
from lmgauge.scores.imports.token_alignment import rows, rows_on_text
from lmgauge.text.documents import Corpus
from tests.fuzz.mutations import PIECES, changed, changed_lines
from tests.fuzz.table import Attempt
from tests.scores.imports.outputs import LINES
from tests.scores.imports.outputs import OUTPUTS as SAMPLES

LOGS = [program for program in PROGRAMS if IMPORTERS.find(program).parse is not None]
LOG_PIECES = [
    *(
        b"=",
        b"n_ctx=999999999",
        b"-1",
        b"1.5",
        b"[OOV] 0 [ -inf ]",
        b'"logprob":',
        b'"bytes":[300]',
        b"Total: ",
        b'"a"',
        b"[1]",
    ),
    *(b'"prompt_token_ids":[1,2]', b"p( a | b )", b"OOV: 1", b'"token_logprobs": [null]', b"{}", b'""', b"1,the,2.0\n"),
]


def prepare(folder: Path) -> Attempt:
    data = Path(__file__).parents[3] / "docs" / "data"
    samples = [(program, content) for program in LOGS for content in SAMPLES[program]]
    samples += [("kenlm", (data / "log-kenlm.txt").read_bytes()), ("srilm", (data / "log-srilm.txt").read_bytes())]
    text = Corpus.from_strings(LINES)

    def attempt(chance: random.Random) -> str:
        program, content = chance.choice(samples)
        content = _changed(content, chance) if chance.random() < 0.8 else content
        path = folder / "log"
        path.write_bytes(content)
        named = program if chance.random() < 0.7 else None
        logs = open_logs([path], named, chance.choice(["nats", "bits", "log10"]) if program == "minicons" else None)
        output = logs.output
        if output.parse is None:
            return "read"
        if output.places and chance.random() < 0.3:
            batches = [batch for batch, _ in rows_on_text(logs.segments(), text, logs.log, words=output.words)]
        else:
            batches = list(rows(logs.segments(), logs.log))
        for batch in batches:
            assert (batch.logprob <= 0).all(), batch.logprob  # neither is NaN
        return "read"

    return attempt


def _changed(content: bytes, chance: random.Random) -> bytes:
    """Change lines, bytes, or a number or string of the log."""
    draw = chance.random()
    if draw < 0.3:
        return changed_lines(content, chance, 2)
    if draw < 0.6:
        return changed(content, chance, 2, [*PIECES, *LOG_PIECES])
    for _ in range(chance.randint(1, 3)):
        values = list(re.finditer(rb'-?[0-9.]+|"[^"]*"', content))
        if values:
            value = chance.choice(values)
            content = content[: value.start()] + chance.choice([*PIECES, *LOG_PIECES]) + content[value.end() :]
    return content
