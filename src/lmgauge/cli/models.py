"""What commands that make and use models do besides calling their verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from lmgauge.cli.derive import Call
from lmgauge.cli.say import say

if TYPE_CHECKING:
    from lmgauge.models.combined.mixture.mixing import Mixture
    from lmgauge.models.combined.mixture.static import StaticMixture


def prune(call: Call) -> None:
    """Say where the smaller model is, and what is lost."""
    from lmgauge.report.models import pruned_blocks

    pruned, path = call(), call["output"]
    call.answer({"path": path, **pruned.to_dict()}, lambda: pruned_blocks(pruned, name=path))


def mix(call: Call) -> None:
    """Mix, with held-out text from standard input where it is needed and not named."""
    needs_text = call["weights"] is None and len(call["models"]) > 1
    call.values.setdefault("held_out", ("-",) if needs_text else None)
    result = call()
    _show_mixture(call, result.mixture if call["static"] else result, call["models"], result if call["static"] else None)


def cache(call: Call) -> None:
    """Show the weight of the cache, and what it is worth."""
    from lmgauge.models.combined.spelling.model import parted

    mixture: Any = parted(call())[0]
    _show_mixture(call, mixture, (call["model"], mixture.components[1].label))


def _show_mixture(call: Call, mixture: Mixture, names: Sequence[str], static: StaticMixture | None = None) -> None:
    """Show the weights of components by their names, or of a mixture made into one model, and what it is worth."""
    from lmgauge.report.models import mixture_blocks, static_blocks

    path = call["output"]
    names = names if len(names) == len(mixture.components) else ()
    if static is None:
        shown: Any = partial(mixture_blocks, mixture)
        content = {**mixture.to_dict(), "label": mixture.label, "fingerprint": mixture.fingerprint}
    else:
        shown, content = partial(static_blocks, static), static.to_dict()
    for component, name in zip(content["components"], names, strict=False):
        component["path"] = name
    call.answer(content | {"path": path}, partial(shown, name=path, paths=names))


def spell(call: Call) -> None:
    """Put the speller into the model's own folder where no other is named, and say what was learned."""
    written = call["output"] or call["model"]
    spelled = call(output=written)
    line = f"{written}: {spelled.label}: every text has a probability"
    say_made(call, spelled.to_dict() | {"path": written}, line, spelled.learned())


def say_made(
    call: Call, content: Mapping[str, Any], line: str, learned: Mapping[str, Any] | None, notes: Sequence[str] = ()
) -> None:
    """Print a model as JSON, or say in lines what was made and learned, and what is to be known."""
    if call.as_json:
        call.answer(content)
        return
    lines = [line]
    if learned is not None:
        from lmgauge.report.models import learned as in_words

        lines += in_words(learned)
    for each in (*lines, *(f"note: {note}" for note in notes)):
        say(each, err=True)


def sample(call: Call) -> None:
    """Print each text as it is drawn."""
    from lmgauge.base.escaping import for_output

    texts = call()
    if call.as_json:
        call.answer(list(texts))
    else:
        for text in texts:
            click.echo(for_output(text))
