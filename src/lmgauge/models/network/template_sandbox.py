"""Jinja as chat templates know it, for templates that nobody has read: no clock, no chance, and work that is counted."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from functools import lru_cache, partial, reduce, wraps
from math import prod
from operator import add
from typing import Any

from lmgauge.base.errors import InputError, needing

with needing("jinja2", extra="neural"):
    from jinja2 import TemplateError, TemplateSyntaxError, ext, meta, nodes, parser, sandbox
    from jinja2.visitor import NodeTransformer

_MOST_STEPS, _STEP = 2_000_000, 200
"""Most steps of one rendering. A call or an item of a loop is some; what is read or made, one for 200 characters."""
_GROWING = {"batch", "center", "expandtabs", "format", "format_map", "indent", "join", "ljust", "replace", "rjust", "round"}
_GROWING |= {"slice", "tojson", "translate", "truncate", "wordwrap", "zfill", "*", "**"}
"""Filters, methods and operators that can make as much as the product of what they are given."""
_FAULTS = (TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError, MemoryError)


class _Generation(ext.Extension):
    """Blocks that templates put around what the assistant says, for training; they print what is inside."""

    tags = {"generation"}  # noqa: RUF012 - as the class above has it

    def parse(self, parser: parser.Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Counting(NodeTransformer):
    # Puts counts into a template where it does not call its environment.
    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        printed = sum(len(each.data) for each in node.find_all(nodes.TemplateData))
        node.iter = _filter("_items", node.iter, nodes.Const(1 + printed // _STEP))
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        return _filter("_made", node) if isinstance(node.arg, nodes.Slice) else node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        return _filter("_sum", *(_filter("string", self.visit(each)) for each in node.nodes))

    def visit_Add(self, node: nodes.Add) -> nodes.Node:
        terms: list[nodes.Expr] = [node]
        while isinstance(terms[0], nodes.Add):
            terms[:1] = [terms[0].left, terms[0].right]
        return _filter("_sum", *map(self.visit, terms))


def _filter(name: str, node: Any, *args: Any) -> nodes.Expr:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)


class _Sandbox(sandbox.ImmutableSandboxedEnvironment):
    """A template in the environment that transformers makes for it, and a count of what it does there."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, source: str, name: str) -> None:
        extensions = [_Generation, ext.loopcontrols]
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=extensions, finalize=self._made)
        filters = {**self.filters, "tojson": partial(json.dumps, ensure_ascii=False)}
        del filters["random"], self.globals["lipsum"]  # chance
        self.filters = {each: self._counted(each, function) for each, function in filters.items()}
        self.filters |= {"_items": self._items, "_sum": self._sum, "_made": self._made}
        self.globals["raise_exception"] = _raise
        self._name, self._lock, self._steps = name, threading.Lock(), 0
        with _explained(name):
            tree = self.parse(source)
            self.variables = meta.find_undeclared_variables(tree)
            constants = {str(node.value) for node in tree.find_all(nodes.Const)}
            self.literals = [each for each in constants if re.search(r"[^\w\s]", each)]
            self._template = self.from_string(_Counting().visit(tree))

    def render(self, variables: Mapping[str, Any]) -> str:
        """Return what the template makes of variables."""
        with self._lock, _explained(self._name):
            self._steps = 0
            return self._template.render(variables)

    def call(self, context: Any, function: Any, /, *args: Any, **named: Any) -> Any:
        """Call a function, a method or a macro."""
        owner = getattr(getattr(function, "__wrapped__", function), "__self__", None)
        self._count(getattr(function, "__name__", ""), owner, *args, *named.values())
        return self._made(super().call(context, function, *args, **named))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Calculate; % is a format too."""
        if operator != "%" or isinstance(left, str):
            self._count("format" if operator == "%" else operator, left, *(right if isinstance(right, tuple) else (right,)))
        return self._made(super().call_binop(context, operator, left, right))

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)  # and its marks: what of the context it wants
        def counted(*args: Any, **named: Any) -> Any:
            args = tuple(list(each) if isinstance(each, Iterator) else each for each in args)
            self._count(name, *args, *named.values())
            return self._made(function(*args, **named))

        return counted

    def _count(self, name: str, *values: Any) -> None:
        size = sum(map(_size, values))
        if name in _GROWING:
            widths = re.findall(r"\d{4,}", str(values[0])) if name.startswith("format") else []
            factors = (abs(each) if isinstance(each, int) else _size(each) for each in values)
            size = prod(max(1, factor) for factor in (*factors, *map(int, widths)))
        self._step(10 + size // _STEP)

    def _items(self, iterable: Any, cost: int) -> Any:
        # What a loop runs over, counted before it runs; an item costs what the loop prints by itself.
        items = iterable if isinstance(iterable, Sized) else list(iterable)
        self._step(1 + cost * len(items))
        return items

    def _sum(self, *terms: Any) -> Any:
        self._step(sum(map(_size, terms)) // _STEP)
        return reduce(add, terms)

    def _made(self, value: Any) -> Any:
        self._step((len(value) if type(value) is str else _size(value)) // _STEP)
        return value

    def _step(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise OverflowError(f"it takes more than {_MOST_STEPS:,} steps: loops, calls or texts without an end")


compiled = lru_cache(maxsize=16)(_Sandbox)


def _size(value: Any) -> int:
    # Characters of a value, about; an item counts as many, so that one that holds another many times is soon too large.
    if isinstance(value, str):
        return len(value)
    size = 1
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        size += 500 + _size(each)
        if size > _MOST_STEPS * _STEP:
            break
    return size


def _raise(message: str) -> None:
    raise TemplateError(message)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except _FAULTS as error:
        line = f" line {error.lineno} of" if isinstance(error, TemplateSyntaxError) else ""
        message = error.message if isinstance(error, TemplateError) else error
        raise InputError(f"{name}:{line} the chat template: {' '.join(str(message).split())}") from error
