"""What the functions of `import lmgauge` take: models, texts and runs, as objects or by path."""

from __future__ import annotations

from collections.abc import Sequence

from lmgauge.errors import UsageError
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.registry import unused_option


def refuse_unused(scoring: ScoringOptions, models: Sequence[object]) -> None:
    """Refuse scoring options that none of the models takes: none is ignored in silence.

    Raises:
        UsageError: the first such option.
    """
    name = unused_option(scoring, models)
    if name is not None:
        raise UsageError(f"--{name.replace('_', '-')} is for neural models, and no model named here takes it")
