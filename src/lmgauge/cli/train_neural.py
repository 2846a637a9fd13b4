"""What `lmgauge train` takes and does for neural models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import click

from lmgauge.choices import ARPA_ENDINGS
from lmgauge.cli.command import options_given, under
from lmgauge.cli.options import read_texts, refuse_field
from lmgauge.cli.say import say
from lmgauge.files import refuse_replacing
from lmgauge.models.training.presets import PRESET_NAMES
from lmgauge.models.training.settings import CHOICES, NEURAL_KINDS, RECURRENT, NeuralTrainingSettings, RunSettings
from lmgauge.text.reading_options import ReadingOptions

_F = TypeVar("_F", bound=Callable[..., Any])

NGRAM_ONLY = ("vocabulary", "words", "eos", "interpolate", "discount", "k", "cutoffs", "prune")
_RUN = ("valid", "preset", "resume", "checkpoint_every", "device", "tensorboard")
_NO_OPTION = {"kind", "preset", "paper", "order", "context", "initializer_range", "sum_over_steps"}
_SETTINGS = tuple(field.name for field in fields(NeuralTrainingSettings) if field.name not in _NO_OPTION)
_SHARED = tuple(field.name for field in fields(RunSettings))
NEURAL_ONLY = _RUN + _SETTINGS
_OF_KINDS: dict[str, tuple[str, ...]] = {
    "num_layers": (*RECURRENT, "transformer"),
    "heads": ("transformer",),
    "nonlinearity": ("rnn",),
    "direct_connections": ("ffnn",),
}


def neural_training_options(command: _F) -> _F:
    """Declare how neural models are trained: the run and its preset, and what is changed of the preset."""
    for heading, options in [
        ("Size of neural models", _size_options()),
        ("Training of neural models", _training_options()),
        ("Neural models", _run_options()),
    ]:
        command = under(heading, *options)(command)
    return command


def _run_options() -> list[Callable[[Any], Any]]:
    return [
        click.option(
            "--valid",
            multiple=True,
            type=click.Path(),
            help="The validation text; the epoch that predicts it best is kept. May be given several times.",
        ),
        click.option(
            "--preset",
            type=click.Choice(PRESET_NAMES),
            default="small",
            show_default=True,
            help="Sizes and recipe of a paper, which the options below change.",
        ),
        click.option(
            "--resume",
            is_flag=True,
            help="Resume a run that was stopped, or begin one. On a CPU, with the same "
            "--threads, the model is the one of a run that was never stopped.",
        ),
        click.option(
            "--checkpoint-every",
            type=click.IntRange(min=0),
            default=500,
            show_default=True,
            metavar="N",
            help="Updates from one checkpoint to the next; 0: only after each epoch.",
        ),
        click.option("--device", metavar="NAME", help="cpu, cuda, cuda:1, ...; a GPU where there is one."),
        click.option("--tensorboard", type=click.Path(), metavar="DIR", help="Write figures for TensorBoard there."),
        click.option(
            "--precision",
            type=click.Choice(CHOICES["precision"]),
            help="Precision of matrix products; bfloat16 is faster where the processor has it; elsewhere it becomes "
            "float32.  [default: float32]",
        ),
        click.option("--seed", type=click.IntRange(min=0), help="Same seed, same model.  [default: 12345]"),
    ]


def _training_options() -> list[Callable[[Any], Any]]:
    positive, count = click.FloatRange(min=0, min_open=True), click.IntRange(min=1)
    return [
        click.option("--epochs", type=count, help="Passes over the text, at most."),
        click.option("--batch-size", type=count, help="Sequences in a batch."),
        click.option("--steps", type=count, help="Tokens of each sequence in one update."),
        click.option("--learning-rate", type=positive, help="Learning rate at its highest."),
        click.option("--optimizer", type=click.Choice(CHOICES["optimizer"]), help="Plain SGD, or AdamW."),
        click.option(
            "--schedule",
            type=click.Choice(CHOICES["schedule"]),
            help="How the learning rate falls: after some epochs, after one without improvement, or as a cosine.",
        ),
        click.option(
            "--decay",
            type=click.FloatRange(0, 1, min_open=True),
            metavar="FACTOR",
            help="Factor of the learning rate in each epoch in which it falls (decay, halve).",
        ),
        click.option(
            "--decay-after", type=click.IntRange(min=0), metavar="N", help="Epochs before the learning rate falls (decay)."
        ),
        click.option(
            "--warmup",
            type=click.IntRange(min=0),
            metavar="N",
            help="Updates in which the learning rate rises from 0 (cosine).",
        ),
        click.option(
            "--improvement",
            type=click.FloatRange(0, 1, max_open=True),
            metavar="SHARE",
            help="Relative fall of the validation perplexity that counts as an improvement (halve, --patience).",
        ),
        click.option("--clip-norm", type=click.FloatRange(min=0), help="Longest gradient; 0: no limit."),
        click.option("--weight-decay", type=click.FloatRange(min=0), help="Weight decay of AdamW."),
        click.option("--patience", type=click.IntRange(min=0), help="Epochs without improvement before stopping; 0: none."),
        click.option("--dropout", type=click.FloatRange(0, 1, max_open=True), help="Share of units dropped."),
    ]


def _size_options() -> list[Callable[[Any], Any]]:
    count = click.IntRange(min=1)
    return [
        click.option("--embedding-size", type=count, help="Width of the word vectors."),
        click.option("--hidden-size", type=count, help="Width of hidden layers."),
        click.option("--layers", "num_layers", type=count, help="Number of hidden layers."),
        click.option("--heads", type=count, help="transformer: number of attention heads."),
        click.option(
            "--nonlinearity", type=click.Choice(CHOICES["nonlinearity"]), help="rnn: nonlinearity of the hidden layer."
        ),
        click.option(
            "--direct-connections/--no-direct-connections",
            default=None,
            help="ffnn: also connect the word vectors to the output.",
        ),
        click.option(
            "--tie-embeddings/--no-tie-embeddings",
            default=None,
            help="The output layer's weights are the word vectors.",
        ),
    ]


def refuse_others(ctx: click.Context, kind: str) -> None:
    """Refuse options that this kind of model does not take.

    Raises:
        click.UsageError: the first of them.
    """
    neural = kind in NEURAL_KINDS
    for name in options_given():
        if neural and (name in NGRAM_ONLY or (name == "order" and kind != "ffnn")):
            raise click.UsageError(f"{_spelled(ctx, name)} is for n-gram models; {kind} does not take it", ctx)
        if not neural and name in NEURAL_ONLY:
            raise click.UsageError(f"{_spelled(ctx, name)} is for neural models; {kind} does not take it", ctx)
        if neural and kind not in _OF_KINDS.get(name, NEURAL_KINDS):
            raise click.UsageError(
                f"{_spelled(ctx, name)} is for {', '.join(_OF_KINDS[name])}; {kind} does not take it", ctx
            )


def _spelled(ctx: click.Context, name: str) -> str:
    return next((parameter.opts[0] for parameter in ctx.command.params if parameter.name == name), name)


def train_and_tell(
    ctx: click.Context,
    kind: str,
    texts: tuple[str, ...],
    output: str,
    reading: ReadingOptions,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Train a neural model and say what came of it.

    Args:
        ctx: of the command; says which options were given.
        kind: one of `NEURAL_KINDS`.
        texts: paths of the training text.
        output: the model's folder.
        reading: how the texts are read.
        as_json: whether to print the result as JSON.
        options: the command's other options by name.
    """
    if output.endswith(ARPA_ENDINGS):
        raise click.UsageError(f"-o {output}: only n-gram models have an ARPA form; a neural model is a folder", ctx)
    from lmgauge.api.train import train_neural
    from lmgauge.cli.training_display import training_display
    from lmgauge.errors import MissingExtraError

    try:
        from lmgauge.models.training.processes import Processes
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), extra="neural") from error
    corpus = read_texts(texts, reading, alone=False)
    valid = read_texts(options["valid"], reading, alone=False) if options["valid"] else None
    refuse_field(corpus, valid)
    read = [source.path for text in (corpus, valid) if text is not None for source in text.sources]
    refuse_replacing({"-o": output}, read)
    given = set(options_given())
    changes = {name: options[name] for name in _SETTINGS}
    changes |= {name: options[name] for name in ("order", "context") if name in given}
    shows = Processes.from_environment().rank == 0
    try:
        with training_display(live=shows) as display:
            result = train_neural(
                kind,  # type: ignore[arg-type]  # click has checked it
                corpus,
                valid=valid,
                output=output,
                preset=options["preset"],
                progress=display.say,
                watch=display.show,
                **{name: options[name] for name in _SHARED},
                **changes,
            )
    except (KeyboardInterrupt, SystemExit):
        if shows:
            say(f"lmgauge: stopped; the same command with --resume resumes from {output}.training", err=True)
        raise
    if shows:
        _tell(result, as_json)


def _tell(result: Any, as_json: bool) -> None:
    from lmgauge.json_text import to_json

    if as_json:
        click.echo(to_json(result.to_dict()))
        return
    best = "" if result.valid_perplexity is None else f"; validation perplexity {result.valid_perplexity:,.2f}"
    epochs = "1 epoch" if result.epochs == 1 else f"{result.epochs} epochs"
    say(
        f"{result.path}: {result.settings.kind}, {result.settings.preset}, {result.parameters:,} parameters, trained on "
        f"{result.events:,} events in {epochs} and {result.seconds:,.0f} s{best}",
        err=True,
    )
    for note in result.notes:
        say(f"note: {note}", err=True)
