"""Rows of a score table merged to words and regions of the text. May import what `evaluation` may: no model."""
