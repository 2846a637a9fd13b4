"""Models: they turn text into score tables. May import NumPy, text, scores and `_kernels`; never a metric."""
