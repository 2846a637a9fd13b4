"""`lmgauge.rescore`: n-best lists of a recognizer, scored by language models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmgauge.api.inputs import Models, PathLike, named_models
from lmgauge.context_policy import policy_of
from lmgauge.errors import UsageError
from lmgauge.evaluation.evaluate import sum_block
from lmgauge.evaluation.tally import Tally
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel
from lmgauge.numerics.grouped_sums import document_sums
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.progress import say_progress
from lmgauge.readable import first_few
from lmgauge.scores import ScoreBatch
from lmgauge.scoring import score_together
from lmgauge.signature import Signature
from lmgauge.tasks.comparison import Systems, compare_systems
from lmgauge.tasks.draws import IndependentRows
from lmgauge.tasks.metrics.error_rates import WER, EditRate
from lmgauge.tasks.metrics.protocol import Floats, Statistics
from lmgauge.tasks.nbest.lists import Hypothesis, NbestLists
from lmgauge.tasks.nbest.reading import read_nbest
from lmgauge.tasks.nbest.references import references_of, speakers_of
from lmgauge.tasks.nbest.rescoring import ScoredLists, count_errors, extremes, rates_of, tune_weights, weights_of
from lmgauge.tasks.nbest.results import FIRST, RESCORED, Rescored, Tuning, UnknownWords
from lmgauge.tasks.scoring import document_codes
from lmgauge.tasks.settings import RescoreSettings
from lmgauge.tasks.texts import Integers, Texts
from lmgauge.text.segments import Segments
from lmgauge.version import NUMBERS_VERSION

Nbest = PathLike | Sequence[PathLike] | Mapping[str, Sequence[Hypothesis]]
References = PathLike | Mapping[str, str]

_TEXTS_IN_BLOCK = 8192


def rescore(
    nbest: Nbest,
    model: Models,
    *,
    tune: Nbest | None = None,
    ref: References | None = None,
    test_ref: References | None = None,
    weights: Mapping[str, float] | None = None,
    settings: RescoreSettings | None = None,
    scoring: ScoringOptions | None = None,
) -> Rescored:
    """Choose the best hypothesis of n-best lists by a recognizer's scores and language models: `lmgauge rescore`.

    The best is that of the greatest weighted sum of the recognizer's scores, the natural logs of the probabilities that
    models give the text, and its length in words. Weights are given, or tuned on other lists by exact line search (Och
    2003).

    Args:
        nbest: files or folders with n-best lists (JSONL, SRILM, Kaldi, ESPnet), or by the id of each utterance its
            hypotheses: texts, (text, score) or (text, {name: score}), the recognizer's best first.
        model: the model, its path, or several of either; an empty list where the lists have all scores already.
        tune: lists to tune weights on, of other utterances than `nbest`.
        ref: their references: a file (Kaldi's text, TSV, trn, JSONL), or by id.
        test_ref: references of `nbest`, for error rates before and after.
        weights: by name of the score, the model, and "words"; 0 for those that are not named. In place of `tune`.
        settings: fields, error rate, tests; None: the defaults of `lmgauge.RescoreSettings`.
        scoring: how models named by their path score.

    Returns:
        The best hypotheses with their scores; weights; error rates with a paired test, where references are given.

    Raises:
        InputError: a list or a reference cannot be used.
        ModelFileError: a model cannot be loaded.
        UsageError: there are neither weights nor lists to tune them on, or arguments contradict each other.

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("witten-bell", Corpus.from_strings(["a dog barks", "the dog sleeps"]), order=2)
        >>> dev = {"u1": [("a dock barks", -3.0), ("a dog barks", -3.1)]}
        >>> test = {"u2": [("the dock sleeps", -4.0), ("the dog sleeps", -4.1)]}
        >>> result = rescore(test, {"wb2": model}, tune=dev, ref={"u1": "a dog barks"}, test_ref={"u2": "the dog sleeps"})
        >>> result.texts, result.systems[1].score.errors
        (('the dog sleeps',), 0)
    """
    chosen = settings or RescoreSettings()
    _check(tune, ref, weights)
    lists = _lists(nbest, chosen)
    held_out = None if tune is None else _lists(tune, chosen)
    if held_out is not None and {*held_out.score_names} != {*lists.score_names}:
        both = [first_few(one.score_names) if one.score_names else "none" for one in (held_out, lists)]
        raise UsageError(
            f"the lists to tune on have the scores {both[0]}, the others {both[1]}; name the same ones (--score)"
        )
    models, names = _models(model, scoring)
    work = _Rescoring(models, names, chosen)
    tuning, notes = None, list(lists.notes)
    if held_out is not None and ref is not None:
        weights, tuning, of_tuning = work.tuned(held_out, ref)
        notes += [*of_tuning, *_seen(lists, held_out)]
    assert weights is not None
    return work.result(lists, weights, test_ref, tuning, notes)


def _check(tune: Nbest | None, ref: References | None, weights: Mapping[str, float] | None) -> None:
    """Refuse what does not say where weights come from, or says it twice.

    Raises:
        UsageError: that.
    """
    if (tune is None) == (weights is None):
        which = "both are" if weights is not None else "neither is"
        raise UsageError(
            f"weights are tuned on other lists (--tune DEV --ref REF) or given (--weights score=1,kn5=0.5); {which} here"
        )
    if (tune is None) != (ref is None):
        raise UsageError(
            "--tune needs the references of its lists: name them (--ref)"
            if ref is None
            else "--ref has the references of the lists to tune on: name those (--tune); those of NBEST are --test-ref"
        )


def _models(model: Models, scoring: ScoringOptions | None) -> tuple[Sequence[LanguageModel], Sequence[str]]:
    """Return models and their names; none where the lists have all scores already."""
    return ([], []) if isinstance(model, (list, tuple)) and not model else named_models(model, scoring)


def _seen(lists: NbestLists, held_out: NbestLists) -> list[str]:
    """Return a note where weights were tuned on what they are used for."""
    shared = len({*lists.ids} & {*held_out.ids})
    if not shared:
        return []
    return [f"{shared:,} utterances are among those that the weights were tuned on, so their error rate is too low"]


def _lists(nbest: Nbest, settings: RescoreSettings) -> NbestLists:
    if isinstance(nbest, Mapping):
        return NbestLists.of_hypotheses(nbest)
    say_progress("reading n-best lists")
    return read_nbest(nbest, settings.reading)


@dataclass(frozen=True)
class _Rescoring:
    """Models, their names, and how lists are rescored with them."""

    models: Sequence[LanguageModel]
    names: Sequence[str]
    settings: RescoreSettings

    @property
    def metric(self) -> EditRate:
        return self.settings.metric or WER()

    @property
    def threads(self) -> int | None:
        return self.settings.comparison.threads

    def tuned(self, lists: NbestLists, ref: References) -> tuple[dict[str, float], Tuning, list[str]]:
        """Return weights, how they were chosen, and notes.

        Args:
            lists: the hypotheses.
            ref: their references.

        Raises:
            InputError: the references cannot be read, or an utterance has none.
        """
        references, notes = references_of(lists.ids, ref, self.settings.reading)
        scored, _ = self._scored(lists)
        say_progress("tuning weights")
        comparison = self.settings.comparison
        weights, tuning = tune_weights(
            scored, references, starts=self.settings.starts, seed=comparison.seed, threads=comparison.threads
        )
        return weights, tuning, notes

    def result(
        self,
        lists: NbestLists,
        weights: Mapping[str, float],
        test_ref: References | None,
        tuning: Tuning | None,
        notes: list[str],
    ) -> Rescored:
        """Return the best of all lists, with error rates where there are references.

        Args:
            lists: the hypotheses.
            weights: by name.
            test_ref: references of the lists; None for none.
            tuning: how the weights were chosen, if they were.
            notes: what is known so far.

        Raises:
            InputError: the references cannot be read, or an utterance has none.
            UsageError: a name among the weights is not known, a weight is not finite, or all are 0.
        """
        references = None
        if test_ref is not None:
            references, more = references_of(lists.ids, test_ref, self.settings.reading)
            notes = [*notes, *more]
        scored, unknown = self._scored(lists)
        own = weights_of(scored.names, weights)
        best = scored.choose(own)
        statistics = None if references is None else count_errors(lists, references, self.metric, self.threads)
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
        texts = [text.lower() for text in lists.texts] if self.settings.lowercase else list(lists.texts)
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        say_progress(f"scoring {len(place):,} different hypotheses")
        nats, unknown = log_probabilities(self.models, list(place), self.threads)
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
        return compare_systems(self.metric, [FIRST, RESCORED], independent, 1, settings=self.settings.comparison)

    def _signature(self, weights: Mapping[str, float], tuning: Tuning | None) -> str:
        metric = self.metric
        parts = {"metric": metric.name.lower(), **metric.normalization.signature()}
        parts["models"] = "+".join(f"{model.label}@{model.fingerprint[:6]}" for model in self.models)
        parts["model-case"] = "lower" if self.settings.lowercase else "as-is"
        parts["weights"] = ",".join(f"{name}={value:.6g}" for name, value in weights.items())
        if tuning is not None:
            parts |= {"tuned": f"{tuning.lists}-lists", "places": str(tuning.places), "seed": str(tuning.seed)}
        return str(Signature(parts | {"v": NUMBERS_VERSION}, head="rescore"))


def log_probabilities(
    models: Sequence[LanguageModel], texts: Sequence[str], threads: int | None = None
) -> tuple[Floats, list[int]]:
    """Return what each model gives each text, and how many words each does not know.

    Args:
        models: the models.
        texts: a segment each.
        threads: how many to use.

    Returns:
        float64 [models, texts], natural logs, ends included where a model predicts them; -inf for what a model rules out.

    Raises:
        UsageError: the context of a model runs on from text to text.
    """
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
