"""Slow and obvious twins of the fast code: each is written from the papers and shares nothing with the package."""
