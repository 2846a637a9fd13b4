"""What a verb declares: its keywords, the settings that it shares with other verbs, and what the docstrings say of each.

A verb is a function that `import lmgauge` exports. Its typed keywords, their defaults and the lines of `Args:` are the one
declaration of its options. What belongs together, or what several verbs share, is a class of settings:

    @settings
    class Sampling:
        \"\"\"How a sample is drawn.

        Attributes:
            seed: same seed, same output.
        \"\"\"

        heading: ClassVar[str] = "Statistics"
        seed: Natural = 12345

    @verb
    def sample(model: Model, *, length: Count = 20, sampling: Sampling = Sampling(), **fields: Any) -> str:

`sample(model, seed=1)` is `sample(model, sampling=Sampling(seed=1))`; `lmgauge.cli.derive` makes --length and --seed of it.
"""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, wraps
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, dataclass_transform, get_args, get_origin

from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import MOST, Bounds, check_whole

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
REQUIRED = inspect.Parameter.empty
_ENTRY = re.compile(r"(\w+(?:, \w+)*): (.*)")


class Elsewhere:
    """What stands for a type that only type checkers import; no option is made of it."""

    __class_getitem__: Any = classmethod(types.GenericAlias)


_EVERYWHERE = (
    vars(builtins)
    | {"os": os, "Any": Any}
    | {name: getattr(module, name) for module in (typing, collections.abc) for name in module.__all__}
)


class _Names(dict[str, Any]):
    """The names that annotations are made of."""

    def __missing__(self, name: str) -> Any:
        return _EVERYWHERE.get(name, Elsewhere)


class Option(NamedTuple):
    """A keyword of a verb, its own or a field of settings that it takes."""

    name: str
    kinds: tuple[Any, ...]  # the types that it may have, without None
    default: Any  # REQUIRED where there is none
    words: str  # what the docstring says of it
    keyword: str = ""  # the verb's parameter that it belongs to: itself, or settings
    owner: type[Any] | None = None  # the class of settings; None for the verb's own
    bounds: Bounds | None = None
    positional: bool = False
    optional: bool = False  # None is a value

    @property
    def choices(self) -> tuple[Any, ...]:
        """The words to choose from, if it has such."""
        return tuple(word for kind in self.kinds if get_origin(kind) is Literal for word in get_args(kind))

    @property
    def element(self) -> Any | None:
        """The type of each of several values; None where there is one value."""
        several = (list, collections.abc.Sequence, collections.abc.Mapping)
        kinds = (kind for kind in self.kinds if get_origin(kind) in several and kind != Sequence[Sequence[str]])
        return next((get_args(kind)[-1] for kind in kinds if kind != Mapping[str, str]), None)  # which one file holds

    @property
    def is_path(self) -> bool:
        """Return True if it names a file, or several."""
        parts = [*self.kinds, *_parts(self.element)]
        return any(get_origin(part) is os.PathLike or part is os.PathLike for part in parts)

    def check(self, value: object) -> None:
        """Refuse a value that is not one of the choices, or a number outside the bounds.

        Raises:
            UsageError: what is wrong, and what is right.
        """
        name = self.name.replace("_", "-")
        several = self.element is not None and isinstance(value, Sequence | Mapping) and not isinstance(value, str)
        if (value is None and self.optional) or several:
            return
        if self.choices and value not in self.choices and all(get_origin(kind) is Literal for kind in self.kinds):
            raise UsageError(f"unknown {name} {value!r}: choose one of {', '.join(map(str, self.choices))}")
        if self.bounds is not None and int in self.kinds:
            check_whole(name, value, int(self.bounds.least), int(min(self.bounds.most, MOST)))
        elif self.bounds is not None:
            self.bounds.check(name, value)


@dataclass_transform(frozen_default=True)
def settings(kind: type[T]) -> type[T]:
    """Make a class of settings: a frozen dataclass whose values are held to its annotations after its `__post_init__`."""
    own = getattr(kind, "__post_init__", None)

    def __post_init__(made: Any) -> None:
        if own is not None:
            own(made)
        if any(getattr(made, field.name) is not field.default for field in fields(made)):  # signatures have the defaults
            for option in settings_options(made.__class__):
                option.check(getattr(made, option.name))

    kind.__post_init__ = __post_init__  # type: ignore[attr-defined]
    return dataclass(frozen=True)(kind)


def chosen(made: Any) -> list[str]:
    """Return the names of those fields of settings that differ from their defaults."""
    return [field.name for field in fields(made) if getattr(made, field.name) != field.default]


class _Words(str):
    """An annotation as it is written, which `help` shows without quotes."""

    __repr__ = str.__str__


def verb(function: F) -> F:
    """Let a verb take the fields of its settings by name, besides the settings themselves; None stands for the defaults.

    Raises:
        TypeError: on a call with something by position that has a name only.
        UsageError: on a call with a keyword that is neither the verb's nor a field of its settings.
    """

    function.__annotations__ = {name: _Words(words) for name, words in function.__annotations__.items()}

    @wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        own = own_keywords(function)
        placed = [name for name, one in own.items() if one.kind is not one.KEYWORD_ONLY]
        if len(arguments) > len(placed):
            named = list(own)[len(placed) : len(placed) + 2]
            call = ", ".join([*placed, *(f"{name}=..." for name in named)])
            what = f"{function.__name__} takes {' and '.join(named)} by name, not by position"
            raise TypeError(f"{what}: {function.__name__}({call})")
        by_place = dict(zip(placed, arguments, strict=False))
        if by_place.keys() & keywords.keys():
            return function(*arguments, **keywords)  # which says what is wrong
        return function(**_gathered(function, by_place | keywords))

    return called  # type: ignore[return-value]


