"""Jinja as chat templates know it, for templates that nobody has read: no clock, no chance, bounded work and memory."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from functools import lru_cache, reduce, wraps
from operator import add
from typing import Any, cast

from lmgauge.base.errors import InputError, needing

with needing("jinja2", extra="neural"):
    import jinja2
    from jinja2 import ext, meta, nodes, parser, sandbox
    from jinja2.utils import Namespace
    from jinja2.visitor import NodeTransformer

_MOST_STEPS, _CALL, _STEP = 2_000_000, 10, 200
"""Most steps of one rendering. An item of a loop is one; a call takes more; an operation one for so many characters."""
_MOST_CHARACTERS = 100_000_000
"""Most characters of one value, and of what is printed."""
_GROWING = {"batch", "center", "expandtabs", "format", "format_map", "indent", "join", "ljust", "replace", "rjust", "round"}
_GROWING |= {"slice", "tojson", "translate", "truncate", "wordwrap", "zfill", "*", "%"}
"""Filters, methods and operators whose result can be larger than what they are given: the product of that is bounded."""
_FAULTS = (
    jinja2.TemplateError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
)


class _Generation(ext.Extension):
    """Blocks that templates put around what the assistant says, for training; they print what is inside."""

    tags = {"generation"}  # noqa: RUF012 - as the class above has it

    def parse(self, parser: parser.Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Namespace(Namespace):
    """A namespace without names that Python uses itself."""

    def __init__(*args: Any, **attributes: Any) -> None:
        self, *rest = args
        Namespace.__init__(self)
        for name, value in dict(*rest, **attributes).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if str(name).startswith("_"):
            raise jinja2.exceptions.SecurityError(f"a namespace cannot have the attribute {name!r}")
        super().__setitem__(name, value)


class _Sandbox(sandbox.ImmutableSandboxedEnvironment):
    """The environment that transformers makes, and a count of what a template does in it."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self) -> None:
        extensions = [_Generation, ext.loopcontrols]
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=extensions, finalize=self._printed)
        self.steps = self.printed = 0
        self.filters |= {"tojson": _to_json}
        self.filters = {name: self._counted(name, each) for name, each in self.filters.items() if name != "random"}
        self.filters |= {"_items": self._items, "_sum": self._sum, "_concatenated": self._concatenated}
        self.globals |= {"raise_exception": _raise, "namespace": _Namespace}
        del self.globals["lipsum"]  # chance, as the filter `random`

    def call(self, context: Any, function: Any, /, *args: Any, **named: Any) -> Any:
        """Call a function or a macro."""
        wrapped = getattr(function, "__wrapped__", function)
        self._step(_CALL)
        self._count(getattr(function, "__name__", ""), getattr(wrapped, "__self__", None), *args, *named.values())
        return self._bounded(super().call(context, function, *args, **named))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Calculate."""
        if not (isinstance(left, int) and isinstance(right, int)):
            self._count(operator, left, *(right if isinstance(right, tuple) else (right,)))
        elif operator in {"*", "**"} and left.bit_length() * (right if operator == "**" else 1) + right.bit_length() > _STEP:
            raise OverflowError("a number is too large")
        return self._bounded(super().call_binop(context, operator, left, right))

    def getitem(self, value: Any, argument: Any) -> Any:
        """Take an item, or a slice."""
        item = super().getitem(value, argument)
        return self._bounded(item) if isinstance(argument, slice) else item

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)  # and its marks: what of the context it wants
        def counted(*args: Any, **named: Any) -> Any:
            args = tuple(list(each) if isinstance(each, Iterator) else each for each in args)
            self._count(name, *args, *named.values())
            return self._bounded(function(*args, **named))

        return counted

    def _count(self, name: str, *values: Any) -> None:
        sizes = [_size(value) for value in values]
        if name in _GROWING:
            product = 1
            for value, size in zip(values, sizes, strict=True):
                product *= max(1, abs(value) if isinstance(value, int) else size)
            width = name in {"%", "format", "format_map"} and any(re.search(r"\d{6}", str(value)) for value in values[:1])
            if product > 5 * _MOST_CHARACTERS or width:
                raise OverflowError(f"{name} would make a value that is too long")
        self._step(1 + sum(sizes) // _STEP)

    def _step(self, steps: int) -> None:
        self.steps += steps
        if self.steps > _MOST_STEPS:
            raise OverflowError(f"it takes more than {_MOST_STEPS:,} steps (endless or nested loops?)")

    def _items(self, iterable: Iterable[Any], cost: int) -> Any:
        # What a loop runs over, counted before it runs.
        items = iterable if isinstance(iterable, Sized) else list(iterable)
        self._step(1 + cost * len(items))
        return items

    def _sum(self, terms: list[Any]) -> Any:
        self._bounded(terms)
        return reduce(add, terms)

    def _concatenated(self, values: list[Any]) -> str:
        return "".join(map(str, self._bounded(values)))

    def _bounded(self, value: Any) -> Any:
        size = _size(value)
        self._step(size // _STEP)
        if size > _MOST_CHARACTERS:
            raise OverflowError(f"a value has more than {_MOST_CHARACTERS:,} characters")
        return value

    def _printed(self, value: Any) -> Any:
        self.printed += _size(value)
        if self.printed > _MOST_CHARACTERS:
            raise OverflowError(f"it prints more than {_MOST_CHARACTERS:,} characters")
        return value


class Compiled:
    """A template, ready to render."""

    def __init__(self, source: str, name: str) -> None:
        self._name, self._lock, self._sandbox = name, threading.Lock(), _Sandbox()
        try:
            tree = self._sandbox.parse(source)
            self.variables = meta.find_undeclared_variables(tree)
            constants = {node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)}
            self.literals = sorted(each for each in constants if each.strip())
            self._template = self._sandbox.from_string(_Counting().visit(tree))
        except jinja2.TemplateSyntaxError as error:
            raise InputError(f"{name}: line {error.lineno} of the chat template: {error.message}") from error
        except RecursionError as error:
            raise InputError(f"{name}: the chat template is nested too deeply") from error

    def render(self, variables: Mapping[str, Any]) -> str:
        """Return what the template makes of variables."""
        with self._lock:
            self._sandbox.steps = self._sandbox.printed = 0
            try:
                return self._template.render(variables)
            except _FAULTS as error:
                text = " ".join(str(error).split()) or type(error).__name__
                raise InputError(f"{self._name}:{_line(error)} the chat template: {text}") from error


@lru_cache(maxsize=16)
def compiled(source: str, name: str) -> Compiled:
    """Return a template, compiled once."""
    return Compiled(source, name)


class _Counting(NodeTransformer):
    # Puts the counts into a template where no call of the environment stands.
    def visit_For(self, node: nodes.For) -> nodes.Node:
        # An iteration costs what it may print.
        self.generic_visit(node)
        cost = 1 + sum(len(each.data) for each in node.find_all(nodes.TemplateData)) // _STEP
        node.iter = self._call("_items", node.iter, nodes.Const(cost, lineno=node.lineno))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return self._call("_concatenated", nodes.List(node.nodes, lineno=node.lineno))

    def visit_Add(self, node: nodes.Add) -> nodes.Node:
        terms: list[nodes.Expr] = [node]
        while isinstance(terms[0], nodes.Add):
            terms[:1] = [terms[0].left, terms[0].right]
        return self._call("_sum", nodes.List([self.visit(each) for each in terms], lineno=node.lineno))

    def _call(self, name: str, node: nodes.Node, *args: nodes.Expr) -> nodes.Filter:
        return nodes.Filter(cast(nodes.Expr, node), name, list(args), [], None, None, lineno=node.lineno)


def _line(error: BaseException) -> str:
    # Of the template, where the error was raised in it.
    line, trace = "", error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = f" line {trace.tb_lineno} of"
        trace = trace.tb_next
    return line


def _size(value: Any) -> int:
    # Characters of a value, about; an item counts as many, so that one that holds another many times is soon too large.
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list | tuple | dict):
        size = 100 * len(value)
        values = value.values() if isinstance(value, dict) else value
        if set(map(type, values)) == {str}:
            return size + sum(map(len, values))
        for each in values:
            size += _size(each)
            if size > _MOST_CHARACTERS:
                break
        return size
    return 1


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
