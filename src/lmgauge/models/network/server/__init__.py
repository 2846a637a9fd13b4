"""Models behind a completions server. Modules here may import what those of `lmgauge.models` may; no library is needed."""
