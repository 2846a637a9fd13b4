"""What `lmgauge train` takes and does for neural models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from lmgauge.choices import ARPA_ENDINGS, DEFAULT_SEED, KENLM_ENDINGS
from lmgauge.cli.command import names_of, options_given, refuse_given
from lmgauge.cli.options import read_texts, refuse_field
from lmgauge.cli.say import say
from lmgauge.files import refuse_replacing
from lmgauge.models.training.presets import PRESET_NAMES
from lmgauge.models.training.settings import CHOICES, RECURRENT, RunSettings, SettingsChanges
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.models.training.run import NeuralTraining

NEURAL_ONLY = {"valid", "preset", "checkpoint_every", "device", "tensorboard"} | (
    names_of(SettingsChanges) - {"order", "context"}
)
_OF_KINDS: dict[str, tuple[str, ...]] = {
    "num_layers": (*RECURRENT, "transformer"),
    "heads": ("transformer",),
    "nonlinearity": ("rnn",),
    "direct_connections": ("ffnn",),
}


@dataclass(frozen=True)
class TrainingFiles:
    """What a training reads and writes.

    Attributes:
        texts: paths of the training text.
        output: the model's folder or ARPA file.
        as_json: True to print the result as JSON.
        words: file with the vocabulary of an n-gram model.
        valid: paths of the validation text of a neural model.
        preset: of a neural model.
    """

    texts: tuple[str, ...]
    output: str
    as_json: bool
    words: str | None
    valid: tuple[str, ...]
    preset: str


_POSITIVE, _COUNT = click.FloatRange(min=0, min_open=True), click.IntRange(min=1)
RUN = (
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
    click.option("--seed", type=click.IntRange(min=0), help=f"Same seed, same model.  [default: {DEFAULT_SEED}]"),
)
RECIPE = (
    click.option("--epochs", type=_COUNT, help="Passes over the text, at most."),
    click.option("--batch-size", type=_COUNT, help="Sequences in a batch."),
    click.option("--steps", type=_COUNT, help="Tokens of each sequence in one update."),
    click.option("--learning-rate", type=_POSITIVE, help="Learning rate at its highest."),
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
)
SIZES = (
    click.option("--embedding-size", type=_COUNT, help="Width of the word vectors."),
    click.option("--hidden-size", type=_COUNT, help="Width of hidden layers."),
    click.option("--layers", "num_layers", type=_COUNT, help="Number of hidden layers."),
    click.option("--heads", type=_COUNT, help="transformer: number of attention heads."),
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
)


def refuse_other_kinds(kind: str, ngram_only: tuple[str, ...]) -> None:
    """Refuse options that this kind of neural model does not take.

    Args:
        kind: one of `NEURAL_KINDS`.
        ngram_only: names of the options that are for n-gram models.

    Raises:
        click.UsageError: the user gave one of them.
    """
    refuse_given(ngram_only if kind == "ffnn" else (*ngram_only, "order"), f"is for n-gram models; {kind} does not take it")
    for name, kinds in _OF_KINDS.items():
        if kind not in kinds:
            refuse_given((name,), f"is for {', '.join(kinds)}; {kind} does not take it")


def train_network(
    kind: str, files: TrainingFiles, reading: ReadingOptions, run: RunSettings, changes: SettingsChanges
) -> None:
    """Train a neural model and print a line about the result.

    Args:
        kind: one of `NEURAL_KINDS`.
        files: what is read and written.
        reading: how the texts are read.
        run: how the run proceeds.
        changes: what differs from the preset, where the user gave it.

    Raises:
        click.UsageError: the output is named like an ARPA file.
        MissingExtraError: torch is not installed.
        LmgaugeError: whatever `lmgauge.train_neural` raises.
    """
    output = files.output
    if output.endswith((*ARPA_ENDINGS, *KENLM_ENDINGS)):
        raise click.UsageError(f"-o {output}: only n-gram models have an ARPA or KenLM form; a neural model is a folder")
    from lmgauge.api.train import train_neural
    from lmgauge.cli.training_display import training_display
    from lmgauge.errors import MissingExtraError

    try:
        from lmgauge.models.training.processes import Processes
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), extra="neural") from error
    corpus = read_texts(files.texts, reading, alone=False)
    valid = read_texts(files.valid, reading, alone=False) if files.valid else None
    refuse_field(corpus, valid)
    refuse_replacing(
        {"-o": output}, [source.path for text in (corpus, valid) if text is not None for source in text.sources]
    )
    chosen = {name: value for name, value in changes.items() if name in options_given()}  # not the defaults of n-grams
    shows = Processes.from_environment().rank == 0
    try:
        with training_display(live=shows) as display:
            result = train_neural(
                kind,  # type: ignore[arg-type]  # click has checked it
                corpus,
                valid=valid,
                output=output,
                preset=files.preset,
                progress=display.say,
                watch=display.show,
                **vars(run),
                **chosen,  # type: ignore[arg-type]  # a part of `SettingsChanges`
            )
    except (KeyboardInterrupt, SystemExit):
        if shows:
            say(f"lmgauge: stopped; the same command with --resume continues from {output}.training", err=True)
        raise
    if shows:
        _print_result(result, files.as_json)


def _print_result(result: NeuralTraining, as_json: bool) -> None:
    from lmgauge.json_text import to_json
    from lmgauge.report.spelling import learned

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
    for line in () if result.learned is None else learned(result.learned):
        say(line, err=True)
    for note in result.notes:
        say(f"note: {note}", err=True)
