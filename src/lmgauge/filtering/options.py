"""The options for files of documents; light, as the command line imports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from lmgauge.choices import BadRecordPolicy, Format
from lmgauge.errors import UsageError

BY = "by"
"""Name of the setting of scores that says which field chose the model."""


@dataclass(frozen=True)
class RecordOptions:
    """How records are read.

    Attributes:
        field: the field or column with the text.
        lines: each line of a document is a sentence of its own; else a document is one segment.
        by: the field whose value chooses the model.
        group: the field whose values are the groups of a report and of percentiles; None for that of `by`.
        id: the field that names a record, in rejects and examples.
        format: of all files; None to go by their names.
        errors: "reject" bad records, which are counted and put aside, or "fail".

    Example:
        >>> RecordOptions(field="body", by="lang").group_field
        'lang'
    """

    field: str = "text"
    lines: bool = False
    by: str | None = None
    group: str | None = None
    id: str | None = None
    format: Format | None = None
    errors: BadRecordPolicy = "reject"

    def scored_by(self) -> dict[str, str]:
        """Return what of it changes scores, by name, as percentiles carry it."""
        chosen = {} if self.by is None else {BY: self.by}
        return {"field": self.field, "lines": "yes" if self.lines else "no", **chosen}

    def check_groups(self) -> None:
        """Refuse percentiles of perplexities of several models.

        Raises:
            UsageError: a field chooses the model, and groups are the values of another.
        """
        if self.by is not None and self.group_field != self.by:
            raise UsageError(
                f"the field {self.by!r} chooses the model, so percentiles are by that field: perplexities of several models "
                "share no scale; leave out the other group"
            )

    @property
    def group_field(self) -> str | None:
        """The field of the groups."""
        return self.by if self.group is None else self.group


@dataclass(frozen=True)
class FilterWork:
    """How files are processed.

    Attributes:
        threads: blocks of a file parsed and scored at a time, in each process.
        workers: processes, each with a file at a time; None for this one alone.
        ray: address of a cluster of Ray, or `local`, whose tasks take a file each.
        shard: number of a share of the files, from 0, and how many shares there are; None for all files.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("one", "two"):
        ...         _ = Path(folder, f"{name}.txt").write_text("a b\\nx y z\\n")
        ...     inputs, half = f"{folder}/*.txt", FilterWork(threads=1, shard=(0, 2))
        ...     lmgauge.filter_documents({"m": model}, inputs, f"{folder}/out/", max_perplexity=3, work=half).files
        1
    """

    threads: int | None = None
    workers: int | None = None
    ray: str | None = None
    shard: tuple[int, int] | None = None


class RecordKeywords(TypedDict, total=False):
    """The fields of `RecordOptions`, each of which may be left out."""

    field: str
    lines: bool
    by: str | None
    group: str | None
    id: str | None
    format: Format | None
    errors: BadRecordPolicy


class RuleKeywords(TypedDict, total=False):
    """The fields of `FilterRules`, each of which may be left out."""

    max_perplexity: float | None
    min_perplexity: float | None
    keep: str | None
    min_bytes: int | None
    max_bytes: int | None
    min_tokens: int | None
    max_unseen: float | None
    buckets: str | None
    judged_by: str | None


class FilterKeywords(RecordKeywords, RuleKeywords, total=False):
    """How records are read, and which documents stay."""
