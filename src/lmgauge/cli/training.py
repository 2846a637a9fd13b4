"""What `lmgauge train` does besides calling its verbs: n-gram models and networks, and what is said of them."""

from __future__ import annotations

from typing import Any

from lmgauge.api.train import train as train_ngrams
from lmgauge.api.train import train_neural
from lmgauge.cli.derive import Call, fields_of
from lmgauge.cli.models import say_made
from lmgauge.cli.say import say
from lmgauge.models.training.settings import NEURAL_KINDS


def train(call: Call) -> None:
    """Train with the verb of the kind, and refuse the options of the other."""
    kind = call["kind"]
    if kind in NEURAL_KINDS:
        call.refuse(fields_of(train_ngrams) - fields_of(train_neural), f"is for n-gram models; {kind} does not take it")
        _train_network(call)
        return
    call.refuse(fields_of(train_neural) - fields_of(train_ngrams), f"is for neural models; {kind} does not take it")
    from lmgauge.files import refuse_replacing
    from lmgauge.models.ngram.settings import ADDITIVE

    if kind in ADDITIVE:
        call.refuse(("interpolate",), f"is for smoothings that use lower orders; {kind} does not")
    if kind == "good-turing" and call["interpolate"]:
        call.refuse(("interpolate",), "cannot be combined with good-turing, which always backs off")
    refuse_replacing({"-o": call["output"]}, [call["words"]] if call["words"] else [])
    model = call(train_ngrams)
    spelled = call["vocabulary"] == "spelled"
    inner: Any = model.inner if spelled else model
    types = ", ".join(f"{n:,}" for n in inner.types)
    trained = (
        f"order {inner.order}, trained on {inner.record.training['events']:,} events; n-grams of order 1, 2, ...: {types}"
    )
    content = model.to_dict() | {"path": call["output"], "fingerprint": model.fingerprint}
    learned = model.learned() if spelled else None
    say_made(call, content, f"{call['output']}: {kind}, {trained}", learned, inner.record.notes)


def _train_network(call: Call) -> None:
    from lmgauge.cli.training_display import training_display

    try:
        with training_display() as (progress, watch):
            result = train_neural(**call.keywords(train_neural, progress=progress, watch=watch))
    except (KeyboardInterrupt, SystemExit):
        again = f"the same command with --resume continues from {call['output']}.training"
        say(f"lmgauge: stopped; {again}", err=True)
        raise
    best = "" if result.valid_perplexity is None else f"; validation perplexity {result.valid_perplexity:,.2f}"
    epochs = "1 epoch" if result.epochs == 1 else f"{result.epochs} epochs"
    line = (
        f"{result.path}: {result.settings.kind}, {result.settings.preset}, {result.parameters:,} parameters, trained on "
        f"{result.events:,} events in {epochs} and {result.seconds:,.0f} s{best}"
    )
    say_made(call, result.to_dict(), line, result.learned, result.notes)
