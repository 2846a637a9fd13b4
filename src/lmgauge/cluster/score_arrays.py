"""A batch of the score table as named arrays, and back to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.cluster.part_files import Arrays
from lmgauge.errors import InputError
from lmgauge.scores import KINDS, GivenTokens, ScoreBatch, Strings, TokenStrings
from lmgauge.text.segments import Segments

_EXTRA, _GIVEN = "extra.", "given."
_ROWS = {"token_ids": np.uint32, "logprob": np.float64, "kind": np.uint8}
_SEGMENTS = {"segments": np.int64, "segment_events": np.int64}
_GIVEN_TYPES = {"ids": np.uint32, "counts": np.int64, "lengths": np.int64, "crossing": np.bool_}


class BatchEncoder:
    """Turns batches into arrays; the strings of the tokens are stored once."""

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[int, TokenStrings]] = {}  # with the strings: another object could get their id

    def __call__(self, batch: ScoreBatch) -> Arrays:
        strings = batch.strings
        is_new = id(strings) not in self._numbers
        number = self._numbers.setdefault(id(strings), (len(self._numbers), strings))[0]
        encoded = [token.encode("utf-8", "surrogatepass") for token in strings.tokens] if is_new else []
        arrays: dict[str, NDArray[Any]] = {
            "strings": np.array([number], np.int64),
            "token_bytes": np.frombuffer(b"".join(encoded), np.uint8),
            "token_lengths": np.array([len(token) for token in encoded], np.int64),
            "ends": batch.ends,
            "begins": batch.begins,
            "lossy": batch.lossy,
        }
        arrays |= {name: getattr(batch, name) for name in (*_SEGMENTS, *_ROWS)}
        arrays |= {_EXTRA + name: values for name, values in batch.extra.items()}
        if batch.before is not None:
            arrays |= {_GIVEN + name: getattr(batch.before, name) for name in _GIVEN_TYPES}
        odd = next((name for name, array in arrays.items() if array.dtype.kind not in "biuf"), None)
        if odd is not None:
            raise InputError(f"the model's column {odd.removeprefix(_EXTRA)!r} does not hold numbers: it cannot be stored")
        return arrays


class BatchDecoder:
    """Turns the arrays of one shard back into batches, once they are known to be those of a block."""

    def __init__(self, shared: dict[bytes, TokenStrings]) -> None:
        # shared: the strings of all shards by their bytes, so that equal ones are one object.
        self._shared = shared
        self._strings: list[TokenStrings] = []

    def __call__(self, arrays: Arrays, block: Segments) -> ScoreBatch:
        try:
            return self._batch(arrays, block)
        except (KeyError, IndexError, ValueError, TypeError, OverflowError) as error:
            raise InputError(f"the stored scores are not those of {block.place(0)}: {error}") from error

    def _batch(self, arrays: Arrays, block: Segments) -> ScoreBatch:
        strings = self._read_strings(arrays)
        columns: dict[str, Any] = {name: _checked(arrays, name, kind) for name, kind in (_SEGMENTS | _ROWS).items()}
        segments, events = columns["segments"], columns["segment_events"]
        rows, most = len(columns["logprob"]), len(strings.tokens)
        _require(len(segments) == len(events), "segments and their events are not as many")
        _require(len(segments) == 0 or (segments[0] >= block.first and segments[-1] < block.first + len(block)), "segments")
        _require(bool((np.diff(segments) > 0).all()), "segments are not in order")
        _require(bool((events >= 0).all()) and int(events.sum()) == rows, "numbers of events")
        _require(all(len(columns[name]) == rows for name in _ROWS), "columns are not as long")
        _require(rows == 0 or (columns["token_ids"].max() < most and columns["kind"].max() < len(KINDS)), "ids of tokens")
        optional: dict[str, Any] = {
            name: _checked(arrays, name, kind) for name, kind in (("ends", np.int64), ("begins", np.int64))
        }
        _require(all(len(column) in (0, rows) for column in optional.values()), "spans")
        lossy = _checked(arrays, "lossy", np.bool_)
        _require(len(lossy) in (0, len(segments)), "lossy segments")
        extra = {name.removeprefix(_EXTRA): values for name, values in arrays.items() if name.startswith(_EXTRA)}
        _require(all(len(values) == rows for values in extra.values()), "columns are not as long")
        top = extra.get("top_ids")
        _require(top is None or not top.size or (top.dtype.kind == "u" and top.max() < most), "ids of tokens")
        before = _given(arrays, len(segments), most)
        return ScoreBatch(**columns, **optional, strings=strings, extra=extra, lossy=lossy, before=before)

    def _read_strings(self, arrays: Arrays) -> TokenStrings:
        number = int(_checked(arrays, "strings", np.int64)[0])
        if number == len(self._strings):
            data = _checked(arrays, "token_bytes", np.uint8).tobytes()
            lengths = _checked(arrays, "token_lengths", np.int64)
            _require(bool((lengths >= 0).all()) and int(lengths.sum()) == len(data), "strings of tokens")
            # strings [the, a]: lengths [3, 1] and b"thea": without the lengths [t, hea] would be the same.
            key = lengths.tobytes() + data
            if key not in self._shared:
                ends = np.cumsum(lengths).tolist()
                begins = [0, *ends[:-1]]
                tokens = [data[a:b].decode("utf-8", "surrogatepass") for a, b in zip(begins, ends, strict=False)]
                self._shared[key] = Strings(tokens)
            self._strings.append(self._shared[key])
        _require(0 <= number < len(self._strings), "strings of tokens")
        return self._strings[number]


def _given(arrays: Arrays, segments: int, most: int) -> GivenTokens | None:
    # What was given before each segment; None where no text is given.
    if _GIVEN + "ids" not in arrays:
        return None
    columns = {name: _checked(arrays, _GIVEN + name, kind) for name, kind in _GIVEN_TYPES.items()}
    ids, counts = columns["ids"], columns["counts"]
    _require(all(len(columns[name]) == segments for name in ("counts", "lengths", "crossing")), "given text")
    _require(
        bool((counts >= 0).all()) and int(counts.sum()) == len(ids) and not (len(ids) and ids.max() >= most), "given text"
    )
    return GivenTokens(**columns)


def _checked(arrays: Mapping[str, NDArray[Any]], name: str, kind: Any) -> NDArray[Any]:
    # Array, once it is known to be of its type.
    array = arrays[name]
    _require(array.dtype == kind and array.ndim == 1, name)
    return array


def _require(fact: bool, what: str) -> None:
    if not fact:
        raise ValueError(what)
