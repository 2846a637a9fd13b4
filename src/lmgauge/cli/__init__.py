"""The command line: one file per group of commands. No logic, only words; each imports what it needs when it runs.

The process is prepared here, before anything is imported. Imports make tens of thousands of objects and no garbage, so the
collector need not look at them every 700. The threads that NumPy's BLAS starts wait for work in a loop of some 50 ms; with
the shortest time (2^4 cycles) they sleep at once.
"""

import gc
import os

gc.set_threshold(max(100_000, gc.get_threshold()[0]))
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
