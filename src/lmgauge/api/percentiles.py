"""`lmgauge.learn_percentiles`: percentiles of perplexity by group, frozen for filters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from lmgauge.api.documents import Inputs, opened_engine, scorer_of
from lmgauge.api.inputs import PathLike
from lmgauge.choices import DEFAULT_SEED
from lmgauge.errors import UsageError
from lmgauge.files import refuse_replacing
from lmgauge.filtering.learn_files import learn_files
from lmgauge.filtering.options import FilterWork, RecordKeywords, RecordOptions
from lmgauge.filtering.percentile_sample import SAMPLE_SIZE, SampleSettings
from lmgauge.filtering.percentiles import Percentiles
from lmgauge.filtering.plan import FilterPlan
from lmgauge.filtering.scorer import Model
from lmgauge.models.network.options import ScoringOptions
from lmgauge.text.streams import find_sources


def learn_percentiles(
    model: Model | Mapping[str, Model],
    inputs: Inputs,
    *,
    sample: int | None = SAMPLE_SIZE,
    seed: int = DEFAULT_SEED,
    output: PathLike | None = None,
    scoring: ScoringOptions | None = None,
    work: FilterWork | None = None,
    **options: Unpack[RecordKeywords],
) -> Percentiles:
    """Return the percentiles of the perplexity of documents, by group, learned on a sample: `lmgauge percentiles`.

    The sample is uniform, and depends on the seed, the names of the files and the numbers of the records alone: not on the
    order of the files, nor on workers and threads. All records are read, and only those that may be in it are scored.

    Args:
        model: a model or its path; a mapping from names to several; with `by` from values of that field, "*" for all others.
        inputs: files, globs, addresses; `-` is standard input.
        sample: documents of each group to learn from, at most; None for all of them.
        seed: of the sample.
        output: where to save the percentiles; JSON that people can read.
        scoring: how networks score.
        work: threads, processes, a cluster.
        options: how records are read; see `RecordOptions`. The groups are the values of `group`, or else of `by`.

    Returns:
        The percentiles of each group and of all documents, in perplexity per token, with 95 % intervals.

    Raises:
        InputError: a file cannot be read; a record is bad, and errors are to "fail"; no document has a perplexity.
        UsageError: options contradict each other, or the field of groups has more than 1,000 values.
        OutputError: the file cannot be written.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "in.txt").write_text("a b\\na\\nx y z\\n")
        ...     percentiles = learn_percentiles({"m": model}, f"{folder}/in.txt")
        >>> round(percentiles.value("m", None, 50), 3)
        2.466
    """
    work = work or FilterWork()
    records = RecordOptions(**options)
    if work.shard is not None:
        raise UsageError("percentiles are learned on all files, not on a shard of them; leave the shard out")
    plan = FilterPlan(scorer_of(model, records, scoring), records)
    how = SampleSettings(sample, seed, records.group_field)
    sources = find_sources(inputs, records.format)
    if output is not None:
        refuse_replacing({"-o": output}, [source.path for source in sources])
    with opened_engine(work, len(sources)) as engine:
        percentiles = learn_files(plan, sources, how, engine, threads=work.threads)
    if output is not None:
        percentiles.save(output)
    return percentiles
