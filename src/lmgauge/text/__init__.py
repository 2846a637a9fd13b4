"""Text: reading it, splitting it into segments and tokens, counting it.

What this folder may import: the standard library, NumPy and `lmgauge.base.errors`; optional libraries (zstandard,
pyarrow, icu4py, tokenizers) only inside the functions that need them. It knows nothing of models or metrics.
"""
