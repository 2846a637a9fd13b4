"""`lmgauge rescore`."""

from __future__ import annotations

from dataclasses import dataclass
from glob import glob
from typing import TYPE_CHECKING

import click

from lmgauge.choices import ERROR_RATE_NAMES, NBEST_FORMATS, ErrorRateName
from lmgauge.cli.command import Command, number, refuse_given, settings, under, whole_number
from lmgauge.cli.options import html_option, json_option, reserved_option, scoring_settings
from lmgauge.cli.say import Page, answer, showing_progress
from lmgauge.cli.task_options import COMPARISON_OPTIONS
from lmgauge.cli.wer import NORMALIZATION_OPTIONS
from lmgauge.models.network.options import ScoringOptions
from lmgauge.tasks.settings import ComparisonSettings, NbestReading, NormalizationOptions, RescoreSettings

if TYPE_CHECKING:
    from lmgauge.tasks.nbest.results import Rescored


@dataclass(frozen=True)
class _Files:
    """Lists, models and references, and where the best and all scores go."""

    nbest: tuple[str, ...]
    models: tuple[str, ...]
    tune: tuple[str, ...]
    ref: str | None
    test_ref: str | None
    output: str | None
    write_scores: str | None
    html: str | None
    as_json: bool


@dataclass(frozen=True)
class _Choosing:
    """How weights are chosen, and errors counted."""

    weights: dict[str, float] | None
    metric: ErrorRateName
    lower_for_models: bool
    starts: int


def _weights(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, float] | None:
    """Return weights written as NAME=NUMBER with commas between them.

    Raises:
        click.BadParameter: they are not.
    """
    if value is None:
        return None
    weights: dict[str, float] = {}
    for part in value.split(","):
        name, equals, written = part.rpartition("=")
        try:
            weights[name.strip()] = number(written)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise click.BadParameter(f"{part!r} is not NAME=NUMBER, as in score=1,kn5=0.5,words=-0.2", ctx, param)
    return weights


_PATH = click.Path(allow_dash=True)
_FILES = (
    click.argument("nbest", nargs=-1, required=True, type=_PATH),
    click.option(
        "-m", "--model", "models", multiple=True, type=click.Path(),
        help="Model folder, ARPA or GGUF file, hub name, or address of a server; several have a weight each; "
        "none if the lists have all scores already.",
    ),
    click.option("--tune", multiple=True, type=_PATH, metavar="DEV",
                 help="N-best lists to tune weights on, of other utterances; may be given several times."),
    click.option("--ref", type=_PATH, metavar="FILE",
                 help="References of DEV by their ids: Kaldi's text, TSV, trn or JSONL."),
    click.option("--test-ref", type=_PATH, metavar="FILE", help="References of NBEST: error rates before and after."),
)  # fmt: skip
_CHOOSING = (
    click.option("--weights", metavar="NAME=NUMBER,...", callback=_weights,
                 help="Weights in place of --tune: of scores, models and words (score=1,kn5=0.5,words=-0.2)."),
    click.option("--metric", type=click.Choice(ERROR_RATE_NAMES), default="wer",
                 help="Errors in words, or in characters, which are then the unit of length as well."),
    click.option("--lower-for-models", is_flag=True, help="Models score the hypotheses in lower case."),
    whole_number("--starts", least=0, default=8, help="Random places at which tuning begins, besides two fixed ones."),
)  # fmt: skip
_READING = (
    click.option("--format", type=click.Choice(NBEST_FORMATS), help="Format of all lists; by what is in them if not given."),
    click.option("--id", default="id", metavar="NAME", help="JSONL: field of the utterance's id."),
    click.option("--field", default="text", metavar="NAME", help="JSONL: field of the text."),
    click.option("--hypotheses", metavar="NAME",
                 help="JSONL: field of the list of an utterance's hypotheses; nbest, hypotheses or hyps if not given."),
    click.option("--score", "scores", multiple=True, metavar="NAME",
                 help="Which of the recognizer's scores to use; all there are, if not given; may be given several times."),
)  # fmt: skip
_OUTPUT = (
    click.option("-o", "--output", type=click.Path(dir_okay=False, allow_dash=True), metavar="FILE",
                 help="Write the best hypotheses: id and words on a line, .trn (words and id), or .jsonl with scores."),
    click.option("--write-scores", type=click.Path(dir_okay=False, allow_dash=True), metavar="FILE",
                 help="Write all hypotheses with the scores of the models added, as JSONL."),
    html_option,
    json_option,
)  # fmt: skip
_document_option = click.option(
    "--document",
    type=_PATH,
    metavar="FILE",
    help="What is independent in the test: an utterance and its speaker or call on each line, as Kaldi's utt2spk.",
)


