"""What belongs together among the keywords of verbs. `settings.pyi` lists the names.

`evaluate(model, text, end="eos")` is `evaluate(model, text, scoring=ScoringOptions(end="eos"))`.
"""

from lmgauge.base.public_names import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
