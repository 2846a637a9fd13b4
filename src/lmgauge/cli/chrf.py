"""`lmgauge chrf`."""

from __future__ import annotations

from typing import Any

import click

from lmgauge.cli.task_options import run_metric, task_options


@click.command(name="chrf")
@click.option("--char-order", type=click.IntRange(0, 64), default=6, show_default=True, help="Longest character n-grams.")
@click.option("--word-order", type=click.IntRange(0, 64), default=0, show_default=True, help="Longest word n-grams.")
@click.option("-p", "--plus-plus", is_flag=True, help="chrF++: the same as --word-order 2.")
@click.option("--beta", type=float, default=2, show_default=True, help="Weight of recall over precision.")
@click.option("--lowercase", is_flag=True, help="Ignore case.")
@click.option("--whitespace", is_flag=True, help="White space is part of character n-grams.")
@click.option("--eps-smoothing", is_flag=True, help="Smooth as chrF++.py, NLTK and Moses do; else by effective order.")
@task_options
def chrf(
    char_order: int,
    word_order: int,
    plus_plus: bool,
    beta: float,
    lowercase: bool,
    whitespace: bool,
    eps_smoothing: bool,
    **options: Any,
) -> None:
    """Score translations with chrF or chrF++, as sacreBLEU does.

    REFERENCE and HYPOTHESES (one file a system) are plain or packed text with a segment on each line, JSONL, TSV or
    Parquet; - is standard input. Systems are held against the first.

    \b
    lmgauge chrf ref.txt hyp.txt
    lmgauge chrf ref.txt baseline.txt better.txt --plus-plus
    """
    from lmgauge.tasks.metrics.chrf import ChrF

    if plus_plus and word_order not in (0, 2):
        raise click.UsageError(f"--plus-plus means --word-order 2, not {word_order}: give one of the two")
    metric = ChrF(
        char_order=char_order,
        word_order=2 if plus_plus else word_order,
        beta=beta,
        lowercase=lowercase,
        whitespace=whitespace,
        eps_smoothing=eps_smoothing,
    )
    run_metric(metric, options)
