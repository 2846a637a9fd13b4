"""Models behind an OpenAI-compatible completions server that tells the log-probabilities of a prompt."""

# The text goes to the server segment by segment: its tokenizer cuts it, its model scores the tokens, and byte spans come
# from the text itself, against which the tokens are checked.

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import FirstToken, SegmentEnd
from lmgauge.base.errors import UsageError
from lmgauge.base.files import digest
from lmgauge.base.threads import map_in_order
from lmgauge.models.custom import with_given
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.server.http import Endpoint, ServerError
from lmgauge.models.network.server.server import Server
from lmgauge.models.scored_text import ScoresStrings
from lmgauge.scores import TOKEN, GivenTokens, ScoreBatch, Strings, TokenStrings
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.special_tokens import is_special
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Tokens, TokenUnit
from lmgauge.text.vocabulary import Vocabulary

# Requests at a time: servers compute them together.
_AT_A_TIME = 4
# Servers compute in sixteen bits and in batches of whoever asks: rows come out a little different the next time.
_TOLERANCE = 0.1
_MOST_NAMES = 5


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
        "the vocabulary of a model on a server is not known; what needs it (mixtures, audits, divergence, sampling) needs "
        "the model itself: -m FOLDER or -m FILE.gguf"
    )


@dataclass(frozen=True)
class ServerTokenizer:
    """The tokenizer of a server's model, which only the server can use."""

    fingerprint: str  # six hexadecimal digits of the model's name and of where it cuts a text
    unit: TokenUnit = "subword"
    kernel: int | None = None

    @property
    def name(self) -> str:
        """For signatures and files."""
        return f"server@{self.fingerprint}"

    def tokenize(self, segments: Segments) -> Tokens:
        """Refuse."""
        # segments: text that only the server can cut into tokens.
        raise UsageError("a server keeps its tokenizer to itself; name the model itself: -m FOLDER or -m FILE.gguf")

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the strings in a row, as the server shows them."""
        # ServerTokenizer("abcdef").detokenize(["a", " b"]) -> 'a b'
        return "".join(tokens)

    def settings(self) -> dict[str, object]:
        """Return the name, which is all there is to know."""
        return {"name": self.name}

    def files(self) -> dict[str, bytes]:
        """Return no files."""
        return {}


class CompletionsModel(ScoresStrings):
    """A model on a server."""

    blocks_are_independent = False
    tolerance = _TOLERANCE
    options: ScoringOptions
    progress: Callable[[int], None]

    def __init__(self, server: Server, policy: ContextPolicy, options: ScoringOptions) -> None:
        self.server, self.context_policy, self.options = server, policy, options
        self.label = PurePath(server.model).name or server.model
        self.progress = lambda tokens: None
        # Who writes tables knows the strings of a batch by their identity, which no later batch may get.
        self._strings: list[TokenStrings] = []
        self._altered, self._special = 0, list[str]()
        self._identity = json.dumps(server.identity(), sort_keys=True, default=str)
        self.vocabulary: Vocabulary = UnknownVocabulary(self._identity)
        self.tokenizer = ServerTokenizer(self.vocabulary.fingerprint[:6])

    def takes(self, option: str) -> bool:
        return option == "bos" or super().takes(option)

    @cached_property
    def fingerprint(self) -> str:
        """Return SHA-256 over what the server tells of the model, and the policy; the weights are not to be seen."""
        return digest(["server", self._identity, str(self.context_policy), self.server.before])

    @property
    def notes(self) -> list[str]:
        """Return sentences about the text scored last: why its bits are a bound."""
        notes = []
        if self._altered:
            notes.append(f"{self.label}: the tokens show the text with changes in {_segments(self._altered)}")
        if self._special:
            names = ", ".join(sorted(set(self._special))[:_MOST_NAMES])
            where = f"names of special tokens ({names}) stand in {_segments(len(self._special))}"
            notes.append(f"{self.label}: {where}; the server may read them as those tokens")
        return notes

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield one batch of the score table for each block of segments, in order."""
        at_a_time = max(threads or 0, _AT_A_TIME)
        self._altered, self._special = 0, []
        try:
            for block in segments:
                if block.given_starts is not None and block.boundary == "apart":
                    raise UsageError(
                        f"{self.label}: a server cuts given text and what comes after it as one text; leave out --boundary"
                    )
                rows = []
                for scored in map_in_order(partial(self._segment, block), range(len(block)), at_a_time):
                    self.progress(len(scored.logprob))
                    rows.append(scored)
                    self._altered += scored.altered
                    self._special += [scored.special] * bool(scored.special)
                batch = _batch(block, rows, spans=spans)
                self._strings.append(batch.strings)
                yield batch
        finally:
            self.server.endpoint.close()

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block of segments."""
        return next(self.score([block], spans=spans))

    def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Refuse: a few likely tokens and their log-probabilities are not a distribution."""
        # context_ids: uint32 [n].
        raise UsageError(
            f"{self.label}: a server tells the log-probabilities of the text's own tokens, not of the whole vocabulary; "
            "audits, divergence, sampling, entropy and rank need the model itself: -m FOLDER or -m FILE.gguf"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of the model."""
        return {
            "model_type": "server",
            "label": self.label,
            "server": self.server.endpoint.url,
            "model": self.server.model,
            "context": str(self.context_policy),
            "tokenizer": self.tokenizer.settings(),
            "fingerprint": self.fingerprint,
        }

    def _segment(self, block: Segments, i: int) -> _Scored:
        source, before = block.text(i), block.given_text(i)
        length = len(source)
        if self.context_policy.end == "newline" and block.terminator:
            source += b"\n"
        if not source:
            return _Scored([], np.zeros(0), np.zeros(0, np.int64), False)
        try:
            located = self.server.locate((before + source).decode())
        except ServerError as error:
            too_long = error.status in (400, 413) and re.search("context|length|too long|tokens", error.reason)
            hint = "; cut the text into shorter segments, or start the server with a longer context" if too_long else ""
            raise ServerError(f"{block.source}, line {block.line(i)}: {error}{hint}", error.status) from error
        behind = located.behind(len(before))
        shown = [_shown(piece) for piece in located.pieces[: len(located.pieces) - len(behind.pieces)]]
        # The first token's bytes go to the event after it.
        unscored = behind.logprob[:1] == [None]
        if unscored and self.context_policy.first == "bos":
            raise ServerError(
                f"{block.source}, line {block.line(i)}: the server gives no log-probability for the first token; leave out "
                "--first-token, or set a text before each segment with --bos"
            )
        scored = behind.part(int(unscored))
        ends = np.clip(np.array(scored.ends, np.int64), 0, length)
        ends[-1:] = length
        strings = [_shown(piece) for piece in scored.pieces]
        # Servers read the name of a special token in the text as that token, not as the text it is.
        special = next(filter(is_special, strings), "")
        bound = unscored or not located.exact or bool(special)
        logprob = np.array(scored.logprob, np.float64)
        return _Scored(strings, logprob, ends, bound, not located.exact, special, shown, behind.crosses)

    def __repr__(self) -> str:
        return f"CompletionsModel({self.server.model!r} at {self.server.endpoint.url}, {self.context_policy})"


@dataclass(frozen=True, slots=True)
class _Scored:
    """The events of a segment; `bound`: not all of its text is in them, as its tokens are altered or special, or else."""

    # `shown` are the tokens of the text given before it, and `crossing` says that the first event begins in that.

    strings: list[str]
    logprob: NDArray[np.float64]
    ends: NDArray[np.int64]
    bound: bool
    altered: bool = False
    special: str = ""
    shown: Sequence[str] = ()
    crossing: bool = False


def _batch(block: Segments, rows: list[_Scored], *, spans: bool) -> ScoreBatch:
    numbers: dict[str, int] = {}
    ids = [numbers.setdefault(token, len(numbers)) for row in rows for token in row.strings]
    logprob = np.concatenate([np.zeros(0), *(row.logprob for row in rows)])
    ends = np.concatenate([np.zeros(0, np.int64), *(row.ends for row in rows)]) if spans else np.zeros(0, np.int64)
    shown_ids = [numbers.setdefault(token, len(numbers)) for row in rows for token in row.shown]
    batch = ScoreBatch(
        segments=np.arange(block.first, block.first + len(block), dtype=np.int64),
        segment_events=np.array([len(row.logprob) for row in rows], np.int64),
        token_ids=np.array(ids, np.uint32),
        strings=Strings(list(numbers)),
        logprob=logprob,
        kind=np.full(len(logprob), TOKEN, np.uint8),
        ends=ends,
        lossy=np.array([row.bound for row in rows], bool),
    )
    if block.given_starts is None:
        return batch
    counts, crossing = np.array([len(row.shown) for row in rows]), np.array([row.crossing for row in rows])
    return with_given(batch, GivenTokens(np.array(shown_ids, np.uint32), counts, block.given_lengths(), crossing), block)


def _shown(piece: str | bytes) -> str:
    shown = piece.decode("utf-8", "replace") if isinstance(piece, bytes) else piece
    return shown.encode("utf-8", "replace").decode()


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
