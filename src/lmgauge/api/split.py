"""`lmgauge.split`: a text into training, validation and test part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.api.types import PathLike, Text
from lmgauge.choices import DEFAULT_FRACTIONS, DEFAULT_SEED, SplitBy
from lmgauge.declaration import verb
from lmgauge.option_numbers import Natural
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.text.split import SplitText


@verb
def split(
    text: Text,
    output: PathLike,
    *,
    fractions: Sequence[float] = DEFAULT_FRACTIONS,
    seed: Natural = DEFAULT_SEED,
    by: SplitBy | None = None,
    reading: ReadingOptions = ReadingOptions(),
    **fields: Any,
) -> SplitText:
    """Split text into train, validation and test, the same for the same seed on every machine: `lmgauge split`.

    Lines are written to train.txt, validation.txt and test.txt in their order; records and documents to train.jsonl and so
    on.

    Args:
        text: files or globs, or a `Corpus`; it is read twice.
        output: folder to write the parts to.
        fractions: shares of train, validation and test, which sum to 1; 0.8, 0.1 and 0.1 if not given. A part with share 0
            is not written.
        seed: same seed, same parts.
        by: keep the segments of a group together, or of a document; naming a field as `group`, or a rule as `document`, does
            the same.
        reading: how files are read.
        fields: those of `reading`, by name.

    Raises:
        InputError: the text is empty, cannot be used, or changed meanwhile.
        OutputError: the folder cannot be written to.
        UsageError: fractions or seed out of range; one group only; a file would be replaced.

    Shell:
        lmgauge split corpus.txt --fractions 0.9,0.05,0.05 --seed 1 -o parts/
        lmgauge split 'books/*.txt' --by group -o parts/

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     split(Corpus.from_strings([f"line {i}" for i in range(100)]), folder, seed=1)
        <SplitText: train 80, validation 10, test 10 segments, seed 1>
    """
    from lmgauge.api.inputs import corpus_of
    from lmgauge.text.split import write_split

    corpus = corpus_of(text, reading).without_given("split")
    if by is None and reading.group != ReadingOptions.group:
        by = "group"
    elif by is None and reading.document is not None:
        by = "document"
    return write_split(corpus, output, fractions, seed=seed, by=by)
