"""`lmgauge.learn_percentiles`: percentiles of perplexity by group, frozen for filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.api.types import Model, PathLike
from lmgauge.choices import DEFAULT_SEED, SAMPLE_SIZE
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.filtering.options import FilterWork, RecordOptions
from lmgauge.models.network.options import ScoringOptions
from lmgauge.option_numbers import Count, Natural

if TYPE_CHECKING:
    from lmgauge.filtering.percentiles import Percentiles


@verb
def learn_percentiles(
    model: Model | Mapping[str, Model],
    inputs: PathLike | Sequence[PathLike],
    *,
    sample: Count | None = SAMPLE_SIZE,
    seed: Natural = DEFAULT_SEED,
    output: PathLike | None = None,
    reading: RecordOptions = RecordOptions(),
    work: FilterWork = FilterWork(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Percentiles:
    """Return the percentiles of the perplexity of documents, by group, learned on a sample: `lmgauge percentiles`.

    The sample is uniform, and depends on the seed, the names of the files and the numbers of the records alone: not on the
    order of the files, nor on workers and threads. All records are read, and only those that may be in it are scored.

    Args:
        model: a model or its path; several, as NAME=MODEL or in a mapping; with `by` VALUE=MODEL, and "*" for all other
            values.
        inputs: files, globs, addresses; - is standard input.
        sample: documents of each group to learn from, at most, or all; only they are scored.
        seed: same seed, same sample.
        output: file to save the percentiles in, as JSON.
        reading: how records are read; the groups are the values of `group`, or else of `by`.
        work: threads, processes, a cluster.
        scoring: how networks score.
        fields: those of `reading`, `work` and `scoring`, by name.

    Returns:
        The percentiles of each group and of all documents, in perplexity per token, with 95 % intervals.

    Raises:
        InputError: a file cannot be read; a record is bad, and errors are to "fail"; no document has a perplexity.
        UsageError: options contradict each other, or the field of groups has more than 1,000 values.
        OutputError: the file cannot be written.

    Shell:
        lmgauge percentiles -m kn5/ 'in/*.parquet' -o percentiles.json
        lmgauge percentiles -m en=en/ -m de=de/ --by lang 'in/*.jsonl' -o p.json

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
    from lmgauge.files import refuse_replacing
    from lmgauge.filtering.file_tasks import open_engine
    from lmgauge.filtering.learn_files import learn_files
    from lmgauge.filtering.percentile_sample import SampleSettings
    from lmgauge.filtering.plan import FilterPlan
    from lmgauge.records.sources import find_sources

    if work.shard is not None:
        raise UsageError("percentiles are learned on all files, not on a shard of them; leave the shard out")
    plan = FilterPlan.of(model, reading, scoring)
    how = SampleSettings(sample, seed, reading.group_field)
    sources = find_sources(inputs, reading.format)
    if output is not None:
        refuse_replacing({"-o": output}, [source.path for source in sources])
    with open_engine(work, len(sources)) as engine:
        percentiles = learn_files(plan, sources, how, engine, threads=work.threads)
    if output is not None:
        percentiles.save(output)
    return percentiles
