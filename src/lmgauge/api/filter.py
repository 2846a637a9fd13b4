"""`lmgauge.filter_documents` and its kin: files of documents, filtered by what models make of them, and by percentiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import PATHS, Model, PathLike
from lmgauge.base.choices import DEFAULT_SEED, SAMPLE_SIZE
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Count, Natural
from lmgauge.settings import FilterRules, FilterWork, RecordOptions, ScoringOptions

if TYPE_CHECKING:
    from lmgauge.results import FilteredDocuments, Percentiles


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

    The sample is uniform. It depends only on the seed, the names of the files and the numbers of the records, not on
    the order of the files, on workers or threads. All records are read, and only those that may be in it are scored.

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
    from lmgauge.base.files import refuse_replacing
    from lmgauge.filtering.filter_file import FilterPlan
    from lmgauge.filtering.filter_files import learn_files
    from lmgauge.filtering.percentile_sample import SampleSettings
    from lmgauge.records.sources import find_sources

    if work.shard is not None:
        raise UsageError("percentiles are learned on all files, not on a shard of them; leave the shard out")
    plan = FilterPlan.of(model, reading, scoring)
    how = SampleSettings(sample, seed, reading.group_field)
    sources = find_sources(inputs, reading.format)
    if output is not None:
        refuse_replacing({"-o": output}, [source.path for source in sources])
    percentiles = learn_files(plan, sources, how, work)
    if output is not None:
        percentiles.save(output)
    return percentiles


@verb
def filter_documents(
    model: Model | Mapping[str, Model],
    inputs: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    percentiles: Percentiles | PathLike | None = None,
    rejects: PathLike | None = None,
    rules: FilterRules = FilterRules(),
    reading: RecordOptions = RecordOptions(),
    work: FilterWork = FilterWork(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> FilteredDocuments:
    """Write the documents that stay, in the form they had, with columns of their bits, bits per byte, perplexity and so on.

    JSONL, TSV, Parquet and lines of text, compressed or not, are streamed in constant memory. A record keeps all its
    fields. A bad record is counted and set aside. If the output is a folder, it gets one file for each input; a file
    appears when it is complete, and the same command continues with the missing ones.

    Args:
        model: a model or its path; several, as NAME=MODEL or in a mapping, have their own columns; with `by`
            VALUE=MODEL, and "*" for all other values.
        inputs: files, globs, addresses; - is standard input.
        output: a file for one, a folder for several (with a slash at its end); - is standard output.
        percentiles: file of percentiles for `keep` and `buckets`; if it does not exist, they are learned on a sample
            of the inputs and saved there; see `learn_percentiles`.
        rejects: JSONL file for bad records, with what is wrong with each.
        rules: which documents stay.
        reading: how records are read.
        work: threads, processes, a cluster, a shard.
        scoring: how networks score.
        fields: those of `rules`, `reading`, `work` and `scoring`, by name.

    Returns:
        What happened to the documents: counts by reason and group, histograms, examples.

    Raises:
        InputError: a file cannot be read; no record can be used; a record is bad, and errors are to "fail".
        UsageError: options contradict each other, percentiles are to be learned on what can be read only once, or the folder
            holds documents that were filtered otherwise.
        OutputError: something cannot be written; nothing half-written is left.

    Shell:
        lmgauge filter -m kn5/ in.jsonl.zst -o out.jsonl.zst --max-perplexity 900
        lmgauge filter -m kn5/ in/*.parquet -o out/ --keep ..p70 --percentiles p.json
        lmgauge filter -m en=en/ -m de=de/ --by lang 'in/*.jsonl' -o out/ --max-perplexity 900

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "in.jsonl").write_text('{"text": "a b", "id": 1}\\n{"text": "x y z", "id": 2}\\n')
        ...     _ = filter_documents({"m": model}, f"{folder}/in.jsonl", f"{folder}/out.jsonl", max_perplexity=3)
        ...     print(Path(folder, "out.jsonl").read_text()[:55])
        {"text": "a b", "id": 1, "m_bits": 3.906890531115025, "
    """
    from lmgauge.base.paths import exists
    from lmgauge.filtering.filter_file import FilterPlan
    from lmgauge.filtering.filter_files import filter_all
    from lmgauge.filtering.percentiles import Percentiles
    from lmgauge.records.sources import find_sources

    if isinstance(percentiles, PATHS) and rules.needs_percentiles and not exists(percentiles):
        if work.shard is not None:
            raise UsageError(f"{percentiles}: no such file; learn it once for all shards, with 'lmgauge percentiles'")
        once = next((source.name for source in find_sources(inputs, reading.format) if source.one_shot), None)
        if once is not None:
            raise UsageError(
                f"{once} can be read only once, and learning {percentiles} takes it: save the text in a file first"
            )
        learn_percentiles(model, inputs, output=percentiles, reading=reading, work=work, scoring=scoring)
    frozen = Percentiles.load(percentiles) if isinstance(percentiles, PATHS) else percentiles
    plan = FilterPlan.of(model, reading, scoring, rules, frozen)
    return filter_all(plan, inputs, output, work, rejects, columns=False)


@verb
def score_documents(
    model: Model | Mapping[str, Model],
    inputs: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    rejects: PathLike | None = None,
    reading: RecordOptions = RecordOptions(),
    work: FilterWork = FilterWork(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> FilteredDocuments:
    """Write all documents with columns that say what the models make of them: `filter_documents` without a rule.

    Lines of text, which have no columns, are written as JSONL.

    Args:
        model: a model or its path; several, as NAME=MODEL or in a mapping, have their own columns; with `by`
            VALUE=MODEL, and "*" for all other values.
        inputs: files, globs, addresses; - is standard input.
        output: a file for one, a folder for several (with a slash at its end); - is standard output.
        rejects: JSONL file for bad records, with what is wrong with each.
        reading: how records are read.
        work: threads, processes, a cluster, a shard.
        scoring: how networks score.
        fields: those of `reading`, `work` and `scoring`, by name.

    Raises:
        InputError, UsageError, OutputError: as in `filter_documents`.

    Shell:
        lmgauge score -m kn5/ in.parquet -o scored.parquet
        lmgauge score -m words=kn5/ -m bytes=byte12/ 'in/*.jsonl.gz' -o scored/

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "in.txt").write_text("a b\\nx y z\\n")
        ...     score_documents({"m": model}, f"{folder}/in.txt", f"{folder}/out.jsonl").documents
        2
    """
    from lmgauge.filtering.filter_file import FilterPlan
    from lmgauge.filtering.filter_files import filter_all

    return filter_all(FilterPlan.of(model, reading, scoring), inputs, output, work, rejects, columns=True)
