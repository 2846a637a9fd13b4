"""The scores of one model on the items of a task: a row for each score, kept as `items.parquet` of a run folder."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmgauge.base.decoding import decode
from lmgauge.base.errors import InputError
from lmgauge.base.files import writing_directory
from lmgauge.base.json_text import from_json
from lmgauge.numerics.exact import Floats, Ints
from lmgauge.records.parquet_files import open_parquet

ITEMS_FILE = "items.parquet"
_KEY = b"lmgauge.items"


@dataclass(frozen=True)
class ItemsOrigin:
    """Where scores of items come from."""

    model: str
    score: str  # what was scored, as the log calls it: "acc", "exact_match"
    program: str  # that wrote the log, by the importer's name
    files: tuple[str, ...] = ()  # names of the log's files
    higher_is_better: bool = True
    lowest: float = 0.0  # the range of the scores
    highest: float = 1.0
    notes: tuple[str, ...] = ()  # what a reader must know of how they were read


@dataclass(frozen=True, eq=False)
class ItemScores:
    """The scores of one model on items; an item that was tried several times has several rows."""

    origin: ItemsOrigin
    item: Sequence[str]  # [rows], its id, unique within its subset
    score: Floats  # float64 [rows], finite
    sample: Ints  # int64 [rows], 0, 1, ... of the rows of an item, in the log's order
    subset: Sequence[str]  # [rows], task, subject or split that the item is of; "" where there are none
    cluster: Sequence[str]  # [rows], what makes items depend on each other (passage, template); "" where nothing is known
    prompt: Sequence[str]  # [rows], hex digest of what the model was asked; "" where the log does not say it

    def __len__(self) -> int:
        return len(self.score)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write the run folder."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = ("item", "score", "sample", "subset", "cluster", "prompt")
        table = pa.table({name: getattr(self, name) for name in names})
        about = json.dumps({name: getattr(self.origin, name) for name in self.origin.__dataclass_fields__})
        with writing_directory(folder, is_ours=is_items_folder) as made:
            pq.write_table(table.replace_schema_metadata({_KEY: about}), made / ITEMS_FILE, compression="zstd")


def is_items_folder(path: str | os.PathLike[str]) -> bool:
    """Return True for a folder that holds scores of items and nothing else."""
    return os.path.isdir(path) and os.listdir(path) == [ITEMS_FILE]


def read_items(folder: str | os.PathLike[str]) -> ItemScores:
    """Read a run folder of scores of items."""
    # Raises InputError: it is none, or is damaged.
    path = Path(folder, ITEMS_FILE)
    if not path.is_file():
        raise InputError(f"{folder}: has no scores of items; `lmgauge import LOG --score NAME -o RUN` makes such a run")
    with open_parquet(path) as file:
        table = file.read()
    about = (table.schema.metadata or {}).get(_KEY)
    if about is None:
        raise InputError(f"{path}: is not a table of scores of items that lmgauge wrote; import the log again")
    origin = decode(from_json(about), ItemsOrigin, path, "what scores of items say of themselves", "import the log again")
    strings = {name: table[name].to_pylist() for name in ("item", "subset", "cluster", "prompt")}
    score, sample = (np.asarray(table[name].to_numpy(), kind) for name, kind in (("score", float), ("sample", np.int64)))
    return ItemScores(origin, score=score, sample=sample, **strings)
