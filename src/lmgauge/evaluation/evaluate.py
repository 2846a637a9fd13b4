"""The numbers of an evaluation, from the score table of any model and the text it is about."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.base.progress import say_progress
from lmgauge.base.result_list import Result
from lmgauge.base.threads import thread_count
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.evaluation.denominators import Denominators, count_denominators
from lmgauge.evaluation.event_sums import EventSums, SegmentSums
from lmgauge.evaluation.first_tokens import FirstTokens
from lmgauge.evaluation.origin import Origin, bound_reasons
from lmgauge.evaluation.reference_protocols import ProtocolSums, ScoredPart
from lmgauge.evaluation.results import Evaluation, Evaluations
from lmgauge.evaluation.runs import Run, about, lockstep
from lmgauge.numerics.figures import FIGURES
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import ratio_interval
from lmgauge.numerics.perplexity import mean_segment_perplexity
from lmgauge.numerics.signature import Signature
from lmgauge.numerics.units import nats_to_bits, nats_to_scale, perplexity_from_nats
from lmgauge.scores import EOS_KIND, FRAMING, OOV, SEPARATOR, SPELLED, SPELLING, TOKEN, ScoreBatch
from lmgauge.scores.scoring import score_together
from lmgauge.scores.special_tokens import FAULT
from lmgauge.scores.table import cut
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus

Watch = Callable[[int, Segments, ScoreBatch, EventSums], None]
Ints = NDArray[np.int64]


@dataclass
class BlockSums:
    """A block of a text, the rows that a model has of it, and their sums and counts: of all (None), and of each group."""

    block: Segments | None
    batch: ScoreBatch
    tallies: dict[int | None, EventSums]
    counts: dict[int | None, Denominators]


def sum_block(
    batch: ScoreBatch,
    block: Segments | None = None,
    counts: dict[int | None, Denominators] | None = None,
    *,
    by_group: bool = False,
) -> BlockSums:
    """Return the sums of a batch, and the counts of its block, which is counted unless it was."""
    # batch: rows of the score table, log-probabilities in nats.
    tallies: dict[int | None, EventSums] = {None: EventSums.of(batch)}
    if block is None:
        return BlockSums(None, batch, tallies, {})
    if by_group:
        of_segment = _groups(block)[batch.segments - block.first]
        tallies |= {code: EventSums.of(_select(batch, of_segment == code)) for code in np.unique(of_segment).tolist()}
    return BlockSums(block, batch, tallies, count_block(block, by_group=by_group) if counts is None else counts)


def count_block(block: Segments, *, by_group: bool = False) -> dict[int | None, Denominators]:
    """Count a block, in all (None), and each of its groups."""
    if not by_group:
        return {None: count_denominators(block)}
    codes = _groups(block)
    groups = {code: count_denominators(block, np.flatnonzero(codes == code)) for code in np.unique(codes).tolist()}
    return {None: sum(groups.values(), Denominators()), **groups}


def _groups(block: Segments) -> NDArray[np.int32]:
    # The group of each segment, int32 [segments]; all are one where the text has none.
    return np.zeros(len(block), np.int32) if block.groups is None else block.groups


def _select(batch: ScoreBatch, chosen: NDArray[np.bool_]) -> ScoreBatch:
    # The rows of some segments, bool [segments].
    before = batch.before and batch.before.of_segments(chosen)
    return cut(batch, chosen, np.repeat(chosen, batch.segment_events), before)


class Evaluator:
    """The accumulator of one model: collects sums block by block and turns them into numbers, also of groups."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.tallies: dict[int | None, EventSums] = {None: EventSums()}
        self.counted: dict[int | None, Denominators] = {}
        self._protocol = ProtocolSums.of(origin.policy)

    def add(self, sums: BlockSums) -> None:
        """Add the sums of the next block of segments."""
        for code, tally in sums.tallies.items():
            self.tallies.setdefault(code, EventSums()).merge(tally)
        for code, counts in sums.counts.items():
            self.counted[code] = self.counted.get(code, Denominators()) + counts
        if self._protocol is not None:
            self._protocol.add(sums.batch, sums.block)

    def of_text(self, corpus: Corpus, notes: Sequence[str]) -> Iterator[Evaluation]:
        """Yield the numbers of a text that was read to its end, and of each of its groups."""
        report, names = corpus.report, corpus.group_names
        if not self.tallies[None].total_events:
            where = f"{corpus.sources[0].name}: " if len(corpus.sources) == 1 else ""
            raise InputError(f"{where}there is nothing to evaluate: no segment of the text is scored")
        lost = report.left_out()
        self.origin = replace(self.origin, documents_by=report.documents_by).after(corpus)
        yield self.finish(text_sha256=report.sha256, notes=[*lost, *notes], changes=report.notes()[len(lost) :])
        for code in sorted(code for code in self.tallies if code is not None):
            yield self.finish(code, names[code] if code < len(names) else "all", text_sha256=report.sha256)

    def finish(
        self,
        code: int | None = None,
        group: str | None = None,
        *,
        text_sha256: str = "",
        documents: tuple[Ints | None, str] | None = None,
        notes: Sequence[str] = (),
        changes: Sequence[str] = (),
    ) -> Evaluation:
        """Return the numbers of the whole text, or of a group."""
        # documents: int64 [segments of the text] or None, and what tells them apart; if not given, as the table says.
        protocol, whole, origin = self._protocol, code is None, self.origin
        tally, denominators = self.tallies[code], self.counted.get(code)
        scored = protocol.of_text(denominators, whole=whole) if protocol else ScoredPart.whole(denominators, origin.policy)
        denominators = scored.denominators
        events = tally.total_events
        if not events:
            raise InputError("there is nothing to evaluate: no segment is scored")
        sums = tally.per_segment()
        nats = -math.inf if tally.total_zeros else tally.nats()
        finite = events - tally.total_zeros
        tokens = tally.tokens
        lossy = max(tally.lossy_segments, origin.lossy_segments)
        numbers, documents_by = _documents(sums, origin, documents)
        interval = ratio_interval(-sums.nats, sums.events.astype(np.float64), numbers, total=-nats)
        counts = {"events": events, "tokens": tokens} | ({} if denominators is None else vars(denominators))
        reasons = bound_reasons(origin, tally.events[OOV], lossy)
        has_words = denominators is None or denominators.has_words
        own = [*(whole_text_notes(tally) if whole else ()), *([] if has_words else [NO_WORDS])]
        return Evaluation(
            model=origin.model,
            group=group,
            **_figures(nats, counts if has_words else counts | {"words": 0}),
            bits_per_byte_is_bound=bool(reasons),
            bound_reasons=[reason.sentence for reason in reasons],
            interval=None if interval is None else interval.mapped(perplexity_from_nats),
            independence=in_words(interval, documents_by) if interval is not None and not tally.total_zeros else "",
            documents_by=documents_by,
            **_of_kinds(tally),
            mean_segment_perplexity=_mean_segment_perplexity(sums),
            log_probability=nats,
            zero_probability_events=tally.total_zeros,
            perplexity_without_zeros=perplexity_from_nats(-tally.nats() / finite) if finite else None,
            first_zero_probability_events=tally.first_zeros,
            events_by_matched_order=np.trim_zeros(tally.contexts[1:], "b").tolist(),
            segments=denominators.segments if denominators else len(sums.segments),
            words=counts.get("words"),
            characters=counts.get("characters"),
            bytes=counts.get("bytes"),
            lossy_segments=lossy,
            unit=origin.unit,
            context=origin.context,
            oov_policy=origin.oov_policy,
            vocabulary_size=origin.vocabulary_size,
            fingerprints=origin.fingerprints | {"text": text_sha256},
            signature=_signature(origin, events, tally, text_sha256, in_signature(interval)),
            scored_share=scored.share,
            source_figures=protocol.figures(nats, events) if protocol and whole else {},
            notes=[*scored.notes, *notes, *caveats(interval), *own, *changes],
            given_bytes=tally.given_bytes,
            crossing_tokens=tally.crossing_tokens,
        )


