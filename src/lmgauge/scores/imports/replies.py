"""Saved replies of servers: vLLM's `prompt_logprobs` (and its `RequestOutput`), OpenAI's `echo` with `logprobs`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lmgauge.errors import InputError
from lmgauge.scores.imports.log import Log, LoggedSegment
from lmgauge.scores.imports.log_file import LogFile
from lmgauge.scores.imports.reply import PromptTokens, ReplyError, read_echo, read_prompt_logprobs

OWN_OUTPUT = (
    "{:,} segments are what the model wrote itself, not a text that was given to it: their perplexity is low, not that of "
    "any text"
)
_UNKNOWN_TAIL = (
    "{:,} replies do not say how many tokens were generated (usage.completion_tokens): all are taken for the prompt, unless "
    "the text says otherwise"
)


def recognizes_vllm(head: bytes) -> bool:
    """Return True if a file has vLLM's `prompt_logprobs`."""
    # recognizes_vllm(b'{"choices": [], "prompt_logprobs": [null]}') -> True
    return _is_json(head) and re.search(rb'[^\\]"prompt_logprobs"\s*:\s*\[', head) is not None


def recognizes_openai(head: bytes) -> bool:
    """Return True if a file has replies with `logprobs`."""
    # recognizes_openai(b'{"choices": [{"text": "a", "logprobs": {}}]}') -> True
    return _is_json(head) and re.search(rb'[^\\]"choices"\s*:', head) is not None and b'"logprobs"' in head


def _is_json(head: bytes) -> bool:
    return head.lstrip()[:1] in (b"{", b"[")


def parse_vllm(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the prompts of replies with vLLM's `prompt_logprobs`, and of `RequestOutput`s as JSON."""
    for where, reply in _replies(file, log, "vLLM"):
        tokens = _read(read_prompt_logprobs, reply, where)
        headless = tokens.logprob[:1] == [None]  # vLLM names no token there: BOS, or the first of the text
        yield LoggedSegment(where, tokens.pieces[headless:], tokens.logprob[headless:], headless=headless)


def parse_openai(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the echoed prompts of completions with `logprobs`, without what was generated after them."""
    for where, reply in _replies(file, log, "the server"):
        tokens = _read(read_echo, reply, where)
        count = tokens.generated
        if count is not None and count >= len(tokens.pieces) > 0:
            log.remark(OWN_OUTPUT)
            tokens = replace(tokens, generated=0)
        elif count is None:
            log.remark(_UNKNOWN_TAIL)
        elif count:
            log.remark("{:,} tokens that were generated after a prompt are left out", count)
        # A last token that is not shown, as half a character is not, is counted all the same.
        count = tokens.generated
        tail = tokens.added_first(0) if count is None else range(count, max(-1, count - 2), -1)
        yield LoggedSegment(where, tokens.pieces, tokens.logprob, generated=tuple(tail))


def _read(read: Any, reply: Mapping[str, Any], where: str) -> PromptTokens:
    try:
        tokens: PromptTokens | None = read(reply)
    except ReplyError as error:
        raise InputError(f"{where}: the reply {error}") from error
    if tokens is None:
        raise InputError(f"{where}: the reply has no log-probabilities; ask with logprobs and echo, or prompt_logprobs")
    return tokens


def _replies(file: LogFile, log: Log, program: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    log.states("nats", program)
    for where, reply in file.values():
        if not isinstance(reply, dict):
            raise InputError(f"{where}: is not a reply of a server, which is a JSON object")
        if isinstance(reply.get("model"), str):
            log.model = reply["model"]
        choices = reply.get("choices")
        if not isinstance(choices, list):  # vLLM's RequestOutput
            yield where, reply | {"choices": [reply]}
            continue
        usage = reply.get("usage")
        several = len(choices) > 1 and isinstance(usage, dict)
        for number, choice in enumerate(choices, 1):
            # What is generated is counted for all choices together; one of several says nothing of its own.
            own = {"usage": None} if several else {}
            yield f"{where}, choice {number}" if len(choices) > 1 else where, reply | {"choices": [choice]} | own
