"""`lmgauge overlap`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lmgauge.choices import OVERLAP_UNITS
from lmgauge.cli.options import corpus_of, json_option, refuse_field, text_options, threads_option
from lmgauge.cli.say import say
from lmgauge.files import refuse_replacing

if TYPE_CHECKING:
    from lmgauge.evaluation.clean_subset import SplitEvaluation
    from lmgauge.evaluation.runs import Run
    from lmgauge.text.documents import Corpus


@click.command(name="overlap")
@click.argument("texts", nargs=-1, required=True, metavar="TRAIN... TEST", type=click.Path(allow_dash=True))
@click.option(
    "--test",
    "tests",
    multiple=True,
    type=click.Path(allow_dash=True),
    help="The test text; may be given several times. All arguments are training text then.",
)
@click.option(
    "--overlap-unit",
    type=click.Choice(OVERLAP_UNITS),
    default="word",
    show_default=True,
    help="N-grams of words, or of characters, for scripts that do not space words.",
)
@click.option("-n", type=click.IntRange(1, 10_000), help="Shortest run that counts; 13 words, 25 characters if not given.")
@click.option("--fold", is_flag=True, help="Ignore case, punctuation and symbols.")
@click.option(
    "--near",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    metavar="J",
    help="Segments this alike are near duplicates (Jaccard index of word 5-grams or character 10-grams); 0: skip.",
)
@click.option(
    "--passages",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="How many to show, and in --json.",
)
@click.option(
    "--write-clean", type=click.Path(dir_okay=False), metavar="FILE", help="Write the test without what was found."
)
@click.option(
    "--run",
    "run_path",
    type=click.Path(),
    help="A run on the test: its perplexity on the clean part and on the contaminated part.",
)
@click.option(
    "--max-overlap",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="Exit with 1 if more than this share (0 to 1) of the test's bytes is contaminated.",
)
@text_options
@threads_option
@json_option
def overlap(
    texts: tuple[str, ...],
    tests: tuple[str, ...],
    write_clean: str | None,
    run_path: str | None,
    max_overlap: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find test text inside training text.

    The last argument is the test, all before it training text; files, globs or - (standard input). With --run, one
    argument is enough: the test is the text that the run remembers.

    \b
    lmgauge overlap train.txt test.txt
    lmgauge overlap 'part-*.txt.zst' --test a.txt --test b.txt -n 8 --fold
    lmgauge overlap train.txt test.txt --run run/ --write-clean clean.txt
    """
    from lmgauge.errors import CheckFailedError
    from lmgauge.json_text import to_json
    from lmgauge.report import overlap as report
    from lmgauge.report.terminal import progress, show
    from lmgauge.text.overlap.find import find_overlap
    from lmgauge.text.overlap.find import write_clean as write

    run, train, test = _inputs(texts, tests, run_path, options)
    read = [source.path for corpus in (train, test) for source in corpus.sources]
    refuse_replacing({"--write-clean": write_clean}, [*read, *([run_path] if run_path else [])])
    with progress() as status:
        found = find_overlap(
            train,
            test,
            unit=options["overlap_unit"],
            n=options["n"],
            near=options["near"],
            fold=options["fold"],
            passages=options["passages"],
            threads=options["threads"],
            progress=lambda done: status.update(f"read {done / 1e6:,.0f} MB of training text"),
        )
        split = _split(run, found.segment_excluded, test) if run is not None else None
    kept = write(found, write_clean) if write_clean else None
    if as_json:
        added = {} if split is None else {"run": split.to_dict()}
        click.echo(to_json(found.to_dict() | added))
    else:
        show(report.blocks(found, split))
        if kept is not None:
            say(f"{write_clean}: {kept:,} of {found.segments:,} segments")
    if max_overlap is not None and found.contaminated_share > max_overlap:
        raise CheckFailedError(
            f"{100 * found.contaminated_share:.3g} % of the test's bytes are in the training text, more than the "
            f"{100 * max_overlap:g} % that --max-overlap allows; --write-clean FILE writes the test without them"
        )


def _inputs(
    texts: tuple[str, ...], tests: tuple[str, ...], run_path: str | None, options: dict[str, Any]
) -> tuple[Run | None, Corpus, Corpus]:
    """The run, the training text and the test text that arguments and options name."""
    from lmgauge.errors import UsageError
    from lmgauge.evaluation.runs import about, open_run, remembered

    run = open_run(run_path) if run_path else None
    named = list(tests)
    train_names = texts
    if not named and len(texts) > 1:
        named, train_names = [texts[-1]], texts[:-1]
    if named.count("-") + train_names.count("-") > 1:
        raise UsageError("standard input (-) is named twice, but can be read only once")
    train = corpus_of(train_names, options | {"group": None}, alone=False)
    if named:
        test = corpus_of(tuple(named), options, alone=False)
    elif run is None:
        raise click.UsageError(
            f"{texts[0]} is one text: name the training text and the test, or a run of the test with --run"
        )
    else:
        recalled = remembered(run)
        if recalled is None:
            raise UsageError(f"{run.path}: the text it scored is not known, or not there any more: name it with --test")
        test = recalled
    refuse_field(train, test)
    if run is not None:
        if not test.rereadable:
            raise UsageError("--run reads the test twice, and standard input can be read only once: save it in a file first")
        run = about(run, test)
    return run, train, test


def _split(run: Run, leaked: Any, test: Corpus) -> SplitEvaluation:
    from lmgauge.evaluation.clean_subset import split_by_segments

    return split_by_segments(run, leaked, test)
