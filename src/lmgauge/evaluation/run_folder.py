"""An evaluation is a folder, `evaluation.json` and `scores.parquet`: what is in it, how it is written, how it is read."""

from __future__ import annotations

import logging
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lmgauge.decoding import decode
from lmgauge.digests import file_sha256
from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.results import Evaluation
from lmgauge.files import folder_named, is_special, locking, writing_directory
from lmgauge.places import read_json, write_json
from lmgauge.scores import ScoreBatch, ScoreWriter
from lmgauge.version import __version__
from lmgauge.work.manifest import changed_file, sealed

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

_LOG = logging.getLogger(__name__)
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


class RunFolders:
    """Run folders in the making, one a model; they appear when the block ends well, and not at all when it does not."""

    # output: the folder; with several models each has one of its own in it.

    def __init__(self, output: str | Path, names: Sequence[str]) -> None:
        self._names = names
        own = [folder_named(name) for name in names]
        twice = next((name for name in own if own.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"two models are called {twice!r}, which would be one folder: evaluate each on its own")
        self._targets = [Path(output)] if len(names) == 1 else [Path(output) / name for name in own]
        self._stack, self._tables = ExitStack(), ExitStack()
        self._metadata: list[dict[str, object]] = [{"model": name} for name in names]
        self._folders: list[Path] = []
        self._writers: list[ScoreWriter] = []
        self._unfinished = Path(output).parent / f".{Path(output).name}.unfinished"
        self._journals: list[Any] = []

    def __enter__(self) -> Self:
        with ExitStack() as started:
            for target, metadata in zip(self._targets, self._metadata, strict=True):
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
        self._stack.enter_context(locking(self._unfinished / "lock", self._targets[0]))

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
            write_evaluation(folder, own, chosen)
        if resumed := sum(journal.taken for journal in self._journals):
            _LOG.warning("%s events had been scored before the last run was interrupted", f"{resumed:,}")
