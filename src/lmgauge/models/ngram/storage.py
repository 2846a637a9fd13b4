"""N-gram models on disk: config.json, and the arrays in model.safetensors, loaded by memory map."""

# The file is an ordinary safetensors file, which any reader opens; its data begin at a multiple of 64 bytes, so that mapped
# tables lie on cache lines. It is written here, array after array, because the library's writer does not fix the alignment.
# Nothing is executed on load. Sizes, ids, probabilities and checksums are checked once, so that lookups need not check them,
# and `FileState` remembers which files were.

from __future__ import annotations

import errno
import json
import logging
import mmap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.decoding import Meta
from lmgauge.base.errors import ModelFileError, NotEnoughMemoryError
from lmgauge.base.files import writing_directory
from lmgauge.base.json_text import from_json
from lmgauge.base.memory import ask_for_huge_pages, format_bytes, is_larger_than_free
from lmgauge.base.progress import say_progress
from lmgauge.models.ngram.packed_tables import PackedTable, enough_lines
from lmgauge.models.ngram.settings import MAX_ORDER, NgramSettings, TrainingRecord
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.models.protocol import NGRAM_MODEL_TYPE, is_folder_of, read_own_config, write_config
from lmgauge.text.tokens import TOKENIZER_FILES
from lmgauge.text.vocabulary import BOS, SPECIAL_TOKENS, Vocabulary, hash_slots

if TYPE_CHECKING:
    from lmgauge.models.ngram.model import NgramModel

import os
from contextlib import suppress
from dataclasses import asdict

from lmgauge.base.files import digest, regular
from lmgauge.base.temporaries import temporary_beside
from lmgauge.base.version import __version__

FORMAT_VERSION = 2
_FILES = {"config.json", "model.safetensors", *TOKENIZER_FILES}
is_ngram_folder = is_folder_of(NGRAM_MODEL_TYPE, *_FILES)
"""Tells whether a folder is that of an n-gram model, which a new one may replace."""

_ALIGNMENT = 64
_CHUNK = 1 << 24
_LOGGER = logging.getLogger(__name__)
_DTYPES = {"U64": np.uint64, "U32": np.uint32, "I64": np.int64, "F32": np.float32, "U8": np.uint8}
_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}


@dataclass(frozen=True, kw_only=True)
class NgramConfig(TrainingRecord, NgramSettings):
    """What config.json says of a model, settings and record among it."""

    order: Annotated[int, Meta(ge=1, le=MAX_ORDER)]
    vocabulary: Literal["open", "closed"]
    vocabulary_fingerprint: str
    words_fingerprint: str | None = None  # since 0.3.0
    types: list[int]
    tokenizer: dict[str, Any]
    full_context: bool
    unseen: Annotated[float, Meta(ge=0, le=1)]
    checksums: list[Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]]  # of each table of order 2, 3, ...
    training: dict[str, str | int | float] = field(default_factory=dict)
    fingerprint: str
    sha256: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.checksums) != self.order - 1:
            raise ValueError(f"there are {len(self.checksums)} checksums for order {self.order}")


@dataclass(frozen=True)
class StoredModel:
    """A model as it is on disk."""

    config: NgramConfig
    vocabulary: Vocabulary
    tables: NgramTables
    trusted: bool = False
    remember: Callable[[], None] = lambda: None  # call it once all was checked, for later loads


class ArrayInPieces(NamedTuple):
    """An array that memory never holds as a whole."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: Callable[[], Iterator[NDArray[Any]]]  # gives it piece after piece, from the first row on

    @property
    def nbytes(self) -> int:
        """Return the size of the whole in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


