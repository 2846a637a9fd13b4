"""Test text inside training text. May import the modules of `text` and the kernels."""
