"""Has a model seen these texts in training? Scores of each text and, beside texts that it cannot have seen, how far apart.

Sources: Yeom et al. (2018), "Privacy risk in machine learning"; Carlini et al. (2021), "Extracting training data from large
language models", and (2022), "Membership inference attacks from first principles" (hits at a low rate of false alarms); Shi
et al. (2024), "Detecting pretraining data from large language models"; Zhang et al. (2025), "Min-K%++"; Duan et al. (2024),
"Do membership inference attacks work on large language models?", on sets that differ in more than membership.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lmgauge.distributions.blocks import why_not_whole
from lmgauge.errors import InputError
from lmgauge.evaluation.membership.results import Membership, ScoreOfSets
from lmgauge.evaluation.membership.text_scores import (
    BLIND_SCORES,
    MODEL_SCORES,
    Floats,
    Side,
    TextScores,
    reference_nats,
    score_texts,
)
from lmgauge.evaluation.options import MembershipSettings
from lmgauge.evaluation.origin import normalizer_of
from lmgauge.numerics.detection import Group, Separation, fewest_for_threshold
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import LEVEL, Spread
from lmgauge.signature import Signature, text_parts
from lmgauge.version import NUMBERS_VERSION

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus

SEEN_LABELS = ("1", "true", "yes", "member", "seen")
UNSEEN_LABELS = ("0", "false", "no", "nonmember", "non-member", "unseen")
"""What a field of labels may hold, in any case."""


def membership(
    model: LanguageModel,
    corpora: Sequence[Corpus],
    settings: MembershipSettings,
    *,
    labeled: bool = False,
    reference: LanguageModel | None = None,
    names: Sequence[str],
) -> Membership:
    """Score texts by how much they look like seen ones, and compare them with control texts, if there are any.

    Control texts are the second of the corpora, or those that a label says, the group of a text: 1 in question, 0 control.
    """
    scored = [_scores(model, corpus, settings, labeled, reference) for corpus in corpora]
    left_out = sum(scores.left_out for scores in scored)
    asked, control = _by_label(scored[0]) if labeled else (scored[0], scored[1] if len(scored) > 1 else None)
    hashes = [corpus.report.sha256 for corpus in corpora]
    if len(set(hashes)) < len(hashes):
        raise InputError("the control texts are the texts themselves; name texts that the model cannot have seen")
    compared = _Compared(asked, control, settings)
    first = compared.separations["loss"] if control is not None else None
    parts = (None, None) if first is None else first.independent()
    interval = None if first is None else first.auroc_interval()
    return Membership(
        model=names[0],
        reference=None if reference is None else names[1],
        k=settings.k,
        false_alarms=settings.fpr,
        texts=len(asked),
        control_texts=None if control is None else len(control),
        scores=tuple(compared.of(MODEL_SCORES, simultaneous=True)),
        blind=tuple(compared.of(BLIND_SCORES)),
        curves=compared.curves(),
        independence=_independence(parts, [corpora[0].report.documents_by, corpora[-1].report.documents_by]),
        fingerprints=_fingerprints(model, reference, hashes),
        signature=_signature(model, reference, settings, compared, hashes, in_signature(interval)),
        notes=(
            *_notes(settings, compared, left_out, why_not_whole(model)),
            *(() if first is None else caveats(interval)),
            *(note for corpus in corpora for note in corpus.report.notes()),
        ),
        rows=_rows(asked, control),
    )


def _scores(
    model: LanguageModel, corpus: Corpus, settings: MembershipSettings, labeled: bool, reference: LanguageModel | None
) -> TextScores:
    whole = not why_not_whole(model)
    scores = score_texts(model, corpus, k=settings.k, whole=whole, grouped=labeled, threads=settings.threads)
    if not len(scores):
        raise InputError("the text holds no segment with an event: there is nothing to ask about")
    if reference is not None:
        own = scores.scores["loss"] * scores.counts["events"]
        with np.errstate(invalid="ignore"):  # inf - inf: impossible to both
            difference = own - reference_nats(reference, corpus, settings.threads)
        scores.scores["reference"] = difference / scores.counts["bytes"]
    return scores


def _independence(parts: tuple[Spread | None, Spread | None], documents_by: list[str]) -> str:
    # In words what is taken as independent in both sets; once, if it is the same.
    said = [in_words(part, by) for part, by in zip(parts, documents_by, strict=True) if part is not None]
    if len(set(said)) < 2:
        return f"in each set {said[0]}" if said else ""
    return f"texts: {said[0]}; control texts: {said[1]}"


def _by_label(scores: TextScores) -> tuple[TextScores, TextScores]:
    labels = [label.strip().lower() for label in scores.groups]
    strange = next((label for label in labels if label not in SEEN_LABELS + UNSEEN_LABELS), None)
    if strange is not None:
        raise InputError(f"the label {strange!r} is neither 1 (a text in question) nor 0 (a control text)")
    seen = np.array([label in SEEN_LABELS for label in labels], bool)
    if seen.all() or not seen.any():
        raise InputError("all texts have the same label; both 1 and 0 are needed to compare them")
    return scores.of(seen), scores.of(~seen)


class _Compared:
    """The sets side by side, score by score."""

    def __init__(self, asked: TextScores, control: TextScores | None, settings: MembershipSettings) -> None:
        self.asked, self.control, self._settings = asked, control, settings
        self.separations: dict[str, Separation] = {}
        for name, (_, side) in {**MODEL_SCORES, **BLIND_SCORES}.items():
            if control is None or name not in {**asked.scores, **asked.counts}:
                continue
            groups = [_group(scores, name, side) for scores in (asked, control)]
            if all(len(group) for group in groups):
                self.separations[name] = Separation(*groups)

    def of(self, known: dict[str, tuple[str, Side]], *, simultaneous: bool = False) -> Iterator[ScoreOfSets]:
        # simultaneous: several scores are tried, so that each must be surer before one counts as a difference.
        present = [name for name in known if name in self.asked.scores or name in self.asked.counts]
        level = 1 - (1 - LEVEL) / len(present) if simultaneous else LEVEL
        for name in present:
            title, side = known[name]
            values = _values(self.asked, name)
            both = self.separations.get(name)
            sure = None if both is None else both.auroc_interval(level)
            yield ScoreOfSets(
                name=name,
                title=title,
                seen_if=side,
                median=_median(values),
                control_median=None if self.control is None else _median(_values(self.control, name)),
                auroc=None if both is None else both.auroc,
                auroc_interval=None if both is None else both.auroc_interval(),
                tells_apart=None if sure is None else not sure.low <= 0.5 <= sure.high,
                tpr=None if both is None else both.hits(self._settings.fpr),
                tpr_interval=None if both is None else both.hits_interval(self._settings.fpr),
                missing=int(np.isnan(values).sum())
                + (0 if self.control is None else int(np.isnan(_values(self.control, name)).sum())),
            )

    def curves(self) -> dict[str, tuple[tuple[float, ...], tuple[float, ...]]]:
        curves = {}
        for name in MODEL_SCORES:
            if name in self.separations:
                false_alarms, hits = self.separations[name].curve()
                at = np.unique(np.linspace(0, len(hits) - 1, 200).round().astype(np.int64))
                curves[name] = (tuple(false_alarms[at].tolist()), tuple(hits[at].tolist()))
        return curves

    def effective_control(self) -> tuple[int, int]:
        # As how many independent texts the control texts count: by the score where they are fewest, and most.
        counts = [round(both.others.effective) for name, both in self.separations.items() if name in MODEL_SCORES]
        return min(counts), max(counts)


def _values(scores: TextScores, name: str) -> Floats:
    return np.asarray(scores.scores[name] if name in scores.scores else scores.counts[name], np.float64)


def _group(scores: TextScores, name: str, side: Side) -> Group:
    # Texts that have a score, turned so that seen texts score high.
    values = _values(scores, name)
    there = ~np.isnan(values)
    return Group(
        (1 if side == "high" else -1) * values[there], None if scores.documents is None else scores.documents[there]
    )


def _median(values: Floats) -> float | None:
    values = values[~np.isnan(values)]
    with np.errstate(invalid="ignore"):
        middle = float(np.median(values)) if len(values) else None
    return None if middle is None or np.isnan(middle) else middle


def _notes(settings: MembershipSettings, compared: _Compared, left_out: int, why: str) -> Iterator[str]:
    if left_out:
        yield f"{left_out:,} texts without bytes or events are left out"
    if why:
        yield f"Min-K%++ is left out: {why}"
    if compared.control is None:
        return
    needed, (fewest, most) = fewest_for_threshold(settings.fpr), compared.effective_control()
    if fewest < needed:
        rate = f"{100 * settings.fpr:g} %"
        count = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
        yield (
            f"the control texts count as {count} independent ones; about {needed:,} are needed to say which score {rate} of "
            f"such texts reach, and with fewer the interval of TPR at {rate} FPR begins at 0"
        )


def _fingerprints(model: LanguageModel, reference: LanguageModel | None, hashes: list[str]) -> dict[str, str]:
    prints = {"model": model.fingerprint, "vocabulary": model.vocabulary.fingerprint, "text": hashes[0]}
    prints |= {"reference": reference.fingerprint} if reference is not None else {}
    return prints | ({"control": hashes[1]} if len(hashes) > 1 else {})


def _signature(
    model: LanguageModel,
    reference: LanguageModel | None,
    settings: MembershipSettings,
    compared: _Compared,
    hashes: list[str],
    independent: str,
) -> str:
    control = compared.control
    parts = {
        "model": f"{model.label}@{model.fingerprint[:6]}",
        "reference": "none" if reference is None else f"{reference.label}@{reference.fingerprint[:6]}",
        "n": str(len(compared.asked)),
        "control": "none" if control is None else str(len(control)),
        "k": f"{settings.k:g}",
        "fpr": f"{settings.fpr:g}",
        **text_parts(model.tokenizer.unit, normalizer_of(model)),
        "context": str(model.context_policy),
        "independent": independent,
        "text": "+".join(digest[:6] for digest in hashes),
        "vocab": model.vocabulary.fingerprint[:6],
        "v": NUMBERS_VERSION,
    }
    return str(Signature(parts, head="mia"))


def _rows(asked: TextScores, control: TextScores | None) -> dict[str, list[object]]:
    sets = [("text", asked), *([] if control is None else [("control", control)])]
    rows: dict[str, list[object]] = {
        "set": [name for name, scores in sets for _ in range(len(scores))],
        "id": [one for _, scores in sets for one in scores.ids],
    }
    for name in ("segment", "bytes", "events"):
        rows[name] = [value for _, scores in sets for value in scores.counts[name].tolist()]
    rows["document"] = [
        value
        for _, scores in sets
        for value in ([None] * len(scores) if scores.documents is None else scores.documents.tolist())
    ]
    for name in (*MODEL_SCORES, "zlib_per_byte"):
        if name in asked.scores:
            rows[name] = [None if v != v else v for _, scores in sets for v in scores.scores[name].tolist()]
    return rows
