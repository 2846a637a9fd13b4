"""How far models are from a base over the contexts of a text, and which is nearer: what quantizing or distilling cost."""

# Both models predict each event of the text from what really came before it; the two distributions over the whole
# vocabulary are then compared, tile by tile.

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import starmap, tee
from typing import TYPE_CHECKING

import numpy as np

from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.evaluation.comparison.until import KL, Question
from lmgauge.evaluation.diagnosis.costs import TokenCost, TokenCosts
from lmgauge.evaluation.divergence.bases import Base, ModelFacts, ranks_of
from lmgauge.evaluation.divergence.candidates import CandidateSums, candidate_tests
from lmgauge.evaluation.divergence.divergence_result import FLOOR, CandidateDivergences, Divergence
from lmgauge.evaluation.divergence.figures import PairEvents, PairRows, collect, figures_of, worst_tokens
from lmgauge.evaluation.divergence.sample import Sample, draw
from lmgauge.evaluation.options import DivergenceSettings
from lmgauge.evaluation.origin import normalizer_of
from lmgauge.evaluation.other_batches import against_itself
from lmgauge.evaluation.slicing.cuts import Cuts, TrainingWords
from lmgauge.evaluation.slicing.span_alignment import exact_sums, ranges_by_event
from lmgauge.evaluation.slicing.sums import CutSums, Slices
from lmgauge.numerics.exact import Floats
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.signature import Signature, text_parts
from lmgauge.scores import ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.distributions.blocks import of_events
from lmgauge.scores.distributions.reduce import reduce_pair
from lmgauge.scores.distributions.reductions import Divergences, KullbackLeibler
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel


Watch = Callable[[int, PairRows], None]

# Distributions that sum to one within it are taken as such; float32 models and ARPA files round.
_MASS_TOLERANCE = 1e-5
# Of the noise floor: the most events, and the most memory for their distributions.
_FLOOR_EVENTS, _FLOOR_BYTES = 1000, 1 << 28


def divergence(
    base: Base,
    candidates: Sequence[LanguageModel],
    corpus: Corpus,
    settings: DivergenceSettings,
    *,
    names: Sequence[str],
    training: Callable[[Iterable[Segments]], TrainingWords] | None = None,
    notes: Sequence[str] = (),
    watch: Watch | None = None,
) -> CandidateDivergences:
    """Compare the predictive distributions of models with those of a base, over the contexts of a text."""
    # names: of the candidates.
    for candidate, name in zip(candidates, names, strict=True):
        base.check(candidate, name)
    sample = draw((*base.models, *base.rounding, *candidates), corpus, settings.events, settings.seed)
    if sample.total_events is not None:  # the whole text was read
        base.check_text(corpus)
    words = None if training is None else training(sample)
    measured = _Measured(base, sample, corpus, settings, tuple(notes))
    items, sums = [], []
    for i, (candidate, name) in enumerate(zip(candidates, names, strict=True)):
        slices = KlSlices(corpus, words)

        def seen(rows: PairRows, i: int = i, slices: KlSlices = slices) -> None:
            slices.add(rows)
            if watch is not None:
                watch(i, rows)

        events = collect(measured.rows(candidate), (base.facts.name, name), numbers=sample.numbers, watch=seen)
        base.check_text(corpus)
        items.append(measured.result(candidate, name, events, slices))
        sums.append(CandidateSums.of(name, events))
    tests = candidate_tests(sums)
    floor = next((measured.floor(model) for model in base.rounding), None)
    named = [replace(item, tests=tuple(test for test in tests if test.second == item.b), floor=floor) for item in items]
    return CandidateDivergences(tuple(named))


def spelled_notes(models: Sequence[LanguageModel], names: Sequence[str]) -> tuple[str, ...]:
    """Say of models whose unseen words are spelled what of them is compared; nothing of others.

    >>> import lmgauge
    >>> spelled_notes([lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b"]))], ["a model"])
    ()
    """
    spelled = [name for model, name in zip(models, names, strict=True) if of_events(model) is not model]
    if not spelled:
        return ()
    return (
        f"{', '.join(spelled)}: events of the vocabulary are compared, all unseen words as one event <unk>; their letters "
        "and white space are left out",
    )


