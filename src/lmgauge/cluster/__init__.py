"""Work cut into shards, for several processes or machines, and put together again to the digits of the whole.

A shard of a job scores its share of a text: every n-th unit of it, of about 256 kB each. What costs time is computed by the
shards, block by block, and stored under a manifest, so that `merge` runs the same code as an unsharded job
does, and takes from the shards what that would have computed. So all it gives is the same, to the bit.

    Shard (shard.py)     which share: 2 of 8, from the command line or from SLURM
    Job (job.py)         what can be cut: an evaluation, an overlap, a task metric
    run (running.py)     run(job, rank, world_size, output): one folder a shard, whole or not there
    run_shards (on_engine.py)  all shards as a stage, on threads, processes or a cluster of Ray
    merge (merging.py)   the folders of all shards -> the result of the whole

May import any room but `cli`, `explore` and `integrations`.
"""

from lmgauge.public_names import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
