"""Training small neural language models. May import what `models` may, and `lmgauge.models.network`."""
