"""Stored bases of divergences: bytes changed, most of them in the footer, a part sealed anew; rows and headers that lie."""

from __future__ import annotations

import math
import random
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lmgauge
from lmgauge import Corpus
from lmgauge.evaluation.divergence.base_file import BaseFile
from tests.evaluation.divergence import bases
from tests.fuzz.mutations import changed_value, drawn_number
from tests.fuzz.table import Attempt

TEXTS = ["the cat sat", "the dog", "a cat sat on the mat"]
KINDS = ("top", "float32", "bfloat16", "states")


def prepare(folder: Path) -> Attempt:
    path = folder / "changed.base"
    corpus = Corpus.from_strings(TEXTS * 2)
    model = lmgauge.train("witten-bell", corpus, order=2)
    candidate = lmgauge.train("laplace", corpus, order=1)
    whole = [(bases.write(path, kind).read_bytes(), False) for kind in KINDS]
    rows = {kind: bases.rows_of(kind) for kind in KINDS}
    for exact in (None, "float32"):
        lmgauge.save_base(model, corpus, path, exact=exact, base_top=3, base_samples=8)  # type: ignore[arg-type]
        whole.append((path.read_bytes(), True))

    def attempt(chance: random.Random) -> str:
        content, of_model = chance.choice(whole)
        if chance.random() < 0.5:
            of_model = False
            if not _write_lies(path, rows, chance):
                return "not a file"
        else:
            path.write_bytes(bases.changed(content, chance))
        # The numbers are those that the file was sealed with, whatever they are: nothing but memory is held against it.
        with BaseFile(path) as file:
            assert all(part.token.max(initial=0) < file.header.vocabulary_size for part in file.rows())
        if of_model:
            with BaseFile(path) as file, np.errstate(all="ignore"):
                lmgauge.divergence(file, candidate, corpus, top_k=1)
        return "read"

    return attempt


def _write_lies(path: Path, rows: dict[str, Any], chance: random.Random) -> bool:
    """Write a file, sealed as all are, of which a few values or facts of the header are others, if Parquet can hold them."""
    kind = chance.choice(KINDS)
    own, header = rows[kind], {}
    for _ in range(chance.randint(0, 2)):
        # Lists of wrong lengths are not written: pyarrow itself dies of them.
        name = chance.choice([field.name for field in fields(own) if field.name != "draws"])
        values = getattr(own, name).copy()
        if isinstance(values, np.ndarray) and values.size:
            at = chance.randrange(values.size)
            number = values.flat[at].item() + chance.choice([-1, 1]) if chance.random() < 0.3 else drawn_number(chance)
            with np.errstate(all="ignore"):
                values.flat[at] = _within(values.dtype, number)
            own = replace(own, **{name: values})
    if chance.random() < 0.5:
        facts = asdict(bases.header_of(kind))
        name = chance.choice([*facts])
        value = changed_value({name: facts[name]}, chance, 1).get(name)
        header = {} if isinstance(value, str) and not value.isascii() else {name: value}
    try:
        bases.write(path, kind, own, **header)
    except (pa.ArrowException, OverflowError, TypeError):
        return False
    return True


def _within(dtype: np.dtype[Any], number: Any) -> Any:
    """Return a number as near to another as a type has it."""
    if dtype.kind == "f":
        return float(min(max(number, -(10**300)), 10**300)) if isinstance(number, int) else number
    whole = number if isinstance(number, int) else int(number) if math.isfinite(number) else 0
    return whole % (1 << (8 * dtype.itemsize)) if dtype.kind == "u" else np.int64(min(max(whole, -(2**63)), 2**63 - 1))