def _documents(sums: SegmentSums, origin: Origin, stated: tuple[Ints | None, str] | None) -> tuple[Ints | None, str]:
    if stated is not None:
        return None if stated[0] is None else stated[0][sums.segments], stated[1]
    return sums.documents, origin.documents_by if sums.documents is None else origin.documents_of_table


def _figures(nats: float, counts: Mapping[str, int]) -> dict[str, Any]:
    # Every figure of a text; None where its count is 0 or not known.
    return {
        figure.name: nats_to_scale(-nats / counts[figure.per], figure.scale) if counts.get(figure.per) else None
        for figure in FIGURES
    }


def _of_kinds(tally: EventSums) -> dict[str, Any]:
    return {
        "events": tally.total_events,
        "tokens": tally.tokens,
        "sentence_ends": tally.events[EOS_KIND],
        "oov": tally.unseen_events,
        "oov_rate": tally.unseen_events / tally.tokens if tally.tokens else 0.0,
        "perplexity_without_eos": _perplexity(tally, TOKEN, OOV, SPELLED),
        "perplexity_without_oov": _perplexity(tally, TOKEN, EOS_KIND, FRAMING),
        **{f"{name}_bits": nats_to_bits(-tally.part_nats(name)) for name in tally.parts},
    }


def _perplexity(tally: EventSums, *kinds: int) -> float | None:
    events = sum(tally.events[k] for k in kinds)
    if not events:
        return None
    if any(tally.zeros[k] for k in kinds):
        return math.inf
    return perplexity_from_nats(-tally.nats(*kinds) / events)


