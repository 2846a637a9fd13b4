"""`lmgauge ter`."""

from __future__ import annotations

import click

from lmgauge.cli.command import Command, settings
from lmgauge.cli.task_options import TaskOptions, run_metric, task_options
from lmgauge.tasks.settings import TerOptions


@click.command(name="ter", cls=Command)
@settings(
    "options",
    TerOptions,
    "Options",
    click.option("--normalized", is_flag=True, help="Normalize and tokenize as Tercom does."),
    click.option("--no-punct", is_flag=True, help="Remove punctuation."),
    click.option("--asian-support", is_flag=True, help="With --normalized or --no-punct: also for Chinese and Japanese."),
    click.option("--case-sensitive", is_flag=True, help="Tell upper from lower case."),
)
@task_options
def ter(options: TerOptions, task: TaskOptions) -> None:
    """Measure the translation edit rate, as sacreBLEU does.

    Edits and shifts for 100 words of the reference. REFERENCE and HYPOTHESES (one file a system) are plain or packed
    text with a segment on each line, JSONL, TSV or Parquet; - is standard input. Systems are compared with the first.

    \b
    lmgauge ter ref.txt hyp.txt
    lmgauge ter ref.txt baseline.txt better.txt --normalized
    """
    from lmgauge.tasks import TER

    run_metric(TER(**options), task)