def write_model(path: str | Path, model: NgramModel, lines: Sequence[ArrayInPieces] | None = None) -> None:
    """Write the folder of a model."""
    # Raises OutputError: it cannot be written; nothing is left behind.
    tables, vocabulary = model.tables, model.vocabulary
    every: Sequence[NDArray[Any] | ArrayInPieces] = [table.lines for table in tables.tables] if lines is None else lines
    arrays: dict[str, NDArray[Any] | ArrayInPieces] = {f"ngrams.{k}": array for k, array in enumerate(every, 2)}
    arrays |= {
        "vocabulary.slots": hash_slots(vocabulary.offsets, vocabulary.bytes),
        "vocabulary.offsets": vocabulary.offsets,
        "unigrams": tables.unigrams,
        "vocabulary.bytes": vocabulary.bytes,
    }
    config = model.to_dict() | {
        "fingerprint": model.fingerprint,
        "format_version": FORMAT_VERSION,
        "full_context": tables.full_context,
        "unseen": tables.unseen,
        "checksums": [f"{value:016x}" for value in model.checksums],
    }
    with writing_directory(path, is_ours=is_ngram_folder) as folder:
        for name, content in model.tokenizer.files().items():
            (folder / name).write_bytes(content)
        with (folder / "model.safetensors").open("wb") as file:
            _write_arrays(file, arrays)
        write_config(folder, config, sealed=True)


def _write_arrays(file: IO[bytes], arrays: dict[str, NDArray[Any] | ArrayInPieces]) -> None:
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
    for name, array in arrays.items():
        pieces = array.pieces() if isinstance(array, ArrayInPieces) else iter([array])
        written = sum(_write_array(file, piece) for piece in pieces)
        if written != array.nbytes:
            raise ValueError(f"{name} has {written:,} bytes, not {array.nbytes:,}")


def _write_array(file: IO[bytes], array: NDArray[Any]) -> int:
    if not array.size:
        return 0
    data = np.ascontiguousarray(array).data.cast("B")
    for begin in range(0, len(data), _CHUNK):
        chunk = data[begin : begin + _CHUNK]
        while len(chunk):  # a raw file may write less than asked for
            chunk = chunk[file.write(chunk) :]
    return len(data)


def read_model(path: Path, *, just_written: bool = False) -> StoredModel:
    """Read the folder of a model, memory-mapped, and check all of it unless this very file was checked before."""
    # path: the folder; tables of order k are uint32 [lines, 16].
    config = read_own_config(path, NgramConfig, NGRAM_MODEL_TYPE, FORMAT_VERSION, "train the model again, or copy it anew")
    now = time.time_ns()
    file = path / "model.safetensors"
    mapped, state = _map(file, config.sha256)
    larger, began = is_larger_than_free(path, len(mapped)), time.monotonic()
    if not larger:
        ask_for_huge_pages(mapped)
    trusted = just_written or state.is_known()
    if not trusted:
        _check_header(file)
    try:
        arrays = _arrays(file, mapped)
        if trusted:
            return replace(_assemble(path, config, arrays, mapped), trusted=True)
        say_progress(f"checking {format_bytes(len(mapped))} of {path}, once")
        _check_vocabulary(path, arrays)
        slots = hash_slots(arrays["vocabulary.offsets"], arrays["vocabulary.bytes"])
        as_stored = np.array_equal(slots, arrays["vocabulary.slots"])
        # Another version may hash otherwise: the strings count, and only what is used as it lies there is remembered.
        stored = _assemble(path, config, arrays | {"vocabulary.slots": slots}, mapped)
        _check_tables(path, stored)
        if larger:
            _LOGGER.warning("%s", f"{path}: all of it was checked in {time.monotonic() - began:.0f} s, once for later loads")
        return replace(stored, remember=lambda: state.remember(file, now)) if as_stored else stored
    except KeyError as error:
        raise ModelFileError(f"{path}: model.safetensors has no array {error}, which its config.json speaks of") from error


