"""Where a score table comes from, as signatures and run folders name it, and why its bits are lower bounds.

A bound is there where a model was not asked to predict part of the text, or was spared it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from lmgauge.base.decoding import decode
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.numerics.signature import text_parts
from lmgauge.scores.context_policy import ContextPolicy

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus


def normalizer_of(model: LanguageModel) -> str | None:
    """Return the normalizer that a model's text goes through before it is cut into tokens; None if there is none."""
    name: str | None = getattr(model.tokenizer, "normalizer", None)
    return name


def _oov_policy(model: LanguageModel) -> str:
    if model.is_spelled:
        return "spelled"
    return "closed" if model.vocabulary.closed else "unk"


@dataclass(frozen=True)
class Origin:
    """Where a score table comes from."""

    model: str
    unit: str = "token"  # what its tokens are: word, subword, character, byte; "token" if not known
    context: str = "unknown"  # its context policy, as `ContextPolicy` prints it
    oov_policy: str = "unk"  # what unseen words are: "unk", "spelled", "closed" (impossible), or "unknown"
    vocabulary_size: int | None = None  # tokens; None if not known
    lossy_segments: int = 0  # segments that their tokens do not give back, as a stored table states; its rows do not tell
    fingerprints: dict[str, str] = field(default_factory=dict)  # of model, vocabulary and tokenizer, and their names
    documents_by: str = UNKNOWN  # what the documents of a stored table are; see `TextReport.documents_by`

    @classmethod
    def of_model(cls, model: LanguageModel, name: str | None = None) -> Origin:
        """Return the origin of the tables that a model makes."""
        normalizer = normalizer_of(model)
        return cls(
            model=name or model.label,
            unit=model.tokenizer.unit,
            context=str(model.context_policy),
            oov_policy=_oov_policy(model),
            vocabulary_size=len(model.vocabulary) or None,
            fingerprints={
                "model": model.fingerprint,
                "vocabulary": model.vocabulary.fingerprint,
                "vocabulary_in_order": model.vocabulary.ids_fingerprint,
                "tokenizer": model.tokenizer.fingerprint,
                "tokenizer_name": model.tokenizer.name,
                "label": f"{model.label}@{model.fingerprint[:6]}",
                **({"normalizer": normalizer} if normalizer else {}),
            },
        )

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, Any], name: str) -> Origin:
        """Return the origin that a stored table or an evaluation.json states; only the name is known of any other table."""
        stated = {"model": name, "oov_policy": "unknown"} | dict(metadata)
        origin = decode(stated, cls, name, "the origin of a score table", "evaluate again")
        return replace(origin, fingerprints={key: one for key, one in origin.fingerprints.items() if key != "text"})

    def to_metadata(self) -> dict[str, Any]:
        """Return what a stored table states of its origin."""
        return asdict(self)

    @property
    def text_parts(self) -> dict[str, str]:
        """Return what signatures say of the tokens."""
        # Their unit, and what was done to the text before it was cut into them.
        return text_parts(self.unit, self.fingerprints.get("normalizer"))

    @property
    def loses_white_space_only(self) -> bool:
        """Return True if all that tokens may not give back is white space."""
        return self.unit == "word" and "normalizer" not in self.fingerprints

    @property
    def rows_tell_losses(self) -> bool:
        """Return True if the rows of a table tell where its tokens do not give back the text."""
        return self.loses_white_space_only or self.policy.unit == "conversation"

    @property
    def policy(self) -> ContextPolicy:
        """Return the context policy that `context` names."""
        return ContextPolicy.parse(self.context)

    def after(self, corpus: Corpus | None) -> Origin:
        """Return the origin of a table of a text whose segments have given text before them, or are turns."""
        if corpus is None or (corpus.boundary is None and corpus.roles is None):
            return self
        turns = "+".join(corpus.roles or ())
        return replace(self, context=str(replace(self.policy, given=corpus.boundary, turns=turns)))

    @property
    def documents_of_table(self) -> str:
        """Return what the documents are that a table names: those of another program are known by their column only."""
        return "column document" if self.documents_by == UNKNOWN else self.documents_by


class BoundReason(NamedTuple):
    """One reason."""

    short: str  # a few words, for tables
    sentence: str


_UNSEEN = BoundReason("unseen words", "unseen words share one token, <unk>, which is easier to predict than the words")
_CLOSED = BoundReason("unseen words", "unseen words are impossible")
_FIRST = BoundReason("first tokens not scored", "the first token of a context is not scored")
_SPACE = BoundReason("white space lost", "the tokenizer drops some white space")
_ALTERED = BoundReason(
    "text altered by the tokenizer or read as special tokens",
    "the tokenizer alters some of the text, or reads it as special tokens",
)
_TURNS = BoundReason("turns altered by the template", "the chat template, or the tokenizer, alters some of the turns")
_NORMALIZED = BoundReason(
    "text changed by the normalizer", "the normalizer changes some of the text, which is then easier to predict"
)


def bound_reasons(origin: Origin, oov: int, lossy_segments: int) -> list[BoundReason]:
    """Return why bits are lower bounds; empty where they are exact."""
    # lossy_segments: segments that their tokens do not give back exactly.
    # [reason.short for reason in bound_reasons(Origin("mine"), 3, 0)] -> ['unseen words']
    reasons = []
    if oov:
        reasons.append(_CLOSED if origin.oov_policy == "closed" else _UNSEEN)
    if lossy_segments:
        reasons.append(lossy_reason(origin))
    return reasons


def lossy_reason(origin: Origin) -> BoundReason:
    """Return why the tokens of a model do not give back a text, where they do not."""
    if origin.policy.first_bytes_move:
        return _FIRST
    if "normalizer" in origin.fingerprints:
        return _NORMALIZED
    if origin.policy.unit == "conversation":
        return _TURNS
    return _SPACE if origin.loses_white_space_only else _ALTERED
