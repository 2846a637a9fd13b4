"""An n-gram model: tables, vocabulary, tokenizer and settings, behind the protocol of all language models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import SMOOTHINGS
from lmgauge.base.errors import UsageError
from lmgauge.base.files import digest
from lmgauge.base.plugins import Plugins
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.models.custom import alone, targets_only
from lmgauge.models.ngram.decoder_state import StepsWords
from lmgauge.models.ngram.kenlm.form import KenlmForm
from lmgauge.models.ngram.settings import NgramSettings, TrainingRecord
from lmgauge.models.ngram.storage import NgramConfig, is_ngram_folder, read_model, write_model
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.models.protocol import NGRAM_MODEL_TYPE, check_context, checked
from lmgauge.models.scored_text import ScoresStrings
from lmgauge.models.segment_scores import SegmentTotals, TotalsBuffer
from lmgauge.scores import ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.text.encoding import ReservedPolicy, encode
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import load_tokenizer
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, EOS, UNK, Vocabulary

if TYPE_CHECKING:
    from lmgauge.models.ngram.distributions import RowBlock
    from lmgauge.scores.distributions.blocks import Events

EXPORTERS = Plugins(
    "exporters",
    """
    .arpa = lmgauge.models.ngram.arpa_writer:write_arpa
    .arpa.gz = lmgauge.models.ngram.arpa_writer:write_arpa
    .lm = lmgauge.models.ngram.arpa_writer:write_arpa
    .lm.gz = lmgauge.models.ngram.arpa_writer:write_arpa
    .binary = lmgauge.models.ngram.kenlm.writer:write_kenlm
    .bin = lmgauge.models.ngram.kenlm.writer:write_kenlm
    .klm = lmgauge.models.ngram.kenlm.writer:write_kenlm
    """,
)
"""What writes the file of an n-gram model, `write(model, path)`, by the ending of the file."""
_CONTEXTS = "contexts"
T = TypeVar("T")


class NgramModel(ScoresStrings, StepsWords):
    """A trained n-gram model.

    Sources: Katz (1987); Chen & Goodman (1998), who compare the smoothings.

    Attributes:
        tables: probabilities and back-off weights.
        vocabulary: token strings and ids.
        tokenizer: how text becomes tokens.
        settings: the decisions behind it.
        record: what training found out: discounts, facts about the text, notes.

    Example:
        >>> import lmgauge
        >>> model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"]), order=2)
        >>> model.label, model.order, model.types, len(model.vocabulary)
        ('wb2', 2, [6, 6], 7)
        >>> model.vocabulary.tokens
        ['<unk>', '<s>', '</s>', 'the', 'cat', 'sat', 'dog']
    """

    def __init__(
        self,
        tables: NgramTables,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer,
        settings: NgramSettings,
        record: TrainingRecord | None = None,
    ) -> None:
        self.tables, self.vocabulary, self.tokenizer, self.settings = tables, vocabulary, tokenizer, settings
        self.record = record or TrainingRecord()

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return self.tables.order

    @property
    def label(self) -> str:
        """Short name for signatures, e.g. `mkn5`."""
        kind = self.settings.kind
        return f"{SMOOTHINGS[kind][0] if kind in SMOOTHINGS else kind}{self.order}"

    @property
    def context_policy(self) -> ContextPolicy:
        """What each prediction sees: its sentence, or the running text; and whether the ends of lines are events."""
        return ContextPolicy(unit=self.settings.context, end="eos" if self.settings.eos else "none")

    @property
    def reserved(self) -> ReservedPolicy:
        """What a reserved token in the text means."""
        return self.settings.reserved

    @property
    def is_of_another_program(self) -> bool:
        """Whether it was read from a file that does not say how text is cut into its words: of ARPA's form, or KenLM's."""
        return self.settings.kind in ("arpa", "kenlm")

    @property
    def discounts(self) -> list[tuple[float, ...]]:
        """D(1), D(2), ... of each order from 1; the last holds for all higher counts."""
        return [values[1:] for values in self.record.discounts]

    @cached_property
    def types(self) -> list[int]:
        """Number of n-grams of each order; order 1 counts every token of the vocabulary that can be predicted."""
        return [self.vocabulary.event_count - (not self.settings.eos), *self.tables.types()[1:]]

    @cached_property
    def checksums(self) -> list[int]:
        """A 64-bit checksum of each table of order 2, 3, ..."""
        return [table.check()[0] for table in self.tables.tables]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all that determines the probabilities."""
        settings: dict[str, object] = {
            "context": self.settings.context,
            "reserved": self.settings.reserved,
            "tokenizer": self.tokenizer.settings(),
        }
        if not self.settings.eos:
            settings["eos"] = False
        return digest(settings, self.vocabulary.ids_fingerprint, *self._digested_tables())

    def _digested_tables(self) -> tuple[object, ...]:
        return self.tables.unigrams.tobytes(), [self.checksums, self.tables.full_context, self.tables.unseen]

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield one batch of the score table for each block of segments, in order; log-probabilities are in nats.

        Args:
            segments: blocks of text, e.g. a `Corpus`.
            spans: True fills the `ends` column, int64 [events], in bytes.
            threads: blocks scored at a time; the result does not depend on it.

        Raises:
            InputError: the text contains a reserved token that is refused.
            ModelFileError: the model's file became shorter while in use.
            UsageError: a string was given.
        """
        if isinstance(segments, str):
            raise UsageError("score takes blocks of text, such as a Corpus; score_text takes a string")
        return (batch for batch, _ in self._score_blocks(segments, spans=spans, threads=threads))

    def distributions(
        self, segments: Iterable[Segments], *, events: Events | None = None, spans: bool = True, threads: int | None = None
    ) -> Iterator[RowBlock]:
        """Yield the distributions at the events of each block, for the engine in `lmgauge.scores.distributions`.

        Args:
            segments: blocks of text.
            events: which events to look at, by number, ascending; all if None.
            spans: whether the rows get byte spans.
            threads: blocks scored at a time; does not change results.

        Raises:
            InputError: the text contains a reserved token that is refused.
            ModelFileError: the model's file became shorter while in use.

        Example:
            >>> import lmgauge
            >>> corpus = lmgauge.Corpus.from_strings(["a b", "a"])
            >>> model = lmgauge.train("laplace", corpus, order=1)  # (c + 1) / (5 + 4): a and </s> 3/9, b 2/9, <unk> 1/9
            >>> [tile.p[0].round(3).tolist() for block in model.distributions(corpus) for tile in block.tiles()]
            [[0.111, 0.0, 0.333, 0.333, 0.222]]
        """
        from lmgauge.models.ngram.distributions import NgramBlock, RowBlock
        from lmgauge.scores.distributions.blocks import rows_among  # only for those who ask: this package is large

        whole, seen = self.tables.whole(eos=self.settings.eos), 0
        block = NgramBlock if self.tables.closed_forms else RowBlock
        for batch, contexts in self._score_blocks(segments, spans=spans, threads=threads, contexts=True):
            rows = rows_among(events, seen, len(batch))
            seen += len(batch)
            yield block(whole, batch.of_rows(rows), contexts[rows])

    def _score_blocks(
        self, segments: Iterable[Segments], *, spans: bool, threads: int | None, contexts: bool = False
    ) -> Iterator[tuple[ScoreBatch, NDArray[np.uint32]]]:
        # Rows of each block, and if asked for, the slots of their contexts, uint32 [n, order - 1].
        if self.settings.context == "stream":
            return self._score_stream(segments, spans, contexts)
        nothing = np.zeros(0, np.uint32)
        return map_in_order(
            lambda block: self._score_block(block, nothing, spans, contexts)[:2], segments, thread_count(threads)
        )

    @property
    def blocks_are_independent(self) -> bool:
        """True if `score_block` may be called for blocks in any order, as contexts do not run across them."""
        return self.settings.context == "sentence"

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block whose segments are contexts of their own; see `score`.

        Args:
            block: some segments of a text.
            spans: True fills the `ends` column, int64 [events], in bytes.

        Raises:
            InputError: the text contains a reserved token that is refused.

        Example:
            >>> import lmgauge
            >>> corpus = lmgauge.Corpus.from_strings(["a b", "a"])
            >>> model = lmgauge.train("mle", corpus, order=1)  # a twice, b once, </s> twice
            >>> [round(float(x), 4) for block in corpus for x in model.score_block(block).logprob]
            [-0.9163, -1.6094, -0.9163, -0.9163, -0.9163]
        """
        return self._score_block(block, np.zeros(0, np.uint32), spans)[0]

    def sum_block(self, block: Segments) -> SegmentTotals:
        """Return the totals of each segment of a block, those that `totals_of` has for the rows of `score_block`.

        Args:
            block: some segments of a text, contexts of their own.

        Raises:
            InputError: the text contains a reserved token that is refused.
            ModelFileError: the model's file became shorter while in use, or a probability is above one.

        Example:
            >>> import lmgauge
            >>> model = lmgauge.train("mle", lmgauge.Corpus.from_strings(["a b", "a"]), order=1)  # a, </s> 2/5, b 1/5
            >>> totals = model.sum_block(next(iter(lmgauge.Corpus.from_strings(["b a"]))))
            >>> totals.nats.round(4).tolist(), totals.events.tolist(), totals.ends.tolist()
            ([-3.442], [3], [1])
        """
        if block.given_starts is not None:
            return super().sum_block(block)
        self.tables.check_file()  # before the vocabulary is looked at: it is mapped, too
        settings, buffer = self.settings, TotalsBuffer(len(block))
        encoded = encode(block, self.tokenizer, self.vocabulary, bos=True, eos=settings.eos, reserved=settings.reserved)
        self.tables.sum(encoded.ids, buffer.arrays)
        return buffer.totals()

    def _score_stream(
        self, segments: Iterable[Segments], spans: bool, contexts: bool
    ) -> Iterator[tuple[ScoreBatch, NDArray[np.uint32]]]:
        context = np.array([BOS], np.uint32)
        for block in alone(segments, self.label):
            batch, slots, ids = self._score_block(block, context, spans, contexts)
            yield batch, slots
            context = ids[-max(1, self.order - 1) :].copy()

    def _score_block(
        self, block: Segments, context: NDArray[np.uint32], spans: bool, contexts: bool = False
    ) -> tuple[ScoreBatch, NDArray[np.uint32], NDArray[np.uint32]]:
        # Score a block after `context`, or where that is empty, each segment after `<s>`.
        self.tables.check_file()  # before the vocabulary is looked at: it is mapped, too
        bos = not len(context)
        encoded = encode(block, self.tokenizer, self.vocabulary, bos=bos, reserved=self.settings.reserved, spans=spans)
        ids, ends = encoded.ids, encoded.span_ends
        segment_events = np.diff(np.flatnonzero(ids == EOS), prepend=-1) - int(bos)
        if spans:
            ends = ends[ids != BOS]
        if not self.settings.eos:
            segment_events -= 1
            if spans:
                ends = _spans_without_eos(ends[ids[ids != BOS] != EOS], segment_events, block)
            ids = ids[ids != EOS]
        if len(context):
            ids = np.concatenate((context, ids))
        events = self.tables.score(ids, skip=len(context), contexts=contexts)
        segments = np.arange(block.first, block.first + len(block), dtype=np.int64)
        batch = ScoreBatch(
            segments, segment_events, events.ids, self.vocabulary, events.logprob, events.kind, ends,
            {"context": events.matched}, encoded.lossy,
        )  # fmt: skip
        if block.given_starts is None:
            return batch, events.contexts, ids
        if contexts:  # they go with their rows
            batch = replace(batch, extra={**batch.extra, _CONTEXTS: events.contexts})
        batch = targets_only(batch, encoded, block)
        extra = dict(batch.extra)
        return replace(batch, extra=extra), extra.pop(_CONTEXTS, events.contexts), ids

    def log_distribution(self, context_ids: NDArray[np.uint32] | list[int]) -> NDArray[np.float64]:
        """Return natural log-probabilities of all tokens after a context.

        Args:
            context_ids: uint32 [n], ids before the event, `<s>` included where the sentence begins; only the last
                order - 1 are used.

        Returns:
            float64 [vocabulary], nats; -inf for `<s>`, for `<unk>` of a closed vocabulary, for `</s>` of a model without
            it, and for whatever has probability zero.

        Raises:
            UsageError: an id is outside the vocabulary.

        Example:
            >>> import lmgauge
            >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
            >>> after_a = model.log_distribution(model.vocabulary.ids(["a"]))
            >>> round(float(np.exp(after_a[model.vocabulary.id("b")])), 4)  # (1 + 1) / (2 + 4)
            0.3333
        """
        self.tables.check_file()
        # The last ids only: a running context may be long, and comes with every event.
        seen = context_ids[max(0, len(context_ids) - self.order + 1) :]
        context = check_context(seen, len(self.vocabulary))
        probability = self.tables.whole(eos=self.settings.eos).after(context)
        with np.errstate(divide="ignore"):
            logprob: NDArray[np.float64] = np.log(probability)
        return logprob

    may_replace = staticmethod(is_ngram_folder)
    """Tells whether `save` may put the folder of a model in the place of another folder."""

    def save(self, path: str | Path, *, trie: bool = False, quantize: Sequence[int] | None = None) -> None:
        """Write the model as a folder: config.json, model.safetensors and the tokenizer's files.

        A name that ends in .arpa or .lm, plain or with .gz, writes an ARPA file instead; one that ends in .binary, .bin or
        .klm a binary file of KenLM.

        Args:
            path: the folder, or the file.
            trie: of a binary file: a trie, which is smaller, instead of a probing table, which is faster.
            quantize: of a trie: bits of a probability and of a back-off weight, such as (8, 8); None: both exact.

        Raises:
            InputError: the path exists and is not a model folder.
            OutputError: it cannot be written; nothing is left behind.
            UsageError: the model has no ARPA form, or what is for binary files was asked of another.
        """
        form = KenlmForm(trie, quantize)
        form.check_name(path)
        name = Path(path).name
        ending = next(filter(name.endswith, EXPORTERS.ours), Path(name).suffix)
        write = EXPORTERS.find(ending) if ending else None
        if write is None:
            write_model(path, self)
        else:
            write(self, path, *([] if form == KenlmForm() else [form]))

    def to_dict(self) -> dict[str, Any]:
        """Return what is in the model, as config.json has it."""
        return {
            "model_type": NGRAM_MODEL_TYPE,
            "order": self.order,
            **self.settings.to_dict(),
            **asdict(self.record),
            "vocabulary": "closed" if self.vocabulary.closed else "open",
            "vocabulary_size": len(self.vocabulary),
            "vocabulary_fingerprint": self.vocabulary.ids_fingerprint,
            "words_fingerprint": self.vocabulary.fingerprint,
            "types": self.types,
            "tokenizer": self.tokenizer.settings(),
        }

    def listed(self) -> NgramModel:
        """Return the model with n-grams that can be listed, which the files of some other programs only look up: itself.

        Example:
            >>> import lmgauge
            >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]))
            >>> model.listed() is model
            True
        """
        return self

    def with_reserved(self, reserved: ReservedPolicy) -> NgramModel:
        """Return the same model with another meaning of reserved tokens in the text.

        Example:
            >>> import lmgauge
            >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]))
            >>> model.with_reserved("unk").settings.reserved
            'unk'
        """
        return self._changed(self.tokenizer, replace(self.settings, reserved=reserved))

    def with_tokenizer(self, tokenizer: Tokenizer) -> NgramModel:
        """Return the same model for text that another tokenizer cuts into tokens of its vocabulary."""
        return self._changed(tokenizer, self.settings)

    def _changed(self, tokenizer: Tokenizer, settings: NgramSettings) -> NgramModel:
        model = type(self)(self.tables, self.vocabulary, tokenizer, settings, self.record)
        for name in ("checksums", "types"):  # these took a pass over tables that may be large
            if name in self.__dict__:
                model.__dict__[name] = self.__dict__[name]
        return model.made_from(self, type(self)._changed, tokenizer, settings)

    @property
    def unk_probability(self) -> float:
        """Probability of `<unk>` as a unigram: what smoothing leaves to unseen words together."""
        return float(self.tables.unigrams[UNK, 0])

    def __deepcopy__(self, memo: dict[int, object]) -> NgramModel:
        return self  # it never changes, and its tables may be large

    def __repr__(self) -> str:
        types = " + ".join(f"{n:,}" for n in self.types)
        return f"NgramModel({self.settings.kind}, order {self.order}, {types} n-grams)"


