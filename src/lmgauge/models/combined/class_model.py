"""Class-based n-gram models: an n-gram model over words and classes of words (Brown et al. 1992), read as SRILM reads them.

A sentence can be parsed in several ways where a word is in several classes, or is also a word of the n-gram model itself.
The probability of a text sums over all of them; with the tokens t of the n-gram model (classes and plain words), p(w|t) from
the classes file (1 for a plain word), and the parses of the history h as states of the n-gram model,

    p(w | h) = sum over states s of  a_h(s) sum over t of  p(t|s) p(w|t)

where a_h(s) is the probability of state s given the words so far. States that the n-gram model cannot tell apart are one:
the recursion forward through a sentence is exact. All sentences of a block go forward together, word by word.
Which words a class stands for says a file in SRILM's format (`classes-format(5)`), a line for each word of each class:

    CLASS [p] word

where p is the probability of the word given the class, 1 if it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.base.files import digest, writing_directory
from lmgauge.models.custom import rows_of_block
from lmgauge.models.ngram.decoder_state import NgramStates
from lmgauge.models.ngram.model import NgramModel, load_ngram_model
from lmgauge.models.protocol import (
    CLASS_MODEL_TYPE,
    check_context,
    checked,
    describing,
    inside,
    is_folder_of,
    read_own_config,
    write_config,
)
from lmgauge.models.scored_text import ScoresStrings
from lmgauge.records.lines import text_lines
from lmgauge.records.sources import find_sources
from lmgauge.scores import ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.text.encoding import ReservedPolicy, encode
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, SPECIAL_TOKENS, Vocabulary

_FIELD = re.compile("[^ \\t\\r\\v\\f\ufeff]+")  # a no-break space is a letter of a word, as in texts
_TOLERANCE = 1e-3  # of the probabilities of a class: files have few digits


@dataclass(frozen=True)
class ClassDefinitions:
    """The words of classes."""

    # ClassDefinitions((("DAY", 0.75, "Monday"), ("DAY", 0.2, "Sunday"))).improper -> ['DAY']

    expansions: tuple[tuple[str, float, str], ...]  # class, probability, word: p(word | class); in the order of the file
    source: str = ""

    @property
    def improper(self) -> list[str]:
        """Classes whose probabilities do not sum to one."""
        totals: dict[str, float] = {}
        for name, p, _ in self.expansions:
            totals[name] = totals.get(name, 0.0) + p
        return [name for name, total in totals.items() if abs(total - 1) > _TOLERANCE]

    def to_text(self) -> str:
        """Return the lines of a file that says the same."""
        return "".join(f"{name} {p!r} {word}\n" for name, p, word in self.expansions)


def read_classes(path: str | Path) -> ClassDefinitions:
    """Read the classes file of a class-based model."""
    lines = text_lines(find_sources(path, "text")[0])
    expansions = tuple(_expansion(f"{path}, line {i}", fields) for i, line in lines if (fields := _FIELD.findall(line)))
    if not expansions:
        raise ModelFileError(f"{path}: no class is defined; a line is a class, a probability and a word: DAY 0.2 Monday")
    return ClassDefinitions(expansions, str(path))


def _expansion(place: str, fields: list[str]) -> tuple[str, float, str]:
    name, *rest = fields
    p = _number(rest[0]) if len(rest) > 1 else None
    if p is None:
        p, words = 1.0, rest
    else:
        words = rest[1:]
    if not words:
        raise ModelFileError(f"{place}: class {name!r} has no word; a line is a class, a probability and a word")
    if len(words) > 1:
        raise ModelFileError(
            f"{place}: class {name!r} stands for {len(words)} words in a row ({' '.join(words)!r:.60}); only classes of "
            "single words can be scored: join such words with _ in the text and in the file"
        )
    if not 0 < p <= 1:
        raise ModelFileError(f"{place}: {rest[0]!r} is not a probability above 0 and up to 1")
    if words[0] in SPECIAL_TOKENS or name in SPECIAL_TOKENS:
        raise ModelFileError(f"{place}: {' '.join(fields)!r:.60}: <unk>, <s> and </s> are neither classes nor words of them")
    return name, p, words[0]


def _number(text: str) -> float | None:
    # Number that a field spells; None for a word.
    try:
        return float(text) if text[0] in "0123456789.+-" else None
    except ValueError:
        return None


FORMAT_VERSION = 1
_CONFIG, _CLASSES, _NGRAM = "config.json", "classes.txt", "ngram"
_PIECE = 256  # words; longer sentences are followed in pieces, side by side
Floats = NDArray[np.float64]


class ClassModel(ScoresStrings):
    """An n-gram model over words and classes of words.

    Source: Brown et al. (1992), "Class-based n-gram models of natural language".

    Attributes:
        ngram: the model over words and classes.
        classes: the words of the classes.
        vocabulary: the words: those of the n-gram model that are not classes, then those of the classes.
        notes: what is unusual about the classes.

    Example:
        >>> import lmgauge
        >>> import numpy as np
        >>> from lmgauge.models.combined.class_model import ClassDefinitions
        >>> text = lmgauge.Corpus.from_strings(["on DAY we rest", "on DAY they ride"])
        >>> days = ClassDefinitions((("DAY", 0.75, "Sunday"), ("DAY", 0.25, "Monday")))
        >>> model = lmgauge.models.ClassModel(lmgauge.train("witten-bell", text, order=2), days)
        >>> scored = model.score_text("on Monday")  # p(DAY|on) / 4
        >>> scored.tokens[1], np.exp(scored.logprobs).round(4).tolist()
        ('Monday', [0.723, 0.1808, 0.0846])
    """

    blocks_are_independent = True
    context_policy = ContextPolicy()
    notes: list[str]

    def __init__(self, ngram: NgramModel, classes: ClassDefinitions) -> None:
        # ngram: each sentence on its own, `</s>` an event.
        if ngram.settings.context != "sentence" or not ngram.settings.eos:
            raise UsageError(f"{ngram.label}: a class-based model needs sentences as contexts, and </s> as their end")
        names = dict.fromkeys(name for name, _, _ in classes.expansions)
        absent = [name for name in names if name not in ngram.vocabulary]
        if len(absent) == len(names):
            raise UsageError(
                f"{classes.source or 'the classes'}: none of the {len(names):,} classes ({absent[0]!r:.40}, ...) is a word "
                f"of {ngram.label}; name the classes file that the model was trained with"
            )
        self.ngram, self.classes = ngram, classes
        self.notes = _notes(classes, absent)
        plain = [word for word in ngram.vocabulary.tokens[len(SPECIAL_TOKENS) :] if word not in names]
        used = [(name, p, word) for name, p, word in classes.expansions if name in ngram.vocabulary]
        self.vocabulary = Vocabulary.from_tokens(
            dict.fromkeys([*plain, *(word for _, _, word in used)]), closed=ngram.vocabulary.closed
        )
        words = [*SPECIAL_TOKENS, *plain, *(word for _, _, word in used)]
        tokens = [*SPECIAL_TOKENS, *plain, *(name for name, _, _ in used)]
        shares = [1.0] * (len(SPECIAL_TOKENS) + len(plain)) + [p for _, p, _ in used]
        self._parses(self.vocabulary.ids(words), ngram.vocabulary.ids(tokens), np.array(shares))

    def _parses(self, words: NDArray[np.uint32], tokens: NDArray[np.uint32], shares: Floats) -> None:
        # Hold the parses of each word: token and p(word | token), those of one word one after another.
        order = np.argsort(words, kind="stable")
        self._words, self._tokens, self._shares = words[order], tokens[order], shares[order]
        self._offsets = np.searchsorted(self._words, np.arange(len(self.vocabulary) + 1))

    @property
    def label(self) -> str:
        """Short name for signatures, e.g. `class-arpa3`."""
        return f"class-{self.ngram.label}"

    @property
    def tokenizer(self) -> Tokenizer:
        """How text becomes words."""
        return self.ngram.tokenizer

    @property
    def reserved(self) -> ReservedPolicy:
        """What a reserved token in the text means."""
        return self.ngram.settings.reserved

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the n-gram model and the classes."""
        return digest([CLASS_MODEL_TYPE, self.ngram.fingerprint], self.classes.to_text())

    def with_reserved(self, reserved: ReservedPolicy) -> ClassModel:
        """Return the same model with another meaning of reserved tokens in the text.

        Args:
            reserved: refuse, escape or unk.
        """
        return ClassModel(self.ngram.with_reserved(reserved), self.classes)

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block.

        Args:
            block: the segments.
            spans: whether to fill the column `ends`, in bytes.

        Raises:
            InputError: the text has a reserved token that is refused.
        """
        encoded = encode(block, self.tokenizer, self.vocabulary, bos=True, reserved=self.reserved, spans=spans)
        return rows_of_block(block, encoded, self.vocabulary, self._score_ids(encoded.ids))

    def _score_ids(self, ids: NDArray[np.uint32]) -> Floats:
        # float64 [n], natural log-probabilities of all ids but `<s>`; longest pieces first, all at once.
        begins, firsts = self._pieces(ids)
        lengths = np.append(begins[1:], len(ids)) - firsts
        by_length = np.argsort(-lengths, kind="stable")
        begins, firsts, lengths = begins[by_length], firsts[by_length], lengths[by_length]
        logprob = np.zeros(len(ids))
        paths = _Paths(self, ids[firsts] == BOS)
        for t in range(1, int(lengths.max(initial=1))):
            active = int(np.count_nonzero(lengths > t))
            paths.leave(active)
            places = firsts[:active] + t
            scored = places >= begins[:active]
            with np.errstate(divide="ignore"):
                logprob[places[scored]] = np.log(paths.step(ids[places]))[scored]
        events: Floats = logprob[ids != BOS]
        return events

    def _pieces(self, ids: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        # Where sentences and pieces of long ones begin, ascending, and the place behind which each is followed from.
        # A piece may begin behind n - 1 words of one parse each: nothing before them counts.
        back, is_begin = self.ngram.order - 1, ids == BOS
        up_to = np.append(0, np.cumsum(is_begin | (np.diff(self._offsets)[ids] != 1)))
        cuts = np.arange(back, len(ids))
        cuts = cuts[(up_to[cuts] == up_to[cuts - back]) & ~is_begin[back:]]
        cuts = cuts[np.unique(cuts // _PIECE, return_index=True)[1]]
        begins = np.sort(np.append(np.flatnonzero(is_begin), cuts))
        return begins, np.where(is_begin[begins], begins, begins - back - 1)

    def parses_of(self, words: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.uint32], Floats]:
        """Return the parses of words, one after another: of which word [m], token uint32 [m], p(word | token) [m].

        Args:
            words: uint32 [n].
        """
        counts = self._offsets[words + np.uint32(1)] - self._offsets[words]
        owner = np.repeat(np.arange(len(words)), counts)
        first = np.cumsum(counts) - counts
        place = np.arange(len(owner)) - first[owner] + self._offsets[words][owner]
        return owner, self._tokens[place], self._shares[place]

    def log_distribution(self, context_ids: NDArray[np.uint32] | Sequence[int]) -> Floats:
        """Return natural log-probabilities of all words after a context.

        Args:
            context_ids: ids before the event, `<s>` first where the sentence begins.

        Returns:
            float64 [vocabulary], nats; -inf for what cannot come.

        Raises:
            UsageError: an id is outside the vocabulary.
        """
        context = check_context(context_ids, len(self.vocabulary))
        begun = bool(len(context) and context[0] == BOS)
        paths = _Paths(self, np.array([begun]))
        for word in context[int(begun) :]:
            paths.step(np.array([word], np.uint32))
        tokens = np.arange(len(self.ngram.vocabulary), dtype=np.uint32)
        tokens = tokens[tokens != BOS]
        of_tokens = np.zeros(len(self.ngram.vocabulary))
        for weight, state in zip(paths.weights.tolist(), paths.states, strict=True):
            logprobs, _ = self.ngram.step_batch(state, tokens)
            of_tokens[tokens] += weight * np.exp(logprobs)
        p = np.bincount(self._words, of_tokens[self._tokens] * self._shares, len(self.vocabulary))
        with np.errstate(divide="ignore"):
            return np.minimum(np.log(p), 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return what is in the model, as config.json tells it."""
        return {
            "model_type": CLASS_MODEL_TYPE,
            "classes": len({name for name, _, _ in self.classes.expansions}),
            "expansions": len(self.classes.expansions),
            "ngram": self.ngram.to_dict(),
            "context": str(self.context_policy),
            "vocabulary": "closed" if self.vocabulary.closed else "open",
            "vocabulary_size": len(self.vocabulary),
            "vocabulary_fingerprint": self.vocabulary.ids_fingerprint,
            "tokenizer": self.tokenizer.settings(),
            "notes": self.notes,
        }

    may_replace = staticmethod(is_folder_of(CLASS_MODEL_TYPE, _CONFIG, _CLASSES, _NGRAM))
    """Tells whether `save` may put the folder of a model in the place of another folder."""

    def save(self, path: str | Path) -> None:
        """Write the model as a folder: config.json, classes.txt, and the folder of the n-gram model.

        Args:
            path: the new folder.

        Raises:
            InputError: something else is in the way.
            OutputError: it cannot be written; nothing is left behind.
        """
        config = self.to_dict() | {"fingerprint": self.fingerprint, "format_version": FORMAT_VERSION}
        with writing_directory(path, is_ours=self.may_replace) as folder:
            self.ngram.listed().save(folder / _NGRAM)
            (folder / _CLASSES).write_text(self.classes.to_text(), encoding="utf-8", newline="\n")
            write_config(folder, config, sealed=False)

    def __repr__(self) -> str:
        return f"ClassModel({self.label}, {len(self.vocabulary):,} words)"


