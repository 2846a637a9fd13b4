"""Tab-separated tables as texts: columns by number or by name, lines with fewer cells, cells of all kinds."""

from __future__ import annotations

import random
from pathlib import Path

from lmgauge.text.reading_options import ReadingOptions
from tests.fuzz.mutations import PIECES, changed, changed_lines, hostile_text
from tests.fuzz.parsers.jsonl import drawn_options
from tests.fuzz.parsers.reading import check_reading
from tests.fuzz.table import Attempt

HEADER = ["text", "group", "book", "id", "before"]


def prepare(folder: Path) -> Attempt:
    def attempt(chance: random.Random) -> str:
        options = drawn_options(chance)
        if chance.random() < 0.4:
            number = {name: str(at) for at, name in enumerate(HEADER, 1)}
            options |= {
                name: number.get(options[name], options[name]) for name in ("field", "group", "document", "id", "given")
            }
        return check_reading(folder / "table.tsv", _drawn(chance), ReadingOptions(**options), chance)

    return attempt


def _drawn(chance: random.Random) -> bytes:
    rows = [HEADER] if chance.random() < 0.9 else []
    rows += [
        [
            hostile_text(chance, 8),
            chance.choice(["news", "law"]),
            str(number // 3),
            f"r{number}",
            chance.choice(["", "the "]),
        ]
        for number in range(chance.randint(0, 8))
    ]
    cells = [[cell.replace("\t", " ").replace("\0", "").replace("\n", " ") for cell in row] for row in rows]
    content = chance.choice(["\n", "\n", "\r\n"]).join("\t".join(row) for row in cells).encode()
    content += chance.choice([b"", b"\n"])
    if chance.random() < 0.2:
        content = changed_lines(content, chance, 1)
    return changed(content, chance, 2, PIECES) if chance.random() < 0.15 else content
