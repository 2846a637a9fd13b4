"""What `lmgauge train` does besides calling its verbs: n-gram models and networks, and what is said of them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lmgauge.api.train import train as train_ngrams
from lmgauge.api.train import train_neural
from lmgauge.base.files import refuse_replacing
from lmgauge.base.progress import say_progress
from lmgauge.cli.derive import Call, fields_of
from lmgauge.cli.models import say_made
from lmgauge.cli.say import say
from lmgauge.models.training.settings import NEURAL_KINDS

if TYPE_CHECKING:
    from lmgauge.models.training.loop import TrainingEvent


def train(call: Call) -> None:
    """Train with the verb of the kind, and refuse the options of the other."""
    kind = call["kind"]
    if kind in NEURAL_KINDS:
        call.refuse(fields_of(train_ngrams) - fields_of(train_neural), f"is for n-gram models; {kind} does not take it")
        _train_network(call)
        return
    call.refuse(fields_of(train_neural) - fields_of(train_ngrams), f"is for neural models; {kind} does not take it")
    refuse_replacing({"-o": call["output"]}, [call["words"]] if call["words"] else [])
    from lmgauge.models.ngram.settings import ADDITIVE

    if kind in ADDITIVE:
        call.refuse(("interpolate",), f"is for smoothings that use lower orders; {kind} does not")
    if kind == "good-turing" and call["interpolate"]:
        call.refuse(("interpolate",), "cannot be combined with good-turing, which always backs off")
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
    try:
        result = call(train_neural, progress=say_progress, watch=_watch)
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


def _watch(event: TrainingEvent) -> None:
    if event.finished:
        say(epoch_line(event), err=True)
    say_progress(live_line(event))


def epoch_line(event: TrainingEvent) -> str:
    """Return what there is to say of an epoch that has ended."""
    parts = [f"epoch {event.epoch + 1}/{event.epochs}: training perplexity {event.perplexity:,.2f} ({event.bits:.3f} bits)"]
    if event.valid_perplexity is not None:
        best = " (best)" if event.valid_perplexity == event.best_perplexity else ""
        parts.append(f"validation perplexity {event.valid_perplexity:,.2f}{best}")
    return ", ".join([*parts, f"{event.tokens_per_second:,.0f} tokens/s", f"learning rate {event.learning_rate:.4g}"])


def live_line(event: TrainingEvent) -> str:
    """Return what there is to say during an epoch."""
    best = "" if event.best_perplexity is None else f" best {event.best_perplexity:,.2f}"
    left = "?" if event.seconds_left == float("inf") else timedelta(seconds=round(event.seconds_left))
    return (
        f"epoch {event.epoch + 1}/{event.epochs} {event.update / max(1, event.updates):4.0%} "
        f"ppl {event.perplexity:,.1f} ({event.bits:.2f} bits) {event.tokens_per_second:,.0f} tok/s {left} left{best}"
    )
