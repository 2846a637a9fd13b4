"""ARPA files, as SRILM, KenLM and many others write and read them; log10 on disk only.

Words that cannot stand in the file's columns (characters and bytes that are white space) are written as `<0x20>`.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.errors import InputError, ModelFileError, UsageError
from lmgauge.files import writing
from lmgauge.models.ngram.counting import MAX_ORDER, Table, new_table
from lmgauge.models.ngram.lookup import NgramTables, columns, parents_and_words
from lmgauge.models.ngram.model import NgramModel, NgramSettings
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, SPECIAL_TOKENS, Vocabulary

_READ_BYTES = 1 << 24
_WRITE_ROWS = 1 << 18
_GIVEN_TOKENS, _ORDINARY = 3, 3  # the kernel's mode and policy: tokens found here, no name is special
_ZERO = -99.0  # SRILM's log10 of zero
_SMALLEST = -37.5
_REASONS = {
    1: "a number that cannot be read",
    2: "the wrong number of columns",
    3: "a value out of range (log10 of a probability is not above 0, and never NaN)",
}
_ESCAPED = {chr(c): f"<0x{c:02X}>" for c in (9, 10, 11, 12, 13, 32)}


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
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


def is_arpa(path: Path) -> bool:
    """Whether a file looks like an ARPA model: `\\data\\` within its first lines."""
    try:
        with _opened(path) as file:
            return b"\\data\\" in file.read(4096)
    except ModelFileError:
        return False


class _Reader:
    """The file in large pieces, with the position for messages."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path = file, path
        self.buffer, self.line, self.ended = b"", 0, False

    def fill(self) -> bool:
        piece = self.file.read(_READ_BYTES)
        if not piece:
            if not self.ended and self.buffer and not self.buffer.endswith(b"\n"):
                self.buffer += b"\n"
            self.ended = True
            return False
        self.buffer += piece
        return True

    def next_line(self) -> bytes | None:
        while b"\n" not in self.buffer:
            if not self.fill() and b"\n" not in self.buffer:
                return None
        text, self.buffer = self.buffer.split(b"\n", 1)
        self.line += 1
        return text.strip()

    def fail(self, what: str, line: int | None = None) -> ModelFileError:
        return ModelFileError(f"{self.path}, line {line or self.line}: {what}; the ARPA file is damaged")


def read_arpa(path: str | Path, *, tokenizer: str | Tokenizer = "whitespace") -> NgramModel:
    """Reads an ARPA file, plain or gzipped.

    N-grams that a longer one needs as its beginning or end and that the file leaves out (SRILM does) are added as blanks,
    with the probability that backing off gives them: nothing the file says changes.

    Raises:
        ModelFileError: sections or counts do not fit, a number is NaN, positive or unreadable, a word is unknown or comes
            twice, or the file ends early.
    """
    path = Path(path)
    chosen = make_tokenizer(tokenizer)
    with _opened(path) as file:
        reader = _Reader(file, path)
        counts = _read_header(reader)
        vocabulary, unigrams = _read_unigrams(reader, counts[0], escaped=chosen.unit == "character")
        total = float(np.sum(unigrams[:, 0], dtype=np.float64))
        builder = _TableBuilder(reader, vocabulary, unigrams, escaped=chosen.unit == "character")
        for order, count in enumerate(counts[1:], 2):
            _expect_section(reader, order)
            builder.add_order(order, count, last=order == len(counts))
        _expect_end(reader)
        if abs(total - 1) > 1e-3:
            builder.notes.append(
                f"the unigram probabilities of the file sum to {total:.4g}, not to 1: its numbers are no measure"
            )
    tables = builder.finish()
    return NgramModel(
        tables, vocabulary, chosen, NgramSettings("arpa", interpolate=False, reserved="unk", notes=tuple(builder.notes))
    )


def _read_header(reader: _Reader) -> list[int]:
    while (line := reader.next_line()) is not None and line != b"\\data\\":
        if reader.line > 1000:
            break
    if line != b"\\data\\":
        raise ModelFileError(f"{reader.path}: is no ARPA file, as there is no \\data\\ line")
    counts: list[int] = []
    while (line := reader.next_line()) is not None and line != b"\\1-grams:":
        if not line:
            continue
        match = re.fullmatch(rb"ngram\s+(\d{1,4})\s*=\s*(\d{1,18})", line)
        if match is None or int(match[1]) != len(counts) + 1:
            raise reader.fail(
                f"expected 'ngram {len(counts) + 1}=<count>' or '\\1-grams:', found {line[:60].decode('utf-8', 'replace')!r}"
            )
        counts.append(int(match[2]))
    if line is None or not counts:
        raise reader.fail("the header ends without \\1-grams:")
    if len(counts) > MAX_ORDER or sum(counts) >= 2**40:
        raise reader.fail(f"the header promises {sum(counts):,} n-grams up to order {len(counts)}, beyond all reason")
    return counts


