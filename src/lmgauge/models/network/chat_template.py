"""What a chat template makes of a conversation, and where in it the content of each message stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from itertools import accumulate, islice
from os.path import commonprefix
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import digest
from lmgauge.text.readers import REASONING, Conversation, Turn

Place = tuple[int, int]  # of a content in a rendering: its first character, and the one behind it
_SET_HERE = {"messages", "tools", "documents", "add_generation_prompt"}
_MOST_EDGES = 100
"""Most characters of a content that are tried as its first in the rendering, where the template cuts the content."""


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
        variables = _compiled(source, name).variables
        self._has_prompt = "add_generation_prompt" in variables
        self.unused = sorted(arguments.keys() - variables)  # arguments that the template has no variable for
        self.variables = sorted(variables - _SET_HERE - tokens.keys())

    def names_special(self, content: str) -> bool:
        """Return True if the name of a special token stands in a content: it is read as that token."""
        return self._special.search(content) is not None

    def behind(self, text: str) -> ChatTemplate:
        """Return the same template with a text before what it writes."""
        other = copy(self)
        other._source = "{% raw %}" + text + "{% endraw %}" + self._source
        return other

    def render(self, conversation: Conversation, upto: int | None = None, *, prompt: bool = False) -> str:
        """Return the rendering of messages[:upto]; prompt: with what makes it the assistant's turn."""
        messages = [*map(_with_reasoning, conversation.messages[:upto])]
        own = {"messages": messages, "tools": conversation.tools and list(conversation.tools), "documents": None}
        return str(_compiled(self._source, self.name).render({**self._variables, **own, "add_generation_prompt": prompt}))

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
        if places := self._found(conversation, text, {at: (0, len(content))}):
            return places[at]

        def first(edges: Sequence[int]) -> tuple[int, int]:
            tried = ((edge, self._found(conversation, text, {at: (edge, edge)})) for edge in edges[:_MOST_EDGES])
            return next(((edge, place[at][0]) for edge, place in tried if place), (0, -1))

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
    if not any(name in message for name in REASONING):
        return message
    reasoning = next((message[name] for name in REASONING if message.get(name) is not None), None)
    return message if reasoning is None else {"thinking": reasoning, **message, "reasoning_content": reasoning}


def _compiled(source: str, name: str) -> Any:
    # Kept by its module: a template can then be sent to another process, and Jinja is only loaded where there is one.
    from lmgauge.models.network.template_sandbox import compiled

    return compiled(source, name)
