"""A completions server as far as scoring needs it: which model it serves, and the tokens of a text with their scores."""

# Servers agree on the request (`echo`, `logprobs`) and on little else, so that what they do is found out when first met, by
# two short requests whose answers are known to have a certain form, and never assumed.

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import PurePath
from typing import Any, Literal

from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.models.network.server.http import NOBODY, Endpoint, ServerError
from lmgauge.scores.imports.log import LoggedSegment, printable
from lmgauge.scores.imports.replies import Answer, PromptTokens, ReplyError, read_echo, read_prompt_logprobs
from lmgauge.scores.imports.token_alignment import fit, without_bos
from lmgauge.scores.spans import Piece, approximate, left_out, place
from lmgauge.scores.special_tokens import is_special

Asking = Literal["echo", "prompt_logprobs"]
PROBE = "The quick brown fox jumps over the lazy dog.\nÄpfel, 1984: naïve cafés – 東京!\n"
# Differ in their last token, in most vocabularies.
_PAIRS = (("One two three four", "One two three five"), ("The cat saw a b", "The cat saw a c"), ("1 2 3 4", "1 2 3 5"))
# Servers that compute in sixteen bits, and in other batches, differ by less; distributions of different contexts by more.
_SAME_NATS = 0.05
# None is always refused or taken for "as many as fit" by some server; one is understood by all.
_ADDED = 1
_MOST_NAMES, _LONGEST_NAME = 10, 80
_QUIET = {"add_special_tokens": False}  # vLLM adds no BOS token then; others do not know it, and some refuse it
_HIDDEN = "\ue000"  # stands for a special token that a server shows as nothing
_TELLING = ("id", "root", "parent", "max_model_len", "meta")  # of a model's entry: what stays the same from day to day
_NEEDED = "scoring needs a server that answers `echo` with `logprobs` for the prompt, such as vLLM's or llama-cpp-python's"


