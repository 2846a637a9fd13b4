"""Has a model seen these texts in training? Scores of each text and, beside texts that it cannot have seen, how far apart.

| score | of a text | seen texts have |
| --- | --- | --- |
| `loss` | mean nats per event (Yeom et al. 2018) | low |
| `min_k` | mean log-probability of the k % least probable events: Min-K% Prob (Shi et al. 2024, eq. 1) | high |
| `min_k_plus_plus` | the same of log p, standardized under the prediction: Min-K%++ (Zhang et al. 2025, eq. 4) | high |
| `zlib` | nats over the bytes that zlib packs the text into (Carlini et al. 2021, section 5.2) | low |
| `reference` | nats per byte less those of a second model (Carlini et al. 2021; Mireshghallah et al. 2022) | low |

Two scores look at the text alone: `zlib_per_byte` and `bytes`. Where they tell two sets apart, the sets differ without any
model (Duan et al. 2024; Meeus et al. 2024; Das et al. 2024), and the other scores may only see that.

Carlini et al. divide the mean log loss by the packed size; here it is the total, which gives texts of equal length the same
order and does not reward length among others. Hits at a low rate of false alarms: Carlini et al. (2022), "Membership
inference attacks from first principles".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, tee
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.result_list import Tabled, column
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.evaluation.options import MembershipSettings
from lmgauge.evaluation.origin import normalizer_of
from lmgauge.numerics.detection import Group, Separation
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import LEVEL, Interval
from lmgauge.numerics.signature import Signature, text_parts
from lmgauge.scores import ScoreBatch
from lmgauge.scores.distributions.blocks import why_not_whole
from lmgauge.scores.distributions.reduce import reduce
from lmgauge.scores.distributions.reductions import Moments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments

Floats = NDArray[np.float64]
Columns = dict[str, list[Any]]
MODEL_SCORES = {
    "loss": ("loss, nats/event", "low"),
    "min_k": ("Min-K% Prob, nats", "high"),
    "min_k_plus_plus": ("Min-K%++", "high"),
    "zlib": ("zlib ratio, nats/byte", "low"),
    "reference": ("less reference, nats/byte", "low"),
}
"""For each score of a model its title, and which values speak for seen text."""
BLIND_SCORES = {"zlib_per_byte": ("zlib bytes per byte", "low"), "bytes": ("bytes", "high")}
"""The same for what needs no model; the side is a convention."""
MOMENTS = ("mean_logprob", "logprob_deviation")
# Below it a prediction is uniform but for rounding, and says nothing about the token that came.
_NARROW = 1e-6
SEEN_LABELS = ("1", "true", "yes", "member", "seen")
UNSEEN_LABELS = ("0", "false", "no", "nonmember", "non-member", "unseen")
"""What a field of labels may hold, in any case."""


# -- what is known ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ScoreOfSets:
    """One score, over both sets."""

    name: str  # `loss`, `min_k`, `min_k_plus_plus`, `zlib`, `reference`, `zlib_per_byte` or `bytes`
    title: str = field(metadata=column("score"))  # in words
    seen_if: str  # "low" or "high": which values speak for seen text
    # median, control_median: of the texts in question and of the control texts; None where there are none
    median: float | None = field(metadata=column("median of texts", 3, drop=2))
    control_median: float | None = field(metadata=column("of control", 3, drop=1))
    # the probability that a text in question looks more like a seen one than a control text does
    auroc: float | None = field(default=None, metadata=column("AUROC", 3))
    auroc_interval: Interval | None = field(default=None, metadata=column("95 % interval", 3))
    tells_apart: bool | None = None
    # share of the texts in question above a threshold that the allowed share of control texts passes
    tpr: float | None = field(default=None, metadata=column("TPR at {} FPR", 1, "percent"))
    tpr_interval: Interval | None = field(default=None, metadata=column("its interval", 1, "percent", drop=3))
    missing: int = 0


@dataclass(frozen=True, repr=False)
class Membership(Tabled):
    """Scores of texts that tend to differ between what a model has seen in training and what it has not.

    Attributes:
        model, reference: names of the models; None without a reference.
        k: the share of events that Min-K% looks at.
        false_alarms: the rate of false alarms at which `tpr` stands.
        texts, control_texts: how many were scored; None without control texts.
        scores: each score of the model.
        blind: each score that looks at the text alone: what tells the sets apart without any model.
        independence: what the intervals take as independent, in words.
        fingerprints: of the models, the vocabulary and the texts.
        signature: one line with every choice that moves the figures.
        notes: what a reader must know.
        rows: a row for each text, as columns: set ("text" or "control"), id, segment, bytes, events, document, and scores.

    Example:
        >>> import lmgauge
        >>> seen = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> unseen = lmgauge.Corpus.from_strings(["a ran cat", "dog the mat", "sat a the"])
        >>> result = lmgauge.membership(lmgauge.train("witten-bell", seen, order=3), seen, unseen)
        >>> result.score("loss").auroc
        1.0
    """

    model: str
    reference: str | None
    k: float
    false_alarms: float
    texts: int
    control_texts: int | None
    scores: tuple[ScoreOfSets, ...]
    blind: tuple[ScoreOfSets, ...]
    independence: str
    fingerprints: dict[str, str]
    signature: str
    notes: tuple[str, ...]
    rows: Columns = field(repr=False)

    def score(self, name: str) -> ScoreOfSets:
        """Return what is known of a score.

        Args:
            name: one of `scores` or `blind`.

        Raises:
            UsageError: there is no such score.
        """
        known = {score.name: score for score in (*self.scores, *self.blind)}
        if name not in known:
            raise UsageError(f"score {name!r} is not known; choose from {', '.join(known)}")
        return known[name]

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each text."""
        return [dict(zip(self.rows, row, strict=True)) for row in zip(*self.rows.values(), strict=True)]

    def _columns(self) -> Columns:
        return self.rows

    def _in_brief(self) -> str:
        if self.control_texts is None:
            return f"{self.model}: {self.texts:,} texts, no control texts"
        areas = ", ".join(f"{score.name} {score.auroc:.3f}" for score in self.scores if score.auroc is not None)
        return f"{self.model}: {self.texts:,} texts, {self.control_texts:,} control texts; AUROC {areas}"


