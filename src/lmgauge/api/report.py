"""`lmgauge.report`: one page to look at, of runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lmgauge.api.diagnose import training_rungs, training_words
from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, loaded, opened, says_documents, text_of
from lmgauge.choices import DEFAULT_SEED
from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.audit.results import Audit
from lmgauge.evaluation.overview import Overview, OverviewSettings
from lmgauge.evaluation.overview import overview as _overview
from lmgauge.evaluation.passages import PassageSettings
from lmgauge.files import local_path, refuse_replacing
from lmgauge.json_text import from_json
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import read_config
from lmgauge.models.sampling import sample_ids
from lmgauge.progress import say_progress
from lmgauge.report import overview as report_of_runs
from lmgauge.report.blocks import Document, Verdict
from lmgauge.report.documents import document_of
from lmgauge.report.formats import names_in_brief
from lmgauge.report.notebook import write_page
from lmgauge.report.training import history_blocks
from lmgauge.shown import Shown

Runs = PathLike | Shown | Sequence[PathLike] | Sequence[Shown]


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """A page, before it is written.

    Attributes:
        title: of the page.
        document: what is on it: blocks, in the order of reading.
        numbers: behind it, as plain values.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> page = lmgauge.report(lmgauge.evaluate(lmgauge.train("witten-bell", text), text), title="Cats")
        >>> page.title, page.html()[:15]
        ('Cats', '<!doctype html>')
    """

    title: str
    document: Document
    numbers: Mapping[str, Any]

    @property
    def verdicts(self) -> Document:
        """The answers on the page, in order."""
        return tuple(block for block in self.document if isinstance(block, Verdict))

    def html(self) -> str:
        """Return the page: one HTML file that opens without a network.

        Raises:
            MissingExtraError: what draws it is not installed; the extra `report` brings it.
        """
        from lmgauge.report.page import render

        return render(self.document, self.title)

    def save(self, path: PathLike) -> Path:
        """Write the page; the file appears whole, or not at all.

        Args:
            path: of the file; one that is there is replaced.

        Returns:
            Where it lies.

        Raises:
            MissingExtraError: what draws the page is not installed; the extra `report` brings it.
            OutputError: the file cannot be written.
        """
        return write_page(self.document, path, self.title)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values, full precision; infinities stay floats."""
        return dict(self.numbers)

    def _in_brief(self) -> str:
        return self.title

    def _document(self) -> Document:
        return self.document


