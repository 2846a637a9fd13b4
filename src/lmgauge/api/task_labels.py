"""The functions of `lmgauge.tasks` for labels: F1 of lists and of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.api.types import PathLike
from lmgauge.choices import Average
from lmgauge.declaration import verb
from lmgauge.tasks.settings import ComparisonSettings, Reading

if TYPE_CHECKING:
    from lmgauge.tasks.comparison import Systems


@verb
def score_labels(
    *,
    gold: Sequence[str],
    predicted: Mapping[str, Sequence[str]] | Sequence[str],
    labels: Sequence[str] | None = None,
    average: Average = "macro",
    documents: Sequence[str] | None = None,
    settings: ComparisonSettings = ComparisonSettings(),
    **fields: Any,
) -> Systems:
    """Return precision, recall and F1 of labeled outputs through scikit-learn, with intervals, each against the first.

    Args:
        gold: the right label of each segment.
        predicted: a list of labels by the name of each system; or one list, of a system called "system".
        labels: that count; all that occur if not given.
        average: which F1 is tested; labels alike (macro), of the sums (micro), or by how often they are gold (weighted).
        documents: the name of the document of each segment.
        settings: as `score_systems`.
        fields: those of `settings`, by name.

    Returns:
        The systems; the figures of each label are in `systems[0].score.labels`.

    Raises:
        InputError: lists of different length, or something is not a string.
        UsageError: an option is out of range.
        MissingExtraError: scikit-learn is not installed.

    Example:
        >>> systems = score_labels(gold=["cat", "dog", "cat"], predicted={"a": ["cat", "cat", "cat"]})
        >>> round(systems[0].score.score, 3)
        0.4
    """
    from lmgauge.tasks.labels import compare_labels
    from lmgauge.tasks.scoring import document_codes
    from lmgauge.text.labels import BY_NAMES, UNKNOWN

    codes = None if documents is None else document_codes(documents, len(gold))
    outputs = predicted if isinstance(predicted, Mapping) else {"system": predicted}
    return compare_labels(gold, outputs, labels, average, codes, UNKNOWN if codes is None else BY_NAMES, settings)


@verb
def score_label_files(
    *,
    gold: PathLike,
    predicted: PathLike | Iterable[PathLike],
    labels: Sequence[str] | None = None,
    average: Average = "macro",
    reading: Reading = Reading(),
    settings: ComparisonSettings = ComparisonSettings(),
    **fields: Any,
) -> Systems:
    """Do what `score_labels` does with files, a label on each line (or record); white space around labels is left out.

    Args:
        gold: a file with the right label of each segment.
        predicted: a file for each system.
        labels: labels that count; all that occur if not given.
        average: which F1 is tested; labels alike (macro), of the sums (micro), or by how often they are gold (weighted).
        reading: as `score_files`; a byte order mark at the head of a file is never part of a label.
        settings: as `score_systems`.
        fields: those of `reading` and `settings`, by name.

    Raises:
        InputError: a file is missing, ends before another, holds what is not text, or all gold labels are blank.
        UsageError, MissingExtraError: as `score_labels`.

    Shell:
        lmgauge f1 gold.txt tagger-a.txt tagger-b.txt
        lmgauge f1 gold.tsv a.tsv b.tsv --field label --average micro

    Example:
        >>> import tempfile
        >>> from pathlib import Path as File
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name, label in (("gold", "cat"), ("a", "cat")):
        ...         _ = File(folder, f"{name}.txt").write_text(label)
        ...     score_label_files(gold=f"{folder}/gold.txt", predicted=[f"{folder}/a.txt"])[0].score.score
        1.0
    """
    from lmgauge.tasks.labels import compare_labels, read_labels

    right, outputs, codes, by = read_labels(gold, predicted, reading)
    return compare_labels(right, outputs, labels, average, codes, by, settings)
