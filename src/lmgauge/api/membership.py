"""`lmgauge.membership`: whether a model has seen texts in training."""

from __future__ import annotations

import os
from typing import TypedDict, Unpack

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, load_models
from lmgauge.errors import UsageError
from lmgauge.evaluation.membership.membership import MembershipSettings, MembershipTexts
from lmgauge.evaluation.membership.membership import membership as _membership
from lmgauge.evaluation.membership.results import Membership
from lmgauge.evaluation.row_files import check_row_file
from lmgauge.files import refuse_replacing
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.registry import model_names
from lmgauge.progress import say_progress
from lmgauge.text.documents import Corpus


class MembershipOptions(TypedDict, total=False):
    """The fields of `MembershipSettings`, each of which may be left out."""

    k: float
    false_alarms: float
    threads: int | None


def membership(
    model: Model,
    texts: Text,
    control: Text | None = None,
    *,
    label: str | None = None,
    reference: Model | None = None,
    output: PathLike | None = None,
    scoring: ScoringOptions | None = None,
    **options: Unpack[MembershipOptions],
) -> Membership:
    """Ask whether a model has seen texts in training: `lmgauge membership`.

    Sources: Yeom et al. (2018), Carlini et al. (2021), Shi et al. (2024), Zhang et al. (2025).

    Args:
        model: the model in question, or its path.
        texts: the texts in question, a segment each: a path, several, or a `Corpus`.
        control: texts that the model cannot have seen, as like the others as can be had.
        label: in place of `control` the field of the texts that says which is which: 1 in question, 0 control.
        reference: a second model that has not seen the texts; adds the score `reference`.
        output: a file for a row a text, .parquet, .csv, .tsv or .jsonl.
        scoring: how models named by their path score.
        options: `k` (the share of the least probable events that Min-K% looks at; 0.2), `false_alarms` (the rate at which to
            say how many texts are recognized; 0.01), `threads` (no score depends on it but for rounding).

    Returns:
        Scores of both sets; with control texts how well each score tells the sets apart, with intervals.

    Raises:
        InputError: a text is empty or cannot be used, labels are not 0 and 1, or the control texts are the texts.
        ModelFileError: a model cannot be loaded.
        UsageError: both `control` and `label`, an option out of range, or an output that would replace an input.

    Example:
        >>> from lmgauge import Corpus, train
        >>> seen, unseen = Corpus.from_strings(["a b c", "b c d", "c d a"]), Corpus.from_strings(["b a d", "c b a", "d b"])
        >>> result = membership(train("witten-bell", seen, order=2), seen, unseen)
        >>> round(result.score("min_k").auroc, 3)
        1.0
    """
    settings = MembershipSettings(**options)
    if label is not None and control is not None:
        raise UsageError("control texts are either named (control) or labeled (label), not both")
    corpora = [corpus_of(texts) if label is None else _labeled(corpus_of(texts), label)]
    corpora += [] if control is None else [corpus_of(control)]
    corpora = [corpus.without_given("membership") for corpus in corpora]
    if output is not None:
        check_row_file(os.fspath(output))
        named = [os.fspath(one) for one in (model, reference) if isinstance(one, PATHS)]
        refuse_replacing({"-o": output}, [*named, *(source.path for corpus in corpora for source in corpus.sources)])
    asked = [model] if reference is None else [model, reference]
    models = load_models(asked, scoring)
    names = model_names(asked, models)
    say_progress("scoring")
    result = _membership(
        models[0],
        MembershipTexts(texts=corpora[0], control=corpora[1] if control is not None else None, labeled=label is not None),
        settings,
        reference=models[1] if reference is not None else None,
        names=(names[0], names[1] if reference is not None else None),
    )
    if output is not None:
        result.write_rows(output)
    return result


def _labeled(corpus: Corpus, label: str) -> Corpus:
    """Return the same text with its labels as groups."""
    if not corpus.settings:
        raise UsageError("label names a field of files; strings are handed over as texts and control")
    return Corpus.from_files(**corpus.settings | {"paths": [source.path for source in corpus.sources], "group": label})
