"""A model of words around which unseen words are spelled and white space is predicted: every text has a probability."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import WORD_UNITS
from lmgauge.base.decoding import Meta
from lmgauge.base.display import Displayable
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.base.files import digest
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.models.combined.spelling.incremental_decoding import EventWriter
from lmgauge.models.combined.spelling.speller import Speller, Spelling, UnseenCharacters
from lmgauge.models.combined.spelling.storage import CHARACTERS, FORMAT_VERSION, KIND
from lmgauge.models.combined.spelling.whitespace_model import SeparatorModel, SeparatorScores, StoredSeparators
from lmgauge.models.custom import WrappedModel
from lmgauge.models.ngram.model import load_ngram_model
from lmgauge.models.protocol import OF_TEXT, SPELLING_FOLDER, LanguageModel, describing, inside, read_own_config
from lmgauge.scores import OOV, SEPARATOR, SPELLED, SPELLING, ScoreBatch, unescaped
from lmgauge.text.encoding import ReservedPolicy
from lmgauge.text.normalizers import NormalizingTokenizer
from lmgauge.text.segments import Segments
from lmgauge.text.vocabulary import SPECIAL_TOKENS

if TYPE_CHECKING:
    from lmgauge.scores.distributions.blocks import BlockDistributions, Events


class SpelledModel(Displayable, WrappedModel):
    """A model of words or characters whose unseen ones are spelled, and white space between words predicted.

    Its rows are those of the model inside, one a word; `logprob` is the whole cost of a word with the white space before it,
    and the columns `spelling` and `separator` say what of it is spelled letters and white space.

    Attributes:
        inner: the model of words or characters; its `<unk>` is what is spelled.
        speller: how unseen words are spelled; None for a model of characters, whose unseen characters are shared out.
        separators: how white space is predicted; None for a model of characters.

    Example:
        >>> import lmgauge
        >>> model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["a b", "ab c"]), order=2, vocabulary="spelled")
        >>> scored = model.score_text("a  cab")
        >>> scored.kinds, scored.spans
        (('token', 'spelled', 'eos'), ((0, 1), (1, 6), (6, 6)))
    """

    is_spelled = True

    def __init__(
        self,
        inner: LanguageModel,
        speller: Speller | None,
        separators: SeparatorModel | None,
        *,
        known_mass: float | None = None,
    ) -> None:
        super().__init__(inner)
        refuse_unspellable(self.inner)
        self.speller, self.separators = speller, separators
        self._known_mass = known_mass

    @cached_property
    def spelling(self) -> Spelling:
        """The speller without the words that the model knows.

        Raises:
            UsageError: it is a model of characters.
        """
        if self.speller is None:
            raise UsageError(f"{self.label}: a model of characters shares out its unseen ones, and spells no words")
        return Spelling(self.speller, self.vocabulary, self._known_mass)

    @cached_property
    def unseen_characters(self) -> UnseenCharacters:
        """What the `<unk>` of a model of characters is shared out among."""
        return UnseenCharacters([token for token in self.vocabulary.tokens[len(SPECIAL_TOKENS) :] if len(token) == 1], "\0")

    @property
    def label(self) -> str:
        """Short name for signatures, e.g. `kn5+spelled`."""
        return f"{self.inner.label}+spelled"

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the model inside and all that spelling and separators are made of."""
        parts: list[Any] = ["spelled", self.inner.fingerprint, self.speller.fingerprint if self.speller else ""]
        if self.separators is not None:
            parts.append(self.separators.to_dict())
        return digest(parts)

    @property
    def reserved(self) -> ReservedPolicy | None:
        """What a reserved token in the text means to the model inside; None where its kind has no such choice."""
        return self.inner.reserved

    def takes(self, option: str) -> bool:
        return option not in OF_TEXT and self.inner.takes(option)

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_INNER:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.__dict__["inner"], name)

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield one batch of the score table for each block of segments, in order; `logprob` is float64 [rows], nats.

        Args:
            segments: blocks of text, e.g. a `Corpus`.
            spans: not used: they are always filled, as words are spelled from them.
            threads: how many; does not change scores.

        Raises:
            InputError: the text cannot be scored.
        """
        if isinstance(segments, str):
            raise UsageError("score takes blocks of text, such as a Corpus; score_text takes a string")
        if self.blocks_are_independent:
            return map_in_order(self.score_block, segments, thread_count(threads))
        blocks, scored = tee(segments)
        batches = self.inner.score(scored, spans=True, threads=threads)
        return (self.spelled(block, batch) for block, batch in zip(blocks, batches, strict=True))

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block whose segments are contexts of their own; `logprob` is float64 [rows], nats.

        Args:
            block: some segments of a text.
            spans: not used, see `score`.

        Raises:
            InputError: the text cannot be scored.
        """
        return self.spelled(block, self.inner.score_block(block, spans=True))

    def spelled(self, block: Segments, batch: ScoreBatch) -> ScoreBatch:
        """Return rows of the model inside with what letters and white space cost.

        Args:
            block: the text.
            batch: rows as the model inside scores them, with spans.

        Returns:
            The same rows, with `spelling` and, of words, `separator`, float64 [rows], nats; nothing of the text is lost.
        """
        spelling = np.zeros(len(batch))
        parts = {SPELLING: spelling}
        if self.separators is None:
            unseen = np.flatnonzero(batch.kind == OOV)
            spelling[unseen] = [self.unseen_characters.logprob(text) for text in _characters(block, batch, unseen)]
            logprob = batch.logprob.copy()
        else:
            separators = self.separators.score(block, batch)
            unseen = separators.unseen
            spelling[unseen] = self.spelling.logprobs(self._words(block, batch, separators))
            parts[SEPARATOR] = separators.logprobs
            logprob = batch.logprob + separators.logprobs
        logprob[unseen] += spelling[unseen]
        kind = batch.kind.copy()
        kind[unseen] = SPELLED
        return replace(batch, logprob=logprob, kind=kind, extra={**batch.extra, **parts}, lossy=np.zeros_like(batch.lossy))

    def _words(self, block: Segments, batch: ScoreBatch, separators: SeparatorScores) -> Segments:
        # Words that are spelled: one that begins in the text given before its segment is spelled whole.
        words = separators.words
        if batch.before is not None:
            owner = batch.row_segments()[separators.unseen] - block.first
            ends = np.cumsum(batch.segment_events)
            crossing = np.isin(separators.unseen, (ends - batch.segment_events)[batch.before.crossing])
            for i in np.flatnonzero(crossing).tolist():
                words.starts[i] = self._begin_across(block, int(owner[i]))
        return words

    def _begin_across(self, block: Segments, i: int) -> int:
        # Where the token begins that reaches from the text given before a segment into it.
        assert block.given_starts is not None
        begin = int(block.given_starts[i])
        bounds = np.array([begin]), block.ends[i : i + 1]
        tokens = self.tokenizer.tokenize(Segments(block.data, *bounds, block.source))
        return int(tokens.starts[np.searchsorted(begin + tokens.span_ends, block.starts[i], side="right")])

    def distributions(
        self, segments: Iterable[Segments], *, events: Events | None = None, spans: bool = True, threads: int | None = None
    ) -> Iterator[BlockDistributions]:
        """Yield the distributions at the events of each block, for the engine in `lmgauge.scores.distributions`.

        They are those of the model inside, in which `<unk>` stands for all unseen words; the rows are spelled.

        Args:
            segments: blocks of text, e.g. a `Corpus`.
            events: int64 [events], numbers of those to look at, ascending; all if None.
            spans: not used: rows always have byte spans.
            threads: how many to compute with.

        Raises:
            InputError: the text cannot be scored.
            UsageError: the model inside gives no distributions.

        Example:
            >>> import lmgauge
            >>> text = lmgauge.Corpus.from_strings(["a b", "ab c"])
            >>> model = lmgauge.train("witten-bell", text, order=1, vocabulary="spelled")
            >>> [tile.p.shape for block in model.distributions(text) for tile in block.tiles()]
            [(6, 7)]
        """
        # Imported only for those who ask.
        from lmgauge.scores.distributions.blocks import WrappedDistributions, distributions_of, rows_among

        blocks, copies, scored = tee(segments, 3)
        inside = distributions_of(self.inner, copies, events=events, spans=True, threads=threads)
        if events is None:
            for block, part in zip(blocks, inside, strict=True):
                yield WrappedDistributions(part, partial(self.spelled, block))
            return
        seen = 0
        # What is spelled depends on the words around it, so that all rows are needed.
        for part, batch in zip(inside, self.score(scored, threads=threads), strict=True):
            rows = batch.of_rows(rows_among(events, seen, len(batch)))
            seen += len(batch)
            yield WrappedDistributions(part, partial(_as_scored, rows))

    def writer(self, text: bytes = b"", begin: int | None = None) -> EventWriter:
        """Return what writes the events of a segment as its text, step by step, e.g. for a coder or to draw text.

        Args:
            text: UTF-8 that the segment has already.
            begin: where its last event begins in it, bytes, with the white space before it; None if it has no event.
        """
        return EventWriter(self, text, begin)

    def text_of(self, token: int) -> str:
        """Return the text that a known token stands for.

        Args:
            token: id.

        Raises:
            InputError: the id is outside the vocabulary.
        """
        string = self.vocabulary.token(token)
        return unescaped(string) if self.reserved in ("escape", None) else string

    def save(self, path: str | Path) -> None:
        """Write the model: the folder of the model inside, with a folder `spelling` in it.

        Args:
            path: the folder.

        Raises:
            InputError: something else is in the way.
            OutputError: it cannot be written; nothing is left behind.
            UsageError: the model inside cannot be saved as a folder.
        """
        from lmgauge.models.combined.spelling.storage import save_spelled

        save_spelled(self, path)

    def with_reserved(self, reserved: ReservedPolicy) -> SpelledModel:
        """Return the same model with another meaning of reserved tokens in the text.

        Args:
            reserved: refuse, escape or unk (a literal `<unk>` is then spelled).
        """
        return self.around(self.inner.with_reserved(reserved))

    def around(self, inner: LanguageModel) -> SpelledModel:
        """Return another model with this speller.

        Args:
            inner: of the same tokenizer and vocabulary, as a pruned model has.

        Raises:
            UsageError: it has others.
        """
        mine = (self.tokenizer.fingerprint, self.vocabulary.ids_fingerprint)
        if (inner.tokenizer.fingerprint, inner.vocabulary.ids_fingerprint) != mine:
            raise UsageError(f"{inner.label}: its words are not those that {self.label} knows; learn its spelling anew")
        return SpelledModel(inner, self.speller, self.separators, known_mass=self._known_mass)

    def to_dict(self) -> dict[str, Any]:
        """Return what is in the model, as plain values."""
        own = {"vocabulary": "spelled", "label": self.label, "fingerprint": self.fingerprint}
        return {**self.inner.to_dict(), **own, **self.learned()}

    def learned(self) -> dict[str, Any]:
        """Return what was learned of a text: nothing for a model of characters, else how words and white space are made.

        Returns:
            Under `speller` what `Spelling.summary` returns, under `separators` what `SeparatorModel.summary` does.
        """
        if self.speller is None or self.separators is None:
            return {}
        return {"speller": self.spelling.summary(), "separators": self.separators.summary()}

    @property
    def known_count(self) -> int:
        """How many words, or characters, the model inside knows."""
        return len(self.vocabulary) - len(SPECIAL_TOKENS)

    def _in_brief(self) -> str:
        unit = self.tokenizer.unit
        return f"{self.label}: {self.known_count:,} known {unit}s, all others are spelled"


