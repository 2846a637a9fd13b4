"""Reading ARPA files, as SRILM, KenLM and many others write them; log10 on disk only."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError, ModelFileError
from lmgauge.base.files import local_path
from lmgauge.models.ngram.arpa_writer import ESCAPED
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.packed_tables import RepeatedNgramsError
from lmgauge.models.ngram.settings import MAX_ORDER, NgramSettings, TrainingRecord
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, SPECIAL_TOKENS, Vocabulary

_READY_TOKENS, _ORDINARY = 3, 3  # the kernel's mode and policy: the tokens are cut already, and no name is special
_ZERO, _LARGEST_WEIGHT = -99.0, 38.0  # log10
_CAPITAL_UNK = "<UNK>"  # what other toolkits, KenLM among them, read as <unk>

if TYPE_CHECKING:
    from lmgauge.models.ngram.packing import TableBuilder


def is_arpa(path: Path) -> bool:
    """Return True if a file looks like an ARPA model: `\\data\\` within its first 64 kB."""
    try:
        with opened(path) as file:
            return b"\\data\\" in file.read(1 << 16)
    except ModelFileError:
        return False


def read_arpa(path: str | Path, *, tokenizer: str | Tokenizer = "whitespace", logs: bool = False) -> NgramModel:
    """Read an ARPA file, plain or gzipped.

    N-grams that a longer one needs as its beginning or end and that the file leaves out (SRILM does) are added as blanks,
    with the probability that backing off gives them: nothing the file says changes.

    Args:
        path: the file; its log10 probabilities become float32 [n].
        tokenizer: how text was cut into the words of the file.
        logs: keep the logarithms as well, for a binary file of KenLM with the bits of its build_binary.

    Raises:
        ModelFileError: sections or counts do not fit, a number is NaN, positive or unreadable, a word is unknown or
            listed twice, or the file ends early.

    Example:
        >>> import tempfile, lmgauge
        >>> model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lmgauge.models.write_arpa(model, f"{folder}/wb2.arpa")
        ...     read_arpa(f"{folder}/wb2.arpa").order
        2
    """
    path = local_path(path)
    chosen = make_tokenizer(tokenizer)
    with opened(path) as file:
        reader = ArpaReader(file, path)
        counts = read_header(reader)
        spellings = {escape: c for c, escape in ESCAPED.items()} if chosen.unit == "character" else {}
        vocabulary, unigrams, unigram_logs = _read_unigrams(reader, counts[0], spellings)
        total = float(np.sum(unigrams[:, 0], dtype=np.float64))
        builder = _Sections(reader, vocabulary, unigrams, spellings)
        builder.logs = [unigram_logs] if logs else []
        if _CAPITAL_UNK in spellings:
            builder.notes.append(f"the file calls the unknown word {_CAPITAL_UNK}; here it is <unk>")
        for order, count in enumerate(counts[1:], 2):
            expect(reader, f"\\{order}-grams:")
            builder.add_order(order, count, last=order == len(counts))
        expect(reader, "\\end\\", " (or the section is longer than the header says)")
        if abs(total - 1) > 1e-3:
            builder.notes.append(
                f"the unigram probabilities of the file sum to {total:.4g}, not to 1: its perplexities mean nothing"
            )
    tables = builder.finish()
    settings = NgramSettings("arpa", interpolate=False, reserved="unk")
    return NgramModel(tables, vocabulary, chosen, settings, TrainingRecord(notes=tuple(builder.notes)))


def _read_unigrams(
    reader: ArpaReader, count: int, spellings: dict[str, str]
) -> tuple[Vocabulary, NDArray[np.float32], NDArray[np.float32]]:
    # Read the first section, its values linear and as they stand.
    # `spellings` (what a word of the file is called here) learns a `<UNK>` that means `<unk>`.
    tokens: list[str] = []
    values: list[NDArray[np.float32]] = []
    for p, b, data, starts, ends in read_pieces(reader, 1, count):
        whole = data.tobytes()
        try:
            words = [whole[s:e].decode() for s, e in zip(starts.tolist(), ends.tolist(), strict=True)]
        except UnicodeDecodeError as error:
            raise reader.fail(f"a word is not valid UTF-8 ({error.reason})") from error
        tokens += words
        values.append(np.stack((linear(p, reader), linear(b, reader), p, b), axis=1, dtype=np.float32, casting="same_kind"))
    if not values:
        raise reader.fail("there are no unigrams")
    table = np.concatenate(values)
    if _CAPITAL_UNK in tokens and "<unk>" not in tokens:
        spellings[_CAPITAL_UNK] = "<unk>"
    if spellings:
        tokens = [spellings.get(token, token) for token in tokens]
    ordinary = [i for i, token in enumerate(tokens) if token not in SPECIAL_TOKENS]
    special = {token: i for i, token in enumerate(tokens) if token in SPECIAL_TOKENS}
    if len(ordinary) + len(special) != len(tokens):
        raise reader.fail("a special token is listed twice")
    if "</s>" not in special:
        raise reader.fail("there is no unigram </s>, so the end of a sentence could not be scored")
    try:
        vocabulary = Vocabulary.from_tokens((tokens[i] for i in ordinary), closed="<unk>" not in special)
    except InputError as error:
        raise reader.fail(str(error)) from error
    unigrams = np.tile(np.array([0, 1, np.nan, np.nan], np.float32), (len(vocabulary), 1))
    for i, token in enumerate(SPECIAL_TOKENS):
        if token in special:
            unigrams[i] = table[special[token]]
    unigrams[3:] = table[ordinary]
    unigrams[BOS, 0] = 0  # never predicted, whatever the file says (KenLM writes 1, SRILM -99)
    return vocabulary, np.ascontiguousarray(unigrams[:, :2]), unigrams[:, 2:]


@dataclass(frozen=True)
class _Listed:
    """Stands where the reader of an ARPA file would for n-grams that another kind of file listed."""

    path: Path

    def fail(self, what: str, line: int | None = None) -> ModelFileError:
        return ModelFileError(f"{self.path}: {what}; the file is damaged")


Section = tuple[NDArray[np.uint32], NDArray[np.float32], NDArray[np.float32]]


def model_of_rows(
    source: str, vocabulary: Vocabulary, sections: Sequence[Section], tokenizer: Tokenizer, notes: Sequence[str] = ()
) -> NgramModel:
    """Return the model of n-grams that a file of another format lists, as if an ARPA file had them.

    >>> from lmgauge.text.tokenizers import make_tokenizer
    >>> half = np.full(4, np.log10(0.5), np.float32)
    >>> words = np.arange(4, dtype=np.uint32)[:, None]
    >>> model_of_rows("listed", Vocabulary.from_tokens(["a"]), [(words, half, half)], make_tokenizer("whitespace")).types
    [3]
    """
    # sections: for each order: ids [n, order], and log10 of probabilities and of back-off weights, [n] each; all words are
    # in the first.
    listed = _Listed(Path(source))
    for _, probability, backoff in sections:
        if not (bool((probability <= 0).all()) and bool((backoff <= _LARGEST_WEIGHT).all())):
            raise listed.fail("it holds a probability above one, or a value that is not a number")
    unigrams = np.zeros((len(vocabulary), 2), np.float32)
    unigrams[:, 1] = 1
    words, *values = sections[0]
    unigrams[words[:, 0]] = np.stack([_power(column) for column in values], axis=1)
    unigrams[BOS, 0] = 0
    builder = _Ngrams(listed, unigrams)
    for words, *values in sections[1:]:
        builder.words.append(words)
        builder.values.append(np.stack([_power(column) for column in values], axis=1))
    tables = builder.finish()
    settings = NgramSettings("arpa", interpolate=False, reserved="unk")
    return NgramModel(tables, vocabulary, tokenizer, settings, TrainingRecord(notes=(*notes, *builder.notes)))


def _power(log10: NDArray[np.float32]) -> NDArray[np.float32]:
    # 10 to a power, float32 [n]; 0 for what SRILM's -99 says, and below.
    return np.where(log10 <= _ZERO, 0.0, np.power(10.0, np.maximum(log10.astype(np.float64), _ZERO))).astype(np.float32)


class _Ngrams:
    """Make tables of n-grams, order after order, so that the beginning and the end of each n-gram are n-grams, too."""

    def __init__(self, source: ArpaReader | _Listed, unigrams: NDArray[np.float32]) -> None:
        self.source, self.unigrams = source, unigrams
        self.words: list[NDArray[np.uint32]] = []
        self.values: list[NDArray[np.float32]] = []
        self.notes: list[str] = []
        self.logs: list[NDArray[np.float32]] = []

    def finish(self) -> NgramTables:
        # Tables: first add what the longest orders need, downwards; then fill them, upwards.
        order = len(self.words) + 1
        entries = 0
        for k in range(order, 2, -1):
            have = _row_keys(self.words[k - 3])
            for part in (self.words[k - 2][:, :-1], self.words[k - 2][:, 1:]):
                fresh = np.setdiff1d(_row_keys(part), have)
                if len(fresh):
                    rows = np.ascontiguousarray(fresh).view(np.uint32).reshape(-1, k - 1)
                    self.words[k - 3] = np.concatenate((self.words[k - 3], rows))
                    self.values[k - 3] = np.concatenate((self.values[k - 3], np.full((len(rows), 2), np.nan, np.float32)))
                    have = _row_keys(self.words[k - 3])
                    entries += len(rows)
        if entries:
            self.notes.append(f"{entries:,} n-grams that longer ones contain are missing in the file; they back off")
        from lmgauge.models.ngram.packing import TableBuilder  # with the engine of trainings: not to tell what a file is

        builder = TableBuilder(len(self.unigrams), order)
        for k in range(2, order + 1):
            self._add(k, builder)
        return NgramTables(self.unigrams, builder.tables, source=str(self.source.path), logs=self.logs)

    def _add(self, k: int, builder: TableBuilder) -> None:
        words, values = self.words[k - 2], self.values[k - 2]
        parents, suffixes = self._find(words[:, :-1], builder), self._find(words[:, 1:], builder)
        if k == 2:
            lower, weight = self.unigrams[suffixes, 0], self.unigrams[parents, 1]
        else:
            below = builder.tables[-1]
            lower, weight = np.abs(below.values(suffixes)[0]), below.values(parents)[1]
        blank = np.isnan(values[:, 0])
        first = np.where(blank, -(lower * weight), values[:, 0]).astype(np.float32)
        first[blank & (first == 0)] = -0.0
        if (np.abs(first) > 1).any():
            raise self.source.fail("its back-off weights give probabilities above one")
        second = np.where(blank, np.float32(1), values[:, 1]).astype(np.float32)
        try:
            builder.add(parents, words[:, -1], first, second)
        except RepeatedNgramsError as error:
            raise self.source.fail(f"{error.count:,} {k}-grams are listed twice") from error
        if self.logs:
            listed, table = self.logs[k - 1], builder.tables[-1]
            self.logs[k - 1] = np.full((table.slots, 2), np.nan, np.float32)
            self.logs[k - 1][table.find(parents[: len(listed)], words[: len(listed), -1])] = listed

    def _find(self, words: NDArray[np.uint32], builder: TableBuilder) -> NDArray[np.uint32]:
        slots = np.ascontiguousarray(words[:, 0])
        for j in range(1, words.shape[1]):
            slots = builder.tables[j - 1].find(slots, words[:, j])
        return slots


class _Sections(_Ngrams):
    """Read the sections of an ARPA file."""

    def __init__(
        self, reader: ArpaReader, vocabulary: Vocabulary, unigrams: NDArray[np.float32], spellings: dict[str, str]
    ) -> None:
        super().__init__(reader, unigrams)
        self.reader, self.vocabulary, self.spellings = reader, vocabulary, spellings

    def add_order(self, order: int, count: int, *, last: bool) -> None:
        words = [np.zeros((0, order), np.uint32)]
        values = [np.zeros((0, 2), np.float32)]
        logs = [np.zeros((0, 2), np.float32)]
        for p, b, data, starts, ends in read_pieces(self.reader, order, count):
            words.append(self._ids(data, starts, ends, order).reshape(-1, order))
            weights = np.ones(len(p), np.float32) if last else linear(b, self.reader)
            values.append(np.stack((linear(p, self.reader), weights), axis=1))
            logs.append(np.stack((p, p if last else b), axis=1, dtype=np.float32, casting="same_kind"))
        self.words.append(np.concatenate(words))
        self.values.append(np.concatenate(values))
        if self.logs:
            self.logs.append(np.concatenate(logs))

    def _ids(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], order: int
    ) -> NDArray[np.uint32]:
        state = np.array([0, -1, 0, 0, 0, -1, 0], np.int64)
        ids = np.empty(len(starts) + 1, np.uint32)
        zero = np.zeros(1, np.int64)
        tokens = (data, starts, ends, np.array([len(starts)]), ends)
        _native.encode_segments(
            (data, zero, zero),
            tokens,
            self.vocabulary.arrays,
            (_READY_TOKENS, _ORDINARY, False, False),
            state,
            ids,
            np.zeros(0, np.int64),
            np.zeros(0, np.uint8),
        )
        ids = ids[: len(starts)]
        for j in np.flatnonzero(ids == 0).tolist():
            token = data[starts[j] : ends[j]].tobytes().decode("utf-8", "replace")
            token = self.spellings.get(token, token)
            if token not in self.vocabulary:
                line = self.reader.line + 1 + j // order
                raise self.reader.fail(f"an n-gram holds the word {token!r}, which is not a unigram of the file", line)
            ids[j] = self.vocabulary.id(token)
        return ids


def _row_keys(rows: NDArray[np.uint32]) -> NDArray[np.void]:
    # Rows [n, k] as single values [n] that can be compared and sorted.
    rows = np.ascontiguousarray(rows)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)


READ_BYTES = 1 << 24
MAX_LINE_BYTES = 1 << 24
_HIGHEST_ZERO = -98.0  # log10 of zero: SRILM writes -99, the CMU toolkit -98.9 and the like
_SMALLEST = -37.5
_REASONS = {
    1: "a number that cannot be read",
    2: "the wrong number of columns",
    3: "a value out of range (log10 of a probability is not above 0, and never NaN)",
}


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Yield the bytes of a file, unpacked if it is gzipped."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if packed:
                with gzip.open(raw) as file:
                    yield file  # type: ignore[misc]
            else:
                yield raw
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, (InputError, ModelFileError)):
            raise
        raise ModelFileError(f"{path}: cannot be read: {error}") from error


class ArpaReader:
    """The file in large pieces, with the position for messages."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path = file, path
        self.buffer, self.at, self.line = file.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8), 0, 0

    def fill(self) -> bool:
        """Read another piece, as no whole line is left; return False at the end of the file."""
        rest = self.buffer[self.at :]
        if len(rest) > MAX_LINE_BYTES:
            raise self.fail(f"the line has more than {MAX_LINE_BYTES:,} bytes", self.line + 1)
        piece = self.file.read(READ_BYTES)
        if not piece and rest and not rest.endswith(b"\n"):
            rest += b"\n"
        self.buffer, self.at = rest + piece, 0
        return bool(piece)

    def next_line(self) -> bytes | None:
        """Return the next line without white space at its ends; None at the end of the file."""
        while (end := self.buffer.find(b"\n", self.at)) < 0:
            if not self.fill() and b"\n" not in self.buffer:
                return None
        text = self.buffer[self.at : end]
        self.at = end + 1
        self.line += 1
        return text.strip()

    def next_text(self) -> bytes | None:
        """Return the next line that is not blank; None at the end of the file."""
        while (line := self.next_line()) == b"":
            pass
        return line

    def fail(self, what: str, line: int | None = None) -> ModelFileError:
        """Return the error that names the file and the line."""
        return ModelFileError(f"{self.path}, line {line or self.line}: {what}; the ARPA file is damaged")


