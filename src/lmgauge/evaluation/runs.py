"""Run folders, `evaluation.json` and `scores.parquet`: written, read, and read again beside the text they are about."""

from __future__ import annotations

import logging
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.decoding import decode
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import file_sha256, folder_named, is_special, local_path, locking, writing_directory
from lmgauge.base.paths import read_json, write_json
from lmgauge.base.version import __version__
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.sampled import Sample
from lmgauge.numerics.signature import Signature
from lmgauge.scores import ScoreBatch, ScoreWriter, SegmentReader, read_metadata, read_scores
from lmgauge.text.documents import Corpus, ReadingOptions
from lmgauge.text.segments import Segments
from lmgauge.work.manifest import changed_file, sealed

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

_LOG = logging.getLogger(__name__)
Floats = NDArray[np.float64]
EVALUATION_FILE = "evaluation.json"
SCORES_FILE = "scores.parquet"


def environment() -> dict[str, str]:
    """Return the versions and the platform that the numbers were made with."""
    import numpy

    computing = {name: str(sys.modules[name].__version__) for name in ("torch", "transformers") if name in sys.modules}
    return computing | {
        "lmgauge": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "platform": platform.platform(),
        "byte_order": sys.byteorder,
    }


def is_run_folder(path: Path) -> bool:
    """Return True if a folder holds an evaluation and nothing else, so that it may be replaced by one."""
    return {file.name for file in path.iterdir()} == {EVALUATION_FILE, SCORES_FILE}


def write_evaluation(folder: Path, results: Sequence[Evaluation], settings: Mapping[str, Any]) -> None:
    """Write `evaluation.json`: the whole, then groups, and what shows later whether either file was changed."""
    # The score table must be complete: its digest is part of the file.
    whole, *groups = results
    content = {
        "evaluation": whole.to_dict(),
        "groups": [group.to_dict() for group in groups],
        "settings": dict(settings),
        "environment": environment(),
        "scores_sha256": file_sha256(folder / SCORES_FILE),
    }
    write_json(folder / EVALUATION_FILE, sealed(content))


@dataclass
class _Stated:
    evaluation: dict[str, Any]
    settings: dict[str, Any]
    fingerprint: str
    scores_sha256: str


def read_evaluation(folder: Path, *, hash_scores: bool = True) -> tuple[dict[str, Any], dict[str, Any], str, str]:
    """Read `evaluation.json` and see whether either file was changed after it was written."""
    # -> the numbers of the whole, the settings, which file was changed (empty if none was), and the digest that the table
    # must have.
    file, scores = folder / EVALUATION_FILE, folder / SCORES_FILE
    for needed in (file, scores):
        if not needed.exists():
            if (folder / "config.json").exists():
                raise InputError(f"{folder} is a model: score a text with it first: `lmgauge eval -m {folder} TEXT -o RUN`")
            if (folder / "items.parquet").exists():
                what = "holds scores of the items of a task, without a text: `lmgauge compare` compares such runs"
                raise InputError(f"{folder}: {what}; `lmgauge info` shows what is in one")
            if runs := sorted(str(file.parent) for file in folder.glob(f"*/{EVALUATION_FILE}")):
                raise InputError(f"{folder} is not a run: name the runs in it: {' '.join(runs)}")
            raise InputError(
                f"{folder} is not a run folder: {needed.name} is missing; `lmgauge eval -m MODEL TEXT -o RUN` makes one"
            )
        if is_special(needed):
            raise InputError(f"{needed}: is a pipe or a device, which no run has; evaluate again")
    content = read_json(file, dict[str, Any], "an evaluation", "evaluate again")
    stated = decode(content, _Stated, file, "an evaluation", "evaluate again")
    changed = changed_file(file, content, {SCORES_FILE: stated.scores_sha256} if hash_scores else {})
    broken = f"{changed}: was changed after it was written" if changed else ""
    return stated.evaluation, stated.settings, broken, stated.scores_sha256


def run_settings(
    model: Any, text: Mapping[str, Any], *, by_group: bool, columns: Sequence[str], scoring: Any
) -> dict[str, Any]:
    """Return the `settings` of `evaluation.json`: what was chosen, whether in Python or in a shell."""
    # model: its own scoring options count where it has some, as a model that was loaded with them does.
    options = model.options or scoring
    options = replace(options, reserved=options.reserved or scoring.reserved)
    if options.tokenizer is not None or options.normalizer is not None:
        taken = model.is_of_another_program
        name = model.tokenizer.name if taken and options.tokenizer is not None else None  # a path says nothing elsewhere
        options = replace(options, tokenizer=name, normalizer=options.normalizer if taken else None)
    chosen = {"by": "group" if by_group else None, "reserved": None, "columns": list(columns)}
    return {"text": dict(text), **chosen, **asdict(options)}


