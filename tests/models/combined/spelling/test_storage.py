"""The folder `spelling`: what is written is read again, and nothing else is believed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.models import SpelledModel
from lmgauge.models.combined.spelling import model as spelling_model
from lmgauge.models.combined.spelling import storage
from lmgauge.models.combined.spelling.model import load_spelling
from lmgauge.models.combined.spelling.storage import CONFIG, FORMAT_VERSION
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.protocol import digest_of

TEXT = ["the cat  sat", "a dog\tsat ", " the dog ran", "an owl", "the bird sang a song"]
STRANGE = ["the zebra  sat", "", "\t", "ünder the Ωmega"]
SEEDS = 300


@pytest.fixture(scope="module")
def model() -> SpelledModel:
    return lmgauge.train("witten-bell", Corpus.from_strings(TEXT), order=2, vocabulary="spelled")


@pytest.fixture
def folder(model: SpelledModel, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


def config_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "spelling" / CONFIG).read_text())
    return content


def put(folder: Path, config: dict[str, Any]) -> None:
    """Write a config.json with the digest that belongs to it, as somebody who knows how it is made could."""
    config["sha256"] = digest_of(config)
    (folder / "spelling" / CONFIG).write_text(json.dumps(config))


def nats(model: lmgauge.LanguageModel) -> list[float]:
    return [
        total
        for text in STRANGE
        for total in [sum(float(b.logprob.sum()) for b in model.score(Corpus.from_strings([text])))]
    ]


def test_what_is_written_is_read(model: SpelledModel, folder: Path) -> None:
    again = lmgauge.load_model(folder)
    assert isinstance(again, SpelledModel)
    assert again.fingerprint == model.fingerprint
    assert again.learned() == model.learned()
    assert nats(again) == nats(model)
    assert config_of(folder)["format_version"] == FORMAT_VERSION


def test_the_model_beside_it_is_as_it_was(model: SpelledModel, folder: Path, tmp_path: Path) -> None:
    assert isinstance(model.inner, NgramModel)
    model.inner.save(tmp_path / "plain")
    for file in (tmp_path / "plain").iterdir():
        assert (folder / file.name).read_bytes() == file.read_bytes()
    shutil.rmtree(folder / "spelling")
    assert lmgauge.load_model(folder).fingerprint == model.inner.fingerprint


def test_a_model_of_characters_needs_no_speller(tmp_path: Path) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(TEXT), tokenizer="character", vocabulary="spelled")
    model.save(tmp_path / "characters")
    assert {path.name for path in (tmp_path / "characters" / "spelling").iterdir()} == {CONFIG}
    assert nats(lmgauge.load_model(tmp_path / "characters")) == nats(model)


# -- what is replaced, and what is not ----------------------------------------------------------------------------------
def test_a_spelled_model_replaces_models_and_nothing_else(model: SpelledModel, folder: Path, tmp_path: Path) -> None:
    model.save(folder)
    assert isinstance(model.inner, NgramModel)
    model.inner.save(folder)  # the speller goes with the model that it belongs to
    assert not (folder / "spelling").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(InputError, match="was not written by lmgauge"):
        model.save(tmp_path / "mine")
    (folder / "notes.txt").touch()
    with pytest.raises(InputError, match="was not written by lmgauge"):
        model.save(folder)


@pytest.mark.parametrize("name", ["kn.arpa", "kn.arpa.gz", "kn.binary"])
def test_files_of_other_programs_have_no_room(model: SpelledModel, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        model.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_of_a_writing_that_failed(
    model: SpelledModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "write_config", full)
    with pytest.raises(lmgauge.LmgaugeError, match="disk is full"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_no_obstacle(model: SpelledModel, folder: Path) -> None:
    (folder / ".spelling.abcdefgh.tmp").mkdir()
    assert isinstance(lmgauge.load_model(folder), SpelledModel)
    model.save(folder)
    assert {path.name for path in folder.iterdir()} == {CONFIG, "model.safetensors", "spelling"}


# -- hostile folders ----------------------------------------------------------------------------------------------------
Damage = Callable[[Path, dict[str, Any]], object]


def other_characters(folder: Path, config: dict[str, Any]) -> None:
    """Exchange the model of characters for a sound one."""
    lmgauge.train("witten-bell", Corpus.from_strings(["ab"]), tokenizer="character").save(folder / "spelling" / "characters")


def words_for_characters(folder: Path, config: dict[str, Any]) -> None:
    words = lmgauge.train("witten-bell", Corpus.from_strings(["ab"]))
    words.save(folder / "spelling" / "characters")
    put(folder, config | {"characters": words.fingerprint})


def without_ends(folder: Path, config: dict[str, Any]) -> None:
    endless = lmgauge.train("witten-bell", Corpus.from_strings(["ab"]), tokenizer="character", eos=False)
    endless.save(folder / "spelling" / "characters")
    put(folder, config | {"characters": endless.fingerprint})


def closed(folder: Path, config: dict[str, Any]) -> None:
    fixed = lmgauge.train("witten-bell", Corpus.from_strings(["ab"]), tokenizer="character", vocabulary="closed")
    fixed.save(folder / "spelling" / "characters")
    put(folder, config | {"characters": fixed.fingerprint})


def changed(**values: object) -> Damage:
    return lambda folder, config: put(folder, config | values)


def in_separators(**values: object) -> Damage:
    return lambda folder, config: put(folder, config | {"separators": config["separators"] | values})


def elsewhere(folder: Path, config: dict[str, Any]) -> None:
    shutil.rmtree(folder / "spelling")
    (folder / "spelling").symlink_to(folder.parent / "nowhere")


def characters_elsewhere(folder: Path, config: dict[str, Any]) -> None:
    shutil.move(folder / "spelling" / "characters", folder.parent / "characters")
    (folder / "spelling" / "characters").symlink_to(folder.parent / "characters")


def a_file(folder: Path, config: dict[str, Any]) -> None:
    shutil.rmtree(folder / "spelling")
    (folder / "spelling").write_text("{}")


def text_in(name: str, text: str) -> Damage:
    return lambda folder, config: (folder / "spelling" / name).write_text(text)


DAMAGES: dict[str, tuple[Damage, str]] = {
    "edited": (text_in(CONFIG, '{"model_type": "lmgauge-spelling", "format_version": 1}'), "edited or damaged"),
    "not JSON": (text_in(CONFIG, "{"), "cannot be read"),
    "a list": (text_in(CONFIG, "[]"), "not a JSON object"),
    "deep": (text_in(CONFIG, "[" * 200_000), "cannot be read"),
    "long number": (text_in(CONFIG, '{"model_type": ' + "9" * 5000 + "}"), "cannot be read"),
    "no config": (lambda folder, config: (folder / "spelling" / CONFIG).unlink(), "no config.json"),
    "a link to nowhere": (elsewhere, "is not a folder"),
    "a link to characters": (characters_elsewhere, "its part 'characters' is not a folder in it"),
    "a file": (a_file, "is not a folder"),
    "no characters": (lambda folder, config: shutil.rmtree(folder / "spelling" / "characters"), "characters: missing"),
    "other characters": (other_characters, "is not the model of characters it was"),
    "words for characters": (words_for_characters, "is not a model of the characters of words"),
    "characters without ends": (without_ends, "is not a model of the characters of words"),
    "closed characters": (closed, "is not a model of the characters of words"),
    "other kind": (changed(model_type="gpt2"), "model_type is 'gpt2'"),
    "other version": (changed(format_version=99), "reads format 1"),
    "other vocabulary": (changed(vocabulary_fingerprint="0" * 64), "another vocabulary"),
    "other tokenizer": (changed(tokenizer="icu"), "another tokenizer"),
    "no digest": (changed(characters=None), "or not whole"),
    "of characters": (changed(characters=None, separators=None, known_mass=None), "it is one of characters"),
    "no mass": (changed(known_mass=None), "or not whole"),
    "mass NaN": (changed(known_mass="nan"), r"at `\$\.known_mass`"),
    "mass one": (changed(known_mass=(1.0).hex()), r"at `\$\.known_mass`"),
    "mass below zero": (changed(known_mass=(-0.125).hex()), r"at `\$\.known_mass`"),
    "mass beyond floats": (changed(known_mass="0x1.0000000000000p+99999"), r"at `\$\.known_mass`"),
    "mass a list": (changed(known_mass=[]), r"at `\$\.known_mass`"),
    "no separators": (changed(separators=None), "or not whole"),
    "separators a number": (changed(separators=7), r"at `\$\.separators`"),
    "divided a word": (in_separators(divided="yes"), "divided"),
    "known a number": (in_separators(known=3), "known"),
    "known twice": (in_separators(known=[" ", " "]), "known"),
    "known words": (in_separators(known=["the"]), "known"),
    "count below zero": (in_separators(counts=[[0, 0, -3]]), "counts"),
    "count of zero": (in_separators(counts=[[0, 0, 0]]), "counts"),
    "huge count": (in_separators(counts=[[0, 0, 1 << 60]]), "counts"),
    "huger count": (in_separators(counts=[[0, 0, 10**400]]), "cannot be read: a whole number has 401 digits"),
    "count NaN": (in_separators(counts=[[0, 0, float("nan")]]), "cannot be read: NaN is not JSON"),
    "context outside": (in_separators(counts=[[1 << 40, 0, 1]]), "counts"),
    "separator outside": (in_separators(counts=[[0, 99, 1]]), "counts"),
    "count of two": (in_separators(counts=[[0, 0]]), r"at `\$\.separators\.counts\[0\]`"),
    "spelling of lists": (in_separators(spelling=[[[], [], 1]]), r"at `\$\.separators\.spelling\[0\]\[0\]`"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_wrong_folder_is_refused_in_words(folder: Path, name: str) -> None:
    damage, words = DAMAGES[name]
    damage(folder, config_of(folder))
    with pytest.raises(ModelFileError, match=words) as refusal:
        lmgauge.load_model(folder)
    assert str(folder) in str(refusal.value)


def test_a_speller_is_not_carried_to_another_model(folder: Path, tmp_path: Path) -> None:
    lmgauge.train("witten-bell", Corpus.from_strings(["other words"])).save(tmp_path / "other")
    shutil.copytree(folder / "spelling", tmp_path / "other" / "spelling")
    with pytest.raises(ModelFileError, match="was made for another model"):
        lmgauge.load_model(tmp_path / "other")
    text = Corpus.from_strings(TEXT)
    lmgauge.spell(tmp_path / "other", text, output=tmp_path / "other", replace=True)
    assert isinstance(lmgauge.load_model(tmp_path / "other"), SpelledModel)


# -- mutations ----------------------------------------------------------------------------------------------------------
VALUES = [
    None,
    True,
    False,
    0,
    -1,
    1,
    1 << 53,
    10**30,
    0.5,
    float("nan"),
    float("inf"),
    "",
    " ",
    "\t",
    "\u3000",
    "a",
    "0x1p-2",
    [],
    {},
]


def mutated(content: Any, draw: random.Random) -> Any:
    """Return JSON values with one of them, somewhere, exchanged, removed or doubled."""
    if isinstance(content, dict) and content and draw.random() < 0.9:
        key = draw.choice(sorted(content))
        if draw.random() < 0.1:
            return {name: value for name, value in content.items() if name != key}
        return content | {key: mutated(content[key], draw)}
    if isinstance(content, list) and content and draw.random() < 0.9:
        i = draw.randrange(len(content))
        what = draw.random()
        return (
            content[:i]
            + ([] if what < 0.1 else [content[i]] * 2 if what < 0.2 else [mutated(content[i], draw)])
            + content[i + 1 :]
        )
    if type(content) is int and draw.random() < 0.5:
        return content + draw.choice([-1, 1, 1 << 20, -content])
    return draw.choice(VALUES)


def check_mutation(folder: Path, config: dict[str, Any], inner: NgramModel, seed: int) -> bool:
    """Load a mutated folder: it is refused in words, or is a model whose white space has probabilities that sum to one."""
    draw = random.Random(seed)
    content = mutated({key: value for key, value in config.items() if key != "sha256"}, draw)
    if isinstance(content, dict) and draw.random() < 0.9:
        content["sha256"] = digest_of(content)
    raw = json.dumps(content).encode()
    if draw.random() < 0.1:
        at = draw.randrange(len(raw))
        raw = raw[:at] + bytes([draw.randrange(256)]) + raw[at + 1 :]
    (folder / "spelling" / CONFIG).write_bytes(raw)
    try:
        model = load_spelling(folder, inner)
    except ModelFileError:
        return False
    assert model.separators is not None
    for place in range(4):
        context = model.separators.context_of(place, b"a", b"", None, quoted=seed % 2 == 0)
        assert np.isclose(model.separators.probabilities(context).sum(), 1.0)
    assert 0 <= model.spelling.known_mass < 1
    return True


def test_mutated_folders_are_refused_or_sound(model: SpelledModel, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert model.speller is not None
    assert isinstance(model.inner, NgramModel)
    characters = model.speller.characters
    monkeypatch.setattr(spelling_model, "load_ngram_model", lambda path: characters)
    config = config_of(folder)
    sound = [check_mutation(folder, config, model.inner, seed) for seed in range(SEEDS)]
    assert 0 < sum(sound) < SEEDS / 2
