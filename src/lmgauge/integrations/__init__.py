"""What lmgauge is to other people's programs.

    callbacks, a metric                the numbers of `lmgauge eval` while a model is trained
    ray_data, datatrove, hf_datasets   the decisions of `lmgauge filter` as steps of pipelines (steps.py has what they share)

The names below are imported on first use, each with the library it is for, which their modules may import at the top.
Besides, these may import `lmgauge.api` and all that it may; nothing of ours imports them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmgauge.integrations import datatrove, hf_datasets, ray_data
    from lmgauge.integrations.lightning_callback import LightningPerplexityCallback
    from lmgauge.integrations.metric import PerplexityMetric
    from lmgauge.integrations.transformers_callback import TransformersPerplexityCallback

_HOMES = {
    "LightningPerplexityCallback": "lmgauge.integrations.lightning_callback",
    "PerplexityMetric": "lmgauge.integrations.metric",
    "TransformersPerplexityCallback": "lmgauge.integrations.transformers_callback",
}

_STEPS = ("datatrove", "hf_datasets", "ray_data")
"""Modules with names of their own, such as `lmgauge.integrations.ray_data.Scorer`."""

__all__ = [
    "LightningPerplexityCallback",
    "PerplexityMetric",
    "TransformersPerplexityCallback",
    "datatrove",
    "hf_datasets",
    "ray_data",
]


def __getattr__(name: str) -> object:
    if name in _STEPS:
        return import_module(f"lmgauge.integrations.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'lmgauge.integrations' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
