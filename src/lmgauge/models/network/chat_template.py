"""What a chat template makes of a conversation, and where in it the content of each message stands."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import digest
from lmgauge.text.conversations import Conversation, Turn

if TYPE_CHECKING:
    from lmgauge.models.network.template_sandbox import Compiled

Message = dict[str, Any]
Place = tuple[int, int]  # of a content in a rendering: its first character, and the one behind it
_SET_HERE = ("messages", "tools", "documents", "add_generation_prompt")
_REASONING = ("reasoning_content", "thinking", "reasoning")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_SPACES = "\u2003\u2002\u2005\u2004\u2009\u2006\u205f\u3000\u1680"
_MOST_EDGES = 40
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


class _Signs:
    """Characters that neither a template nor a conversation has: they show where contents are in a rendering."""

    def __init__(self, source: str, messages: Sequence[Message]) -> None:
        written = source + json.dumps(messages, ensure_ascii=False, default=str)
        used = set(_PRIVATE.findall(written))
        free = (chr(code) for code in range(0xE000, 0xF900) if chr(code) not in used)
        self.marks = list(islice(free, 2 * len(messages)))
        self.space = next((each for each in _SPACES if each not in written), "")

    def put(self, messages: Sequence[Message], contents: Mapping[int, str]) -> list[Message]:
        """Return messages with marks around contents, inside their outer white space.

        That is `space` meanwhile: a template strips it as it strips any, or it stands beside the mark.
        """
        marked = list(messages)
        for nth, (at, content) in enumerate(contents.items()):
            lead, core, trail = _in_three(content)
            first = f"{self.space if lead else ''}{self.marks[2 * nth]}"
            marked[at] = {**messages[at], "content": f"{first}{core}{self.marks[2 * nth + 1]}{self.space if trail else ''}"}
        return marked

    def take(self, rendering: str, contents: Mapping[int, str]) -> tuple[str, dict[int, Place]]:
        """Return a rendering of such messages without the marks, and the places of contents whose marks stand there once."""
        opening, closing = self.marks[: 2 * len(contents) : 2], self.marks[1 : 2 * len(contents) : 2]
        white = {}  # what stands beside a mark, where the template leaves it there
        for first, last, content in zip(opening, closing, contents.values(), strict=True):
            white[first], _, white[last] = _in_three(content)
        places: dict[str, list[int]] = {mark: [] for mark in white}
        pieces: list[str] = []
        read = length = 0
        space = f"(?:{self.space})?"
        for match in re.finditer(f"{space}([{''.join(opening)}])|([{''.join(closing)}]){space}", rendering):
            mark = match[1] or match[2]
            between, beside = rendering[read : match.start()], white[mark] if len(match[0]) > 1 else ""
            pieces += between, beside
            length += len(between) + len(beside)
            places[mark].append(length - len(beside) if match[1] else length)
            read = match.end()
        both = {at: places[first] + places[last] for at, first, last in zip(contents, opening, closing, strict=True)}
        once = {at: (ends[0], ends[-1]) for at, ends in both.items() if len(ends) == 2 and ends == sorted(ends)}
        return "".join(pieces) + rendering[read:], once


@dataclass(frozen=True, slots=True)
class _Known:
    """What was learned of a conversation: its turns come one after another."""

    conversation: Conversation
    signs: _Signs
    text: str  # the rendering of all messages; "" where there is none
    places: dict[int, Place]


class ChatTemplate:
    """A chat template of a tokenizer, with the tokenizer's special tokens as variables and the arguments of the user.

    Args:
        source: the template in Jinja.
        name: of the file or the model, for messages.
        tokens: `bos_token`, `eos_token` and others.
        arguments: variables that the user sets.
        specials: the special tokens of the tokenizer; one of them ends a turn.
    """

    def __init__(
        self,
        source: str,
        *,
        name: str,
        tokens: Mapping[str, str] = {},
        arguments: Mapping[str, Any] = {},
        specials: Collection[str] = (),
    ) -> None:
        for argument in _SET_HERE:
            if argument in arguments:
                raise UsageError(f"{argument!r} is set by the conversation; a template's arguments are its other variables")
        self.name = name
        self.digest = digest(source, "\0", dict(arguments))[:6]
        self._source, self._variables = source, {**tokens, **arguments}
        ends = sorted(filter(None, specials), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, ends)) or "(?!)")
        self._has_prompt = "add_generation_prompt" in self._compiled.variables
        self._latest: _Known | None = None

    def behind(self, text: str) -> ChatTemplate:
        """Return the same template with a text before what it writes."""
        other = copy(self)
        other._source, other._latest = f"{{{{ {json.dumps(text)} }}}}{self._source}", None
        return other

    @property
    def _compiled(self) -> Compiled:
        # Kept by its module: what is compiled cannot be sent to another process.
        from lmgauge.models.network.template_sandbox import compiled

        return compiled(self._source, self.name)

    def render(self, conversation: Conversation, upto: int | None = None, *, prompt: bool = False) -> str:
        """Return the rendering of messages[:upto]; prompt: with what makes it the assistant's turn."""
        return self._render(conversation, conversation.messages[:upto], prompt)

    def spans(self, conversation: Conversation, upto: int | None = None) -> tuple[str, list[Span]]:
        """Return the rendering of messages[:upto] and where the content of each message stands in it; the rest is framing.

        A message has no span if its content is not a text, or if the template leaves it out.
        """
        messages = conversation.messages[:upto]
        text = self._render(conversation, messages)
        signs = self._about(conversation).signs
        places = self._marked(conversation, messages, signs, text, range(len(messages)))
        spans = []
        for at, message in enumerate(messages):
            place = places.get(at)
            if place is None and isinstance(message.get("content"), str):
                place = self._place(conversation, messages, at, text)
            if place:
                first = len(text[: place[0]].encode())
                spans.append(Span(at, first, first + len(text[slice(*place)].encode())))
        return text, spans

    def frame(self, turn: Turn) -> FramedTurn:
        """Return a message as the model meets it: after all messages before it, and none behind."""
        conversation, at = turn
        messages = conversation.messages[: at + 1]
        text = self._render(conversation, messages)
        known = self._about(conversation)
        place = known.places.get(at)
        # Most templates write a turn alike whatever follows it: the whole conversation has it, through its end.
        if place is None or not known.text.startswith(text[: place[1]] + (self._end(text, place[1]) or text[place[1] :])):
            place = self._place(conversation, messages, at, text)
        if place is None:
            raise self._lost(messages, at)
        start, end = place
        prompt = self._prompt(conversation, at, text[:start]) if messages[at].get("role") == "assistant" else text[:start]
        after = self._end(text, end)
        if not text[:end].startswith(prompt):  # the template writes this turn in another way than it asks for it
            return FramedTurn(prompt, text[start:end], after, has_prompt=self._has_prompt)
        start = max(start, len(prompt))
        return FramedTurn(text[:start], text[start:end], after, text[len(prompt) : start], self._has_prompt)

    def _end(self, text: str, start: int) -> str:
        special = self._special.search(text, start)
        return text[start : special.end()] if special else ""

    def _prompt(self, conversation: Conversation, at: int, before: str) -> str:
        try:
            return self.render(conversation, at, prompt=True)
        except InputError:
            if at:
                raise
            return before  # many templates cannot begin with the assistant's turn

    def _render(self, conversation: Conversation, messages: Sequence[Message], prompt: bool = False) -> str:
        variables = {
            **self._variables,
            "messages": [_with_reasoning(each) for each in messages],
            "tools": conversation.tools and list(conversation.tools),
            "documents": None,
            "add_generation_prompt": prompt,
        }
        return self._compiled.render(variables)

    def _about(self, conversation: Conversation) -> _Known:
        if self._latest is None or self._latest.conversation is not conversation:
            messages = conversation.messages
            signs = _Signs(self._source, messages)
            text, places = "", {}
            with suppress(InputError):  # of a later turn
                text = self._render(conversation, messages)
                places = self._marked(conversation, messages, signs, text, range(len(messages)))
            self._latest = _Known(conversation, signs, text, places)
        return self._latest

    def _marked(
        self, conversation: Conversation, messages: Sequence[Message], signs: _Signs, text: str, wanted: Iterable[int]
    ) -> dict[int, Place]:
        # The places of contents in `text`, the rendering of messages; none where marks make it another text.
        contents = {at: messages[at]["content"] for at in wanted if isinstance(messages[at].get("content"), str)}
        if len(signs.marks) < 2 * len(contents):
            return {}
        try:
            marked = self._render(conversation, signs.put(messages, contents))
        except InputError:
            return {}
        without, places = signs.take(marked, contents)
        return places if without == text else {}

    def _place(self, conversation: Conversation, messages: Sequence[Message], at: int, text: str) -> Place | None:
        # The place of one content in `text`, where the marks of all contents did not survive.
        signs, content = self._about(conversation).signs, messages[at]["content"]
        place = self._marked(conversation, messages, signs, text, [at]).get(at)
        if place or not signs.marks:
            return place
        mark = signs.marks[0]

        def position(edge: int) -> int | None:
            # In the text, of one character of the content; None where a mark there is lost or changes the text.
            message = {**messages[at], "content": f"{content[:edge]}{mark}{content[edge:]}"}
            try:
                marked = self._render(conversation, [*messages[:at], message, *messages[at + 1 :]])
            except InputError:
                return None
            if mark not in marked or marked.replace(mark, "") != text:
                return None
            if marked.count(mark) > 1:
                raise self._lost(messages, at)
            return marked.index(mark)

        edges = _edges(content, self._compiled.literals)
        firsts = ((edge, position(edge)) for edge in edges[:_MOST_EDGES])
        edge, start = next((each for each in firsts if each[1] is not None), (0, None))
        lasts = map(position, edges[: -_MOST_EDGES - 1 : -1])
        end = next((each for each in lasts if each is not None), None)
        if start is None or end is None or start > end:
            return None
        # A template may write again what it cuts off (`<think>`).
        cut, before = content[:edge].strip(), text[:start].rstrip()
        return (len(before) - len(cut) if cut and before.endswith(cut) else start), end

    def _lost(self, messages: Sequence[Message], at: int) -> InputError:
        role = messages[at].get("role")
        return InputError(
            f"{self.name}: message {at + 1} ({role}): the chat template rewrites this turn so that its place cannot be known"
        )


