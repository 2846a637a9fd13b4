"""What a chat template makes of a conversation, and where in it the content of each message stands."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial, reduce, wraps
from itertools import accumulate, islice
from math import prod
from operator import add
from os.path import commonprefix
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError, needing
from lmgauge.base.files import digest
from lmgauge.text.conversations import Conversation, Turn

with needing("jinja2", extra="neural"):
    from jinja2 import TemplateError, TemplateSyntaxError, ext, meta, nodes, parser, sandbox
    from jinja2.visitor import NodeTransformer

Place = tuple[int, int]  # of a content in a rendering: its first character, and the one behind it
_SET_HERE = {"messages", "tools", "documents", "add_generation_prompt"}
_REASONING = dict.fromkeys(("reasoning_content", "thinking", "reasoning")).keys()
_MOST_EDGES = 100
"""Most characters of a content that are tried as its first in the rendering, where the template cuts the content."""
_MOST_STEPS, _STEP = 2_000_000, 200
"""Most steps of one rendering. A call or an item of a loop is some; what is read or made, one for so many characters."""
_GROWING = {"batch", "center", "expandtabs", "format", "format_map", "indent", "join", "ljust", "replace", "rjust", "round"}
_GROWING |= {"slice", "tojson", "translate", "truncate", "wordwrap", "zfill", "*", "**"}
"""Filters, methods and operators that can make as much as the product of what they are given."""
_FAULTS = (TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError, MemoryError)


class Span(NamedTuple):
    """Where the content of a message stands in a rendering, in bytes of UTF-8."""

    message: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FramedTurn:
    """A message as a model meets it."""

    before: str  # what the model sees before the content
    content: str  # as the template renders it: it may be stripped or rewritten
    end: str  # what follows, up to and with the first special token: the end of the turn; "" if there is none
    preamble: str = ""  # the end of `before` that the template writes there and that its generation prompt has not
    has_prompt: bool = True  # False: the template takes no `add_generation_prompt`


class ChatTemplate:
    """A chat template of a tokenizer, with the tokenizer's special tokens as variables and the arguments of the user.

    Args:
        source: the template in Jinja.
        name: of the file or the model, for messages.
        tokens: `bos_token`, `eos_token` and others.
        arguments: variables that the user sets.
        specials: the special tokens of the tokenizer; one of them ends a turn.
    """

    _latest: tuple[Conversation | None, str, dict[int, Place]] = (None, "", {})

    def __init__(
        self,
        source: str,
        *,
        name: str,
        tokens: Mapping[str, str] = {},
        arguments: Mapping[str, Any] = {},
        specials: Collection[str] = (),
    ) -> None:
        if own := _SET_HERE & arguments.keys():
            raise UsageError(f"arguments of a chat template are its other variables; the conversation sets {min(own)}")
        self.name = name
        self.digest = digest(source, "\0", dict(arguments))[:6]
        self._source, self._variables = source, {**tokens, **arguments}
        self._special = re.compile("|".join(map(re.escape, sorted(filter(None, specials), key=len, reverse=True))) or "(?!)")
        self._has_prompt = "add_generation_prompt" in _compiled(source, name).variables

    def render(self, conversation: Conversation, upto: int | None = None, *, prompt: bool = False) -> str:
        """Return the rendering of messages[:upto]; prompt: with what makes it the assistant's turn."""
        messages = [*map(_with_reasoning, conversation.messages[:upto])]
        own = {"messages": messages, "tools": conversation.tools and list(conversation.tools), "documents": None}
        return _compiled(self._source, self.name).render({**self._variables, **own, "add_generation_prompt": prompt})

    def spans(self, conversation: Conversation, upto: int | None = None) -> tuple[str, list[Span]]:
        """Return the rendering of messages[:upto] and where the content of each message stands in it; the rest is framing.

        A message has no span if its content is not a text, or has not one place in the rendering.
        """
        part = Conversation(conversation.messages[:upto], conversation.tools)
        (text, places), spans = self._whole(part), []
        for at in _contents(part):
            with suppress(InputError):
                start, end = places.get(at) or self._place(part, text, at)
                first = len(text[:start].encode())
                spans.append(Span(at, first, first + len(text[start:end].encode())))
        return text, spans

    def frame(self, turn: Turn) -> FramedTurn:
        """Return a message as the model meets it: after all messages before it, and none behind."""
        conversation, at = turn
        part = Conversation(conversation.messages[: at + 1], conversation.tools)
        text = self.render(part)
        start, end = self._known(conversation, text, at) or self._place(part, text, at)
        before, preamble = text[:start], ""
        if part.messages[at].get("role") == "assistant":
            try:
                before = self.render(conversation, at, prompt=True)
            except InputError:
                if at:  # many templates cannot begin with the assistant's turn
                    raise
        if text[:end].startswith(before):  # if not, the template writes this turn in another way than it asks for it
            start = max(start, len(before))
            before, preamble = text[:start], text[len(before) : start]
        return FramedTurn(before, text[start:end], self._end(text, end), preamble, self._has_prompt)

    def _known(self, conversation: Conversation, text: str, at: int) -> Place | None:
        # Most templates write a turn alike whatever follows it: then the whole conversation has it, through its end.
        with suppress(InputError, KeyError):  # of a later turn; one without a place
            whole, places = self._whole(conversation)
            end = places[at][1]
            if whole.startswith(text[:end] + (self._end(text, end) or text[end:])):
                return places[at]
        return None

    def _end(self, text: str, start: int) -> str:
        special = self._special.search(text, start)
        return text[start : special.end()] if special else ""

    def _whole(self, conversation: Conversation) -> tuple[str, dict[int, Place]]:
        # The rendering of all messages and the places in it; kept, as the turns of a conversation come one after another.
        kept, text, places = self._latest
        if kept is not conversation:
            text, contents = self.render(conversation), _contents(conversation)
            places = self._found(conversation, text, {at: (0, len(content)) for at, content in contents.items()})
            if not places:  # the template strips white space; a place is unsure where such a character stands beside it
                inside = {at: _inside(content) for at, content in contents.items()}
                for at, (start, end) in self._found(conversation, text, inside).items():
                    (first, last), content = inside[at], contents[at]
                    if content[:first][-1:] != text[:start][-1:] and content[last : last + 1] != text[end : end + 1]:
                        places[at] = start, end
            self._latest = conversation, text, places
        return text, places

    def _place(self, conversation: Conversation, text: str, at: int) -> Place:
        # Of one content in `text`: from the first of its characters to the last that the template leaves there.
        content = conversation.messages[at]["content"]
        if found := self._found(conversation, text, {at: (0, len(content))}):
            return found[at]

        def first(edges: Sequence[int]) -> tuple[int, int]:
            found = ((edge, self._found(conversation, text, {at: (edge, edge)})) for edge in edges[:_MOST_EDGES])
            return next(((edge, place[at][0]) for edge, place in found if place), (0, -1))

        # A template may cut a content in the white space around it, and at the strings that it names.
        named = "|".join(["\\A", "\\Z", *map(re.escape, _compiled(self._source, self.name).literals)])
        edges = {*_inside(content)}
        for match in re.finditer(rf"\s{{0,9}}(?:{named})\s{{0,9}}", content):
            edges.update(range(match.start(), match.end() + 1))
        (edge, start), (_, end) = first(sorted(edges)), first(sorted(edges, reverse=True))
        if not 0 <= start <= end:
            role, rule = conversation.messages[at].get("role"), "rewrites this turn, and its place cannot be known exactly"
            raise InputError(f"{self.name}: message {at + 1} ({role}): the chat template {rule}")
        # It may write again what it cuts off (`<think>`).
        cut, before = content[:edge].strip(), text[:start].rstrip()
        return (len(before) - len(cut) if cut and before.endswith(cut) else start), end

    def _found(self, conversation: Conversation, text: str, edges: Mapping[int, Place]) -> dict[int, Place]:
        # Where in `text` characters of contents stand: of each message two, with marks before them. Nothing where marks make
        # it another text; a message is left out where its marks are lost or doubled.
        written, messages = self._source + conversation.to_json().decode(), list(conversation.messages)
        free = (chr(code) for code in range(0xE000, 0xF900) if chr(code) not in written)
        marks = list(islice(free, 2 * len(edges)))
        pairs = list(zip(edges, marks[::2], marks[1::2], strict=False))
        for at, opening, closing in pairs:
            (first, last), content = edges[at], messages[at]["content"]
            marked = f"{content[:first]}{opening}{content[first:last]}{closing}{content[last:]}"
            messages[at] = {**messages[at], "content": marked}
        pieces = [""]
        with suppress(InputError):
            rendering = self.render(Conversation(tuple(messages), conversation.tools))
            pieces = re.split(f"([{''.join(marks)}])", rendering) if marks else pieces
        counts = Counter(pieces[1::2]) if "".join(pieces[::2]) == text else {}
        places = dict(zip(pieces[1::2], accumulate(map(len, pieces[::2])), strict=False))
        once = [each for each in pairs if counts.get(each[1]) == counts.get(each[2]) == 1]
        return {at: (places[first], places[last]) for at, first, last in once if places[first] <= places[last]}