def _expect_section(reader: _Reader, order: int) -> None:
    line = reader.next_line()
    while line == b"":
        line = reader.next_line()
    if line != f"\\{order}-grams:".encode():
        raise reader.fail(
            f"expected \\{order}-grams:, found {(line or b'the end of the file')[:60].decode('utf-8', 'replace')!r}"
        )


def _expect_end(reader: _Reader) -> None:
    line = reader.next_line()
    while line == b"":
        line = reader.next_line()
    if line != b"\\end\\":
        raise reader.fail(
            "there is no \\end\\ after the last section: it is longer than the header says, or the file was cut off"
        )


_Section = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]


def _read_pieces(reader: _Reader, order: int, count: int) -> Iterator[_Section]:
    """Rows of one section: log10 probabilities and weights, and where their words are in the text."""
    left = count
    while left:
        if b"\n" not in reader.buffer and not reader.fill() and not reader.buffer:
            raise reader.fail(f"the file ends {left:,} lines before the {count:,} {order}-grams its header promises")
        data = np.frombuffer(reader.buffer, np.uint8)
        rows = min(left, reader.buffer.count(b"\n"))
        p, b = np.empty(rows), np.empty(rows)
        starts, ends = np.empty(rows * order, np.int64), np.empty(rows * order, np.int64)
        lines, consumed, fault, reason = _native.parse_arpa_lines(data, order, p, b, starts, ends)
        if fault >= 0:
            raise reader.fail(_REASONS[reason], reader.line + 1 + lines)
        if lines:
            yield p[:lines], b[:lines], data, starts[: lines * order], ends[: lines * order]
        elif rows or not reader.fill():
            raise reader.fail(
                f"section \\{order}-grams: ends {left:,} lines before the {count:,} its header promises",
                reader.line + 1,
            )
        reader.buffer = reader.buffer[consumed:]
        reader.line += lines
        left -= lines


def _linear(log10: NDArray[np.float64], reader: _Reader) -> NDArray[np.float32]:
    """Probabilities or weights from log10; SRILM's -99 is zero. Their lines were the last ones read."""
    low = np.flatnonzero((log10 > _ZERO) & (log10 < _SMALLEST))
    if len(low):
        line = reader.line + 1 + int(low[0])
        raise reader.fail(f"{log10[low[0]]:g} is too small for a single-precision probability (-99 means zero)", line)
    return np.where(log10 <= _ZERO, 0.0, np.power(10.0, log10)).astype(np.float32)


def _read_unigrams(reader: _Reader, count: int, *, escaped: bool) -> tuple[Vocabulary, NDArray[np.float32]]:
    tokens: list[str] = []
    values: list[NDArray[np.float32]] = []
    back = {escape: c for c, escape in _ESCAPED.items()} if escaped else {}
    for p, b, data, starts, ends in _read_pieces(reader, 1, count):
        whole = data.tobytes()
        try:
            found = [whole[s:e].decode() for s, e in zip(starts.tolist(), ends.tolist(), strict=True)]
        except UnicodeDecodeError as error:
            raise reader.fail(f"a word is not valid UTF-8 ({error.reason})") from error
        tokens += [back.get(token, token) for token in found] if back else found
        values.append(np.stack((_linear(p, reader), _linear(b, reader)), axis=1))
    if not values:
        raise reader.fail("there are no unigrams")
    table = np.concatenate(values)
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
    unigrams = np.zeros((len(vocabulary), 2), np.float32)
    unigrams[:, 1] = 1
    for i, token in enumerate(SPECIAL_TOKENS):
        if token in special:
            unigrams[i] = table[special[token]]
    unigrams[3:] = table[ordinary]
    unigrams[BOS, 0] = 0  # never predicted, whatever the file says (KenLM writes 1, SRILM -99)
    return vocabulary, unigrams


