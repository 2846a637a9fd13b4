"""Models by their path, loaded once in a process, however many workers or batches ask for them."""

from __future__ import annotations

import os
import threading

from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel
from lmgauge.models.registry import load_model

_loaded: dict[tuple[str, ScoringOptions], LanguageModel] = {}
_lock = threading.Lock()


def model_at(path: str | os.PathLike[str], options: ScoringOptions) -> LanguageModel:
    """Return the model at a path, loaded before or now.

    Args:
        path: as `load_model` takes it.
        options: how it is to score.

    Raises:
        ModelFileError: nothing is there, or it cannot be trusted.
        UsageError: the options do not fit it.
    """
    key = os.path.abspath(path) if os.path.exists(path) else os.fspath(path), options
    with _lock:
        if key not in _loaded:
            _loaded[key] = load_model(path, options)
        return _loaded[key]
