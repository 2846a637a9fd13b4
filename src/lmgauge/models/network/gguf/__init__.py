"""Quantized models in GGUF files. Modules here may import what those of `lmgauge.models` may, and llama_cpp in functions."""
