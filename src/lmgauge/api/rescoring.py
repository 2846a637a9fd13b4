"""N-best lists scored by language models, weights tuned, and the best chosen: the work of `lmgauge.rescore`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmgauge.context_policy import policy_of
from lmgauge.errors import UsageError
from lmgauge.evaluation.evaluate import sum_block
from lmgauge.evaluation.tally import Tally
from lmgauge.models.protocol import LanguageModel
from lmgauge.numerics.grouped_sums import document_sums
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.progress import say_progress
from lmgauge.scores import ScoreBatch
from lmgauge.scoring import score_together
from lmgauge.signature import Signature
from lmgauge.tasks.comparison import Systems, compare_systems
from lmgauge.tasks.draws import IndependentRows
from lmgauge.tasks.metrics.error_rates import EditRate
from lmgauge.tasks.metrics.protocol import Floats, Statistics
from lmgauge.tasks.nbest.lists import NbestLists
from lmgauge.tasks.nbest.references import references_of, speakers_of
from lmgauge.tasks.nbest.rescoring import ScoredLists, count_errors, extremes, rates_of, tune_weights, weights_of
from lmgauge.tasks.nbest.results import FIRST, RESCORED, Rescored, Tuning, UnknownWords
from lmgauge.tasks.scoring import document_codes
from lmgauge.tasks.settings import ComparisonSettings, NbestReading, PairsFile, RescoreSettings
from lmgauge.tasks.texts import Integers, Texts
from lmgauge.text.segments import Segments
from lmgauge.version import NUMBERS_VERSION

_TEXTS_IN_BLOCK = 8192


@dataclass(frozen=True)
class Rescoring:
    """Models, their names, and how lists are rescored with them."""

    models: Sequence[LanguageModel]
    names: Sequence[str]
    metric: EditRate
    settings: RescoreSettings
    reading: NbestReading
    comparison: ComparisonSettings

    def tuned(self, lists: NbestLists, ref: PairsFile) -> tuple[dict[str, float], Tuning, list[str]]:
        """Return weights, how they were chosen, and notes."""
        references, notes = references_of(lists.ids, ref, self.reading)
        scored, _ = self._scored(lists)
        say_progress("tuning weights")
        seed, threads = self.comparison.seed, self.comparison.threads
        weights, tuning = tune_weights(scored, references, starts=self.settings.starts, seed=seed, threads=threads)
        return weights, tuning, notes

    def result(
        self,
        lists: NbestLists,
        weights: Mapping[str, float],
        test_ref: PairsFile | None,
        tuning: Tuning | None,
        notes: list[str],
    ) -> Rescored:
        """Return the best of all lists, with error rates where there are references."""
        references = None
        if test_ref is not None:
            references, more = references_of(lists.ids, test_ref, self.reading)
            notes = [*notes, *more]
        scored, unknown = self._scored(lists)
        own = weights_of(scored.names, weights)
        best = scored.choose(own)
        statistics = None if references is None else count_errors(lists, references, self.metric, self.comparison.threads)
        limits = (
            [] if statistics is None else [rates_of(self.metric, statistics, ends) for ends in extremes(lists, statistics)]
        )
        ruled_out = scored.impossible()
        if ruled_out:
            share = f"{ruled_out:,} of {len(lists.texts):,} hypotheses have"
            notes = [*notes, f"{share} probability 0 under a model, and are not chosen while others are left"]
        return Rescored(
            lists=lists,
            models=tuple(self.names),
            nats=scored.nats,
            totals=scored.totals(own),
            chosen=best,
            weights=dict(zip(scored.names, own.tolist(), strict=True)),
            unknown=unknown,
            tuning=tuning,
            systems=None if statistics is None else self._compared(lists, statistics, best),
            oracle=limits[0] if limits else None,
            worst=limits[1] if limits else None,
            notes=tuple(dict.fromkeys(notes)),
            signature=self._signature(weights, tuning),
        )

    def _scored(self, lists: NbestLists) -> tuple[ScoredLists, tuple[UnknownWords, ...]]:
        """Return lists with the log-probabilities of all models; equal texts are scored once."""
        texts = [text.lower() for text in lists.texts] if self.settings.lower_for_models else list(lists.texts)
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        say_progress(f"scoring {len(place):,} different hypotheses")
        nats, unknown = log_probabilities(self.models, list(place), self.comparison.threads)
        words = sum(len(text.split()) for text in place)
        counts = tuple(UnknownWords(name, count, words) for name, count in zip(self.names, unknown, strict=True))
        where = np.array([place[text] for text in texts], dtype=np.int64)
        return ScoredLists(lists, tuple(self.names), nats[:, where], self.metric), counts

    def _compared(self, lists: NbestLists, statistics: Statistics, best: Integers) -> Systems:
        """Return first and best hypotheses as two systems."""
        rows = [statistics[lists.offsets[:-1]], statistics[best]]
        who = self.settings.document
        independent = IndependentRows(rows, documents_by=UNKNOWN if who is None else "speakers or calls")
        if who is not None:
            speakers = document_codes(speakers_of(lists.ids, who), len(lists))
            independent = independent.with_documents(document_sums(rows, speakers))
        return compare_systems(self.metric, [FIRST, RESCORED], independent, 1, settings=self.comparison)

    def _signature(self, weights: Mapping[str, float], tuning: Tuning | None) -> str:
        metric = self.metric
        parts = {"metric": metric.name.lower(), **metric.normalization.signature()}
        parts["models"] = "+".join(f"{model.label}@{model.fingerprint[:6]}" for model in self.models)
        parts["model-case"] = "lower" if self.settings.lower_for_models else "as-is"
        parts["weights"] = ",".join(f"{name}={value:.6g}" for name, value in weights.items())
        if tuning is not None:
            parts |= {"tuned": f"{tuning.lists}-lists", "places": str(tuning.places), "seed": str(tuning.seed)}
        return str(Signature(parts | {"v": NUMBERS_VERSION}, head="rescore"))


def log_probabilities(
    models: Sequence[LanguageModel], texts: Sequence[str], threads: int | None = None
) -> tuple[Floats, list[int]]:
    """Return what each model gives each text, and how many words each does not know."""
    # -> float64 [models, texts], natural logs, ends included where a model predicts them; -inf for what a model rules out.
    running = next((model.label for model in models if policy_of(model).runs_on), None)
    if running is not None:
        raise UsageError(
            f"{running}: its context runs on from one text to the next, and hypotheses need contexts of their own "
            "(--context sentence)"
        )
    tallies = [Tally() for _ in models]

    def summed(block: Segments, batches: list[ScoreBatch]) -> list[Tally]:
        return [sum_block(batch).total for batch in batches]

    for sums in score_together(models, _blocks(texts) if models else (), summed, threads=threads):
        for tally, part in zip(tallies, sums, strict=True):
            tally.merge(part)
    nats = np.zeros((len(models), len(texts)))
    for row, tally in zip(nats, tallies, strict=True):
        own = tally.per_segment()
        row[own.segments] = own.nats
    return nats, [tally.unseen_events for tally in tallies]


def _blocks(texts: Sequence[str]) -> Iterator[Segments]:
    """Yield texts as segments; they are known to be valid, so they are not cleaned again."""
    whole = Texts.of_bytes([text.encode() for text in texts])
    for begin in range(0, len(whole), _TEXTS_IN_BLOCK):
        part = whole.part(begin, begin + _TEXTS_IN_BLOCK)
        yield Segments(part.data, part.starts, part.ends, "<hypotheses>", first_line=begin + 1, first=begin)
