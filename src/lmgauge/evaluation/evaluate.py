"""The numbers of an evaluation, from the score table of any model and the text it is about."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy, policy_of
from lmgauge.errors import InputError
from lmgauge.evaluation.bounds import bound_reasons
from lmgauge.evaluation.denominators import Denominators, count_denominators
from lmgauge.evaluation.first_tokens import FirstTokens
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.protocol_sums import ProtocolSums, ScoredPart
from lmgauge.evaluation.results import Evaluation, Evaluations
from lmgauge.evaluation.tally import SegmentSums, Tally
from lmgauge.figures import FIGURES
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import ratio_interval
from lmgauge.numerics.perplexity import mean_segment_perplexity
from lmgauge.numerics.units import nats_to_bits, nats_to_scale, perplexity_from_nats
from lmgauge.progress import say_progress
from lmgauge.scores import EOS_KIND, OOV, SEPARATOR, SPELLED, SPELLING, TOKEN, ScoreBatch
from lmgauge.scoring import score_together
from lmgauge.signature import Signature
from lmgauge.text.segments import Segments
from lmgauge.threads import thread_count
from lmgauge.version import NUMBERS_VERSION

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus

Watch = Callable[[int, Segments, ScoreBatch, Tally], None]
Ints = NDArray[np.int64]


@dataclass
class BlockSums:
    """What a block of segments adds to the sums of one model: in all, and for each group."""

    total: Tally
    groups: dict[int, Tally]


def sum_block(batch: ScoreBatch, block: Segments | None = None, *, by_group: bool = False) -> BlockSums:
    """Return the sums of a batch."""
    # batch: rows of the score table, log-probabilities in nats.
    total = Tally()
    total.add(batch)
    groups: dict[int, Tally] = {}
    if by_group and block is not None:
        codes = np.zeros(len(block), np.int32) if block.groups is None else block.groups
        of_segment = codes[batch.segments - block.first]
        for code in np.unique(of_segment).tolist():
            groups[code] = Tally()
            groups[code].add(_select(batch, of_segment == code))
    return BlockSums(total, groups)


class Evaluator:
    """The accumulator of one model: collects sums block by block and turns them into numbers, also of groups."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.total = Tally()
        self.groups: dict[int, Tally] = {}
        self.protocol = ProtocolSums.of(origin.policy)

    def add(self, sums: BlockSums) -> None:
        """Add the sums of the next block of segments."""
        self.total.merge(sums.total)
        for code, tally in sums.groups.items():
            self.groups.setdefault(code, Tally()).merge(tally)

    def finish(
        self,
        tally: Tally,
        denominators: Denominators | None,
        *,
        group: str | None = None,
        text_sha256: str = "",
        documents: tuple[Ints | None, str] | None = None,
        notes: Sequence[str] = (),
    ) -> Evaluation:
        """Return the numbers of a tally."""
        # documents: int64 [segments of the text] or None, and what tells them apart; if not given, as the table says.
        protocol, whole, origin = self.protocol, group is None, self.origin
        scored = protocol.of_text(denominators, whole=whole) if protocol else ScoredPart.whole(denominators, origin.policy)
        denominators = scored.denominators
        events = tally.total_events
        if not events:
            raise InputError("there is nothing to evaluate: the text has no segment and the score table no row")
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
        own = [*(whole_text_notes(tally) if group is None else ()), *([] if has_words else [NO_WORDS])]
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
            notes=[*scored.notes, *notes, *caveats(interval), *own],
            given_bytes=tally.given_bytes,
            crossing_tokens=tally.crossing_tokens,
        )


def _documents(sums: SegmentSums, origin: Origin, stated: tuple[Ints | None, str] | None) -> tuple[Ints | None, str]:
    if stated is not None:
        return None if stated[0] is None else stated[0][sums.segments], stated[1]
    return sums.documents, origin.documents_by if sums.documents is None else origin.documents_of_table


def _select(batch: ScoreBatch, chosen: NDArray[np.bool_]) -> ScoreBatch:
    rows = np.repeat(chosen, batch.segment_events)
    return ScoreBatch(
        batch.segments[chosen],
        batch.segment_events[chosen],
        batch.token_ids[rows],
        batch.strings,
        batch.logprob[rows],
        batch.kind[rows],
        batch.ends[rows] if len(batch.ends) else batch.ends,
        {name: values[rows] for name, values in batch.extra.items()},
        batch.lossy[chosen] if len(batch.lossy) else batch.lossy,
        begins=batch.begins[rows] if len(batch.begins) else batch.begins,
        before=None if batch.before is None else batch.before.of_segments(chosen),
    )


