"""Conversations: the messages of a record, and the turns of them that are segments.

Messages are read as OpenAI and TRL write them (`role`, `content`) and as ShareGPT does (`from`, `value`). A turn's text is
the content of its message; what a chat template puts around it is the model's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from lmgauge.base.choices import ROLES
from lmgauge.base.errors import InputError
from lmgauge.base.json_text import from_json
from lmgauge.records.jsonl import kind_of
from lmgauge.records.records import find_problem, utf8, what_is_wrong
from lmgauge.text.cleaning import Place, clean_lines
from lmgauge.text.segments import Segments, TextReport

_OTHER_NAMES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "model": "assistant", "observation": "tool"}
REASONING = ("reasoning_content", "thinking", "reasoning")
"""Members of a message that templates take for what was thought before the content."""
_KEYS = {"from": "role", "value": "content"}


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages as chat templates take them.

    Attributes:
        messages: of each "role", "content" (None where it has none) and its other members as they are, such as "tool_calls".
        tools: what the assistant can call, as the record describes it; None where it does not.
    """

    messages: tuple[dict[str, Any], ...]
    tools: tuple[Any, ...] | None = None

    def to_json(self) -> bytes:
        """Return the conversation as JSON, the same for the same content."""
        return utf8(json.dumps([self.messages, self.tools], ensure_ascii=False, sort_keys=True, default=str))

    def cleaned(self, errors: str, report: TextReport) -> Conversation:
        """Return the conversation with all of its strings cleaned, as the text of a file is."""
        text = self.to_json()
        if b"\\r" not in text and b"\\u0000" not in text and find_problem(text)[0] < 0:
            return self

        def clean(value: Any) -> Any:
            if isinstance(value, str):
                data = utf8(value)
                if errors != "replace" and (problem := find_problem(data)[0]) >= 0:
                    raise InputError(f"{what_is_wrong(data, problem)}: convert the file, or choose --errors replace")
                return clean_lines(data, Place(""), errors, report).data.decode()
            if isinstance(value, Mapping):
                return {clean(name): clean(member) for name, member in value.items()}
            return [clean(item) for item in value] if isinstance(value, (list, tuple)) else value

        return Conversation(tuple(clean(self.messages)), None if self.tools is None else tuple(clean(self.tools)))

    def turns(self, roles: Sequence[str], report: TextReport) -> list[Turn]:
        """Return the turns of some roles that have content; the report counts those that have none."""
        own = [Turn(self, at) for at, message in enumerate(self.messages) if message["role"] in roles]
        turns = [turn for turn in own if turn.message["content"] is not None]
        report.turns_without_content += len(own) - len(turns)
        report.turns_with_reasoning += sum(any(turn.message.get(name) for name in REASONING) for turn in turns)
        report.without_turns += not own
        return turns


class Turn(NamedTuple):
    """A message of a conversation whose content is a segment."""

    conversation: Conversation
    at: int  # index of the message

    @property
    def message(self) -> dict[str, Any]:
        """The message itself."""
        return self.conversation.messages[self.at]


def lone_turns(segments: Segments, role: str) -> list[Turn]:
    """Return segments as messages, each in a conversation of its own."""
    texts = (segments.text(i).decode() for i in range(len(segments)))
    return [Turn(Conversation(({"role": role, "content": text},)), 0) for text in texts]


def conversation_of(value: object, tools: object = None) -> Conversation:
    """Return the conversation that a field holds: messages, an object of them and of tools, or JSON of either.

    Raises:
        InputError: it is none, or has none; without the place, which the caller knows.
    """
    held = _parsed(value)
    if isinstance(held, dict):
        tools, held = held.get("tools", tools), _parsed(held.get("messages", held))
    if not isinstance(held, list):
        raise InputError(f"{kind_of(held)} is not a list of messages")
    if not held:
        raise InputError("a conversation without messages")
    tools = _parsed(tools) or None
    if tools is not None and not isinstance(tools, list):
        raise InputError(f"tools are a list, not {kind_of(tools)}")
    messages = tuple(_message(message, f"message {number}") for number, message in enumerate(held, 1))
    return Conversation(messages, tuple(tools) if tools else None)


def _parsed(value: Any) -> Any:
    try:
        return from_json(value) if isinstance(value, str) else value
    except ValueError as error:
        raise InputError(f"not messages, nor JSON: {error}") from error


def _message(value: object, name: str) -> dict[str, Any]:
    # A message as templates take it. A member that is null is absent: tables have all members that any row has.
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is {kind_of(value)}, not an object with a role and content")
    message = {key: member for key, member in value.items() if member is not None}
    if "role" not in message:
        message = {_KEYS.get(key, key): member for key, member in message.items()}
    role = message.get("role")
    role = _OTHER_NAMES.get(role, role) if isinstance(role, str) else role
    if role not in ROLES:
        has = "no role" if role is None else f"the role {str(role)[:40]!r}"
        raise InputError(f"{name} has {has}; roles are {', '.join(ROLES)}")
    content = message.get("content")
    if content is None and not any(message.get(key) for key in ("tool_calls", "function_call")):
        raise InputError(f"{name} has no content")
    if not isinstance(content, (str, type(None))):
        raise InputError(f"the content of {name} is {kind_of(content)}, not a string")
    return message | {"role": role, "content": content}


def as_json(value: object) -> str:
    """Return what stands for a conversation in Python as JSON."""
    return json.dumps(asdict(value) if isinstance(value, Conversation) else value, default=list)
