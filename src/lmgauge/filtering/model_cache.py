"""Models by their path, loaded once in a process, however many workers or batches ask for them."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel
from lmgauge.models.registry import load_model
from lmgauge.threads import OfProcess

_State = tuple[tuple[str, int, int, int], ...]
_loaded: dict[tuple[str, ScoringOptions], tuple[_State, LanguageModel]] = {}
_lock = OfProcess(threading.Lock)


def model_at(path: str | os.PathLike[str], options: ScoringOptions) -> LanguageModel:
    """Return the model at a path, loaded before or now; another model that is saved there since is loaded anew."""
    # Raises ModelFileError: nothing is there, or it cannot be trusted.
    key = os.path.abspath(path) if os.path.exists(path) else os.fspath(path), options
    with _lock.value:
        state = _state_of(Path(path))
        if key not in _loaded or _loaded[key][0] != state:
            _loaded[key] = state, load_model(path, options)
        return _loaded[key][1]


def _state_of(path: Path) -> _State:
    # What tells the files of a model from others that replace them; nothing for a name of the hub.
    if not path.exists():
        return ()
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    stats = [(file.name, file.stat()) for file in files]
    return tuple((name, stat.st_ino, stat.st_mtime_ns, stat.st_size) for name, stat in stats)
