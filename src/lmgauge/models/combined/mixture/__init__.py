"""Mixtures, their weights, and laying vocabularies on each other. May import what `models` may."""
