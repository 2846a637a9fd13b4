"""Faults: runs that are killed, disks that are full, reads and writes that are cut short, at each file operation in turn.

`shim.c` stands between a program and the C library; `machine.py` runs commands under it; `commands.py` is the table of
commands, which a new one joins by one entry; `laws.py` says what must hold afterwards. The suite does a sample of all this;
`python -m tests.faults --minutes N` does as much as fits in N minutes.
"""
