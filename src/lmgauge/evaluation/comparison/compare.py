"""Two results side by side: may they be compared, is the difference real, and where does it come from."""

# `facts.py` reads what the tables state, `comparability.py` says what may be compared, `pair_sums.py` collects it in a
# second pass over tables and text, and `judge.py` tests the difference and adds what a reader must know.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from lmgauge.errors import UsageError
from lmgauge.evaluation.comparison.comparability import NOTHING, SHARED_EVENTS, agreements, verdicts
from lmgauge.evaluation.comparison.documents import choose_documents
from lmgauge.evaluation.comparison.facts import gather_facts
from lmgauge.evaluation.comparison.judge import judge
from lmgauge.evaluation.comparison.pair_sums import PairSums
from lmgauge.evaluation.comparison.results import SIGNIFICANT, Comparisons
from lmgauge.evaluation.denominators import scored_text
from lmgauge.evaluation.runs import Run, about, lockstep, remembered, with_distinct_names
from lmgauge.evaluation.slicing.cuts import TrainingWords
from lmgauge.numerics.significance import holm_adjusted
from lmgauge.option_numbers import check_whole
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus


def compare(
    runs: Sequence[Run],
    *,
    examples: int = 5,
    corpus: Corpus | None = None,
    documents_of_text: bool = False,
    training: Callable[[Corpus], TrainingWords] | None = None,
) -> Comparisons:
    """Compare runs with the first of them."""
    if len(runs) < 2:
        raise UsageError("a comparison needs two runs or more; each is compared with the first")
    check_whole("examples", examples, 0)
    runs = with_distinct_names(runs)
    if corpus is not None:
        runs = [about(run, corpus) for run in runs]
    text = corpus or remembered(runs[0], *(run for run in runs[1:] if run.text_sha256 == runs[0].text_sha256))
    if training is not None and text is None:
        raise UsageError("occurrences in training need the text that was scored: name it (--text)")
    words = training(text) if training is not None and text is not None else None
    facts = gather_facts(runs, text)
    collected = []
    for run, fact in zip(runs[1:], facts, strict=True):
        named = [tally.per_segment().documents if tally.names_documents else None for tally in fact.totals]
        documents = choose_documents((runs[0], run), named, text, asked=documents_of_text)
        answers, part = verdicts(runs[0], run, fact)
        collected.append((PairSums((runs[0], run), fact, part, text, documents, words, examples), answers))
    _read([sums for sums, _ in collected if sums.part != NOTHING], text)
    judged = holm_adjusted(judge(sums, answers, level=1 - SIGNIFICANT / len(facts)) for sums, answers in collected)
    items = [replace(item, units_needed=None) if item.significant else item for item in judged]
    return Comparisons(tuple(items), tuple(run.name for run in runs), agreements(runs, facts))


def _read(pairs: Sequence[PairSums], text: Corpus | None) -> None:
    # Read the tables of pairs, all of which share the first run, and the text, once for all of them.
    if not pairs:
        return
    runs = [pairs[0].runs[0], *(pair.runs[1] for pair in pairs)]
    tables: list[Iterable[ScoreBatch]] = [run.batches() for run in runs]
    for i, pair in enumerate(pairs, 1):
        if pair.part == SHARED_EVENTS:
            tables[i] = _without_spans(tables[i])  # they are of another text than the one at hand
    for block, (first, *others) in lockstep(tables, text, [run.name for run in runs]):
        for pair, other in zip(pairs, others, strict=True):
            pair.add(scored_text(block, [run.origin.policy for run in pair.runs]), (first, other))


def _without_spans(table: Iterable[ScoreBatch]) -> Iterator[ScoreBatch]:
    for batch in table:
        yield replace(batch, ends=batch.ends[:0], begins=batch.ends[:0])
