"""`lmgauge overlap`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from lmgauge.choices import OVERLAP_UNITS
from lmgauge.cli.command import Command, refuse_given, settings, under, whole_number
from lmgauge.cli.options import (
    html_option,
    json_option,
    read_texts,
    reading_settings,
    refuse_field,
    run_shard,
    shard_option,
    threads_option,
)
from lmgauge.cli.say import Page, answer, say, showing_progress
from lmgauge.text.overlap.settings import OverlapSettings
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.cluster.shard import Shard
    from lmgauge.text.documents import Corpus


@dataclass(frozen=True)
class _Outcome:
    """What comes of the matches."""

    write_clean: str | None
    max_overlap: float | None
    html: str | None
    as_json: bool
    shard: Shard | None
    folder: str | None


@click.command(cls=Command, name="overlap")
@click.argument("texts", nargs=-1, required=True, metavar="TRAIN... TEST", type=click.Path(allow_dash=True))
@click.option(
    "--test",
    "tests",
    multiple=True,
    type=click.Path(allow_dash=True),
    help="The test text; may be given several times. All arguments are training text then.",
)
@click.option(
    "--run",
    type=click.Path(),
    help="A run of the test: its perplexity on the clean segments and on the contaminated ones.",
)
@settings(
    "search",
    OverlapSettings,
    "Search",
    click.option(
        "--overlap-unit",
        type=click.Choice(OVERLAP_UNITS),
        default=OverlapSettings.overlap_unit,
        help="N-grams of words, or of characters, for scripts that do not space words.",
    ),
    click.option(
        "--ngram",
        "n",
        type=click.IntRange(1, 10_000),
        metavar="N",
        help="Shortest run that counts; 13 words, 25 characters if not given.",
    ),
    click.option("--fold", is_flag=True, help="Ignore case, punctuation and symbols."),
    click.option(
        "--near",
        type=click.FloatRange(0, 1),
        default=OverlapSettings.near,
        metavar="J",
        help="Segments this alike are near duplicates (Jaccard index of word 5-grams or character 10-grams); 0: skip.",
    ),
    whole_number("--passages", least=0, default=10, help="How many to show, and in --json."),
)
@settings(
    "outcome",
    _Outcome,
    "Output",
    click.option(
        "--write-clean",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Write the test without contaminated segments and near duplicates.",
    ),
    click.option(
        "--max-overlap",
        type=click.FloatRange(0, 1),
        metavar="X",
        help="Exit with 1 if more than this share (0 to 1) of the test's bytes is contaminated, short lines included.",
    ),
    html_option,
    json_option,
    shard_option,
    click.option(
        "-o", "--output", "folder", type=click.Path(), metavar="DIR", help="With --shard: the folder of all shards."
    ),
)
@under("Output", threads_option)
@reading_settings()
def overlap(
    texts: tuple[str, ...],
    tests: tuple[str, ...],
    run: str | None,
    search: OverlapSettings,
    outcome: _Outcome,
    reading: ReadingOptions,
    threads: int | None,
) -> None:
    """Find test text inside training text.

    The last argument is the test, all before it training text; files, globs or - (standard input). With --run, one
    argument is enough: the test is the text that the run remembers.

    \b
    lmgauge overlap train.txt test.txt
    lmgauge overlap 'part-*.txt.zst' --test a.txt --test b.txt --ngram 8 --fold
    lmgauge overlap train.txt test.txt --run run/ --write-clean clean.txt
    """
    from lmgauge.api.overlap import overlap as find
    from lmgauge.report import overlap as report

    if not tests and len(texts) > 1:
        texts, tests = texts[:-1], texts[-1:]
    if (*tests, *texts).count("-") > 1:
        raise click.UsageError("standard input (-) is named twice, but can be read only once")
    if not tests and run is None:
        raise click.UsageError(
            f"{texts[0]} is one text: name the training text and the test, or a run of the test with --run"
        )
    train = read_texts(texts, replace(reading, group=None), alone=False)
    test = read_texts(tests, reading, alone=False) if tests else None
    refuse_field(train, test)
    if outcome.shard is not None:
        _shard(train, test, search, outcome, threads)
        return
    refuse_given(("folder",), "is for shards: name one with --shard")
    with showing_progress():
        result = find(train, test, run=run, write_clean=outcome.write_clean, threads=threads, **vars(search))
    page = None if outcome.html is None else Page("Overlap of training and test text", report.page(result))
    answer(result, lambda: report.blocks(result), as_json=outcome.as_json, html=outcome.html, page=page)
    if outcome.write_clean is not None and not outcome.as_json:
        say(f"{outcome.write_clean}: {result.clean_segments:,} of {result.segments:,} segments")
    if outcome.max_overlap is not None:
        result.require(outcome.max_overlap)


def _shard(train: Corpus, test: Corpus | None, search: OverlapSettings, outcome: _Outcome, threads: int | None) -> None:
    from lmgauge.cluster.overlap import OverlapJob

    refuse_given(("run", "write_clean", "max_overlap", "html"), "does not go with --shard")
    assert test is not None  # only a run could stand for it
    assert outcome.shard is not None
    run_shard(OverlapJob(train, test, search, threads), outcome.shard, outcome.folder, as_json=outcome.as_json)
