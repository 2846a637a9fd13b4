"""`lmgauge f1`."""

from __future__ import annotations

from typing import Any

import click

from lmgauge.choices import AVERAGES
from lmgauge.cli.task_options import run_label_scores, task_options


@click.command(name="f1")
@click.option(
    "--average",
    type=click.Choice(AVERAGES),
    default="macro",
    show_default=True,
    help="Which F1 is tested: labels alike, of the sums, or by how often they are gold.",
)
@click.option("--labels", metavar="A,B,...", help="The labels that count; all that occur if not given.")
@task_options
def f1(average: str, labels: str | None, **options: Any) -> None:
    """Measure precision, recall and F1 of labelled outputs.

    REFERENCE holds the right labels and HYPOTHESES (one file a system) those of systems, one on each line, or in a
    field of JSONL, TSV or Parquet. Systems are held against the first.

    \b
    lmgauge f1 gold.txt tagger-a.txt tagger-b.txt
    lmgauge f1 gold.tsv a.tsv b.tsv --field label --average micro
    """
    unfit = next((n for n in ("more_references", "sentence", "by") if options[n]), None)
    if unfit is not None:
        name = {"more_references": "reference"}.get(unfit, unfit)
        raise click.UsageError(f"--{name} is not for labels")
    run_label_scores(average, None if labels is None else labels.split(","), options)
