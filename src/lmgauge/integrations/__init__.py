"""Callbacks and a metric for the frameworks people train with: the numbers of `lmgauge eval`, while a model is trained.

The names below are imported on first use, each with the library it is for, which their modules may import at the top.
Besides, these may import `lmgauge.api.inputs` and all that it may; nothing of ours imports them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmgauge.integrations.lightning_callback import LightningPerplexityCallback
    from lmgauge.integrations.metric import PerplexityMetric
    from lmgauge.integrations.transformers_callback import TransformersPerplexityCallback

_HOMES = {
    "LightningPerplexityCallback": "lmgauge.integrations.lightning_callback",
    "PerplexityMetric": "lmgauge.integrations.metric",
    "TransformersPerplexityCallback": "lmgauge.integrations.transformers_callback",
}

__all__ = ["LightningPerplexityCallback", "PerplexityMetric", "TransformersPerplexityCallback"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'lmgauge.integrations' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
