"""`lmgauge chrf`."""

from __future__ import annotations

import click

from lmgauge.cli.command import Command, settings
from lmgauge.cli.task_options import TaskOptions, run_metric, task_options
from lmgauge.tasks.settings import ChrfOptions


@click.command(name="chrf", cls=Command)
@settings(
    "options",
    ChrfOptions,
    "Options",
    click.option(
        "--char-order", type=click.IntRange(0, 64), default=6, show_default=True, help="Longest character n-grams."
    ),
    click.option("--word-order", type=click.IntRange(0, 64), default=0, show_default=True, help="Longest word n-grams."),
    click.option("--beta", type=float, default=2, show_default=True, help="Weight of recall over precision."),
    click.option("--lowercase", is_flag=True, help="Ignore case."),
    click.option("--whitespace", is_flag=True, help="White space is part of character n-grams."),
    click.option("--eps-smoothing", is_flag=True, help="Smooth as chrF++.py, NLTK and Moses do; else by effective order."),
)
@click.option("-p", "--plus-plus", is_flag=True, help="chrF++: the same as --word-order 2.")
@task_options
def chrf(options: ChrfOptions, plus_plus: bool, task: TaskOptions) -> None:
    """Score translations with chrF or chrF++, as sacreBLEU does.

    REFERENCE and HYPOTHESES (one file a system) are plain or packed text with a segment on each line, JSONL, TSV or
    Parquet; - is standard input. Systems are compared with the first.

    \b
    lmgauge chrf ref.txt hyp.txt
    lmgauge chrf ref.txt baseline.txt better.txt --plus-plus
    """
    from lmgauge.tasks import ChrF

    if plus_plus:
        if options["word_order"] not in (0, 2):
            raise click.UsageError(f"--plus-plus means --word-order 2, not {options['word_order']}: give one of the two")
        options["word_order"] = 2
    run_metric(ChrF(**options), task)
