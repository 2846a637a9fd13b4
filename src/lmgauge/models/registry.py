"""How a model is found: by the `model_type` of its folder, ours first, then entry points; ARPA files by their look."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from lmgauge.errors import ModelFileError
from lmgauge.models.model import MIXTURE_MODEL_TYPE, NGRAM_MODEL_TYPE, LanguageModel, read_config

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
    if model_type == MIXTURE_MODEL_TYPE:
        from lmgauge.models.mixture import load_mixture

        return load_mixture(path, load_model)
    loaders = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    if str(model_type) in loaders:
        load: Callable[[Path], LanguageModel] = loaders[str(model_type)].load()
        return load(path)
    known = ", ".join(sorted({NGRAM_MODEL_TYPE, MIXTURE_MODEL_TYPE, *loaders}))
    raise ModelFileError(f"{path}: model_type {model_type!r} is not known here; known are {known}")


def model_names(given: Sequence[LanguageModel | str | os.PathLike[str]], models: Sequence[LanguageModel]) -> list[str]:
    """Short distinct names: the last part of a path (the whole where that is not enough), the label of a model.

    Args:
        given: models or the paths of them.
        models: the models.
    """
    paths = [str(m).rstrip("/") if isinstance(m, (str, os.PathLike)) else "" for m in given]
    short = [Path(path).name or path or model.label for path, model in zip(paths, models, strict=True)]
    whole = [path or f"{model.label}@{model.fingerprint[:6]}" for path, model in zip(paths, models, strict=True)]
    return [name if short.count(name) == 1 else other for name, other in zip(short, whole, strict=True)]
