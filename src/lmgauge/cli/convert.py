"""`lmgauge convert`."""

from __future__ import annotations

from pathlib import Path

import click

from lmgauge.choices import RESERVED_POLICIES
from lmgauge.files import refuse_replacing


@click.command()
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
@click.option(
    "--tokenizer",
    default="whitespace",
    show_default=True,
    help="How text was cut into the words of the ARPA file: whitespace, character, byte, icu, or a tokenizer.json.",
)
@click.option(
    "--reserved",
    type=click.Choice(RESERVED_POLICIES),
    help="A <unk> in texts scored later: stop, an ordinary word, or the unknown word.  [default for ARPA files: unk]",
)
def convert(source: str, target: str, tokenizer: str, reserved: str | None) -> None:
    """Convert between ARPA files and model folders.

    A TARGET that ends in .arpa or .arpa.gz is written as an ARPA file, any other as a folder.

    \b
    lmgauge convert kn5/ kn5.arpa.gz
    lmgauge convert theirs.arpa theirs/
    """
    from lmgauge.errors import UsageError
    from lmgauge.models.ngram.arpa_reader import read_arpa
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.registry import load_model
    from lmgauge.report.progress import progress
    from lmgauge.text.tokenizers import make_tokenizer

    refuse_replacing({"TARGET": target}, [source])
    with progress() as listener:
        listener(f"reading {source}")
        path = Path(source)
        if path.is_file():
            model = read_arpa(path, tokenizer=tokenizer)
        else:
            loaded = load_model(path)
            if not isinstance(loaded, NgramModel):
                raise UsageError(f"{source}: only n-gram models can be converted to ARPA")
            model = loaded
            if tokenizer != "whitespace":
                model = model.with_tokenizer(make_tokenizer(tokenizer))
        if reserved is not None:
            model = model.with_reserved(reserved)  # type: ignore[arg-type]
        listener(f"writing {target}")
        model.save(target)
