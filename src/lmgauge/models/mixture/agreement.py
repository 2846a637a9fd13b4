"""What models must have in common to be mixed, and the views through which they speak one order of ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from lmgauge.context_policy import policy_of
from lmgauge.errors import InputError, UsageError
from lmgauge.models.mixture.union import needs_union, over_union
from lmgauge.models.mixture.vocabulary_alignment import aligned
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.protocol import LanguageModel
from lmgauge.text.encoding import ReservedPolicy


@runtime_checkable
class _ReservedChoice(Protocol):
    """A model that may take reserved tokens in the text in another way."""

    def with_reserved(self, reserved: ReservedPolicy) -> LanguageModel: ...


def agreeing(models: Sequence[LanguageModel], names: Sequence[str] | None = None) -> tuple[LanguageModel, ...]:
    """Return the models, all with the ids of the first, or if they know different words, with those of the union."""
    if len(models) < 2:
        raise UsageError("a mixture needs at least two models")
    names = [model.label for model in models] if names is None else names
    for name, model in zip(names, models, strict=True):
        if getattr(model, "is_spelled", False):
            raise UsageError(
                f"{name}: a spelled model cannot be a component of a mixture over tokens; lmgauge.mix puts one speller "
                "around the mixture, or reads the models as bytes"
            )
    policies = [(name, reserved_policy(model)) for name, model in zip(names, models, strict=True)]
    choices = [(name, policy) for name, policy in policies if policy is not None]
    for name, policy in choices[1:]:
        if policy != choices[0][1]:
            raise InputError(
                f"a <unk>, <s> or </s> in the text means {choices[0][1]!r} to {choices[0][0]} and {policy!r} to {name}; "
                "choose one for all with --reserved (with_reserved in Python)"
            )
    unscored = [not policy_of(model).counts_line_ends for model in models]
    for name, other in zip(names, unscored, strict=True):
        if other != unscored[0]:
            without, scoring = (name, names[0]) if other else (names[0], name)
            raise InputError(
                f"{without} leaves out </s>, the end of a line, and {scoring} scores it; use models trained alike (--no-eos)"
            )
    if needs_union(models):
        return over_union(models)
    return tuple(
        models[0] if i == 0 else aligned(model, models[0], names=(names[i], names[0])) for i, model in enumerate(models)
    )


def reserved_policy(model: LanguageModel) -> ReservedPolicy | None:
    """Return what a reserved token in the text means to a model; None where its kind has no such choice.

    >>> import lmgauge
    >>> reserved_policy(lmgauge.train("mle", lmgauge.Corpus.from_strings(["a"]), order=1))
    'refuse'
    """
    if isinstance(model, NgramModel):
        return model.settings.reserved
    return getattr(model, "reserved", None)


def with_reserved(models: Iterable[LanguageModel], reserved: ReservedPolicy) -> list[LanguageModel]:
    """Return the models with another meaning of reserved tokens, where their kind has that choice."""
    return [m.with_reserved(reserved) if isinstance(m, _ReservedChoice) else m for m in models]
