"""May two numbers be put side by side? What the tables of two runs state, what of it agrees, and what follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import ComparedMetric
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.evaluation.first_tokens import FirstTokens
from lmgauge.evaluation.origin import BoundReason, Origin, bound_reasons
from lmgauge.evaluation.runs import Run, lockstep
from lmgauge.evaluation.slicing.span_alignment import extents
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.scores import EOS_KIND, OOV, ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments


@dataclass(frozen=True)
class Facts:
    """What the tables of two runs state."""

    totals: tuple[EventSums, EventSums]  # exact sums of each
    same_events: bool  # every span of one is one of the other
    same_counts: bool  # every segment has as many events in both
    spans: bool
    same_lengths_shuffled: bool  # the segments end at the same bytes, but in another order
    # of each, spans that do not begin where the one before ended, and segments that end before the other's do
    apart: tuple[int, int]
    span_bytes: int  # bytes that the first scores, line ends left out
    # of each, why its log-probabilities cannot be natural logs, or may not be; empty where they can
    first_tokens: tuple[str, str]


class TableFacts:
    """What one table states, and where it is the same as that of the first run."""

    def __init__(self, run: Run) -> None:
        self.run, self.tally, self.first_tokens = run, EventSums(), FirstTokens(run.origin.policy)
        self.spans = self.same_counts = self.same_ends = True
        self._ends: list[NDArray[np.int64]] = []

    def add(self, rows: ScoreBatch, of_first: ScoreBatch) -> None:
        self.tally.add(rows)
        self.spans &= len(rows.ends) == len(rows)
        self.same_counts &= bool(np.array_equal(rows.segment_events, of_first.segment_events))
        self.same_ends &= bool(np.array_equal(rows.ends, of_first.ends))
        if self.run.origin.policy.leaves_out and len(rows.ends) == len(of_first.ends):
            self.same_ends &= bool(np.array_equal(rows.starts(), of_first.starts()))
        self._ends.append(extents(rows) if len(rows.ends) else np.zeros(len(rows.segments), np.int64))

    def ends(self) -> NDArray[np.int64]:
        # int64 [segments], the byte where each ends.
        return np.concatenate(self._ends)


def gather_facts(runs: Sequence[Run], corpus: Corpus | None = None) -> list[Facts]:
    """Read the table of each run once, side by side, and say what those of the first and of each other run state."""
    first, *others = runs
    at_hand = corpus is not None and bool(first.text_sha256) and corpus.report.sha256 == first.text_sha256
    of_text = [at_hand and run.text_sha256 == first.text_sha256 for run in others]
    facts: dict[int, Facts] = {}
    for text, known in ((corpus, True), (None, False)):
        numbers = [i for i, same in enumerate(of_text) if same == known]
        if numbers:
            facts |= zip(numbers, _read([first, *(others[i] for i in numbers)], text), strict=True)
    return [facts[i] for i in range(len(others))]


def _read(runs: Sequence[Run], corpus: Corpus | None) -> Iterator[Facts]:
    tables = [TableFacts(run) for run in runs]
    for _, parts in lockstep(
        [one.first_tokens.watch(one.run.batches()) for one in tables], corpus, [run.name for run in runs]
    ):
        for table, rows in zip(tables, parts, strict=True):
            table.add(rows, parts[0])
    first, *others = tables
    yield from (facts_of(first, other) for other in others)


def facts_of(first: TableFacts, other: TableFacts) -> Facts:
    """Return what the tables of two runs state, of which all that was read side by side was added."""
    first_ends, ends = first.ends(), other.ends()
    spans, apart = first.spans and other.spans, [first.first_tokens.apart, other.first_tokens.apart]
    if spans and first.run.text_sha256 and first.run.text_sha256 == other.run.text_sha256:
        apart = [apart[0] + int((first_ends < ends).sum()), apart[1] + int((ends < first_ends).sum())]
    return Facts(
        totals=(first.tally, other.tally),
        same_events=spans and other.same_counts and other.same_ends,
        same_counts=other.same_counts,
        spans=spans,
        same_lengths_shuffled=np.array_equal(np.sort(first_ends), np.sort(ends)) and not np.array_equal(first_ends, ends),
        apart=(apart[0], apart[1]),
        span_bytes=int(first_ends.sum()),
        first_tokens=(first.first_tokens.note, other.first_tokens.note),
    )


Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Documents:
    """Where documents come from."""

    by: str = UNKNOWN  # what tells them apart; "unknown" if nothing does
    table: int | None = None  # number of the run whose table names them; None if the text does, or nothing
    notes: tuple[str, ...] = ()

    def of(self, block: Segments | None, tables: Sequence[ScoreBatch]) -> Ints | None:
        """Return int64 [segments of a block], the document of each; None where documents are not known."""
        # Documents().of(None, []) is None -> True
        if self.table is not None:
            return tables[self.table].documents()
        return None if block is None or self.by == UNKNOWN else block.documents


def choose_documents(runs: Sequence[Run], named: Sequence[Ints | None], corpus: Corpus | None, *, asked: bool) -> Documents:
    """Return where the documents of runs come from; the order of the runs does not matter."""
    # choose_documents([], [], None, asked=False).by -> 'unknown'
    # named: of each, int64 [segments], the documents that its table names, or None; corpus: the text, read once.
    of_text = UNKNOWN if corpus is None else corpus.report.documents_by
    if asked:
        return Documents(of_text)
    known = [(len(np.unique(numbers)), k) for k, numbers in enumerate(named) if numbers is not None]
    if not known:
        return Documents(of_text)
    _, chosen = min(known)
    same = all(np.array_equal(_by_appearance(named[k]), _by_appearance(named[chosen])) for _, k in known)
    notes = () if same else (f"the runs have different documents: those of {runs[chosen].name} count, the fewest",)
    return Documents(runs[chosen].origin.documents_of_table, chosen, notes)


def _by_appearance(numbers: Ints | None) -> Ints:
    # Numbers made anew in the order in which they come first.
    # _by_appearance([7, 7, 3, 7]) -> [0, 0, 1, 0]
    if numbers is None:
        return np.zeros(0, np.int64)
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    renumbered: Ints = rank[inverse]
    return renumbered


METRICS: tuple[ComparedMetric, ...] = get_args(ComparedMetric)
AS_TEXT = "as text"
_IN_ORDER = "vocabulary_in_order"
EXACT = "bits exact"  # the one that bits per byte ask about, and perplexity does not
_PLURAL = ("events", "unseen words")
WHOLE, EXACT_PART, SHARED_EVENTS, NOTHING = "whole", "exact part", "shared events", "nothing"


@dataclass(frozen=True)
class Agreement:
    """One thing that has to agree: what each run has, and whether that is the same (None: not known)."""

    what: str
    values: tuple[str, ...]
    agrees: bool | None


@dataclass(frozen=True)
class Verdict:
    """Whether a figure of two runs may be compared."""

    metric: str
    comparable: bool
    reasons: tuple[str, ...] = ()
    nearest: str | None = None  # the nearest figure that may be compared; None where there is none, or no need of one


def agreements(runs: Sequence[Run], facts: Sequence[Facts]) -> tuple[Agreement, ...]:
    """Return what must match for numbers to be comparable, and whether it does."""
    totals = [facts[0].totals[0], *(fact.totals[1] for fact in facts)]
    apart = [max(fact.apart[0] for fact in facts), *(fact.apart[1] for fact in facts)]
    vocabularies = _vocabularies([run.origin.fingerprints for run in runs])
    stated = [_stated(*of_run) for of_run in zip(runs, totals, apart, vocabularies, strict=True)]
    agree = {what: _same([values[what][1] for values in stated]) for what in stated[0]}
    agree["events"] = all(fact.same_events if fact.spans else fact.same_counts for fact in facts)
    exact = [values[EXACT][0] for values in stated]
    agree[EXACT] = None if "unknown" in exact else exact == ["yes"] * len(exact)
    return tuple(Agreement(what, tuple(values[what][0] for values in stated), same) for what, same in agree.items())


def _vocabularies(fingerprints: Sequence[Mapping[str, str]]) -> list[str]:
    # What tells the vocabulary of each run; empty where it is not known, or not in a form to be compared.
    # Before 0.3.0 runs stated a digest of the words in their order; since then they state that of the set as well.
    own = [prints.get("vocabulary", "") for prints in fingerprints]
    states_both = [_IN_ORDER in prints for prints in fingerprints]
    if all(states_both) or not any(states_both):
        return own
    in_order = [prints.get(_IN_ORDER, prints.get("vocabulary", "")) for prints in fingerprints]
    return in_order if len(set(in_order)) == 1 else [one if both else "" for one, both in zip(own, states_both, strict=True)]


def _stated(run: Run, tally: EventSums, apart: int, vocabulary: str) -> dict[str, tuple[str, str]]:
    # What a run states of each thing that has to agree: in words, and to be compared (empty if not known).
    origin, text = run.origin, run.text_sha256[:6]
    vocabulary = vocabulary[:6]
    size = "" if origin.vocabulary_size is None else f" ({origin.vocabulary_size:,})"
    ends = _line_ends(origin.policy, tally)
    oov = {"closed": "impossible", "unk": "<unk>", "spelled": "spelled"}.get(origin.oov_policy, origin.oov_policy)
    context = "" if origin.policy.unit == "unknown" else origin.context
    return {
        "text": (text or "unknown", text),
        "events": (f"{tally.total_events:,} {origin.unit}s", ""),
        "vocabulary": ((vocabulary or "unknown") + size, vocabulary),
        "</s> scored": (ends, ends),
        "unseen words": (f"{oov}, {tally.unseen_events:,} events", _known(origin.oov_policy)),
        "context": (context or "unknown", context),
        EXACT: (_exactness(origin, tally, apart, text), ""),
    }


def _line_ends(policy: ContextPolicy, tally: EventSums) -> str:
    if tally.events[EOS_KIND]:
        return "yes"
    return AS_TEXT if policy.line_ends == "text" else "no"


def _known(value: str) -> str:
    return "" if value == "unknown" else value


def _same(values: Sequence[str]) -> bool | None:
    known = set(values)
    if "" in known:
        return False if len(known) > 2 else None
    return len(known) == 1


def _exactness(origin: Origin, tally: EventSums, apart: int, text: str) -> str:
    reasons = [reason.short for reason in bounds_of(origin, tally)]
    if apart:
        reasons.append(f"spans do not tile the text ({apart:,} times)")
    return "no: " + ", ".join(reasons) if reasons else "yes" if text else "unknown"


def bounds_of(origin: Origin, tally: EventSums) -> list[BoundReason]:
    """Return why the bits of a table are lower bounds only; empty where they are exact."""
    return bound_reasons(origin, tally.events[OOV], origin.lossy_segments or tally.lossy_segments)


def verdicts(first: Run, second: Run, facts: Facts) -> tuple[tuple[Verdict, ...], str]:
    """Return the verdict for every metric, and which part of the text can be compared at all."""
    by_name = {agreement.what: agreement for agreement in agreements([first, second], [facts])}
    names = (first.name, second.name)
    differ = [_difference(by_name[what], names) for what in by_name if what != EXACT and by_name[what].agrees is not True]
    text, ends = by_name["text"], by_name["</s> scored"]
    perplexity = not differ
    left_out = any(run.origin.policy.leaves_out for run in (first, second))
    inexact = [name for name, value in zip(names, by_name[EXACT].values, strict=True) if value != "yes"]
    tiled = not any(facts.apart)
    # As an event or as the newline they are: their bytes are paid for either way.
    ends_agree = ends.agrees is True or "no" not in ends.values
    bits = tiled and (perplexity or (text.agrees is True and ends_agree and not inexact and not left_out))
    part = _part(perplexity or bits, text.agrees is True and not left_out, facts)
    needed = ("text",) if ends_agree else ("text", "</s> scored")
    bits_reasons = [_difference(by_name[what], names) for what in needed if by_name[what].agrees is not True]
    bits_reasons += [
        f"{name}: {'a lower bound only' if tiled else 'not exact'} ({value.removeprefix('no: ')})"
        for name, value in zip(names, by_name[EXACT].values, strict=True)
        if value not in ("yes", "unknown")
    ]
    if left_out and not perplexity:
        bits_reasons.append("a protocol leaves out tokens, and so not the same bytes")
    nearest = {
        WHOLE: "bits per byte" if bits else None,
        EXACT_PART: "bits per byte on the text that both models know (below)",
        SHARED_EVENTS: "cross-entropy of the tokens that both models have and know (below)",
        NOTHING: None,
    }[part]
    result = [Verdict("perplexity", perplexity, tuple(differ), None if perplexity else nearest)]
    result += [Verdict(m, bits, () if bits else tuple(bits_reasons), None if bits else nearest) for m in METRICS[1:]]
    return tuple(result), part


def _part(comparable: bool, same_text: bool, facts: Facts) -> str:
    if comparable:
        return WHOLE
    if same_text and facts.spans and not any(facts.apart):
        return EXACT_PART
    if facts.same_counts and not same_text:
        return SHARED_EVENTS
    return NOTHING


def _difference(agreement: Agreement, names: tuple[str, str]) -> str:
    if agreement.agrees is None:
        unknown = " and ".join(n for n, v in zip(names, agreement.values, strict=True) if v.startswith("unknown"))
        return f"{agreement.what} unknown for {unknown}"
    a, b = agreement.values
    differ = f"{agreement.what} {'differ' if agreement.what in _PLURAL else 'differs'}"
    return f"{differ} ({a} / {b})" if a != b else f"{differ}: as many, at other bytes"