def _as_scored(scored: ScoreBatch, rows: ScoreBatch) -> ScoreBatch:
    return replace(scored, extra={**rows.extra, **scored.extra})


_OF_TRAINING = ("settings", "order", "record", "types")
_OF_MIXTURES = ("components", "weights", "estimation")
_OF_INNER = frozenset((*_OF_TRAINING, *_OF_MIXTURES))


def _characters(block: Segments, batch: ScoreBatch, rows: NDArray[np.int64]) -> list[str]:
    at = block.starts[batch.row_segments()[rows] - block.first]
    begins, ends = at + batch.starts()[rows], at + batch.ends[rows]
    characters = Segments(block.data, begins, ends, block.source)
    return [characters.text(i).decode() for i in range(len(rows))]


def refuse_unspellable(model: LanguageModel) -> None:
    """Refuse a model that no speller can make exact."""
    policy, problem = model.context_policy, ""
    if model.is_spelled:
        problem = "its unseen words are spelled already"
    elif model.tokenizer.unit not in ("word", "character"):
        problem = f"its tokens are {model.tokenizer.unit}s: a speller is for models of words or characters"
    elif model.vocabulary.closed:
        problem = "its vocabulary is closed, so unseen words have no probability to share; train it with an open one"
    elif isinstance(model.tokenizer, NormalizingTokenizer):
        problem = f"its normalizer {model.tokenizer.normalizer} changes the text, which no speller can give back"
    elif model.tokenizer.name.partition(":")[0] not in (*WORD_UNITS, "character"):
        problem = (
            f"whether the words of its tokenizer {model.tokenizer.name} are bytes of the text is not known: a speller "
            f"is for {', '.join(WORD_UNITS)} and character"
        )
    elif policy.line_ends != "event" or not policy.scores_first_tokens:
        problem = "it does not predict the ends of lines, so a text has no probability; train it with </s>"
        if model.options is not None:
            problem = (
                "as it was told to score, it does not predict all tokens and the ends of lines, so a text has no "
                "probability; leave out end, first-token and protocol"
            )
    if problem:
        raise UsageError(f"{model.label}: {problem}")


