"""`lmgauge.export`: results in the forms of other programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime
from inspect import signature
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lmgauge.api.inputs import PATHS, PathLike, opened
from lmgauge.base.choices import Tracker
from lmgauge.base.declaration import verb
from lmgauge.base.errors import LmgaugeError, UsageError, needing
from lmgauge.numerics.figures import COMPARED, TITLES

if TYPE_CHECKING:
    from lmgauge.report.exports import ExportedRun

Relationship = Literal["first_party", "third_party", "collaborative", "other"]
_COMPARED = {figure.name for figure in COMPARED}


@verb
def export(
    runs: PathLike | Sequence[PathLike],
    *,
    to: str,
    output: PathLike | None = None,
    figures: Sequence[str] = (),
    names: Sequence[str] = (),
    dataset: str | None = None,
    task: str | None = None,
    date: str | None = None,
    source: str | None = None,
    organization: str | None = None,
    relationship: Relationship | None = None,
) -> dict[str, str]:
    """Write results in the form of another program: `lmgauge export`.

    With the figures go their intervals, the signature and a digest of the rows that they are of, where the form has room.
    The same run gives the same bytes.

    Args:
        runs: run folders: of `lmgauge eval -o`, or of scores of items (`lmgauge import --score`).
        to: the form: csv, latex, hub, every-eval-ever, harness, inspect; or one of a plug-in.
        output: file to write, or a folder (a new name without an ending is one); standard output if not given.
        figures: which ones, by their names in JSON: perplexity,bits_per_byte; those that `compare` knows if not given.
        names: what the models are called there, in the order of the runs; in a shell, a comma ends a name.
        dataset: what the dataset is called on the Hub, such as cais/hle.
        task: what the task is called there; of the run's own name if not given.
        date: of the evaluation, such as 2026-01-15; when the run was written if not given.
        source: address of where more is to be seen, such as the logs.
        organization: who evaluated, for every-eval-ever.
        relationship: of these to the makers of the model, for every-eval-ever.

    Returns:
        The text of each file by its path, or by its name where there is no output.

    Raises:
        InputError: a run is damaged or was changed.
        OutputError: a file cannot be written.
        UsageError: the form is not known, needs what is not given, or has no room for what is given.

    Shell:
        lmgauge export run-kn5/ run-wb5/ --to latex -o table.tex
        lmgauge export run-acc/ --to hub --dataset cais/hle --task default -o model/

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus, evaluate, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = evaluate(train("witten-bell", text, order=2), text, output=f"{folder}/wb2")
        ...     table = export(f"{folder}/wb2", to="latex", figures=["perplexity"])["results.tex"]
        >>> print(*table.splitlines()[:5], sep="\\n")
        \\begin{tabular}{lr}
        \\toprule
        model & perplexity \\\\
        \\midrule
        wb2 & 1.75 \\\\
    """
    from lmgauge.base.files import making_parents, refuse_replacing, writing
    from lmgauge.report.exports import EXPORTERS

    paths = [runs] if isinstance(runs, PATHS) else list(runs)
    refuse_replacing({"-o": output}, paths)
    exporter = EXPORTERS.find(to)
    if exporter is None:
        raise UsageError(f"unknown form {to!r}: choose one of {', '.join(EXPORTERS.names())}")
    if len(names) not in (0, len(paths)):
        raise UsageError(f"{len(names)} names for {len(paths)} runs: give one for each, in their order")
    made = [_exported(path, figures, name, task, date) for path, name in zip_longest(paths, names)]
    known = signature(exporter)
    choices = {"dataset": dataset, "source": source, "organization": organization, "relationship": relationship}
    choices |= {"task": task} if "task" in known.parameters else {}
    options = {name: value for name, value in choices.items() if value is not None}
    try:
        known.bind(made, **options)
    except TypeError as error:
        lacking, unused = ([name for name in names if f"'{name}'" in str(error)] for names in (known.parameters, options))
        said = [f"needs --{name} ({name}=...)" for name in lacking] + [f"has no use for {name}" for name in unused]
        raise UsageError(f"the form {to} {said[0] if said else error}") from error
    files: dict[str, str] = {}
    for name, text in exporter(made, **options):
        if files.setdefault(name, text) is not text:
            raise UsageError(f"two runs would be one file, {name}: give them --names, or export each on its own")
    if output is None or os.fspath(output) == "-":
        return files
    new_folder = not os.path.exists(output) and (os.fspath(output).endswith("/") or not Path(output).suffix)
    below = len(files) > 1 or os.path.isdir(output) or new_folder
    placed = {str(Path(output, name)) if below else os.fspath(output): text for name, text in files.items()}
    for path, text in placed.items():
        with making_parents(Path(path)), writing(path) as file:
            file.write(text.encode(errors="replace"))  # a lone surrogate has no UTF-8
    return placed


def _exported(path: PathLike, names: Sequence[str], model: str | None, task: str | None, date: str | None) -> ExportedRun:
    """Return what leaves of the run in a folder: the figures named, or else those that may be compared."""
    from lmgauge.report.exports import evaluation_exported, items_exported
    from lmgauge.tasks.items.table import is_items_folder, read_items

    run = items_exported(read_items(path)) if is_items_folder(path) else evaluation_exported(opened(path))
    written = datetime.fromtimestamp(int(max(entry.stat().st_mtime for entry in os.scandir(path))), UTC)
    try:
        moment = written if date is None else datetime.fromisoformat(date)
    except ValueError as error:
        raise UsageError(f"date {date!r} is not one: write 2026-01-15, or 2026-01-15T10:30:00Z") from error
    known = {figure.name: figure for figure in run.figures}
    if odd := [name for name in names if name not in known]:
        raise UsageError(f"{run.model} has no figure {odd[0]!r}: choose of {', '.join(known)}")
    chosen = names or [name for name in known if name in _COMPARED or name not in TITLES]
    run = replace(run, model=model or run.model, task=task or run.task, figures=tuple(known[name] for name in chosen))
    return replace(run, moment=moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def tracker_named(name: Tracker) -> Any:
    """Return the module of a tracker, before there is anything to log."""
    with needing(name, extra="track"):
        return __import__(name)


def log_runs(tracker: Any, runs: Sequence[PathLike]) -> None:
    """Log each run with its intervals, its signature and the digest of its rows, by calls that all trackers have."""
    for run in [_exported(path, (), None, None, None) for path in runs]:
        figures = {one.name: one.value for one in run.figures}
        for one in run.figures:
            if one.interval is not None:
                figures |= {f"{one.name}_low": one.interval.low, f"{one.name}_high": one.interval.high}
        try:
            with redirect_stdout(sys.stderr):  # a tracker talks; standard output is for results
                tracker.init(project="lmgauge", name=run.model, config={"text": run.task, **run.provenance()})
                tracker.log(figures)
                tracker.finish()
        except Exception as error:  # trackers raise their own classes, right under Exception
            raise LmgaugeError(f"{tracker.__name__} did not take {run.model}, which lies in its folder: {error}") from error