def _mean_segment_perplexity(sums: SegmentSums) -> float:
    used = sums.events > 0
    if np.isinf(sums.nats[used]).any():
        return math.inf
    return mean_segment_perplexity(-sums.nats[used], sums.events[used])


def _signature(origin: Origin, events: int, tally: EventSums, text_sha256: str, independent: str) -> str:
    fingerprints = origin.fingerprints
    parts = {
        **origin.text_parts,
        "n": str(events),
        "eos": "yes" if tally.events[EOS_KIND] else "no",
        "oov": origin.oov_policy,
        "context": origin.context,
        "independent": independent,
        "text": text_sha256[:6] or "unknown",
        "vocab": fingerprints["vocabulary"][:6] if "vocabulary" in fingerprints else "unknown",
        "model": fingerprints.get("label", origin.model),
        "v": NUMBERS_VERSION,
    }
    return str(Signature(parts, head="ppl"))


def evaluate(
    models: Sequence[LanguageModel],
    corpus: Corpus,
    *,
    origins: Sequence[Origin] | None = None,
    by_group: bool = False,
    threads: int | None = None,
    spans: bool = False,
    watch: Watch | None = None,
    doing: str = "scored",
) -> Evaluations:
    """Evaluate models on a text, read once for all of them."""
    # doing: what is said of the megabytes that are done.
    evaluators = [Evaluator(origin) for origin in origins or map(Origin.of_model, models)]
    spans = spans or any(model.context_policy.leaves_out for model in models)
    done, first = 0, None

    def summed(block: Segments, batches: list[ScoreBatch]) -> list[BlockSums]:
        documents, counts = block.documents, count_block(block, by_group=by_group)
        if documents is not None:
            batches = [batch.with_documents(documents[batch.segments - block.first]) for batch in batches]
        return [sum_block(batch, block, counts, by_group=by_group) for batch in batches]

    for blocks in score_together(models, corpus, summed, spans=spans, threads=thread_count(threads)):
        for i, (evaluator, sums) in enumerate(zip(evaluators, blocks, strict=True)):
            first = first or sums.block
            evaluator.add(sums)
            if watch is not None and sums.block is not None:
                watch(i, sums.block, sums.batch, sums.tallies[None])
        done += sum(sums.block.byte_count() for sums in blocks[:1] if sums.block is not None)
        say_progress(f"{doing} {done / 1e6:,.0f} MB")
    results: list[Evaluation] = []
    for evaluator, model in zip(evaluators, models, strict=True):
        seen, faults, hints = (first and model.special_tokens(first)) or (None, [], [])
        whole, *groups = evaluator.of_text(corpus, [*(FAULT + words for words in faults + hints), *model.notes])
        results += [replace(whole, first_segment=seen), *groups]
    return Evaluations(tuple(results))


def evaluate_scores(batches: Iterable[ScoreBatch], *, origin: Origin, corpus: Corpus | None = None) -> Evaluation:
    """Evaluate a score table of any origin."""
    # corpus: the text it is about, which gives bits per word, character and byte; None if it is not at hand.
    evaluator = Evaluator(origin.after(corpus))
    table, uncovered, spans = FirstTokens(evaluator.origin.policy), 0, True
    parts: list[Ints] = []
    for block, (batch,) in lockstep([table.watch(batches)], corpus, [origin.model], complete=False):
        scored = batch.segment_events > 0
        evaluator.add(sum_block(batch if scored.all() else _select(batch, scored), block))
        if block is not None:
            spans &= len(batch.ends) == len(batch)
            uncovered += int(np.count_nonzero(~scored | (spans & (batch.reach() < block.ends - block.starts))))
            parts += [] if block.documents is None else [block.documents]
    shared: dict[str, Any] = {"notes": ["no text was given: bits per word, character and byte are not known"]}
    if corpus is not None:
        report, tally = corpus.report, evaluator.tallies[None]
        tally.given_bytes = report.given_bytes
        shared = {"text_sha256": report.sha256, "notes": report.notes()}
        # What a caller says of documents counts more than what the table names, and this more than files do.
        if corpus.settings.get("document") is not None or not tally.names_documents:
            shared["documents"] = np.concatenate(parts) if parts else None, report.documents_by
        shared["notes"] += _notes_of_spans(table, spans, uncovered, report.segments)
    shared["notes"] += [table.note] if table.note else []
    shared["notes"] += [FAULT + table.heads] if table.heads else []
    return evaluator.finish(**shared)


