"""Work that can be resumed or shared out.

    manifest.py     what some work is made of, what came of it, digests; one refusal of other work
    executor.py     tasks with typed results: in this thread, in others, in processes, on Ray
    parts.py        what came of the parts of some work, in a file; a shard is this and a manifest
    work_record.py  a folder of unfinished work: one run at a time, what of it is done
    stage.py        stages of tasks that read and write named arrays, for work larger than memory: a task knows nothing of
                    where they lie, in a folder (`folder_engine`) or in the memory of other machines (`ray_engine`)
    shard.py        which share: 2 of 8

May import only NumPy, msgspec, pyarrow, the kernels and the modules that are for all. Ray is imported when it is used.
"""
