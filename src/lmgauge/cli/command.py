"""How a command declares its options: under headings in `--help`, and gathered into settings objects.

    @click.command(cls=Command)
    @click.argument("texts", nargs=-1)
    @click.option("-o", "--output", required=True)                      # under "Options"
    @under("Statistics", seed_option, threads_option)                   # a heading; the values arrive one by one
    @settings("reading", ReadingOptions, "Text", unit_option, ...)      # a heading; one value arrives, `reading`
    def example(texts: tuple[str, ...], output: str, seed: int, threads: int | None, reading: ReadingOptions) -> None:

`settings` takes any frozen dataclass whose fields are called as the options are, so that a decision is made once, here, and
travels as one object: no command has `**options: Any`. Options that several commands share are in `lmgauge.cli.options`
(`reading_settings`, `scoring_settings`, `seed_option` ...). The headings in use are Options, Text, Errors, Model, Neural
models, ARPA and KenLM files, Statistics and Output; `--help` shows them in the order in which the decorators stand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar, is_typeddict

import click
from click.core import ParameterSource

F = TypeVar("F", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose `--help` shows options under their headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each heading with its options, in the order of their declaration; those without a heading come first."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(vars(parameter).get("heading", "Options"), []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def under(heading: str, *options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return a decorator that declares options under a heading of `--help`.

    Args:
        heading: a word or two.
        options: what `click.option` returns; their values reach the command one by one.
    """

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
            vars(_parameters(command)[-1]).setdefault("heading", heading)
        return command

    return decorate


def number(word: str) -> float:
    """Return a number as a person writes it, the same in every option: 0.25, 1/4 or 25%.

    Raises:
        InputError: it is not a number.

    >>> number("1/4"), number("25%")
    (0.25, 0.25)
    """
    from lmgauge.api.calc import read_number

    return read_number(word, "number", percent=True)


class Number(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click
    """One number, as `number` reads it."""

    name = "NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number.

        Raises:
            click.BadParameter: it is not one.

        >>> Number()("1/4")
        0.25
        """
        try:
            return number(value) if isinstance(value, str) else float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number such as 0.25, 1/4 or 25%", param, ctx)


class CommaList(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click
    """Values with commas between them; the command gets a tuple of them.

    Args:
        kind: of each value: int, float or str.
        example: for the message about what is not such a list.
    """

    name = "N[,N...]"

    def __init__(self, kind: type[int | float | str], example: str) -> None:
        self._kind, self._example = kind, example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the values.

        Raises:
            click.BadParameter: one of them is not a number.

        >>> CommaList(int, "1,5")("0,1"), CommaList(float, "0.5,0.5")("1/4,75%")
        ((0, 1), (0.25, 0.75))
        """
        if not isinstance(value, str):
            return value
        read = number if self._kind is float else self._kind
        try:
            return tuple(read(part.strip()) for part in value.split(",") if part.strip() or self._kind is not str)
        except ValueError:
            numbers = "whole numbers" if self._kind is int else "numbers"
            self.fail(f"{value!r} is not a list of {numbers} like {self._example}", param, ctx)


def whole_number(
    *names: str, help: str, least: int = 1, default: int | None = None, metavar: str = "N"
) -> Callable[[Any], Any]:
    """Return the decorator of an option that takes a whole number.

    Args:
        names: its spellings, such as `-n` and `--count`.
        help: the line on the help page; says what happens without the option where there is no default.
        least: the smallest number that is accepted.
        default: the number without the option.
        metavar: what the help page calls the number.
    """
    return click.option(*names, type=click.IntRange(min=least), default=default, metavar=metavar, help=help)


def settings(
    argument: str, made: type[Any], heading: str, *options: Callable[[Any], Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that declares options and gathers their values into one object.

    Args:
        argument: the name under which the command takes the object.
        made: a dataclass; every option has the name of one of its fields, and a field without an option its default.
            Or the TypedDict of a function's keywords.
        heading: of the options in `--help`.
        options: what `click.option` returns.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def gathered(*arguments: Any, **values: Any) -> None:
            own = {name: values.pop(name) for name in names_of(made) & values.keys()}
            command(*arguments, **{argument: made(**own)}, **values)

        return under(heading, *options)(gathered)

    return decorate


def names_of(made: type[Any]) -> set[str]:
    """Return the names of the options that make a settings object: those of its fields, or the keys of a typed dict."""
    return set(made.__annotations__) if is_typeddict(made) else {field.name for field in fields(made)}


def options_given() -> list[str]:
    """Return the names of the options and arguments of the running command that the user wrote."""
    context = click.get_current_context()
    of_user = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    return [name for name in context.params if context.get_parameter_source(name) in of_user]


def refuse_given(names: Collection[str], reason: str) -> None:
    """Refuse options that do not apply to what was chosen: none is ignored in silence.

    Args:
        names: of the options' parameters.
        reason: what they are for; follows the option's spelling in the message.

    Raises:
        click.UsageError: the user gave one of them; the message names the first.
    """
    context = click.get_current_context()
    for name in options_given():
        if name in names:
            parameter = next(parameter for parameter in context.command.params if parameter.name == name)
            off = context.params[name] is False and parameter.secondary_opts
            raise click.UsageError(f"{(off or parameter.opts)[-1 if off else 0]} {reason}", context)


def _parameters(command: Callable[..., Any]) -> list[click.Parameter]:
    """Return what decorators declared so far, the latest last; click turns the order round when it makes the command."""
    declared: list[click.Parameter] = vars(command)["__click_params__"]
    return declared