def read_header(reader: ArpaReader) -> list[int]:
    """Read up to `\\1-grams:` and return how many n-grams of each order the header promises.

    >>> import io
    >>> file = io.BytesIO(b"\\\\data\\\\\\nngram 1=4\\nngram 2=7\\n\\\\1-grams:\\n")
    >>> read_header(ArpaReader(file, Path("model.arpa")))
    [4, 7]
    """
    while (line := reader.next_line()) is not None and line != b"\\data\\":
        if reader.line > 1000:
            break
    if line != b"\\data\\":
        raise ModelFileError(f"{reader.path}: is not an ARPA file: the line \\data\\ is missing")
    counts: list[int] = []
    while (line := reader.next_text()) is not None and line != b"\\1-grams:":
        match = re.fullmatch(rb"ngram\s+(\d{1,4})\s*=\s*(\d{1,18})", line)
        if match is None or int(match[1]) != len(counts) + 1:
            raise reader.fail(
                f"expected 'ngram {len(counts) + 1}=<count>' or '\\1-grams:', got {line[:60].decode('utf-8', 'replace')!r}"
            )
        counts.append(int(match[2]))
    if line is None or not counts:
        raise reader.fail("the header ends without \\1-grams:")
    if len(counts) > MAX_ORDER:
        raise ModelFileError(f"{reader.path}: has n-grams up to order {len(counts)}; orders up to {MAX_ORDER} can be read")
    if sum(counts) >= 2**40:
        raise reader.fail(f"the header promises {sum(counts):,} n-grams, more than any memory holds")
    return counts


