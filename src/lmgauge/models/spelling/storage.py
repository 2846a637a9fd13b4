"""The folder `spelling` inside the folder of a model: the model of characters, and config.json with the separators.

The rest of the folder is the model as it was: other programs read it as before. What the folder says is believed as far as
it fits the model beside it: tokenizer, vocabulary, model of characters. The probability of the known words, by which all
others are divided, is computed anew before it is believed, once for each file (`verified_files`).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmgauge.choices import ARPA_ENDINGS, KENLM_ENDINGS
from lmgauge.errors import InputError, LmgaugeError, ModelFileError, UsageError
from lmgauge.files import writing_directory
from lmgauge.models.ngram.model import NgramModel, load_ngram_model
from lmgauge.models.ngram.verified_files import FileState
from lmgauge.models.protocol import SPELLING_FOLDER, LanguageModel, check_format, read_config
from lmgauge.models.spelling.model import SpelledModel
from lmgauge.models.spelling.separators import SeparatorModel, divided_by_white_space
from lmgauge.models.spelling.speller import Speller, Spelling
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import SPECIAL_TOKENS, Vocabulary

FORMAT_VERSION = 1
_KIND = "lmgauge-spelling"
_CONFIG, _CHARACTERS = "config.json", "characters"
_AGAIN = "spell the model again (`lmgauge spell MODEL --train TEXT --replace`)"
_ROUNDING = 1e-9  # of what is left to unseen words: machines may differ in the last digits of an exponential


def save_spelled(model: SpelledModel, path: str | Path) -> None:
    """Write the folder of a spelled model; see `SpelledModel.save`."""
    save = getattr(model.inner, "save", None)
    if save is None:
        raise UsageError(f"{model.inner.label}: a {type(model.inner).__name__} has no method save(path) to keep it by")
    refuse_file(path)
    with writing_directory(path, is_ours=getattr(model.inner, "may_replace", _never)) as folder:
        inner = folder / "inner"
        save(inner)
        for file in list(inner.iterdir()):
            file.rename(folder / file.name)
        inner.rmdir()
        add_spelling(model, folder)


def is_spelling_folder(path: Path) -> bool:
    """Return True if a folder has the files of a speller, sound or not, and nothing else: a new one may replace it.

    Args:
        path: the folder.
    """
    return {file.name for file in path.iterdir()} <= {_CONFIG, _CHARACTERS}


def _never(path: Path) -> bool:
    return False


def refuse_file(path: str | os.PathLike[str]) -> None:
    """Refuse the name of an ARPA or KenLM file as that of a spelled model.

    Raises:
        UsageError: it is one.
    """
    if os.fspath(path).endswith((*ARPA_ENDINGS, *KENLM_ENDINGS)):
        raise UsageError(
            f"{os.fspath(path)}: a spelled model is a folder; a file of this form has no room for its speller. "
            "Name a folder, or leave out the spelling"
        )


def add_spelling(model: SpelledModel, folder: str | Path) -> None:
    """Write what makes a model spelled into the folder of the model inside.

    Args:
        model: the model.
        folder: that of `model.inner`.

    Raises:
        InputError: its `spelling` is something else.
        OutputError: it cannot be written; nothing is left behind.
    """
    spelling = None if model.speller is None else model.spelling
    write_spelling(folder, model.tokenizer, model.vocabulary, spelling, model.separators)


def write_spelling(
    folder: str | Path,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    spelling: Spelling | None,
    separators: SeparatorModel | None,
) -> None:
    """Write the folder `spelling` into the folder of a model; one that is there is replaced when the new one is whole.

    Args:
        folder: that of the model.
        tokenizer: of the model.
        vocabulary: of the model.
        spelling: of unseen words; None for a model of characters.
        separators: likewise.

    Raises:
        InputError: what is there under this name is something else.
        OutputError: it cannot be written; nothing is left behind.
    """
    config: dict[str, Any] = {
        "model_type": _KIND,
        "format_version": FORMAT_VERSION,
        "tokenizer": tokenizer.fingerprint,
        "vocabulary_fingerprint": vocabulary.fingerprint,
        "separators": None if separators is None else separators.to_dict(),
        "known_mass": None if spelling is None else spelling.known_mass.hex(),
        "characters": None if spelling is None else spelling.speller.fingerprint,
    }
    config["sha256"] = _digest(config)
    with writing_directory(Path(folder) / SPELLING_FOLDER, is_ours=is_spelling_folder) as inside:
        if spelling is not None:
            spelling.speller.characters.save(inside / _CHARACTERS)
        (inside / _CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


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
    if not folder.is_dir():
        raise ModelFileError(f"{folder}: is not a folder, as the speller of a model is; remove it, and {_AGAIN}")
    config, now = read_config(folder), time.time_ns()
    if config.get("model_type") != _KIND:
        raise ModelFileError(f"{folder}: model_type is {str(config.get('model_type'))[:60]!r}, not {_KIND!r}; move it away")
    check_format(folder, config, FORMAT_VERSION, _AGAIN)
    if config.get("sha256") != _digest(config):
        raise ModelFileError(f"{folder}: config.json was edited or damaged, its sha256 does not fit; {_AGAIN}")
    if config.get("vocabulary_fingerprint") != inner.vocabulary.fingerprint:
        raise ModelFileError(f"{folder}: was made for another model, one with another vocabulary; {_AGAIN}")
    if config.get("tokenizer") != inner.tokenizer.fingerprint:
        raise ModelFileError(
            f"{folder}: was made for another tokenizer than {inner.tokenizer.name}; load the model as it was spelled, or "
            f"{_AGAIN}"
        )
    try:
        model = _assembled(folder, config, inner)
        _check_known_mass(folder, str(config["sha256"]), model, now)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, LmgaugeError) and not isinstance(error, (UsageError, InputError)):
            raise
        raise ModelFileError(
            f"{folder}: config.json does not describe a speller of this model ({error}); {_AGAIN}"
        ) from error
    return model


def _assembled(folder: Path, config: Mapping[str, Any], inner: LanguageModel) -> SpelledModel:
    if inner.tokenizer.unit == "character":
        _check(config["characters"] is config["separators"] is config["known_mass"] is None, "it is one of words")
        return SpelledModel(inner, None, None)
    characters = load_ngram_model(folder / _CHARACTERS)
    if characters.fingerprint != config["characters"]:
        raise ModelFileError(f"{folder / _CHARACTERS}: is not the model of characters it was; copy the whole folder again")
    _check_characters(characters)
    separators = SeparatorModel.from_dict(config["separators"])
    _check(separators.divided == divided_by_white_space(inner.tokenizer), "its white space is another tokenizer's")
    known_mass = float.fromhex(config["known_mass"])
    _check(0 <= known_mass < 1, f"known_mass is {known_mass}")
    return SpelledModel(inner, Speller(characters), separators, known_mass=known_mass)


def _check_characters(model: NgramModel) -> None:
    """Refuse a model of characters whose probabilities of words would not sum to one."""
    _check(model.tokenizer.name == "character", f"{_CHARACTERS} is a model of {model.tokenizer.name} tokens")
    _check(not model.vocabulary.closed, f"{_CHARACTERS} has a closed vocabulary")
    _check(model.settings.eos and model.settings.context == "sentence", f"{_CHARACTERS} has no end of word")
    alphabet = model.vocabulary.tokens[len(SPECIAL_TOKENS) :]
    _check(all(len(token) == 1 for token in alphabet), f"{_CHARACTERS} has tokens that are not characters")


def _check_known_mass(folder: Path, digest: str, model: SpelledModel, now: int) -> None:
    """Refuse a wrong probability of the known words; a file in which it was right before need not be looked at again."""
    if model.speller is None:
        return
    file = folder / _CONFIG
    try:
        state = FileState.of(file, digest)
    except OSError as error:
        raise ModelFileError(f"{file}: cannot be read: {error.strerror or error}") from error
    if state.is_known():
        return
    stored, computed = model.spelling.known_mass, Spelling(model.speller, model.vocabulary).known_mass
    if not math.isclose(1 - stored, 1 - computed, rel_tol=_ROUNDING):
        raise ModelFileError(f"{folder}: known_mass is {stored}, and that of these words is {computed}; {_AGAIN}")
    state.remember(file, now)


def _check(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)
