"""Results to look at again: run folders and score tables of any origin, read beside the text they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lmgauge.errors import InputError
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.run_folder import EVALUATION_FILE, SCORES_FILE, read_evaluation
from lmgauge.files import is_special, local_path
from lmgauge.scores import ScoreBatch, SegmentReader, read_metadata, read_scores
from lmgauge.signature import Signature
from lmgauge.text.documents import Corpus, ReadingOptions
from lmgauge.text.segments import Segments

_SEGMENTS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Run:
    """An evaluation that was kept, or a score table from elsewhere."""

    name: str  # what to call it: the model's name
    path: Path
    scores: Path
    origin: Origin  # what is known of the model behind it
    text_sha256: str  # digest of the text; empty if unknown
    evaluation: Mapping[str, Any] | None  # the numbers that evaluation.json claims; None for a bare table
    settings: Mapping[str, Any]  # how the text was read and scored; empty for a bare table
    broken_seal: str = ""  # which file was changed after it was written; empty if none was
    scores_sha256: str = ""  # the digest that the table must have; empty for a bare table

    @property
    def numbers_version(self) -> str:
        """Return the version of the digits, as the signature has it; empty for a bare table."""
        return Signature.parse(str((self.evaluation or {}).get("signature", ""))).parts.get("v", "")

    def batches(self) -> Iterator[ScoreBatch]:
        """Return the rows of the table."""
        return read_scores(self.scores)

    def corpus(self, texts: Sequence[str] | None = None, *, document: str | None = None) -> Corpus | None:
        """Return the text that was scored, read as it was then."""
        known = self.settings.get("text", {})
        how = dict(known) if isinstance(known, dict) else {"text": known}
        remembered_paths = how.pop("paths", [])
        if not isinstance(remembered_paths, list) or not all(isinstance(path, str) for path in remembered_paths):
            raise InputError(f"{self.path}: {EVALUATION_FILE} does not name the files of the text; evaluate again")
        if document is not None:
            how["document"] = document
        paths = self._found(remembered_paths) if texts is None else list(texts)
        if not paths or (texts is None and "-" in paths):
            return None
        try:
            return Corpus.from_files(paths, reading=ReadingOptions(**how))
        except InputError:
            if texts is None:
                return None
            raise
        except TypeError as error:
            raise InputError(f"{self.path}: this lmgauge does not know how {EVALUATION_FILE} describes the text") from error

    def _found(self, paths: Sequence[str]) -> list[str]:
        # Files that were named relative to a folder: this one, or one that the run is in.
        bases = [Path(), *self.path.resolve().parents]
        for base in bases:
            there = [str(base / path) for path in paths]
            if all(Path(path).is_file() and not is_special(path) for path in there):
                return there
        return []


def open_run(path: str | Path, *, check_seal: bool = True, hash_scores: bool = True) -> Run:
    """Open a run folder, or a score table."""
    # hash_scores: read all of the table for that; otherwise `scores_sha256` says what its digest must be.
    # Raises InputError: nothing is there, a file is missing, or was changed after it was written.
    path = local_path(path)
    evaluation: dict[str, Any] | None = None
    settings: dict[str, Any] = {}
    scores, broken, digest = path, "", ""
    if path.is_dir():
        evaluation, settings, broken, digest = read_evaluation(path, hash_scores=hash_scores)
        scores = path / SCORES_FILE
    elif not path.exists():
        raise InputError(f"{path}: no such run; `lmgauge eval -m MODEL TEXT -o RUN` makes one")
    if broken and check_seal:
        raise InputError(f"{broken}; evaluate again")
    metadata = read_metadata(path) if evaluation is None else evaluation
    origin = Origin.of_metadata(metadata, path.name)
    sha256 = str(metadata.get("fingerprints", {}).get("text", ""))
    return Run(origin.model, path, scores, origin, sha256, evaluation, settings, broken, digest)


def with_distinct_names(runs: Sequence[Run]) -> list[Run]:
    """Return the runs; those of the same name are called by their folders instead."""
    names = [run.name for run in runs]
    return [run if names.count(run.name) == 1 else replace(run, name=str(run.path).rstrip("/")) for run in runs]


def about(run: Run, corpus: Corpus) -> Run:
    """Return the run, now known to be about a text, which is read once for that."""
    sha256 = sha256_of(corpus)
    if run.text_sha256 and run.text_sha256 != sha256:
        raise InputError(
            f"{run.path}: scored another text (fingerprint {run.text_sha256[:6]}) than the one named ({sha256[:6]}); "
            "name the text it scored, read in the same way"
        )
    return replace(run, text_sha256=sha256)


def remembered(*runs: Run) -> Corpus | None:
    """Return the text that runs remember, where it is still there and unchanged; that of the first if they differ."""
    if len({run.text_sha256 for run in runs}) > 1:
        runs = runs[:1]
    for run in runs:
        corpus = run.corpus() if run.text_sha256 else None
        if corpus is not None and _fingerprint(corpus) == run.text_sha256:
            return corpus
    return None


def _fingerprint(corpus: Corpus) -> str:
    # Read a text that is remembered; empty if it is not text any more.
    try:
        return sha256_of(corpus)
    except InputError:
        return ""


def sha256_of(corpus: Corpus) -> str:
    """Return the SHA-256 of a text, which is read for it unless it was."""
    if not corpus.report.sha256:
        for _ in corpus:
            pass
    return corpus.report.sha256


def lockstep(
    tables: Sequence[Iterable[ScoreBatch]],
    corpus: Corpus | None,
    names: Sequence[str] | None = None,
    *,
    complete: bool = True,
) -> Iterator[tuple[Segments | None, list[ScoreBatch]]]:
    """Read tables side by side, and the text they are about if it is at hand."""
    # -> a block of the text (None without one), and of each table the rows of exactly its segments; a segment without rows
    # has 0 events; complete: it is refused where the text has bytes.
    called = list(names or [f"table {i + 1}" for i in range(len(tables))])
    rows = [SegmentReader(table, name) for table, name in zip(tables, called, strict=True)]
    segments = 0
    for block in () if corpus is None else corpus:
        segments = block.first + len(block)
        taken = [table.take(block.first, segments) for table in rows]
        for name, table in zip(called, taken, strict=True):
            _check_extent(table, block, name, complete)
        yield block, taken
    for name, reader in zip(called, rows, strict=True):
        if corpus is not None and not reader.exhausted:
            raise InputError(
                f"{name}: has a segment {reader.next_segment}, but the text has only {segments}; is it the same text?"
            )
    while waiting := [table.next_segment for table in rows if not table.exhausted]:
        begin = min(waiting)  # segments that no table has are stepped over
        yield None, [table.take(begin, begin + _SEGMENTS_AT_A_TIME) for table in rows]


def _check_extent(table: ScoreBatch, block: Segments, name: str, complete: bool) -> None:
    # Compare the segments of a table against those of the text: none without rows that has bytes, none that is longer.
    lengths = block.ends - block.starts
    missing = np.flatnonzero((table.segment_events == 0) & (lengths > 0))
    if complete and len(missing):
        raise InputError(
            f"{name}: has no rows for segment {block.first + missing[0]}, which the text has; is it the same text?"
        )
    if len(table.ends):
        wrong = np.flatnonzero(table.reach() > lengths)
        if len(wrong):
            raise InputError(
                f"{name}: the spans of segment {block.first + wrong[0]} reach beyond the {lengths[wrong[0]]} bytes it has "
                "in the text; is it the same text?"
            )