class _TableBuilder:
    """Tables made from sections, order after order, closed under beginnings and ends."""

    def __init__(self, reader: _Reader, vocabulary: Vocabulary, unigrams: NDArray[np.float32], *, escaped: bool) -> None:
        self.reader, self.vocabulary, self.unigrams = reader, vocabulary, unigrams
        self.unescaped = {escape: c for c, escape in _ESCAPED.items()} if escaped else {}
        self.words: list[NDArray[np.uint32]] = []
        self.values: list[NDArray[np.float32]] = []
        self.notes: list[str] = []

    def add_order(self, order: int, count: int, *, last: bool) -> None:
        """Reads the lines of a section."""
        words = [np.zeros((0, order), np.uint32)]
        values = [np.zeros((0, 2), np.float32)]
        for p, b, data, starts, ends in _read_pieces(self.reader, order, count):
            words.append(self._ids(data, starts, ends, order).reshape(-1, order))
            weights = np.ones(len(p), np.float32) if last else _linear(b, self.reader)
            values.append(np.stack((_linear(p, self.reader), weights), axis=1))
        self.words.append(np.concatenate(words))
        self.values.append(np.concatenate(values))

    def _ids(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], order: int
    ) -> NDArray[np.uint32]:
        state = np.array([0, -1, 0, 0, 0, -1, 0], np.int64)
        ids = np.empty(len(starts) + 1, np.uint32)
        zero = np.zeros(1, np.int64)
        given = (data, starts, ends, np.array([len(starts)]), ends)
        _native.encode_segments(
            (data, zero, zero),
            given,
            self.vocabulary.arrays,
            (_GIVEN_TOKENS, _ORDINARY, False, False),
            state,
            ids,
            np.zeros(0, np.int64),
            np.zeros(0, np.uint8),
        )
        ids = ids[: len(starts)]
        for j in np.flatnonzero(ids == 0).tolist():
            token = data[starts[j] : ends[j]].tobytes().decode("utf-8", "replace")
            token = self.unescaped.get(token, token)
            if token not in self.vocabulary:
                line = self.reader.line + 1 + j // order
                raise self.reader.fail(f"an n-gram holds the word {token!r}, which is no unigram of the file", line)
            ids[j] = self.vocabulary.id(token)
        return ids

    def finish(self) -> NgramTables:
        """Builds the tables from the longest order's needs downwards, then their contents upwards."""
        order = len(self.words) + 1
        added = 0
        for k in range(order, 2, -1):
            have = _row_keys(self.words[k - 3])
            for part in (self.words[k - 2][:, :-1], self.words[k - 2][:, 1:]):
                fresh = np.setdiff1d(_row_keys(part), have)
                if len(fresh):
                    rows = np.ascontiguousarray(fresh).view(np.uint32).reshape(-1, k - 1)
                    self.words[k - 3] = np.concatenate((self.words[k - 3], rows))
                    self.values[k - 3] = np.concatenate((self.values[k - 3], np.full((len(rows), 2), np.nan, np.float32)))
                    have = _row_keys(self.words[k - 3])
                    added += len(rows)
        if added:
            self.notes.append(f"{added:,} n-grams that longer ones contain are missing in the file; they back off")
        tables: list[Table] = []
        longest: list[int] = []
        for k in range(2, order + 1):
            table, far = self._table(k, tables, longest)
            tables.append(table)
            longest.append(far)
        return NgramTables(self.unigrams, tables, longest)

    def _table(self, k: int, tables: list[Table], longest: list[int]) -> tuple[Table, int]:
        words, values = self.words[k - 2], self.values[k - 2]
        parents, suffixes = words[:, 0], words[:, -1]
        if k > 2:
            parents, suffixes = self._find(words[:, :-1], tables, longest), self._find(words[:, 1:], tables, longest)
        if k == 2:
            lower, weight = self.unigrams[suffixes, 0], self.unigrams[parents, 1]
        else:
            _, probability, backoff = columns(tables[-1])
            lower, weight = np.abs(probability[suffixes]), backoff[parents]
        blank = np.isnan(values[:, 0])
        first = np.where(blank, -(lower * weight), values[:, 0]).astype(np.float32)
        first[blank & (first == 0)] = -0.0
        if (np.abs(first) > 1).any():
            raise self.reader.fail("its back-off weights give probabilities above one")
        second = np.where(blank, np.float32(1), values[:, 1]).astype(np.float32)
        keys = (parents.astype(np.uint64) << np.uint64(32)) | words[:, -1].astype(np.uint64)
        table = new_table(len(keys))
        slots = np.empty(len(keys), np.uint32)
        added, far, _ = _native.insert_entries(table, keys, first, second, slots)
        if added != len(keys):
            raise self.reader.fail(f"{len(keys) - added:,} {k}-grams are listed twice")
        return table, far

    def _find(self, words: NDArray[np.uint32], tables: list[Table], longest: list[int]) -> NDArray[np.uint32]:
        slots = np.ascontiguousarray(words[:, 0])
        for j in range(1, words.shape[1]):
            keys = (slots.astype(np.uint64) << np.uint64(32)) | words[:, j].astype(np.uint64)
            slots = np.empty(len(keys), np.uint32)
            _native.find_entries(tables[j - 1], longest[j - 1], keys, slots)
        return slots