@click.command(cls=Command)
@settings("files", _Files, "Options", *_FILES, *_OUTPUT)
@settings("choosing", _Choosing, "Options", *_CHOOSING)
@settings("reading", NbestReading, "Text", *_READING)
@settings("normalization", NormalizationOptions, "Errors", *NORMALIZATION_OPTIONS)
@under("Statistics", _document_option)
@settings("comparison", ComparisonSettings, "Statistics", *COMPARISON_OPTIONS)
@scoring_settings(reserved_option)
def rescore(
    files: _Files,
    choosing: _Choosing,
    reading: NbestReading,
    normalization: NormalizationOptions,
    document: str | None,
    comparison: ComparisonSettings,
    scoring: ScoringOptions,
) -> None:
    """Choose the best of n-best lists by a recognizer's scores and language models.

    NBEST is files or folders: JSONL, SRILM's n-best files, Kaldi's folders (text and scores), ESPnet's (1best_recog ...).
    Weights of scores, models and length are tuned on DEV for the fewest errors, by exact line search, or given.

    \b
    lmgauge rescore test/ -m kn5/ --tune dev/ --ref dev.txt --test-ref test.txt -o best.txt
    lmgauge rescore test.jsonl -m kn5/ -m gpt2 --weights score=1,kn5=0.3,gpt2=0.4,words=0.5
    """
    from lmgauge.tasks import CER, WER

    chosen = RescoreSettings(
        reading=reading,
        metric=(WER if choosing.metric == "wer" else CER)(**normalization),
        lowercase=choosing.lower_for_models,
        document=document,
        comparison=comparison,
        starts=choosing.starts,
    )
    _check(files, document)
    with showing_progress():
        result = _run(files, choosing, chosen, scoring)
    _print(result, files)


def _check(files: _Files, document: str | None) -> None:
    """Refuse options that say nothing here, and files that would replace what is read.

    Raises:
        click.UsageError, UsageError: that.
    """
    from lmgauge.files import refuse_replacing
    from lmgauge.tasks.nbest.results import form_of_best

    if files.output is not None:
        form_of_best(files.output)
    if not files.tune:
        refuse_given(("starts",), "is for tuning: name the lists to tune on (--tune)")
    if files.test_ref is None:
        refuse_given(("document", "test", "resamples"), "is for the test: name the references of NBEST (--test-ref)")
    if [*files.nbest, *files.tune, files.ref, files.test_ref, document].count("-") > 1:
        raise click.UsageError("standard input (-) is named twice, but can be read only once")
    if files.output == files.write_scores == "-":
        raise click.UsageError("-o - and --write-scores - would both be standard output")
    named = [path for path in (*files.nbest, *files.tune, files.ref, files.test_ref, document, *files.models) if path]
    inputs = [*named, *(match for path in named for match in glob(path))]
    refuse_replacing({"-o": files.output, "--write-scores": files.write_scores}, inputs)


def _run(files: _Files, choosing: _Choosing, chosen: RescoreSettings, scoring: ScoringOptions) -> Rescored:
    from lmgauge.api.rescore import rescore as run

    return run(
        files.nbest,
        files.models,
        tune=files.tune or None,
        ref=files.ref,
        test_ref=files.test_ref,
        weights=choosing.weights,
        settings=chosen,
        scoring=scoring,
    )


def _print(result: Rescored, files: _Files) -> None:
    """Write the files; print the figures, unless rows take their place."""
    from lmgauge.report import rescore as report

    if files.output is not None:
        result.write_best(files.output)
    if files.write_scores is not None:
        result.write_scores(files.write_scores)
    if "-" in (files.output, files.write_scores):
        if files.html is not None:
            from lmgauge.cli.say import write_page

            write_page(files.html, Page("Rescored", report.blocks(result)))
        return
    blocks = report.blocks(result)
    page = None if files.html is None else Page("Rescored n-best lists", blocks)
    answer(result, lambda: blocks, as_json=files.as_json, html=files.html, page=page)
