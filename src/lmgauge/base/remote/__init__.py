"""Files at an address (`s3://`, `gs://`, `hf://`, `https://`): read by ranges, written whole. May import the leaves only.

`lmgauge.base.paths` is its face, where a local path can stand as well.
"""
