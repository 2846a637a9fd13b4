"""From score tables to verdicts. May import NumPy, scores, metrics, `_kernels` and text.segments; never a model."""
