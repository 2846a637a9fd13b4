"""Reads the folder `spelling` inside the folder of a model."""

# What it says is believed as far as it fits the model beside it: tokenizer, vocabulary, model of characters. The probability
# of the known words, by which all others are divided, is computed anew before it is believed, once for each file
# (`verified_files`).

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from lmgauge.decoding import Meta
from lmgauge.errors import InputError, ModelFileError, UsageError
from lmgauge.models.ngram.model import NgramModel, load_ngram_model
from lmgauge.models.ngram.verified_files import FileState
from lmgauge.models.protocol import SPELLING_FOLDER, LanguageModel, inside, read_own_config
from lmgauge.models.spelling.model import SpelledModel, refuse_unspellable
from lmgauge.models.spelling.separators import SeparatorModel, StoredSeparators, divided_by_white_space
from lmgauge.models.spelling.speller import Speller, Spelling
from lmgauge.models.spelling.storage import CHARACTERS, CONFIG, FORMAT_VERSION, KIND
from lmgauge.text.vocabulary import SPECIAL_TOKENS

_AGAIN = "spell the model again (`lmgauge spell MODEL --train TEXT --replace`)"
_ROUNDING = 1e-9  # of what is left to unseen words: machines may differ in the last digits of an exponential


@dataclass
class _Config:
    tokenizer: str
    vocabulary_fingerprint: str
    sha256: str
    characters: str | None
    separators: StoredSeparators | None
    # a number below one, as Python's `float.hex` writes it
    known_mass: Annotated[str, Meta(pattern=r"^0x(0\.0p\+0|[01]\.[0-9a-f]{13}p-[1-9][0-9]{0,3})$")] | None


def load_spelling(path: Path, inner: LanguageModel) -> SpelledModel:
    """Return a model with the speller that its folder holds."""
    folder = inside(path, SPELLING_FOLDER)
    if not folder.is_dir():
        raise ModelFileError(f"{folder}: is not a folder, as the speller of a model is; remove it, and {_AGAIN}")
    now = time.time_ns()
    config = read_own_config(folder, _Config, KIND, FORMAT_VERSION, _AGAIN)
    if config.vocabulary_fingerprint != inner.vocabulary.ids_fingerprint:
        raise ModelFileError(f"{folder}: was made for another model, one with another vocabulary; {_AGAIN}")
    if config.tokenizer != inner.tokenizer.fingerprint:
        raise ModelFileError(
            f"{folder}: was made for another tokenizer than {inner.tokenizer.name}; load the model as it was spelled, or "
            f"{_AGAIN}"
        )
    if hasattr(inner, "options"):
        refuse_unspellable(inner)  # not the folder is at fault, but how it was told to score
    try:
        model = _assembled(folder, config, inner)
    except (UsageError, InputError) as error:
        raise ModelFileError(
            f"{folder}: config.json does not describe a speller of this model ({error}); {_AGAIN}"
        ) from error
    _check_known_mass(folder, config.sha256, model, now)
    return model


def _assembled(folder: Path, config: _Config, inner: LanguageModel) -> SpelledModel:
    characters, separators, known_mass = config.characters, config.separators, config.known_mass
    if inner.tokenizer.unit == "character":
        _check(characters is None and separators is None and known_mass is None, "it is one of words")
        return SpelledModel(inner, None, None)
    if characters is None or separators is None or known_mass is None:
        raise InputError("it is one of characters, or not whole")
    model = load_ngram_model(inside(folder, CHARACTERS))
    if model.fingerprint != characters:
        raise ModelFileError(f"{folder / CHARACTERS}: is not the model of characters it was; copy the whole folder again")
    _check_characters(model)
    _check(separators.divided == divided_by_white_space(inner.tokenizer), "its white space is another tokenizer's")
    of_white_space = SeparatorModel.of_stored(separators)
    return SpelledModel(inner, Speller(model), of_white_space, known_mass=float.fromhex(known_mass))


def _check_characters(model: NgramModel) -> None:
    _check(model.tokenizer.name == "character", f"{CHARACTERS} is a model of {model.tokenizer.name} tokens")
    _check(not model.vocabulary.closed, f"{CHARACTERS} has a closed vocabulary")
    _check(model.settings.eos and model.settings.context == "sentence", f"{CHARACTERS} has no end of word")
    alphabet = model.vocabulary.tokens[len(SPECIAL_TOKENS) :]
    _check(all(len(token) == 1 for token in alphabet), f"{CHARACTERS} has tokens that are not characters")


def _check_known_mass(folder: Path, digest: str, model: SpelledModel, now: int) -> None:
    # Refuse a wrong probability of the known words; a file in which it was right before need not be looked at again.
    if model.speller is None:
        return
    file = folder / CONFIG
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
        raise InputError(problem)
