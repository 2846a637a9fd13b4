"""May two numbers be put side by side? What agrees between two runs, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from lmgauge.choices import ComparedMetric
from lmgauge.context_policy import ContextPolicy
from lmgauge.evaluation.bounds import BoundReason, bound_reasons
from lmgauge.evaluation.comparison.facts import Facts
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.runs import Run
from lmgauge.evaluation.tally import Tally
from lmgauge.scores import EOS_KIND, OOV

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
    """Return what has to agree for numbers to be comparable, and whether it does."""
    totals = [facts[0].totals[0], *(fact.totals[1] for fact in facts)]
    apart = [max(fact.apart[0] for fact in facts), *(fact.apart[1] for fact in facts)]
    vocabularies = _vocabularies([run.origin.fingerprints for run in runs])
    stated = [_stated(*of_run) for of_run in zip(runs, totals, apart, vocabularies, strict=True)]
    agree = {what: _same([values[what][1] for values in stated]) for what in stated[0]}
    agree["events"] = all(fact.same_events if fact.spans else fact.same_counts for fact in facts)
    agree[EXACT] = all(values[EXACT][0] == "yes" for values in stated)
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


def _stated(run: Run, tally: Tally, apart: int, vocabulary: str) -> dict[str, tuple[str, str]]:
    # What a run states of each thing that has to agree: in words, and to be compared (empty if not known).
    origin, text = run.origin, run.text_sha256[:6]
    vocabulary = vocabulary[:6]
    size = "" if origin.vocabulary_size is None else f" ({origin.vocabulary_size:,})"
    ends = _line_ends(origin.policy, tally)
    oov = {"closed": "impossible", "unk": "<unk>", "spelled": "spelled"}.get(origin.oov_policy, origin.oov_policy)
    return {
        "text": (text or "unknown", text),
        "events": (f"{tally.total_events:,} {origin.unit}s", ""),
        "vocabulary": ((vocabulary or "unknown") + size, vocabulary),
        "</s> scored": (ends, ends),
        "unseen words": (f"{oov}, {tally.unseen_events:,} events", _known(origin.oov_policy)),
        "context": (origin.context, "" if origin.policy.unit == "unknown" else origin.context),
        EXACT: (_exactness(origin, tally, apart), ""),
    }


def _line_ends(policy: ContextPolicy, tally: Tally) -> str:
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


def _exactness(origin: Origin, tally: Tally, apart: int) -> str:
    reasons = [reason.short for reason in bounds_of(origin, tally)]
    if apart:
        reasons.append(f"spans do not tile the text ({apart:,} times)")
    return "no: " + ", ".join(reasons) if reasons else "yes"


def bounds_of(origin: Origin, tally: Tally) -> list[BoundReason]:
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
        if value != "yes"
    ]
    if left_out and not perplexity:
        bits_reasons.append("a protocol leaves out tokens, and so not the same bytes")
    nearest = {
        WHOLE: "bits per byte" if bits else None,
        EXACT_PART: "bits per byte where neither loses text nor meets an unseen word (below)",
        SHARED_EVENTS: "cross-entropy of the events that both know and that are the same token (below)",
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
