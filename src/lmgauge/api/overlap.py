"""`lmgauge.overlap`: how much of a test text is in the training text."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict, Unpack

from lmgauge.api.inputs import PathLike, Text, corpus_of, opened, text_of
from lmgauge.choices import OverlapUnit
from lmgauge.errors import UsageError
from lmgauge.evaluation.clean_subset import split_by_segments
from lmgauge.evaluation.runs import about, remembered
from lmgauge.files import refuse_replacing
from lmgauge.text.overlap.find import find_overlap
from lmgauge.text.overlap.find import write_clean as write
from lmgauge.text.overlap.results import Overlap
from lmgauge.text.overlap.settings import OverlapSettings


class OverlapOptions(TypedDict, total=False):
    """The fields of `OverlapSettings`, each of which may be left out."""

    overlap_unit: OverlapUnit
    n: int | None
    near: float
    fold: bool
    passages: int


def overlap(
    train: Text,
    test: Text | None = None,
    *,
    run: PathLike | None = None,
    write_clean: PathLike | None = None,
    threads: int | None = None,
    **options: Unpack[OverlapOptions],
) -> Overlap:
    """Find test text inside training text, exactly, with both places.

    Runs of words as in Brown et al. (2020), appendix C; near duplicates by the Jaccard index of Broder (1997).

    Args:
        train: training text, read once, block by block: a path, several, or a `Corpus`.
        test: test text, held in memory; with `run` None for the text that the run remembers.
        run: a stored run of the test: `Overlap.run` then has its numbers on the clean segments and on the others.
        write_clean: file to write the test to, without contaminated segments and near duplicates.
        threads: number of threads; no result depends on it.
        options: `overlap_unit` ("word" or "character", for scripts without spaces between words), `n` (tokens of the
            shortest run that counts; 13 words or 25 characters), `near` (Jaccard index from which segments are near
            duplicates, 0 to 1; 0 skips the search), `fold` (ignore case and punctuation), `passages` (how many to keep).

    Raises:
        InputError: a text is empty or cannot be used, or the run scored another text.
        UsageError: an option out of range, no test text, or a test that cannot be read twice, as `run` needs.
        OutputError: the clean test cannot be written.

    Example:
        >>> from lmgauge import Corpus
        >>> train, test = Corpus.from_strings(["the cat sat on the mat"]), Corpus.from_strings(["a cat sat on a mat", "no"])
        >>> result = overlap(train, test, n=3)
        >>> result.contaminated_segments, result.contaminated_bytes
        (1, 10)
    """
    settings = OverlapSettings(**options)
    stored = None if run is None else opened(run)
    training = corpus_of(train)
    if test is not None:
        corpus = corpus_of(test) if stored is None else text_of([stored], test)
    elif stored is None:
        raise UsageError("an overlap needs a test text beside the training text, or a run of the test (--run)")
    else:
        known = remembered(stored)
        if known is None:
            raise UsageError(f"{run}: the text it scored is not known, or not there any more: name it with --test")
        corpus = known
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
    return result
