"""`lmgauge.select_documents`: the documents of a pool that are most like a target."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmgauge.api.types import PathLike, Text
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.filtering.selection_settings import PoolReading, SelectionSettings
from lmgauge.option_numbers import Count
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.filtering.selection_results import Selection


@verb
def select_documents(
    pool: Text,
    target: Text,
    output: PathLike | None = None,
    *,
    held_out: Text | None = None,
    settings: SelectionSettings = SelectionSettings(),
    temp: PathLike | None = None,
    threads: Count | None = None,
    reading: ReadingOptions = PoolReading(),
    **fields: Any,
) -> Selection:
    """Select the documents of a pool that are most like a target (Moore & Lewis 2010): `lmgauge select`.

    Each document gets the difference of its cross-entropies, in bits per token, under a model of the target and a model of a
    random sample of the pool, both over the words that occur at least twice in the target. The documents with the lowest
    differences are selected. How many is found by trying shares of the pool: a model is trained on each, over the same
    words, and the share whose model has the lowest perplexity on held-out target text is taken. Beside each stands a model
    trained on as much text chosen at random.

    Args:
        pool: files or globs; each line or record is a document. They are read several times, and some 20 bytes of memory
            are held for each document (45 while they are sorted).
        target: text to be like; may be several. It is read several times.
        output: folder, or for one file a file, for the selected documents, in the form they have. Every field of a record
            stays; `in_domain_bits_per_token`, `pool_bits_per_token` and `cross_entropy_difference` are added to it.
        held_out: text like the target, to try shares of the pool on; a part of the target is held out if not given.
        settings: how much is selected, and by which models.
        temp: existing folder for models too large for memory.
        threads: how many to use; no figure depends on it; all cores if not given.
        reading: how texts are read; what cannot be used is left out and counted, if nothing else is said.
        fields: those of `settings` and `reading`, by name.

    Returns:
        The share that is selected, and a row for each one tried: documents, bytes, threshold, perplexity with its 95 %
        interval, how it compares with the best, and the perplexity of a random selection of the same size.

    Raises:
        InputError: a text is empty or cannot be used, or the target has too few words.
        OutputError: the output cannot be written.
        UsageError: a text can be read only once, or the output would replace an input.

    Shell:
        lmgauge select 'pool/*.jsonl' --target dev.txt -o selected/
        lmgauge select pool.txt --target dev.txt --share 10% -o selected.txt
        lmgauge select pool.txt --target train.txt --held-out dev.txt --tolerance 1%

    Example:
        >>> from lmgauge import Corpus
        >>> pool = Corpus.from_strings(["the cat sat", "buy now", "the dog sat", "buy cheap", "now buy"] * 9)
        >>> target = Corpus.from_strings(["the cat ran", "the dog ran home", "the cat sat", "the dog sat down"] * 9)
        >>> select_documents(pool, target, order=2, smoothing="laplace", cuts=(0.25, 0.5, 1))
        <Selection: 18 of 45 documents, 198 of 405 bytes, held-out perplexity 4.316, random 5.098>
    """
    from lmgauge.api.inputs import corpus_of, refuse_field
    from lmgauge.filtering.selection_files import making_folders, plan_outputs
    from lmgauge.filtering.selection_search import Target, select, split_target
    from lmgauge.models.ngram.partitioned.limits import TrainingResources

    if held_out is not None and not settings.searches:
        raise UsageError("held-out text is for trying shares: leave it out, or share and max-difference")
    documents = corpus_of(pool, replace(reading, document=None), alone=False)
    wanted = corpus_of(target, reading, alone=False)
    apart = None if held_out is None else corpus_of(held_out, reading, alone=False)
    refuse_field(reading, documents, wanted, apart)
    for name, corpus in (("the pool", documents), ("the target", wanted), ("the held-out text", apart)):
        if corpus is not None:
            corpus.without_given("a selection").refuse_once(f"{name} is read several times")
    searches = settings.searches and apart is None
    goal = split_target(wanted, settings.held_out_share, settings.seed) if searches else Target(wanted, apart)
    read = [source.path for corpus in (wanted, apart) if corpus is not None for source in corpus.sources]
    jobs = [] if output is None else plan_outputs(documents, os.fspath(output), read)
    TrainingResources(temp=temp)  # refuses what is not a folder to write to
    with making_folders(jobs):
        return select(documents, goal, settings, jobs, temp=temp, threads=threads)