@dataclass
class Server:
    """A model on a server."""

    endpoint: Endpoint
    model: str
    entry: Mapping[str, Any] = field(default_factory=dict)  # what the server's list says of it
    before: str = ""  # text that is set before each text, as the beginning of its context
    asking: Asking = "echo"
    more: Mapping[str, Any] = field(default_factory=dict)  # members of every request

    @classmethod
    def connect(cls, endpoint: Endpoint, before: str = "") -> Server:
        """Find the model, how to ask for scores, and that they are what they should be."""
        server = cls(endpoint, *_choose_model(endpoint), before)
        server._find_asking()
        server._check_places()
        return server

    def tokens(self, text: str) -> PromptTokens:
        """Return the tokens of a text that is not empty, with whatever the server adds."""
        return self.answers([text])[0]

    def answers(self, texts: Sequence[str], **changed: Any) -> list[PromptTokens]:
        """Return the tokens of texts that go out in one request."""
        # changed: members of the request that are not as always.
        how = {"echo": True, "logprobs": 1} if self.asking == "echo" else {"prompt_logprobs": 0}
        prompt = texts[0] if len(texts) == 1 else texts
        request = {"model": self.model, "prompt": prompt, "max_tokens": _ADDED, "temperature": 0, **self.more, **how}
        reply = self.endpoint.post("/completions", request | changed)
        choices = reply["choices"] if isinstance(reply.get("choices"), list) else []
        by_index = {str(choice.get("index")): choice for choice in choices if isinstance(choice, Mapping)}
        parts = [reply | {"choices": [by_index.get(str(i))], "usage": None} for i in range(len(texts))]  # usage: of all
        return list(map(self._read, parts if len(texts) > 1 else [reply], texts))

    def ask(self, texts: Sequence[str], **changed: Any) -> list[Answer | ModelFileError]:
        """Return what is said of texts that go out in one request; raises ServerError where nobody answers."""
        before, added = self.before, changed.get("max_tokens", _ADDED)
        try:
            said = self.answers([before + text for text in texts], **changed)
            laid = [locate(own, text.encode(), before.encode(), added) for own, text in zip(said, texts, strict=True)]
        except ServerError as error:
            if error.status == NOBODY:
                raise
            return [ServerError(str(error).partition("; ")[0], error.status)] * len(texts)
        return [Answer(*one, len(one[1].pieces) - one[2].generated[0]) for one in zip(texts, said, laid, strict=True)]

    def _read(self, reply: Mapping[str, Any], text: str) -> PromptTokens:
        try:
            prompt = read_echo(reply) if self.asking == "echo" else read_prompt_logprobs(reply)
        except ReplyError as error:
            raise ServerError(str(error)) from error
        if prompt is None:
            raise ServerError(
                f"{self.endpoint.url}: answers without log-probabilities; start the server so that it gives them "
                f"(llama-cpp-python: --logits_all true). {_NEEDED}"
            )
        if prompt.echoes and len(prompt.pieces) <= _ADDED < len(text):
            raise ServerError(f"{self.endpoint.url}: answers without the tokens of the prompt; {_NEEDED}")
        return prompt

    def locate(self, text: str) -> LoggedSegment:
        """Return the tokens of a text that is not empty, and where they are in it."""
        return locate(self.tokens(self.before + text), text.encode(), self.before.encode())

    def adding_nothing(self) -> tuple[Server, str | None]:
        """Return the same server told to add no BOS token, and the token that it sets before a text all the same.

        The token is "" where it is not shown, and None where there is none.
        """
        # Of `prompt_logprobs` the first has no name: it must not be the text's.
        quiet = replace(self, before="", more=_QUIET if self.asking == "echo" else {})
        try:
            tokens = quiet.tokens(PROBE)
        except ServerError:
            quiet = replace(quiet, more={})
            tokens = quiet.tokens(PROBE)
        located, first = locate(tokens, PROBE.encode()), printable(tokens.pieces[0])
        if not tokens.before(located) and located.logprob[0] is None:
            return quiet, None
        return quiet, first if is_special(first) else ""

    def template(self) -> tuple[str | None, dict[str, str]]:
        """Return what the server tells of its chat template: its source and special tokens such as `bos_token`."""
        settings: dict[str, Any] = {}
        with closing(Endpoint(re.sub(r"/v1(?=[?]|$)", "", self.endpoint.url))) as beside:
            for page in ("/props", "/tokenizer_info"):  # llama.cpp's and vLLM's
                with suppress(ServerError):
                    settings |= beside.get(page)
        named = ((name, value.get("content") if isinstance(value, dict) else value) for name, value in settings.items())
        source = settings.get("chat_template")
        specials = {name: value for name, value in named if name.endswith("_token") and isinstance(value, str)}
        return source if isinstance(source, str) else None, specials

    def identity(self) -> list[Any]:
        """Return what tells this model from others, as JSON values: names, and where it cuts a text."""
        entry = {name: self.entry[name] for name in _TELLING if self.entry.get(name) is not None}
        return [self.model, entry, self.locate(PROBE).ends]

    def _find_asking(self) -> None:
        # Ask in one way, then in the other; raise the first refusal if both fail.
        refusal: ServerError | None = None
        for asking in ("echo", "prompt_logprobs"):
            self.asking = asking
            try:
                self.tokens(PROBE)
            except ServerError as error:
                refusal = refusal or error
                if error.status not in (0, 400, 404, 405, 422, 500, 501):
                    raise
            else:
                return
        assert refusal is not None
        if refusal.status:
            raise ServerError(f"{refusal}. {_NEEDED[0].upper()}{_NEEDED[1:]}", refusal.status) from refusal
        raise refusal

    def _check_places(self) -> None:
        # Check that a token's log-probability is of that token: the last tokens of two texts have the same alternatives.
        for one, other in _PAIRS:
            a, b = (self._last_place(text) for text in (one, other))
            if a is None or b is None or a[0] != b[0] or a[1] == b[1]:
                continue
            if abs(a[2] - b[2]) > _SAME_NATS:
                raise ServerError(
                    f"{self.endpoint.url}: its log-probabilities are out of place: what it says of a token depends on that "
                    "token itself, as in llama-cpp-python's server with models that begin without a BOS token. Score the "
                    "model's own file instead: -m FILE.gguf, or -m FOLDER"
                )
            return

    def _last_place(self, text: str) -> tuple[list[Piece], Piece, float] | None:
        # Tokens before the last of a text, the last, and the log-probability of the likeliest one there.
        tokens = self.tokens(self.before + text)
        located = locate(tokens, text.encode(), self.before.encode())
        last = located.generated[0] + 1
        if not located.exact or last > len(tokens.pieces):
            return None
        best = tokens.best[-last]
        return None if best is None else (tokens.pieces[:-last], tokens.pieces[-last], best)


def locate(tokens: PromptTokens, text: bytes, before: bytes = b"", added: int = _ADDED) -> LoggedSegment:
    """Return which tokens of a reply are the text's, and where they are in it."""
    # Raises ServerError: a token is partly before the text and partly in it, one after the first has no log-probability,
    # or the tokens do not show all of the text.
    segment = LoggedSegment("", tokens.pieces, tokens.logprob, generated=tuple(tokens.added_first(added)))
    # Servers that take what is set before the text for a special token may not show it.
    laid = fit(segment, before + text, text) if before else fit(segment, text)
    laid = _nearly(segment, text, before) if laid is None else _after(laid, laid.ends[-1] - len(text))
    return _scored(laid)


