"""A model as an audit sees it, the rows of a segment beside its text, and the part of a text that is examined closely."""

from __future__ import annotations

import inspect
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import UsageError
from lmgauge.evaluation.audit.checks import counted
from lmgauge.evaluation.options import AuditSettings
from lmgauge.scores import ScoreBatch, iter_segments
from lmgauge.scores.context_policy import EventContexts
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

LARGEST_TOLERANCE = 0.01
AGREEMENT_TOLERANCE = 1e-6
_columns = attrgetter(*(column.name for column in fields(ScoreBatch)))


@dataclass(frozen=True, slots=True)
class Rows(ScoreBatch):
    """The rows of one segment, beside its text."""

    text: bytes = b""
    terminator: int = 1  # its bytes: 1 for lines, 0 for records and documents
    offset: int = 0  # events of the text before the segment
    lead: bytes = b""  # text that is given before the segment, where the two were cut into tokens as one

    @classmethod
    def beside(cls, rows: ScoreBatch, text: bytes, terminator: int = 1, lead: bytes = b"") -> Rows:
        """Return rows of the score table beside their text."""
        # rows: of one segment, [n].
        return cls(*_columns(rows), text=text, terminator=terminator, lead=lead)  # type: ignore[misc]

    @property
    def given(self) -> NDArray[np.uint32]:
        """The tokens of the text given before the segment, where they are known: uint32 [m], index into `strings`."""
        return self.token_ids[:0] if self.before is None else self.before.ids

    def part(self, name: str) -> NDArray[np.float64]:
        """Return an optional column, [n]; empty if the table has none of this name."""
        return self.extra.get(name, np.zeros(0))

    def piece(self, event: int) -> bytes:
        """Return the bytes that an event spans."""
        return self.text[int(self.ends[event - 1]) if event else 0 : int(self.ends[event])]

    @property
    def source(self) -> bytes:
        """Return the text with its line end, if it has one."""
        return self.text + b"\n" * self.terminator


