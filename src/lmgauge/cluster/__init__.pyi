"""The public names of this room, and their homes."""

from lmgauge.cluster.evaluation import EvaluationJob as EvaluationJob
from lmgauge.cluster.overlap import OverlapJob as OverlapJob
from lmgauge.cluster.shards import run_on_ray as run_on_ray
from lmgauge.cluster.shards import run_shard as run_shard
from lmgauge.cluster.task import TaskJob as TaskJob

__all__: list[str]