# -- the scores of texts ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class TextScores:
    """Columns of texts, in reading order; those without bytes or events are left out."""

    columns: Columns  # id, segment, bytes, events, document (None where not known), and scores; NaN where a text has none
    labels: list[str]  # the name of the group of each; empty where all are in one
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.columns["id"])

    def values(self, name: str) -> Floats:
        """Return a column, float64 [n]."""
        return np.array(self.columns[name], np.float64)

    def labeled(self, seen: bool) -> TextScores:
        """Return the texts that a label names as those in question, or the control texts."""
        labels = [label.strip().lower() for label in self.labels]
        strange = next((label for label in labels if label not in SEEN_LABELS + UNSEEN_LABELS), None)
        if strange is not None:
            raise InputError(f"the label {strange!r} is neither 1 (a text in question) nor 0 (a control text)")
        chosen = [(label in SEEN_LABELS) == seen for label in labels]
        if not any(chosen):
            raise InputError("all texts have the same label; both 1 and 0 are needed to compare them")
        return TextScores({name: list(compress(values, chosen)) for name, values in self.columns.items()}, [])


def score_texts(
    model: LanguageModel, corpus: Corpus, settings: MembershipSettings, reference: LanguageModel | None = None
) -> TextScores:
    """Return the scores of each segment of a corpus."""
    blocks, asked, *again = tee(corpus, 2 if reference is None else 3)
    if why_not_whole(model):
        streams = [model.score(asked, spans=False, threads=settings.threads)]
    else:
        streams = [reduce(model, asked, [Moments()], spans=False, threads=settings.threads)]
    if reference is not None:
        streams.append(reference.score(again[0], spans=False, threads=settings.threads))
    columns: Columns = {}
    labels: list[str] = []
    left_out = 0
    for block, *batches in zip(blocks, *streams, strict=True):
        used = _used(block, batches[0])
        left_out += int(np.count_nonzero(~used))
        labels += [] if block.groups is None else [corpus.group_names[code] for code in block.groups[used].tolist()]
        for name, values in _of_block(block, batches, used, settings.k).items():
            columns.setdefault(name, []).extend(values)
    if not columns.get("id"):
        raise InputError("the text holds no segment with an event: there is nothing to ask about")
    return TextScores(columns, labels, left_out)


