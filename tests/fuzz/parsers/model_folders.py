"""Small model folders of all kinds, as the bytes of their files, and how one of these files is changed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import lmgauge
from lmgauge import Corpus
from lmgauge.base.choices import SMOOTHING_KINDS
from tests.fuzz.mutations import changed, changed_value, drawn_number

Files = dict[str, bytes]
"""What a folder holds: bytes by path."""

LINES = ["the cat sat on the mat", "the dog sat", "a cat and a dog", "the mat", "grün 漢字"]
DTYPES = {"U64": "<u8", "U32": "<u4", "I64": "<i8", "F32": "<f4", "U8": "u1"}
FLOATS = [0.0, -0.0, 0.5, 1.0, 1.5, -0.5, 40.0, 1e30, -1e30, np.inf, -np.inf, np.nan, 1e-45]
WHOLE = [0, 1, 2, 3, 7, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1]


def whole_models(folder: Path) -> dict[str, Files]:
    """Train a small model of each kind and return its files."""
    corpus = Corpus.from_strings(LINES * 2)
    models: dict[str, Any] = {
        kind: lmgauge.train(kind, corpus, order=2 + number % 2, k=0.5 if kind == "lidstone" else None)
        for number, kind in enumerate(SMOOTHING_KINDS)
    }
    models["closed"] = lmgauge.train("kneser-ney", corpus, order=2, vocabulary="closed", reserved="unk")
    models["stream"] = lmgauge.train("witten-bell", corpus, order=3, context="stream", min_count=2, normalizer="ccnet")
    models["without-eos"] = lmgauge.train("laplace", corpus, order=1, eos=False, reserved="escape")
    models["pruned"] = lmgauge.train("modified-kneser-ney", corpus, order=3, prune=1e-3)
    models["characters"] = lmgauge.train("witten-bell", corpus, order=2, tokenizer="character", vocabulary="spelled")
    spelled = lmgauge.train("witten-bell", corpus, order=2, vocabulary="spelled")
    models |= {"spelled": spelled, "cached": lmgauge.cache(spelled)}
    first, second = models["kneser-ney"], lmgauge.train("laplace", corpus, order=1)
    models["mixture"] = lmgauge.mix([first, second], weights=[0.75, 0.25])
    alike = lmgauge.train("laplace", corpus, order=1, vocabulary="spelled")
    models["spelled-mixture"] = lmgauge.mix([spelled, alike], weights=[0.5, 0.5])
    within = folder / "within"
    lmgauge.train("modified-kneser-ney", corpus, order=3, output=within, memory="1GB")
    files = {"within": files_of(within)}
    shutil.rmtree(within)
    for name, model in models.items():
        getattr(model, "model", model).save(folder / "whole")
        files[name] = files_of(folder / "whole")
        shutil.rmtree(folder / "whole")
    return files


def files_of(folder: Path) -> Files:
    """Return what a folder holds."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def put(files: Files, folder: Path) -> Path:
    """Make a folder hold these files, and no others."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def changed_file(name: str, content: bytes, chance: random.Random) -> bytes:
    """Return a file with a few bytes changed, or what it says; at times it says the same in other bytes."""
    draw = chance.random()
    with suppress(ValueError, TypeError, KeyError, RecursionError):  # it is damaged already
        if name.endswith(".json") and draw < 0.7:
            value = json.loads(content)
            if draw < 0.1:
                return json.dumps(value, indent=chance.choice([None, 0, 3]), sort_keys=chance.random() < 0.5).encode()
            return as_json(changed_value(value, chance, chance.choice([1, 1, 2])))
        if name.endswith(".safetensors") and draw < 0.7:
            if draw < 0.1:
                arrays = tensors(content)[1]
                return with_tensors({key: arrays[key] for key in chance.sample([*arrays], len(arrays))})
            return changed_tensors(content, chance)
    return changed(content, chance, 2)


def as_json(value: Any) -> bytes:
    """Return a value as a file."""
    return json.dumps(value).encode()


def tensors(content: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header of a safetensors file, and its arrays."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    if not isinstance(header, dict):
        raise TypeError("the header was damaged before")
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            arrays[name] = np.frombuffer(content[8 + size + begin : 8 + size + end], DTYPES[entry["dtype"]])
            arrays[name] = arrays[name].reshape(entry["shape"]).copy()
    return header, arrays


def with_tensors(arrays: dict[str, NDArray[Any]]) -> bytes:
    """Return a safetensors file of arrays."""
    names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
    header: dict[str, Any] = {}
    at = 0
    for name, array in arrays.items():
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    return with_header(header, b"".join(array.tobytes() for array in arrays.values()))


def with_header(header: Any, data: bytes) -> bytes:
    """Return a safetensors file with whatever header."""
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % 64)
    return len(text).to_bytes(8, "little") + text + data


def changed_tensors(content: bytes, chance: random.Random) -> bytes:
    """Return a safetensors file of which the header lies, or arrays hold other values or have other shapes."""
    header, arrays = tensors(content)
    if chance.random() < 0.2:
        size = int.from_bytes(content[:8], "little")
        return with_header(changed_value(header, chance, 2), content[8 + size :])
    for _ in range(chance.choice([1, 1, 2, 5])):
        name = chance.choice([*arrays])
        arrays[name] = changed_array(arrays[name], chance)
        if chance.random() < 0.03:
            other = chance.choice([*arrays])
            arrays[name], arrays[other] = arrays[other], arrays[name]
        if chance.random() < 0.03 and len(arrays) > 1:
            del arrays[name]
    return with_tensors(arrays)


def changed_array(array: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    """Return an array with a value changed, rows exchanged or left out, all of it alike, or another shape or type."""
    if array.ndim == 0:
        other = changed_array(array.reshape(1), chance)
        return other.reshape(()) if other.size == 1 else other
    draw = chance.random()
    if array.size == 0 or draw < 0.03:
        return array.reshape(-1) if chance.random() < 0.5 else np.concatenate([array, array])
    if draw < 0.06:
        return array.view(chance.choice(["<u4", "<f4", "u1"])) if array.shape[-1] * array.itemsize % 4 == 0 else array[:-1]
    if draw < 0.1:
        return cast(NDArray[Any], array[: chance.randrange(len(array))])
    if draw < 0.12:
        return np.full_like(array, chance.choice([0, 1, np.iinfo(array.dtype).max if array.dtype.kind in "ui" else 2]))
    if draw < 0.2:
        one, other = chance.randrange(len(array)), chance.randrange(len(array))
        array[[one, other]] = array[[other, one]]
        return array
    flat = array.reshape(-1)
    at = chance.randrange(flat.size)
    if draw < 0.4:
        flat.view("u1")[chance.randrange(flat.nbytes)] ^= 1 << chance.randrange(8)
    elif array.dtype.kind == "f" or (array.dtype == np.uint32 and draw < 0.7):  # tables hold both
        flat.view("<f4")[at] = chance.choice(FLOATS) if chance.random() < 0.4 else 1.3 * chance.random()
    else:
        number = flat[at].item() + chance.choice([-1, 1]) if draw < 0.85 else chance.choice(WHOLE)
        flat[at] = np.array(number % (1 << (8 * array.itemsize)), np.uint64).astype(array.dtype)
    return array


def changed_config(config: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return a config.json of which one or two entries, wherever they stand, are others."""
    if chance.random() < 0.2:
        return {**config, chance.choice([*config]): drawn_number(chance)}
    value = changed_value(config, chance, chance.choice([1, 1, 2]))
    return cast(dict[str, Any], value)


def of_another_kind(files: Files) -> bool:
    """Return True if a config.json names a kind of model that a library might know: what looks for it takes seconds."""
    for name in configs(files):
        with suppress(ValueError, RecursionError):
            config = json.loads(files[name])
            kind = config.get("model_type") if isinstance(config, dict) else None
            if isinstance(kind, str) and not kind.startswith("lmgauge-"):
                return True
    return False


def configs(files: Files) -> Iterator[str]:
    """Yield the names of the config.json files, those of parts before those of what they are parts of."""
    yield from sorted((name for name in files if Path(name).name == "config.json"), key=lambda name: -name.count("/"))
