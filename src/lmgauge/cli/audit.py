"""`lmgauge audit`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from lmgauge.choices import AUDIT_LEVELS, OVERLAP_UNITS, OverlapUnit
from lmgauge.cli.command import CommaList, Command, names_of, refuse_given, settings, under, whole_number
from lmgauge.cli.options import (
    html_option,
    json_option,
    read_texts,
    reading_settings,
    refuse_field,
    reserved_option,
    scored_text_option,
    scoring_settings,
    seed_option,
    threads_option,
    training_text,
)
from lmgauge.cli.say import Page, answer, showing_progress
from lmgauge.evaluation.audit.results import AuditSettings
from lmgauge.models.network.options import ScoringOptions
from lmgauge.text.formats import TEXT_FORMATS
from lmgauge.text.reading_options import ReadingOptions

_OF_MODEL = ("contexts", "sum_tolerance", "compression_bytes", "exhaustive")


@dataclass(frozen=True)
class _Named:
    """The texts besides the one that is audited."""

    texts: tuple[str, ...]
    train: tuple[str, ...]
    overlap_unit: OverlapUnit


@click.command(cls=Command, name="audit")
@click.argument("what", nargs=-1, type=click.Path(allow_dash=True), metavar="TEXT... | RUN")
@click.option("-m", "--model", type=click.Path(), help="Model folder, ARPA or KenLM file; without it a RUN is audited.")
@settings(
    "named",
    _Named,
    "Options",
    scored_text_option,
    training_text("for level 4"),
    click.option(
        "--overlap-unit",
        type=click.Choice(OVERLAP_UNITS),
        default="word",
        help="Level 4: runs of 13 words or more; or 25 characters, for scripts that do not space words.",
    ),
)
@settings(
    "checks",
    AuditSettings,
    "Checks",
    click.option(
        "--levels",
        default=",".join(AUDIT_LEVELS),
        metavar="NAMES",
        type=CommaList(str, "coverage"),
        show_default=False,
        help="Which levels, e.g. coverage,causality; all if not given.",
    ),
    click.option(
        "--max-overlap",
        type=click.FloatRange(0, 1),
        default=AuditSettings.max_overlap,
        help="Level 4: share of the bytes of TEXT that may lie in runs or whole lines of the training text.",
    ),
    whole_number(
        "--contexts", default=AuditSettings.contexts, help="Level 2: distributions to sum, at contexts drawn from TEXT."
    ),
    click.option(
        "--sum-tolerance",
        type=click.FloatRange(0, 1e-3),
        default=AuditSettings.sum_tolerance,
        help="Level 2: how far probabilities may sum from 1; rounded ones, as in some ARPA files, need 1e-5.",
    ),
    whole_number(
        "--compression-bytes", default=AuditSettings.compression_bytes, help="Level 5: bytes of TEXT to compress and decode."
    ),
    click.option("--exhaustive", is_flag=True, help="All contexts, segments and bytes instead of samples; slow."),
    seed_option,
)
@under("Output", threads_option, html_option, json_option)
@reading_settings()
@scoring_settings(reserved_option)
def audit(
    what: tuple[str, ...],
    model: str | None,
    named: _Named,
    checks: AuditSettings,
    reading: ReadingOptions,
    scoring: ScoringOptions,
    threads: int | None,
    html: str | None,
    as_json: bool,
) -> None:
    """Check a result, or show what is wrong with it.

    With -m, a model on TEXT (files, globs or -, standard input, also if none is named). Without it a RUN, a folder that
    `lmgauge eval -o` wrote or a score table, for what can be seen without the model; with it, also whether the model
    made the run. Exits with 1 where a check fails.

    \b
    lmgauge audit -m kn5/ test.txt --train train.txt
    lmgauge audit run-kn5/
    lmgauge audit run-kn5/ -m kn5/
    """
    from lmgauge.api.audit import audit as audit_model
    from lmgauge.api.audit import audit_run
    from lmgauge.evaluation.run_folder import EVALUATION_FILE
    from lmgauge.report import audit as report

    is_run = len(what) == 1 and (Path(what[0]) / EVALUATION_FILE).exists()
    if model is None:
        refuse_given((*names_of(ScoringOptions), *_OF_MODEL), "needs the model: name it with -m")
        if len(what) != 1 or what == ("-",) or Path(what[0]).suffix in TEXT_FORMATS["text"].suffixes:
            raise click.UsageError("name a model with -m and its TEXT, or one RUN")
    elif named.texts and not is_run:
        raise click.UsageError("--text belongs to a RUN; with -m the texts stand alone: lmgauge audit -m MODEL TEXT")
    corpus = None if is_run or model is None else read_texts(what, reading, alone=False)
    training = read_texts(named.train, reading, alone=False) if named.train else None
    refuse_field(training, corpus)
    with showing_progress():
        if model is None:
            result = audit_run(
                what[0],
                text=named.texts or None,
                train=training,
                levels=checks.levels,
                max_overlap=checks.max_overlap,
                overlap_unit=named.overlap_unit,
                threads=threads,
            )
        else:
            result = audit_model(
                model,
                corpus or named.texts or None,
                run=what[0] if is_run else None,
                train=training,
                overlap_unit=named.overlap_unit,
                scoring=scoring,
                threads=threads,
                **vars(checks),
            )
    page = None if html is None else Page(f"Audit of {result.model}", report.blocks(result)[1:])
    answer(result, lambda: report.blocks(result), as_json=as_json, html=html, page=page)
    if not result.passed:
        click.get_current_context().exit(1)
