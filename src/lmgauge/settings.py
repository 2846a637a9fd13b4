"""What belongs together among the keywords of verbs, as objects: `evaluate(..., end="eos")` is `evaluate(..., scoring=ScoringOptions(end="eos"))`. `settings.pyi` lists the names."""

from lmgauge.public_names import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
