"""The same text in other shapes: lines of another length, less text to train on, fewer different words.

Rates depend on all three, so one text says little. Words stay in order. Made once, stored in the cache folder.
"""

from __future__ import annotations

import hashlib
import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import harness

RARE = b"rareword"


@dataclass(frozen=True)
class Shape:
    """How a text is cut: 0 leaves the lines, the length or the vocabulary as they are."""

    line_words: int = 0
    train_words: int = 0  # millions
    vocabulary: int = 0  # thousands: the most frequent words of the training text; others become one

    def __str__(self) -> str:
        parts = [f"{self.line_words or 'given'} words a line", f"{self.train_words or 'all'} M words"]
        return ", ".join([*parts, *([f"{self.vocabulary} k types"] if self.vocabulary else [])])

    def texts(self, train: Path, test: Path) -> tuple[Path, Path]:
        """Paths of both texts in this shape."""
        if self == Shape():
            return train, test
        sources = [f"{path.resolve()} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in (train, test)]
        key = hashlib.sha256(" ".join(sources).encode()).hexdigest()[:12]
        name = f"cut-{key}-{self.line_words}-{self.train_words}-{self.vocabulary}"
        paths = [harness.cache_folder() / f"{name}.{part}.txt" for part in ("train", "test")]
        if not all(path.exists() for path in paths):
            harness.note(f"cutting {name}")
            shape = map(str, (self.line_words, self.train_words, self.vocabulary))
            # In a child: see the top of harness.py.
            harness.run_child([sys.executable, __file__, *shape, *map(str, (train, test, *paths))])
        return paths[0], paths[1]


def _lines(path: str, most: float) -> Iterator[list[bytes]]:
    """The words of each line, until there have been `most` words or a few more."""
    seen = 0
    with open(path, "rb") as lines:
        for line in lines:
            yield (words := line.split())
            seen += len(words)
            if seen >= most:
                return


def _cut(lines: Iterator[list[bytes]], length: int) -> Iterator[list[bytes]]:
    """The same words in lines of `length`, or in the lines they came in."""
    if not length:
        yield from lines
        return
    words = itertools.chain.from_iterable(lines)
    while line := list(itertools.islice(words, length)):
        yield line


def _write(shape: Shape, train: str, test: str, train_to: str, test_to: str) -> None:
    most = shape.train_words * 1e6 or float("inf")
    counts = Counter[bytes]()
    if shape.vocabulary:
        for words in _lines(train, most):
            counts.update(words)
    frequent = {word for word, _ in counts.most_common(1000 * shape.vocabulary)}
    for source, limit, target in ((train, most, train_to), (test, float("inf"), test_to)):
        part = Path(target + ".part")
        with part.open("wb") as out:
            for line in _cut(_lines(source, limit), shape.line_words):
                words = [word if word in frequent else RARE for word in line] if frequent else line
                out.write(b" ".join(words) + b"\n")
        part.rename(target)


if __name__ == "__main__":
    _write(Shape(*map(int, sys.argv[1:4])), *sys.argv[4:])