def _map(file: Path, digest: str) -> tuple[mmap.mmap, FileState]:
    try:
        with file.open("rb") as opened:
            return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ), FileState.of(opened.fileno(), digest)
    except FileNotFoundError as error:
        raise ModelFileError(f"{file}: missing; the model is incomplete") from error
    except OSError as error:
        if error.errno == errno.ENOMEM:
            size = format_bytes(file.stat().st_size)
            raise NotEnoughMemoryError(f"{file}: {size} are more than this process may map; see `ulimit -v`") from error
        raise ModelFileError(f"{file}: is damaged or truncated: {error}") from error
    except ValueError as error:
        raise ModelFileError(f"{file}: is damaged or truncated: {error}") from error


def _check_header(file: Path) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="np"):
            pass  # the library checks that header, offsets and file size agree
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(f"{file}: is damaged or truncated: {error}") from error


def _arrays(file: Path, mapped: mmap.mmap) -> dict[str, NDArray[Any]]:
    length = int.from_bytes(mapped[:8], "little")
    header = from_json(mapped[8 : 8 + length])
    arrays: dict[str, NDArray[Any]] = {}
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        if tensor["dtype"] not in _DTYPES:
            raise ModelFileError(f"{file}: array {name!r} has the type {tensor['dtype']}, which n-gram models do not have")
        begin, _ = tensor["data_offsets"]
        count = int(np.prod(tensor["shape"], dtype=np.int64))
        dtype = np.dtype(_DTYPES[tensor["dtype"]])
        array = np.frombuffer(mapped, dtype, count, 8 + length + begin) if count else np.zeros(0, dtype)
        # Another program may have written the file without the alignment; a copy then has it.
        arrays[name] = (array if not count or array.ctypes.data % 16 == 0 else array.copy()).reshape(tensor["shape"])
    return arrays


def _assemble(path: Path, config: NgramConfig, arrays: dict[str, NDArray[Any]], mapped: mmap.mmap) -> StoredModel:
    vocabulary = Vocabulary(
        arrays["vocabulary.slots"],
        arrays["vocabulary.offsets"],
        arrays["vocabulary.bytes"],
        closed=config.vocabulary == "closed",
    )
    ngrams = NgramTables(
        arrays["unigrams"],
        _tables(path, arrays, config.order, len(vocabulary)),
        full_context=config.full_context,
        unseen=config.unseen,
        source=str(path),
        mapped=mapped,
    )
    return StoredModel(config, vocabulary, ngrams)


