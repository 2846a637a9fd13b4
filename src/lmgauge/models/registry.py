"""How a model is found: by the `model_type` of its folder, ours first, then entry points; ARPA files by their look."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

from lmgauge.errors import ModelFileError
from lmgauge.models.model import NGRAM_MODEL_TYPE, LanguageModel, read_config

ENTRY_POINT_GROUP = "lmgauge.models"


def load_model(path: str | Path) -> LanguageModel:
    """Loads a model from its folder (or an ARPA file).

    Raises:
        ModelFileError: nothing there, or it cannot be trusted.
    """
    path = Path(path)
    if path.is_file():
        from lmgauge.models.ngram.arpa import is_arpa, read_arpa

        if is_arpa(path):
            return read_arpa(path)
        raise ModelFileError(f"{path}: is a file and no ARPA model; a model is a folder with config.json, or an ARPA file")
    if not path.exists():
        raise ModelFileError(f"{path}: no such model; train one with `lmgauge train`")
    model_type = read_config(path).get("model_type")
    if model_type == NGRAM_MODEL_TYPE:
        from lmgauge.models.ngram.model import load_ngram_model

        return load_ngram_model(path)
    loaders = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    if str(model_type) in loaders:
        load: Callable[[Path], LanguageModel] = loaders[str(model_type)].load()
        return load(path)
    known = ", ".join(sorted({NGRAM_MODEL_TYPE, *loaders}))
    raise ModelFileError(f"{path}: model_type {model_type!r} is not known here; known are {known}")
