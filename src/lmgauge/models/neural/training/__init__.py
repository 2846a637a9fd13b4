"""Training small neural language models. Modules here may import what those of `lmgauge.models.neural` may, and these."""
