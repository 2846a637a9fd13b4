"""Replies of completions servers, in the known ways: what they say of the tokens of a prompt; and files of saved ones."""

# Known are the `logprobs` of OpenAI's completions (`tokens`, `token_logprobs`, `top_logprobs`; `text_offset` is not needed
# and not read, as servers count it in different units), the `content` list that llama.cpp uses, and vLLM's
# `prompt_logprobs`, in replies and in its `RequestOutput`; SGLang's `input_token_logprobs` and `output_token_logprobs`.

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from lmgauge.base.errors import InputError
from lmgauge.base.option_numbers import number
from lmgauge.scores.imports.log import Log, LogFile, LoggedSegment, ProgramOutput
from lmgauge.scores.sequences import LOWEST, ROUNDING
from lmgauge.scores.spans import Piece

OWN_OUTPUT = (
    "{:,} segments were written by the model itself, not given to it: their perplexity is low and says nothing about "
    "other text"
)
_UNKNOWN_TAIL = (
    "{:,} replies do not say how many tokens were generated (usage.completion_tokens): all are taken for the prompt, unless "
    "the text says otherwise"
)
_SHOWN = 80
_MOST_ADDED = 4


class ReplyError(InputError):
    """Raised when a reply has an unknown form, or a value that is not a log-probability; its words have no subject."""


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """The tokens of a reply."""

    pieces: list[Piece]  # as the server shows them
    logprob: list[float | None]  # nats; None where the server has none, as for the first
    best: list[float | None]  # log-probability of the likeliest token in each place; None where the reply does not say
    generated: int | None  # how many tokens the server says it added; None if it does not say
    echoes: bool  # whether the reply has the prompt's tokens and those added after it, or the prompt's alone
    prompt: int | None = None  # how many tokens the server says the prompt has; None if it does not say
    text: str = ""  # as the server gives it: of the prompt, if it is echoed, and what was added after it

    def before(self, laid: LoggedSegment) -> int:
        """Return how many tokens stand before those that are laid on a text, whether they are shown or only counted."""
        shown, unnamed = len(self.pieces) - laid.generated[0], laid.logprob[:1] == [None] and laid.ends[0] == 0
        return max(shown, self.prompt or 0) - len(laid.pieces) + unnamed

    def added_first(self, asked: int) -> list[int]:
        """Return how many tokens at the end the server may have added, the likeliest count first."""
        if not self.echoes:
            return [0]
        extra = asked if self.generated is None else self.generated
        # Some continue until a character is whole, and some do not show the last.
        tried = dict.fromkeys((extra, max(0, extra - 1), *range(_MOST_ADDED + 1)))
        return [count for count in tried if count <= len(self.pieces)]


class Answer(NamedTuple):
    """What a server said of a text."""

    text: str
    tokens: PromptTokens
    laid: LoggedSegment  # those of the tokens that are the text's
    size: int  # of the prompt: its tokens, with those that the server set before it, without those that it wrote


def read_echo(reply: Mapping[str, Any]) -> PromptTokens | None:
    """Return the tokens of an echoed prompt and of what was added; None if the reply has no log-probabilities."""
    choice = _choice(reply)
    logprobs = choice.get("logprobs")
    if not logprobs:
        return None
    if isinstance(logprobs, Mapping) and isinstance(logprobs.get("content"), list):
        pieces, values, tops = _content(logprobs["content"])
    else:
        pieces = _list(logprobs, "tokens")
        values, tops = _list(logprobs, "token_logprobs"), logprobs.get("top_logprobs")
    if len(pieces) != len(values) or any(not isinstance(piece, (str, bytes)) for piece in pieces):
        raise _strange("tokens and token_logprobs do not belong together")
    if not isinstance(tops, list) or len(tops) != len(pieces):
        tops = [None] * len(pieces)
    counts = _count(reply, "completion_tokens"), True, _count(reply, "prompt_tokens"), str(choice.get("text", ""))
    return PromptTokens(pieces, [_number(value) for value in values], [_best(top) for top in tops], *counts)


def read_prompt_logprobs(reply: Mapping[str, Any]) -> PromptTokens | None:
    """Return the tokens of a prompt from vLLM's `prompt_logprobs: 0`; None if the reply has none."""
    choice = _choice(reply)
    logprobs = choice.get("prompt_logprobs", reply.get("prompt_logprobs"))
    if not isinstance(logprobs, list) or not logprobs:
        return None
    ids = choice.get("prompt_token_ids", reply.get("prompt_token_ids"))
    known = ids if isinstance(ids, list) and len(ids) == len(logprobs) else [None] * len(logprobs)
    pieces: list[Piece] = []
    logprob: list[float | None] = []
    for entry, token_id in zip(logprobs, known, strict=True):
        if entry is None:
            pieces.append("")
            logprob.append(None)
            continue
        token = _prompt_token(entry, token_id)
        piece = token.get("decoded_token") if isinstance(token, Mapping) else None
        if not isinstance(piece, str):
            raise _strange("an entry of prompt_logprobs has no decoded_token")
        pieces.append(piece)
        logprob.append(_number(token.get("logprob")))
    return PromptTokens(pieces, logprob, [None] * len(pieces), 0, False, len(pieces), str(choice.get("text", "")))


