"""Models around models: mixtures, caches, classes of words, spelled vocabularies. May import what `models` may."""
