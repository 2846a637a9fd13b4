"""`lmgauge convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lmgauge.choices import RESERVED_POLICIES
from lmgauge.files import refuse_replacing

if TYPE_CHECKING:
    from lmgauge.models.ngram.model import NgramModel


def save(model: NgramModel, output: str) -> None:
    """Writes a model as its name says: an ARPA file (.arpa, .arpa.gz), or a folder."""
    if output.endswith((".arpa", ".arpa.gz", ".lm", ".lm.gz")):
        from lmgauge.models.ngram.arpa import write_arpa

        write_arpa(model, output)
    else:
        model.save(output)


@click.command()
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
@click.option(
    "--tokenizer",
    default="whitespace",
    show_default=True,
    help="What the words of an ARPA file are: whitespace, character, byte, icu, or a tokenizer.json.",
)
@click.option(
    "--reserved",
    type=click.Choice(RESERVED_POLICIES),
    help="A <unk> in texts scored later: stop, an ordinary word, the unknown word (so for ARPA files if not given).",
)
def convert(source: str, target: str, tokenizer: str, reserved: str | None) -> None:
    """Convert between ARPA files and model folders.

    The names tell the direction: a TARGET ending in .arpa or .arpa.gz is such a file, any other a folder.

    \b
    lmgauge convert kn5/ kn5.arpa.gz
    lmgauge convert theirs.arpa theirs/
    """
    from lmgauge.errors import UsageError
    from lmgauge.models.ngram.arpa import read_arpa
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.registry import load_model
    from lmgauge.report.terminal import progress

    refuse_replacing({"TARGET": target}, [source])
    with progress() as status:
        status.update(f"reading {source}")
        path = Path(source)
        if path.is_file():
            model = read_arpa(path, tokenizer=tokenizer)
        else:
            loaded = load_model(path)
            if not isinstance(loaded, NgramModel):
                raise UsageError(f"{source}: only n-gram models have an ARPA form")
            model = loaded
            if tokenizer != "whitespace":
                model = replace_tokenizer(model, tokenizer)
        if reserved is not None:
            model = model.with_reserved(reserved)  # type: ignore[arg-type]
        status.update(f"writing {target}")
        save(model, target)


def replace_tokenizer(model: NgramModel, tokenizer: str) -> NgramModel:
    """The same model for text cut by another tokenizer."""
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.text.tokenizers import make_tokenizer

    return NgramModel(model.tables, model.vocabulary, make_tokenizer(tokenizer), model.settings)
