"""What the functions of `import lmgauge` take: models, texts and runs, as objects or by path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from lmgauge.errors import UsageError
from lmgauge.models.network.options import ScoringOptions

_OF_MACHINE = ("device", "batch_tokens", "trust_remote_code")


def refuse_unused(scoring: ScoringOptions, models: Sequence[object]) -> None:
    """Refuse scoring options that none of the models takes: none is ignored in silence.

    Raises:
        UsageError: the first such option.
    """
    for field in fields(scoring):
        name = "context" if field.name == "stream" else field.name
        chosen = getattr(scoring, field.name) != field.default
        if chosen and name != "reserved" and not any(_takes(model, name) for model in models):
            raise UsageError(f"--{name.replace('_', '-')} is for neural models, and no model named here takes it")


def _takes(model: object, name: str) -> bool:
    parts = getattr(model, "components", None)
    if parts is not None:  # the components of a mixture keep their own policies
        return name in _OF_MACHINE and any(_takes(part, name) for part in parts)
    return hasattr(model, "server") if name == "bos" else hasattr(model, "policy")