def _notes_of_spans(table: FirstTokens, spans: bool, uncovered: int, segments: int) -> Iterator[str]:
    # Of a table that was read beside its text; uncovered: segments that it does not score to their end.
    if not spans:
        yield "the table has no byte spans: whether it scores every byte of the text was not checked"
    if table.apart:
        yield f"{table.apart:,} spans do not begin where the one before ended: bytes are scored twice or not at all"
    if uncovered and not table.policy.leaves_out:
        yield f"{uncovered:,} of {segments:,} segments are not scored to their end; their bytes are still counted"


_MANY_UNSEEN = 0.1  # from this rate on a note says so
NO_WORDS = (
    "this script has no spaces between words, so bits per word and word perplexity are not given; compare bits per byte or "
    "per character"
)


def whole_text_notes(tally: EventSums) -> Iterator[str]:
    """Yield what must be known of tokens across the end of given text, and of unseen words."""
    if tally.crossing_tokens:
        yield (
            f"segments that begin inside a token which begins in the given text: {tally.crossing_tokens:,} of "
            f"{len(tally.per_segment().segments):,}; such a token is scored whole, for the bytes behind the boundary"
        )
    yield from _unseen_words(tally)


def _unseen_words(tally: EventSums) -> Iterator[str]:
    tokens = tally.tokens
    if tally.events[SPELLED] or SEPARATOR in tally.parts:
        yield _spelled_words(tally)
    if tokens and tally.events[OOV] >= _MANY_UNSEEN * tokens and not tally.zeros[OOV]:
        yield (
            f"{100 * tally.events[OOV] / tokens:.0f} % of the tokens are unseen words, all one token <unk>: the perplexity "
            "is largely that of <unk>; see perplexity_without_oov and bits per byte"
        )


def _spelled_words(tally: EventSums) -> str:
    bits = nats_to_bits(-tally.nats())
    letters, space = (100 * nats_to_bits(-tally.part_nats(name)) / (bits or 1.0) for name in (SPELLING, SEPARATOR))
    unseen = f"({100 * tally.events[SPELLED] / (tally.tokens or 1):.1f} %)"
    if SEPARATOR not in tally.parts:
        return f"unseen characters {unseen} take {letters:.1f} % of the bits"
    return f"unseen words {unseen} are spelled: spelling takes {letters:.1f} % of the bits, white space {space:.1f} %"


CLEAN, CONTAMINATED = "clean", "contaminated"


@dataclass(frozen=True, repr=False)
class SplitEvaluation(Result):
    """One run in parts."""

    # Their log-probabilities add up to the whole's, exactly.

    whole: Evaluation
    clean: Evaluation | None  # the segments that are not contaminated; None if there are none
    contaminated: Evaluation | None  # the others; None if there are none

    def _in_brief(self) -> str:
        return self.whole._in_brief()


def split_by_segments(run: Run, contaminated: NDArray[np.bool_], corpus: Corpus) -> SplitEvaluation:
    """Evaluate the segments of a run in two parts."""
    # contaminated: bool [segments of the text], as `Overlap` has them; corpus: the text that was scored; it must
    # be possible to read it again.
    run = about(run, corpus)
    evaluator = Evaluator(run.origin)
    for block, (batch,) in lockstep([run.batches()], corpus, [run.name]):
        if block is None:  # there is a text
            continue
        codes = contaminated[block.first : block.first + len(block)].astype(np.int32)
        if len(codes) < len(block):
            break
        evaluator.add(sum_block(batch, replace(block, groups=codes), by_group=True))
    if corpus.report.segments != len(contaminated):
        raise InputError(
            f"the run's text has {corpus.report.segments:,} segments, not {len(contaminated):,}: read it in the same way"
        )
    sums, sha256 = evaluator.tallies, run.text_sha256
    clean, others = (
        evaluator.finish(part, name, text_sha256=sha256) if part in sums and sums[part].total_events else None
        for part, name in enumerate((CLEAN, CONTAMINATED))
    )
    return SplitEvaluation(evaluator.finish(text_sha256=sha256), clean, others)
