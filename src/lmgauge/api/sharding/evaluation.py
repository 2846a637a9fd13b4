"""An evaluation in shards: a shard scores its blocks of the text, and `merge` evaluates the text with those scores."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, followed, named_models, one_text
from lmgauge.base.decoding import Meta, Whole
from lmgauge.base.errors import InputError, LmgaugeError, UsageError
from lmgauge.base.files import local_path, refuse_replacing, writing_directory
from lmgauge.base.json_text import plain
from lmgauge.base.progress import CountedNote, merged_notes, say_progress
from lmgauge.base.result_list import Result
from lmgauge.evaluation.evaluate import evaluate, sum_block
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.results import Evaluation, Evaluations
from lmgauge.evaluation.runs import Run, RunFolders, run_settings, sha256_of
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel, Traits
from lmgauge.scores import KINDS, ScoreBatch, Strings, TokenStrings, join_batches
from lmgauge.scores.distributions.reduce import WithColumns
from lmgauge.scores.scoring import score_together
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.work_units import UnitCounter, pieces
from lmgauge.work.manifest import Manifest, decode_facts, described, difference, read_manifest, refuse_other, write_manifest
from lmgauge.work.parts import read_parts, writing_parts
from lmgauge.work.shard import Shard

RECORD_FILE, PARTS_FILE = "shard.json", "parts.zst"
T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class FinishedShard(Result):
    """A shard that is complete.

    Attributes:
        job: the kind of work: evaluation.
        shard: its number, from 1.
        of: how many there are.
        folder: where it is.
        parts: pieces of the text that it has; 0 where the text has fewer units than there are shards.
        computed: False where it was complete before.

    Example:
        >>> FinishedShard("evaluation", 2, 8, "shards/2-of-8", 12, True)
        <FinishedShard: evaluation, shard 2 of 8: 12 pieces of the text, in shards/2-of-8>
    """

    job: str
    shard: int
    of: int
    folder: str
    parts: int
    computed: bool

    def _in_brief(self) -> str:
        before = "" if self.computed else ", complete before"
        share = f"{self.job}, shard {self.shard} of {self.of}: {self.parts:,} piece{'s' * (self.parts != 1)} of the text"
        return f"{share}, in {self.folder}{before}"


@dataclass(frozen=True)
class _Place:
    shard: Shard
    parts: Whole  # pieces of the text that it has


@dataclass(frozen=True)
class ShardRecord:
    """What a shard says of itself."""

    path: Path
    manifest: Manifest
    shard: Shard
    pieces: int  # of the text, that it has

    @property
    def common(self) -> dict[str, Any]:
        """Return what all shards of one job have in common."""
        return {"job": self.manifest.job, "shards": self.shard.of, **self.manifest.made_of}

    def said(self, kind: type[T]) -> T:
        """Return what of its job and of what it found out besides its parts a type has; the latter, where both are there."""
        return decode_facts({**self.manifest.made_of, **self.manifest.facts}, kind, self.path / RECORD_FILE)


def is_shard_folder(path: Path) -> bool:
    """Return True if a folder holds a shard and nothing else, so that it may be replaced by one."""
    return {file.name for file in path.iterdir()} == {RECORD_FILE, PARTS_FILE}


def read_record(folder: Path) -> ShardRecord:
    """Read what a shard says of itself, and see whether either file was changed after it was written."""
    manifest = read_manifest(folder / RECORD_FILE, [PARTS_FILE])
    place = decode_facts(manifest.facts, _Place, folder / RECORD_FILE)
    return ShardRecord(folder, manifest, place.shard, place.parts)


def find_records(paths: Sequence[Path]) -> list[ShardRecord]:
    """Return the records of all shards of one job, in order."""
    records = [read_record(folder) for path in paths for folder in _shard_folders(path)]
    if not records:
        raise UsageError("there is no shard to merge: name the folders of all shards, or the folder that they are in")
    first, by_number = records[0], dict[int, ShardRecord]()
    for record in records:
        if different := difference(first.common, record.common):
            name, one, other = different
            values = f", {one} and {other}" if name in ("job", "shards") else ""
            raise UsageError(f"{first.path} and {record.path} differ in {name}{values}: merge the shards of one job")
        twice = by_number.setdefault(record.shard.number, record)
        if twice is not record:
            raise UsageError(f"{twice.path} and {record.path} are the same shard, {record.shard.number}: leave one out")
    missing = [number for number in range(1, first.shard.of + 1) if number not in by_number]
    if missing:
        names = ", ".join(f"{number}/{first.shard.of}" for number in missing[:8]) + (", ..." if len(missing) > 8 else "")
        raise UsageError(f"{len(missing)} of {first.shard.of} shards are missing: {names}; run them, then merge")
    return [by_number[number] for number in sorted(by_number)]


def _shard_folders(path: Path) -> list[Path]:
    if (local_path(path) / RECORD_FILE).is_file() or (path / PARTS_FILE).is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{path}: no such folder; name the folders of all shards, or the folder that they are in")
    inside = sorted(folder for folder in path.iterdir() if (folder / RECORD_FILE).is_file())
    if not inside:
        raise InputError(f"{path}: has no shard in it; make some with --shard i/n -o {path}")
    return inside


# -- the job --------------------------------------------------------------------------------------------------------------
_LOG = logging.getLogger(__name__)
_KIND = "evaluation"
_WHERE = ("device", "devices", "processes")
"""Settings that say where numbers are computed, and change none."""


@dataclass(frozen=True)
class EvaluationJob:
    """One model evaluated on a text: what `lmgauge.evaluate` does, as a job that can be cut into shards.

    Attributes:
        model: a model or its path.
        text: files: a path, several, or a `Corpus`.
        by_group: also evaluate each group.
        columns: what to keep of each whole distribution, see `Outputs`.
        scoring: how a model named by its path scores.
        threads: how many; does not change results (networks: last digits only).

    Example:
        >>> import lmgauge, tempfile
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "a dog", "the dog sat"])
        >>> job = EvaluationJob(lmgauge.train("laplace", text, order=2), text)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for rank in range(2):
        ...         shard = lmgauge.sharding.run_shard(job, rank, 2, folder)
        ...     merged = lmgauge.merge([folder], text=text)
        >>> merged == lmgauge.evaluate(job.model, text)
        True
    """

    model: Model
    text: Text
    by_group: bool = False
    columns: Sequence[str] = ()
    scoring: ScoringOptions | None = None
    threads: int | None = None

    def prepare(self) -> EvaluationWork:
        """Load the model and look for the text.

        Raises:
            ModelFileError: the model cannot be loaded.
            InputError: a file is missing.
            UsageError: the context runs on over the text, or the text is one segment: it cannot be cut.
        """
        return EvaluationWork(self)


class EvaluationWork:
    """An evaluation whose model is loaded."""

    def __init__(self, job: EvaluationJob) -> None:
        corpus = one_text(job.text, None)
        corpus.refuse_once("every shard reads the text, and merge does again")
        (model,), (name,) = named_models([job.model], job.scoring, corpus)
        followed_corpus = followed([model], corpus, job.scoring, by_group=job.by_group)
        _refuse_uncut(model, followed_corpus, joined=followed_corpus is not corpus)
        self._job, self._corpus = job, corpus
        self._model = WithColumns(model, job.columns) if job.columns else model
        self._origin = Origin.of_model(model, name)
        how: dict[str, Any] = {"by_group": job.by_group, "columns": job.columns, "scoring": job.scoring or ScoringOptions()}
        self._settings: dict[str, Any] = plain(run_settings(model, corpus.settings, **how))
        self.inputs = [os.fspath(job.model)] if isinstance(job.model, PATHS) else []
        self.inputs += [source.path for source in corpus.sources]

    def made_of(self) -> dict[str, Any]:
        """Return model, text and settings, all plain: equal if, and only if, two shards are of one job."""
        # The text is read for its digest, unless all pieces were taken.
        text = {name: value for name, value in self._settings["text"].items() if name != "paths"}
        chosen = {name: value for name, value in self._settings.items() if name not in ("text", *_WHERE)}
        made_of = {"model": asdict(self._origin), "text": sha256_of(self._corpus), "settings": chosen | {"text": text}}
        return made_of | {"block_bytes": self._corpus.block_bytes}

    def pieces(self) -> Iterator[tuple[int, Segments]]:
        """Yield all pieces of the text in order, each with the number of its unit, which is of one shard."""
        units = UnitCounter()
        for block in self._corpus:
            for piece in pieces(block):
                yield units.unit_of(piece), piece

    def compute(self, own: Iterator[Segments]) -> Iterator[ScoredPiece]:
        """Score the pieces of a shard, a row for each of their tokens."""

        def _checked(block: Segments, batches: list[ScoreBatch]) -> tuple[Segments, ScoreBatch]:
            sum_block(batches[0])  # refuses here what would be refused when shards are merged
            return block, batches[0]

        strings, scored = None, 0
        model = cast("LanguageModel", self._model)
        for piece, batch in score_together([model], own, _checked, spans=True, threads=self._job.threads):
            new = batch.strings is not strings
            tokens = [token.encode("utf-8", "surrogatepass") for token in batch.strings.tokens] if new else None
            strings = batch.strings
            yield ScoredPiece(replace(batch, strings=NO_STRINGS), tokens)
            scored += piece.byte_count()
            say_progress(f"scored {scored / 1e6:,.0f} MB")

    def facts(self) -> dict[str, Any]:
        """Return settings, and notes with their numbers, once all is computed."""
        notes = self._model.notes
        counted = [(note.template, note.number) if isinstance(note, CountedNote) else str(note) for note in notes]
        return {"settings": self._settings, "notes": counted}


def _refuse_uncut(model: LanguageModel, corpus: Corpus, *, joined: bool) -> None:
    if model.context_policy.runs_on:
        raise UsageError(
            f"{model.label}: its context spans the whole text, which shards would cut: leave out --shard, or "
            "choose a context of one segment (--context sentence)"
        )
    if joined or corpus.is_joined:
        raise UsageError("all segments are joined into one text, which cannot be cut: leave out --shard, or the protocol")
    if model.takes("bos"):
        raise UsageError(f"{model.label}: a server answers many requests at a time: leave out --shard, and raise --threads")


class StoredModel(Traits):
    """What shards have scored, in place of the model that did: it knows the scores of one text."""

    blocks_are_independent = False
    notes: list[str]

    def __init__(self, origin: Origin, records: Sequence[ShardRecord]) -> None:
        self.label, self.context_policy = origin.model, origin.policy
        self._records = records
        self.notes = []

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield the scores of the tokens of each block of the text; arguments as of any model."""
        paths, units, total = [record.path / PARTS_FILE for record in self._records], UnitCounter(), 0
        parts = [read_parts(path, ScoredPiece, {TokenStrings: NO_STRINGS}) for path in paths]
        shared: dict[tuple[bytes, ...], TokenStrings] = {}  # by their bytes, so that equal ones are one object
        last: dict[int, TokenStrings] = {}  # of each shard

        def _stored(piece: Segments) -> ScoreBatch:
            owner = units.unit_of(piece) % len(parts)
            stored = next(parts[owner], None)
            if stored is None:
                raise InputError(f"{self._records[owner].path}: ends before its text does; run this shard again")
            if stored.tokens is not None:
                strings = Strings([token.decode("utf-8", "surrogatepass") for token in stored.tokens])
                last[owner] = shared.setdefault(tuple(stored.tokens), strings)
            batch = replace(stored.batch, strings=last[owner])
            if not _fits(batch, piece):
                raise InputError(f"the stored scores are not those of {piece.place(0)}")
            return batch

        for block in segments:
            yield join_batches([_stored(piece) for piece in pieces(block)])
            total += len(block)
        stored = [record.said(_Stored).notes for record in self._records]
        notes = [[n if isinstance(n, str) else CountedNote.of(*n, total) for n in own] for own in stored]
        self.notes = merged_notes(notes, total)


