"""`lmgauge.rescore`: n-best lists of a recognizer, scored by language models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from glob import glob
from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import PATHS, Models, PathLike, listed, named_models
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.base.files import refuse_replacing
from lmgauge.settings import ScoringOptions
from lmgauge.tasks.settings import ComparisonSettings, NbestReading, NormalizationOptions, PairsFile, RescoreSettings

if TYPE_CHECKING:
    from lmgauge.results import Rescored
    from lmgauge.tasks.nbest.reading import Hypothesis


@verb
def rescore(
    nbest: PathLike | Sequence[PathLike] | Mapping[str, Sequence[Hypothesis]],
    model: Models = (),
    *,
    tune: PathLike | Sequence[PathLike] | Mapping[str, Sequence[Hypothesis]] | None = None,
    ref: PairsFile | None = None,
    test_ref: PairsFile | None = None,
    settings: RescoreSettings = RescoreSettings(),
    reading: NbestReading = NbestReading(),
    normalization: NormalizationOptions = NormalizationOptions(),
    comparison: ComparisonSettings = ComparisonSettings(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Rescored:
    """Choose the best hypothesis of n-best lists by a recognizer's scores and language models: `lmgauge rescore`.

    The best has the highest weighted sum of the recognizer's scores, the natural logs of the probabilities that
    models give the text, and its length in words. Weights are given, or tuned on other lists by exact line search (Och
    2003).

    Args:
        nbest: files or folders with n-best lists (records, Kaldi, ESPnet); in Python also hypotheses by the id of each
            utterance: texts, (text, score) or (text, {name: score}), the recognizer's best first.
        model: the model or its path; several have a weight each; none where the lists have all scores already.
        tune: n-best lists to tune weights on, of other utterances than `nbest`.
        ref: references of the lists to tune on, by their ids: Kaldi's text, TSV, trn or JSONL.
        test_ref: references of `nbest`; for error rates before and after.
        settings: weights, unit of errors, tuning, what is independent, and what is written.
        reading: fields and format of lists and references.
        normalization: of hypotheses and references before errors are counted; what models score is not normalized.
        comparison: how first and rescored hypotheses are compared, and threads; its seed is that of the tuning as well.
        scoring: how models named by their path score.
        fields: those of the settings, by name, such as `weights={"score": 1, "kn5": 0.5}`.

    Returns:
        The best hypotheses with their scores; weights; error rates with a paired test, where references are given.

    Raises:
        InputError: a list or a reference cannot be used.
        ModelFileError: a model cannot be loaded.
        UsageError: there are neither weights nor lists to tune them on, arguments contradict each other, or a file would
            replace what is read.

    Shell:
        lmgauge rescore test/ -m kn5/ --tune dev/ --ref dev.txt -o best.txt
        lmgauge rescore t.jsonl -m kn5/ -m gpt2 --weights score=1,kn5=0.3,gpt2=0.4
        lmgauge rescore test/ -m kn5/ --tune dev/ --ref dev.txt --test-ref test.txt

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("witten-bell", Corpus.from_strings(["a dog barks", "the dog sleeps"]), order=2)
        >>> dev = {"u1": [("a dock barks", -3.0), ("a dog barks", -3.1)]}
        >>> test = {"u2": [("the dock sleeps", -4.0), ("the dog sleeps", -4.1)]}
        >>> result = rescore(test, {"wb2": model}, tune=dev, ref={"u1": "a dog barks"}, test_ref={"u2": "the dog sleeps"})
        >>> result.texts, result.systems[1].score.errors
        (('the dog sleeps',), 0)
    """
    from lmgauge.evaluation.choices.multiple_choice import log_probabilities
    from lmgauge.tasks.metrics.error_rates import CER, WER
    from lmgauge.tasks.nbest.reading import nbest_lists
    from lmgauge.tasks.nbest.rescoring import Rescoring, is_jsonl

    output, scored = settings.output, settings.write_scores
    if output is not None:
        is_jsonl(output)
    inputs: list[Any] = [nbest, tune, model, ref, test_ref, settings.document]
    read = [os.fspath(one) for each in inputs for one in listed(each) if isinstance(one, PATHS)]
    refuse_replacing({"-o": output, "--write-scores": scored}, [*read, *(file for one in read for file in glob(one))])
    tuned = tune is not None
    if tuned == (settings.weights is not None):
        which = "both are" if tuned else "neither is"
        raise UsageError(
            f"weights are tuned on other lists (--tune DEV --ref REF) or given (--weights score=1,kn5=0.5); {which} here"
        )
    if tuned and ref is None:
        raise UsageError("--tune needs the references of its lists: name them (--ref)")
    if ref is not None and not tuned:
        what = "--ref has the references of the lists to tune on"
        raise UsageError(f"{what}: name those (--tune); those of NBEST are --test-ref")
    if not tuned and settings.starts != RescoreSettings.starts:
        raise UsageError("starts is for tuning: name the lists to tune on (--tune)")
    tested = settings.document is not None or comparison.significance != "student" or comparison.resamples is not None
    if test_ref is None and tested:
        raise UsageError("document, significance and resamples are for the test: name the references of NBEST (--test-ref)")
    lists = nbest_lists(nbest, reading)
    tuned_on = None if tune is None else nbest_lists(tune, reading, like=lists)
    models, names = ([], []) if isinstance(model, (list, tuple)) and not model else named_models(model, scoring)
    metric = (WER if settings.metric == "wer" else CER)(**vars(normalization))
    score = partial(log_probabilities, models, threads=comparison.threads)
    fingerprints = "+".join(f"{one.label}@{one.fingerprint[:6]}" for one in models)
    work = Rescoring(score, names, fingerprints, metric, settings, reading, comparison)
    result = work.result(lists, tuned_on, ref, test_ref)
    if output is not None:
        result.write_best(output)
    if scored is not None:
        result.write_scores(scored)
    return result