def _gathered(function: Callable[..., Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords with fields of settings gathered into these; what is also a keyword of the verb stays one."""
    own, classes = own_keywords(function), settings_of(function)
    made = {name: value for name, value in keywords.items() if name in own and not (name in classes and value is None)}
    homes = {field.name: keyword for keyword, kind in reversed(classes.items()) for field in fields(kind)}
    for name in keywords.keys() - own.keys():
        if name not in homes:
            from difflib import get_close_matches

            near = get_close_matches(name, [*own, *homes], 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join([*own, *homes])}"
            raise UsageError(f"{function.__name__} has no option {name!r}; {hint}")
    for option in options_of(function):
        if option.owner is None and option.name in made:
            option.check(made[option.name])
    for keyword, kind in classes.items():
        names = {field.name for field in fields(kind)}
        values = {
            name: value for name, value in keywords.items() if name in names and (name in own or homes[name] == keyword)
        }
        if values:
            make = getattr(kind, "of_preset", kind)  # whose defaults depend on some of the values
            made[keyword] = replace(made[keyword], **values) if keyword in made else make(**values)
    return made


@cache
def own_keywords(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a verb, without the `**fields` that stand for those of its settings."""
    parameters = inspect.signature(inspect.unwrap(function)).parameters
    return {name: one for name, one in parameters.items() if one.kind is not inspect.Parameter.VAR_KEYWORD}


@cache
def settings_of(function: Callable[..., Any]) -> dict[str, type[Any]]:
    """Return the classes of settings that a verb takes, by the names of their parameters."""
    hints = _hints(inspect.unwrap(function))
    kinds = {name: [kind for kind in _parts(hints[name]) if hasattr(kind, "heading")] for name in own_keywords(function)}
    return {name: found[0] for name, found in kinds.items() if found}


@cache
def options_of(function: Callable[..., Any]) -> tuple[Option, ...]:
    """Return what a verb declares, in order: its own keywords, then the fields of each class of settings; or of one."""
    if hasattr(function, "heading"):
        return settings_options(function)
    inner = inspect.unwrap(function)
    hints, words, classes = _hints(inner), entries(inner, "Args"), settings_of(function)
    own = [
        _option(name, hints[name], one.default, words.get(name, ""))._replace(
            keyword=name, positional=one.kind is not one.KEYWORD_ONLY
        )
        for name, one in own_keywords(function).items()
        if name not in classes
    ]
    return (*own, *(option._replace(keyword=name) for name, kind in classes.items() for option in settings_options(kind)))


def settings_options(kind: Any) -> tuple[Option, ...]:
    """Return the fields of a class of settings, as options."""
    return _settings_options(kind)


@cache
def _settings_options(kind: Any) -> tuple[Option, ...]:
    hints: dict[str, Any] = {}
    words: dict[str, str] = {}
    owners: dict[str, type[Any]] = {}
    for base in reversed(kind.__mro__[:-1]):
        hints |= _hints(base)
        words |= entries(base, "Attributes")
        owners |= dict.fromkeys(_hints(base), base) if hasattr(base, "heading") else {}
    made = []
    for field in fields(kind):
        default = REQUIRED if field.default is MISSING else field.default
        option = _option(field.name, hints[field.name], default, words.get(field.name, ""))
        made.append(option._replace(owner=owners.get(field.name, kind)))
    return tuple(made)


def _option(name: str, hint: Any, default: Any, words: str) -> Option:
    parts = _parts(hint)
    bounds = next((part for part in parts if isinstance(part, Bounds)), None)
    kinds = tuple(part for part in parts if part is not type(None) and not isinstance(part, Bounds))
    return Option(name, kinds, default, words, bounds=bounds, optional=type(None) in parts)


def _parts(hint: Any) -> list[Any]:
    """Return the types that a hint allows, and what stands beside them.

    >>> _parts(Annotated[int, Bounds(1)] | str)
    [<class 'int'>, Bounds(least=1, most=inf, open_least=False, open_most=False), <class 'str'>]
    """
    if get_origin(hint) is Annotated:
        return [*_parts(get_args(hint)[0]), *get_args(hint)[1:]]
    if get_origin(hint) in (Union, types.UnionType):
        return list(dict.fromkeys(part for one in get_args(hint) for part in _parts(one)))
    return [hint]


@cache
def _hints(declared: Any) -> dict[str, Any]:
    """Return the types of parameters or of a class's own fields, with `Elsewhere` for those that only type checkers see."""
    return inspect.get_annotations(declared, locals=_Names(vars(sys.modules[declared.__module__])), eval_str=True)


def entries(declared: Any, section: str) -> dict[str, str]:
    """Return what a docstring says of each name in a section of it, such as "Args"; a line may be about several.

    >>> entries(_option, "Args")
    {}
    """
    said: dict[str, str] = {}
    names: list[str] = []
    for line in section_of(inspect.cleandoc(declared.__doc__ or ""), section):
        entry = None if line.startswith(" ") else _ENTRY.fullmatch(line)
        if entry is not None:
            names = entry[1].split(", ")
        said |= {name: entry[2] if entry is not None else f"{said[name]} {line.strip()}" for name in names if line}
    return said


def section_of(documentation: str, section: str) -> list[str]:
    """Return the lines of a section, without heading and indentation.

    >>> section_of("Add.\\n\\nArgs:\\n    a: one.\\n\\nReturns:\\n    the sum.", "Args")
    ['a: one.']
    """
    _, heading, body = f"\n{documentation}".partition(f"\n{section}:\n")
    end = re.search(r"^\S", body, re.MULTILINE)
    return [line[4:] for line in (body if end is None else body[: end.start()]).rstrip().split("\n")] if heading else []
