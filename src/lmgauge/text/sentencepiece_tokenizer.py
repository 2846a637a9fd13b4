"""Subwords of a SentencePiece model (`.model`), cut by the library that defines the format."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError, needing
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import SENTENCEPIECE_FILE, TokenizerBase, Tokens, TokenUnit

_SPACE = "\u2581"
_SILENT = 3  # what the library says below a fatal error is in its exceptions, too


class SentencePieceTokenizer(TokenizerBase):
    """Subwords of a SentencePiece model, named by its pieces; what it has no piece for is named by the text itself.

    The text is taken as text: no piece that begins or ends one is added, and none is made of what is spelled like one.
    Where the pieces spell the text byte by byte, spans are those bytes; elsewhere (the model's own normalization changed
    the text) they are the library's offsets. A segment is restored exactly if the library decodes its pieces to it.
    """

    PREFIX = "sp@"
    unit: TokenUnit = "subword"
    kernel: int | None = None

    def __init__(self, content: bytes, source: str = SENTENCEPIECE_FILE) -> None:
        """Read a SentencePiece model.

        Args:
            content: of the file.
            source: its name, for messages.

        Raises:
            InputError: it is not a model that the library can read.
            MissingExtraError: sentencepiece is not installed.
        """
        with needing("sentencepiece", extra="sentencepiece"):
            import sentencepiece
        sentencepiece.set_min_log_level(_SILENT)
        self._source, self._content = source, content
        self._sha256 = hashlib.sha256(content).hexdigest()
        self.name = self.PREFIX + self._sha256[:6]
        with self._library_errors("not a usable SentencePiece model"):
            processor = sentencepiece.SentencePieceProcessor()
            processor.LoadFromSerializedProto(content)
            size = processor.get_piece_size()
            pieces = [processor.id_to_piece(number) for number in range(size)]
            no_text = [processor.is_unknown(number) or processor.is_control(number) for number in range(size)]
            is_byte = [processor.is_byte(number) for number in range(size)]
            self._unknown = processor.unk_id()
        self._processor = processor
        self._without_text = {piece for piece, none in zip(pieces, no_text, strict=True) if none}
        self._spelled = [_byte(piece) if one else _plain(piece) for piece, one in zip(pieces, is_byte, strict=True)]
        strings = [piece.encode() for piece in pieces]
        self._bounds = np.zeros(size + 1, np.int64)
        np.cumsum([len(string) for string in strings], out=self._bounds[1:])
        self._strings = b"".join(strings)
        self._bytes_of = dict(zip(pieces, self._spelled, strict=True))

    @contextmanager
    def _library_errors(self, what: str) -> Iterator[None]:
        """Turn what the library raises into an InputError that names the file."""
        try:
            yield
        except (RuntimeError, ValueError, IndexError, OverflowError, OSError) as error:
            reason = str(error).partition("\n")[0].strip() or "the library gives no reason"
            raise InputError(f"{self._source}: {what}: {reason}") from error

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> SentencePieceTokenizer:
        """Return the tokenizer of a SentencePiece model.

        Args:
            path: of the file.

        Raises:
            InputError: it cannot be read, or is not a usable model.
            MissingExtraError: the library sentencepiece is not installed.
        """
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise InputError(f"{os.fspath(path)}: {(error.strerror or str(error)).lower()}") from error
        return cls(content, os.fspath(path))

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the subwords of `segments`, with byte spans.

        Raises:
            InputError: the library cannot cut the text.
        """
        texts = [segments.text(i) for i in range(len(segments))]
        with self._library_errors("the text cannot be cut"):
            arrays: list[NDArray[np.int32]] = self._processor.encode(texts, out_type="numpy", num_threads=1)
        counts = np.fromiter(map(len, arrays), np.int64, len(arrays))
        ids = np.concatenate(arrays).astype(np.int64) if arrays else np.zeros(0, np.int64)
        starts, ends = self._bounds[ids], self._bounds[ids + 1]
        strings, spelled = self._strings, [self._spelled[number] for number in ids.tolist()]
        unknown = np.flatnonzero(ids == self._unknown)
        if len(unknown):
            pieces = self._unknown_pieces(unknown, counts, texts)
            ends[unknown] = len(strings) + np.cumsum([len(piece) for piece in pieces])
            starts[unknown] = ends[unknown] - [len(piece) for piece in pieces]
            strings = b"".join((strings, *pieces))
            for row, piece in zip(unknown.tolist(), pieces, strict=True):
                spelled[row] = _plain(piece.decode())
        span_ends, different = _spell_out(spelled, counts, texts)
        lossy = np.zeros(len(texts), bool)
        begins = np.cumsum(counts) - counts
        for i in np.flatnonzero(different).tolist():
            own = slice(int(begins[i]), int(begins[i] + counts[i]))
            span_ends[own], lossy[i] = self._offsets(texts[i])
        return Tokens(np.frombuffer(strings, np.uint8), starts, ends, counts, span_ends, lossy)

    def _unknown_pieces(self, unknown: NDArray[np.int64], counts: NDArray[np.int64], texts: list[bytes]) -> list[bytes]:
        """Return what unknown pieces are called: the text that they stand for.

        Args:
            unknown: int64 [n], which tokens they are, ascending.
            counts: int64 [segments], tokens of each segment.
            texts: the segments.
        """
        last = np.cumsum(counts)
        owners = np.searchsorted(last, unknown, side="right")
        within = unknown - (last - counts)[owners]
        some, places = np.unique(owners, return_inverse=True)
        with self._library_errors("the text cannot be cut"):
            pieces: list[list[bytes]] = self._processor.encode([texts[i] for i in some], out_type=bytes, num_threads=1)
        return [pieces[place][at] for place, at in zip(places.tolist(), within.tolist(), strict=True)]

    def _offsets(self, text: bytes) -> tuple[NDArray[np.int64], bool]:
        """Return where the spans of a segment end as the library says, and whether the segment is lossy."""
        with self._library_errors("the text cannot be cut"):
            mapping = self._processor.encode(text, out_type="offset_mapping")
            pieces: list[bytes] = mapping["pieces"]
            back: str = self._processor.decode([piece.decode() for piece in pieces]) if pieces else ""
        ends = np.array([end for _, end in mapping["offsets"]], np.int64)
        return np.minimum(np.maximum.accumulate(ends), len(text)), back.encode() != text

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the text that the library makes of pieces; those that stand for no text stand as they are.

        Raises:
            InputError: the library cannot put the tokens together.
        """
        parts: list[str] = []
        pieces: list[str] = []
        with self._library_errors("the tokens cannot be put together"):
            for token in (*tokens, None):
                if token is not None and token not in self._without_text:
                    pieces.append(token)
                    continue
                if pieces:
                    parts.append(self._processor.decode(pieces))
                pieces = []
                parts += [] if token is None else [token]
        return "".join(parts)

    def token_bytes(self, tokens: Sequence[str]) -> list[bytes]:
        """Return the bytes that each token stands for, the space that marks a word's beginning among them.

        Args:
            tokens: n pieces; one that is not in the vocabulary stands for itself.
        """
        return [self._bytes_of[token] if token in self._bytes_of else _plain(token) for token in tokens]

    def settings(self) -> dict[str, object]:
        """Return the name, and the file with its SHA-256."""
        return {"name": self.name, "file": SENTENCEPIECE_FILE, "sha256": self._sha256}

    def files(self) -> dict[str, bytes]:
        """Return the model's file as it was read."""
        return {SENTENCEPIECE_FILE: self._content}

    @property
    def fingerprint(self) -> str:
        """Six hexadecimal digits of the SHA-256 of the file."""
        return self._sha256[:6]


