"""Whole predictive distributions: tiles, what is kept of them, and the engine that walks a text with one model or two.

May import `text`, `scores`, `numerics` and what every room may; models import it, and so does what reads them.
"""
