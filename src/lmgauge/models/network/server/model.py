"""Models behind an OpenAI-compatible completions server that tells the log-probabilities of a prompt."""

# The text goes to the server segment by segment: its tokenizer cuts it, its model scores the tokens, and byte spans come
# from the text itself, against which the tokens are checked.

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import FirstToken, SegmentEnd
from lmgauge.base.errors import UsageError
from lmgauge.base.files import digest
from lmgauge.base.threads import map_in_order
from lmgauge.models.network.chat_template import ChatTemplate, FramedTurn
from lmgauge.models.network.options import ScoringOptions, policy_of_turns
from lmgauge.models.network.sequences import framed_turns, lay_turns
from lmgauge.models.network.server.http import Endpoint, ServerError
from lmgauge.models.network.server.server import Server, locate_rendered
from lmgauge.models.network.tokens import chat_template
from lmgauge.models.scored_text import ScoresStrings
from lmgauge.scores import TOKEN, ScoreBatch, Strings, TokenStrings
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.imports.log import LoggedSegment, printable
from lmgauge.scores.special_tokens import SPECIAL_NAME, is_special
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Cut, TokenizerBase, Tokens, TokenUnit
from lmgauge.text.vocabulary import SPECIAL_TOKENS, UNK, Vocabulary

# Requests at a time: servers compute them together.
_AT_A_TIME = 4
# Servers compute in sixteen bits and in batches of whoever asks: rows come out a little different the next time.
_TOLERANCE = 0.1
_MOST_NAMES = 5
# What is said of segments; how many they are, and the names of special tokens.
_ALTERED = "the tokens show the text with changes in {}"
_NAMED = "names of special tokens ({1}) stand in {0}; the server may read them as those tokens"
_TWICE = "the BOS token stands twice before {}: the server sets one, as the template does; add --template-args bos_token=..."
_UNTOLD = "the server tells no chat template, and {} of conversations are scored as text: give it one with --template FILE"
_FOREIGN = "the server sets a BOS token before {}, which the chat template does not, and cannot be told not to"


class UnknownVocabulary(Vocabulary):
    """The vocabulary of a server's model: there is one, the same for all runs of that model, but no one tells it."""

    # It has a fingerprint and no size; whatever needs its tokens is refused.

    def __init__(self, identity: str) -> None:
        self._identity, self.closed = identity, True

    def __len__(self) -> int:
        return 0

    @cached_property
    def fingerprint(self) -> str:
        return digest("vocabulary of a server", self._identity)

    @property
    def ids_fingerprint(self) -> str:
        return self.fingerprint

    def token(self, token_id: int) -> str:
        raise _unknown()

    def __getattr__(self, name: str) -> Any:
        if name in ("slots", "offsets", "bytes"):
            raise _unknown()
        raise AttributeError(name)

    def __repr__(self) -> str:
        return "UnknownVocabulary()"


def _segments(count: int) -> str:
    return f"{count:,} segment{'s' * (count != 1)}"


def _unknown() -> UsageError:
    return UsageError(
        "the vocabulary of a model on a server is not known; what needs it (mixtures, divergence, sampling) needs "
        "the model itself: -m FOLDER or -m FILE.gguf"
    )


