"""Reads the folder `spelling` inside the folder of a model."""

# What it says is believed as far as it fits the model beside it: tokenizer, vocabulary, model of characters.

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from lmgauge.decoding import Meta
from lmgauge.errors import InputError, ModelFileError
from lmgauge.models.ngram.model import load_ngram_model
from lmgauge.models.protocol import SPELLING_FOLDER, LanguageModel, describing, inside, read_own_config
from lmgauge.models.spelling.model import SpelledModel, refuse_unspellable
from lmgauge.models.spelling.separators import SeparatorModel, StoredSeparators
from lmgauge.models.spelling.speller import Speller
from lmgauge.models.spelling.storage import CHARACTERS, FORMAT_VERSION, KIND
from lmgauge.text.vocabulary import SPECIAL_TOKENS

_AGAIN = "spell the model again (`lmgauge spell MODEL --train TEXT --replace`)"


@dataclass
class _Config:
    tokenizer: str
    vocabulary_fingerprint: str
    characters: str | None
    separators: StoredSeparators | None
    # a number below one, as Python's `float.hex` writes it
    known_mass: Annotated[str, Meta(pattern=r"^0x(0\.0p\+0|[01]\.[0-9a-f]{13}p-[1-9][0-9]{0,3})$")] | None


def load_spelling(path: Path, inner: LanguageModel) -> SpelledModel:
    """Return a model with the speller that its folder holds."""
    folder = inside(path, SPELLING_FOLDER)
    if not folder.is_dir():
        raise ModelFileError(f"{folder}: is not a folder, as the speller of a model is; remove it, and {_AGAIN}")
    config = read_own_config(folder, _Config, KIND, FORMAT_VERSION, _AGAIN)
    if config.vocabulary_fingerprint != inner.vocabulary.ids_fingerprint:
        raise ModelFileError(f"{folder}: was made for another model, one with another vocabulary; {_AGAIN}")
    if config.tokenizer != inner.tokenizer.fingerprint:
        raise ModelFileError(
            f"{folder}: was made for another tokenizer than {inner.tokenizer.name}; load the model as it was spelled, or "
            f"{_AGAIN}"
        )
    if inner.options is not None:
        refuse_unspellable(inner)  # not the folder is at fault, but how it was told to score
    with describing(folder, "a speller of this model"):
        return _assembled(folder, config, inner)


def _assembled(folder: Path, config: _Config, inner: LanguageModel) -> SpelledModel:
    if inner.tokenizer.unit == "character":
        if config.characters is not None:
            raise InputError("it is one of words")
        return SpelledModel(inner, None, None)
    if config.characters is None or config.separators is None or config.known_mass is None:
        raise InputError("it is one of characters, or not whole")
    characters = load_ngram_model(inside(folder, CHARACTERS))
    if characters.fingerprint != config.characters:
        raise ModelFileError(f"{folder / CHARACTERS}: is not the model of characters it was; copy the whole folder again")
    settings, vocabulary = characters.settings, characters.vocabulary
    ends = settings.eos and settings.context == "sentence" and not vocabulary.closed
    if not ends or any(len(token) != 1 for token in vocabulary.tokens[len(SPECIAL_TOKENS) :]):
        raise InputError(f"{CHARACTERS} is not a model of the characters of words")
    separators = SeparatorModel(config.separators)
    return SpelledModel(inner, Speller(characters), separators, known_mass=float.fromhex(config.known_mass))