def run_targets(output: str | Path, names: Sequence[str]) -> list[Path]:
    """Return the run folder of each model: the output itself, or with several models one of its own in it."""
    own = [folder_named(name) for name in names]
    twice = next((name for name in own if own.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two models are called {twice!r}, which would be one folder: evaluate each on its own")
    return [Path(output)] if len(names) == 1 else [Path(output) / name for name in own]


class RunFolders:
    """Run folders in the making, one a model; they appear when the block ends well, and not at all when it does not."""

    def __init__(self, output: str | Path, names: Sequence[str]) -> None:
        self._names = names
        self.targets = run_targets(output, names)
        self._stack, self._tables = ExitStack(), ExitStack()
        self._metadata: list[dict[str, object]] = [{"model": name} for name in names]
        self._folders: list[Path] = []
        self._writers: list[ScoreWriter] = []
        self._unfinished = Path(output).parent / f".{Path(output).name}.unfinished"
        self._journals: list[Any] = []

    def __enter__(self) -> Self:
        with ExitStack() as started:
            for target, metadata in zip(self.targets, self._metadata, strict=True):
                folder = started.enter_context(writing_directory(target, is_ours=is_run_folder))
                self._folders.append(folder)
                self._writers.append(self._tables.enter_context(ScoreWriter(folder / SCORES_FILE, metadata)))
            self._stack = started.pop_all()
        self._stack.push(self._tables)
        return self

    def keep_journal(self, models: Sequence[LanguageModel]) -> None:
        """Let models that can keep their scores as soon as they are known, and take those of a run that was killed."""
        if all(model.progress is None for model in models):  # they are too quick for that
            return
        self._lock()
        for number, model in enumerate(models):
            if journal := model.keep_journal(self._unfinished / f"{number}.scores"):
                self._journals.append(journal)

    def _lock(self) -> None:
        # Lock the folder: two runs to one folder would take each other's half-written files for those of a killed run.
        self._stack.enter_context(locking(self._unfinished / "lock", self.targets[0]))

    @property
    def kept(self) -> int:
        """Return events whose scores are kept for a run that goes on from here."""
        return sum(journal.scores for journal in self._journals)

    def __exit__(self, *error: Any) -> bool | None:
        if isinstance(error[1], (KeyboardInterrupt, SystemExit)) and self.kept:
            _LOG.warning("%s events are scored; the same command resumes there", f"{self.kept:,}")
        for journal in self._journals:
            journal.close()
        handled = self._stack.__exit__(*error)  # may fail, and then what is finished stays
        if error[0] is None or not self.kept:
            shutil.rmtree(self._unfinished, ignore_errors=True)
        return handled

    def write(self, index: int, batch: ScoreBatch, ids: Sequence[str] | None = None) -> None:
        """Add rows to the table of a model."""
        self._writers[index].write(batch, ids)

    def finish(self, results: Sequence[Evaluation], settings: Sequence[Mapping[str, Any]]) -> None:
        """Close the tables and write the numbers beside them."""
        of_model = [[result for result in results if result.model == name] for name in self._names]
        for own, metadata in zip(of_model, self._metadata, strict=True):
            metadata.update(own[0].origin().to_metadata(), signature=own[0].signature, lmgauge=__version__)
        self._tables.close()
        for own, folder, chosen in zip(of_model, self._folders, settings, strict=True):
            # What a network sees first is of the model: a merge of shards, which has none, writes the same.
            write_evaluation(folder, [replace(one, first_segment=None) for one in own], chosen)
        if resumed := sum(journal.taken for journal in self._journals):
            _LOG.warning("%s events had been scored before the last run was interrupted", f"{resumed:,}")


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
    text: Corpus | None = None  # what was scored, where it is in memory
    column: str = ""  # of a table, the one that is read as log-probabilities, where one was named

    @property
    def numbers_version(self) -> str:
        """Return the version of the digits, as the signature has it; empty for a bare table."""
        return Signature.parse(str((self.evaluation or {}).get("signature", ""))).parts.get("v", "")

    @property
    def sample(self) -> Sample | None:
        """Return the documents that the text is a sample of; None where it is a text of its own."""
        text = self.settings.get("text")
        stated = text.get("sample") if isinstance(text, dict) else None
        return stated and decode(stated, Sample, self.path, "a sample of documents", "evaluate again")

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[ScoreBatch]:
        """Return the rows of the table; of some columns beside the segments and log-probabilities, or of all."""
        return read_scores(self.scores, columns, self.column)

    def corpus(self, texts: Sequence[str] | None = None, *, document: str | None = None) -> Corpus | None:
        """Return the text that was scored, read as it was then."""
        if self.text is not None and texts is None and document is None:
            return self.text
        known = self.settings.get("text", {})
        how = dict(known) if isinstance(known, dict) else {"text": known}
        remembered_paths, sample = how.pop("paths", []), how.pop("sample", None)
        if not isinstance(remembered_paths, list) or not all(isinstance(path, str) for path in remembered_paths):
            raise InputError(f"{self.path}: {EVALUATION_FILE} does not name the files of the text; evaluate again")
        if document is not None:
            how["document"] = document
        paths = self._found(remembered_paths) if texts is None else list(texts)
        if not paths or (texts is None and "-" in paths):
            return None
        try:
            corpus = Corpus.from_files(paths, reading=ReadingOptions(**how))
            return corpus if self.sample is None else corpus.chosen(self.sample.chosen(), sample)
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
    """Open a run folder, a score table, or the column of one: FILE:COLUMN."""
    # hash_scores: read all of the table for that; otherwise `scores_sha256` says what its digest must be.
    # Raises InputError: nothing is there, a file is missing, or was changed after it was written.
    path = local_path(path)
    evaluation: dict[str, Any] | None = None
    settings: dict[str, Any] = {}
    scores, broken, digest, column = path, "", "", ""
    if path.is_dir():
        evaluation, settings, broken, digest = read_evaluation(path, hash_scores=hash_scores)
        scores = path / SCORES_FILE
    elif not path.exists():
        file, _, column = str(path).rpartition(":")
        scores = Path(file)
        if not scores.is_file():
            raise InputError(f"{path}: no such run; `lmgauge eval -m MODEL TEXT -o RUN` makes one")
    if broken and check_seal:
        raise InputError(f"{broken}; evaluate again")
    metadata = read_metadata(scores) if evaluation is None else evaluation
    origin = Origin.of_metadata(metadata, path.name)
    sha256 = str(metadata.get("fingerprints", {}).get("text", ""))
    return Run(origin.model, path, scores, origin, sha256, evaluation, settings, broken, digest, column=column)


def with_distinct_names(runs: Sequence[Run]) -> list[Run]:
    """Return the runs; those of the same name are called by their folders instead."""
    names = [run.name for run in runs]
    return [run if names.count(run.name) == 1 else replace(run, name=str(run.path).rstrip("/")) for run in runs]


def about(run: Run, corpus: Corpus) -> Run:
    """Return the run, now known to be about a text, which is read once for that."""
    sha256 = sha256_of(corpus)
    refuse_other_text(run, sha256)
    return replace(run, text_sha256=sha256)


# -- is it this text, is it this model? ---------------------------------------------------------------------------------
def refuse_other_text(run: Run, sha256: str) -> None:
    """Refuse a text that is not the one a run says it scored."""
    if run.text_sha256 not in ("", sha256):
        raise InputError(
            f"{run.path}: scored another text (fingerprint {run.text_sha256[:6]}) than the one named ({sha256[:6]}); "
            "name the text it scored, read in the same way"
        )


def unlike_model(stored: Floats, made: Floats, tolerance: float) -> Iterator[tuple[int, str]]:
    """Yield the rows of a run that are not those of a model, and how they differ, in words."""
    # stored, made: float64 [rows], nats, one column of both.
    with np.errstate(invalid="ignore"):  # two events of probability zero
        apart = np.flatnonzero((stored != made) & ~(np.abs(stored - made) <= tolerance))
    for row in apart.tolist():
        yield row, f"{stored[row]:.9g} is stored, the model gives {made[row]:.9g}"


def remembered(*runs: Run) -> Corpus | None:
    """Return the text that runs remember, where it is still there and unchanged; that of the first if they differ."""
    if len({run.text_sha256 for run in runs}) > 1:
        runs = runs[:1]
    for run in runs:
        corpus = run.corpus() if run.text_sha256 else None
        with suppress(InputError):  # it is not text any more
            if corpus is not None and sha256_of(corpus) == run.text_sha256:
                return corpus
    return None


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
        # As far as all rows at hand are of whole segments, so that no more is held than was read.
        end = min(table.whole_until for table in rows if not table.exhausted)
        end = min(max(begin + 1, end), begin + _SEGMENTS_AT_A_TIME)
        yield None, [table.take(begin, end) for table in rows]


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
