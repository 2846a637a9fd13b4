"""Every parser meets damaged input: each ends in a result or in one line of words, never in a traceback, a crash or a hang.

A parser joins by one entry in `tests/fuzz/table.py` and a module with a function `prepare`. The suite gives each a few
hundred inputs; `python -m tests.fuzz --minutes N` as many as the time allows.
"""