def _figures(nats: float, counts: Mapping[str, int]) -> dict[str, Any]:
    # Every figure of a text; None where its count is 0 or not known.
    return {
        figure.name: nats_to_scale(-nats / counts[figure.per], figure.scale) if counts.get(figure.per) else None
        for figure in FIGURES
    }


def _of_kinds(tally: Tally) -> dict[str, Any]:
    return {
        "events": tally.total_events,
        "tokens": tally.tokens,
        "sentence_ends": tally.events[EOS_KIND],
        "oov": tally.unseen_events,
        "oov_rate": tally.unseen_events / tally.tokens if tally.tokens else 0.0,
        "perplexity_without_eos": _perplexity(tally, TOKEN, OOV, SPELLED),
        "perplexity_without_oov": _perplexity(tally, TOKEN, EOS_KIND),
        **{f"{name}_bits": nats_to_bits(-tally.part_nats(name)) for name in tally.parts},
    }


def _perplexity(tally: Tally, *kinds: int) -> float | None:
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


def _signature(origin: Origin, events: int, tally: Tally, text_sha256: str, independent: str) -> str:
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
    counted: dict[int, Denominators] = {}
    spans = spans or any(policy_of(model).leaves_out for model in models)
    done = 0
    for block, counts, batches, sums in _score_blocks(models, corpus, by_group, spans, thread_count(threads)):
        for code, part in counts.items():
            counted[code] = counted.get(code, Denominators()) + part
        for i, (batch, part_sums) in enumerate(zip(batches, sums, strict=True)):
            evaluators[i].add(part_sums)
            if (protocol := evaluators[i].protocol) is not None:
                protocol.watch(batch)
                protocol.read(block)
            if watch is not None:
                watch(i, block, batch, part_sums.total)
        done += block.byte_count()
        say_progress(f"{doing} {done / 1e6:,.0f} MB")
    sha256, whole = corpus.report.sha256, sum(counted.values(), Denominators())
    results: list[Evaluation] = []
    for evaluator, model in zip(evaluators, models, strict=True):
        notes = [*corpus.report.notes(), *getattr(model, "notes", ())]
        evaluator.origin = replace(evaluator.origin, documents_by=corpus.report.documents_by).after(corpus.boundary)
        results.append(evaluator.finish(evaluator.total, whole, text_sha256=sha256, notes=notes))
        for code, tally in sorted(evaluator.groups.items()):
            name = corpus.group_names[code] if code < len(corpus.group_names) else "all"
            results.append(evaluator.finish(tally, counted[code], group=name, text_sha256=sha256))
    return Evaluations(tuple(results))


_Scored = tuple[Segments, dict[int, Denominators], list[ScoreBatch], list[BlockSums]]


def _score_blocks(
    models: Sequence[LanguageModel], corpus: Corpus, by_group: bool, spans: bool, threads: int
) -> Iterator[_Scored]:
    # Blocks in order, with the scores of each model and their sums; independent work runs in threads.

    def summed(block: Segments, batches: list[ScoreBatch]) -> _Scored:
        documents = block.documents
        if documents is not None:
            batches = [batch.with_documents(documents[batch.segments - block.first]) for batch in batches]
        return block, _count(block, by_group), batches, [sum_block(b, block, by_group=by_group) for b in batches]

    return score_together(models, corpus, summed, spans=spans, threads=threads)


def _count(block: Segments, by_group: bool) -> dict[int, Denominators]:
    if block.groups is None or not by_group:
        return {0: count_denominators(block)}
    return {int(code): count_denominators(block, np.flatnonzero(block.groups == code)) for code in np.unique(block.groups)}


def evaluate_scores(batches: Iterable[ScoreBatch], *, origin: Origin, corpus: Corpus | None = None) -> Evaluation:
    """Evaluate a score table of any origin."""
    # corpus: the text it is about, which gives bits per word, character and byte; None if it is not at hand.
    origin = origin.after(None if corpus is None else corpus.boundary)
    evaluator = Evaluator(origin)
    extent, first_tokens = Extent(origin.policy), FirstTokens(origin.policy)
    for batch in first_tokens.watch(batches):
        evaluator.add(sum_block(batch))
        if evaluator.protocol is not None:
            evaluator.protocol.watch(batch)
        extent.add(batch)
    denominators: Denominators | None = None
    documents: tuple[Ints | None, str] | None = None
    sha256, notes = "", ["no text was given: bits per word, character and byte are not known"]
    if corpus is not None:
        denominators = Denominators()
        parts = []
        for block in corpus:
            denominators += count_denominators(block)
            extent.compare(block)
            if evaluator.protocol is not None:
                evaluator.protocol.read(block)
            if block.documents is not None:
                parts.append(block.documents)
        # What a caller says of documents counts more than what the table names, and this more than files do.
        if corpus.settings.get("document") is not None or not evaluator.total.names_documents:
            documents = np.concatenate(parts) if parts else None, corpus.report.documents_by
        sha256, notes = corpus.report.sha256, corpus.report.notes()
        evaluator.total.given_bytes = corpus.report.given_bytes
        notes += extent.notes(denominators.segments)
    notes += [first_tokens.note] if first_tokens.note else []
    return evaluator.finish(evaluator.total, denominators, text_sha256=sha256, documents=documents, notes=notes)