def report(
    runs: Runs,
    output: PathLike | None = None,
    *,
    text: Text | None = None,
    document: str | None = None,
    train: Text | None = None,
    model: Model | None = None,
    audit: PathLike | Audit | None = None,
    segments: int = PassageSettings.segments,
    title: str | None = None,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
) -> Report:
    """Make one page of a run, or of several beside the first: the answer, charts, tables, and the text in color.

    It is one HTML file that opens by a double click, without a network: `lmgauge report`.

    Args:
        runs: run folders (of `evaluate(..., output=...)`) or score tables: one, or a list; each further one is compared with
            the first. Or the folder of a network that was trained here, for its curves; or results of this package, shown
            one after the other.
        output: the file to write, such as "report.html"; None writes none.
        text: what they scored; if not given, where the runs remember it.
        document: what is independent, if not as the runs say: see `Corpus.from_files`; needs the text.
        train: training text, for slices by what was seen in it; of one run also for n-gram models among the baselines.
        model: the model behind the one run, for calibration.
        audit: what `lmgauge audit --json` wrote of a run, as a path, or an `Audit`: the page shows its verdict.
        segments: how many segments of each kind to show: the worst, the most changed and a sample.
        title: of the page; the names of the runs if not given.
        seed: of whatever is drawn.
        threads: how many; no number depends on it.

    Raises:
        InputError: a run is damaged or was changed, the text is not the one it scored, or the audit is of another run.
        MissingExtraError: what draws the page is not installed; the extra `report` brings it.
        UsageError: no run, or one named twice; a model beside several runs; an output that would replace an input; a number
            out of range.

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
    shown = _of_results(runs, title) or _of_training(runs, title)
    if shown is not None:
        return _saved(shown, output, [os.fspath(runs)] if isinstance(runs, PATHS) else [])
    named = _listed(runs)
    settings = OverviewSettings(passages=PassageSettings(segments=segments, seed=seed), seed=seed, threads=threads)
    inputs = [os.fspath(path) for path in (*named, *([audit] if isinstance(audit, PATHS) else []))]
    refuse_replacing({"-o": output}, inputs)  # before the work
    sealed = _read_audit(audit) if isinstance(audit, PATHS) else audit
    result = overview_of(named, settings, text=text, document=document, train=train, model=model, audit=sealed)
    say_progress("drawing the page")
    return _saved(page_of(result, title), output, inputs)


def overview_of(
    runs: Sequence[PathLike],
    settings: OverviewSettings,
    *,
    text: Text | None = None,
    document: str | None = None,
    train: Text | None = None,
    model: Model | None = None,
    scoring: ScoringOptions | None = None,
    sampled: bool = False,
    audit: Audit | None = None,
) -> Overview:
    """Work out all that a page says of runs.

    Args:
        runs: run folders or score tables; each further one is compared with the first.
        settings: how much to say.
        text, document, train, model: as `report`.
        scoring: how a model named by its path scores.
        sampled: also look at text sampled from the model.
        audit: of one of the runs.

    Raises:
        InputError: a run is damaged or was changed, the text is not the one it scored, or the audit is of another run.
        UsageError: a model beside several runs.
    """
    if model is not None and len(runs) > 1:
        raise UsageError("a model goes with one run: calibration is of the model behind it")
    say_progress("reading the runs")
    examined = [opened(run) for run in runs]
    behind = None if model is None else loaded(model, scoring)
    drawing = None
    if behind is not None and sampled:
        drawing = partial(sample_ids, behind, seed=settings.seed, threads=settings.threads)
    return _overview(
        examined,
        settings,
        corpus=None if text is None and document is None else text_of(examined, text, document),
        documents_of_text=says_documents(text, document),
        training=None if train is None else partial(training_words, corpus_of(train), settings.threads),
        rungs=None if train is None else partial(training_rungs, corpus_of(train), settings.threads),
        model=behind,
        sample=drawing,
        audit=audit,
        progress=say_progress,
    )


def page_of(overview: Overview, title: str | None = None) -> Report:
    """Return the page of what was worked out.

    Args:
        overview: of one run or several.
        title: of the page; the names of the runs if not given.
    """
    return Report(title or names_in_brief(overview.runs), report_of_runs.blocks(overview), overview.to_dict())


def _saved(made: Report, output: PathLike | None, inputs: Sequence[str]) -> Report:
    """Return a report, written where that is asked for."""
    refuse_replacing({"-o": output}, inputs)
    if output is not None:
        made.save(output)
    return made


def _of_results(results: Runs, title: str | None) -> Report | None:
    """Return the report of results; None where these are paths."""
    each = [results] if isinstance(results, Shown) else results
    if isinstance(each, PATHS) or not isinstance(each, Sequence) or not each or not isinstance(each[0], Shown):
        return None
    if not all(isinstance(one, Shown) for one in each):
        raise UsageError("a report is of runs, or of results: give the paths alone, or the results")
    numbers = [one.to_dict() for one in each if hasattr(one, "to_dict")]
    names = [type(one).__name__ for one in each]
    return Report(title or names_in_brief(names), document_of(each), {"results": numbers})


def _of_training(folder: Runs, title: str | None) -> Report | None:
    """Return the report of a network's training; None for anything else than the folder of one.

    Raises:
        InputError: the folder does not say how the network was trained.
    """
    if not isinstance(folder, PATHS) or not (local_path(folder) / "config.json").is_file():
        return None
    name = Path(folder).resolve().name
    try:
        config: Any = read_config(Path(folder))
        history = config["lmgauge"]["training"]["history"]
        document = history_blocks(history)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{os.fspath(folder)}: is a model without curves of its training; evaluate it with `lmgauge eval -m {name} TEXT "
            "-o RUN`, and name the run"
        ) from error
    return Report(title or name, document, {"history": history})


def _listed(runs: Runs) -> list[PathLike]:
    """Return one run or several as a list.

    Raises:
        UsageError: there is none, or one is named twice.
    """
    named = [runs] if isinstance(runs, PATHS) else list(runs) if isinstance(runs, Sequence) else []
    if not isinstance(runs, (*PATHS, Sequence)):
        raise UsageError(f"a report is of a run, or of a list of runs, not of {type(runs).__name__}")
    if not named:
        raise UsageError("a report needs a run: a folder that `lmgauge eval -o` wrote, or a score table")
    for path in named:
        if not isinstance(path, PATHS):
            raise UsageError(f"a report is of paths of runs, or of results of lmgauge, not of {type(path).__name__}")
    paths = [os.fspath(path) for path in named if isinstance(path, PATHS)]
    if len({os.path.realpath(local_path(path)) for path in paths}) < len(paths):
        raise UsageError("the same run is named twice")
    return list(paths)


def _read_audit(path: PathLike) -> Audit:
    """Return the audit that a file holds.

    Raises:
        InputError: there is no such file, or it holds something else.
    """
    try:
        plain = from_json(Path(path).read_bytes(), own=True)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not JSON"
        raise InputError(
            f"{os.fspath(path)}: cannot be read as an audit ({why}); write one with `lmgauge audit RUN --json`"
        ) from error
    try:
        return Audit.from_dict(plain)
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: {error}") from error
