"""The versions, in one place."""

__version__ = "0.3.0"

NUMBERS_VERSION = "0.3.0"
"""The first version of lmgauge that gave every digit as this one does; signatures name it.

Whoever changes a digit of any number sets it to the version in the making: docs/reference/number-policy.md.
"""