def source_ends(rendered: bytes, source: bytes, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where in the source of a content the ends of spans of its rendering stand.

    Args:
        rendered: a content as the template renders it.
        source: as the record has it.
        ends: int64 [n], ascending, in bytes of `rendered`; the last is its length.

    Returns:
        int64 [n], ascending, in bytes of `source`; the last is its length. What both begin and end with corresponds, outer
        white space aside; what the template rewrote between is one point.

    Example:
        >>> source_ends(b"a</think>\\n\\nb", b" a</think>b ", np.array([1, 9, 11, 12])).tolist()
        [2, 10, 10, 12]
    """
    if rendered == source:
        return ends
    text, origin = rendered.decode(), source.decode()
    (start, end), (origin_start, origin_end) = _inside(text), _inside(origin)
    after = _common(text[start:end][::-1], origin[origin_start:origin_end][::-1])
    before = _common(text[start : end - after], origin[origin_start : origin_end - after])
    first, last = (len(text[:edge].encode()) for edge in (start + before, end - after))
    point, behind = (len(origin[:edge].encode()) for edge in (origin_start + before, origin_end - after))
    mapped = np.where(ends <= first, ends + point - first, np.where(ends < last, point, ends + behind - last))
    return np.where(ends == len(rendered), len(source), mapped.clip(0, len(source)))


def _common(first: str, second: str) -> int:
    # How many characters both begin with.
    return len(commonprefix([first, second]))  # noqa: RUF071 - which it compares as we want


def _contents(conversation: Conversation) -> dict[int, str]:
    contents = {at: message.get("content") for at, message in enumerate(conversation.messages)}
    return {at: content for at, content in contents.items() if isinstance(content, str)}


def _inside(content: str) -> Place:
    # Of the content without its outer white space.
    first = len(content) - len(content.lstrip())
    return first, first + len(content.strip())


def _with_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    # Under each name that templates know, as transformers passes it.
    if _REASONING.isdisjoint(message):
        return message
    reasoning = next((message[name] for name in _REASONING if message.get(name) is not None), None)
    return message if reasoning is None else {"thinking": reasoning, **message, "reasoning_content": reasoning}


# -- Jinja as chat templates know it, for templates that nobody has read: no clock, no chance, and work that is counted ----
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


_compiled = lru_cache(maxsize=16)(_Sandbox)


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