def expect(reader: ArpaReader, expected: str, hint: str = "") -> None:
    """Read the line that begins a section or ends the file."""
    line = reader.next_text() or b"the end of the file"
    if line != expected.encode():
        raise reader.fail(f"expected {expected}{hint}, got {line[:60].decode('utf-8', 'replace')!r}")


_Section = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]


def read_pieces(reader: ArpaReader, order: int, count: int) -> Iterator[_Section]:
    """Yield the rows of one section, piece by piece."""
    # -> log10 probabilities and back-off weights, float64 [rows] each; a piece of the file, uint8; where the words are in
    # it, starts and ends, int64 [rows * order] each.
    left = count
    while left:
        if reader.buffer.find(b"\n", reader.at) < 0 and not reader.fill() and not reader.buffer:
            raise reader.fail(f"the file ends {left:,} lines before the {count:,} {order}-grams its header promises")
        data = np.frombuffer(reader.buffer, np.uint8)[reader.at :]
        rows = min(left, reader.buffer.count(b"\n", reader.at))
        p, b = np.empty(rows), np.empty(rows)
        starts, ends = np.empty(rows * order, np.int64), np.empty(rows * order, np.int64)
        lines, consumed, fault, reason = _native.parse_arpa_lines(data, order, p, b, starts, ends)
        if fault >= 0:
            raise reader.fail(_REASONS[reason], reader.line + 1 + lines)
        if lines:
            yield p[:lines], b[:lines], data, starts[: lines * order], ends[: lines * order]
        elif rows or not reader.fill():
            raise reader.fail(
                f"section \\{order}-grams: ends {left:,} lines before the {count:,} its header promises", reader.line + 1
            )
        reader.at += consumed
        reader.line += lines
        left -= lines


def linear(log10: NDArray[np.float64], reader: ArpaReader) -> NDArray[np.float32]:
    """Return probabilities or weights, float32 [n], from log10, float64 [n]; -98 and less, such as SRILM's -99, is zero."""
    low = np.flatnonzero((log10 > _HIGHEST_ZERO) & (log10 < _SMALLEST))
    if len(low):
        line = reader.line + 1 + int(low[0])
        raise reader.fail(f"{log10[low[0]]:g} is too small for a single-precision probability (-99 means zero)", line)
    return np.where(log10 <= _HIGHEST_ZERO, 0.0, np.power(10.0, log10)).astype(np.float32)