def _row_keys(rows: NDArray[np.uint32]) -> NDArray[np.void]:
    """Rows as single values that compare."""
    rows = np.ascontiguousarray(rows)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)


def write_arpa(model: NgramModel, path: str | Path) -> None:
    """Writes an ARPA file (gzipped if the name ends in `.gz`) that KenLM and SRILM load.

    Raises:
        UsageError: the model has no back-off form (additive smoothing above order 1).
        OutputError: the file cannot be written.
    """
    path = Path(path)
    if model.tables.full_context and model.order > 1:
        raise UsageError(
            f"{model.settings.kind} does not back off, and the ARPA format knows nothing else; only order 1 can be written"
        )
    if model.settings.context == "stream":
        raise UsageError("an ARPA file cannot say that contexts run across lines; train with --context sentence to export")
    with writing(path) as raw:
        if path.name.endswith(".gz"):
            with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="", compresslevel=6) as packed:
                _write(model, packed)  # type: ignore[arg-type]
        else:
            _write(model, raw)


def _write(model: NgramModel, file: IO[bytes]) -> None:
    tables, vocabulary = model.tables, model.vocabulary
    offsets, data = _printable(model)
    first = 1 if vocabulary.closed else 0  # a closed vocabulary has no <unk>
    counts = [len(vocabulary) - first, *tables.types()[1:]]
    header = "\\data\\\n" + "".join(f"ngram {k}={n}\n" for k, n in enumerate(counts, 1))
    file.write(header.encode() + b"\n\\1-grams:\n")
    ids = np.arange(first, len(vocabulary), dtype=np.uint32)
    weights = tables.unigrams[first:, 1].astype(np.float64) if model.order > 1 else np.zeros(0)
    _write_rows(file, tables.unigrams[first:, 0].astype(np.float64), weights, ids.reshape(-1, 1), offsets, data)
    rank = np.arange(len(vocabulary), dtype=np.uint32)
    rows_of_slot = np.arange(len(vocabulary), dtype=np.uint32).reshape(-1, 1)
    for k, table in enumerate(tables.tables, 2):
        file.write(f"\n\\{k}-grams:\n".encode())
        keys, probability, backoff = columns(table)
        used = np.flatnonzero(keys)
        parents, words = parents_and_words(keys[used])
        order = np.lexsort((words, rank[parents]))
        used, parents, words = used[order], parents[order], words[order]
        rows = np.concatenate((rows_of_slot[rank[parents]], words[:, None]), axis=1)
        listed = ~np.signbit(probability[used])
        weight = backoff[used][listed].astype(np.float64) if k < tables.order else np.zeros(0)
        _write_rows(file, probability[used][listed].astype(np.float64), weight, rows[listed], offsets, data)
        rank = np.zeros(len(table), np.uint32)
        rank[used] = np.arange(len(used), dtype=np.uint32)
        rows_of_slot = rows
    file.write(b"\n\\end\\\n")


def _write_rows(
    file: IO[bytes],
    probability: NDArray[np.float64],
    backoff: NDArray[np.float64],
    words: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
) -> None:
    for begin in range(0, len(probability), _WRITE_ROWS):
        rows = slice(begin, begin + _WRITE_ROWS)
        flat = np.ascontiguousarray(words[rows]).reshape(-1)
        file.write(_native.format_arpa_lines(probability[rows], backoff[rows], flat, words.shape[1], offsets, data))


def _printable(model: NgramModel) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The vocabulary's strings as they can stand between blanks."""
    vocabulary = model.vocabulary
    if model.tokenizer.unit not in ("character", "byte"):
        for token in vocabulary.tokens:
            if any(c in token for c in _ESCAPED):
                raise UsageError(
                    f"the token {token!r} holds white space, which an ARPA file cannot; the model has no ARPA form"
                )
    if model.tokenizer.unit != "character" or not any(c in vocabulary for c in _ESCAPED):
        return vocabulary.offsets, vocabulary.bytes
    strings = [_ESCAPED.get(token, token).encode() for token in vocabulary.tokens]
    offsets = np.concatenate(([0], np.cumsum([len(s) for s in strings]))).astype(np.int64)
    return offsets, np.frombuffer(b"".join(strings) + bytes(8), np.uint8)
