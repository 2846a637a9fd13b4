"""Model folders changed by somebody who makes all digests and fingerprints anew: refused, or numbers within promises.

What nobody can promise for such a folder is that its probabilities sum to one, as for an ARPA file: `audit` looks at that.
"""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import lmgauge
from lmgauge.models.combined.cache_model import CacheModel
from lmgauge.models.combined.mixture.model import MixtureModel
from lmgauge.models.combined.spelling.speller import Speller, Spelling
from lmgauge.models.model_settings import CacheSettings
from lmgauge.models.ngram import model as ngram
from lmgauge.models.ngram import storage
from lmgauge.models.ngram.settings import NgramSettings
from lmgauge.models.ngram.storage import NgramConfig
from lmgauge.models.protocol import digest_of
from lmgauge.models.registry import open_unspelled
from lmgauge.text.tokenizers import load_tokenizer
from lmgauge.text.vocabulary import Vocabulary, hash_slots
from tests.fuzz.mutations import changed, places_of
from tests.fuzz.parsers.checked import check_model
from tests.fuzz.parsers.model_folders import (
    Files,
    as_json,
    changed_config,
    changed_tensors,
    configs,
    of_another_kind,
    put,
    tensors,
    whole_models,
    with_tensors,
)
from tests.fuzz.table import Attempt


def prepare(folder: Path) -> Attempt:
    models = whole_models(folder)
    target = folder / "changed"

    def attempt(chance: random.Random) -> str:
        files = _changed(models[chance.choice([*models])], chance)
        if of_another_kind(files):
            return "of another kind"
        put(files, target)
        for name in configs(files):
            seal((target / name).parent)
        model = lmgauge.load_model(target)
        if chance.random() < 0.05:
            lmgauge.info(target).to_dict()
        return check_model(model, chance)

    return attempt


def _changed(files: Files, chance: random.Random) -> Files:
    files = dict(files)
    for _ in range(chance.choice([1, 1, 2])):
        name = chance.choice([*files])
        with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):  # it is damaged already
            if chance.random() < 0.5 and name.endswith((".json", ".safetensors")):
                files[name] = _nudged(files[name], chance)
            elif name.endswith("config.json"):
                files[name] = as_json(changed_config(json.loads(files[name]), chance))
            elif name.endswith(".safetensors"):
                files[name] = changed_tensors(files[name], chance)
            elif name.endswith(".json"):
                files[name] = as_json(changed_config({"all": json.loads(files[name])}, chance).get("all"))
            else:
                files[name] = changed(files[name], chance, 2)
    return files


def _nudged(content: bytes, chance: random.Random) -> bytes:
    """Return a file of which one number that can be any between its limits is a little smaller: a model like others."""
    if content[:1] == b"{":
        value = json.loads(content)
        places = [(holder, key) for holder, key in places_of(value) if isinstance(holder[key], float)]
        if places:
            holder, key = chance.choice(places)
            holder[key] *= chance.uniform(0.9, 1)
        return as_json(value)
    arrays = tensors(content)[1]
    numbers = [array for array in arrays.values() if array.dtype in (np.float32, np.uint32) and array.size]
    flat = chance.choice(numbers).reshape(-1).view("<f4")
    at = [*np.flatnonzero((flat < -1e-6) & (flat > -50) | (flat > 1e-6) & (flat <= 1))]  # a count or an id is none of these
    if at:
        flat[chance.choice(at)] *= chance.uniform(0.9, 1)
    return with_tensors(arrays)


def seal(folder: Path) -> None:
    """Give a folder the checksums, fingerprints and digest of what is in it, as far as there are such."""
    file = folder / "config.json"
    try:
        config = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        return
    if not isinstance(config, dict):
        return
    with suppress(Exception):  # what cannot be read has no fingerprint
        if folder.name == "spelling":
            _seal_spelling(folder, config)
        else:
            _SEALS[config["model_type"]](folder, config)
    with suppress(ValueError, TypeError):
        if "sha256" in config:
            config["sha256"] = digest_of(config)
    file.write_bytes(as_json(config))


def _seal_ngram(folder: Path, config: dict[str, Any]) -> None:
    file = folder / "model.safetensors"
    with suppress(Exception):
        mapped, _ = storage._map(file, "")
        storage._check_header(file)
        arrays = storage._arrays(file, mapped)
        storage._check_vocabulary(folder, arrays)
        slots = hash_slots(arrays["vocabulary.offsets"], arrays["vocabulary.bytes"])
        config["sha256"] = digest_of(config)
        checksums = ["0" * 16] * (config["order"] - 1)
        read = msgspec.convert(config | {"checksums": checksums}, NgramConfig)
        stored = storage._assemble(folder, read, arrays | {"vocabulary.slots": slots}, mapped)
        checks = [table.check() for table in stored.tables.tables]
        config["checksums"] = [f"{total:016x}" for total, _ in checks]
        settings = ngram._part(NgramSettings, read)
        model = ngram.NgramModel(stored.tables, stored.vocabulary, load_tokenizer(read.tokenizer, folder), settings)
        config["fingerprint"] = model.fingerprint
        config["vocabulary_size"], config["vocabulary_fingerprint"] = len(model.vocabulary), model.vocabulary.ids_fingerprint
        if all(bad is None for _, bad in checks):
            config["types"] = model.types


def _seal_cache(folder: Path, config: dict[str, Any]) -> None:
    tokens = json.loads((folder / "vocabulary.json").read_bytes())
    vocabulary = Vocabulary.from_tokens(tokens, closed=config["vocabulary"] == "closed")
    settings = CacheSettings(order=config["order"], window=config["window"], decay=config["decay"])
    tokenizer = load_tokenizer(config["tokenizer"], folder)
    config["fingerprint"] = CacheModel(vocabulary, tokenizer, config["reserved"], settings).fingerprint


def _seal_mixture(folder: Path, config: dict[str, Any]) -> None:
    components = [lmgauge.load_model(folder / part["folder"]) for part in config["components"]]
    for part, component in zip(config["components"], components, strict=True):
        part["fingerprint"] = component.fingerprint
    weights = [part["weight"] for part in config["components"]]
    config["fingerprint"] = MixtureModel(components, weights).fingerprint


def _seal_spelling(folder: Path, config: dict[str, Any]) -> None:
    inner = open_unspelled(folder.parent)
    config["tokenizer"], config["vocabulary_fingerprint"] = inner.tokenizer.fingerprint, inner.vocabulary.ids_fingerprint
    if config["characters"] is not None:
        characters = ngram.load_ngram_model(folder / "characters")
        config["characters"] = characters.fingerprint
        config["known_mass"] = Spelling(Speller(characters), inner.vocabulary).known_mass.hex()


_SEALS = {
    "lmgauge-ngram": _seal_ngram,
    "lmgauge-cache": _seal_cache,
    "lmgauge-mixture": _seal_mixture,
}
