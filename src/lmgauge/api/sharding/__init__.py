"""Work cut into shards, for several processes or machines, and put together again to the digits of the whole.

A shard of a job scores its share of a text: every n-th unit of it, of about 256 kB each. What costs time is computed by the
shards, block by block, and stored under a manifest, so that `merge` runs the same code as an unsharded job
does, and takes from the shards what that would have computed. So all it gives is the same, to the bit.

    evaluation.py  the folder of a shard on disk; the job: its pieces, what comes of these; one shard into a folder, whole or
                   not there; and how all are put together
    merging.py     the verb: the folders of all shards -> the result of the whole

May import any room but `cli`, `explore` and `integrations`.
"""

from lmgauge.base.public_names import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
