"""A share of a job, or all shares on a cluster: --shard and --ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lmgauge.cli.derive import Call
from lmgauge.cluster.shard import Shard, Sharing

if TYPE_CHECKING:
    from lmgauge.cluster.job import Job


def run_in_shards(call: Call, job: Job) -> Any:
    """Compute one shard of a job into a folder of its own in -o DIR, or the whole job on a cluster of Ray.

    Raises:
        click.UsageError: both are asked for, or no folder is named.
    """
    from lmgauge.cli.say import showing_progress
    from lmgauge.cluster.on_engine import run_on_ray
    from lmgauge.cluster.running import run_shard

    sharing = call.settings(Sharing)
    with showing_progress():
        if not isinstance(sharing.shard, Shard):
            return run_on_ray(job, sharing.ray or "", call["output"])
        call.refuse(("ray",), "does not go with --shard: it computes all shards")
        if call["output"] is None:
            raise click.UsageError("--shard needs a folder for the shards: -o DIR")
        return run_shard(job, sharing.shard.number - 1, sharing.shard.of, call["output"])
