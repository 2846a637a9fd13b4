"""`lmgauge.split`: a text into training, validation and test part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import PathLike, Text, corpus_of
from lmgauge.choices import DEFAULT_SEED, SplitBy
from lmgauge.result_list import data_frame
from lmgauge.shown import Shown
from lmgauge.text.split import DEFAULT_FRACTIONS, WrittenPart, write_split

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class SplitText(Shown):
    """A text in parts on disk.

    Attributes:
        parts: those written, in the order train, validation, test; each with its name, path, segments and bytes.
        fractions: the shares asked for.
        seed: the same seed gives the same split.
        text_sha256: digest of the text that was split.
        notes: what was changed or left out while it was read.

    Example:
        >>> import tempfile, lmgauge
        >>> text = lmgauge.Corpus.from_strings([f"line {i}" for i in range(100)])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = lmgauge.split(text, folder, fractions=[0.5, 0.25, 0.25])
        >>> [(part.name, part.path.name) for part in result.parts], result.segments
        ([('train', 'train.jsonl'), ('validation', 'validation.jsonl'), ('test', 'test.jsonl')], 100)
    """

    parts: tuple[WrittenPart, ...]
    fractions: tuple[float, ...]
    seed: int
    text_sha256: str
    notes: tuple[str, ...] = ()

    @property
    def segments(self) -> int:
        """Return the number of segments in all parts."""
        return sum(part.segments for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as `lmgauge split --json` prints them."""
        parts = [{"name": p.name, "path": str(p.path), "segments": p.segments, "bytes": p.bytes} for p in self.parts]
        return {
            "seed": self.seed,
            "fractions": list(self.fractions),
            "segments": self.segments,
            "text_sha256": self.text_sha256,
            "parts": parts,
        }

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each part: its name, path, segments and bytes.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return data_frame(self.to_dict()["parts"])

    def _in_brief(self) -> str:
        parts = ", ".join(f"{part.name} {part.segments:,}" for part in self.parts)
        return f"{parts} segments, seed {self.seed}"


def split(
    text: Text,
    output: PathLike,
    *,
    fractions: Sequence[float] = DEFAULT_FRACTIONS,
    seed: int = DEFAULT_SEED,
    by: SplitBy | None = None,
) -> SplitText:
    """Split text into train, validation and test, the same for the same seed on every machine: `lmgauge split`.

    Args:
        text: a path, several, or a `Corpus`; it is read twice.
        output: the folder for train.txt, validation.txt and test.txt (.jsonl for records and documents).
        fractions: shares of the three parts; they sum to 1. A part with share 0 is not written.
        seed: a whole number from 0 to 2**64 - 1.
        by: "group" or "document" keeps the segments of each together; see `Corpus.from_files`.

    Raises:
        InputError: the text is empty, cannot be used, or changed meanwhile.
        OutputError: the folder cannot be written to.
        UsageError: fractions or seed out of range; one group only; a file would be replaced.

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     split(Corpus.from_strings([f"line {i}" for i in range(100)]), folder, seed=1)
        <SplitText: train 80, validation 10, test 10 segments, seed 1>
    """
    corpus = corpus_of(text).without_given("split")
    parts = write_split(corpus, output, fractions, seed=seed, by=by)
    report = corpus.report
    return SplitText(tuple(parts), tuple(fractions), seed, report.sha256, tuple(report.notes()))
