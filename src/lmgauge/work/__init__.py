"""Work that can be resumed or shared out.

    manifest.py  what some work is made of, what came of it, digests; one refusal of other work
    notes.py     what of it is done, a line each, kept at once: the next run goes on from there
    executor.py  tasks, and who does them: threads or processes, with typed results
    parts.py     what came of the parts of some work, in a file; a shard is this and a manifest
    engine.py    stages, for work larger than memory: functions from arrays to arrays, which
                 a plan chains, wherever arrays lie: in memory, or in a folder that can be resumed (`folder_engine`)
    shard.py     which share: 2 of 8

May import only NumPy, msgspec, pyarrow, the kernels and the modules that are for all.
"""
