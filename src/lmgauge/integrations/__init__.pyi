"""The public names of this room, and their homes."""

from lmgauge.integrations import datatrove as datatrove
from lmgauge.integrations import hf_datasets as hf_datasets
from lmgauge.integrations.lightning_callback import LightningPerplexityCallback as LightningPerplexityCallback
from lmgauge.integrations.metric import PerplexityMetric as PerplexityMetric
from lmgauge.integrations.steps import DocumentFilter as DocumentFilter
from lmgauge.integrations.transformers_callback import TransformersPerplexityCallback as TransformersPerplexityCallback

__all__: list[str]
