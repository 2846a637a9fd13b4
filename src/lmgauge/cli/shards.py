"""A share of a job, or all shares on a cluster: --shard and --ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import PathLike
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.work.shard import Shard, Sharing

if TYPE_CHECKING:
    from lmgauge.api.sharding.shards import Job


@verb
def run_in_shards(*, job: Job, output: PathLike | None = None, sharing: Sharing = Sharing(), **fields: Any) -> Any:
    """Compute one shard of a job into a folder of its own in the output, or the whole job on a cluster of Ray.

    Args:
        output: with --shard: the folder of all shards.

    Raises:
        UsageError: both are asked for, or no folder is named.
    """
    from lmgauge.api.sharding.shards import run_on_ray, run_shard

    if not isinstance(sharing.shard, Shard):
        return run_on_ray(job, sharing.ray or "", output)
    if sharing.ray is not None:
        raise UsageError("--ray does not go with --shard: it computes all shards")
    if output is None:
        raise UsageError("--shard needs a folder for the shards: -o DIR")
    return run_shard(job, sharing.shard.number - 1, sharing.shard.of, output)
