"""The overlap of a test with a training text in shards: a shard reads its share of the training text beside the test."""

# N-grams run on across the lines of a text file, so a text file is never cut: shards have whole files, or records.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.api.inputs import Text, corpus_of
from lmgauge.api.sharding.shards import RECORD_FILE, ShardRecord, StoredParts, stored_paths
from lmgauge.base.decoding import Whole
from lmgauge.base.errors import InputError, UsageError
from lmgauge.evaluation.runs import sha256_of
from lmgauge.text.documents import Corpus
from lmgauge.text.overlap.common_runs import MetRuns
from lmgauge.text.overlap.duplicates import NearPair
from lmgauge.text.overlap.find import OverlapSearch, TrainingText
from lmgauge.text.overlap.overlap_results import Overlap
from lmgauge.text.overlap.overlap_settings import OverlapSettings
from lmgauge.text.overlap.token_stream import Joints
from lmgauge.text.reading_options import ReadingOptions
from lmgauge.text.segments import Segments
from lmgauge.text.work_units import UnitCounter, pieces
from lmgauge.work.manifest import decode_facts


@dataclass(frozen=True)
class OverlapJob:
    """Test text looked for in training text: what `lmgauge.overlap` does, as a job that can be cut into shards.

    Attributes:
        train: training text: a path, several, or a `Corpus`; whole text files and records are what is shared out.
        test: test text, which every shard holds in memory.
        settings: what counts as overlap.
        threads: how many; does not change results.

    Example:
        >>> import lmgauge, tempfile
        >>> train = lmgauge.Corpus.from_strings(["the cat sat on the mat", "a dog", "no"])
        >>> test = lmgauge.Corpus.from_strings(["a cat sat on a mat", "no"])
        >>> job = OverlapJob(train, test, lmgauge.settings.OverlapSettings(n=3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     shards = [lmgauge.sharding.run_shard(job, rank, 2, folder) for rank in range(2)]
        ...     lmgauge.merge(folder, text=test).contaminated_segments
        2
    """

    train: Text
    test: Text
    settings: OverlapSettings = field(default_factory=OverlapSettings)
    threads: int | None = None

    def prepare(self) -> OverlapWork:
        """Look for the texts.

        Raises:
            InputError: a file is missing.
            UsageError: a text is standard input.
        """
        return OverlapWork(self)


class OverlapWork:
    """Texts to compare, known to be there."""

    kind = "overlap"

    def __init__(self, job: OverlapJob) -> None:
        self._job, self._train, self._test = job, corpus_of(job.train), corpus_of(job.test)
        if not (self._train.rereadable and self._test.rereadable):
            raise UsageError("every shard reads both texts: save standard input in a file first")
        self.inputs = [source.path for corpus in (self._train, self._test) for source in corpus.sources]

    def made_of(self) -> dict[str, Any]:
        """Return texts and settings; see `Work`."""
        how = {name: value for name, value in self._test.settings.items() if name != "paths"}
        texts = {"train": sha256_of(self._train), "test": sha256_of(self._test)}
        return texts | {"search": asdict(self._job.settings), "settings": how}

    def pieces(self) -> Iterator[tuple[int, Segments]]:
        """Yield the pieces of the training text; nothing runs on from one unit to the next; see `Work`."""
        units, joints = UnitCounter(), Joints()
        for block in self._train:
            for piece in [block] if block.terminator else pieces(block):
                may_begin = joints.breaks_before(piece) and len(piece) > 0
                yield units.unit_of(piece, may_begin=may_begin), piece

    def compute(self, own: Iterator[Segments]) -> Iterator[_Part]:
        """Read pieces of the training text beside the test, and tell which tokens are in both; see `Work`."""
        search = OverlapSearch(self._test, self._job.settings)
        tokens, near = search.read(own, self._job.threads), search.near
        met = search.follower.met()
        if near is not None:
            near.compare()
        alike = ("", []) if near is None else (near.missing, list(near.best.values()))
        yield _Part(np.flatnonzero(search.duplicates.matches), met, tokens, search.follower.sources, *alike)

    def facts(self) -> dict[str, Any]:
        """Return how the test is read, and what is said of the training text; see `Work`."""
        report = self._train.report
        train = TrainingText(report.bytes, report.segments, report.sha256, tuple(report.notes()))
        return {"test": self._test.settings, "train": asdict(train)}


def merge(records: Sequence[ShardRecord], corpus: Corpus | None) -> Overlap:
    """Return what of the test is in the whole training text, from all shards."""
    # records: of all shards, in order.
    first = records[0]
    said = first.said(_Stored)
    if corpus is None:
        how = dict(said.test)
        if not how:
            raise InputError("the test text that the shards read was strings: give it with text")
        paths = stored_paths(how.pop("paths", []))
        corpus = Corpus.from_files(paths, reading=decode_facts(how, ReadingOptions, first.path / RECORD_FILE))
    search = OverlapSearch(corpus, said.search)
    if search.test.sha256 != first.manifest.made_of["test"]:
        raise InputError("the test text is not what the shards read: it was changed, or another one is named")
    stored, tokens = StoredParts(records, _Part), 0
    for number in range(len(records)):
        _, part = stored.take(number)
        if not _fits(part, search):
            raise ValueError("what is in both texts")
        search.follower.take(part.met, part.sources)
        search.duplicates.matches[part.duplicates] = True
        if search.near is not None:
            search.near.missing = search.near.missing or part.near_missing
            for pair in part.near:
                search.near.take(pair)
        tokens += part.tokens
    return search.finish(said.train, tokens)


@dataclass(frozen=True)
class _Part:
    duplicates: NDArray[np.int64]  # the segments of the test that are in the training text
    met: MetRuns
    tokens: Whole  # of this part of the training text
    sources: list[str]
    near_missing: str
    near: list[NearPair]


@dataclass(frozen=True)
class _Stored:
    search: OverlapSettings
    test: dict[str, Any]  # how it is read
    train: TrainingText


def _fits(part: _Part, search: OverlapSearch) -> bool:
    # Each run that a shard has met must lie in the test, and each segment be one of it.
    met = part.met
    columns, ends = vars(met).values(), met.position + met.longest
    return bool(
        all(column.shape == met.position.shape and (column >= 0).all() for column in columns)
        and met.position.ndim == 1
        and (np.diff(met.position) > 0).all()
        and (met.longest >= search.settings.shortest).all()
        and (ends <= len(search.test.ids)).all()
        and (met.source < len(part.sources)).all()
        and (part.duplicates >= 0).all()
        and all(0 <= pair.segment < len(search.test) for pair in part.near)
    )