class Extent:
    """How far the spans of a table reach in each segment, to be held against the text."""

    def __init__(self, policy: ContextPolicy) -> None:
        self._leaves_out = policy.leaves_out
        self.ends: dict[int, int] = {}
        self.spans = True
        self.apart = 0
        self.uncovered = 0

    def add(self, batch: ScoreBatch) -> None:
        """Add the rows of a batch."""
        if not len(batch):
            return
        if not len(batch.ends):
            self.spans = False
            self.ends.update(dict.fromkeys(batch.segments.tolist(), -1))
            return
        self.apart += batch.spans_apart - (batch.gaps if self._leaves_out else 0)
        segments, reach = batch.segments.tolist(), batch.reach().tolist()
        reach[0] = max(reach[0], self.ends.get(segments[0], 0))  # it may have begun in the batch before
        self.ends.update(zip(segments, reach, strict=True))

    def compare(self, block: Segments) -> None:
        """Compare the spans with a block of the text."""
        lengths = (block.ends - block.starts).tolist()
        for segment, length in enumerate(lengths, block.first):
            end = self.ends.pop(segment, None)
            if end is None or (self.spans and end < length):
                self.uncovered += 1
            elif end > length:
                raise InputError(
                    f"segment {segment} of the score table ends at byte {end}, but the text's has {length} bytes; "
                    "is it the same text?"
                )

    def notes(self, segments: int) -> list[str]:
        """Return what a reader must know, all of the text being read."""
        if self.ends:
            raise InputError(
                f"the score table has a segment {min(self.ends)}, but the text has {segments}; is it the same text?"
            )
        notes = []
        if not self.spans:
            notes.append("the table has no byte spans: whether it scores every byte of the text was not checked")
        if self.apart:
            notes.append(
                f"{self.apart:,} spans do not begin where the one before ended: bytes are scored twice or not at all"
            )
        if self.uncovered and not self._leaves_out:
            notes.append(
                f"{self.uncovered:,} of {segments:,} segments are not scored to their end; their bytes count all the same"
            )
        return notes


_MANY_UNSEEN = 0.1  # from this rate on a note says so
NO_WORDS = (
    "most characters are of scripts that are written without spaces, so spaces do not part words: no bits per word, no word "
    "perplexity; compare by bits per byte or character"
)


def whole_text_notes(tally: Tally) -> Iterator[str]:
    """Yield what must be known of tokens across the end of given text, and of unseen words."""
    if tally.crossing_tokens:
        yield (
            f"segments that begin inside a token which begins in the given text: {tally.crossing_tokens:,} of "
            f"{len(tally.per_segment().segments):,}; such a token is scored whole, for the bytes behind the boundary"
        )
    yield from _unseen_words(tally)


def _unseen_words(tally: Tally) -> Iterator[str]:
    tokens = tally.tokens
    if tally.events[SPELLED] or SEPARATOR in tally.parts:
        yield _spelled_words(tally)
    if tokens and tally.events[OOV] >= _MANY_UNSEEN * tokens and not tally.zeros[OOV]:
        yield (
            f"{100 * tally.events[OOV] / tokens:.0f} % of the tokens are unseen words, all one event <unk>: the perplexity "
            "is in large part that of <unk>; look at perplexity_without_oov and bits per byte"
        )


def _spelled_words(tally: Tally) -> str:
    bits = nats_to_bits(-tally.nats())
    letters, space = (100 * nats_to_bits(-tally.part_nats(name)) / (bits or 1.0) for name in (SPELLING, SEPARATOR))
    of_tokens = f"{100 * tally.events[SPELLED] / (tally.tokens or 1):.1f} % of the tokens are unseen"
    if SEPARATOR not in tally.parts:
        return f"{of_tokens} characters: {letters:.1f} % of the bits say which they are"
    return (
        f"{of_tokens} words, spelled letter by letter: {letters:.1f} % of the bits are their letters, {space:.1f} % "
        "the white space between words"
    )
