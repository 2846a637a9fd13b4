"""`lmgauge ter`."""

from __future__ import annotations

from typing import Any

import click

from lmgauge.cli.task_options import run_metric, task_options


@click.command(name="ter")
@click.option("--normalized", is_flag=True, help="Normalise and tokenize as Tercom does.")
@click.option("--no-punct", is_flag=True, help="Remove punctuation.")
@click.option("--asian-support", is_flag=True, help="With --normalized or --no-punct: also for Chinese and Japanese.")
@click.option("--case-sensitive", is_flag=True, help="Tell upper from lower case.")
@task_options
def ter(normalized: bool, no_punct: bool, asian_support: bool, case_sensitive: bool, **options: Any) -> None:
    """Measure the translation edit rate, as sacreBLEU does.

    Edits and shifts for 100 words of the reference. REFERENCE and HYPOTHESES (one file a system) are plain or packed
    text with a segment on each line, JSONL, TSV or Parquet; - is standard input. Systems are held against the first.

    \b
    lmgauge ter ref.txt hyp.txt
    lmgauge ter ref.txt baseline.txt better.txt --normalized
    """
    from lmgauge.tasks.metrics.ter import TER

    metric = TER(normalized=normalized, no_punct=no_punct, asian_support=asian_support, case_sensitive=case_sensitive)
    run_metric(metric, options)
