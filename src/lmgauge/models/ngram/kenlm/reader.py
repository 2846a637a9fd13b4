"""KenLM's binary files as models: probing tables and tries of all kinds, format version 5, known by how they begin.

A file is used where it lies, by kernels that know it. Values are log10 in single precision, added as KenLM adds them; a
natural logarithm is that sum times ln 10, in double precision. Whole distributions are looked up word by word, as a file
cannot say which words were seen after a context.
"""

from __future__ import annotations

import mmap
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.choices import ARPA_ENDINGS, KENLM_MAGIC
from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.base.files import writing
from lmgauge.base.memory import ask_for_huge_pages, is_larger_than_free
from lmgauge.models.ngram.kenlm.form import KenlmForm
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.settings import NgramSettings, TrainingRecord
from lmgauge.models.ngram.tables import Events, LoadedTables, NgramTables, Refusal
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, UNK, Vocabulary

if TYPE_CHECKING:
    from lmgauge.models.segment_scores import SumArrays


KINDS = {0: "probing", 2: "trie", 3: "quantized trie", 4: "array trie", 5: "quantized array trie"}
"""Of files, by the number in the header."""

_NONE = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True)
class KenlmTables(LoadedTables):
    """A KenLM binary file, mapped into memory."""

    closed_forms: ClassVar[bool] = False

    data: NDArray[np.uint8]  # uint8, the whole file
    kind: str
    counts: tuple[int, ...]  # n-grams of order 1, 2, ... by its header.
    words: int
    source: str = ""
    mapped: mmap.mmap | None = None  # the file behind `data`; None if it was not mapped

    @property
    def order(self) -> int:
        """Return the length of the longest n-grams."""
        return len(self.counts)

    def types(self) -> list[int]:
        """Return the number of n-grams of each order, as the file has them: with those that stand for left-out ones."""
        return [self.words, *self.counts[1:]]

    def score(self, ids: NDArray[np.uint32], *, skip: int = 0, contexts: bool = False) -> Events:
        """Score all ids except `<s>`, each given the ids before it, back to the last `<s>`."""
        # ids: uint32 [n].
        size = len(ids)
        logprob, matched = np.empty(size, np.float64), np.empty(size, np.uint8)
        events, kind = np.empty(size, np.uint32), np.empty(size, np.uint8)
        before = np.empty((size if contexts else 0, self.order - 1), np.uint32)
        rows = logprob, matched, events, kind, before.reshape(-1)
        written = _native.score_kenlm(self.data, ids, skip, rows)
        logprob = logprob[:written]
        self.check_logprob(logprob)
        return Events(logprob, matched[:written], events[:written], kind[:written], before[:written])

    def sum(self, ids: NDArray[np.uint32], out: SumArrays) -> None:
        """Sum the rows that `score` has by segment; see `NgramTables.sum`."""
        self.check_sums(_native.sum_kenlm(self.data, ids, out))

    def reader(self, vocabulary: Vocabulary, cut: tuple[int, int, bool, Refusal]) -> _native.Reader:
        """Return what steps through the file word by word; see `NgramTables.reader`."""
        return _native.read_kenlm(self.data, vocabulary.arrays, cut)

    def whole(self, *, eos: bool) -> KenlmDistributions:
        """Return what answers questions about whole distributions."""
        return KenlmDistributions(self)


