"""Verbs of texts: `lmgauge.split`, `lmgauge.overlap` and `lmgauge.select_documents`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import PathLike, Text, corpus_of, opened, refuse_field, refuse_output, text_of, training_text
from lmgauge.base.choices import DEFAULT_FRACTIONS, DEFAULT_SEED, SplitBy
from lmgauge.base.declaration import chosen, verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Count, Natural, Share
from lmgauge.settings import OverlapSettings, PoolReading, ReadingOptions, SelectionSettings

if TYPE_CHECKING:
    from lmgauge.results import Overlap, Selection, SplitText


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
    from lmgauge.text.split import write_split

    corpus = corpus_of(text, reading).without_given("split", whole=True)
    if by is None and reading.group != ReadingOptions.group:
        by = "group"
    elif by is None and reading.document is not None:
        by = "document"
    return write_split(corpus, output, fractions, seed=seed, by=by)


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

    Runs of words as in Brown et al. (2020), appendix C.

    Args:
        train: training text, read once, in blocks.
        test: test text, held in memory; may be several. The text that the run remembers, if not given.
        run: a run of the test; its numbers on the clean segments and on the contaminated ones.
        write_clean: file for the test without contaminated segments.
        max_overlap: share of the test's bytes that may be contaminated; fail (exit with 1) if more is, short lines included.
        threads: how many to use; all cores if not given. Does not change results.
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
    from lmgauge.evaluation.evaluate import split_by_segments
    from lmgauge.evaluation.runs import about, remembered
    from lmgauge.text.overlap.find import find_overlap
    from lmgauge.text.overlap.find import write_clean as write

    stored = None if run is None else opened(run)
    training = training_text(train, replace(reading, group=ReadingOptions.group))
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
    refuse_output(write_clean, (), training, corpus, run, option="--write-clean")
    if write_clean is not None:
        corpus.without_given("a clean test", whole=True)
    if stored is not None:
        corpus.refuse_once("--run reads the test twice")
        stored = about(stored, corpus)
    result = find_overlap(training, corpus, settings, threads=threads)
    if stored is not None:
        result = replace(result, run=split_by_segments(stored, result.segment_contaminated, corpus))
    if write_clean is not None:
        write(result, write_clean)
    return result if max_overlap is None else result.require(max_overlap)


@verb
def select_documents(
    pool: Text,
    target: Text,
    output: PathLike | None = None,
    *,
    settings: SelectionSettings = SelectionSettings(),
    threads: Count | None = None,
    reading: ReadingOptions = PoolReading(),
    **fields: Any,
) -> Selection:
    """Select the documents of a pool that are most like a target (Moore & Lewis 2010): `lmgauge select`.

    Each document gets the difference of its cross-entropies, in bits per token, under a model of the target and a model of a
    random sample of the pool, both over the words that occur at least twice in the target. The documents with the lowest
    differences are selected, up to `share` or `max_difference`.

    Args:
        pool: files or globs; each line or record is a document. They are read several times, and some 30 bytes of memory
            are held for each document (55 while they are sorted).
        target: text that the selection should be like; may be several.
        output: folder, or for one file a file, for the selected documents, in their own format. Every field of a record
            stays; `in_domain_bits_per_token`, `pool_bits_per_token` and `cross_entropy_difference` are added to it.
        settings: how much is selected, and by which models.
        threads: how many to use; all cores if not given. Does not change results.
        reading: how texts are read; what cannot be used is left out and counted, unless told otherwise.
        fields: those of `settings` and `reading`, by name.

    Returns:
        What is selected: documents, bytes, and the highest difference among them; examples from both ends of the order.

    Raises:
        InputError: a text is empty or cannot be used, or the target has too few words.
        OutputError: the output cannot be written.
        UsageError: nothing says how much is selected, a text can be read only once, or the output would replace an input.

    Shell:
        lmgauge select 'pool/*.jsonl' --target dev.txt --share 10% -o selected/
        lmgauge select pool.txt --target dev.txt --max-difference 0 -o selected.txt

    Example:
        >>> from lmgauge import Corpus
        >>> pool = Corpus.from_strings(["the cat sat", "buy now", "the dog sat", "buy cheap", "now buy"] * 9)
        >>> target = Corpus.from_strings(["the cat ran", "the dog ran home", "the cat sat", "the dog sat down"] * 9)
        >>> select_documents(pool, target, order=2, smoothing="laplace", share=0.5)
        <Selection: 18 of 45 documents, 198 of 405 bytes, difference at most -0.1078 bits per token>
    """
    from lmgauge.filtering.selection import select

    if settings.share is None and settings.max_difference is None:
        raise UsageError("say how much is selected: a share, such as 10%, or a max-difference, such as 0 bits per token")
    documents, wanted = (
        corpus_of(pool, replace(reading, document=None), alone=False),
        corpus_of(target, reading, alone=False),
    )
    refuse_field(reading, documents, wanted)
    for name, corpus in (("the pool", documents), ("the target", wanted)):
        corpus.without_given("a selection", whole=True).refuse_once(f"{name} is read several times")
    return select(documents, wanted, None if output is None else os.fspath(output), settings, threads=threads)
