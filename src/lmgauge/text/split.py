"""A corpus split into training, validation and test part: by segment or by whole groups, the same for the same seed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import DEFAULT_FRACTIONS, DEFAULT_SEED, SPLIT_BY, SplitBy
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import making_parents, refuse_replacing, writing
from lmgauge.base.result_list import Tabled, plain_values
from lmgauge.numerics.resampling import GOLDEN, mixed
from lmgauge.text.documents import Corpus

PARTS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class Split:
    """Which part each segment of a corpus belongs to."""

    assignment: NDArray[np.uint8]  # uint8 [segments], index into `PARTS` in reading order
    fractions: tuple[float, float, float]  # the share of each part that was asked for
    records: bool  # True if segments are records or documents, which may hold newlines

    def counts(self) -> dict[str, int]:
        """Return the number of segments in each part."""
        return dict(zip(PARTS, np.bincount(self.assignment, minlength=len(PARTS)).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """One part on disk: its name in `PARTS`, its file, and how many segments and bytes of text it has."""

    name: str
    path: Path
    segments: int
    bytes: int


@dataclass(frozen=True, repr=False)
class SplitText(Tabled):
    """A text in parts on disk.

    Attributes:
        seed: the same seed gives the same split.
        fractions: the shares asked for.
        segments: how many there are in all parts.
        text_sha256: digest of the text that was split.
        parts: those written, in the order train, validation, test; each with its name, path, segments and bytes.
        notes: what was changed or left out while it was read.

    Example:
        >>> import tempfile, lmgauge
        >>> text = lmgauge.Corpus.from_strings([f"line {i}" for i in range(100)])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = lmgauge.split(text, folder, fractions=[0.5, 0.25, 0.25])
        >>> [(part.name, part.path.name) for part in result.parts], result.segments
        ([('train', 'train.jsonl'), ('validation', 'validation.jsonl'), ('test', 'test.jsonl')], 100)
    """

    seed: int
    fractions: tuple[float, ...]
    segments: int
    text_sha256: str
    parts: tuple[WrittenPart, ...]
    notes: tuple[str, ...] = ()

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each part: its name, path, segments and bytes."""
        return [plain_values(part) for part in self.parts]

    def _in_brief(self) -> str:
        parts = ", ".join(f"{part.name} {part.segments:,}" for part in self.parts)
        return f"{parts} segments, seed {self.seed}"


def split_corpus(
    corpus: Corpus, fractions: Sequence[float] = DEFAULT_FRACTIONS, *, seed: int = DEFAULT_SEED, by: SplitBy | None = None
) -> Split:
    """Assign each segment of a corpus to training, validation or test part."""
    # The assignment depends on the seed, the fractions and the number of segments alone (with `by` on the sizes of the
    # groups too), on any machine and with any version of any library.
    # corpus: the text; it is read once, for the number of its segments; by: "group" keeps the segments of a group (a file,
    # unless the corpus says otherwise) together, "document" those of a document.
    shares = _check(fractions, seed)
    if by not in (None, *SPLIT_BY):
        raise UsageError(f"by {by!r}: choose {' or '.join(SPLIT_BY)}, or None")
    sizes = []
    groups: list[NDArray[np.integer[Any]]] = []
    records = False
    for part in corpus:
        sizes.append(part.ends - part.starts + part.terminator)
        records |= part.terminator == 0
        if by is not None:
            codes = part.groups if by == "group" else part.documents
            groups.append(np.zeros(len(part), dtype=np.int32) if codes is None else codes)
    if not sizes:
        raise InputError("there is no text to split: the input is empty")
    total = sum(map(len, sizes))
    if by is not None:
        assignment = assign_groups(np.concatenate(groups), np.concatenate(sizes), shares, seed)
    else:
        rank = np.empty(total, dtype=np.int64)
        rank[_shuffled(total, seed)] = np.arange(total)
        bounds = [round(share * total) for share in (shares[0], shares[0] + shares[1])]
        assignment = np.searchsorted(bounds, rank, side="right").astype(np.uint8)
    return Split(assignment, shares, records)


def _check(fractions: Sequence[float], seed: int) -> tuple[float, float, float]:
    try:
        shares = tuple(float(share) for share in fractions)
    except (TypeError, ValueError) as error:
        raise UsageError(f"fractions must be three numbers, such as (0.8, 0.1, 0.1): {error}") from error
    if len(shares) != len(PARTS):
        raise UsageError(f"three fractions are needed ({', '.join(PARTS)}), not {len(shares)}")
    if not all(0 <= share <= 1 for share in shares) or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise UsageError(f"fractions {', '.join(map(str, shares))}: each has to be from 0 to 1, and their sum 1")
    if not 0 <= seed < 2**64:
        raise UsageError(f"seed {seed} is out of range: 0 to 2**64 - 1")
    return shares[0], shares[1], shares[2]


def _shuffled(n: int, seed: int) -> NDArray[np.int64]:
    # 0..n-1 in an order that depends on `seed` and `n` alone, by their random keys.
    return np.argsort(random_keys(n, seed), kind="stable").astype(np.int64, copy=False)