def _fits(batch: ScoreBatch, block: Segments) -> bool:
    # Whether what other code indexes with is of the block.
    segments, events, rows, most = batch.segments, batch.segment_events, len(batch), len(batch.strings.tokens)
    columns: list[NDArray[Any]] = [batch.token_ids, batch.kind, *batch.extra.values()]
    top = batch.extra.get("top_ids", batch.token_ids)
    return (
        (not len(segments) or bool(block.first <= segments[0] and segments[-1] < block.first + len(block)))
        and bool((np.diff(segments) > 0).all() and (events >= 0).all())
        and (len(events), int(events.sum())) == (len(segments), rows)
        and all(column.shape[:1] == (rows,) for column in columns)
        and (rows == 0 or bool(max(batch.token_ids.max(), top.max(initial=0)) < most and batch.kind.max() < len(KINDS)))
    )


NO_STRINGS = Strings([])


@dataclass(frozen=True)
class ScoredPiece:
    """The scores of a piece of the text as a shard stores them."""

    batch: ScoreBatch
    tokens: list[bytes] | None  # the strings of its tokens; None where they are those of the piece before


@dataclass(frozen=True)
class _Stored:
    model: Origin
    text: str  # its SHA-256
    block_bytes: Annotated[int, Meta(gt=0, le=1 << 31)]  # about how many bytes of the text a block has
    settings: dict[str, Any]  # all of them, not only those that change numbers
    notes: list[str | tuple[str, Whole]]  # those that say in how many segments: template and number