def parted(model: LanguageModel) -> tuple[LanguageModel, Callable[[LanguageModel], LanguageModel]]:
    """Return the model inside a spelled one, and what puts its speller around another; of any other model, itself."""
    return (model.inner, model.around) if isinstance(model, SpelledModel) else (model, lambda other: other)


_AGAIN = "spell the model again (`lmgauge spell MODEL --train TEXT --replace`)"


@dataclass
class _Config:
    tokenizer: str
    vocabulary_fingerprint: str
    characters: str | None
    separators: StoredSeparators | None
    # a number below one, as Python's `float.hex` writes it
    known_mass: Annotated[str, Meta(pattern=r"^0x(0\.0p\+0|[01]\.[0-9a-f]{13}p-[1-9][0-9]{0,3})$")] | None


def load_spelling(path: Path, inner: LanguageModel) -> SpelledModel:
    """Return a model with the speller that its folder holds."""
    folder = inside(path, SPELLING_FOLDER)
    if not folder.is_dir():
        raise ModelFileError(f"{folder}: is not a folder, as the speller of a model is; remove it, and {_AGAIN}")
    config = read_own_config(folder, _Config, KIND, FORMAT_VERSION, _AGAIN)
    if config.vocabulary_fingerprint != inner.vocabulary.ids_fingerprint:
        raise ModelFileError(f"{folder}: was made for another model, one with another vocabulary; {_AGAIN}")
    if config.tokenizer != inner.tokenizer.fingerprint:
        raise ModelFileError(
            f"{folder}: was made for another tokenizer than {inner.tokenizer.name}; load the model as it was spelled, or "
            f"{_AGAIN}"
        )
    if inner.options is not None:
        refuse_unspellable(inner)  # not the folder is at fault, but how it was told to score
    with describing(folder, "a speller of this model"):
        return _assembled(folder, config, inner)


def _assembled(folder: Path, config: _Config, inner: LanguageModel) -> SpelledModel:
    if inner.tokenizer.unit == "character":
        if config.characters is not None:
            raise InputError("it is one of words")
        return SpelledModel(inner, None, None)
    if config.characters is None or config.separators is None or config.known_mass is None:
        raise InputError("it is one of characters, or not whole")
    characters = load_ngram_model(inside(folder, CHARACTERS))
    if characters.fingerprint != config.characters:
        raise ModelFileError(f"{folder / CHARACTERS}: is not the model of characters it was; copy the whole folder again")
    settings, vocabulary = characters.settings, characters.vocabulary
    ends = settings.eos and settings.context == "sentence" and not vocabulary.closed
    if not ends or any(len(token) != 1 for token in vocabulary.tokens[len(SPECIAL_TOKENS) :]):
        raise InputError(f"{CHARACTERS} is not a model of the characters of words")
    separators = SeparatorModel(config.separators)
    return SpelledModel(inner, Speller(characters), separators, known_mass=float.fromhex(config.known_mass))
