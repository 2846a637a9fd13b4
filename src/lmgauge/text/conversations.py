"""Conversations: messages of several roles, and the turns of them that are segments of a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of one record, as chat templates take them."""

    messages: tuple[dict[str, Any], ...]  # "role", "content", and other fields as they are
    tools: tuple[Any, ...] | None = None  # the record's field "tools", where it has one


class Turn(NamedTuple):
    """One message of a conversation."""

    conversation: Conversation
    at: int  # index of the message
