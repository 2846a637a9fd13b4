"""An n-gram model: tables, vocabulary, tokenizer and settings, behind the face all models have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.choices import NgramContext
from lmgauge.context_policy import ContextPolicy
from lmgauge.errors import ModelFileError
from lmgauge.models.ngram.lookup import Events, NgramTables, context_window
from lmgauge.models.ngram.storage import StoredModel, read_model, write_model
from lmgauge.models.protocol import NGRAM_MODEL_TYPE, check_context
from lmgauge.scores import ScoreBatch
from lmgauge.text.encoding import ReservedPolicy, encode
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import load_tokenizer
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, EOS, UNK, Vocabulary
from lmgauge.threads import map_in_order, run_ranges, thread_count

_SHORT = {
    "mle": "mle", "laplace": "laplace", "lidstone": "lidstone", "witten-bell": "wb", "absolute-discounting": "ad",
    "kneser-ney": "kn", "modified-kneser-ney": "mkn", "good-turing": "gt", "arpa": "arpa",
}  # fmt: skip


@dataclass(frozen=True)
class NgramSettings:
    """How a model was made; stored in its config.json.

    Attributes:
        kind: the smoothing, or `arpa` for a model read from such a file.
        interpolate: whether lower orders are mixed in everywhere or only backed off to.
        discount, k, cutoffs, prune: options of the smoothing and of pruning.
        context: each sentence on its own, or one running context.
        reserved: what a reserved token in the text means.
        min_count, vocab_size: how the vocabulary was restricted.
        discounts: D(0), D(1), ... of each order.
        training: what it was trained on: sha256, segments, events, bytes.
        notes: what a user should know, e.g. fallbacks taken.
    """

    kind: str
    interpolate: bool = True
    discount: float | tuple[float, ...] | None = None
    k: float | None = None
    cutoffs: tuple[int, ...] = ()
    prune: float | None = None
    context: NgramContext = "sentence"
    reserved: ReservedPolicy = "refuse"
    min_count: int = 1
    vocab_size: int | None = None
    discounts: tuple[tuple[float, ...], ...] = ()
    training: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class NgramModel:
    """A trained n-gram model.

    Attributes:
        tables: probabilities and back-off weights.
        vocabulary: token strings and ids.
        tokenizer: how text becomes tokens.
        settings: how it was made.
    """

    def __init__(self, tables: NgramTables, vocabulary: Vocabulary, tokenizer: Tokenizer, settings: NgramSettings) -> None:
        self.tables, self.vocabulary, self.tokenizer, self.settings = tables, vocabulary, tokenizer, settings

    @property
    def order(self) -> int:
        """The longest n-grams."""
        return self.tables.order

    @property
    def label(self) -> str:
        """Short name for signatures, e.g. `mkn5`."""
        return f"{_SHORT.get(self.settings.kind, self.settings.kind)}{self.order}"

    @property
    def context_policy(self) -> ContextPolicy:
        """`sentence` or `stream`."""
        return ContextPolicy(unit=self.settings.context)

    @property
    def discounts(self) -> list[tuple[float, ...]]:
        """D(1), D(2), ... of each order from 1; the last holds for all higher counts."""
        return [values[1:] for values in self.settings.discounts]

    @cached_property
    def types(self) -> list[int]:
        """N-grams of each order; order 1 counts every token of the vocabulary that is an event."""
        return [self.vocabulary.event_count, *self.tables.types()[1:]]

    @cached_property
    def checksums(self) -> list[int]:
        """A 64-bit checksum of each table of order 2, 3, ..."""
        return [self._checksum(k) for k in range(2, self.order + 1)]

    def _checksum(self, k: int) -> int:
        table = self.tables.tables[k - 2]
        results = run_ranges(lambda a, b: _native.check_table(table, a, b, 2**32, 2**32), len(table), thread_count())
        return int(sum(result[0] for result in results) % 2**64)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all that determines the probabilities."""
        settings = {
            "context": self.settings.context,
            "reserved": self.settings.reserved,
            "tokenizer": self.tokenizer.settings(),
        }
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
        digest.update(self.vocabulary.fingerprint.encode())
        digest.update(np.ascontiguousarray(self.tables.unigrams).data)
        digest.update(json.dumps([self.checksums, self.tables.full_context, self.tables.unseen]).encode())
        return digest.hexdigest()

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """One batch of the score table for each block of segments, in order.

        Args:
            segments: blocks of text, e.g. a `Corpus`.
            spans: whether to fill the `ends` column.
            threads: blocks scored at a time; the result does not depend on it.
        """
        if self.settings.context == "stream":
            yield from self._score_stream(segments, spans)
            return
        yield from map_in_order(lambda block: self.score_block(block, spans=spans), segments, thread_count(threads))

    @property
    def blocks_are_independent(self) -> bool:
        """Whether `score_block` may be called for blocks in any order: not where a context runs across them."""
        return self.settings.context == "sentence"

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """The batch of one block whose segments are contexts of their own."""
        self.tables.check_file()  # before the vocabulary is looked at: it is mapped, too
        encoded = encode(block, self.tokenizer, self.vocabulary, bos=True, reserved=self.settings.reserved, spans=spans)
        ends = encoded.span_ends[encoded.ids != BOS] if spans else encoded.span_ends
        return self._batch(block, self.tables.score(encoded.ids), ends, encoded.lossy)

    def _score_stream(self, segments: Iterable[Segments], spans: bool) -> Iterator[ScoreBatch]:
        context = np.array([BOS], np.uint32)
        for block in segments:
            self.tables.check_file()
            encoded = encode(block, self.tokenizer, self.vocabulary, bos=False, reserved=self.settings.reserved, spans=spans)
            ids = np.concatenate((context, encoded.ids))
            events = self.tables.score(ids, skip=len(context))
            yield self._batch(block, events, encoded.span_ends, encoded.lossy)
            context = ids[-max(1, self.order - 1) :].copy()

    def _batch(self, block: Segments, events: Events, ends: NDArray[np.int64], lossy: NDArray[np.bool_]) -> ScoreBatch:
        segment_events = np.diff(np.flatnonzero(events.ids == EOS), prepend=-1)
        segments = np.arange(block.first, block.first + len(block), dtype=np.int64)
        extra = {"context": events.matched}
        return ScoreBatch(
            segments, segment_events, events.ids, self.vocabulary, events.logprob, events.kind, ends, extra, lossy
        )

    def log_distribution(self, context_ids: NDArray[np.uint32] | list[int]) -> NDArray[np.float64]:
        """Natural log-probabilities of all tokens after a context.

        Args:
            context_ids: token ids before the event, `<s>` included where the sentence begins; only what the order lets
                the model see is used.

        Returns:
            float64 [vocabulary]; -inf for `<s>`, for `<unk>` of a closed vocabulary, and for what has probability zero.

        Raises:
            UsageError: an id is outside the vocabulary.
        """
        self.tables.check_file()
        # Only what the order lets it see: a running context may be long, and is asked about at every event.
        seen = context_ids[max(0, len(context_ids) - self.order + 1) :]
        window = context_window(check_context(seen, len(self.vocabulary)), self.order)
        with np.errstate(divide="ignore"):
            return np.log(self.tables.distribution(window))

    def save(self, path: str | Path) -> None:
        """Writes the model as a folder: config.json, model.safetensors and the tokenizer's files.

        Raises:
            InputError: something else is in the way.
            OutputError: it cannot be written; nothing is left behind.
        """
        config = self.to_dict() | {"fingerprint": self.fingerprint}
        write_model(path, StoredModel(config, self.vocabulary, self.tables, self.checksums), self.tokenizer.files())

    def to_dict(self) -> dict[str, Any]:
        """What is in the model, as config.json tells it."""
        settings = {key: value for key, value in asdict(self.settings).items() if value is not None}
        return {
            "model_type": NGRAM_MODEL_TYPE,
            "order": self.order,
            **settings,
            "vocabulary": "closed" if self.vocabulary.closed else "open",
            "vocabulary_size": len(self.vocabulary),
            "vocabulary_fingerprint": self.vocabulary.fingerprint,
            "types": self.types,
            "tokenizer": self.tokenizer.settings(),
        }

    def with_tables(self, tables: NgramTables, **changes: Any) -> NgramModel:
        """The same model over other tables, with changed settings."""
        model = NgramModel(tables, self.vocabulary, self.tokenizer, replace(self.settings, **changes))
        if tables is self.tables and "checksums" in self.__dict__:
            model.__dict__["checksums"] = self.checksums  # what was read through once need not be again
        return model

    def with_reserved(self, reserved: ReservedPolicy) -> NgramModel:
        """The same model with another meaning of reserved tokens in the text."""
        return self.with_tables(self.tables, reserved=reserved)

    @property
    def unk_probability(self) -> float:
        """Probability of `<unk>` as a unigram: what smoothing leaves to unseen words."""
        return float(self.tables.unigrams[UNK, 0])

    def __deepcopy__(self, memo: dict[int, object]) -> NgramModel:
        return self  # nothing in it ever changes, and its tables may be large

    def __repr__(self) -> str:
        types = " + ".join(f"{n:,}" for n in self.types)
        return f"NgramModel({self.settings.kind}, order {self.order}, {types} n-grams)"


def load_ngram_model(path: str | Path) -> NgramModel:
    """Loads the folder of a model; its tables are memory-mapped.

    Raises:
        ModelFileError: a file is missing, truncated, damaged or inconsistent.
        MissingExtraError: the library of its tokenizer is not installed.
    """
    path = Path(path)
    stored = read_model(path)
    known = {name: _tuples(stored.config[name]) for name in NgramSettings.__dataclass_fields__ if name in stored.config}
    tokenizer = load_tokenizer(stored.config["tokenizer"], path)
    model = NgramModel(stored.tables, stored.vocabulary, tokenizer, NgramSettings(**known))
    model.__dict__["checksums"] = stored.checksums  # just computed, over tables that may be large
    if model.fingerprint != stored.config.get("fingerprint"):
        raise ModelFileError(
            f"{path}: the fingerprint in config.json is not that of the model; a file was exchanged or damaged"
        )
    return model


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