def source_ends(rendered: bytes, source: bytes, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where in the source of a content the ends of spans of its rendering stand.

    Args:
        rendered: a content as the template renders it.
        source: as the record has it.
        ends: int64 [n], ascending, in bytes of `rendered`; the last is its length.

    Returns:
        int64 [n], ascending, in bytes of `source`; the last is its length. What both end and begin with corresponds byte
        for byte, outer white space aside; what the template rewrote between is one point.

    Example:
        >>> source_ends(b"a</think>\\n\\nb", b" a</think>b ", np.array([1, 9, 11, 12])).tolist()
        [2, 10, 10, 12]
    """
    if rendered == source:
        return ends
    lead, core, _ = _in_three(rendered.decode())
    source_lead, source_core, _ = _in_three(source.decode())
    after = _common(core[::-1], source_core[::-1])
    before = _common(core[: len(core) - after], source_core[: len(source_core) - after])
    first, source_first = len((lead + core[:before]).encode()), len((source_lead + source_core[:before]).encode())
    last = len((lead + core[: len(core) - after]).encode())
    source_last = len((source_lead + source_core[: len(source_core) - after]).encode())
    behind = np.where(ends < last, source_first, ends + source_last - last)
    mapped = np.where(ends <= first, ends + source_first - first, behind).clip(0, len(source))
    mapped[ends == len(rendered)] = len(source)
    return mapped


def _common(first: str, second: str) -> int:
    # How many characters both begin with.
    size = min(len(first), len(second))
    same = np.equal(*(np.frombuffer(each[:size].encode("utf-32-le"), np.uint32) for each in (first, second)))
    return size if same.all() else int(same.argmin())


def _in_three(content: str) -> tuple[str, str, str]:
    # Its outer white space, and what stands inside.
    core = content.strip()
    first = content.index(core)
    return content[:first], core, content[first + len(core) :]


def _edges(content: str, literals: Iterable[str]) -> list[int]:
    # Where a template may cut a content: at its ends, in its outer white space, beside the strings that the template names
    # and in the white space beside them.
    lead, _, trail = _in_three(content)
    edges = {*range(len(lead) + 1), *range(len(content) - len(trail), len(content) + 1)}
    for literal in literals:
        for match in re.finditer(rf"(\s*){re.escape(literal)}(\s*)", content):
            edges |= {*range(match.start(), match.end(1) + 1), *range(match.start(2), match.end() + 1)}
    return sorted(edges)


def _with_reasoning(message: Message) -> Message:
    # Under each name that templates know, as transformers passes it.
    reasoning = [message[name] for name in _REASONING if message.get(name) is not None]
    return {"thinking": reasoning[0], **message, "reasoning_content": reasoning[0]} if reasoning else message