class _Paths:
    """The parses of several sentences, as far as they have come."""

    def __init__(self, model: ClassModel, begun: NDArray[np.bool_]) -> None:
        self._model = model
        cells = np.stack([model.ngram.reader.pack([model.ngram.begin(bos=bos)]).reshape(-1) for bos in (False, True)])
        self.states = NgramStates(cells[begun.astype(np.intp)], model.ngram.reader)
        self.weights, self.sentences = np.ones(len(begun)), np.arange(len(begun))

    def leave(self, active: int) -> None:
        # Go on with the first sentences only.
        here = int(np.searchsorted(self.sentences, active))
        self.states, self.weights, self.sentences = self.states[:here], self.weights[:here], self.sentences[:here]

    def step(self, words: NDArray[np.uint32]) -> Floats:
        # Go on by a word in each sentence, uint32 [sentences], and return its probability, float64 [sentences].
        path, tokens, shares = self._model.parses_of(words[self.sentences])
        sentences = self.sentences[path]
        logprobs, states = self._model.ngram.step_batch(self.states[path], tokens)
        prior = self.weights[path] * shares
        joint = prior * np.exp(logprobs)
        total = np.bincount(sentences, joint, len(words))
        # After a word that was impossible, its parses are as probable as the classes file says.
        weights = np.where(total[sentences] > 0, joint, prior)
        weights /= np.bincount(sentences, weights, len(words))[sentences]
        self._merge(states, weights, sentences)
        return np.minimum(total, 1.0)

    def _merge(self, states: NgramStates, weights: Floats, sentences: NDArray[np.intp]) -> None:
        # Add up paths of one sentence whose states are equal, and forget impossible ones.
        if (np.diff(sentences) == 0).any():
            some = weights > 0
            cells, weights, sentences = states.cells[some], weights[some], sentences[some]
            both = np.column_stack((sentences.astype(np.uint64), cells))
            # A state with its sentence is a row; the order of sentences stays, as these come first in it.
            order = np.lexsort(both.T[::-1])
            both = both[order]
            first = np.flatnonzero(np.r_[True, (both[1:] != both[:-1]).any(axis=1)])
            weights = np.add.reduceat(weights[order], first)
            states, sentences = (
                NgramStates(np.ascontiguousarray(cells[order][first]), states.reader),
                sentences[order][first],
            )
        self.states, self.weights, self.sentences = states, weights, sentences


