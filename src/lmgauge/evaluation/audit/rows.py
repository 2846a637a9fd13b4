"""Score tables segment by segment, and a model as an audit sees it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import policy_of
from lmgauge.errors import UsageError
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

LARGEST_TOLERANCE = 0.01
DEFAULT_SUM_TOLERANCE = 1e-6
AGREEMENT_TOLERANCE = 1e-6
_NEEDED = ("vocabulary", "tokenizer", "score", "log_distribution")


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one segment, and its text.

    Attributes:
        segment: its index.
        strings: token strings by id.
        ids: uint32 [n], index into `strings`.
        logprob: float64 [n], nats.
        kind: uint8 [n], index into `scores.KINDS`.
        ends: int64 [n] or empty, where each span ends.
        text: UTF-8, without terminator.
        terminator: bytes of it: 1 for lines, 0 for records and documents.
        offset: events of the text before the segment.
    """

    segment: int
    strings: Sequence[str]
    ids: NDArray[np.uint32]
    logprob: NDArray[np.float64]
    kind: NDArray[np.uint8]
    ends: NDArray[np.int64]
    text: bytes = b""
    terminator: int = 1
    offset: int = 0

    @property
    def source(self) -> bytes:
        """The text with its line end, if it has one."""
        return self.text + b"\n" * self.terminator

    def __len__(self) -> int:
        return len(self.logprob)

    def tokens(self) -> list[str]:
        """The token strings."""
        return [self.strings[i] for i in self.ids.tolist()]


def rows_of(batches: Iterable[ScoreBatch]) -> Iterator[Rows]:
    """The rows of each segment, as the table has them; those that came in two batches are joined."""
    held: Rows | None = None
    for batch in batches:
        strings = batch.strings.tokens
        bounds = np.concatenate(([0], np.cumsum(batch.segment_events))).tolist()
        for i, segment in enumerate(batch.segments.tolist()):
            part = slice(bounds[i], bounds[i + 1])
            ends = batch.ends[part] if len(batch.ends) else batch.ends
            rows = Rows(segment, strings, batch.token_ids[part], batch.logprob[part], batch.kind[part], ends)
            if held is not None and held.segment == segment:
                held = _joined(held, rows)
                continue
            if held is not None:
                yield held
            held = rows
    if held is not None:
        yield held


def _joined(a: Rows, b: Rows) -> Rows:
    ids = b.ids if b.strings is a.strings else b.ids + np.uint32(len(a.strings))
    strings = a.strings if b.strings is a.strings else [*a.strings, *b.strings]
    columns = [np.concatenate((x, y)) for x, y in ((a.logprob, b.logprob), (a.kind, b.kind), (a.ends, b.ends))]
    return Rows(a.segment, strings, np.concatenate((a.ids, ids)), *columns)  # type: ignore[arg-type]


class Subject:
    """A model as an audit sees it: the two methods it must have, and defaults for what it may leave out.

    Args:
        model: any object with `vocabulary`, `tokenizer`, `score(segments)` and `log_distribution(context_ids)`.
        threads: of `score`, where it takes them.
        sum_tolerance: how far probabilities may sum from 1.

    Raises:
        UsageError: the object lacks one of these.
    """

    def __init__(
        self, model: LanguageModel, threads: int | None = None, sum_tolerance: float = DEFAULT_SUM_TOLERANCE
    ) -> None:
        missing = [name for name in _NEEDED if not hasattr(model, name)]
        if missing:
            raise UsageError(f"{type(model).__name__} has no {missing[0]}; an audit needs {', '.join(_NEEDED)}")
        self.model, self.threads, self.sum_tolerance = model, threads, sum_tolerance
        self.vocabulary, self.tokenizer = model.vocabulary, model.tokenizer
        self.label = str(getattr(model, "label", type(model).__name__))
        policy = policy_of(model)
        self.context = str(policy)
        if not policy.scores_first_tokens:
            raise UsageError(
                f"{self.label}: the first token of each context has no row, so that no event pays for its bytes; only a "
                "model that scores all of the text can be audited (--first-token)"
            )
        self.running = policy.runs_on
        self.independent = not self.running and bool(getattr(model, "blocks_are_independent", False))
        self.stated_tolerance = float(getattr(model, "tolerance", 0.0))
        self.tolerance = min(self.stated_tolerance, LARGEST_TOLERANCE)
        if not self.tolerance >= 0:
            raise UsageError(f"{self.label}: a tolerance is a difference in nats, 0 or more, not {self.stated_tolerance}")
        self.unk, self.bos, self.eos = (self.vocabulary.id(token) for token in ("<unk>", "<s>", "</s>"))
        parameters = inspect.signature(model.score).parameters.values()
        self._any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        self._takes = {p.name for p in parameters}

    def score(self, blocks: Iterable[Segments], threads: int | None = None) -> Iterator[ScoreBatch]:
        """The batches of blocks of text, with spans."""
        options: dict[str, Any] = {"spans": True, "threads": threads or self.threads}
        accepted = {name: value for name, value in options.items() if self._any or name in self._takes}
        return iter(self.model.score(blocks, **accepted))

    def score_texts(self, texts: Sequence[bytes], size: int | None = None, threads: int = 1) -> list[Rows | None]:
        """The rows of each text, in blocks of `size` (all in one, if not given); None for a text without any."""
        found: list[Rows | None] = [None] * len(texts)
        for rows in rows_of(self.score(blocks_of(texts, size), threads)):
            if 0 <= rows.segment < len(texts):
                found[rows.segment] = replace(rows, text=texts[rows.segment])
        return found

    def distribution(self, context: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Log-probabilities of all tokens after a context, nats, float64 [vocabulary].

        Raises:
            UsageError: the model gives something of another length.
        """
        found = np.asarray(self.model.log_distribution(context), np.float64)
        if found.shape != (len(self.vocabulary),):
            raise UsageError(
                f"{self.label}: log_distribution gives an array of shape {found.shape}, not ({len(self.vocabulary)},): "
                "a value for each token of the vocabulary"
            )
        return found

    def words(self, ids: NDArray[np.uint32], last: int = 6) -> str:
        """The end of a context, for people."""
        tokens = [self.vocabulary.token(int(i)) for i in ids[-last:]]
        return ("… " if len(ids) > last else "") + " ".join(tokens)

    @property
    def agreement_tolerance(self) -> float:
        """How far what `score` and `log_distribution` say of an event may be apart, in nats."""
        return max(AGREEMENT_TOLERANCE, self.tolerance)

    def differs(self, a: float, b: float) -> bool:
        """Whether two log-probabilities of the same event are more than the tolerance apart."""
        return a != b and not abs(a - b) <= self.tolerance


def blocks_of(texts: Sequence[bytes], size: int | None = None) -> Iterator[Segments]:
    """Texts as lines, so many to a block."""
    size = size or max(1, len(texts))
    for first in range(0, len(texts), size):
        part = texts[first : first + size]
        data = np.frombuffer(b"".join(text + b"\n" for text in part), np.uint8)
        lengths = np.array([len(text) + 1 for text in part], np.int64)
        ends = np.cumsum(lengths)
        yield Segments(data, ends - lengths, ends - 1, 1, first, None, "<audit>", first + 1)
