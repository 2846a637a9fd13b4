"""`lmgauge wer` and `lmgauge cer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lmgauge.choices import UNICODE_FORMS
from lmgauge.cli.task_options import aligned, run_metric, task_options

_F = TypeVar("_F", bound=Callable[..., Any])

_NORMALIZATION = (
    click.option("--lowercase", is_flag=True, help="Ignore case."),
    click.option("--remove-punctuation", is_flag=True, help="Leave out punctuation (Unicode categories P)."),
    click.option("--expand-contractions", is_flag=True, help="Spell out common English contractions: won't, they're."),
    click.option("--remove-nonwords", is_flag=True, help="Leave out what stands in [] or <>: [laugh], <unk>."),
    click.option("--unicode-form", type=click.Choice(UNICODE_FORMS),
                 help="One spelling for what Unicode spells in two ways."),
    click.option("--standardize", is_flag=True, help="Lower case, contractions, no non-words: jiwer's wer_standardize."),
    click.option("--align", is_flag=True, help="Print the alignment of segments with an error; with --json of all."),
    click.option("--top", type=click.IntRange(min=0), default=0, metavar="N", help="Also show the N most frequent errors."),
)  # fmt: skip


def _normalization(command: _F) -> _F:
    for option in reversed(_NORMALIZATION):
        command = option(command)
    return command


@click.command(name="wer")
@_normalization
@task_options
def wer(align: bool, top: int, **options: Any) -> None:
    """Measure the word error rate of transcripts, as jiwer does.

    MER, WIL and the counts of errors come with it. REFERENCE and HYPOTHESES (one file a system, or folders) are plain
    or packed text with a segment on each line, JSONL, TSV or Parquet; - is standard input. Systems are held against
    the first. White space of any kind splits words; jiwer splits them at blanks only, so that its digits differ where
    a text has tabs or no-break spaces.

    \b
    lmgauge wer ref.txt hyp.txt --lowercase --remove-punctuation
    lmgauge wer ref.tsv a.tsv b.tsv --field text --id utterance --by speaker
    lmgauge wer ref.txt hyp.txt --align | less
    """
    from lmgauge.tasks.metrics.error_rates import WER

    _run(WER(**_chosen(options)), align, top, options)


@click.command(name="cer")
@_normalization
@click.option("--collapse-spaces", is_flag=True, help="Runs of white space count as one blank.")
@task_options
def cer(align: bool, top: int, collapse_spaces: bool, **options: Any) -> None:
    """Measure the character error rate of transcripts, as jiwer does.

    REFERENCE and HYPOTHESES (one file a system, or folders) are plain or packed text with a segment on each line,
    JSONL, TSV or Parquet; - is standard input. Systems are held against the first.

    \b
    lmgauge cer ref.txt hyp.txt --unicode-form NFKC
    """
    from lmgauge.tasks.metrics.error_rates import CER

    _run(CER(collapse_spaces=collapse_spaces, **_chosen(options)), align, top, options)


def _chosen(options: dict[str, Any]) -> dict[str, Any]:
    """The options of normalisation, taken out of the others."""
    names = (
        *("lowercase", "remove_punctuation", "expand_contractions"),
        *("remove_nonwords", "unicode_form", "standardize"),
    )
    return {name: options.pop(name) for name in names}


def _run(metric: Any, align: bool, top: int, options: dict[str, Any]) -> None:
    if align:
        if options["sentence"] or options["score_only"] or top:
            raise click.UsageError("--align prints alignments alone: leave out --sentence, --score-only and --top")
        segments = aligned(metric, options, notes=True)
        if options["as_json"]:
            from lmgauge.json_text import to_json

            for segment in segments:
                click.echo(to_json(segment.to_dict(), indent=None))
        else:
            from lmgauge.report import alignments
            from lmgauge.report.terminal import show

            show(alignments.blocks(segments))
        return
    if top and (options["sentence"] or options["score_only"] or options["as_json"]):
        raise click.UsageError("--top is for people: leave out --sentence, --score-only and --json (take --align)")
    if not top:
        run_metric(metric, options)
        return
    from lmgauge.report import alignments
    from lmgauge.report.terminal import show
    from lmgauge.tasks.alignment import errors_by_system

    if "-" in (options["reference"], *options["hypotheses"], options["by"], options["document"]):
        raise click.UsageError("--top reads the files twice, which standard input cannot: save it in a file first")
    errors = errors_by_system(aligned(metric, options))  # first, for what it refuses to come before any output
    run_metric(metric, options)
    click.echo()
    show(alignments.error_blocks(errors, top))