def run_shard(job: EvaluationJob, rank: int, world_size: int, output: PathLike) -> FinishedShard:
    """Compute one shard of a job, unless it is complete: `--shard`.

    Args:
        job: what is to be computed.
        rank: number of the shard, from 0.
        world_size: how many shards there are.
        output: folder of all shards; this one gets a folder in it, which appears when it is complete.

    Raises:
        UsageError: the folder holds a complete shard of another job, or the job cannot be cut.
        LmgaugeError: what computing raises.

    Example:
        >>> import lmgauge, tempfile
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "a dog"])
        >>> job = lmgauge.sharding.EvaluationJob(lmgauge.train("laplace", text, order=2), text)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     first, again = (run_shard(job, 0, 2, folder) for _ in range(2))
        >>> first.parts, first.computed, again.computed
        (1, True, False)
    """
    shard, work = Shard(rank + 1, world_size), job.prepare()
    folder = Path(output) / shard.folder
    refuse_replacing({"-o": folder}, work.inputs)
    complete = _complete(folder, work, shard)
    if complete is not None:
        return FinishedShard(_KIND, shard.number, shard.of, str(folder), complete.pieces, False)
    pieces = 0

    def _owned() -> Iterator[Segments]:
        nonlocal pieces
        for unit, piece in work.pieces():
            if shard.has(unit):
                pieces += 1
                yield piece

    with writing_directory(folder, is_ours=is_shard_folder) as made:
        with writing_parts(made / PARTS_FILE) as write:
            for part in work.compute(_owned()):
                write(part)
        facts = {**work.facts(), "shard": vars(shard), "parts": pieces}
        write_manifest(made / RECORD_FILE, _KIND, work.made_of(), facts, [PARTS_FILE])
    return FinishedShard(_KIND, shard.number, shard.of, str(folder), pieces, True)