def _used(block: Segments, batch: ScoreBatch) -> NDArray[np.bool_]:
    # Which segments of a block have bytes and events, bool [segments].
    events = np.zeros(len(block), np.int64)
    events[batch.segments - block.first] = batch.segment_events
    used: NDArray[np.bool_] = (events > 0) & (block.ends > block.starts)
    return used


def _of_block(block: Segments, batches: Sequence[ScoreBatch], used: NDArray[np.bool_], k: float) -> Columns:
    # The columns of the texts of a block, of those that are used; every segment of it is in each batch.
    batch, places = batches[0], np.flatnonzero(used)
    ids, size, events = block.identifiers(), (block.ends - block.starts)[used], batch.segment_events[used]
    nats, *others = (_nats(one)[used] for one in batches)
    packed = np.array([len(zlib.compress(block.text(i))) for i in places.tolist()], np.float64)
    columns: dict[str, NDArray[Any]] = {
        "segment": block.first + places,
        "bytes": size,
        "events": events,
        "document": np.full(len(places), None) if block.documents is None else block.documents[used],
        "loss": nats / events,
        "min_k": lowest_mean(batch.logprob, batch.segment_events, k)[used],
        "zlib": nats / packed,
        "zlib_per_byte": packed / size,
    }
    if MOMENTS[0] in batch.extra:
        standard = standardized(batch.event_logprob(), *(batch.extra[name] for name in MOMENTS))
        columns["min_k_plus_plus"] = lowest_mean(standard, batch.segment_events, k)[used]
    for other in others:
        with np.errstate(invalid="ignore"):  # inf - inf: impossible to both
            columns["reference"] = (columns["loss"] * events - other) / size
    return {"id": [ids[i] for i in places.tolist()], **{name: values.tolist() for name, values in columns.items()}}


def _nats(batch: ScoreBatch) -> Floats:
    # Nats of each segment of a batch, exactly summed: float64 [segments]; inf with an impossible event.
    return -EventSums.of(batch).per_segment().nats