def _notes(classes: ClassDefinitions, absent: Sequence[str]) -> list[str]:
    notes = []
    improper = [name for name in classes.improper if name not in absent]
    if improper:
        notes.append(
            f"the words of {len(improper):,} classes ({improper[0]!r:.40}, ...) do not sum to one, so the "
            "probabilities of the model do not either"
        )
    if absent:
        notes.append(f"{len(absent):,} classes of the file ({absent[0]!r:.40}, ...) are not in the model, and never come")
    return notes


def read_class_model(model: str | Path | NgramModel, classes: str | Path) -> ClassModel:
    """Read a class-based n-gram model of SRILM: an ARPA file over words and classes, and the file with the classes' words.

    Args:
        model: the ARPA file, or an n-gram model.
        classes: lines of class, probability (1 if left out) and word, as `ngram -classes` takes them.

    Raises:
        ModelFileError: a file cannot be read, or a class stands for several words in a row.
        UsageError: no class of the file is in the model.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> text = lmgauge.Corpus.from_strings(["on DAY we rest", "on DAY they ride"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lmgauge.models.write_arpa(lmgauge.train("witten-bell", text, order=2), f"{folder}/class.arpa")
        ...     _ = Path(folder, "classes").write_text("DAY 0.75 Sunday\\nDAY 0.25 Monday\\n")
        ...     read_class_model(f"{folder}/class.arpa", f"{folder}/classes")
        ClassModel(class-arpa2, 10 words)
    """
    if isinstance(model, NgramModel):
        return ClassModel(model, read_classes(classes))
    from lmgauge.models.ngram.arpa_reader import read_arpa

    definitions = read_classes(classes)  # first, as it is small
    return ClassModel(read_arpa(model), definitions)


def load_class_model(path: str | Path, options: object = None) -> ClassModel:
    """Load the folder of a class-based model."""
    path = Path(path)
    config = read_own_config(path, dict[str, Any], CLASS_MODEL_TYPE, FORMAT_VERSION, "copy it again", sealed=False)
    with describing(path, "a class-based model"):
        model = ClassModel(load_ngram_model(inside(path, _NGRAM)), read_classes(path / _CLASSES))
    return checked(model, path, config.get("fingerprint"))
