"""What `lmgauge divergence` and `membership` do besides calling their verbs: they tell models from texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lmgauge.api.inputs import is_model
from lmgauge.base.escaping import visible
from lmgauge.base.option_numbers import Natural
from lmgauge.cli.derive import Call, fields_of

if TYPE_CHECKING:
    from lmgauge.evaluation.divergence.divergence_result import CandidateDivergences, Divergence
    from lmgauge.evaluation.membership.membership import Membership
    from lmgauge.report.blocks import Document

_OF_COMPARING = ("top_k", "train", "examples", "output", "model", "details", "llama_cpp", "html", "until", "margin")


def model_among(texts: Sequence[str]) -> str | None:
    """Return the first path that is a model where texts are named; None if there is none."""
    return next((text for text in texts if is_model(text)), None)


def membership(call: Call) -> None:
    """Print the result."""
    model = model_among(call["texts"])
    if model is not None:
        raise click.UsageError(f"{model} is a model, not a text: one model comes first, then the texts: MODEL TEXTS...")
    result = call()
    call.answer(result, lambda: call(suspects, result=result))


def suspects(result: Membership, *, examples: Natural = 5) -> Document:
    """Return what is printed of a result.

    Args:
        examples: texts to show that look most like seen ones.
    """
    from lmgauge.report.membership import blocks

    return blocks(result, examples=examples)


def divergence(call: Call) -> None:
    """Compare candidates with a base, or store the base."""
    from lmgauge.api.divergence import save_base
    from lmgauge.evaluation.options import StoringSettings

    paths, saving = call["candidate"], "base_file" in call.values
    if saving:
        call.refuse(_OF_COMPARING, "compares, and --save-base only stores; leave it out")
    else:
        call.refuse(fields_of(StoringSettings) - {"seed"}, "says what --save-base stores; leave it out, or add --save-base")
        if paths == ("-",):
            raise click.UsageError("Missing argument 'CANDIDATE...'.")
    # A name that is neither a folder nor a known ending can be a model where one must stand.
    least = 0 if saving else 1
    first = next((i for i, path in enumerate(paths) if i >= least and not is_model(path)), len(paths))
    candidates, texts = paths[:first], paths[first:]
    if saving and candidates:
        raise click.UsageError(
            f"--save-base stores one model, and {candidates[0]} is another: BASE TEXT... --save-base FILE"
        )
    model = model_among(texts)
    if model is not None:
        raise click.UsageError(f"{model} is a model, not a text: models come first, then texts: BASE CANDIDATE... TEXT...")
    texts = texts or call.piped_text()
    if saving:
        call.answer(call(save_base, text=texts))
        return
    if "until" in call.values:
        call.refuse(("details", "llama_cpp"), "does not go with --until decided: leave one of the two out")
        call.answer(call(candidate=candidates, text=texts))
        return
    result: CandidateDivergences = call(candidate=candidates, text=texts)
    page = f"Divergence of {', '.join(item.b for item in result)} from {result[0].a}", diverged(result, details=True)
    plain = "\n\n".join(map(_as_llama_cpp, result)) if call["llama_cpp"] else ""
    call.answer(result, lambda: diverged(result, details=call["details"]), page, plain)


def _as_llama_cpp(item: Divergence) -> str:
    return f"{visible(item.b)} (Q) compared with {visible(item.a)} (base), {item.events:,} tokens\n{item.to_llama_cpp()}"


def diverged(result: CandidateDivergences, *, details: bool | None = None, llama_cpp: bool = False) -> Document:
    """Return what is printed of a result.

    Args:
        details: slices of the text and worst tokens; if not given, only for a single candidate.
        llama_cpp: print the figures as llama-perplexity --kl-divergence does, under its names.
    """
    from lmgauge.report.divergence import candidate_blocks

    return candidate_blocks(result, details=details)
