"""A cache as a language model: it predicts what went by, and mixed with another model it makes that one adapt to a text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy
from lmgauge.digests import digest
from lmgauge.errors import ModelFileError, UsageError
from lmgauge.files import writing_directory
from lmgauge.models.cache.counts import CacheCounts
from lmgauge.models.cache.settings import CacheSettings
from lmgauge.models.custom import score_segments
from lmgauge.models.given import alone
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
from lmgauge.places import read_json
from lmgauge.scores import ScoreBatch
from lmgauge.text.encoding import RESERVED_POLICIES, ReservedPolicy
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import load_tokenizer
from lmgauge.text.tokens import TOKENIZER_FILES, Tokenizer
from lmgauge.text.vocabulary import SPECIAL_TOKENS, Vocabulary

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
    again = "copy it again, or make it anew"
    config = read_own_config(path, _Config, CACHE_MODEL_TYPE, FORMAT_VERSION, again, sealed=False)
    tokens = read_json(path / _VOCABULARY, list[str], "a list of the tokens of a cache", again, ModelFileError)
    tokenizer = load_tokenizer(config.tokenizer, path)
    with describing(path, "a cache"):
        vocabulary = Vocabulary.from_tokens(tokens, closed=config.vocabulary == "closed")
        settings = CacheSettings(order=config.order, window=config.window, decay=config.decay)
    model = CacheModel(vocabulary, tokenizer, config.reserved, settings)
    return checked(model, path, config.fingerprint)
