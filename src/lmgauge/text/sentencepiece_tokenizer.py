"""Subwords of a SentencePiece model (`.model`), cut by the library that defines the format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, needing
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import SENTENCEPIECE_FILE, FileTokenizer, Tokens, TokenUnit, byte_named

_SPACE = "\u2581".encode()
_SILENT = 3  # what the library says below a fatal error is in its exceptions, too


class SentencePieceTokenizer(FileTokenizer):
    """Subwords of a SentencePiece model, named by its pieces; what it has no piece for is named by the text itself."""

    # The text is taken as text: no piece that begins or ends one is added, and none is made of what is spelled like one.
    # Where the pieces spell the text byte by byte, spans are those bytes; elsewhere (the model's own normalization changed
    # the text) they are the library's offsets. A segment is restored exactly if the library decodes its pieces to it.

    PREFIX = "sp@"
    FILE = SENTENCEPIECE_FILE
    unit: TokenUnit = "subword"
    kernel: int | None = None

    def __init__(self, content: bytes, source: str = SENTENCEPIECE_FILE) -> None:
        with needing("sentencepiece", extra="sentencepiece"):
            import sentencepiece
        sentencepiece.set_min_log_level(_SILENT)
        super().__init__(content, source)
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
        strings = [piece.encode() for piece in pieces]
        own = [_byte(piece) if one else piece.encode() for piece, one in zip(pieces, is_byte, strict=True)]
        self._bytes_of = {piece: _plain(string) for piece, string in zip(pieces, own, strict=True)}
        self._sizes = np.array([(len(string), len(_plain(string))) for string in own], np.int64).reshape(-1, 2)
        self._strings = b"".join(strings)
        self._bounds = np.zeros(size + 1, np.int64)
        np.cumsum([len(string) for string in strings], out=self._bounds[1:])

    @contextmanager
    def _library_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, ValueError, IndexError, OverflowError, OSError) as error:
            reason = str(error).partition("\n")[0].strip() or "the library gives no reason"
            raise InputError(f"{self._source}: {what}: {reason}") from error

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the subwords of `segments`, with byte spans."""
        texts = [segments.text(i) for i in range(len(segments))]
        with self._library_errors("the text cannot be cut"):
            arrays: list[NDArray[np.int32]] = self._processor.encode(texts, out_type="numpy", num_threads=1)
        counts = np.fromiter(map(len, arrays), np.int64, len(arrays))
        ids = np.concatenate(arrays).astype(np.int64) if arrays else np.zeros(0, np.int64)
        starts, ends = self._bounds[ids], self._bounds[ids + 1]
        strings, sizes = self._strings, self._sizes[ids]
        unknown = np.flatnonzero(ids == self._unknown)
        if len(unknown):
            pieces = self._unknown_pieces(unknown, counts, texts)
            sizes[unknown] = [(len(piece), len(_plain(piece))) for piece in pieces]
            ends[unknown] = len(strings) + np.cumsum(sizes[unknown, 0])
            starts[unknown] = ends[unknown] - sizes[unknown, 0]
            strings = b"".join((strings, *pieces))
        span_ends, different = self._spell_out(sizes[:, 1], counts, texts)
        lossy = np.zeros(len(texts), bool)
        begins = np.cumsum(counts) - counts
        for i in np.flatnonzero(different).tolist():
            own = slice(int(begins[i]), int(begins[i] + counts[i]))
            span_ends[own], lossy[i] = self._offsets(texts[i], sizes[own, 0])
        return Tokens(np.frombuffer(strings, np.uint8), starts, ends, counts, span_ends, lossy)

    def _unknown_pieces(self, unknown: NDArray[np.int64], counts: NDArray[np.int64], texts: list[bytes]) -> list[bytes]:
        # What unknown pieces are called: the text that they stand for.
        # unknown: int64 [n], which tokens they are, ascending; counts: int64 [segments], tokens of each segment.
        last = np.cumsum(counts)
        owners = np.searchsorted(last, unknown, side="right")
        within = unknown - (last - counts)[owners]
        some, places = np.unique(owners, return_inverse=True)
        with self._library_errors("the text cannot be cut"):
            pieces: list[list[bytes]] = self._processor.encode([texts[i] for i in some], out_type=bytes, num_threads=1)
            names = [pieces[place][at] for place, at in zip(places.tolist(), within.tolist(), strict=True)]
            for name in names:
                name.decode()  # a model whose normalization is damaged makes other bytes of the text
        return names

    def _spell_out(
        self, sizes: NDArray[np.int64], counts: NDArray[np.int64], texts: list[bytes]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        # Span ends of segments that pieces spell byte by byte, and which segments are not so.
        # sizes: int64 [tokens], bytes that each piece stands for; counts: int64 [segments], tokens of each segment.
        # -> int64 [tokens] and bool [segments].
        up_to = np.concatenate(([0], np.cumsum(sizes)))
        last = np.cumsum(counts)
        begins, ends = up_to[last - counts], up_to[last]
        before = np.zeros(len(texts), np.int64)  # a space that the model sets before the text is not a byte of it
        different = np.ones(len(texts), bool)
        with self._library_errors("the text cannot be cut"):
            for i, (text, size) in enumerate(zip(texts, (ends - begins).tolist(), strict=True)):
                # Whether an outer space is one of the text's or one that the library sets itself is for it to say.
                if text[:1] != b" " and text[-1:] != b" ":
                    spelled = _plain(self._processor.normalize(text))
                    before[i] = spelled[:1] == b" "
                    different[i] = size != len(spelled) or spelled[before[i] :] != text
        return np.maximum(up_to[1:] - np.repeat(begins + before, counts), 0), different

    def _offsets(self, text: bytes, sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], bool]:
        # Where the spans of a segment end as the library says, int64 [tokens], and True if the segment is lossy.
        # sizes: int64 [tokens], bytes of each piece in the library's normalized text.
        with self._library_errors("the text cannot be cut"):
            normalized, offsets = self._processor.normalize(text, with_offsets=True)
            if sizes.sum() == len(normalized):  # many times as fast as the library's own mapping
                ends = np.array(offsets, np.int64)[np.cumsum(sizes)]
            else:
                mapping = self._processor.encode(text, out_type="offset_mapping")
                ends = np.array([end for _, end in mapping["offsets"]], np.int64)
            lossy = _plain(normalized).strip(b" ") != text.strip(b" ")
            if not lossy:  # whether outer spaces are the text's, or of the library's making, only it can say
                names = self._processor.encode(text.decode(), out_type=str)
                lossy = (self._processor.decode(names) if names else "").encode() != text
        return np.minimum(np.maximum.accumulate(ends), len(text)), lossy

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the text that the library makes of pieces; those that stand for no text stand as they are."""
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
        return [self._bytes_of[token] if token in self._bytes_of else _plain(token.encode()) for token in tokens]


def _plain(piece: bytes) -> bytes:
    return piece.replace(_SPACE, b" ")


def _byte(piece: str) -> bytes:
    # Byte that a piece such as <0x41> names; its string, should it name none.
    return piece.encode() if (value := byte_named(piece)) is None else bytes([value])
