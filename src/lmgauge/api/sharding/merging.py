"""Puts shards together to the result of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from lmgauge.api.inputs import PATHS, PathLike, Text
from lmgauge.base.declaration import verb

if TYPE_CHECKING:
    from lmgauge.evaluation.results import Evaluation, Evaluations
    from lmgauge.filtering.results import FilteredDocuments

Merged = Union["Evaluation", "Evaluations", "FilteredDocuments"]


@verb
def merge(shards: PathLike | Sequence[PathLike], output: PathLike | None = None, *, text: Text | None = None) -> Merged:
    """Put all shards of a job together: `lmgauge merge`.

    The result is that of the same job without shards, to the bit. The shards of `filter` and `score` have written their
    documents to one folder already; for these, the counts of all documents are returned.

    Args:
        shards: the folder that `--shard` wrote to, or the folders of all shards, in any order.
        output: run folder to write, of an evaluation.
        text: the text that was scored, if it has moved since; may be given several times.

    Returns:
        What the job gives without shards.

    Raises:
        InputError: a shard is damaged, or the text is not what the shards read.
        UsageError: a shard is missing or there twice, or they are of different jobs.

    Shell:
        lmgauge merge shards/ -o run/
        lmgauge merge shard-1/ shard-2/ -o run/

    Example:
        >>> import lmgauge, tempfile
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "a dog"])
        >>> job = lmgauge.sharding.EvaluationJob(lmgauge.train("laplace", text, order=2), text)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = [lmgauge.sharding.run_shard(job, rank, 2, folder).parts for rank in range(2)]
        ...     merged = merge(folder, text=text)
        >>> done, round(merged.perplexity, 4)
        ([1, 0], 4.1369)
    """
    from pathlib import Path

    from lmgauge.api.sharding.evaluation import put_together
    from lmgauge.filtering.filter_files import is_output_folder, read_folder

    paths = [Path(path) for path in ([shards] if isinstance(shards, PATHS) else shards)]
    if len(paths) == 1 and is_output_folder(str(paths[0])) and output is None:
        return read_folder(str(paths[0]))
    return put_together(paths, output, text)
