"""Cuts of a text and exact sums over them. May import the modules of `evaluation`."""
