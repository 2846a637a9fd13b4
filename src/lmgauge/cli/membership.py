"""`lmgauge membership`."""

from __future__ import annotations

from dataclasses import dataclass

import click

from lmgauge.cli.command import Command, Number, settings, under, whole_number
from lmgauge.cli.options import (
    document_option,
    html_option,
    id_option,
    json_option,
    model_among,
    read_texts,
    reading_settings,
    refuse_field,
    reserved_option,
    scoring_settings,
    threads_option,
)
from lmgauge.cli.say import Page, answer, showing_progress
from lmgauge.models.network.options import ScoringOptions
from lmgauge.text.reading_options import ReadingOptions


@dataclass(frozen=True)
class _Choices:
    """What is asked, and of which texts."""

    control: tuple[str, ...]
    label: str | None
    reference: str | None
    output: str | None
    examples: int


@dataclass(frozen=True)
class _Statistics:
    """How: fields of `MembershipSettings`."""

    k: float
    false_alarms: float
    threads: int | None


@click.command(cls=Command)
@click.argument("model", type=click.Path())
@click.argument("texts", nargs=-1, type=click.Path(allow_dash=True))
@settings(
    "choices",
    _Choices,
    "Options",
    click.option(
        "--control",
        multiple=True,
        type=click.Path(),
        help="Texts that the model cannot have seen, as like TEXTS as can be had; may be given several times.",
    ),
    click.option(
        "--label",
        metavar="FIELD",
        help="In place of --control: the field of TEXTS that says 1 (in question) or 0 (control).",
    ),
    click.option("--reference", type=click.Path(), help="A second model, which has not seen TEXTS: adds a score."),
    click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, allow_dash=True),
        metavar="FILE",
        help="Write a row a text: .parquet, .csv, .tsv or .jsonl.",
    ),
    whole_number("--examples", least=0, default=5, help="Texts to show that look most like seen ones."),
)
@settings(
    "statistics",
    _Statistics,
    "Statistics",
    click.option(
        "--k",
        type=Number(),
        default=0.2,
        metavar="SHARE",
        help="Min-K% looks at this share of a text's least probable tokens.",
    ),
    click.option(
        "--fpr",
        "false_alarms",
        type=Number(),
        default=0.01,
        metavar="RATE",
        help="Rate of false alarms at which to say how many texts are recognized.",
    ),
    threads_option,
)
@under("Output", html_option, json_option)
@reading_settings(document_option, id_option)
@scoring_settings(reserved_option)
def membership(
    model: str,
    texts: tuple[str, ...],
    choices: _Choices,
    statistics: _Statistics,
    reading: ReadingOptions,
    scoring: ScoringOptions,
    html: str | None,
    as_json: bool,
) -> None:
    """Ask whether a model has seen texts in training.

    MODEL is a model folder, an ARPA or GGUF file, or a server; TEXTS are files, globs or - (standard input). Each segment
    gets scores that tend to differ between seen and unseen text: loss, Min-K%, Min-K%++, zlib ratio and, with a second
    model, the difference from it. With control texts: how well each score tells both sets apart.

    \b
    lmgauge membership kn5/ asked.txt --control fresh.txt
    lmgauge membership model/ wikimia.jsonl --field input --label label -o rows.parquet
    """
    from lmgauge.api.membership import membership as run
    from lmgauge.report import membership as report

    named = model_among(texts)
    if named is not None:
        raise click.UsageError(f"{named} is a model, not a text: one model comes first, then the texts: MODEL TEXTS...")
    corpus = read_texts(texts, reading, alone=False)
    control = read_texts(choices.control, reading, alone=False) if choices.control else None
    refuse_field(corpus, control)
    with showing_progress():
        result = run(
            model,
            corpus,
            control,
            label=choices.label,
            reference=choices.reference,
            output=choices.output,
            scoring=scoring,
            **vars(statistics),
        )
    if choices.output == "-":
        return
    blocks = report.blocks(result, examples=choices.examples)
    page = None if html is None else Page(f"Has {result.model} seen these texts?", blocks)
    answer(result, lambda: blocks, as_json=as_json, html=html, page=page)
