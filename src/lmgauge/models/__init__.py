"""Models: they turn text into score tables. May import NumPy, text, scores and `_kernels`; never a metric."""

from lmgauge.base.public_names import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