def _spell_out(
    spelled: list[bytes], counts: NDArray[np.int64], texts: list[bytes]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return span ends as the pieces spell them, and of which segments they do not spell the text.

    Args:
        spelled: the bytes of each token.
        counts: int64 [segments], tokens of each segment.
        texts: the segments.

    Returns:
        int64 [tokens] and bool [segments].
    """
    whole = b"".join(spelled)
    up_to = np.zeros(len(spelled) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, spelled), np.int64, len(spelled)), out=up_to[1:])
    last = np.cumsum(counts)
    begins, ends = up_to[last - counts], up_to[last]
    before = np.zeros(len(texts), np.int64)  # a space that the model sets before the text is not a byte of it
    different = np.ones(len(texts), bool)
    for i, (text, begin, end) in enumerate(zip(texts, begins.tolist(), ends.tolist(), strict=True)):
        if text[:1] == b" " or text[-1:] == b" ":
            continue  # the library says whether such a space is one of the text's or one that it sets itself
        before[i] = surplus = end - begin - len(text)
        if surplus == 0:
            different[i] = not whole.startswith(text, begin)
        elif surplus == 1 and text:
            different[i] = not (whole.startswith(b" ", begin) and whole.startswith(text, begin + 1))
    span_ends = up_to[1:] - np.repeat(begins + before, counts)
    return np.maximum(span_ends, 0), different


def _plain(piece: str) -> bytes:
    return piece.replace(_SPACE, " ").encode()


def _byte(piece: str) -> bytes:
    """Return the byte that a piece such as <0x41> names; its string, should it name none."""
    try:
        return bytes([int(piece.removeprefix("<0x").removesuffix(">"), 16)])
    except ValueError:
        return piece.encode()