def locate_rendered(tokens: PromptTokens, prompt: str, specials: Collection[str]) -> LoggedSegment:
    """Return the tokens of a reply that are a rendered conversation's, and where they are in it."""
    # Some servers show special tokens as nothing, or leave BOS tokens out. What stands in brackets mostly is text.
    #   prompt  <s><|user|>Hi    pieces  "", "Hi"    masked  __Hi, and _Hi without the first
    whole = LoggedSegment("", tokens.pieces, tokens.logprob, generated=tuple(tokens.added_first(_ADDED)))
    # Some tokenizers set a space behind special tokens, as they do at the beginning.
    opens = [True, *(not piece or piece in specials for piece in tokens.pieces)]
    firsts = [first and piece[:1] in (" ", b" ", "▁") for first, piece in zip(opens, tokens.pieces, strict=False)]
    pieces = [piece[1:] if first else piece for first, piece in zip(firsts, tokens.pieces, strict=True)]
    unseen = sorted((name for name in specials if name not in tokens.pieces), key=len, reverse=True)
    for hidden in ([], [name for name in unseen if name[0] != "["], unseen):
        parts = re.split(f"({'|'.join(map(re.escape, hidden)) or '(?!)'})", prompt)
        masked = "".join(_HIDDEN if i % 2 else part for i, part in enumerate(parts))
        texts = masked.encode(), masked.removeprefix(_HIDDEN).encode()
        laid = fit(whole, *texts) or fit(whole._replace(pieces=pieces), *texts)
        if laid is not None:
            break
    else:
        laid = _nearly(whole, masked.encode(), b"")
    # Bytes of the prompt up to each byte of the masked text; the last special token is a token of its own.
    sizes = [len(part.encode()) for part in parts]
    steps = [step for i, size in enumerate(sizes) for step in ([0, 0, size] if i % 2 else [1] * size)]
    real, skipped = [*accumulate(steps, initial=0)], len(steps) - laid.ends[-1]
    last = next((name for name in specials if prompt.endswith(name)), "")
    ends = [min(real[end + skipped], real[-1] - len(last.encode())) for end in laid.ends[:-1]]
    return _scored(laid._replace(ends=[*ends, real[-1]]))


def _scored(laid: LoggedSegment) -> LoggedSegment:
    if None in laid.logprob[1:]:
        place_ = laid.logprob.index(None, 1)
        raise ServerError(f"gives no log-probability for token {place_ + 1}, {_cut(repr(laid.pieces[place_]))}")
    return laid


def _after(laid: LoggedSegment, before: int) -> LoggedSegment:
    if before and before not in laid.ends:
        raise _joined()
    # Tokens without bytes after what is before may hide the text's first character.
    return laid.after(laid.ends.index(before) + 1, before) if before else laid


def _nearly(segment: LoggedSegment, text: bytes, before: bytes) -> LoggedSegment:
    part = without_bos(segment, before + text)
    if before:
        tried = range(min(len(part.pieces), len(before) + 2))
        first = next((k + 1 for k in tried if place(part.pieces[: k + 1], before) is not None), 0)
        if not first:
            raise _joined()
        part = part.part(first)
    wrong = left_out(part.pieces, text)
    if wrong is not None:
        raise ServerError(
            f"the server's reply has {wrong}; does the server cut long prompts, or leave tokens out? Cut the text into "
            "shorter segments, or score the model itself: -m FOLDER or -m FILE.gguf"
        )
    return part._replace(ends=approximate(part.pieces, text), exact=False)


def _joined() -> ServerError:
    return ServerError("the tokenizer joins the text with what --bos sets before it; choose a text that stands alone")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 3] + "..."


def _choose_model(endpoint: Endpoint) -> tuple[str, Mapping[str, Any]]:
    # Name and the list entry of the model that the address names, or of the only one there is.
    try:
        listed = endpoint.get("/models").get("data")
    except ServerError as error:
        if error.status == 404 and endpoint.model:
            return endpoint.model, {}
        if error.status == 404:
            raise ServerError(
                f"{endpoint.url}: has no list of models (/models): is /v1 missing? A model that is not listed "
                f"can be named after the address: {endpoint.url}#NAME",
                error.status,
            ) from error
        raise
    entries = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
    by_name = {str(entry["id"]): entry for entry in entries if entry.get("id")}
    if any("\ud800" <= character <= "\udfff" for name in by_name for character in name):
        raise ServerError(f"{endpoint.url}: the name of a model in /models has half a surrogate pair, which is not text")
    names = ", ".join(_cut(name) for name in sorted(by_name)[:_MOST_NAMES]) or "none"
    if len(by_name) > _MOST_NAMES:
        names += f" and {len(by_name) - _MOST_NAMES:,} more"
    if not endpoint.model:
        if len(by_name) != 1:
            raise UsageError(f"{endpoint.url}: serves {len(by_name):,} models ({names}); name one: {endpoint.url}#NAME")
        return next(iter(by_name.items()))
    if endpoint.model in by_name or not by_name:
        return endpoint.model, by_name.get(endpoint.model, {})
    short = [name for name in by_name if PurePath(name).name == endpoint.model]
    if len(short) != 1:
        # Some servers answer for a name they do not know with whatever model they have.
        raise ServerError(f"{endpoint.url}: serves no model {endpoint.model!r}; there are: {names}")
    return short[0], by_name[short[0]]
