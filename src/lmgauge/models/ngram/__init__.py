"""N-gram models. May import NumPy, text, scores, `_kernels` and `models.model`; never a metric."""