def standardized(logprob: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Return how many standard deviations each log-probability is from its mean under the prediction."""
    # logprob: float64 [n], nats, of the tokens that came; mean: float64 [n], the mean of log p under the prediction, nats;
    # deviation: float64 [n], its standard deviation, nats.
    # -> float64 [n]; 0 where all that is possible is equally probable, -inf for an impossible token.
    # standardized([-3.0, -1.0], [-2.0, -1.0], [0.5, 0.0]) -> [-2.0, 0.0]
    far = deviation > _NARROW
    values = np.zeros(len(logprob))
    np.divide(logprob - mean, deviation, out=values, where=far)
    values[logprob == -np.inf] = -np.inf
    return values


def lowest_mean(values: Floats, counts: NDArray[np.int64], k: float) -> Floats:
    """Return the mean of the lowest share k of the values of each segment: floor(k n) of n, at least one."""
    # values: float64 [n], segment after segment; counts: int64 [segments], values of each.
    # -> float64 [segments]; 0 for a segment without values.
    # lowest_mean([-5.0, -1.0, -3.0, -2.0], [3, 1], 0.7) -> [-4.0, -2.0]
    owner = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((values, owner))
    place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    # 0.2 * 15 is 3.0000000000000004, and 0.29 * 100 is 28.999999999999996.
    wanted = np.maximum(1, np.floor(k * counts + 1e-9).astype(np.int64))
    low = place < wanted[owner]
    sums = np.bincount(owner[low], values[order][low], len(counts))
    return np.asarray(sums / np.minimum(wanted, np.maximum(counts, 1)), np.float64)


# -- both sets side by side ---------------------------------------------------------------------------------------------
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
    scored = [score_texts(model, corpus, settings, reference) for corpus in corpora]
    left_out, why = sum(scores.left_out for scores in scored), why_not_whole(model)
    sets = [scored[0].labeled(True), scored[0].labeled(False)] if labeled else scored
    hashes = [corpus.report.sha256 for corpus in corpora]
    if len(set(hashes)) < len(hashes):
        raise InputError("the control texts are the texts themselves; name texts that the model cannot have seen")
    loss = _separation(sets, "loss", "low")
    interval = None if loss is None else loss.auroc_interval()
    parts = [] if loss is None else zip(loss.independent(), (corpora[0], corpora[-1]), strict=True)
    said = [in_words(part, corpus.report.documents_by) for part, corpus in parts if part is not None]
    known = {"reference": reference.fingerprint} if reference is not None else {}
    known |= {"control": hashes[1]} if len(hashes) > 1 else {}
    signature = {
        "model": f"{model.label}@{model.fingerprint[:6]}",
        "reference": "none" if reference is None else f"{reference.label}@{reference.fingerprint[:6]}",
        "n": str(len(sets[0])),
        "control": str(len(sets[1])) if len(sets) > 1 else "none",
        "k": f"{settings.k:g}",
        "fpr": f"{settings.fpr:g}",
        **text_parts(model.tokenizer.unit, normalizer_of(model)),
        "context": str(model.context_policy),
        "independent": in_signature(interval),
        "text": "+".join(digest[:6] for digest in hashes),
        "vocab": model.vocabulary.fingerprint[:6],
        "v": NUMBERS_VERSION,
    }
    return Membership(
        model=names[0],
        reference=None if reference is None else names[1],
        k=settings.k,
        false_alarms=settings.fpr,
        texts=len(sets[0]),
        control_texts=len(sets[1]) if len(sets) > 1 else None,
        scores=tuple(_of_sets(MODEL_SCORES, sets, settings.fpr, tried=len(sets[0].columns.keys() & MODEL_SCORES.keys()))),
        blind=tuple(_of_sets(BLIND_SCORES, sets, settings.fpr)),
        independence=_both(said),
        fingerprints={"model": model.fingerprint, "vocabulary": model.vocabulary.fingerprint, "text": hashes[0], **known},
        signature=str(Signature(signature, head="mia")),
        notes=(
            *([f"{left_out:,} texts without bytes or events are left out"] if left_out else []),
            *([f"Min-K%++ is left out: {why}"] if why else []),
            *(() if loss is None else caveats(interval)),
            *(note for corpus in corpora for note in corpus.report.notes()),
        ),
        rows=_rows(sets),
    )


def _both(said: Sequence[str]) -> str:
    # What is said of each set; once, if it is the same.
    if len(set(said)) < 2:
        return f"in each set {said[0]}" if said else ""
    return f"texts: {said[0]}; control texts: {said[1]}"


def _separation(sets: Sequence[TextScores], name: str, side: str) -> Separation | None:
    # How far a score tells the sets apart, turned so that seen texts score high; texts without the score are left out.
    groups = []
    for scores in sets:
        values, documents = scores.values(name), scores.columns["document"]
        there = ~np.isnan(values)
        of = None if documents[0] is None else np.array(documents, np.int64)[there]
        groups.append(Group((1 if side == "high" else -1) * values[there], of))
    return Separation(*groups) if len(groups) > 1 and all(map(len, groups)) else None


def _of_sets(
    known: Mapping[str, tuple[str, str]], sets: Sequence[TextScores], false_alarms: float, *, tried: int = 1
) -> Iterator[ScoreOfSets]:
    # tried: where several scores are, each must be surer before it counts as a difference.
    for name, (title, side) in known.items():
        if name not in sets[0].columns:
            continue
        both = _separation(sets, name, side)
        measured: dict[str, Any] = {}
        if both is not None:
            sure = both.auroc_interval(1 - (1 - LEVEL) / tried)
            measured = {"auroc": both.auroc, "auroc_interval": both.auroc_interval(), "tpr": both.hits(false_alarms)}
            measured["tells_apart"] = None if sure is None else not sure.low <= 0.5 <= sure.high
            measured["tpr_interval"] = both.hits_interval(false_alarms)
        values = [scores.values(name) for scores in sets]
        missing = sum(int(np.isnan(of_set).sum()) for of_set in values)
        median, control_median = [*map(_median, values), None][:2]
        yield ScoreOfSets(name, title, side, median, control_median, **measured, missing=missing)


def _median(values: Floats) -> float | None:
    values = values[~np.isnan(values)]
    with np.errstate(invalid="ignore"):
        middle = float(np.median(values)) if len(values) else None
    return None if middle is None or np.isnan(middle) else middle


def _rows(sets: Sequence[TextScores]) -> Columns:
    names = ("text", "control")
    rows: Columns = {"set": [names[which] for which, scores in enumerate(sets) for _ in range(len(scores))]}
    for name in ("id", "segment", "bytes", "events", "document", *MODEL_SCORES, "zlib_per_byte"):
        if name in sets[0].columns:
            rows[name] = [None if value != value else value for scores in sets for value in scores.columns[name]]
    return rows
