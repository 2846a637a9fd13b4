"""Options that several commands share, worded once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from lmgauge.choices import ERROR_POLICIES, FIRST_TOKENS, FORMATS, PRECISIONS, RESERVED_POLICIES, SEGMENT_ENDS, UNITS

if TYPE_CHECKING:
    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.text.documents import Corpus

_F = TypeVar("_F", bound=Callable[..., Any])


def given_options() -> list[str]:
    """Return the names of the options and arguments of the running command that the user gave."""
    context = click.get_current_context()
    of_user = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    return [name for name in context.params if context.get_parameter_source(name) in of_user]


def refuse_given(names: Collection[str], reason: str) -> None:
    """Refuse options that what was chosen does not take: none is ignored in silence.

    Args:
        names: of their parameters.
        reason: what they are for, and what does not take them; follows the option's spelling.

    Raises:
        click.UsageError: the user gave one of them; the first is named.
    """
    context = click.get_current_context()
    for name in given_options():
        if name in names:
            parameter = next(parameter for parameter in context.command.params if parameter.name == name)
            off = context.params[name] is False and parameter.secondary_opts
            raise click.UsageError(f"{(off or parameter.opts)[-1 if off else 0]} {reason}", context)


unit_option = click.option(
    "--unit",
    type=click.Choice(UNITS),
    default="line",
    show_default=True,
    help="What is a segment: each line, or each file.",
)


TEXT_OPTIONS = ("unit", "field", "group", "format_", "errors")


def text_options(command: _F) -> _F:
    """How texts are read: unit, field, format, groups, and what to do with invalid bytes."""
    for option in reversed(
        [
            unit_option,
            click.option(
                "--field",
                default="text",
                show_default=True,
                metavar="NAME",
                help="Field of JSONL, column of TSV or Parquet.",
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
                type=click.Choice(FORMATS),
                help="Of the texts; by suffix if not given.",
            ),
            click.option(
                "--errors",
                type=click.Choice(ERROR_POLICIES),
                default="fail",
                show_default=True,
                help="Invalid UTF-8 and NUL bytes: stop, replace by U+FFFD, or leave out the segment (skip: also a record "
                "without text or with bad JSON).",
            ),
        ]
    ):
        command = option(command)
    return command


document_option = click.option(
    "--document",
    metavar="RULE",
    help="What is independent: file, segment, unknown, blank-line, heading, or this field; if not given, each of several "
    "text files.",
)


def corpus_of(texts: tuple[str, ...], options: dict[str, Any], *, alone: bool = True) -> Corpus:
    """The corpus that arguments and `text_options` name; standard input if there are none.

    Args:
        texts: files, globs or -.
        options: of the command.
        alone: whether the options are for this corpus only; where several share them, call `refuse_field` with all.
    """
    from lmgauge.text.documents import Corpus

    corpus = Corpus.from_files(
        list(texts) or ["-"],
        unit=options["unit"],
        field=options["field"],
        group=options["group"],
        document=options.get("document"),
        id=options.get("id"),
        format=options["format_"],
        errors=options["errors"],
    )
    if alone:
        refuse_field(corpus)
    return corpus


def refuse_field(*corpora: Corpus | None) -> None:
    """Refuse --field where no text has fields.

    Raises:
        click.UsageError: it was given, and all texts are plain.
    """
    sources = [source for corpus in corpora if corpus is not None for source in corpus.sources]
    if all(source.format == "text" for source in sources):
        refuse_given(
            ("field",), "names a field of JSONL, TSV or Parquet, and the text is plain; leave it out, or add --format"
        )


_OF_MACHINE = ("device", "batch_tokens", "trust_remote_code")
NEURAL_OPTIONS = ("context", "stride", "first_token", "end", "dtype", "device", "batch_tokens", "trust_remote_code", "bos")


def neural_options(command: _F) -> _F:
    """How neural models score: what each prediction sees, and what they compute with."""
    for option in reversed(
        [
            click.option(
                "--context",
                metavar="N|sentence|stream",
                help="Neural models: most tokens a prediction sees; stream runs on over segments (stream,1024: both).",
            ),
            click.option(
                "--stride",
                type=click.IntRange(min=1),
                metavar="N",
                help="Neural models: tokens from one window to the next; the context if not given.",
            ),
            click.option(
                "--first-token",
                type=click.Choice(FIRST_TOKENS),
                help="Neural models: what the first token is predicted from; bos where the model has it, else uniform.",
            ),
            click.option(
                "--end",
                type=click.Choice(SEGMENT_ENDS),
                help="Neural models: what ends a line; eos for those trained here, for others their own newline.",
            ),
            click.option(
                "--dtype",
                type=click.Choice(PRECISIONS),
                default="auto",
                show_default=True,
                help="Neural models: what they compute in; auto is bfloat16 on a GPU.",
            ),
            click.option(
                "--device", metavar="NAME", help="Neural models: cpu, cuda, cuda:1, ...; a GPU where there is one."
            ),
            click.option(
                "--batch-tokens",
                type=click.IntRange(min=1),
                metavar="N",
                help="Neural models: tokens at a time; by free memory if not given. Changes rounding only.",
            ),
            click.option("--trust-remote-code", is_flag=True, help="Let code that comes with a model run."),
            click.option(
                "--bos",
                metavar="TEXT",
                help="Servers: text set before each segment, so that its first token has a score, such as '<s>'.",
            ),
        ]
    ):
        command = option(command)
    return command


def scoring_options(options: dict[str, Any]) -> ScoringOptions:
    """What `neural_options` say."""
    from lmgauge.models.network.options import ScoringOptions, parse_context

    context, stream = parse_context(options["context"]) if options["context"] is not None else (None, None)
    chosen = {name: options[name] for name in NEURAL_OPTIONS if name != "context"}
    return ScoringOptions(context=context, stream=stream, **chosen)


def refuse_unused(options: dict[str, Any], models: Sequence[object]) -> None:
    """Refuses options for neural models that none of the models takes.

    Raises:
        click.UsageError: the first such option.
    """
    for name in NEURAL_OPTIONS:
        if options[name] not in (None, False, "auto") and not any(_takes(model, name) for model in models):
            raise click.UsageError(f"--{name.replace('_', '-')} is for neural models, and no model named here takes it")


def _takes(model: object, name: str) -> bool:
    parts = getattr(model, "components", None)
    if parts is not None:  # what a mixture is made of keeps its own policy
        return name in _OF_MACHINE and any(_takes(part, name) for part in parts)
    return hasattr(model, "server") if name == "bos" else hasattr(model, "policy")


def show_speed(models: Iterable[object], status: Any) -> None:
    """Lets models that compute for long tell how far they are."""
    from lmgauge.report.terminal import Speed

    speed = Speed()
    for model in models:
        if hasattr(model, "progress"):
            model.progress = lambda tokens: status.update(f"scored {speed.add(tokens)}")


threads_option = click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads to use; all cores if not given (one to train narrow recurrent models). No result depends on it but the "
    "last bits of neural models.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, full precision.")
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=12345, show_default=True, help="Same seed, same output."
)
reserved_option = click.option(
    "--reserved",
    type=click.Choice(RESERVED_POLICIES),
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
