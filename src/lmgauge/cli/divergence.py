"""What `lmgauge divergence` does besides calling its verbs: it tells models from texts, and may store a base instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lmgauge.api.stored_base import save_base
from lmgauge.cli.derive import Call, fields_of
from lmgauge.cli.named_paths import model_among, models_and_texts
from lmgauge.cli.say import Page, write_page
from lmgauge.evaluation.options import StoringSettings

if TYPE_CHECKING:
    from lmgauge.evaluation.divergence.results import CandidateDivergences
    from lmgauge.report.blocks import Document

_OF_COMPARING = ("top_k", "train", "examples", "output", "details", "llama_cpp", "html")


def shown(result: CandidateDivergences, *, details: bool | None = None, llama_cpp: bool = False) -> Document:
    """Return what is printed of a result.

    Args:
        details: slices of the text and worst tokens; shown if not given where there is one candidate.
        llama_cpp: print the figures as llama-perplexity --kl-divergence does, under its names.
    """
    from lmgauge.report.candidates import blocks

    return blocks(result, details=details)


def divergence(call: Call) -> None:
    """Compare candidates with a base, or store the base."""
    paths, saving = call["candidate"], "base_file" in call.values
    if saving:
        call.refuse(_OF_COMPARING, "compares, and --save-base only stores; leave it out")
    else:
        call.refuse(fields_of(StoringSettings) - {"seed"}, "says what --save-base stores; leave it out, or add --save-base")
    if not saving and paths == ("-",):
        raise click.UsageError("Missing argument 'CANDIDATE...'.")
    # A name that is neither a folder nor a known ending can be a model where one must stand.
    least = 0 if saving else 1
    more, texts = models_and_texts(paths[least:])
    if saving and more:
        raise click.UsageError(f"--save-base stores one model, and {more[0]} is another: BASE TEXT... --save-base FILE")
    model = model_among(texts)
    if model is not None:
        raise click.UsageError(f"{model} is a model, not a text: models come first, then texts: BASE CANDIDATE... TEXT...")
    texts = texts or ["-"]
    if saving:
        call.answer(call(save_base, text=texts))
        return
    result: CandidateDivergences = call(candidate=[*paths[:least], *more], text=texts)
    page = Page(f"Divergence of {', '.join(item.b for item in result)} from {result[0].a}", shown(result, details=True))
    if not call["llama_cpp"] or call.as_json:
        call.answer(result, lambda: shown(result, details=call["details"]), page)
        return
    from lmgauge.readable import visible

    for item in result:
        names = f"{visible(item.b)} (Q) compared with {visible(item.a)} (base), {item.events:,} tokens"
        click.echo(f"{names}\n{item.to_llama_cpp()}" + "\n" * (item is not result[-1]))
    if call.html is not None:
        write_page(call.html, page)