def read_sglang(reply: Mapping[str, Any]) -> PromptTokens | None:
    """Return the tokens of a prompt from SGLang's reply; those generated, where the prompt has no log-probabilities."""
    meta = reply.get("meta_info", reply)
    prompt, generated = (meta.get(f"{part}_token_logprobs") or [] for part in ("input", "output"))
    if not all(isinstance(entry, list) and len(entry) in (2, 3) for entry in (*prompt, *generated)):
        raise _strange("token_logprobs are not lists of [log-probability, token id, text]")
    asked = any(entry[0] is not None for entry in prompt)
    entries = prompt if asked else generated
    pieces: list[Piece] = [str(entry[2]) if entry[2:] and entry[2] is not None else f"#{entry[1]}" for entry in entries]
    return PromptTokens(pieces, [_number(entry[0]) for entry in entries], [None] * len(entries), 0, not asked)


def _prompt_token(entry: object, token_id: object) -> Any:
    if isinstance(entry, Mapping) and isinstance(token_id, int) and str(token_id) in entry:
        return entry[str(token_id)]
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise _strange("an entry of prompt_logprobs does not name one token, and prompt_token_ids do not say which it is")
    return next(iter(entry.values()))


def _choice(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise _strange("there are no choices in it")
    return choices[0]


def _list(logprobs: object, name: str) -> list[Any]:
    values = logprobs.get(name) if isinstance(logprobs, Mapping) else None
    if not isinstance(values, list):
        raise _strange(f"logprobs without {name}")
    return values


def _content(entries: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    # Tokens, log-probabilities and tops of a `content` list; bytes where it has them.
    pieces: list[Any] = []
    values: list[Any] = []
    tops: list[Any] = []
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise _strange("an entry of logprobs.content is not an object")
        own = entry.get("bytes")
        try:
            pieces.append(bytes(own) if isinstance(own, list) and own else entry.get("token"))
        except (ValueError, TypeError) as error:
            raise _strange("an entry of logprobs.content has bytes that are not numbers from 0 to 255") from error
        values.append(entry.get("logprob"))
        listed = entry.get("top_logprobs")
        numbers = [top.get("logprob") for top in listed if isinstance(top, Mapping)] if isinstance(listed, list) else []
        tops.append(dict(enumerate(numbers)))
    return pieces, values, tops


def _number(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _strange(f"{repr(value)[:_SHOWN]} stands where a log-probability should")
    logprob = number(value, "")
    if math.isnan(logprob):
        raise ReplyError("gives NaN for a log-probability; the model is damaged, or its precision too low")
    if logprob > ROUNDING:
        raise ReplyError(f"gives {logprob} for a log-probability, which cannot be above 0")
    return -math.inf if logprob <= LOWEST else min(logprob, 0.0)


def _best(top: object) -> float | None:
    if not isinstance(top, Mapping):
        return None
    values = [number(value, "") for value in top.values() if type(value) in (int, float)]
    return max((value for value in values if not math.isnan(value)), default=None)


def _count(reply: Mapping[str, Any], name: str) -> int | None:
    usage = reply.get("usage")
    count = usage.get(name) if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) and count >= 0 else None


def _strange(what: str) -> ReplyError:
    return ReplyError(f"answers in a form that is not known ({what}); is this a completions server?")


def recognizes_vllm(head: bytes, name: bytes = b"prompt_logprobs") -> bool:
    """Return True if a file has vLLM's `prompt_logprobs`, or another list of that name."""
    # recognizes_vllm(b'{"choices": [], "prompt_logprobs": [null]}') -> True
    return _is_json(head) and re.search(rb'[^\\]"' + name + rb'"\s*:\s*\[', head) is not None


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
        for place, choice in enumerate(choices, 1):
            # What is generated is counted for all choices together; one of several says nothing of its own.
            own = {"usage": None} if several else {}
            yield f"{where}, choice {place}" if len(choices) > 1 else where, reply | {"choices": [choice]} | own


def parse_sglang(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the prompts of SGLang's replies, or what was generated after them."""
    for where, reply in _replies(file, log, "SGLang"):
        tokens = _read(read_sglang, reply, where)
        log.remark(OWN_OUTPUT, int(tokens.echoes))
        yield LoggedSegment(where, tokens.pieces, tokens.logprob)


OF_VLLM, OF_OPENAI = ProgramOutput(recognizes_vllm, parse_vllm), ProgramOutput(recognizes_openai, parse_openai)
OF_SGLANG = ProgramOutput(partial(recognizes_vllm, name=b"output_token_logprobs"), parse_sglang)
OUTPUTS = (OF_VLLM, OF_SGLANG, OF_OPENAI)
