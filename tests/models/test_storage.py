"""Models on disk: what is loaded is what was saved, bit for bit, and a damaged file is an error, never another number."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reference.ngram import KINDS

import lmgauge
from lmgauge import Corpus, LmgaugeError, NgramModel
from lmgauge.base import temporaries
from lmgauge.base.errors import InputError, ModelFileError
from lmgauge.models.ngram import storage
from lmgauge.models.protocol import digest_of

TEXT = ["a b c a", "b c d", "a b e f g", "a b c d", "", "g f e a b", "Ärger 漢字 a"] * 4
TEST = ["a b c d e f g", "漢字 Ärger unseen", "", "a b e"]


def scores(model: Any) -> list[float]:
    return [value for batch in model.score(Corpus.from_strings(TEST)) for value in batch.logprob.tolist()]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def model() -> NgramModel:
    return lmgauge.train("modified-kneser-ney", Corpus.from_strings(TEXT), order=3)


@pytest.fixture
def saved(model: NgramModel, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("tokenizer", ["whitespace", "character", "byte"])
@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_loaded_is_what_was_saved(tmp_path: Path, kind: Any, order: int, tokenizer: str) -> None:
    options: dict[str, Any] = {"k": 0.1} if kind == "lidstone" else {}
    options["context"] = "stream" if order == 2 else "sentence"
    made = lmgauge.train(kind, Corpus.from_strings(TEXT), order=order, tokenizer=tokenizer, **options)
    made.save(tmp_path / "model")
    loaded = lmgauge.load_model(tmp_path / "model")
    assert isinstance(loaded, NgramModel)
    assert scores(loaded) == scores(made)
    assert loaded.settings == made.settings
    assert loaded.to_dict() == made.to_dict()
    assert loaded.fingerprint == made.fingerprint
    assert loaded.vocabulary.tokens == made.vocabulary.tokens
    for context in ([], [1], [3], [4, 3]):
        assert np.array_equal(loaded.log_distribution(context), made.log_distribution(context))


def test_bytes_do_not_depend_on_threads(tmp_path: Path, data: Path) -> None:
    text = data / "tinyshakespeare.txt"
    kept = None
    for threads in (1, 2, 3, 5):
        folder = tmp_path / str(threads)
        lmgauge.train("modified-kneser-ney", text, order=4, cutoffs=(0, 0, 0, 1), threads=threads).save(folder)
        kept = kept or files(folder)
        assert files(folder) == kept


def test_saving_what_was_loaded_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    loaded = lmgauge.load_model(saved)
    assert isinstance(loaded, NgramModel)
    loaded.save(tmp_path / "again")
    assert files(tmp_path / "again") == files(saved)


def test_the_safetensors_library_reads_it(saved: Path, model: NgramModel) -> None:
    from safetensors.numpy import load_file

    arrays = load_file(saved / "model.safetensors")
    assert set(arrays) >= {"unigrams", "vocabulary.offsets", "vocabulary.bytes", "ngrams.2", "ngrams.3"}
    assert np.array_equal(arrays["unigrams"], model.tables.unigrams)
    assert np.array_equal(arrays["ngrams.3"], model.tables.tables[1].lines)
    raw = (saved / "model.safetensors").read_bytes()
    assert (8 + int.from_bytes(raw[:8], "little")) % 64 == 0  # mapped tables lie on cache lines


def test_what_the_safetensors_library_writes_is_read(saved: Path, model: NgramModel) -> None:
    from safetensors.numpy import load_file, save_file

    save_file(load_file(saved / "model.safetensors"), saved / "model.safetensors")
    assert scores(lmgauge.load_model(saved)) == scores(model)


def test_a_relocated_folder_and_a_read_only_one_load(saved: Path, tmp_path: Path, model: NgramModel) -> None:
    moved = tmp_path / "with space" / "ünï"
    moved.parent.mkdir()
    shutil.move(saved, moved)
    for path in moved.iterdir():
        path.chmod(0o444)
    assert scores(lmgauge.load_model(moved)) == scores(model)


# -- damage -------------------------------------------------------------------------------------------------------------

FLIPS = textwrap.dedent(
    """
    import json, random, shutil, sys
    from pathlib import Path
    import numpy as np
    import lmgauge
    from lmgauge import Corpus
    from lmgauge.base.errors import ModelFileError
    folder, region = Path(sys.argv[1]), sys.argv[2]
    test = json.loads(sys.argv[3])

    def answers():
        model = lmgauge.load_model(folder)
        batches = list(model.score(Corpus.from_strings(test), threads=1))
        values = [batch.logprob.tolist() + batch.token_ids.tolist() for batch in batches]
        known = [model.vocabulary.id(token) for token in model.vocabulary.tokens]
        return values, known, model.log_distribution([1]).tolist(), model.vocabulary.tokens

    right = answers()
    name = "config.json" if region == "config" else "model.safetensors"
    whole = (folder / name).read_bytes()
    begin, end = 0, len(whole)
    if region != "config":
        length = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8 : 8 + length])
        begin, end = (0, 8 + length) if region == "header" else (8 + length + x for x in header[region]["data_offsets"])
    random.seed(1)
    positions = list(range(begin, end))
    if len(positions) > 200:
        positions = sorted(random.sample(positions, 200))
    wrong = []
    for position in positions:
        bit = random.randrange(8)
        damaged = bytearray(whole)
        damaged[position] ^= 1 << bit
        (folder / name).write_bytes(damaged)
        print(f"last: byte {position - begin} bit {bit}", file=sys.stderr)
        try:
            if answers() != right:
                wrong.append(f"byte {position - begin} bit {bit}: other numbers, no error")
        except ModelFileError as error:
            if "\\n" in str(error):
                wrong.append(f"byte {position - begin}: {error!r} has several lines")
        except Exception as error:
            wrong.append(f"byte {position - begin} bit {bit}: {error!r}")
    print("\\n".join(wrong[:10]))
    sys.exit(len(wrong) > 0)
    """
)


@pytest.mark.parametrize(
    "region",
    ["header", "unigrams", "ngrams.2", "ngrams.3", "vocabulary.slots", "vocabulary.offsets", "vocabulary.bytes", "config"],
)
def test_a_flipped_bit_is_an_error_or_changes_no_number(saved: Path, region: str) -> None:
    """In a process of its own, so that a crash is a failure of this test and not the end of all tests."""
    command = [sys.executable, "-c", FLIPS, str(saved), region, json.dumps(TEST)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout[:900]} {done.stderr[-300:]}"


def test_a_truncated_file_is_an_error(saved: Path) -> None:
    for name in ("model.safetensors", "config.json"):
        whole = (saved / name).read_bytes()
        for size in [0, 1, 7, 8, 9, 100, *range(200, len(whole) - 2, max(1, len(whole) // 60)), len(whole) - 2]:
            (saved / name).write_bytes(whole[:size])
            with pytest.raises(ModelFileError):
                lmgauge.load_model(saved)
        (saved / name).write_bytes(whole)
    (saved / "model.safetensors").write_bytes((saved / "model.safetensors").read_bytes() + b"\0")
    with pytest.raises(ModelFileError):
        lmgauge.load_model(saved)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_missing_file_is_an_error(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(ModelFileError, match=name):
        lmgauge.load_model(saved)


GARBAGE = [None, -1, 0, 1, 3, 2**70, 1e308, float("nan"), float("inf"), True, "", "x", "00", [], [1], [[1]], {}, {"a": 1}]
KEYS = [
    "model_type", "format_version", "order", "full_context", "unseen", "checksums", "fingerprint", "kind",
    "interpolate", "cutoffs", "context", "reserved", "min_count", "discounts", "training", "notes", "vocabulary",
    "vocabulary_size", "vocabulary_fingerprint", "words_fingerprint", "types", "tokenizer",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_doctored_setting_is_an_error_or_changes_no_number(saved: Path, model: NgramModel, key: str) -> None:
    config = json.loads((saved / "config.json").read_text())
    assert key in config
    right = scores(model)
    for value in [*GARBAGE, "left out"]:
        changed = {**config, key: value}
        if value == "left out":
            del changed[key]
        (saved / "config.json").write_text(json.dumps(changed))
        try:
            loaded = lmgauge.load_model(saved)
            assert scores(loaded) == right, value
            assert lmgauge.evaluate(loaded, Corpus.from_strings(TEST)).events == len(right)
        except ModelFileError:
            continue


def resealed(saved: Path, **changes: Any) -> None:
    """Change config.json as somebody does who makes its digest anew."""
    file = saved / "config.json"
    config = json.loads(file.read_text()) | changes
    config["sha256"] = digest_of(config)
    file.write_text(json.dumps(config))


@pytest.mark.parametrize("key", [*KEYS, "discount", "k", "prune", "vocab_size"])
def test_a_doctored_setting_with_a_new_digest_is_an_error_or_changes_no_number(
    saved: Path, model: NgramModel, key: str, tmp_path: Path
) -> None:
    """Types are checked in one place, so that no code that uses a setting meets another one."""
    whole = (saved / "config.json").read_bytes()
    right = scores(model)
    for value in [*GARBAGE, 1.5, "arpa", [None], [[None]], {"name": 1}, {"name": []}]:
        (saved / "config.json").write_bytes(whole)
        resealed(saved, **{key: value})
        try:
            loaded = lmgauge.load_model(saved)
        except ModelFileError:
            continue
        assert isinstance(loaded, NgramModel)
        assert scores(loaded) == right
        assert lmgauge.evaluate(loaded, Corpus.from_strings(TEST)).events == len(right)
        assert loaded.label
        loaded.save(tmp_path / "again")


def test_a_doctored_setting_is_named(saved: Path) -> None:
    resealed(saved, reserved="x" * 100)
    with pytest.raises(ModelFileError, match=r"model/config\.json: .*Invalid enum value 'x{100}' - at `\$\.reserved`"):
        lmgauge.load_model(saved)
    resealed(saved, reserved="refuse", unseen=1.5)
    with pytest.raises(ModelFileError, match=r"Expected `float` <= 1\.0 - at `\$\.unseen`; train the model again"):
        lmgauge.load_model(saved)


def test_weights_that_give_probabilities_above_one_are_named_with_the_model(saved: Path, model: NgramModel) -> None:
    doctored(saved, lambda arrays: arrays["unigrams"].__setitem__((slice(None), 1), 30))
    unigrams = model.tables.unigrams.copy()
    unigrams[:, 1] = 30
    tables = replace(model.tables, unigrams=unigrams)
    changed = NgramModel(tables, model.vocabulary, model.tokenizer, model.settings)
    resealed(saved, fingerprint=changed.fingerprint)
    loaded = lmgauge.load_model(saved)
    message = r"the probability \S+: its back-off weights do not belong"
    with pytest.raises(ModelFileError, match=f"^{saved}: gives an event {message}"):
        scores(loaded)
    with pytest.raises(ModelFileError, match=f"^{saved}: gives an event {message}"):
        [loaded.log_distribution(np.array([word], np.uint32)) for word in range(3, len(loaded.vocabulary))]
    with pytest.raises(ModelFileError, match=f"^the model: gives an event {message}"):
        scores(changed)


def test_a_file_cut_off_while_it_is_mapped_is_an_error_and_no_crash(saved: Path) -> None:
    loaded = lmgauge.load_model(saved)
    file = saved / "model.safetensors"
    try:
        os.truncate(file, file.stat().st_size // 2)
    except OSError:
        pytest.skip("this system does not cut off files that are mapped")
    for use in (lambda: scores(loaded), lambda: loaded.log_distribution(np.array([3], np.uint32))):
        with pytest.raises(ModelFileError, match=r"model\.safetensors became shorter while it was in use"):
            use()


def test_settings_and_arrays_listed_in_config_are_what_the_numbers_say(saved: Path) -> None:
    """What a reader of config.json is told is checked as well: a model that lies about itself is damaged."""
    config = json.loads((saved / "config.json").read_text())
    for key, value in {"vocabulary_size": 5, "types": [1, 2, 3], "vocabulary": "closed", "order": 2}.items():
        (saved / "config.json").write_text(json.dumps({**config, key: value}))
        try:
            told = lmgauge.load_model(saved).to_dict()  # type: ignore[attr-defined]
        except ModelFileError:
            continue
        assert told[key] == config[key]


def doctored(saved: Path, change: Any) -> None:
    from safetensors.numpy import load_file, save_file

    arrays = {name: array.copy() for name, array in load_file(saved / "model.safetensors").items()}
    change(arrays)
    save_file(arrays, saved / "model.safetensors")


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.pop("unigrams"),
        lambda a: a.pop("ngrams.3"),
        lambda a: a.update(unigrams=a["unigrams"].astype(np.float64)),
        lambda a: a.update(unigrams=a["unigrams"][:-1]),
        lambda a: a.update(unigrams=a["unigrams"].reshape(-1)),
        lambda a: a["unigrams"].__setitem__((3, 0), np.nan),
        lambda a: a["unigrams"].__setitem__((3, 0), -0.1),
        lambda a: a["unigrams"].__setitem__((3, 1), np.inf),
        lambda a: a.update({"ngrams.2": a["ngrams.2"][:-4]}),
        lambda a: a.update({"ngrams.2": a["ngrams.2"][:-1]}),
        lambda a: a.update({"ngrams.2": a["ngrams.2"][:0]}),
        lambda a: a.update({"ngrams.2": a["ngrams.2"].reshape(-1)}),
        lambda a: a.update({"ngrams.2": a["ngrams.2"].view(np.float32)}),
        lambda a: a.update({"ngrams.3": np.full_like(a["ngrams.3"], 2**32 - 1)}),
        lambda a: a.update({"ngrams.3": np.zeros_like(a["ngrams.3"])}),
        lambda a: a.update({"ngrams.2": a["ngrams.3"], "ngrams.3": a["ngrams.2"]}),
        lambda a: a.update({"vocabulary.offsets": a["vocabulary.offsets"][::-1].copy()}),
        lambda a: a.update({"vocabulary.offsets": a["vocabulary.offsets"][:0]}),
        lambda a: a.update({"vocabulary.offsets": a["vocabulary.offsets"] + 2**40}),
        lambda a: a.update({"vocabulary.offsets": a["vocabulary.offsets"].astype(np.int32)}),
        lambda a: a["vocabulary.bytes"].__setitem__(slice(12, 14), ord("x")),
        lambda a: a.update({"vocabulary.bytes": a["vocabulary.bytes"][:-8]}),
        lambda a: a.update({"vocabulary.bytes": a["vocabulary.bytes"][:0]}),
    ],
    ids=range(23),
)
def test_doctored_arrays_are_an_error(saved: Path, change: Any) -> None:
    doctored(saved, change)
    with pytest.raises(ModelFileError):
        lmgauge.load_model(saved)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("[1]", "not a JSON object"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('{"model_type": "gpt5"}', "'gpt5' is not known here; known are"),
        ('{"model_type": "lmgauge-ngram", "format_version": 99}', "format 99"),
        (
            '{"model_type": "lmgauge-ngram", "format_version": 1}',
            "format 1; this lmgauge reads format 2: train the model again",
        ),
        ('{"model_type": "lmgauge-ngram", "format_version": 2}', "damaged"),
        ("\xff", "cannot be read|no JSON"),
    ],
)
def test_a_foreign_config_is_an_error(saved: Path, text: str, message: str) -> None:
    (saved / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ModelFileError, match=message):
        lmgauge.load_model(saved)


def test_nothing_there_and_something_else_there(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no such model"):
        lmgauge.load_model(tmp_path / "none")
    with pytest.raises(ModelFileError, match=r"config\.json"):
        lmgauge.load_model(tmp_path)
    (tmp_path / "text.txt").write_text("hello\n")
    with pytest.raises(ModelFileError, match="not an ARPA or GGUF file"):
        lmgauge.load_model(tmp_path / "text.txt")
    (tmp_path / "kenlm.bin").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0")
    with pytest.raises(ModelFileError, match=r"this KenLM file cannot be used: it ends within its header"):
        lmgauge.load_model(tmp_path / "kenlm.bin")


# -- writing ------------------------------------------------------------------------------------------------------------


def test_a_model_replaces_a_model(saved: Path, model: NgramModel) -> None:
    old = lmgauge.load_model(saved)
    other = lmgauge.train("witten-bell", Corpus.from_strings(TEXT), order=2)
    other.save(saved)
    assert scores(lmgauge.load_model(saved)) == scores(other)
    assert scores(old) == scores(model)  # what was mapped before stays as it was
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def test_an_empty_folder_is_used_and_parents_are_made(model: NgramModel, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    model.save(tmp_path / "empty")
    model.save(tmp_path / "a" / "b" / "c")
    for folder in ("empty", "a/b/c"):
        assert scores(lmgauge.load_model(tmp_path / folder)) == scores(model)


def test_what_lmgauge_did_not_write_is_left_alone(model: NgramModel, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    for name in ("folder", "file"):
        with pytest.raises(InputError, match="choose another name"):
            model.save(tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == before


def test_another_program_s_model_is_left_alone(model: NgramModel, tmp_path: Path) -> None:
    """Every Hugging Face checkpoint, and many a project, has a config.json: that alone does not make it ours."""
    folder = tmp_path / "gpt2"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    (folder / "pytorch_model.bin").write_bytes(b"weights that took a month")
    before = files(folder)
    with pytest.raises(InputError):
        model.save(folder)
    assert files(folder) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device"), MemoryError()], ids=repr)
def test_nothing_is_left_behind_when_saving_ends_early(
    saved: Path, model: NgramModel, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(file: Any, arrays: Any) -> None:
        file.write(b"half")
        raise error

    monkeypatch.setattr(storage, "_write_arrays", fail)
    before = files(saved)
    for target in (saved, saved.parent / "new"):
        with pytest.raises(LmgaugeError if isinstance(error, OSError) else type(error)) as raised:
            model.save(target)
        if isinstance(error, OSError):
            assert "the disk is full" in str(raised.value)
    assert files(saved) == before
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def test_the_old_model_survives_when_the_new_one_cannot_take_its_place(
    saved: Path, model: NgramModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def fail(source: Any, target: Any) -> None:
        if Path(target) == saved:
            raise OSError(5, "Input/output error")
        replace(source, target)

    before = files(saved)
    monkeypatch.setattr(temporaries, "_exchanged", lambda one, other: False)  # as on a system that cannot
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(LmgaugeError):
        model.save(saved)
    monkeypatch.undo()
    assert saved.exists(), sorted(str(path) for path in saved.parent.rglob("*"))
    assert files(saved) == before


def test_a_full_disk_is_an_error_and_leaves_nothing(model: NgramModel, tmp_path: Path, data: Path) -> None:
    """On a file system of 64 kB, where one can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    root = mount is not None and hasattr(os, "geteuid") and os.geteuid() == 0
    if not root or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        big = lmgauge.train("modified-kneser-ney", data / "tinyshakespeare.txt", order=3)
        for save in (lambda: big.save(disk / "model"), lambda: lmgauge.models.write_arpa(big, disk / "model.arpa")):
            with pytest.raises(LmgaugeError, match="the disk is full"):
                save()
            assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_folder_that_cannot_be_written_is_an_error(model: NgramModel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LmgaugeError, match="cannot be written"):
        model.save(tmp_path / "file" / "model")
