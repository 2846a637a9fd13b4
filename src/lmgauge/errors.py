"""The errors a user can meet. `errors.pyi` lists the names."""

from lmgauge.base.public_names import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
