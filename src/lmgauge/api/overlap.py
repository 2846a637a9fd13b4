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
        max_overlap: share of the test's bytes that may be contaminated; fail (exit with 1) if more is, short lines included.
        threads: how many to use; no result depends on it; all cores if not given.
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
    from lmgauge.api.inputs import corpus_of, opened, refuse_field, refuse_output, text_of
    from lmgauge.evaluation.clean_subset import split_by_segments
    from lmgauge.evaluation.runs import about, remembered
    from lmgauge.text.overlap.find import find_overlap
    from lmgauge.text.overlap.find import write_clean as write

    stored = None if run is None else opened(run)
    training = corpus_of(train, replace(reading, group=ReadingOptions.group), alone=False)
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
        refuse_output(write_clean, (), training, corpus, run, option="--write-clean")
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
