"""`lmgauge bleu`, `lmgauge chrf` and `lmgauge ter`."""

from __future__ import annotations

import click

from lmgauge.choices import BLEU_SMOOTHING_VALUES, BLEU_TOKENIZERS, REFERENCE_LENGTHS
from lmgauge.cli.command import CommaList, Command, Number, options_given, settings
from lmgauge.cli.task_options import TaskOptions, run_metric, translation_options
from lmgauge.tasks.settings import BleuOptions, ChrfOptions, TerOptions


@click.command(name="bleu", cls=Command)
@settings(
    "options",
    BleuOptions,
    "Options",
    click.option("--order", type=click.IntRange(1, 64), default=4, show_default=True, help="Longest n-grams that count."),
    click.option(
        "--weights",
        metavar="W,W,...",
        type=CommaList(float, "0.5,0.5"),
        help="Weight of each order; all the same if not given.",
    ),
    click.option(
        "--smoothing",
        type=click.Choice(list(BLEU_SMOOTHING_VALUES)),
        default="exp",
        show_default=True,
        help="What becomes of orders without a match.",
    ),
    click.option("--smoothing-value", type=Number(), metavar="X", help="Of floor (0.1 if not given) and add-k (1)."),
    click.option("--effective-order", is_flag=True, help="Leave out orders a text is too short for; on for --sentence."),
    click.option("--lowercase", is_flag=True, help="Ignore case."),
    click.option(
        "--tokenizer",
        type=click.Choice(BLEU_TOKENIZERS),
        default="13a",
        show_default=True,
        help="How texts are cut into words.",
    ),
    click.option(
        "--reference-length",
        type=click.Choice(REFERENCE_LENGTHS),
        default="closest",
        show_default=True,
        help="Which of several references' lengths the brevity penalty takes.",
    ),
)
@translation_options
def bleu(options: BleuOptions, task: TaskOptions) -> None:
    """Score translations with BLEU, as sacreBLEU does.

    REFERENCE and HYPOTHESES (one file a system) are plain or packed text with a segment on each line, or records
    (--format); - is standard input. Systems are compared with the first.

    \b
    lmgauge bleu ref.txt hyp.txt
    lmgauge bleu ref.txt baseline.txt better.txt --json
    lmgauge bleu ref1.txt -r ref2.txt hyp.txt --tokenizer intl
    lmgauge bleu -t wmt22 -l en-de hyp.txt
    """
    from lmgauge.tasks import BLEU
    from lmgauge.tasks.public_sets import TOKENIZERS

    target = (task.files.language_pair or "").rpartition("-")[2]
    if "tokenizer" not in options_given():
        options["tokenizer"] = TOKENIZERS.get(target, options["tokenizer"])

    options["effective_order"] = options["effective_order"] or task.printing.sentence
    run_metric(BLEU(**options), task, options)


@click.command(name="chrf", cls=Command)
@settings(
    "options",
    ChrfOptions,
    "Options",
    click.option(
        "--char-order", type=click.IntRange(0, 64), default=6, show_default=True, help="Longest character n-grams."
    ),
    click.option("--word-order", type=click.IntRange(0, 64), default=0, show_default=True, help="Longest word n-grams."),
    click.option("--beta", type=Number(), default=2, show_default=True, help="Weight of recall over precision."),
    click.option("--lowercase", is_flag=True, help="Ignore case."),
    click.option("--whitespace", is_flag=True, help="White space is part of character n-grams."),
    click.option("--eps-smoothing", is_flag=True, help="Smooth as chrF++.py, NLTK and Moses do; else by effective order."),
)
@click.option("-p", "--plus-plus", is_flag=True, help="chrF++: the same as --word-order 2.")
@translation_options
def chrf(options: ChrfOptions, plus_plus: bool, task: TaskOptions) -> None:
    """Score translations with chrF or chrF++, as sacreBLEU does.

    REFERENCE and HYPOTHESES (one file a system) are plain or packed text with a segment on each line, or records
    (--format); - is standard input. Systems are compared with the first.

    \b
    lmgauge chrf ref.txt hyp.txt
    lmgauge chrf ref.txt baseline.txt better.txt --plus-plus
    """
    from lmgauge.tasks import ChrF

    if plus_plus:
        if options["word_order"] not in (0, 2):
            raise click.UsageError(f"--plus-plus means --word-order 2, not {options['word_order']}: give one of the two")
        options["word_order"] = 2
    run_metric(ChrF(**options), task, options)


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
@translation_options
def ter(options: TerOptions, task: TaskOptions) -> None:
    """Measure the translation edit rate, as sacreBLEU does.

    Edits and shifts for 100 words of the reference. REFERENCE and HYPOTHESES (one file a system) are plain or packed
    text with a segment on each line, or records (--format); - is standard input. Systems are compared with the first.

    \b
    lmgauge ter ref.txt hyp.txt
    lmgauge ter ref.txt baseline.txt better.txt --normalized
    """
    from lmgauge.tasks import TER

    run_metric(TER(**options), task, options)
