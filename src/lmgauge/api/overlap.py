"""`lmgauge.overlap`: how much of a test text is in the training text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmgauge.api.types import PathLike, Text
from lmgauge.declaration import chosen, verb
from lmgauge.errors import UsageError
from lmgauge.option_numbers import Count, Share
from lmgauge.text.overlap.settings import OverlapSettings
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.cluster.running import FinishedShard
    from lmgauge.text.overlap.results import Overlap


@verb
def overlap(
    train: Text,
    test: Text | None = None,
    *,
    run: PathLike | None = None,
    write_clean: PathLike | None = None,
    max_overlap: Share | None = None,
    threads: Count | None = None,
    settings: OverlapSettings = OverlapSettings(),
    reading: ReadingOptions = ReadingOptions(),
    **fields: Any,
) -> Overlap:
    """Find test text inside training text, exactly, with both places: `lmgauge overlap`.

    Runs of words as in Brown et al. (2020), appendix C; near duplicates by the Jaccard index of Broder (1997).

    Runs of words as in Brown et al. (2020), appendix C; near duplicates by the Jaccard index of Broder (1997).

    Args:
        train: training text, read once, block by block.
        test: test text, held in memory; may be several. The text that the run remembers, if not given.
        run: a run of the test; its numbers on the clean segments and on the contaminated ones.
        write_clean: file for the test without contaminated segments and near duplicates.
        max_overlap: fail (exit with 1) if more than this share of the test's bytes is contaminated, 0 to 1; short lines
            included.
        threads: how many; no result depends on it; all cores if not given.
        settings: what counts as overlap.
        reading: how both texts are read; groups are those of the test.
        fields: those of `settings` and `reading`, by name.

    Raises:
        CheckFailedError: more is contaminated than `max_overlap` allows.
        InputError: a text is empty or cannot be used, or the run scored another text.
        UsageError: an option out of range, no test text, or a test that cannot be read twice, as `run` needs.
        OutputError: the clean test cannot be written.

    Shell:
        lmgauge overlap train.txt test.txt --write-clean clean.txt
        lmgauge overlap train.txt test.txt --max-overlap 1%
        lmgauge overlap 'train/*.txt' --run run/

    Example:
        >>> from lmgauge import Corpus
        >>> train, test = Corpus.from_strings(["the cat sat on the mat"]), Corpus.from_strings(["a cat sat on a mat", "no"])
        >>> result = overlap(train, test, n=3)
        >>> result.contaminated_segments, result.contaminated_bytes
        (1, 10)
    """
    from lmgauge.api.inputs import corpus_of, opened, refuse_field, text_of
    from lmgauge.evaluation.clean_subset import split_by_segments
    from lmgauge.evaluation.runs import about, remembered
    from lmgauge.files import refuse_replacing
    from lmgauge.text.overlap.find import find_overlap
    from lmgauge.text.overlap.find import write_clean as write

    stored = None if run is None else opened(run)
    training = corpus_of(train, _without_groups(reading), alone=False)
    if test is not None and (stored is None or chosen(reading)):
        corpus = corpus_of(test, reading, alone=False)
    elif stored is None:
        raise UsageError("an overlap needs a test text beside the training text, or a run of the test (--run)")
    else:
        known = remembered(stored) if test is None else text_of([stored], test)
        if known is None:
            raise UsageError(f"{run}: the text it scored is not known, or not there any more: name it with --test")
        corpus = known
    refuse_field(reading, training, corpus)
    if write_clean is not None:
        paths = [source.path for text in (training, corpus) for source in text.sources]
        refuse_replacing({"--write-clean": write_clean}, [*paths, *([] if run is None else [run])])
    if stored is not None:
        if not corpus.rereadable:
            raise UsageError("--run reads the test twice, and standard input can be read only once: save it in a file first")
        stored = about(stored, corpus)
    result = find_overlap(training, corpus, settings, threads=threads)
    if stored is not None:
        result = replace(result, run=split_by_segments(stored, result.segment_excluded, corpus))
    if write_clean is not None:
        write(result, write_clean)
    return result if max_overlap is None else result.require(max_overlap)


@verb
def overlap_share(
    train: Text,
    test: Text,
    *,
    shard: str = "",
    output: PathLike | None = None,
    threads: Count | None = None,
    settings: OverlapSettings = OverlapSettings(),
    reading: ReadingOptions = ReadingOptions(),
    **fields: Any,
) -> FinishedShard:
    """Compute one share of an overlap.

    Args:
        shard: compute share I of N only, into a folder of its own in -o DIR, unless it is complete there; slurm: by SLURM's
            variables. `lmgauge merge DIR` puts all shares together.
        output: folder of all shards, with --shard.
    """
    from lmgauge.api.inputs import corpus_of, refuse_field
    from lmgauge.cluster.overlap import OverlapJob
    from lmgauge.cluster.running import run_shard
    from lmgauge.cluster.shard import Shard

    if output is None:
        raise UsageError("--shard needs a folder for the shards: -o DIR")
    training, corpus = corpus_of(train, _without_groups(reading), alone=False), corpus_of(test, reading, alone=False)
    refuse_field(reading, training, corpus)
    which = Shard.parse(shard)
    return run_shard(OverlapJob(training, corpus, settings, threads), which.number - 1, which.of, output)


def _without_groups(reading: ReadingOptions) -> ReadingOptions:
    """Return how a training text is read: the groups are those of the test."""
    return replace(reading, group=ReadingOptions.group)
