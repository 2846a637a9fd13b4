"""The folder `spelling` inside the folder of a model: the model of characters, and config.json with the separators.

The rest of the folder is the model as it was: other programs read it as before.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmgauge.choices import ARPA_ENDINGS, KENLM_ENDINGS
from lmgauge.errors import InputError, LmgaugeError, ModelFileError, UsageError
from lmgauge.files import writing_directory
from lmgauge.models.ngram.model import load_ngram_model
from lmgauge.models.protocol import SPELLING_FOLDER, LanguageModel, check_format, read_config
from lmgauge.models.spelling.model import SpelledModel
from lmgauge.models.spelling.separators import SeparatorModel
from lmgauge.models.spelling.speller import Speller

FORMAT_VERSION = 1
_KIND = "lmgauge-spelling"
_CONFIG, _CHARACTERS = "config.json", "characters"


def save_spelled(model: SpelledModel, path: str | Path) -> None:
    """Write the folder of a spelled model; see `SpelledModel.save`."""
    save = getattr(model.inner, "save", None)
    if save is None:
        raise UsageError(f"{model.inner.label}: a {type(model.inner).__name__} has no method save(path) to keep it by")
    refuse_file(path)
    with writing_directory(path, is_ours=_is_model_folder) as folder:
        inner = folder / "inner"
        save(inner)
        for file in list(inner.iterdir()):
            file.rename(folder / file.name)
        inner.rmdir()
        write_spelling(model, folder)


def refuse_file(path: str | os.PathLike[str]) -> None:
    """Refuse the name of an ARPA or KenLM file as that of a spelled model.

    Raises:
        UsageError: it is one.
    """
    if os.fspath(path).endswith((*ARPA_ENDINGS, *KENLM_ENDINGS)):
        raise UsageError(f"{os.fspath(path)}: a spelled model is a folder; a file of this form has no room for its speller")


def _is_model_folder(path: Path) -> bool:
    try:
        return isinstance(read_config(path).get("model_type"), str)
    except ModelFileError:
        return False


def write_spelling(model: SpelledModel, folder: str | os.PathLike[str]) -> None:
    """Write what makes a model spelled into the folder of the model inside.

    Args:
        model: the model.
        folder: that of `model.inner`.

    Raises:
        InputError: its `spelling` is something else.
        OutputError: it cannot be written; nothing is left behind.
    """
    config: dict[str, Any] = {
        "model_type": _KIND,
        "format_version": FORMAT_VERSION,
        "vocabulary_fingerprint": model.vocabulary.fingerprint,
        "separators": None if model.separators is None else model.separators.to_dict(),
        "known_mass": None if model.speller is None else model.spelling.known_mass.hex(),
        "characters": None if model.speller is None else model.speller.fingerprint,
    }
    config["sha256"] = _digest(config)
    with writing_directory(Path(folder) / SPELLING_FOLDER, is_ours=_is_spelling) as inside:
        if model.speller is not None:
            model.speller.characters.save(inside / _CHARACTERS)
        (inside / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _is_spelling(path: Path) -> bool:
    try:
        return read_config(path).get("model_type") == _KIND
    except ModelFileError:
        return False


def _digest(config: Mapping[str, Any]) -> str:
    content = {key: value for key, value in config.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def load_spelling(path: Path, inner: LanguageModel) -> SpelledModel:
    """Return a model with the speller that its folder holds.

    Args:
        path: the folder of the model.
        inner: the model, as it was loaded.

    Raises:
        ModelFileError: a file is missing, damaged, or of another model.
    """
    folder = path / SPELLING_FOLDER
    config = read_config(folder)
    check_format(folder, config, FORMAT_VERSION, "spell the model again")
    if config.get("model_type") != _KIND or config.get("sha256") != _digest(config):
        raise ModelFileError(f"{folder}: config.json was edited or damaged; spell the model again (`lmgauge spell`)")
    if config.get("vocabulary_fingerprint") != inner.vocabulary.fingerprint:
        raise ModelFileError(f"{folder}: was made for another model; spell this one again (`lmgauge spell`)")
    try:
        return _assembled(folder, config, inner)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LmgaugeError) and not isinstance(error, (UsageError, InputError)):
            raise
        raise ModelFileError(f"{folder}: config.json does not describe a speller ({error}); it is damaged") from error


def _assembled(folder: Path, config: Mapping[str, Any], inner: LanguageModel) -> SpelledModel:
    if config["characters"] is None:
        return SpelledModel(inner, None, None)
    characters = load_ngram_model(folder / _CHARACTERS)
    if characters.fingerprint != config["characters"]:
        raise ModelFileError(f"{folder / _CHARACTERS}: is not the model of characters it was; a folder was exchanged")
    if characters.tokenizer.name != "character" or characters.vocabulary.closed:
        raise ModelFileError(f"{folder / _CHARACTERS}: is not a model of characters")
    separators = SeparatorModel.from_dict(config["separators"])
    known_mass = float.fromhex(config["known_mass"])
    if not 0 <= known_mass < 1:
        raise ValueError(f"known_mass is {known_mass}")
    return SpelledModel(inner, Speller(characters), separators, known_mass=known_mass)
