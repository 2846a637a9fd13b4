"""The versions, in one place."""

__version__ = "0.1.0"

NUMBERS_VERSION = "0.1.0"
"""The first version of lmgauge that printed the digits which this one prints; signatures name it.

Whoever changes a digit of any number sets it to the version that is being made: see docs/reference/number-policy.md.
"""
