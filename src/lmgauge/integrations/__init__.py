"""What lmgauge is to other people's programs.

    callbacks, a metric      the numbers of `lmgauge eval` while a model is trained
    datatrove, hf_datasets   the decisions of `lmgauge filter` as steps of pipelines (steps.py has what they share)

The names of `__init__.pyi` are imported on first use, each with its library, which its module may import at the top.
Besides, these may import `lmgauge.api` and all that it may; nothing of ours imports them.
"""

from lmgauge.base.public_names import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