def _spans_without_eos(ends: NDArray[np.int64], segment_events: NDArray[np.int64], block: Segments) -> NDArray[np.int64]:
    # Span ends, int64 [events], with what follows the last token of a segment, bytes of no other event, in it.
    some = segment_events > 0
    ends[(np.cumsum(segment_events) - 1)[some]] = (block.ends - block.starts)[some]
    return ends


def load_ngram_model(path: str | Path, *, just_written: bool = False) -> NgramModel:
    """Load the folder of a model; its tables are memory-mapped."""
    path = Path(path)
    stored = read_model(path, just_written=just_written)
    config = stored.config
    tokenizer = load_tokenizer(config.tokenizer, path)
    settings, record = _part(NgramSettings, config), _part(TrainingRecord, config)
    model = NgramModel(stored.tables, stored.vocabulary, tokenizer, settings, record)
    model.loaded_by = load_ngram_model, (path.absolute(),)
    model.__dict__ |= {"checksums": [int(checksum, 16) for checksum in config.checksums], "types": config.types}
    if not stored.trusted or tokenizer.settings() != config.tokenizer:
        checked(model, path, config.fingerprint)
        stored.remember()
    model.__dict__["fingerprint"] = config.fingerprint
    model.vocabulary.__dict__["ids_fingerprint"] = config.vocabulary_fingerprint
    if config.words_fingerprint is not None:
        model.vocabulary.__dict__["fingerprint"] = config.words_fingerprint
    return model


def _part(kind: type[T], config: NgramConfig) -> T:
    return kind(**{field.name: getattr(config, field.name) for field in fields(kind)})  # type: ignore[arg-type]