# --- what the columns come to -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Measured:
    """A base and a text, with which candidates are compared one after the other."""

    base: Base
    sample: Sample
    corpus: Corpus
    settings: DivergenceSettings
    notes: tuple[str, ...]

    def rows(self, candidate: LanguageModel) -> Iterator[PairRows]:
        """Yield what both say at the events of the sample, block by block."""
        text, own = itertools.tee(self.sample)
        done = 0
        for block, (a, b, columns) in zip(own, self.base.compared(candidate, text, self.sample, self.settings), strict=True):
            yield PairRows(block, a, b, columns)
            done += len(b)
            self.sample.say("compared", done)

    def floor(self, model: LanguageModel) -> Divergence:
        """Return how far the base is from itself in other batches, at some of the events."""
        most = max(1, min(_FLOOR_EVENTS, _FLOOR_BYTES // (4 * len(model.vocabulary))))
        drawn = draw([model], self.sample, most, self.settings.seed)  # type: ignore[arg-type]
        few = replace(drawn, events=np.arange(most))
        reduction, threads = Divergences(ranks_of(self.settings)), self.settings.threads
        pairs = against_itself(model, few, reduction, events=few.events, threads=threads)
        slices = KlSlices(self.corpus)
        events = collect(starmap(PairRows, pairs), (self.base.facts.name, FLOOR), watch=slices.add)
        itself = replace(self, sample=few, settings=replace(self.settings, examples=0), notes=())
        return itself.result(model, FLOOR, events, slices)

    def result(self, b: LanguageModel, name: str, events: PairEvents, slices: KlSlices) -> Divergence:
        """Return what the events of a candidate come to, without its tests."""
        a, facts, report, settings = self.base.facts, ModelFacts.of(b, name), self.corpus.report, self.settings
        sizes = self.sample.sizes(len(events), len(events.sizes))
        figures = figures_of(events, settings.ranks)
        interval = figures["kl_ab_nats"].interval or figures["perplexity_a"].interval
        fallen = events.p[0] - events.p[1]
        worst, lost = (worst_tokens(events, values, settings.examples, b) for values in (events.kl, fallen))
        signature = {
            "a": f"{a.label}@{a.fingerprint[:6]}",
            "b": f"{facts.label}@{facts.fingerprint[:6]}",
            **({"stored": a.stored} if a.stored else {}),
            "n": f"{sizes['events']}/{sizes['total_events']}",
            "segments": f"{sizes['segments']}/{sizes['total_segments']}",
            "seed": str(settings.seed),
            **text_parts(b.tokenizer.unit, normalizer_of(b)),
            "context": "+".join(dict.fromkeys((a.context, facts.context))),
            "independent": in_signature(interval),
            "text": report.sha256[:6] or "unknown",
            "vocab": b.vocabulary.fingerprint[:6],
            "v": NUMBERS_VERSION,
        }
        return Divergence(
            a=a.name,
            b=name,
            **sizes,
            **figures,
            slices=slices.finish(),
            costly_tokens=slices.costly(settings.examples),
            worst_tokens=worst,
            lost_tokens=lost,
            tests=(),
            storage=self.base.storage(events.columns),
            seed=settings.seed,
            independence="" if interval is None else in_words(interval, report.documents_by),
            fingerprints={
                "a": a.fingerprint, "b": facts.fingerprint, "vocabulary": b.vocabulary.fingerprint, "text": report.sha256
            },
            signature=str(Signature(signature, head="div")),
            notes=(
                *pair_notes(a, facts),
                *_notes(events, (a.name, name)),
                *caveats(interval),
                *report.notes(),
                *self.notes,
            ),
        )  # fmt: skip


def pair_notes(a: ModelFacts, b: ModelFacts) -> Iterator[str]:
    """Yield how the tokens of two models were made the same, and what else than their weights differs."""
    yield from filter(None, (a.alignment, b.alignment))
    policies = [ContextPolicy.parse(one.context) for one in (a, b)]
    if len({replace(policy, kv_cache=None) for policy in policies}) > 1:
        yield (
            f"the models see different contexts ({a.name}: {a.context}; {b.name}: {b.context}), which is part of what is "
            "measured here; --context, --stride and --first-token make them the same"
        )
    formats = [policy.kv_cache or "not rounded" for policy in policies]
    if formats[0] != formats[1]:
        yield f"keys and values differ ({a.name}: {formats[0]}; {b.name}: {formats[1]}), which is measured here"


def _notes(events: PairEvents, names: tuple[str, str]) -> Iterator[str]:
    for column, (left, right) in (("kl_ab", names), ("kl_ba", names[::-1])):
        infinite = int(np.count_nonzero(events.columns[column] == np.inf))
        if infinite:
            yield (
                f"the KL divergence of {right} from {left} is infinite at {infinite:,} events: {right} rules out what "
                f"{left} holds possible"
            )
    undefined = int(np.count_nonzero(np.isnan(events.kl)))
    if undefined:
        yield f"{undefined:,} events left out of the divergences: there a model gives every token probability zero"
    for column, name in zip(("mass_a", "mass_b"), names, strict=True):
        mass = events.columns[column]
        off = np.where(mass == 0.0, 0.0, np.abs(mass - 1.0))
        wrong, worst = int(np.count_nonzero(off > _MASS_TOLERANCE)), float(mass[int(off.argmax())])
        if wrong:
            yield (
                f"{name}: its probabilities do not sum to one at {wrong:,} events (on average to "
                f"{mass[mass > 0].mean():.6g}, at worst to {worst:.6g}) "
                "and were divided by their sum; see lmgauge audit"
            )


class KlSlices:
    """Collects KL(base || candidate) by slices of the text and by token, block by block."""

    def __init__(self, corpus: Corpus, training: TrainingWords | None = None) -> None:
        self._cuts, self._sums, self._tokens = Cuts(corpus, training), CutSums(), TokenCosts()

    def add(self, rows: PairRows) -> None:
        """Add the events of a block; those where a model gives nothing a probability are left out."""
        kl = rows.columns["kl_ab"]
        defined = np.flatnonzero(~np.isnan(kl))
        # What sums bits takes costs as log-probabilities: an infinite divergence is an event of probability zero.
        table = replace(rows.b.of_rows(defined), logprob=-kl[defined], extra={})
        ranges = ranges_by_event([table])
        block, documents = rows.block, rows.block.documents
        self._sums.add(
            self._cuts.of_events(block, table, ranges, spans=len(table.ends) == len(table)),
            ranges.segment,
            [exact_sums(table, ranges.events[0])],
            ranges.events[0],
            first=block.first,
            documents=documents,
        )
        self._tokens.add(table)

    def finish(self) -> tuple[Slices, ...]:
        """Return the slices of each way to cut the text, their mean KL in bits per event."""
        return tuple(self._sums.finish("event"))

    def costly(self, most: int) -> tuple[TokenCost, ...]:
        """Return the tokens with most KL in all, bits."""
        return self._tokens.most(most)


class Nearness(Question):
    """Which of two candidates is nearer to a base, by mean KL(base || candidate); or whether one is nearer than a limit."""

    # models: the base and its candidates, over the same tokens; limit: nats per event, None where there are two candidates.

    infinite = (
        "the divergence is infinite or undefined at an event, as a model rules out what the base holds possible: there is "
        "nothing to decide"
    )

    def __init__(
        self,
        models: Sequence[LanguageModel],
        names: Sequence[str],
        corpus: Corpus,
        *,
        limit: float | None = None,
        notes: Sequence[str] = (),
        threads: int | None = None,
    ) -> None:
        super().__init__(models, names, corpus, threads)
        self.base, self.limit = names[0], limit
        self.sides = names[1:] if limit is None else (f"{limit:g} nats", names[1])
        self.made_of["figure"] = "kl"  # the totals of a comparison of the same models are others
        base, *candidates = map(ModelFacts.of, models, names)
        self.notes += (*notes, *dict.fromkeys(note for one in candidates for note in pair_notes(base, one)))

    def batches(self, text: Corpus) -> Iterator[tuple[Segments, Sequence[ScoreBatch]]]:
        """Yield each block of a text with the divergences of each candidate, as what it pays."""
        base, *candidates = self.models
        blocks, *copies = tee(text, 1 + len(candidates))
        kl, threads = KullbackLeibler(), self.threads
        pairs = [reduce_pair(base, one, copy, kl, threads=threads) for one, copy in zip(candidates, copies, strict=True)]
        for block, *each in zip(blocks, *pairs, strict=True):
            yield block, [_paid(batch, columns["kl_ab"]) for _, batch, columns in each]

    def metric(self) -> int:
        """Return the number of the figure that this is about."""
        return KL


def _paid(batch: ScoreBatch, kl: Floats) -> ScoreBatch:
    # What sums nats takes costs as log-probabilities: an infinite divergence is an event of probability zero.
    return replace(batch, logprob=-np.where(np.isnan(kl), np.inf, kl), extra={})