class ServerTokenizer(TokenizerBase):
    """The tokenizer of a server's model, which only the server can use."""

    unit: TokenUnit = "subword"
    kernel: int | None = None

    def __init__(self, fingerprint: str) -> None:
        # fingerprint: six hexadecimal digits of the model's name and of where it cuts a text.
        self._fingerprint, self.name = fingerprint, f"server@{fingerprint}"

    @property
    def fingerprint(self) -> str:
        """Return six hexadecimal digits of the model's name and of where it cuts a text."""
        return self._fingerprint

    def tokenize(self, segments: Segments) -> Tokens:
        """Refuse."""
        # segments: text that only the server can cut into tokens.
        raise UsageError("a server keeps its tokenizer to itself; name the model itself: -m FOLDER or -m FILE.gguf")

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the strings in a row, as the server shows them."""
        # ServerTokenizer("abcdef").detokenize(["a", " b"]) -> 'a b'
        return "".join(tokens)


class CompletionsModel(ScoresStrings):
    """A model on a server."""

    blocks_are_independent = False
    tolerance = _TOLERANCE
    served_by: Server
    options: ScoringOptions
    progress: Callable[[int], None]
    raw: CompletionsModel | None = None
    framing: ChatTemplate | None = None
    # Of turns: special tokens that have names, and what the server sets before each by itself.
    _specials: Collection[str] = ()
    _own_bos: str | None = None

    def __init__(self, server: Server, policy: ContextPolicy, options: ScoringOptions) -> None:
        self.served_by, self.context_policy, self.options = server, policy, options
        self.label = PurePath(server.model).name or server.model
        self.progress = lambda tokens: None
        # Who writes tables knows the strings of a batch by their identity, which no later batch may get.
        self._strings: list[TokenStrings] = []
        self._odd, self._names = Counter[str](), set[str]()  # what is said of how many segments; of special tokens
        self._identity = json.dumps(server.identity(), sort_keys=True, default=str)
        self.vocabulary: Vocabulary = UnknownVocabulary(self._identity)
        self.tokenizer = ServerTokenizer(self.vocabulary.fingerprint[:6])

    def takes(self, option: str) -> bool:
        return option == "bos" or super().takes(option)

    def framed(self) -> CompletionsModel:
        """Return the same model for the turns of conversations, set into a chat template; itself where none is known."""
        source, named = self.served_by.template()
        framing = chat_template(self.options, self.label, source, named, None)
        if framing is None:
            return self
        model = copy(self)
        model.served_by, added = self.served_by.adding_nothing()
        model.raw, model.framing, model._strings = self, framing, []
        model.context_policy = policy_of_turns(self.context_policy, self.options, framing.digest)
        tokens = {**named, **self.options.template_arguments}
        model._specials = {str(value) for name, value in tokens.items() if name.endswith("_token")}
        model._own_bos = None if added is None else str(tokens.get("bos_token", added))
        return model

    @property
    def fingerprint(self) -> str:
        """Return SHA-256 over what the server tells of the model, and the policy; the weights are not to be seen."""
        return digest(["server", self._identity, str(self.context_policy), self.served_by.before])

    @property
    def notes(self) -> list[str]:
        """Return sentences about the text scored last: why its bits are a bound."""
        names = ", ".join(sorted(self._names)[:_MOST_NAMES])
        return [f"{self.label}: {words.format(_segments(count), names)}" for words, count in sorted(self._odd.items())]

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield one batch of the score table for each block of segments, in order."""
        at_a_time = max(threads or 0, _AT_A_TIME)
        self._odd, self._names = Counter(), set()
        try:
            for block in segments:
                batch = self._batch(block, at_a_time, spans=spans)
                self._strings.append(batch.strings)
                yield batch
        finally:
            self.served_by.endpoint.close()

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block of segments."""
        return next(self.score([block], spans=spans))

    def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Refuse: a few likely tokens and their log-probabilities are not a distribution."""
        # context_ids: uint32 [n].
        raise UsageError(
            f"{self.label}: a server tells the log-probabilities of the text's own tokens, not of the whole vocabulary; "
            "divergence, sampling, entropy and rank need the model itself: -m FOLDER or -m FILE.gguf"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of the model."""
        return {
            "model_type": "server",
            "label": self.label,
            "server": self.served_by.endpoint.url,
            "model": self.served_by.model,
            "context": str(self.context_policy),
            "tokenizer": self.tokenizer.settings(),
            "fingerprint": self.fingerprint,
        }

    def _batch(self, block: Segments, at_a_time: int, *, spans: bool) -> ScoreBatch:
        if block.given_starts is not None and block.boundary == "apart":
            raise UsageError(
                f"{self.label}: a server cuts given text and what comes after it as one text; leave out --boundary"
            )
        framing = None if block.turns is None else self.framing
        end = "\n" if self.context_policy.end == "newline" and block.terminator else ""
        texts = (FramedTurn(block.given_text(i).decode(), block.text(i).decode(), end) for i in range(len(block)))
        framed = list(texts) if framing is None else framed_turns(block, framing)
        locate = self._plain if framing is None else self._rendered
        untold = _UNTOLD if framing is None and block.turns is not None else ""
        laid, sound = list[LoggedSegment](), list[bool]()
        for one, head in map_in_order(partial(self._segment, block, framed, locate), range(len(block)), at_a_time):
            self.progress(len(one.pieces))
            self._odd.update(filter(None, (head, untold, "" if one.exact else _ALTERED)))
            laid.append(one)
            sound.append(one.exact and head != _NAMED)
        numbers = {SPECIAL_TOKENS[UNK]: UNK}
        pieces = [printable(piece) for one in laid for piece in one.pieces]
        cut = Cut(
            np.array([numbers.setdefault(piece, len(numbers)) for piece in pieces], np.int64),
            np.array([len(one.pieces) for one in laid], np.int64),
            np.array([end for one in laid for end in one.ends], np.int64),
            ~np.array(sound, bool),
        )
        events, scored = lay_turns(block, framed, cut, framing, self.context_policy)
        logprob = np.array([value for one in laid for value in one.logprob], np.float64)[scored]
        if framing is None:
            kinds, given = np.full(len(logprob), TOKEN, np.uint8), None if block.given_starts is None else events.before
            events = replace(events, kinds=kinds, before=given, ends=events.ends if spans else events.ends[:0])
        return events.batch(logprob, Strings(list(numbers)), np.isnan(logprob))

    def _segment(
        self, block: Segments, framed: Sequence[FramedTurn], locate: Callable[[str, str], tuple[LoggedSegment, str]], i: int
    ) -> tuple[LoggedSegment, str]:
        # Its tokens and those of all before it, and what must be said of it.
        before, scored = framed[i].before, framed[i].content + framed[i].end
        if not scored:
            return LoggedSegment("", [], []), ""
        try:
            laid, head = locate(before, scored)
            if laid.behind(len(before.encode())).logprob[:1] == [None] and self.context_policy.first == "bos":
                advice = "leave out --first-token, or set a text before each segment with --bos"
                raise ServerError(f"the server gives no log-probability for the first token; {advice}")
        except ServerError as error:
            too_long = error.status in (400, 413) and re.search("context|length|too long|tokens", error.reason)
            hint = "; cut the text into shorter segments, or start the server with a longer context" if too_long else ""
            raise ServerError(f"{block.source}, line {block.line(i)}: {error}{hint}", error.status) from error
        return laid, head

    def _plain(self, before: str, scored: str) -> tuple[LoggedSegment, str]:
        laid = self.served_by.locate(before + scored)
        behind = laid.behind(len(before.encode()))
        shown = (printable(piece) for piece, value in zip(behind.pieces, behind.logprob, strict=True) if value is not None)
        # Servers read the name of a special token in the text as that token, not as the text it is.
        names = list(filter(is_special, shown))
        self._names.update(names[:1])
        return laid, _NAMED if names else ""

    def _rendered(self, before: str, scored: str) -> tuple[LoggedSegment, str]:
        prompt = before + scored
        sent = prompt.removeprefix(self._own_bos or "")
        specials = {*self._specials, *SPECIAL_NAME.findall(sent)}
        tokens = self.served_by.tokens(sent)
        laid = locate_rendered(tokens, sent, specials)
        leading, skipped = tokens.before(laid), len(prompt.encode()) - len(sent.encode())
        twice = leading > 1 or (leading == 1 and tokens.pieces[0] == laid.pieces[0] in specials)
        head = _TWICE if twice else _FOREIGN if self._own_bos is not None and not skipped else ""
        return laid._replace(ends=[end + skipped for end in laid.ends]), head

    def __repr__(self) -> str:
        return f"CompletionsModel({self.served_by.model!r} at {self.served_by.endpoint.url}, {self.context_policy})"


def load_completions(url: str, options: ScoringOptions) -> CompletionsModel:
    """Connect to a server and try it out."""
    # options: `first_token` (`bos` or `unscored`), `end` (`newline` or `none`) and `bos`, a text set before each segment,
    # so that the first token has a context and a score: the model's BOS token as the server reads it, such as `<s>`, or any
    # text that stands alone. The others do not fit a server.
    end = _check_options(url, options)
    endpoint = Endpoint(url)
    try:
        server = Server.connect(endpoint, options.bos or "")
        located = server.locate("The quick brown fox")
        scored: FirstToken = "unscored" if located.logprob[:1] == [None] else "bos"
        if options.first_token not in (None, scored):
            does = "scores no first token" if scored == "unscored" else "scores the first token after its BOS token"
            raise UsageError(
                f"{url}: first-token {options.first_token}: this server {does}; leave the option out"
                + (", or set a text before each segment with --bos" if scored == "unscored" else "")
            )
        policy = ContextPolicy(first=scored, end=end)
        return CompletionsModel(server, policy, options)
    except ServerError as error:
        if str(error).startswith(endpoint.url):
            raise
        raise ServerError(f"{endpoint.url}: {error}", error.status, error.reason) from error
    finally:
        endpoint.close()


def _check_options(url: str, options: ScoringOptions) -> SegmentEnd:
    # What ends a segment, once the options are known to fit a server.
    if options.context is not None or options.stride is not None:
        raise UsageError(
            f"{url}: --context and --stride count tokens, and a server takes text; leave them out, and cut the text into "
            "segments that the server takes whole"
        )
    if options.protocol is not None or options.bos_each_window:
        name = "bos-each-window" if options.protocol is None else f"protocol {options.protocol}"
        raise UsageError(f"{url}: {name} lays windows of tokens, and a server takes text; only networks on this machine can")
    if options.stream:
        raise UsageError(f"{url}: a server gets one segment at a time, so no context runs on; leave out --context stream")
    if options.first_token == "uniform":
        raise UsageError(f"{url}: first-token uniform: the size of the vocabulary on a server is not known; choose another")
    if options.first_token == "eos":
        raise UsageError(f"{url}: first-token eos: a server takes text; set its EOS token before each segment with --bos")
    if options.end == "eos":
        raise UsageError(f"{url}: end eos: a server takes text, and no token after it; choose newline or none")
    return options.end or "newline"
