"""N-best lists of recognizers: reading them, and choosing weights that make the fewest errors.

May import what `tasks` may: `text` (streams), `numerics` and the rest of `tasks`; never a model.
"""