def _check_vocabulary(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    offsets, data = arrays["vocabulary.offsets"], arrays["vocabulary.bytes"]
    sound = (
        offsets.dtype == np.int64 and data.dtype == np.uint8 and offsets.ndim == data.ndim == 1
        and 4 <= len(offsets) < 2**31 and offsets[0] == 0 and bool(np.all(offsets[1:] > offsets[:-1]))
        and int(offsets[-1]) + 8 <= len(data)
        and data[: int(offsets[3])].tobytes() == "".join(SPECIAL_TOKENS).encode()
        and np.diff(offsets[:4]).tolist() == [len(token) for token in SPECIAL_TOKENS]
    )  # fmt: skip
    if not sound:
        raise ModelFileError(f"{path}: the vocabulary is damaged")


def _check_tables(path: Path, stored: StoredModel) -> None:
    unigrams = stored.tables.unigrams
    shaped = unigrams.shape == (len(stored.vocabulary), 2) and unigrams.dtype == np.float32
    finite = shaped and bool(np.all(np.isfinite(unigrams)))
    if not finite or unigrams.min() < 0 or unigrams[:, 0].max() > 1 or unigrams[BOS, 0] != 0:
        raise ModelFileError(f"{path}: the unigrams hold values that are not probabilities; the model is damaged")
    for k, (table, checksum) in enumerate(zip(stored.tables.tables, stored.config.checksums, strict=True), 2):
        total, bad = table.check()
        if bad is not None or f"{total:016x}" != checksum:
            where = "" if bad is None else f", at line {bad}"
            raise ModelFileError(f"{path}: the table of order {k} is damaged{where}; copy or train the model again")


def _tables(path: Path, arrays: dict[str, NDArray[Any]], order: int, words: int) -> list[PackedTable]:
    # Tables, whose shapes are such that lookups stay inside them, whatever they hold.
    tables: list[PackedTable] = []
    parents = words
    for k in range(2, order + 1):
        lines = arrays[f"ngrams.{k}"]
        shaped = lines.ndim == 2 and lines.shape[1] == 16 and lines.dtype == np.uint32
        if not shaped or not enough_lines(len(lines), parents, words):
            raise ModelFileError(f"{path}: the table of order {k} has the wrong shape; the model is damaged")
        tables.append(PackedTable(lines, parents, words, last=k == order))
        parents = tables[-1].slots
    return tables


_QUIET_NS = 2_000_000_000
_MOST_BYTES = 4096
_MOST_RECORDS = 1000


# -- which files were looked at entry by entry before: a second load of the same file need not do it again --------------
# A record in the user's cache folder says of a file that it was sound: where it is (device, inode), its size, when it was
# last written and last changed (`mtime`, `ctime`, in nanoseconds), the digest of the model's config.json, which has the
# checksums of the file's parts, and the version of lmgauge. All of it must agree. Every ordinary write sets `ctime`, and no
# program can set it back, so a byte changed by one is noticed even where `mtime` is restored. Not noticed is what changes a
# file without writing to it through the file system: a failing disk, or a program that writes to the device itself. `touch`
# the file, and the next load looks at all of it.
#
# A file that was changed within the last two seconds is not remembered: a clock could be too coarse to tell a later write
# apart. On Windows nothing is, as files have no `ctime` there. A record that cannot be read or written, is damaged, or
# belongs to another user counts as none.
@dataclass(frozen=True)
class FileState:
    """A file at one moment, and what its parts must be."""

    device: int
    inode: int
    size: int  # in bytes
    mtime_ns: int  # when the content was last written, as far as the file says
    ctime_ns: int  # when the file was last changed, by the clock of the system
    digest: str  # SHA-256 of the config.json that belongs to it
    version: str = __version__  # of lmgauge, as another one may check more

    @classmethod
    def of(cls, file: Path | int, digest: str) -> FileState:
        """Return the state of a file, open or not."""
        seen = os.stat(file)
        return cls(seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, digest)

    def is_known(self) -> bool:
        """Return True if this very file was found sound before."""
        if not hasattr(os, "geteuid"):  # Windows has no ctime, and no number of a user
            return False
        try:
            with open(self._record, "rb", opener=regular) as file:
                own = os.fstat(file.fileno()).st_uid == os.geteuid()
                return own and file.read(_MOST_BYTES) == self._content
        except (OSError, ValueError):
            return False

    def remember(self, file: Path, since_ns: int) -> None:
        """Record that a file was found sound, unless it changed meanwhile; if that cannot be recorded, nothing happens."""
        if not hasattr(os, "geteuid") or since_ns - self.ctime_ns < _QUIET_NS:
            return
        with suppress(OSError):
            if FileState.of(file, self.digest) == self:
                self._write()

    @property
    def _record(self) -> Path:
        name = digest(f"{self.device} {self.inode}")[:32]
        return records_folder() / f"{name}.json"

    @property
    def _content(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def _write(self) -> None:
        folder = self._record.parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        records = list(folder.iterdir())
        if len(records) >= _MOST_RECORDS:
            for old in sorted(records, key=lambda path: path.lstat().st_mtime)[: len(records) // 2]:
                old.unlink()
        # Not `files.writing`, which writes through a link or into a pipe: whatever stands there is replaced.
        with temporary_beside(self._record, folder=False) as temporary:
            temporary.write_bytes(self._content)
            os.replace(temporary, self._record)


def records_folder() -> Path:
    """Return where the records are: `lmgauge/verified` in the user's cache folder (XDG_CACHE_HOME, or ~/.cache)."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(chosen) if os.path.isabs(chosen) else Path(os.path.expanduser("~"), ".cache")
    return root / "lmgauge" / "verified"
