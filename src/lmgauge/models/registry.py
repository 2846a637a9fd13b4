"""Where models come from, and where they are written to: folders, by their `model_type`; files; servers; names on a hub.

Each kind is a row of `MODELS`, or the entry point of another package (see `base.plugins`): a name, the `model_type` of
folders, the ending of files or what addresses begin with, and a function `load(path, options) -> LanguageModel`. The path is
a `pathlib.Path`, an address a string.

The options are those that `lmgauge.load_model` and the command line were called with, at their defaults where nothing was
chosen. A model that follows them keeps them as its attribute `options`, which run folders record; a model without that
attribute takes none, and options that were chosen are then refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from lmgauge.base.choices import KENLM_ENDINGS, KENLM_MAGIC, CacheFormat, path_and_formats
from lmgauge.base.declaration import chosen, verb
from lmgauge.base.errors import MissingExtraError, ModelFileError, UsageError
from lmgauge.base.files import local_path
from lmgauge.base.plugins import Plugins
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import (
    OF_PROCESSES,
    OF_TEXT,
    SPELLING_FOLDER,
    Backend,
    LanguageModel,
    UnknownKindError,
    completed,
    read_config,
)
from lmgauge.models.scored_text import ScoresStrings

MODELS = Plugins(
    "models",
    """
    lmgauge-cache = lmgauge.models.combined.cache_model:load_cache
    lmgauge-mixture = lmgauge.models.combined.mixture.model:load_mixture
    lmgauge-ngram = lmgauge.models.registry:load_ngrams
    .arpa = lmgauge.models.registry:load_ngrams
    .binary = lmgauge.models.registry:load_ngrams
    .gguf = lmgauge.models.network.gguf.model:load_gguf
    http = lmgauge.models.network.server.model:load_completions
    https = lmgauge.models.network.server.model:load_completions
    """,
)
"""What loads models, by the `model_type` of a folder, the ending of a file, or the begin of an address."""
_ADDRESSES = ("http://", "https://")
_FILE_ENDS = (".gguf", ".arpa", ".gz", ".txt", ".safetensors", *KENLM_ENDINGS, "/")
_GGUF_MAGIC = b"GGUF"
_OURS = "lmgauge-"
_NEURAL_LIBRARIES = ("torch", "transformers")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
_KINDS = (
    "a folder with config.json, an ARPA, KenLM or GGUF file, the http(s) address of a completions server, or a name on a hub"
)


@verb
def load_model(path: str | os.PathLike[str], scoring: ScoringOptions = ScoringOptions(), **fields: Any) -> LanguageModel:
    """Load a model.

    Args:
        path: a model's folder, an ARPA or GGUF file, the http(s) address of a completions server, or a name on a hub; with
            :float32 or :bfloat16 behind it in that number format, with :kv=q8_0 (say) with such a cache.
        scoring: how the model is to score, as one object.
        fields: its fields by name, e.g. `context=1024, dtype="bfloat16"`: see `ScoringOptions`. They win over the object.

    Raises:
        ModelFileError: nothing there, or it cannot be trusted.
        MissingExtraError: the libraries it needs are not installed.
        UsageError: an option is not known or does not fit the model, or `path` is not a path.

    Example:
        >>> import tempfile, lmgauge
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lmgauge.train("kneser-ney", lmgauge.Corpus.from_strings(["the cat", "the dog"])).save(f"{folder}/kn3")
        ...     load_model(f"{folder}/kn3").label
        'kn3'
    """
    model = open_model(path, scoring)
    unused = unused_option(scoring, [model])
    if unused is not None:
        raise UsageError(f"{unused} is for {takers(unused)}, and {path} ({model.label}) does not take it; leave it out")
    return model


def takers(option: str) -> str:
    """Return which models take an option of scoring, in words."""
    if option == "kv_cache":
        return "networks that compute here (servers have their own)"
    if option in OF_PROCESSES:
        return "networks that compute here (n-gram models use all --threads in one process, servers have their own)"
    if option in OF_TEXT:
        return "ARPA files and KenLM's binaries (other models know how they cut text)"
    return "neural models"


def unused_option(options: ScoringOptions, models: Sequence[LanguageModel]) -> str | None:
    """Return the name of the first option that was chosen and that none of the models takes; None if there is none."""
    names = ["context" if name == "stream" else name for name in chosen(options) if name != "reserved"]
    return next((name for name in names if not any(model.takes(name) for model in models)), None)


def open_model(path: str | os.PathLike[str], options: ScoringOptions) -> LanguageModel:
    """Load a model with options that need not be for it, as where several models are named and they are for some."""
    if not isinstance(path, (str, os.PathLike)):
        completed(path)
        raise UsageError(f"load_model takes the path of a model; this {type(path).__name__} is a model already")
    path, formats = path_and_formats(os.fspath(path))
    if ":kv=" in path and not os.path.lexists(path):
        raise UsageError(f"{path}: a cache is one of {', '.join(get_args(CacheFormat))}, as in :kv=q8_0")
    options = replace(options, **formats)
    model = _open(path, options)
    if "dtype" in formats and (os.path.isfile(path) or not model.takes("dtype")):
        raise UsageError(f"{path}:{options.dtype}: a number format is for checkpoints of networks; name {path} without it")
    if "kv_cache" in formats and not model.takes("kv_cache"):
        raise UsageError(f"{path}:kv={options.kv_cache}: a cache is for {takers('kv_cache')}; name {path} without it")
    if options.reserved is not None:
        model = model.with_reserved(options.reserved)
    if isinstance(model, ScoresStrings):
        model.loaded_by = open_model, (os.path.abspath(path) if os.path.exists(path) else path, options)
    return model


def open_unspelled(path: str | os.PathLike[str]) -> LanguageModel:
    """Load the model of a folder without the speller in it, which is not looked at."""
    return _load_folder(Path(path), os.fspath(path), ScoringOptions())


def _open(path: str | os.PathLike[str], options: ScoringOptions) -> LanguageModel:
    name = str(path)
    scheme, is_address, _ = name.partition("://")
    if is_address and (load := MODELS.find(scheme)) is not None:
        return completed(load(name, options))
    path = local_path(path)
    if path.is_file():
        return _load_file(path, options)
    if not path.exists():
        if Path(name.rstrip("/") + ".training").is_dir():
            raise ModelFileError(f"{path}: its training has not finished; run the same `lmgauge train` with --resume")
        if not _HUB_NAME.fullmatch(name) or name.endswith(_FILE_ENDS):
            raise ModelFileError(f"{path}: no such model; a model is {_KINDS}; train one with `lmgauge train`")
        return _load_network(name, options)
    model = _load_folder(path, name, options)
    if not os.path.lexists(path / SPELLING_FOLDER):
        return model
    from lmgauge.models.combined.spelling.model import load_spelling

    return load_spelling(path, model)


def _load_folder(path: Path, name: str, options: ScoringOptions) -> LanguageModel:
    model_type = read_config(path).get("model_type")
    load: Callable[[Path, ScoringOptions], LanguageModel] | None = MODELS.find(str(model_type))
    if load is not None:
        return completed(load(path, options))
    if not isinstance(model_type, str):
        raise ModelFileError(f"{path}: not a model's folder, as its config.json has no model_type")
    try:
        if model_type.startswith(_OURS):  # of a later version, or a part of a model: no library need be asked
            raise UnknownKindError(model_type)
        return _load_network(name, options)
    except UnknownKindError as error:
        known = ", ".join(sorted(kind for kind in MODELS.names() if kind[0] != "." and not kind.startswith("http")))
        raise ModelFileError(
            f"{path}: model_type {model_type!r} is not known here; known are {known}, and the causal models of transformers"
        ) from error


def _load_file(path: Path, options: ScoringOptions) -> LanguageModel:
    try:
        with path.open("rb") as file:
            magic = file.read(len(KENLM_MAGIC))
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror or error}") from error
    kind = ".gguf" if magic.startswith(_GGUF_MAGIC) else ".binary" if magic == KENLM_MAGIC else _kind_of_text(path)
    load = MODELS.find(kind) if kind else None
    if load is None:
        raise ModelFileError(
            f"{path}: not an ARPA or GGUF file, nor a binary of KenLM; a model is such a file, or a folder with config.json"
        )
    return completed(load(path, options))


def _kind_of_text(path: Path) -> str:
    # Name in `MODELS` of a file that is not known by its first bytes; the empty string for none of ours with such an ending.
    from lmgauge.models.ngram.arpa_reader import is_arpa

    return ".arpa" if is_arpa(path) else path.suffix if path.suffix not in MODELS.ours else ""


def load_ngrams(path: Path, options: ScoringOptions) -> LanguageModel:
    """Load an n-gram model in any form; one that does not say how text is cut, with the tokenizer of the options."""
    from lmgauge.models.ngram.arpa_reader import read_arpa
    from lmgauge.models.ngram.kenlm.reader import is_kenlm, read_kenlm
    from lmgauge.models.ngram.model import load_ngram_model
    from lmgauge.text.tokenizers import make_tokenizer

    if path.is_file():
        tokenizer = make_tokenizer(options.tokenizer or "whitespace", options.normalizer)
        return (read_kenlm if is_kenlm(path) else read_arpa)(path, tokenizer=tokenizer)
    model = load_ngram_model(path)
    if not model.is_of_another_program or (options.tokenizer is None and options.normalizer is None):
        return model
    return model.with_tokenizer(make_tokenizer(options.tokenizer or model.tokenizer, options.normalizer))


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


def model_names(named: Sequence[Backend | str | os.PathLike[str]], models: Sequence[LanguageModel]) -> list[str]:
    """Return short distinct names: the last part of a path (the whole where that is not enough), the label of a model."""
    paths = [str(m).rstrip("/") if isinstance(m, (str, os.PathLike)) else "" for m in named]
    # The end of a server's address says nothing; its model has a name.
    paths = ["" if path.startswith(_ADDRESSES) else path for path in paths]
    short = [Path(path).name or path or model.label for path, model in zip(paths, models, strict=True)]
    whole = [path or f"{model.label}@{model.fingerprint[:6]}" for path, model in zip(paths, models, strict=True)]
    return [name if short.count(name) == 1 else other for name, other in zip(short, whole, strict=True)]
