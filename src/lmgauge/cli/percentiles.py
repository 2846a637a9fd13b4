"""`lmgauge percentiles`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from lmgauge.cli.command import Command, settings
from lmgauge.cli.filter import models_option, named_models, ray_option, reading_records, workers_option
from lmgauge.cli.options import html_option, json_option, reserved_option, scoring_settings, seed_option, threads_option
from lmgauge.cli.say import answer, say, showing_progress
from lmgauge.filtering.options import FilterWork, RecordOptions
from lmgauge.models.network.options import ScoringOptions

ALL = "all"


class SampleSize(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click
    """A number of documents, or all of them."""

    name = "N|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return the number, or "all".

        Raises:
            click.BadParameter: it is neither.

        >>> SampleSize()("20_000"), SampleSize()("all")
        (20000, 'all')
        """
        digits = str(value).replace(",", "").replace("_", "")
        if value == ALL:
            return ALL
        if not (digits.isascii() and digits.isdigit() and int(digits[:19]) > 0 and len(digits) < 19):
            self.fail(f"{value!r} is not a number of documents such as 20000, or 'all'", param, ctx)
        return int(digits)


@dataclass(frozen=True)
class _Sampling:
    """What is learned from."""

    sample: int | str
    seed: int


@dataclass(frozen=True)
class _Output:
    """What is written, and how the answer is given."""

    output: str | None
    html: str | None
    as_json: bool


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, required=True, metavar="IN...", type=click.Path(allow_dash=True))
@models_option
@settings(
    "result",
    _Output,
    "Output",
    click.option(
        "-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="File to save the percentiles in, as JSON."
    ),
    html_option,
    json_option,
)
@settings(
    "sampling",
    _Sampling,
    "Sample",
    click.option(
        "--sample",
        type=SampleSize(),
        default=20_000,
        help="Documents of each group to learn from at most; only they are scored.",
    ),
    seed_option,
)
@reading_records()
@settings("work", FilterWork, "Work", workers_option, ray_option, threads_option)
@scoring_settings(reserved_option)
def percentiles(
    inputs: tuple[str, ...],
    models: tuple[str, ...],
    result: _Output,
    sampling: _Sampling,
    reading: RecordOptions,
    work: FilterWork,
    scoring: ScoringOptions,
) -> None:
    """Learn the percentiles of perplexity that a filter keeps by.

    IN are files, globs or addresses of JSONL, TSV, Parquet or lines of text, packed or not, or - (standard input). The
    sample depends on the seed, the names of the files and the numbers of the records alone, and is taken of each group
    (--group, --by) for itself.

    \b
    lmgauge percentiles -m kn5/ 'in/*.parquet' -o percentiles.json
    lmgauge percentiles -m en=en/ -m de=de/ --by lang 'in/*.jsonl.gz' -o percentiles.json --sample 50000
    """
    from lmgauge.api.percentiles import learn_percentiles
    from lmgauge.report.documents import document_of

    with showing_progress():
        learned = learn_percentiles(
            named_models(models, reading.by),
            inputs,
            sample=None if sampling.sample == ALL else int(sampling.sample),
            seed=sampling.seed,
            output=result.output,
            scoring=scoring,
            work=work,
            **vars(reading),
        )
    answer(learned, lambda: document_of(learned), as_json=result.as_json, html=result.html)
    if result.output is not None:
        say(f"{result.output}: saved; lmgauge filter --percentiles {result.output} --keep p10..p70 keeps by it", err=True)
