"""`lmgauge.report`: one page to look at, of runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lmgauge.api.inputs import PATHS, Model, PathLike, opened
from lmgauge.base.choices import MOST_PASSAGES, Tracker
from lmgauge.base.declaration import chosen, verb
from lmgauge.base.display import Displayable
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.option_numbers import Bounds
from lmgauge.settings import DiagnosisSettings, RunText, ScoringOptions

if TYPE_CHECKING:
    from lmgauge.evaluation.overview import Overview
    from lmgauge.results import Audit, Report

Runs = PathLike | Displayable | Sequence[PathLike] | Sequence[Displayable]
Passages = Annotated[int, Bounds(0, MOST_PASSAGES)]
_PASSAGES = 20


@verb
def report(
    runs: Runs,
    output: PathLike | None = None,
    *,
    model: Model | None = None,
    audit: PathLike | Audit | None = None,
    segments: Passages = _PASSAGES,
    title: str | None = None,
    vega: PathLike | None = None,
    figures: PathLike | None = None,
    track: Tracker | None = None,
    about: RunText = RunText(),
    settings: DiagnosisSettings = DiagnosisSettings(),
    **fields: Any,
) -> Report:
    """Make one page of a run, or of several beside the first: the answer, charts, tables, and the text in color.

    It is one HTML file that opens with a double click, without a network. With --json the numbers are printed, and a page is
    written only if you name one.

    Args:
        runs: run folders (of `evaluate(..., output=...)` or `lmgauge eval -o`) or score tables: one, or
            several; each further one is compared with the first. Or the folder of a network that was trained here, for its
            curves; or results of this package, shown one after the other.
        output: the page to write, such as report.html.
        model: the model behind the one run; adds calibration.
        audit: what `lmgauge audit --json` printed of a run; the page shows its verdict. In Python also an `Audit`.
        segments: how many to show in color of each kind; the worst, the most changed and a sample.
        title: title of the page; the names of the runs if not given.
        vega: folder for the charts as Vega-Lite, with their data.
        figures: folder for the charts as SVG, PDF and PNG.
        track: log the runs with Trackio or wandb, as `lmgauge eval` does.
        about: the text that was scored, and the training text, which also gives n-gram models among the baselines.
        settings: what is said of runs, and how much of it.
        fields: those of `about` and `settings`, by name.

    Raises:
        InputError: a run is damaged or was changed, the text is not the one it scored, or the audit is of another run.
        MissingExtraError: what draws the page is not installed; the extra `report` brings it.
        UsageError: no run, or one named twice; a model beside several runs; an output that would replace an input; a number
            out of range.

    Shell:
        lmgauge report run-kn5/ -o kn5.html
        lmgauge report run-kn5/ run-wb5/ -o both.html

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus, evaluate, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = evaluate(train("witten-bell", text), text, output=f"{folder}/run")
        ...     made = report(f"{folder}/run", f"{folder}/report.html", text=text)
        >>> made
        <Report: wb3>
    """
    from lmgauge.api.export import log_runs, tracker_named
    from lmgauge.base.files import refuse_replacing
    from lmgauge.base.progress import say_progress
    from lmgauge.report.blocks import ChartData
    from lmgauge.report.documents import page_of, page_of_results
    from lmgauge.report.drawing import write_charts
    from lmgauge.report.page import check_installed

    shown, paths = _parted(runs)
    tracker = None if track is None else tracker_named(track)
    outputs = {"-o": output, "--vega": vega, "--figures": figures}
    refuse_replacing(outputs, [os.fspath(path) for path in (*paths, audit) if isinstance(path, PATHS)])  # before the work
    if output is not None or figures is not None:
        check_installed(output)
    for option, folder in (("vega", vega), ("figures", figures)):
        if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
            raise UsageError(f"{option} {os.fspath(folder)}: is a file; name a folder")
    made = page_of_results(shown, title) if shown else _of_training(paths, title)
    if made is None:
        result = overview_of(paths, model=model, audit=audit, segments=segments, about=about, settings=settings)
        say_progress("drawing the page")
        made = page_of(result, title, paths, text=about.text, train=about.train, model=model, audit=audit)
    if output is not None:
        made.save(output)
    charts = [block for block in made.document if isinstance(block, ChartData)]
    if vega is not None:
        write_charts(charts, vega, [".vl.json"])
    if figures is not None:
        write_charts(charts, figures)
    if tracker is not None:
        log_runs(tracker, paths)
    return made


@verb
def overview_of(
    runs: Sequence[PathLike],
    *,
    model: Model | None = None,
    audit: PathLike | Audit | None = None,
    segments: Passages = _PASSAGES,
    about: RunText = RunText(),
    settings: DiagnosisSettings = DiagnosisSettings(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Overview:
    """Work out all that a page says of runs."""
    from lmgauge.api.verdicts import behind
    from lmgauge.base.progress import say_progress
    from lmgauge.evaluation.audit.checks import read_audit
    from lmgauge.evaluation.overview import overview

    if len(runs) > 1 and model is not None:
        raise UsageError("a model goes with one run: calibration is of the model behind it")
    if len(runs) > 1 and "only" in chosen(settings):
        raise UsageError("only goes with one run: of several there are slices")
    say_progress("reading the runs")
    examined = [opened(run) for run in runs]
    sealed = read_audit(Path(audit)) if isinstance(audit, PATHS) else audit
    inputs = about.of(examined)
    inputs |= behind(model, about, settings, scoring, inputs["corpus"] or examined[0].corpus())
    return overview(examined, settings, segments=segments, audit=sealed, **inputs)


def _of_training(paths: Sequence[PathLike], title: str | None) -> Report | None:
    """Return the report of a network's training; None for anything else than the folder of one."""
    from lmgauge.base.files import local_path
    from lmgauge.models.network.tokens import history_of
    from lmgauge.report.documents import Report
    from lmgauge.report.models import history_blocks

    folder = paths[0]
    if len(paths) > 1 or not (local_path(folder) / "config.json").is_file():
        return None
    name = Path(folder).resolve().name
    history = history_of(Path(folder))
    if not history:
        raise InputError(
            f"{os.fspath(folder)}: is a model without curves of its training; evaluate it with `lmgauge eval -m {name} TEXT "
            "-o RUN`, and name the run"
        )
    return Report(title or name, history_blocks(history), {"history": history})


def _parted(runs: Runs) -> tuple[list[Displayable], list[PathLike]]:
    """Return the results and the paths among what a report is asked of; there are only ones of a kind."""
    from lmgauge.base.files import local_path

    if not isinstance(runs, (*PATHS, Displayable, Sequence)):
        raise UsageError(f"a report is of a run, or of a list of runs, not of {type(runs).__name__}")
    each = [runs] if isinstance(runs, (*PATHS, Displayable)) else list(runs)
    if not each:
        raise UsageError("a report needs a run: a folder that `lmgauge eval -o` wrote, or a score table")
    shown = [one for one in each if isinstance(one, Displayable)]
    paths = [one for one in each if isinstance(one, PATHS)]
    if max(len(shown), len(paths)) < len(each):
        raise UsageError("a report is of paths of runs, or of results of lmgauge: give the paths alone, or the results")
    if len({os.path.realpath(local_path(path)) for path in paths}) < len(paths):
        raise UsageError("the same run is named twice")
    return shown, paths
