"""The scores of one model on the items of a task: a row for each score, kept as `items.parquet` of a run folder."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lmgauge.base.decoding import decode
from lmgauge.base.display import Displayable
from lmgauge.base.errors import InputError
from lmgauge.base.escaping import counted
from lmgauge.base.files import reason_of, writing_directory
from lmgauge.base.json_text import from_json
from lmgauge.base.result_list import ResultList
from lmgauge.numerics.exact import Floats, Ints
from lmgauge.numerics.intervals import sums_by
from lmgauge.records.parquet import open_parquet

ITEMS_FILE = "items.parquet"
_KEY = b"lmgauge.items"
_STRINGS = ("item", "subset", "cluster", "prompt", "content")


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


@dataclass(frozen=True, eq=False, repr=False)
class ItemScores(Displayable):
    """The scores of one model on items; an item that was tried several times has several rows.

    Attributes:
        origin: where they come from: model, score, program, files, range, notes.
        item: [rows], its id, unique within its subset.
        score: float64 [rows], finite.
        sample: int64 [rows], 0, 1, ... of the rows of an item, in the log's order.
        subset: [rows], task, subject or split that the item is of; "" where there are none.
        cluster: [rows], what makes items depend on each other (passage, template); "" where nothing is known.
        prompt: [rows], hex digest of what the model was asked, few-shot examples and chat template included; "" where the
            log does not say it.
        content: [rows], hex digest of the item as the task has it, the same for all prompts; "" or nothing where the log
            does not say it.

    Example:
        >>> import lmgauge, numpy as np
        >>> from lmgauge.tasks.items.table import ItemsOrigin
        >>> blank = ["", "", ""]  # "b" was tried twice
        >>> origin, scores, samples = ItemsOrigin("m", "acc", "columns"), np.array([1.0, 0, 1]), np.array([0, 0, 1])
        >>> lmgauge.tasks.ItemScores(origin, ["a", "b", "b"], scores, samples, blank, blank, blank).mean
        0.75
    """

    origin: ItemsOrigin
    item: Sequence[str]
    score: Floats
    sample: Ints
    subset: Sequence[str]
    cluster: Sequence[str]
    prompt: Sequence[str]
    content: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.score)

    @cached_property
    def codes(self) -> Ints:
        """Return the number of the item of each row, int64 [rows], counted in the order in which they come."""
        numbers: dict[tuple[str, str], int] = {}
        rows = zip(self.subset, self.item, strict=True)
        return np.fromiter((numbers.setdefault(key, len(numbers)) for key in rows), np.int64, len(self))

    @cached_property
    def item_means(self) -> Floats:
        """Return the score of each item, the mean over its samples, float64 [items], in the order of `codes`."""
        return sums_by(self.codes, self.score) / np.bincount(self.codes)

    @property
    def mean(self) -> float:
        """Return the mean over items of the mean over the samples of each."""
        return float(self.item_means.mean())

    def to_dict(self) -> dict[str, Any]:
        """Return where the scores come from, how many there are, and their mean."""
        about = asdict(self.origin) | {"files": list(self.origin.files)}
        notes = list(about.pop("notes"))
        counts = {"items": self.codes.max(initial=-1).item() + 1, "scores": len(self)}
        counts |= {f"{name}s": len({*getattr(self, name)} - {""}) for name in ("subset", "cluster")}
        return about | {"mean": self.mean} | counts | {"notes": notes}

    def _in_brief(self) -> str:
        return f"{self.origin.model}: {self.origin.score} {self.mean:.4f}, {counted(len(self), 'score')}"

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write the run folder."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {name: getattr(self, name) for name in ("score", "sample", *_STRINGS)}
        table = pa.table(columns | {"content": self.content or [""] * len(self)})
        about = json.dumps(asdict(self.origin))
        with writing_directory(folder, is_ours=is_items_folder) as made:
            pq.write_table(table.replace_schema_metadata({_KEY: about}), made / ITEMS_FILE, compression="zstd")


class ItemRuns(ResultList[ItemScores]):
    """Runs of scores of items, one a model or a score of a log.

    Example:
        >>> import lmgauge, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = pathlib.Path(folder, "two.csv")
        ...     _ = table.write_text("item,a,b\\n1,1,0\\n2,1,1\\n", encoding="utf-8")
        ...     runs = lmgauge.tasks.import_items(table, f"{folder}/runs", score=["a", "b"])
        >>> [run.mean for run in runs]
        [1.0, 0.5]
    """

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each run: where it comes from, counts, and its mean."""
        return [run.to_dict() for run in self]


def is_items_folder(path: str | os.PathLike[str]) -> bool:
    """Return True for a folder that holds scores of items and nothing else."""
    return os.path.isdir(path) and os.listdir(path) == [ITEMS_FILE]


def read_items(folder: str | os.PathLike[str]) -> ItemScores:
    """Read a run folder of scores of items."""
    # Raises InputError: it is none, or is damaged.
    from pyarrow import ArrowException

    path = Path(folder, ITEMS_FILE)
    if not path.is_file():
        raise InputError(f"{folder}: has no scores of items; `lmgauge import LOG --score NAME -o RUN` makes such a run")
    try:
        with open_parquet(path) as file:
            table = file.read()
    except (ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read, or is damaged ({reason_of(error)}); import the log again") from error
    about = (table.schema.metadata or {}).get(_KEY)
    if about is None or not {"score", "sample", *_STRINGS} <= {*table.column_names}:
        raise InputError(f"{path}: is not a table of scores of items that lmgauge wrote; import the log again")
    origin = decode(from_json(about), ItemsOrigin, path, "what scores of items say of themselves", "import the log again")
    strings = {name: table[name].to_pylist() for name in _STRINGS}
    score, sample = (np.asarray(table[name].to_numpy(), kind) for name, kind in (("score", float), ("sample", np.int64)))
    return ItemScores(origin, score=score, sample=sample, **strings)
