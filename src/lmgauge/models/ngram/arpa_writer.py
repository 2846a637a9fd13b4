"""Writing ARPA files, which SRILM, KenLM and many others read; log10 on disk only."""

# Characters that cannot stand in the file's columns, being white space, are written as `<0x20>` and the like.

from __future__ import annotations

import gzip
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import UsageError
from lmgauge.base.files import writing

if TYPE_CHECKING:
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.text.tokens import Tokenizer
    from lmgauge.text.vocabulary import Vocabulary

ESCAPED = {chr(c): f"<0x{c:02X}>" for c in (9, 10, 11, 12, 13, 32)}
_IS_SPACE = np.isin(np.arange(256), [ord(c) for c in ESCAPED])
_WRITE_ROWS = 1 << 18
Strings = tuple[NDArray[np.int64], NDArray[np.uint8]]


def write_arpa(model: NgramModel, path: str | Path) -> None:
    """Write an ARPA file (gzipped if the name ends in `.gz`) that KenLM and SRILM load.

    Args:
        model: what to write.
        path: the file.

    Raises:
        UsageError: the model has no ARPA form: additive smoothing above order 1, a running context, or no `</s>`.
        OutputError: the file cannot be written.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_arpa(model, f"{folder}/wb2.arpa")
        ...     print(Path(folder, "wb2.arpa").read_text().splitlines()[1:3])
        ['ngram 1=7', 'ngram 2=6']
    """
    path, model = Path(path), model.listed()
    check_arpa_form(model)
    with writing(path) as raw:
        if path.name.endswith(".gz"):
            with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="", compresslevel=6) as packed:
                _write(model, packed)  # type: ignore[arg-type]
        else:
            _write(model, raw)


def check_arpa_form(model: NgramModel) -> None:
    """Refuse a model that neither an ARPA file nor a binary of KenLM can hold.

    >>> import lmgauge
    >>> check_arpa_form(lmgauge.train("mle", lmgauge.Corpus.from_strings(["a b"]), order=1))
    """
    if model.tables.full_context and model.order > 1:
        raise UsageError(f"{model.settings.kind} does not back off, as ARPA files do; only models of order 1 can be written")
    if model.settings.context == "stream":
        raise UsageError("an ARPA file cannot say that contexts run across lines; train with --context sentence to export")
    if not model.settings.eos:
        raise UsageError("an ARPA file needs </s>, which this model leaves out; train without --no-eos to export")


def _write(model: NgramModel, file: IO[bytes]) -> None:
    tables, vocabulary = model.tables, model.vocabulary
    strings = printable(vocabulary, model.tokenizer)
    first = 1 if vocabulary.closed else 0  # a closed vocabulary has no <unk>
    counts = [len(vocabulary) - first, *tables.types()[1:]]
    header = "\\data\\\n" + "".join(f"ngram {k}={n}\n" for k, n in enumerate(counts, 1))
    file.write(header.encode() + b"\n\\1-grams:\n")
    ids = np.arange(first, len(vocabulary), dtype=np.uint32)
    weights = tables.unigrams[first:, 1].astype(np.float64) if model.order > 1 else np.zeros(0)
    _write_rows(file, tables.unigrams[first:, 0].astype(np.float64), weights, ids.reshape(-1, 1), strings)
    rank = np.arange(len(vocabulary), dtype=np.uint32)
    rows_of_slot = np.arange(len(vocabulary), dtype=np.uint32).reshape(-1, 1)
    for k, table in enumerate(tables.tables, 2):
        file.write(f"\n\\{k}-grams:\n".encode())
        entries = table.entries()
        order = np.lexsort((entries.words, rank[entries.parents]))
        slots, parents, words = entries.slots[order], entries.parents[order], entries.words[order]
        probability, backoff = entries.probabilities[order], entries.weights[order]
        rows = np.concatenate((rows_of_slot[rank[parents]], words[:, None]), axis=1)
        listed = ~np.signbit(probability)
        weight = backoff[listed].astype(np.float64) if k < tables.order else np.zeros(0)
        _write_rows(file, probability[listed].astype(np.float64), weight, rows[listed], strings)
        rank = np.zeros(table.slots, np.uint32)
        rank[slots] = np.arange(len(slots), dtype=np.uint32)
        rows_of_slot = rows
    file.write(b"\n\\end\\\n")


def _write_rows(
    file: IO[bytes],
    probability: NDArray[np.float64],
    backoff: NDArray[np.float64],
    words: NDArray[np.uint32],
    strings: Strings,
) -> None:
    for begin in range(0, len(probability), _WRITE_ROWS):
        rows = slice(begin, begin + _WRITE_ROWS)
        flat = np.ascontiguousarray(words[rows]).reshape(-1)
        file.write(_native.format_arpa_lines(probability[rows], backoff[rows], flat, words.shape[1], *strings))


def printable(vocabulary: Vocabulary, tokenizer: Tokenizer, what: str = "an ARPA file") -> Strings:
    """Return the strings of a vocabulary as they can stand between blanks."""
    # Where each starts, int64 [n + 1], and their bytes.
    if tokenizer.unit not in ("character", "byte"):
        spaces = np.flatnonzero(_IS_SPACE[vocabulary.bytes[: vocabulary.offsets[-1]]])
        if len(spaces):
            token = vocabulary.token(int(np.searchsorted(vocabulary.offsets, spaces[0], side="right")) - 1)
            raise UsageError(f"the token {token!r} contains white space, which separates columns in {what}")
    if tokenizer.unit != "character" or not any(c in vocabulary for c in ESCAPED):
        return vocabulary.offsets, vocabulary.bytes
    strings = [ESCAPED.get(token, token).encode() for token in vocabulary.tokens]
    offsets = np.concatenate(([0], np.cumsum([len(s) for s in strings]))).astype(np.int64)
    return offsets, np.frombuffer(b"".join(strings) + bytes(8), np.uint8)
