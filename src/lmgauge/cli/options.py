"""Options that several commands share, worded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from lmgauge.text.documents import Corpus

_F = TypeVar("_F", bound=Callable[..., Any])


def text_options(command: _F) -> _F:
    """How texts are read: unit, field, format, groups, and what to do with invalid bytes."""
    for option in reversed(
        [
            click.option(
                "--unit",
                type=click.Choice(["line", "document"]),
                default="line",
                show_default=True,
                help="What is a segment: each line, or each file.",
            ),
            click.option(
                "--field", default="text", show_default=True, metavar="NAME", help="Field of JSONL, column of Parquet."
            ),
            click.option(
                "--group",
                default="file",
                show_default=True,
                metavar="NAME",
                help="Group of a segment: its file, or this field.",
            ),
            click.option(
                "--format",
                "format_",
                type=click.Choice(["text", "jsonl", "parquet"]),
                help="Of the texts; by suffix if not given.",
            ),
            click.option(
                "--errors",
                type=click.Choice(["fail", "replace", "skip"]),
                default="fail",
                show_default=True,
                help="Invalid UTF-8 and NUL bytes: stop, replace by U+FFFD, or leave out the segment.",
            ),
        ]
    ):
        command = option(command)
    return command


def corpus_of(texts: tuple[str, ...], options: dict[str, Any]) -> Corpus:
    """The corpus that arguments and `text_options` name; standard input if there are none."""
    from lmgauge.text.documents import Corpus

    return Corpus.from_files(
        list(texts) or ["-"],
        unit=options["unit"],
        field=options["field"],
        group=options["group"],
        format=options["format_"],
        errors=options["errors"],
    )


threads_option = click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads to use; all cores if not given. No result depends on it.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, full precision.")
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=12345, show_default=True, help="Same seed, same output."
)
reserved_option = click.option(
    "--reserved",
    type=click.Choice(["refuse", "escape", "unk"]),
    help="A <unk>, <s> or </s> in the text: stop, ordinary, the unknown word; if not given, as in training.",
)
scored_text_option = click.option(
    "--text",
    "texts",
    multiple=True,
    type=click.Path(),
    help="The text that was scored, if it is not where the run remembers it; may be given several times.",
)
model_argument = click.argument("model", type=click.Path())
