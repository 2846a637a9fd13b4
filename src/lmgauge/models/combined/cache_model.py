"""A cache as a language model: it predicts what went by, and mixed with another model it makes that one adapt to a text.

It remembers counts of the events that went by, within a window or fading; each event is scored before it is counted:

    p_1(w)     = c(w) / c                                    uniform over all that can be predicted while nothing went by
    p_k(w | h) = (c(h w) + p_{k-1}(w | h')) / (c(h) + 1)     h: the k - 1 events before, h' without the first of them

Each sums to one. With a window, c counts the last events; with a decay d, an event that i others came after counts d^i.

Sources: Kuhn, R. & De Mori, R. (1990), "A cache-based natural language model for speech recognition", IEEE PAMI 12;
Clarkson, P. & Robinson, A. (1997), "Language model adaptation using mixtures and an exponentially decaying cache", ICASSP;
the steps from order to order: MacKay, D. & Peto, L. (1995), "A hierarchical Dirichlet language model".
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.base.files import digest, writing_directory
from lmgauge.base.paths import read_json
from lmgauge.models.custom import alone, score_segments
from lmgauge.models.model_settings import CacheSettings
from lmgauge.models.protocol import (
    CACHE_MODEL_TYPE,
    LanguageModel,
    check_context,
    checked,
    describing,
    is_folder_of,
    read_own_config,
    write_config,
)
from lmgauge.models.scored_text import ScoresStrings
from lmgauge.scores import ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.text.encoding import RESERVED_POLICIES, ReservedPolicy
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import load_tokenizer
from lmgauge.text.tokens import TOKENIZER_FILES, Tokenizer
from lmgauge.text.vocabulary import BOS, SPECIAL_TOKENS, Vocabulary

_RESCALE_FROM = 1e150

Context = tuple[int, ...]


@dataclass
class CacheCounts:
    """The counts, event by event: ask for the probability of an event first, then `add` it."""

    settings: CacheSettings
    size: int  # tokens in the vocabulary, `<s>` among them, which is never predicted
    _last: deque[int] = field(default_factory=deque)
    _counts: dict[Context, dict[int, float]] = field(default_factory=dict)  # by the events before
    _totals: dict[Context, float] = field(default_factory=dict)
    _step: float = 1.0  # what the next event counts; counts are multiples of it

    def probability(self, token: int) -> float:
        """Return the probability of a token as the next event."""
        p = 1.0 / (self.size - 1) if token != BOS else 0.0
        for context in self._contexts():
            total = self._totals.get(context, 0.0)
            count = self._counts[context].get(token, 0.0) if total else 0.0
            if context:
                p = (count / self._step + p) / (total / self._step + 1.0)
            elif total:
                p = count / total
        return p

    def distribution(self) -> NDArray[np.float64]:
        """Return the probabilities of all tokens as the next event, float64 [vocabulary]; as `probability` gives them."""
        p = np.full(self.size, 1.0 / (self.size - 1))
        p[BOS] = 0.0
        for context in self._contexts():
            total = self._totals.get(context, 0.0)
            counts = self._counts[context] if total else {}
            values = np.zeros(self.size)
            values[list(counts)] = list(counts.values())
            if context:
                p = (values / self._step + p) / (total / self._step + 1.0)
            elif total:
                p = values / total
        return p

    def add(self, token: int) -> None:
        """Take one event more."""
        if self.settings.decay is not None:
            self._step /= self.settings.decay
            if self._step > _RESCALE_FROM:
                self._rescale()
        for context in self._contexts():
            counts = self._counts.setdefault(context, {})
            counts[token] = counts.get(token, 0.0) + self._step
            self._totals[context] = self._totals.get(context, 0.0) + self._step
        self._last.append(token)
        window = self.settings.window or 0
        if window and len(self._last) > window:
            self._forget(len(self._last) - window - 1)
        if len(self._last) > window + self.settings.order - 1:  # the events before one that leaves are still needed
            self._last.popleft()

    def _contexts(self) -> list[Context]:
        # Events before the next one, the last none, one, two ... of them.
        most = min(self.settings.order - 1, len(self._last))
        last = tuple(self._last[i] for i in range(-most, 0))
        return [last[most - k :] for k in range(most + 1)]

    def _forget(self, place: int) -> None:
        token = self._last[place]
        for k in range(min(self.settings.order - 1, place) + 1):
            context = tuple(self._last[i] for i in range(place - k, place))
            counts = self._counts[context]
            counts[token] -= 1.0
            self._totals[context] -= 1.0
            if not counts[token]:
                del counts[token]
            if not self._totals[context]:
                del self._counts[context], self._totals[context]

    def _rescale(self) -> None:
        # Divide all by what an event counts, before the numbers grow too large.
        for context, counts in self._counts.items():
            for token in counts:
                counts[token] /= self._step
            self._totals[context] /= self._step
        self._step = 1.0


FORMAT_VERSION = 1
_CONFIG, _VOCABULARY = "config.json", "vocabulary.json"


class CacheModel(ScoresStrings):
    """Predicts each event by what went by before it, in this text; it is scored before it is counted."""

    # Its context runs on over the ends of segments, and `</s>` counts as an event like any other.

    blocks_are_independent = False
    context_policy = ContextPolicy(unit="stream")

    reserved: ReservedPolicy

    def __init__(
        self, vocabulary: Vocabulary, tokenizer: Tokenizer, reserved: ReservedPolicy, settings: CacheSettings
    ) -> None:
        # Take what it shares with the model beside it; use `beside`.
        self.vocabulary, self.tokenizer, self.reserved, self.settings = vocabulary, tokenizer, reserved, settings
        self._replayed: tuple[NDArray[np.uint32], CacheCounts] | None = None

    @classmethod
    def beside(cls, model: LanguageModel, settings: CacheSettings) -> CacheModel:
        """Return a cache over the tokens of a model."""
        # Raises UsageError: the model does not predict `</s>`, or leaves first tokens unscored.
        policy = model.context_policy
        if policy.line_ends != "event" or not policy.scores_first_tokens:
            raise UsageError(
                f"{model.label}: a cache needs a model that scores each event of a text, the end of a line as </s> "
                "(--end eos, --first-token bos)"
            )
        return cls(model.vocabulary, model.tokenizer, model.reserved or "refuse", settings)

    @property
    def label(self) -> str:
        """Short name for signatures, e.g. `cache500`."""
        return self.settings.label

    @cached_property
    def fingerprint(self) -> str:
        """Return SHA-256 over settings, vocabulary and tokenizer, and what reserved tokens mean if they are not refused."""
        parts = [CACHE_MODEL_TYPE, asdict(self.settings), self.vocabulary.ids_fingerprint, self.tokenizer.fingerprint]
        parts += [] if self.reserved == "refuse" else [self.reserved]
        return digest(json.dumps(parts))

    def with_reserved(self, reserved: ReservedPolicy) -> CacheModel:
        """Return the same cache with another meaning of reserved tokens in the text."""
        if reserved not in RESERVED_POLICIES:
            raise UsageError(f"reserved must be one of {', '.join(RESERVED_POLICIES)}; got {reserved!r}")
        return CacheModel(self.vocabulary, self.tokenizer, reserved, self.settings)

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield one batch for each block of segments, in order; each event is scored, then counted."""
        counts = CacheCounts(self.settings, len(self.vocabulary))

        def score_ids(ids: NDArray[np.uint32]) -> NDArray[np.float64]:
            p = np.empty(len(ids) - 1)
            for place, token in enumerate(ids[1:].tolist()):
                p[place] = counts.probability(token)
                counts.add(token)
            with np.errstate(divide="ignore"):
                return np.log(p)

        blocks = alone(segments, self.label)
        yield from score_segments(blocks, self.tokenizer, self.vocabulary, score_ids, reserved=self.reserved, spans=spans)

    def log_distribution(self, context_ids: NDArray[np.uint32] | Sequence[int]) -> NDArray[np.float64]:
        """Return natural log-probabilities of all tokens after a context."""
        # -> float64 [vocabulary]; -inf for what did not go by.
        context = check_context(context_ids, len(self.vocabulary))[1:]
        before, counts = self._replayed or (context[:0], None)
        if counts is None or len(before) > len(context) or not np.array_equal(before, context[: len(before)]):
            before, counts = context[:0], CacheCounts(self.settings, len(self.vocabulary))
        for token in context[len(before) :].tolist():
            counts.add(token)
        self._replayed = context.copy(), counts
        with np.errstate(divide="ignore"):
            return np.log(counts.distribution())

    def to_dict(self) -> dict[str, Any]:
        """Return what is in the model, as config.json tells it."""
        return {
            "model_type": CACHE_MODEL_TYPE,
            **asdict(self.settings),
            "reserved": self.reserved,
            "context": str(self.context_policy),
            "vocabulary": "closed" if self.vocabulary.closed else "open",
            "vocabulary_size": len(self.vocabulary),
            "vocabulary_fingerprint": self.vocabulary.ids_fingerprint,
            "tokenizer": self.tokenizer.settings(),
        }

    def save(self, path: str | Path) -> None:
        """Write the cache as a folder: its settings and its tokens, as it has nothing else before a text."""
        # Raises OutputError: it cannot be written; nothing is left behind.
        config = self.to_dict() | {"fingerprint": self.fingerprint, "format_version": FORMAT_VERSION}
        tokens = self.vocabulary.tokens[len(SPECIAL_TOKENS) :]
        with writing_directory(
            path, is_ours=is_folder_of(CACHE_MODEL_TYPE, _CONFIG, _VOCABULARY, *TOKENIZER_FILES)
        ) as folder:
            for name, content in self.tokenizer.files().items():
                (folder / name).write_bytes(content)
            (folder / _VOCABULARY).write_text(json.dumps(tokens, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
            write_config(folder, config, sealed=False)

    def __repr__(self) -> str:
        return f"CacheModel({self.label}, {len(self.vocabulary):,} tokens)"


@dataclass
class _Config:
    order: int
    window: int | None
    decay: float | None
    reserved: ReservedPolicy
    vocabulary: Literal["open", "closed"]
    tokenizer: dict[str, Any]
    fingerprint: str


def load_cache(path: str | Path, options: object = None) -> CacheModel:
    """Load the folder of a cache."""
    path = Path(path)
    again = "copy it again, or make it again"
    config = read_own_config(path, _Config, CACHE_MODEL_TYPE, FORMAT_VERSION, again, sealed=False)
    tokens = read_json(path / _VOCABULARY, list[str], "a list of the tokens of a cache", again, ModelFileError)
    tokenizer = load_tokenizer(config.tokenizer, path)
    with describing(path, "a cache"):
        vocabulary = Vocabulary.from_tokens(tokens, closed=config.vocabulary == "closed")
        settings = CacheSettings(order=config.order, window=config.window, decay=config.decay)
    model = CacheModel(vocabulary, tokenizer, config.reserved, settings)
    return checked(model, path, config.fingerprint)
