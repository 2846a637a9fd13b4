"""Word by word: states that a decoder holds, and the steps between them.

A state is what a model knows of the words before: the n-grams that may still begin a longer one. `the cat sat` is three
steps and the end,

    >>> import lmgauge
    >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"]), order=2)
    >>> state, total = model.begin(), 0.0
    >>> for word in ["the", "cat", "sat", "</s>"]:
    ...     logprob, state = model.step(state, word)
    ...     total += logprob
    >>> total == model.score_text("the cat sat").log_probability
    True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.choices import RESERVED_POLICIES
from lmgauge.base.errors import InputError, ProbabilityError, UsageError
from lmgauge.models.protocol import check_context
from lmgauge.text.vocabulary import BOS

if TYPE_CHECKING:
    from lmgauge.models.ngram.settings import NgramSettings
    from lmgauge.models.ngram.tables import NgramTables
    from lmgauge.text.tokens import Tokenizer
    from lmgauge.text.vocabulary import Vocabulary

NgramState = _native.State
"""What a model knows of the words before an event: immutable, equal to another state where the model's tables leave the same
for all that may come, and fit for dicts and sets. `len` is the number of words that still matter."""


@dataclass(frozen=True, eq=False, repr=False)
class NgramStates(Sequence[NgramState]):
    """Many states of one model, as an array; an index gives a state, a slice or an array of indices gives states.

    Attributes:
        cells: uint64 [n, order]; rows are equal where states are. What is in them is the model's own affair.
        reader: of the model.

    Example:
        >>> import lmgauge
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> logprobs, states = model.step_batch(model.begin(), ["a", "b", "a"])
        >>> states
        <NgramStates: 3 of order 2>
        >>> states[0] == states[2], states.distinct()
        (True, (array([0, 1]), array([0, 1, 0])))
    """

    cells: NDArray[np.uint64]
    reader: _native.Reader

    def __len__(self) -> int:
        return len(self.cells)

    @overload
    def __getitem__(self, index: int) -> NgramState: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> NgramStates: ...
    def __getitem__(self, index: int | slice | Sequence[int] | NDArray[Any]) -> NgramState | NgramStates:
        if isinstance(index, (int, np.integer)):
            return self.reader.unpack(self.cells, range(len(self))[index])
        return NgramStates(np.ascontiguousarray(self.cells[index]), self.reader)

    def __iter__(self) -> Iterator[NgramState]:
        return (self.reader.unpack(self.cells, i) for i in range(len(self)))

    def distinct(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return where each distinct state occurs first, and which of these each state is: hypotheses to recombine.

        Returns:
            Indices [distinct], ascending, and for each state its place among them, [n].
        """
        rows = self.cells.view(np.dtype((np.void, self.cells.itemsize * self.cells.shape[1]))).reshape(-1)
        _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
        # `np.unique` sorts by value, and hypotheses are wanted as they came: states [b, a, b] -> sorted a, b with first [1,
        # 0] -> first [0, 1], inverse [0, 1, 0].
        by_place = np.argsort(first)
        rank = np.empty(len(by_place), np.intp)
        rank[by_place] = np.arange(len(by_place))
        return first[by_place], rank[inverse.reshape(-1)]

    def __repr__(self) -> str:
        return f"<NgramStates: {len(self):,} of order {self.reader.order}>"


class ScoredMany(NamedTuple):
    """The events of n sentences."""

    logprobs: NDArray[np.float64]  # float64 [events], natural
    ends: NDArray[np.int64]  # int64 [n], one past the last event of each sentence
    totals: NDArray[np.float64]  # float64 [n], the sum of each


