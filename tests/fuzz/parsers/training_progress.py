"""Files that a training writes and the explorer follows: damaged, and read while they grow."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from lmgauge.explore.live import Follower
from tests.fuzz.mutations import changed, changed_lines, changed_value, drawn_number
from tests.fuzz.table import Attempt


def prepare(folder: Path) -> Attempt:
    path = folder / "progress.jsonl"

    def attempt(chance: random.Random) -> str:
        content = b"".join(_line(chance, step) for step in range(chance.randint(0, 12)))
        content = changed(content, chance, 2) if chance.random() < 0.2 else content
        content = changed_lines(content, chance, 2) if chance.random() < 0.3 else content
        path.write_bytes(content)
        whole = Follower(path)
        answer = whole.answer()
        json.dumps(answer, allow_nan=False)
        for curve in answer["curves"].values():
            assert curve["x"] == sorted(set(curve["x"])), "steps go back"
            assert len(curve["x"]) == len(curve["y"])
        growing = Follower(path)
        for end in sorted(chance.randint(0, len(content)) for _ in range(3)):
            with path.open("r+b") as file:  # the same file, as a training has it open
                file.truncate(0)
                file.write(content[:end])
            growing.read()
        with path.open("r+b") as file:
            file.write(content)
        assert growing.answer() == answer, "a file that grows is another than the whole one"
        return "read" if answer["curves"] else "refused"  # lines that say nothing are passed over

    return attempt


def _line(chance: random.Random, step: int) -> bytes:
    entry: dict[str, Any] = {
        "step": step if chance.random() < 0.9 else chance.randint(0, 12),
        "time": 1e9 + step,
        "loss": 5.5,
    }
    if chance.random() < 0.3:
        entry["valid_loss"] = 0.25 * step
    if chance.random() < 0.2:
        entry[chance.choice([*entry])] = drawn_number(chance)
    if chance.random() < 0.2:
        entry = changed_value(entry, chance, 1)
    return json.dumps(entry).encode("utf-8", "surrogatepass") + b"\n"