class KenlmDistributions:
    """Whole distributions of a KenLM file; the words before an event, the last first, stand for its context."""

    def __init__(self, tables: KenlmTables) -> None:
        self._tables = tables

    @property
    def words(self) -> int:
        """Return the size of the vocabulary."""
        return self._tables.words

    def after(self, context: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return probabilities of all tokens after a context, float64 [vocabulary]; that of `<s>` is 0."""
        # context: uint32 [n], ids before the event.
        starts = np.flatnonzero(context == BOS)
        seen = context[starts[-1] if len(starts) else 0 :][::-1][: self._tables.order - 1]
        row = np.full((1, self._tables.order - 1), _NONE)
        row[0, : len(seen)] = seen
        probability: NDArray[np.float64] = self.rows(row, logarithms=False)[0]
        return probability

    def rows(self, contexts: NDArray[np.uint32], *, logarithms: bool) -> NDArray[np.float64]:
        """Return the distributions after contexts: probabilities, or natural logarithms, `LOWEST` for what cannot come."""
        # contexts: uint32 [n, order - 1], ids of the words before, the last first.
        # -> float64 [n, vocabulary].
        from lmgauge.scores.distributions.tile import LOWEST

        tables = self._tables
        tables.check_file()
        rows = np.empty((len(contexts), self.words), np.float64)
        _native.fill_kenlm(tables.data, np.ascontiguousarray(contexts).reshape(-1), LOWEST, rows.reshape(-1))
        tables.check_logprob(rows)
        np.maximum(rows, LOWEST, out=rows)
        return rows if logarithms else np.exp(rows, out=rows)


class KenlmModel(NgramModel):
    """The model of a KenLM binary file: it scores as KenLM does, to the last bit of its single-precision log10."""

    def __init__(
        self,
        tables: KenlmTables,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer,
        settings: NgramSettings,
        record: TrainingRecord | None = None,
    ) -> None:
        # The questions that a model asks are answered by both; what only NgramTables has is overridden below.
        super().__init__(cast("NgramTables", tables), vocabulary, tokenizer, settings, record)
        self.file = tables

    @cached_property
    def checksums(self) -> list[int]:
        self.file.check_file()
        return [_native.checksum_bytes(self.file.data)]

    def _digested_tables(self) -> tuple[object, ...]:
        return (f"{self.checksums[0]:016x}",)

    @property
    def unk_probability(self) -> float:
        return float(self.file.whole(eos=True).after(np.zeros(0, np.uint32))[UNK])

    def listed(self) -> NgramModel:
        # N-grams that KenLM added because longer ones need them are n-grams like all others: a file does not tell them
        # apart.
        from lmgauge.models.ngram.arpa_reader import model_of_rows

        if self.file.kind == "probing":
            raise UsageError(
                f"{self.file.source}: a probing file of KenLM can score, but not list its n-grams, of which it holds hashes "
                "only; use a trie (build_binary trie), or the ARPA file it was built from"
            )
        self.file.check_file()
        sections = [_list_order(self.file, k, count) for k, count in enumerate(self.file.counts, 1)]
        return model_of_rows(self.file.source, self.vocabulary, sections, self.tokenizer, self.record.notes)

    def save(self, path: str | Path, **form: Any) -> None:
        # Raises OutputError: it cannot be written; nothing is left behind.
        if KenlmForm(**form) != KenlmForm() or str(path).endswith(ARPA_ENDINGS):
            self.listed().save(path, **form)
            return
        if self.settings.reserved != "unk" or self.tokenizer.settings() != make_tokenizer("whitespace").settings():
            raise UsageError(
                f"{self.file.source}: a KenLM file does not say how text is cut, nor what <unk> in it means, so it can be "
                "copied only as it was read"
            )
        self.file.check_file()
        with Path(self.file.source).open("rb") as source, writing(path) as target:
            shutil.copyfileobj(source, target, 1 << 24)


def is_kenlm(path: Path) -> bool:
    """Return True if a file begins with the bytes that KenLM's binaries begin with."""
    try:
        with path.open("rb") as file:
            return file.read(len(KENLM_MAGIC)) == KENLM_MAGIC
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_kenlm(path: str | Path, *, tokenizer: str | Tokenizer = "whitespace") -> KenlmModel:
    """Open a KenLM binary file; it is mapped into memory, and looked at as it is used."""
    # path: the file, uint8 [bytes] in memory.
    path = Path(path)
    try:
        with path.open("rb") as opened:
            mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path}: cannot be read: {error}") from error
    if not is_larger_than_free(path, len(mapped)):
        ask_for_huge_pages(mapped)
    data = np.frombuffer(mapped, np.uint8)
    try:
        kind, counts, has_words, (begin, end), *_ = _native.kenlm_layout(data)
        if not has_words:
            raise ValueError("it was built without its words (build_binary -v); build it with them, from its ARPA file")
        if not end:
            raise ValueError("it has no </s>, so the end of a sentence could not be scored")
        vocabulary = _vocabulary(data)
    except ValueError as error:
        raise ModelFileError(f"{path}: this KenLM file cannot be used: {error}") from error
    notes = () if begin else ("the file has no <s>: sentences begin as after an unknown word, as in KenLM",)
    tables = KenlmTables(data, KINDS[kind], tuple(counts), len(vocabulary), source=str(path), mapped=mapped)
    settings = NgramSettings("kenlm", interpolate=False, reserved="unk")
    return KenlmModel(tables, vocabulary, make_tokenizer(tokenizer), settings, TrainingRecord(notes=notes))


def _vocabulary(data: NDArray[np.uint8]) -> Vocabulary:
    offsets, strings, wrong = _native.kenlm_words(data)
    if wrong >= 0:
        raise ValueError(f"word {wrong} at its end is not the one that its vocabulary has under this number: damaged")
    try:
        strings.tobytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"a word is not valid UTF-8 ({error.reason})") from error
    return Vocabulary.from_strings(offsets, strings, closed=False)


def _list_order(
    tables: KenlmTables, order: int, count: int
) -> tuple[NDArray[np.uint32], NDArray[np.float32], NDArray[np.float32]]:
    # N-grams of one order: ids [n, order], log10 of probabilities and back-off weights, float32 [n].
    if order == 1:
        count = _native.kenlm_layout(tables.data)[7]
    words, probability, backoff = (
        np.empty((count, order), np.uint32),
        np.empty(count, np.float32),
        np.empty(count, np.float32),
    )
    _native.list_kenlm(tables.data, order, words.reshape(-1), probability, backoff)
    return words, probability, backoff
