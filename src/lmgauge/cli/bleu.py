"""`lmgauge bleu`."""

from __future__ import annotations

from typing import Any

import click

from lmgauge.choices import BLEU_SMOOTHING_VALUES, BLEU_TOKENIZERS, REFERENCE_LENGTHS
from lmgauge.cli.task_options import run_metric, task_options


@click.command(name="bleu")
@click.option("--order", type=click.IntRange(1, 64), default=4, show_default=True, help="Longest n-grams that count.")
@click.option("--weights", metavar="W,W,...", help="Weight of each order; all the same if not given.")
@click.option(
    "-s",
    "--smoothing",
    type=click.Choice(list(BLEU_SMOOTHING_VALUES)),
    default="exp",
    show_default=True,
    help="What becomes of orders without a match.",
)
@click.option("--smoothing-value", type=float, metavar="X", help="Of floor (0.1 if not given) and add-k (1).")
@click.option("--effective-order", is_flag=True, help="Leave out orders that a text is too short for; on for --sentence.")
@click.option("--lowercase", is_flag=True, help="Ignore case.")
@click.option(
    "--tokenizer", type=click.Choice(BLEU_TOKENIZERS), default="13a", show_default=True, help="How texts are cut into words."
)
@click.option(
    "--reference-length",
    type=click.Choice(REFERENCE_LENGTHS),
    default="closest",
    show_default=True,
    help="Which of several references' lengths the brevity penalty takes.",
)
@task_options
def bleu(
    order: int,
    weights: str | None,
    smoothing: str,
    smoothing_value: float | None,
    effective_order: bool,
    lowercase: bool,
    tokenizer: str,
    reference_length: str,
    **options: Any,
) -> None:
    """Score translations with BLEU, as sacreBLEU does.

    REFERENCE and HYPOTHESES (one file a system) are plain or packed text with a segment on each line, JSONL, TSV or
    Parquet; - is standard input. Systems are held against the first.

    \b
    lmgauge bleu ref.txt hyp.txt
    lmgauge bleu ref.txt baseline.txt better.txt --json
    lmgauge bleu ref1.txt -r ref2.txt hyp.txt --tokenizer intl
    """
    from lmgauge.tasks.metrics.bleu import BLEU

    metric = BLEU(
        order=order,
        weights=None if weights is None else _numbers(weights),
        smoothing=smoothing,
        smoothing_value=smoothing_value,
        effective_order=effective_order or options["sentence"],
        lowercase=lowercase,
        tokenizer=tokenizer,
        reference_length=reference_length,
    )
    run_metric(metric, options)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise click.UsageError(f"--weights {text}: numbers with commas between them are needed, such as 0.5,0.5") from error
