"""`lmgauge wer` and `lmgauge cer`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from lmgauge.choices import UNICODE_FORMS, WHISPER_NORMALIZERS
from lmgauge.cli.command import Command, settings
from lmgauge.cli.task_options import TaskOptions, note, run_metric, speech_options
from lmgauge.tasks.settings import NormalizationOptions

if TYPE_CHECKING:
    from lmgauge.tasks.alignment import AlignedSegment
    from lmgauge.tasks.metrics.error_rates import EditRate

NORMALIZATION_OPTIONS = (
    click.option("--lowercase", is_flag=True, help="Ignore case."),
    click.option("--remove-punctuation", is_flag=True, help="Leave out punctuation (Unicode categories P)."),
    click.option("--expand-contractions", is_flag=True, help="Spell out common English contractions: won't, they're."),
    click.option("--remove-nonwords", is_flag=True, help="Leave out what stands in [] or <>: [laugh], <unk>."),
    click.option("--unicode-form", type=click.Choice(UNICODE_FORMS),
                 help="One spelling for what Unicode spells in two ways."),
    click.option("--standardize", is_flag=True, help="Lower case, contractions, no non-words: jiwer's wer_standardize."),
    click.option("--substitutions", type=click.Path(), metavar="FILE",
                 help="Pairs of words or phrases, a TAB between: the second takes the place of the first."),
    click.option("--whisper", type=click.Choice(WHISPER_NORMALIZERS), help="Whisper's text normalizer, before other steps."),
)  # fmt: skip
_jiwer_option = click.option(
    "--jiwer-words", is_flag=True, help="A single TAB or no-break space does not part words, as in jiwer."
)
_spaces_option = click.option("--collapse-spaces", is_flag=True, help="Runs of white space count as one blank.")
_align_option = click.option(
    "--align", is_flag=True, help="Print the alignment of segments with an error; with --json of all."
)
_top_option = click.option(
    "--top", type=click.IntRange(min=0), default=0, metavar="N", help="Also show the N most frequent errors."
)


@click.command(name="wer", cls=Command)
@settings("options", NormalizationOptions, "Options", *NORMALIZATION_OPTIONS, _jiwer_option)
@_align_option
@_top_option
@speech_options
def wer(options: NormalizationOptions, align: bool, top: int, task: TaskOptions) -> None:
    """Measure the word error rate of transcripts, as jiwer does.

    MER, WIL and the counts of errors come with it. REFERENCE and HYPOTHESES (one file a system, or folders) are plain
    or packed text with a segment on each line, or records (--format); - is standard input. Systems are compared with
    the first. White space of any kind splits words; in jiwer a single tab or no-break space does not (--jiwer-words).

    \b
    lmgauge wer ref.txt hyp.txt --lowercase --remove-punctuation
    lmgauge wer ref.tsv a.tsv b.tsv --field text --id utterance --group speaker
    lmgauge wer ref.stm hyp.ctm --group speaker
    lmgauge wer data/test/text exp/decode/hyp.txt --format kaldi
    lmgauge wer ref.txt hyp.txt --align | less
    """
    from lmgauge.tasks import WER

    _run(WER(**options), align, top, task, options)


@click.command(name="cer", cls=Command)
@settings("options", NormalizationOptions, "Options", *NORMALIZATION_OPTIONS, _spaces_option)
@_align_option
@_top_option
@speech_options
def cer(options: NormalizationOptions, align: bool, top: int, task: TaskOptions) -> None:
    """Measure the character error rate of transcripts, as jiwer does.

    REFERENCE and HYPOTHESES (one file a system, or folders) are plain or packed text with a segment on each line,
    or records (--format); - is standard input. Systems are compared with the first.

    \b
    lmgauge cer ref.txt hyp.txt --unicode-form NFKC
    """
    from lmgauge.tasks import CER

    _run(CER(**options), align, top, task, options)


def _run(metric: EditRate, align: bool, top: int, task: TaskOptions, options: NormalizationOptions) -> None:
    printing = task.printing
    if align and (printing.sentence or printing.score_only or top or printing.html):
        raise click.UsageError("--align prints alignments alone: leave out --sentence, --score-only, --top and --html")
    if top and (printing.sentence or printing.score_only or printing.as_json):
        raise click.UsageError("--top is for people: leave out --sentence, --score-only and --json (take --align)")
    if align and task.sharding.shard is None:
        _print_alignments(_aligned(metric, task, note), printing.as_json)
    elif top and task.sharding.shard is None:
        _print_errors(metric, top, task, options)
    else:
        run_metric(metric, task, options)


def _print_alignments(segments: Iterator[AlignedSegment], as_json: bool) -> None:
    if as_json:
        from lmgauge.json_text import to_json

        for segment in segments:
            click.echo(to_json(segment.to_dict(), indent=None))
    else:
        from lmgauge.report import alignments
        from lmgauge.report.terminal import show

        show(alignments.blocks(segments))


def _print_errors(metric: EditRate, top: int, task: TaskOptions, options: NormalizationOptions) -> None:
    from lmgauge.report import alignments
    from lmgauge.report.terminal import show
    from lmgauge.tasks.alignment import errors_by_system

    if "-" in (task.files.reference, *task.files.hypotheses, task.reading.group, task.reading.document):
        raise click.UsageError("--top reads the files twice, which standard input cannot: save it in a file first")
    errors = errors_by_system(_aligned(metric, task))  # first, for what it refuses to come before any output
    run_metric(metric, task, options)
    click.echo()
    show(alignments.error_blocks(errors, top))


def _aligned(metric: EditRate, task: TaskOptions, notes: Callable[[str], None] | None = None) -> Iterator[AlignedSegment]:
    from lmgauge.tasks import align_files

    files = task.files
    return align_files(metric, references=files.references, hypotheses=files.hypotheses, reading=task.reading, notes=notes)
