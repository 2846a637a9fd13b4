"""Metrics: pure functions from arrays and strings to numbers.

What may be imported in this room: the standard library, NumPy, `lmgauge.errors` and the room's own modules.
No model, no file, no printing: a number computed here depends on nothing but the arguments.
"""