def random_keys(n: int, seed: int) -> NDArray[np.uint64]:
    """Return n random numbers, each of which depends on `seed` and its own place alone: uint64 [n]."""
    # They are the SplitMix64 generator's, because NumPy does not promise the same permutation from version to version.
    # bool((random_keys(2, seed=7) == random_keys(3, seed=7)[:2]).all()) -> True
    return mixed(np.uint64(seed) + (np.arange(n, dtype=np.uint64) + np.uint64(1)) * GOLDEN)


def assign_groups(
    codes: NDArray[np.integer[Any]], sizes: NDArray[np.int64], shares: tuple[float, float, float], seed: int
) -> NDArray[np.uint8]:
    """Return the part of each segment, whole groups together."""
    # assign_groups([0, 0, 1], [4, 4, 8], (0.5, 0.5, 0.0), seed=1) -> [0, 0, 1]
    # codes: integers [segments], group of each segment; sizes: int64 [segments], bytes of each segment.
    # -> uint8 [segments], index into `PARTS`.
    group_bytes = np.zeros(int(codes.max()) + 1, dtype=np.int64)
    np.add.at(group_bytes, codes, sizes)
    if len(group_bytes) < 2:
        raise UsageError(
            "there is one group only, so nothing to split by: give several files, or a field for --group or --document"
        )
    order = _shuffled(len(group_bytes), seed)
    # A group belongs where its middle falls when the groups are laid end to end in the shuffled order.
    middle = np.cumsum(group_bytes[order]) - group_bytes[order] / 2
    bounds = np.array([shares[0], shares[0] + shares[1]]) * group_bytes.sum()
    part = np.empty(len(group_bytes), dtype=np.uint8)
    part[order] = np.searchsorted(bounds, middle, side="right")
    assignment: NDArray[np.uint8] = part[codes]
    return assignment


def write_split(
    corpus: Corpus,
    directory: str | os.PathLike[str],
    fractions: Sequence[float] = DEFAULT_FRACTIONS,
    *,
    seed: int = DEFAULT_SEED,
    by: SplitBy | None = None,
) -> SplitText:
    """Split a corpus and write the parts: train.txt, validation.txt, test.txt, a segment a line, in reading order."""
    # Records and documents are written to train.jsonl and so on instead, as {"text": ...}, since they may hold newlines. A
    # part whose fraction is 0 is not written. Files appear under their names when all of them are complete.
    corpus.refuse_once("splitting reads the text twice")
    split = split_corpus(corpus, fractions, seed=seed, by=by)
    suffix = ".jsonl" if split.records else ".txt"
    folder = Path(directory)
    paths = [folder / (name + suffix) if share else None for name, share in zip(PARTS, split.fractions, strict=True)]
    outputs = {f"the {name} part": path for name, path in zip(PARTS, paths, strict=True)}
    refuse_replacing(outputs, [source.path for source in corpus.sources])
    for stale in (folder / (name + end) for name in PARTS for end in (".txt", ".jsonl")):
        if stale not in paths and stale.exists():
            raise _already_there(stale)  # it would be mixed with the new parts
    if (folder / "config.json").exists():
        raise UsageError(f"{folder} is the folder of a model: write to another directory")
    written = [0] * len(PARTS)
    with _writing_parts(paths) as files:
        for part in corpus:
            assignment = split.assignment[part.first : part.first + len(part)]
            if len(assignment) < len(part):  # a pass over a text that changed otherwise is refused at its end
                raise InputError("the text changed while it was being split: split it again")
            for code, file in enumerate(files):
                chosen = assignment == code
                if file is None or not chosen.any():
                    continue
                file.write(part.as_lines(chosen, records=split.records))
                written[code] += int((part.ends - part.starts)[chosen].sum()) + part.terminator * int(chosen.sum())
    parts = tuple(
        WrittenPart(name, path, split.counts()[name], size)
        for name, path, size in zip(PARTS, paths, written, strict=True)
        if path is not None
    )
    sha256, notes = corpus.report.sha256, tuple(corpus.report.notes())
    return SplitText(seed, split.fractions, sum(part.segments for part in parts), sha256, parts, notes)


def _already_there(path: Path) -> UsageError:
    return UsageError(
        f"{path.parent} already has a {path.name} of another split, or of yours: name another directory, or remove it"
    )


@contextmanager
def _writing_parts(paths: Sequence[Path | None]) -> Iterator[list[IO[bytes] | None]]:
    # Open a file for each part; all of them appear under their names when the block ends well, otherwise none does.
    folders = {path.parent for path in paths if path}
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context(making_parents(folder / "part"))
        files = [None if path is None else stack.enter_context(writing(path)) for path in paths]
        yield files
        for file, path in zip(files, paths, strict=True):
            # Nothing tells the part of an older split from a text that somebody made by hand: only the same is replaced.
            if file is not None and path is not None and path.exists():
                file.flush()
                if not cmp(file.name, path, shallow=False):
                    raise _already_there(path)
