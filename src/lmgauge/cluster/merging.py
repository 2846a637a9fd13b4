"""Puts shards together to the result of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from lmgauge.api.inputs import PATHS, PathLike, Text, corpus_of
from lmgauge.cluster.record import find_records
from lmgauge.errors import InputError
from lmgauge.evaluation.results import Evaluation, Evaluations
from lmgauge.files import refuse_replacing

_KINDS = {"evaluation": "evaluation"}
"""Kind of job -> the module here whose `merge` puts its shards together."""


def merge(
    shards: PathLike | Sequence[PathLike], output: PathLike | None = None, *, text: Text | None = None
) -> Evaluation | Evaluations:
    """Put all shards of a job together: `lmgauge merge`. The result is that of the job without shards, to the bit.

    Args:
        shards: the folder of all shards, or their folders, in any order.
        output: of an evaluation, the run folder to write.
        text: what the shards read, if it is not where they remember it.

    Returns:
        What the job gives without shards.

    Raises:
        InputError: a shard is damaged, or the text is not what the shards read.
        UsageError: a shard is missing or there twice, or they are of different jobs.

    Example:
        >>> import lmgauge, tempfile
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "a dog"])
        >>> job = lmgauge.EvaluationJob(lmgauge.train("laplace", text, order=2), text)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = [lmgauge.run_shard(job, rank, 2, folder).parts for rank in range(2)]
        ...     merged = merge(folder, text=text)
        >>> done, round(merged.perplexity, 4)
        ([1, 0], 4.1369)
    """
    paths = [Path(path) for path in ([shards] if isinstance(shards, PATHS) else shards)]
    records = find_records(paths)
    if records[0].job not in _KINDS:
        raise InputError(f"{records[0].path}: is a shard of a job that this lmgauge does not know: {records[0].job!r}")
    target = None if output is None else Path(output)
    if target is not None:
        refuse_replacing({"-o": target}, [*map(str, paths), *(str(record.path) for record in records)])
    corpus = None if text is None else corpus_of(text)
    put_together = import_module(f"lmgauge.cluster.{_KINDS[records[0].job]}").merge
    result: Evaluation | Evaluations = put_together(records, corpus, target)
    return result
