"""N-gram models on disk: config.json, and the arrays in model.safetensors, loaded by memory map.

The file is an ordinary safetensors file (any reader opens it) whose data begin at a multiple of 64 bytes, so that mapped
tables lie on cache lines. It is written here, array after array, because the library's writer leaves the alignment open.
Nothing is executed on load; sizes, ids, probabilities and checksums are looked at once, so that lookups need not.
"""

from __future__ import annotations

import json
import mmap
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.errors import LmgaugeError, ModelFileError
from lmgauge.files import writing_directory
from lmgauge.models.model import NGRAM_MODEL_TYPE, read_config
from lmgauge.models.ngram.counting import Table
from lmgauge.models.ngram.lookup import NgramTables
from lmgauge.models.ngram.model import NgramModel, NgramSettings
from lmgauge.text.tokenizers import load_tokenizer
from lmgauge.text.vocabulary import BOS, SPECIAL_TOKENS, Vocabulary
from lmgauge.threads import run_ranges, thread_count

FORMAT_VERSION = 1
_ALIGNMENT = 64
_CHUNK = 1 << 24
_DTYPES = {"U64": np.uint64, "I64": np.int64, "F32": np.float32, "U8": np.uint8}
_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}


def save_ngram_model(model: NgramModel, path: str | Path) -> None:
    """Writes the folder of a model; see `NgramModel.save`."""
    arrays: dict[str, NDArray[Any]] = {f"ngrams.{k}": table for k, table in enumerate(model.tables.tables, 2)}
    arrays |= {
        "vocabulary.slots": model.vocabulary.slots,
        "vocabulary.offsets": model.vocabulary.offsets,
        "unigrams": model.tables.unigrams,
        "vocabulary.bytes": model.vocabulary.bytes,
    }
    config = model.to_dict() | {
        "format_version": FORMAT_VERSION,
        "longest": model.tables.longest,
        "full_context": model.tables.full_context,
        "unseen": model.tables.unseen,
        "checksums": [f"{value:016x}" for value in model.checksums],
        "fingerprint": model.fingerprint,
    }
    with writing_directory(path, marker="config.json") as folder:
        for name, content in model.tokenizer.files().items():
            (folder / name).write_bytes(content)
        with (folder / "model.safetensors").open("wb", buffering=0) as file:
            _write_arrays(file, arrays)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _write_arrays(file: IO[bytes], arrays: dict[str, NDArray[Any]]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "np"}}
    position = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % _ALIGNMENT)
    file.write(len(text).to_bytes(8, "little") + text)
    for array in arrays.values():
        data = np.ascontiguousarray(array).data.cast("B")
        for begin in range(0, len(data), _CHUNK):
            chunk = data[begin : begin + _CHUNK]
            while len(chunk):  # a raw file may take less than it was given
                chunk = chunk[file.write(chunk) :]


def load_ngram_model(path: str | Path) -> NgramModel:
    """Loads the folder of a model, memory-mapped.

    Raises:
        ModelFileError: a file is missing, truncated, damaged or inconsistent.
    """
    path = Path(path)
    config = read_config(path)
    if config.get("model_type") != NGRAM_MODEL_TYPE:
        raise ModelFileError(f"{path}: model_type is {config.get('model_type')!r}, not {NGRAM_MODEL_TYPE!r}")
    if config.get("format_version") != FORMAT_VERSION:
        raise ModelFileError(
            f"{path}: written in format {config.get('format_version')!r}; this lmgauge reads format {FORMAT_VERSION}"
        )
    try:
        arrays = _map_arrays(path / "model.safetensors")
        return _assemble(path, config, arrays)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        if isinstance(error, LmgaugeError):
            raise
        raise ModelFileError(
            f"{path}: config.json and model.safetensors do not fit together ({error!r}); the model is damaged"
        ) from error


def _map_arrays(file: Path) -> dict[str, NDArray[Any]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="np"):
            pass  # the library checks that header, offsets and file size agree
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(length))
            mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        raise ModelFileError(f"{file}: missing; the model is incomplete") from error
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(f"{file}: is damaged or truncated: {error}") from error
    arrays: dict[str, NDArray[Any]] = {}
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        if tensor["dtype"] not in _DTYPES:
            raise ModelFileError(f"{file}: array {name!r} has the type {tensor['dtype']}, which no n-gram model has")
        begin, _ = tensor["data_offsets"]
        count = int(np.prod(tensor["shape"], dtype=np.int64))
        dtype = np.dtype(_DTYPES[tensor["dtype"]])
        array = np.frombuffer(mapped, dtype, count, 8 + length + begin) if count else np.zeros(0, dtype)
        # Another program may have written the file without the alignment; a copy then has it.
        arrays[name] = (array if not count or array.ctypes.data % 16 == 0 else array.copy()).reshape(tensor["shape"])
    return arrays


