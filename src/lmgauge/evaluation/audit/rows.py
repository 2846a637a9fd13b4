"""The rows of a segment beside its text, and a model as an audit sees it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import UsageError
from lmgauge.evaluation.options import AuditSettings
from lmgauge.scores import ScoreBatch, iter_segments
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
        if not policy.scores_first_tokens:
            raise UsageError(
                f"{self.label}: the first token of each context has no row, so that no event pays for its bytes; only a "
                "model that scores all of the text can be audited (--first-token)"
            )
        self.running = policy.runs_on
        self.independent = not self.running and model.blocks_are_independent
        self.stated_tolerance = float(model.tolerance)
        self.tolerance = min(self.stated_tolerance, LARGEST_TOLERANCE)
        if not self.tolerance >= 0:
            raise UsageError(f"{self.label}: a tolerance is a difference in nats, 0 or more, not {self.stated_tolerance}")
        # Contexts alone: a model that is asked about many at a time sees no more of the text than one that is asked singly.
        many = model.computes_many("log_distributions") and not self.running
        self.contexts_at_a_time = int(model.contexts_at_a_time) if many else 1
        # Writes the events of a segment as its text, step by step: `SpelledModel.writer`.
        self.writer: Callable[..., Any] | None = model.writer if model.is_spelled else None  # type: ignore[attr-defined]
        self.unk, self.bos, self.eos = (self.vocabulary.id(token) for token in ("<unk>", "<s>", "</s>"))
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