class StepsWords:
    """Gives an n-gram model its states: `begin`, `step`, `step_batch`."""

    if TYPE_CHECKING:
        tables: NgramTables
        vocabulary: Vocabulary
        tokenizer: Tokenizer
        settings: NgramSettings

    @cached_property
    def reader(self) -> _native.Reader:
        """The compiled reader of the tables, which the methods below call."""
        mode = -1 if self.tokenizer.kernel is None else self.tokenizer.kernel
        # A tokenizer's own unknown token is not a word of the text.
        policy = "unk" if self.tokenizer.unit == "subword" and self.settings.reserved == "refuse" else self.settings.reserved
        cut = mode, RESERVED_POLICIES.index(policy), self.settings.eos, _refuse
        return self.tables.reader(self.vocabulary, cut)

    def score_short(self, text: str) -> tuple[float, ...] | None:
        """Return the natural log-probabilities of the events of a short sentence; None where that takes the long way.

        Raises:
            ModelFileError: the model's file became shorter while in use.
        """
        self.tables.check_file()
        return self.reader.score_line(text) if isinstance(text, str) else None

    def score_many(self, texts: list[str]) -> ScoredMany | None:
        """Return the events of sentences; None where that takes the long way.

        Raises:
            ModelFileError: the model's file became shorter while in use.
        """
        self.tables.check_file()
        scored = self.reader.score_lines(texts)
        return None if scored is None else ScoredMany(*scored)

    def begin(self, *, bos: bool = True) -> NgramState:
        """Return the state before the first word.

        Args:
            bos: True begins a sentence, after `<s>`; False has nothing before: the first word is scored as a unigram.

        Raises:
            ModelFileError: the model's file became shorter while in use.

        Example:
            >>> import lmgauge
            >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
            >>> len(model.begin()), len(model.begin(bos=False))
            (1, 0)
        """
        self.tables.check_file()
        return self.reader.begin(bos)

    @cached_property
    def step(self) -> Callable[[NgramState, str | int], tuple[float, NgramState]]:
        """`model.step(state, word)` returns the natural log-probability of a word, and the state behind it.

        A word is a token of the vocabulary, as a string or as its id: a word, a character, a byte as "<0x41>"; one that the
        vocabulary does not have is `<unk>`. "</s>" is the end of the sentence. The model's policy says what a "<unk>" or
        "<s>" in the text means. The float is that of `score`, to the last bit: a product of single-precision numbers in
        double precision, and its logarithm. The file of the model is not looked at: `begin` and `step_batch` do that.

        Raises:
            UsageError: the state is of another model, the word is not a word or an id, or `<s>`, which is never predicted.
            InputError: the word is reserved, and the model's policy is to refuse it; or it holds a lone surrogate.
            ProbabilityError: a probability is above one.

        Example:
            >>> import lmgauge
            >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
            >>> logprob, state = model.step(model.begin(), "a")  # (2 + 1) / (2 + 4)
            >>> round(logprob, 4), state == model.step(model.begin(bos=False), "a")[1]
            (-0.6931, True)
        """
        return self.reader.step  # the compiled method itself: a call of Python more would cost as much again

    def step_batch(
        self, states: NgramState | NgramStates | Sequence[NgramState], words: Sequence[str] | NDArray[np.integer]
    ) -> tuple[NDArray[np.float64], NgramStates]:
        """Step from many states at once: those of a beam, or one state with all words that may follow.

        The kernel lets go of the GIL: threads that call it run side by side.

        Args:
            states: n of them, or one for all words.
            words: n tokens, as strings or as ids, as in `step`; an array of ids is fastest.

        Returns:
            float64 [n], natural log-probabilities, those of `step`; and the n states behind the words.

        Raises:
            UsageError, InputError, ProbabilityError: as `step`; or there are not as many words as states.
            ModelFileError: the model's file became shorter while in use.

        Example:
            >>> import lmgauge
            >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
            >>> logprobs, states = model.step_batch(model.begin(), ["a", "b", "</s>"])
            >>> logprobs.round(4).tolist()
            [-0.6931, -1.7918, -1.7918]
        """
        self.tables.check_file()
        ids = self._word_ids(words)
        cells = self._cells(states, len(ids))
        logprobs, after = np.empty(len(ids), np.float64), np.empty_like(cells)
        self.reader.step_batch(cells, ids, after, logprobs)
        if logprobs.max(initial=-np.inf) > 0:
            self.tables.check_most(float(np.exp(logprobs.max())))
            np.minimum(logprobs, 0, out=logprobs)
        return logprobs, NgramStates(after, self.reader)

    def _word_ids(self, words: Sequence[str] | NDArray[np.integer]) -> NDArray[np.uint32]:
        if isinstance(words, np.ndarray) and words.dtype.kind in "iu":
            if (words == BOS).any():
                _refuse("bos", "<s>")
            return np.ascontiguousarray(check_context(words.reshape(-1), len(self.vocabulary)))
        if isinstance(words, (str, bytes)):
            raise UsageError("step_batch takes a list of words or an array of ids; step takes one word")
        return self.reader.word_ids(list(words))

    def _cells(self, states: NgramState | NgramStates | Sequence[NgramState], n: int) -> NDArray[np.uint64]:
        # Cells of n states, uint64 [n, order].
        order = self.reader.order
        if isinstance(states, NgramStates):
            if states.reader is not self.reader:
                _refuse("model", states)
            cells = states.cells
        else:
            listed = [states] if isinstance(states, NgramState) else list(states)
            for state in listed:
                if not isinstance(state, NgramState):
                    raise UsageError(f"step_batch takes states of the model (begin and step return them), not {state!r:.60}")
                if state.owner != self.reader.owner:
                    _refuse("model", state)
            cells = self.reader.pack(listed).reshape(-1, order)
            if isinstance(states, NgramState):
                return np.repeat(cells, n, axis=0)
        if len(cells) != n:
            raise UsageError(f"step_batch needs a word for each state; got {len(cells)} states and {n} words")
        return cells


class _NotAWordError(UsageError, TypeError):
    """What is given for a word is not one; a TypeError too, as of KenLM."""


def _refuse(reason: str, about: object) -> NoReturn:
    match reason:
        case "model":
            raise UsageError("the state is of another model: begin again with this one, as models cannot share states")
        case "bos":
            raise UsageError("<s> is never predicted: begin() is the state behind it")
        case "id":
            raise UsageError(f"token id {about!r} is outside the vocabulary")
        case "reserved":
            raise InputError(f"{about!r} is a reserved token; load the model with reserved='escape' to read it as a word")
        case "surrogate":
            raise InputError(f"{about!r:.60} holds a lone surrogate, which no UTF-8 text can")
        case "probability":
            raise ProbabilityError(
                f"the model gives {about!r:.60} a probability above one; convert or train the model again"
            )
    raise _NotAWordError(f"a word is a string or a token id, not {type(about).__name__}")