def _assemble(path: Path, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> NgramModel:
    vocabulary = Vocabulary(
        arrays["vocabulary.slots"],
        arrays["vocabulary.offsets"],
        arrays["vocabulary.bytes"],
        closed=config["vocabulary"] == "closed",
    )
    _check_vocabulary(path, vocabulary)
    order, longest = int(config["order"]), [int(n) for n in config["longest"]]
    tables = [arrays[f"ngrams.{k}"] for k in range(2, order + 1)]
    unseen = float(config["unseen"])
    if not 0 <= unseen <= 1 or len(longest) != len(tables) or len(config["checksums"]) != len(tables):
        raise ModelFileError(f"{path}: config.json holds values out of range; the model is damaged")
    ngrams = NgramTables(arrays["unigrams"], tables, longest, bool(config["full_context"]), unseen)
    checksums = _check_tables(path, ngrams, len(vocabulary), [int(c, 16) for c in config["checksums"]])
    settings = NgramSettings(
        **{name: _settings_value(config[name]) for name in NgramSettings.__dataclass_fields__ if name in config}
    )
    model = NgramModel(ngrams, vocabulary, load_tokenizer(config["tokenizer"], path), settings)
    model.__dict__["checksums"] = checksums  # just computed
    if model.fingerprint != config["fingerprint"]:
        raise ModelFileError(f"{path}: the fingerprint in config.json is not that of the model; it was damaged or edited")
    return model


def _settings_value(value: Any) -> Any:
    return tuple(_settings_value(item) for item in value) if isinstance(value, list) else value


def _check_vocabulary(path: Path, vocabulary: Vocabulary) -> None:
    slots, offsets, data = vocabulary.arrays
    size = len(offsets) - 1
    used = slots & np.uint64(0xFFFFFFFF)
    sound = (
        slots.dtype == np.uint64 and offsets.dtype == np.int64 and data.dtype == np.uint8
        and len(slots) >= 16 and len(slots) & (len(slots) - 1) == 0 and 3 <= size < 2**31
        and offsets[0] == 0 and bool(np.all(offsets[1:] >= offsets[:-1])) and int(offsets[-1]) + 8 <= len(data)
        and int(np.count_nonzero(slots)) == size and 2 * size <= len(slots) and int(used.max()) <= size
    )  # fmt: skip
    if not sound or tuple(vocabulary.token(i) for i in range(3)) != SPECIAL_TOKENS:
        raise ModelFileError(f"{path}: the vocabulary is damaged")


def _check_range(table: Table, parents: int, words: int, begin: int, end: int) -> tuple[int, int, int, int]:
    return _native.check_table(table, begin, end, parents, words)


def _check_tables(path: Path, tables: NgramTables, words: int, expected: list[int]) -> list[int]:
    unigrams = tables.unigrams
    finite = unigrams.shape == (words, 2) and unigrams.dtype == np.float32 and bool(np.all(np.isfinite(unigrams)))
    if not finite or unigrams.min() < 0 or unigrams[:, 0].max() > 1 or unigrams[BOS, 0] != 0:
        raise ModelFileError(f"{path}: the unigrams hold values that are no probabilities; the model is damaged")
    checksums = []
    parents = words
    for k, (table, longest, checksum) in enumerate(zip(tables.tables, tables.longest, expected, strict=True), 2):
        if table.ndim != 2 or table.shape[1] != 2 or table.dtype != np.uint64 or len(table) % 4:
            raise ModelFileError(f"{path}: the table of order {k} has the wrong shape; the model is damaged")
        results = run_ranges(partial(_check_range, table, parents, words), len(table), thread_count())
        found = sum(result[0] for result in results) % 2**64
        bad = [result[3] for result in results if result[3] >= 0]
        if bad or found != checksum or max(result[2] for result in results) > longest or longest >= len(table):
            where = f", at slot {bad[0]}" if bad else ""
            raise ModelFileError(f"{path}: the table of order {k} is damaged{where}; copy or train the model again")
        checksums.append(found)
        parents = len(table)
    return checksums
