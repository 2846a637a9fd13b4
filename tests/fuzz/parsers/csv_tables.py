"""Tables with commas as texts: cells in quotes, with line ends, commas and quotes in them; columns by number or by name."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

from lmgauge.text.reading_options import ReadingOptions
from tests.fuzz.mutations import PIECES, changed, changed_lines, hostile_text
from tests.fuzz.parsers.jsonl import drawn_options
from tests.fuzz.parsers.reading import check_reading
from tests.fuzz.parsers.tsv import HEADER
from tests.fuzz.table import Attempt


def prepare(folder: Path) -> Attempt:
    def attempt(chance: random.Random) -> str:
        return check_reading(folder / "table.csv", _drawn(chance), ReadingOptions(**drawn_options(chance)), chance)

    return attempt


def _drawn(chance: random.Random) -> bytes:
    written = io.StringIO()
    quoting = chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    table = csv.writer(written, quoting=quoting, lineterminator=chance.choice(["\n", "\n", "\r\n"]))
    table.writerows([HEADER] * (chance.random() < 0.9))
    for number in range(chance.randint(0, 8)):
        text = hostile_text(chance, 8).replace("\0", "") + chance.choice(["", "", ', "so"', "\n\nb", '"'])
        table.writerow([text, chance.choice(["news", "law"]), number // 3, f"r{number}", chance.choice(["", "the "])])
    content = written.getvalue().encode()
    content = content if chance.random() < 0.8 else content.rstrip(b"\r\n")
    if chance.random() < 0.2:
        content = changed_lines(content, chance, 1)
    return changed(content, chance, 2, [*PIECES, b'"', b'","', b'"\n']) if chance.random() < 0.15 else content
