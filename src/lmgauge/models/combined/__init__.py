"""Models around models: mixtures, caches, spelled vocabularies. May import what `models` may."""
