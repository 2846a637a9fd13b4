"""`lmgauge f1`."""

from __future__ import annotations

import click

from lmgauge.choices import AVERAGES, Average
from lmgauge.cli.command import Command, refuse_given
from lmgauge.cli.task_options import TaskOptions, print_result, task_options, what_is_drawn


@click.command(name="f1", cls=Command)
@click.option(
    "--average",
    type=click.Choice(AVERAGES),
    default="macro",
    help="Which F1 is tested: labels alike, of the sums, or by how often they are gold.",
)
@click.option("--labels", metavar="A,B,...", help="The labels that count; all that occur if not given.")
@task_options
def f1(average: Average, labels: str | None, task: TaskOptions) -> None:
    """Measure precision, recall and F1 of labeled outputs.

    REFERENCE holds the right labels and HYPOTHESES (one file a system) those of systems, one on each line, or in a
    field of records (--format). Systems are compared with the first.

    \b
    lmgauge f1 gold.txt tagger-a.txt tagger-b.txt
    lmgauge f1 gold.tsv a.tsv b.tsv --field label --average micro
    """
    from lmgauge.tasks import score_label_files

    refuse_given(("segments",), "is not for labels")
    unfit = {"reference": task.files.more_references, "sentence": task.printing.sentence, "group": task.reading.group}
    for name, value in unfit.items():
        if value:
            raise click.UsageError(f"--{name} is not for labels")
    systems = score_label_files(
        gold=task.files.reference,
        predicted=task.files.hypotheses,
        labels=None if labels is None else labels.split(","),
        average=average,
        reading=task.reading,
        settings=what_is_drawn(task),
    )
    print_result(systems, task.printing)