def _complete(folder: Path, work: EvaluationWork, shard: Shard) -> ShardRecord | None:
    # Record of a shard that is complete; None where there is none, or it is damaged.
    if not (folder / RECORD_FILE).exists():
        return None
    try:
        record = read_record(folder)
    except InputError as error:
        _LOG.warning("%s", error)
        return None
    refuse_other(folder, record.common, {"job": _KIND, "shards": shard.of, **described(work.made_of())})
    return record


def put_together(
    paths: Sequence[Path], output: PathLike | None = None, text: Text | None = None
) -> Evaluation | Evaluations:
    """Return the evaluation of the whole text from the folders of all its shards, and write its run folder."""
    records = find_records(paths)
    first, job = records[0].path, records[0].manifest.job
    if job != _KIND:
        raise InputError(f"{first}: is a shard of a job that this lmgauge does not know: {job!r}")
    corpus = None if text is None else corpus_of(text)
    refuse_replacing({"-o": output}, [*map(str, paths), *(str(record.path) for record in records)])
    try:
        return _merged(records, corpus, None if output is None else Path(output))
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        if isinstance(error, LmgaugeError):
            raise
        raise InputError(f"{first}: the shards do not hold what they should ({error!r}); run them again") from error


def _merged(records: Sequence[ShardRecord], corpus: Corpus | None, output: Path | None) -> Evaluation | Evaluations:
    # records: of all shards, in order.
    # -> what `evaluate` gives where one process scores all tokens, to the bit.
    path, said = records[0].path, records[0].said(_Stored)
    origin, settings = said.model, said.settings
    if corpus is None:
        corpus = Run(origin.model, path, path, origin, said.text, None, settings).corpus()
    if corpus is None:
        raise InputError("the text that the shards scored is not where they remember it: name it with --text")
    by_group = settings.get("by") == "group"
    with ExitStack() as stack:
        folders = None if output is None else stack.enter_context(RunFolders(output, [origin.model]))
        results = evaluate(
            [cast("LanguageModel", StoredModel(origin, records))],
            corpus.in_blocks(said.block_bytes),
            origins=[origin],
            by_group=by_group,
            watch=None if folders is None else lambda i, block, batch, tally: folders.write(i, batch, block.ids),
            doing="merged",
        )
        if results.items[0].fingerprints["text"] != said.text:
            raise InputError("the text is not what the shards scored: it was changed, or another one is named")
        if folders is not None:
            folders.finish(results, [settings])
    return results if by_group else results.items[0]