class Subject:
    """A model as an audit sees it: the two methods it must have, and defaults for what it may leave out."""

    def __init__(
        self, model: LanguageModel, threads: int | None = None, sum_tolerance: float = AuditSettings.sum_tolerance
    ) -> None:
        self.model, self.threads, self.sum_tolerance = model, threads, sum_tolerance
        self.vocabulary, self.tokenizer = model.vocabulary, model.tokenizer
        self.label = model.label
        policy = model.context_policy
        self.context = str(policy)
        if policy.leaves_out:
            raise UsageError(
                f"{self.label}: protocol {policy.protocol} leaves tokens out, and no event pays for their bytes; audit the "
                "model without it, and the run with `lmgauge audit RUN`"
            )
        self.served = model.served_by
        if not policy.scores_first_tokens and not self.served:
            raise UsageError(
                f"{self.label}: the first token of each context has no row, so no event pays for its bytes; only a "
                "model that scores all of the text can be audited (--first-token)"
            )
        self.running = policy.runs_on
        self.independent = not self.running and model.blocks_are_independent
        self.stated_tolerance = float(model.tolerance)
        self.tolerance = min(self.stated_tolerance, math.inf if self.served else LARGEST_TOLERANCE)
        if not self.tolerance >= 0:
            raise UsageError(f"{self.label}: a tolerance is a difference in nats, 0 or more, not {self.stated_tolerance}")
        # Contexts alone: a model that is asked about many at a time sees no more of the text than one that is asked singly.
        many = model.computes_many("log_distributions") and not self.running
        self.contexts_at_a_time = int(model.contexts_at_a_time) if many else 1
        # Writes the events of a segment as its text, step by step: `SpelledModel.writer`.
        self.writer: Callable[..., Any] | None = model.writer if model.is_spelled else None  # type: ignore[attr-defined]
        self.unk, self.bos, self.eos = range(3) if self.served else map(self.vocabulary.id, ("<unk>", "<s>", "</s>"))
        parameters = inspect.signature(model.score).parameters.values()
        any_name = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        self._accepted = {"spans", "threads"} if any_name else {p.name for p in parameters}

    def score(self, blocks: Iterable[Segments], threads: int | None = None) -> Iterator[ScoreBatch]:
        """Return the score table of blocks of text, with spans, batch by batch."""
        # threads: number of threads, where `score` takes it.
        options: dict[str, Any] = {"spans": True, "threads": threads or self.threads}
        return iter(self.model.score(blocks, **{name: options[name] for name in options.keys() & self._accepted}))

    def score_texts(self, texts: Sequence[bytes], size: int | None = None, threads: int = 1) -> list[Rows | None]:
        """Return the rows of each text; None for a text without any."""
        scored: list[Rows | None] = [None] * len(texts)
        for rows in iter_segments(self.score(blocks_of(texts, size), threads)):
            if 0 <= rows.segment < len(texts):
                scored[rows.segment] = Rows.beside(rows, texts[rows.segment])
        return scored

    def distribution(self, context: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return the log-probabilities of all tokens after a context, float64 [vocabulary], nats."""
        # context: uint32 [n], token ids before the event, `<s>` first.
        logprob = np.asarray(self.model.log_distribution(context), np.float64)
        return self._whole(logprob, "log_distribution", (len(self.vocabulary),))

    def distributions(self, contexts: Sequence[NDArray[np.uint32]]) -> NDArray[np.float64]:
        """Return the log-probabilities of all tokens after contexts of one length, float64 [k, vocabulary], nats."""
        # A single one is asked about by `log_distribution`, several by the model's method for that: see
        # `contexts_at_a_time`.
        # contexts: of each the token ids before the event, `<s>` first, uint32 [n].
        if len(contexts) == 1:
            return self.distribution(contexts[0])[None]
        asked: Any = self.model
        logprob = np.asarray(asked.log_distributions(np.stack(contexts)), np.float64)
        return self._whole(logprob, "log_distributions", (len(contexts), len(self.vocabulary)))

    def _whole(self, logprob: NDArray[np.float64], method: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
        if logprob.shape != shape:
            raise UsageError(
                f"{self.label}: {method} returns an array of shape {logprob.shape}, not {shape}: a value for each token of "
                "the vocabulary"
            )
        return logprob

    def words(self, ids: NDArray[np.uint32], last: int = 6) -> str:
        """Return the last tokens of a context, uint32 [n], for people to read."""
        tokens = [self.vocabulary.token(int(i)) for i in ids[-last:]]
        return ("… " if len(ids) > last else "") + " ".join(tokens)

    @property
    def agreement_tolerance(self) -> float:
        """Return the largest difference allowed between `score` and `log_distribution` at one event, in nats."""
        return max(AGREEMENT_TOLERANCE, self.tolerance)


def blocks_of(texts: Sequence[bytes], size: int | None = None) -> Iterator[Segments]:
    """Yield texts as blocks of lines."""
    # [len(block) for block in blocks_of([b"the cat", b"sat", b""], 2)] -> [2, 1]
    size = size or max(1, len(texts))
    for first in range(0, len(texts), size):
        part = texts[first : first + size]
        data = np.frombuffer(b"".join(text + b"\n" for text in part), np.uint8)
        lengths = np.array([len(text) + 1 for text in part], np.int64)
        ends = np.cumsum(lengths)
        yield Segments(data, ends - lengths, ends - 1, "<audit>", first + 1, terminator=1, first=first)


def unseen_noun(unit: str) -> str:
    """Return what an unseen token of a unit is called."""
    return "unseen character" if unit == "character" else "unseen word"


NO_WRITER = "rows say that unseen words are spelled, but the model has no method `writer` that says how"


T = TypeVar("T")
_COLUMNS = ("segments", "segment_events", "token_ids", "logprob", "kind", "ends", "lossy", "begins")


@dataclass(frozen=True)
class Extent:
    """Size of a text: segments, events, and bytes with their terminators."""

    segments: int = 0
    events: int = 0
    bytes: int = 0


def sampled(part: int, whole: int, noun: str) -> str:
    """Return in words how much of a whole was examined."""
    if part < whole:
        return f"{part:,} of {counted(whole, noun)}"
    return f"all {counted(part, noun)}" if part > 1 else counted(part, noun)


class Portion:
    """Segments drawn from a text while it passes by: at random, so that they are spread over it, or its beginning."""

    def __init__(self, size: int | None, *, beginning: bool, seed: int) -> None:
        self._size, self._beginning = math.inf if size is None else size, beginning
        self._generator = np.random.default_rng(seed)
        self._drawn: list[tuple[float, Rows]] = []
        self._bytes = 0
        self._largest = math.inf

    def offer(self, rows: Rows) -> None:
        """Take the rows of the next segment, or leave them."""
        key = float(rows.segment) if self._beginning else float(self._generator.random())
        if key >= self._largest:
            return
        columns = {name: getattr(rows, name).copy() for name in _COLUMNS}  # views would keep the batch
        extra = {name: values.copy() for name, values in rows.extra.items()}
        self._drawn.append((key, replace(rows, extra=extra, **columns)))
        self._bytes += len(rows.source)
        if self._bytes > (1 if self._beginning else 4) * self._size:
            self._drawn = self._within(self._size)
            self._bytes = sum(len(drawn.source) for _, drawn in self._drawn)
            self._largest = self._drawn[-1][0]

    def _within(self, size: float) -> list[tuple[float, Rows]]:
        in_order = sorted(self._drawn, key=lambda entry: entry[0])
        ends = np.cumsum([len(rows.source) for _, rows in in_order])
        return in_order[: int(np.searchsorted(ends, size)) + 1]

    def segments(self, size: int | None = None) -> list[Rows]:
        """Return the drawn segments in the order of the text: about `size` bytes of them, all if not given."""
        drawn = self._within(self._size if size is None else size)
        return sorted((rows for _, rows in drawn), key=lambda rows: rows.segment)


def drawn(choices: Sequence[T], wanted: int | None, source: int | np.random.Generator) -> list[T]:
    """Return `wanted` of some choices in their order, drawn without replacement; all if there are no more."""
    # source: of chance; a seed, or a generator.
    if wanted is None or wanted >= len(choices):
        return list(choices)
    places = np.random.default_rng(source).choice(len(choices), wanted, replace=False)
    return [choices[i] for i in sorted(places.tolist())]


class Contexts:
    """The context of each event of some segments: in a stream all that came before, else what its sentence holds."""

    # stream: uint32 [events of the text + 1], all ids of a stream, `<s>` first; None where segments stand alone; impossible:
    # number of the first event of a stream that has probability zero.

    def __init__(
        self,
        rows: Sequence[Rows],
        bos: int,
        whole: Extent,
        stream: NDArray[np.uint32] | None = None,
        impossible: float = math.inf,
    ) -> None:
        self.rows, self.whole = rows, whole
        self._stream, self._impossible = stream, impossible
        counts = [len(part) for part in rows]
        self._starts = np.cumsum([0, *counts])
        nothing = np.zeros(0, np.uint32)
        shown = np.concatenate([nothing, *(part.given for part in rows)])
        given_tokens = shown, np.array([len(part.given) for part in rows], np.int64)
        ids = np.concatenate([nothing, *(part.token_ids for part in rows)])
        self._alone = EventContexts(ids, counts, bos=bos, runs_on=False, given_tokens=given_tokens)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def of(self, index: int, position: int) -> NDArray[np.uint32]:
        """Return the ids before an event, `<s>` first, uint32 [n]: a copy, behind which nothing can be seen."""
        if self._stream is not None:
            return self._stream[: self.rows[index].offset + position + 1].copy()
        return self._alone[int(self._starts[index]) + position].copy()

    def reachable(self, index: int, position: int) -> bool:
        """Return False behind an event of probability zero, where the model never comes."""
        rows = self.rows[index]
        if self._stream is not None:
            return self._impossible >= rows.offset + position
        return not (rows.logprob[:position] == -np.inf).any()

    def drawn(self, wanted: int | None, source: int | np.random.Generator) -> Iterator[tuple[int, int]]:
        """Yield events of the segments: of each the segment (index into `rows`) and the position there, in order."""
        for number in drawn(range(len(self)), wanted, source):
            index = int(np.searchsorted(self._starts, number, side="right")) - 1
            yield index, number - int(self._starts[index])


class Sample:
    """The segments of a text that are examined closely; for a stream also the ids of all its events."""

    # A stream has two draws: contexts can be taken anywhere, but a decoder, or a text that is changed, has to begin where
    # the stream does.

    def __init__(self, subject: Subject, size: int | None, seed: int) -> None:
        self._subject = subject
        self._spread = Portion(size, beginning=False, seed=seed)
        self._first = Portion(size, beginning=True, seed=seed) if subject.running else self._spread
        self._stream = array("I", [subject.bos])
        # The first event of a stream that has probability zero, and one with an id outside the vocabulary.
        self._impossible = self._foreign = math.inf
        self.whole = Extent()

    def offer(self, rows: Rows) -> None:
        """Take the rows of the next segment of the text, or leave them."""
        whole = self.whole
        rows = replace(rows, offset=whole.events)
        self.whole = Extent(whole.segments + 1, whole.events + len(rows), whole.bytes + len(rows.source))
        if self._subject.running:
            self._stream.frombytes(rows.token_ids.astype(np.uint32).tobytes())
            for at in np.flatnonzero(rows.logprob == -np.inf)[:1].tolist():
                self._impossible = min(self._impossible, rows.offset + at)
            if not self._is_known(rows):
                self._foreign = min(self._foreign, rows.offset)
            self._first.offer(rows)
        self._spread.offer(rows)

    def _is_known(self, rows: Rows) -> bool:
        return bool((rows.token_ids < len(self._subject.vocabulary)).all())

    def segments(self, size: int | None = None) -> list[Rows]:
        """Return segments of about `size` bytes in all; of a stream its beginning."""
        return self._usable(self._first.segments(size))

    def spread(self) -> list[Rows]:
        """Return segments drawn from the whole text."""
        return self._usable(self._spread.segments())

    def _usable(self, rows: list[Rows]) -> list[Rows]:
        # Leave out segments with ids outside the vocabulary, in a stream also those behind them: they failed already.
        return [part for part in rows if part.offset < self._foreign and self._is_known(part)]

    def contexts(self, rows: list[Rows]) -> Contexts:
        """Return the contexts of the events of segments."""
        stream = np.frombuffer(self._stream, np.uint32) if self._subject.running else None
        return Contexts(rows, self._subject.bos, self.whole, stream, self._impossible)
