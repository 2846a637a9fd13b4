"""How a model is found: by the `model_type` of its folder, ours first, then entry points, then causal networks of any kind;
files by their look; servers by their address; and names that are no path on a hub."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from lmgauge.errors import MissingExtraError, ModelFileError
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import MIXTURE_MODEL_TYPE, NGRAM_MODEL_TYPE, LanguageModel, UnknownKindError, read_config

ENTRY_POINT_GROUP = "lmgauge.models"
_ADDRESSES = ("http://", "https://")
_FILE_ENDS = (".gguf", ".arpa", ".gz", ".txt", ".safetensors", ".bin", "/")
_GGUF_MAGIC = b"GGUF"
_NEURAL_LIBRARIES = ("torch", "transformers")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


def load_model(path: str | Path, options: ScoringOptions | None = None) -> LanguageModel:
    """Loads a model.

    Args:
        path: a model's folder, an ARPA or GGUF file, the http(s) address of a completions server, or a name on a hub.
        options: how neural models are to score; n-gram models and mixtures have it in their folders.

    Raises:
        ModelFileError: nothing there, or it cannot be trusted.
        MissingExtraError: the libraries it needs are not installed.
        UsageError: the options do not fit it.
    """
    options = options or ScoringOptions()
    model = _load(path, options)
    if options.reserved is None:
        return model
    from lmgauge.models.mixture.model import with_reserved

    return with_reserved([model], options.reserved)[0]


def _load(path: str | Path, options: ScoringOptions) -> LanguageModel:
    if str(path).startswith(_ADDRESSES):
        from lmgauge.models.network.server.model import load_completions

        return load_completions(str(path), options, bos=options.bos)
    given, path = str(path), Path(path)
    if path.is_file():
        return _load_file(path, options)
    if not path.exists():
        if Path(given.rstrip("/") + ".training").is_dir():
            raise ModelFileError(
                f"{path}: its training has not come to its end; the same `lmgauge train` with --resume goes on"
            )
        if not _HUB_NAME.fullmatch(given) or given.endswith(_FILE_ENDS):
            raise ModelFileError(f"{path}: no such model; train one with `lmgauge train`")
        return _load_network(given, options)
    model_type = read_config(path).get("model_type")
    if model_type == NGRAM_MODEL_TYPE:
        from lmgauge.models.ngram.model import load_ngram_model

        return load_ngram_model(path)
    if model_type == MIXTURE_MODEL_TYPE:
        from lmgauge.models.mixture.model import load_mixture

        return load_mixture(path, lambda component: load_model(component, options.of_machine()))
    loaders = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    if str(model_type) in loaders:
        load: Callable[[Path], LanguageModel] = loaders[str(model_type)].load()
        return load(path)
    if not isinstance(model_type, str):
        raise ModelFileError(f"{path}: its config.json names no model_type; it is no model's folder")
    try:
        return _load_network(given, options)
    except UnknownKindError as error:
        known = ", ".join(sorted({NGRAM_MODEL_TYPE, MIXTURE_MODEL_TYPE, *loaders}))
        raise ModelFileError(
            f"{path}: model_type {model_type!r} is not known here; known are {known}, and the causal models of transformers"
        ) from error


def _load_file(path: Path, options: ScoringOptions) -> LanguageModel:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_GGUF_MAGIC))
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror or error}") from error
    if magic == _GGUF_MAGIC:
        from lmgauge.models.network.gguf.model import load_gguf

        return load_gguf(path, options)
    from lmgauge.models.ngram.arpa_reader import is_arpa, read_arpa

    if is_arpa(path):
        return read_arpa(path)
    raise ModelFileError(
        f"{path}: is a file and no ARPA or GGUF model; a model is a folder with config.json, or such a file"
    )


def _load_network(source: str, options: ScoringOptions) -> LanguageModel:
    try:
        from lmgauge.models.network.torch.model import load_neural
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in _NEURAL_LIBRARIES:
            raise
        if not Path(source).exists():
            raise ModelFileError(
                f"{source}: no such model; a name on a hub needs torch and transformers: pip install 'lmgauge[neural]'"
            ) from error
        raise MissingExtraError("torch and transformers", extra="neural") from error
    return load_neural(source, options)


def model_names(given: Sequence[LanguageModel | str | os.PathLike[str]], models: Sequence[LanguageModel]) -> list[str]:
    """Short distinct names: the last part of a path (the whole where that is not enough), the label of a model.

    Args:
        given: models or the paths of them.
        models: the models.
    """
    paths = [str(m).rstrip("/") if isinstance(m, (str, os.PathLike)) else "" for m in given]
    # The end of a server's address says nothing; its model has a name.
    paths = ["" if path.startswith(_ADDRESSES) else path for path in paths]
    short = [Path(path).name or path or model.label for path, model in zip(paths, models, strict=True)]
    whole = [path or f"{model.label}@{model.fingerprint[:6]}" for path, model in zip(paths, models, strict=True)]
    return [name if short.count(name) == 1 else other for name, other in zip(short, whole, strict=True)]
