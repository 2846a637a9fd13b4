"""The public names of this room, and their homes."""

from lmgauge.api.sharding.evaluation import EvaluationJob as EvaluationJob
from lmgauge.api.sharding.evaluation import run_shard as run_shard

__all__: list[str]
