"""What a process holds, as the system says it."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random


@dataclass(frozen=True)
class Held:
    """What a process holds at one moment.

    Attributes:
        memory: resident bytes.
        files: open descriptors.
        threads: that run or wait.
        temporary: files in its folder for temporary files.
    """

    memory: int
    files: int
    threads: int
    temporary: int

    @classmethod
    def by(cls, process: int, temporary: Path) -> Held:
        """Return what a process holds now, by its number; Linux alone says all of it."""
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        values = {name: int(words.split()[0]) for name, _, words in (line.partition(":") for line in status.splitlines())
                  if name in ("VmRSS", "Threads")}  # fmt: skip
        files = sum(1 for path in temporary.rglob("*") if path.is_file())
        return cls(values["VmRSS"] * 1024, len(os.listdir(f"/proc/{process}/fd")), values["Threads"], files)


@dataclass
class Load:
    """What was asked, and what was held after the warm-up and at the end.

    Attributes:
        name: of what was under load.
        asked: how many requests of each kind.
        wrong: answers that were not right, in words; the first ten.
        before: after the warm-up, a fifth of the time.
        halfway: in the middle of the rest.
        after: at the end.
        seconds: that all took.
    """

    name: str
    asked: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    before: Held | None = None
    halfway: Held | None = None
    after: Held | None = None
    seconds: float = 0.0

    def to_dict(self) -> dict[str, object]:
        """Return all of it as plain values."""
        return asdict(self) | {"asked": dict(sorted(self.asked.items())), "requests": sum(self.asked.values())}

    def growth(self) -> int:
        """Return by how many bytes memory grew between the warm-up and the end."""
        assert self.before is not None
        assert self.after is not None
        return self.after.memory - self.before.memory

    def __str__(self) -> str:
        assert self.before is not None
        assert self.halfway is not None
        assert self.after is not None
        lines = [
            f"{self.name}: {sum(self.asked.values()):,} requests in {self.seconds:.0f} s, {len(self.wrong)} wrong answers"
        ]
        lines.append(f"  {', '.join(f'{name} {count:,}' for name, count in sorted(self.asked.items()))}")
        for name, before in asdict(self.before).items():
            values = [before, asdict(self.halfway)[name], asdict(self.after)[name]]
            shown = ", ".join(f"{value / 1e6:.1f} MB" if name == "memory" else str(value) for value in values)
            lines.append(f"  {name} after the warm-up, halfway, at the end: {shown}")
        return "\n".join(lines + [f"  WRONG: {text}" for text in self.wrong])


Act = Callable[[Random], str]
"""Asks once, raises AssertionError where the answer is wrong, and returns which kind of request it was."""


def put_under_load(load: Load, act: Act, *, seconds: float, clients: int, seed: int, held: Callable[[], Held]) -> None:
    """Let clients ask for a time: a fifth of it to warm up, then the rest; note what is held in between and after.

    Args:
        load: what is noted.
        act: asks once.
        seconds: of all parts together.
        clients: how many ask at once.
        seed: of what they ask.
        held: says what the process holds.
    """
    begin = time.monotonic()
    for part, share in (("before", 0.2), ("halfway", 0.4), ("after", 0.4)):
        end = time.monotonic() + share * seconds
        threads = [
            threading.Thread(target=_ask, args=(load, act, end, Random(f"{seed} {part} {i}"))) for i in range(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(min(2.0, 0.1 * seconds))  # connections that were given up are closed
        setattr(load, part, held())
    load.seconds = time.monotonic() - begin


def _ask(load: Load, act: Act, end: float, random: Random) -> None:
    own: Counter[str] = Counter()
    while time.monotonic() < end and len(load.wrong) < 10:
        try:
            own[act(random)] += 1
        except AssertionError as error:
            load.wrong.append(str(error).split("\n")[0][:300])
        except Exception as error:
            load.wrong.append(f"{type(error).__name__}: {error}"[:300])
    for name, count in own.items():
        load.asked[name] += count


def save(loads: list[Load], path: Path) -> None:
    """Write what was measured."""
    path.write_text(json.dumps([load.to_dict() for load in loads], indent=1) + "\n", encoding="utf-8", newline="\n")
