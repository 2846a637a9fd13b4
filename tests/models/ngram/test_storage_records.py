"""What is remembered of a model's file: a second load looks at none of its entries, and a changed byte is noticed."""

from __future__ import annotations

import json
import os
import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.fuzz.mutations import changed, changed_value
from tests.fuzz.parsers.model_folders import as_json

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import ModelFileError
from lmgauge.models.ngram import packed_tables, storage
from lmgauge.models.ngram.storage import FileState, records_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="files have no ctime there")

TEXT = ["a b c a", "b c d", "a b e f g", "a b c d", "g f e a b"] * 4


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(storage, "_QUIET_NS", -(10**18))  # the file was written just now
    lmgauge.train("modified-kneser-ney", Corpus.from_strings(TEXT), order=3).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one for each table whose entries are looked at."""
    looked: list[str] = []
    check = packed_tables.PackedTable.check

    def _counted(table: packed_tables.PackedTable) -> tuple[int, int | None]:
        looked.append("table")
        return check(table)

    monkeypatch.setattr(packed_tables.PackedTable, "check", _counted)
    return looked


def load(folder: Path) -> NgramModel:
    model = lmgauge.load_model(folder)
    assert isinstance(model, NgramModel)
    return model


def test_the_second_load_looks_at_no_entry(saved: Path, checks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    first = load(saved)
    assert len(checks) == 2
    monkeypatch.setattr(storage, "hash_slots", lambda *_: pytest.fail("the vocabulary was looked at"))
    second = load(saved)
    assert len(checks) == 2
    assert second.to_dict() == first.to_dict()
    assert second.fingerprint == first.fingerprint
    assert second.checksums == first.checksums
    assert second.vocabulary.tokens == first.vocabulary.tokens
    assert np.array_equal(second.log_distribution([3, 4]), first.log_distribution([3, 4]))


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_changed_byte_is_noticed_even_where_mtime_is_set_back(saved: Path, name: str) -> None:
    load(saved)
    file = saved / name
    whole, before = bytearray(file.read_bytes()), file.stat()
    whole[-100] ^= 1
    with file.open("r+b") as opened:  # in place: the same file for the system
        opened.write(whole)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    with pytest.raises(ModelFileError):
        load(saved)


def test_a_file_that_was_just_changed_is_not_remembered(
    saved: Path, checks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_QUIET_NS", 10**12)
    load(saved)
    load(saved)
    assert len(checks) == 4
    assert not records_folder().exists()


def test_a_file_that_changes_while_it_is_checked_is_not_remembered(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = packed_tables.PackedTable.check

    def _touched(table: packed_tables.PackedTable) -> tuple[int, int | None]:
        os.utime(saved / "model.safetensors")
        return check(table)

    monkeypatch.setattr(packed_tables.PackedTable, "check", _touched)
    load(saved)
    assert not records_folder().exists()


def test_another_file_and_another_config_are_checked(saved: Path, checks: list[str], tmp_path: Path) -> None:
    load(saved)
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in saved.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    load(copy)
    assert len(checks) == 4
    state = FileState.of(saved / "model.safetensors", json.loads((saved / "config.json").read_text())["sha256"])
    assert state.is_known()
    changes = {"device": 1, "inode": 2, "size": 3, "mtime_ns": 4, "ctime_ns": 5, "digest": "6", "version": "7"}
    assert not any(replace(state, **{name: value}).is_known() for name, value in changes.items())


def test_a_hash_table_of_another_version_is_made_anew(saved: Path, checks: list[str]) -> None:
    """The strings count; a table that is not what this version makes of them is not used, and the file not remembered."""
    right = load(saved)
    file = saved / "model.safetensors"
    whole = bytearray(file.read_bytes())
    length = int.from_bytes(whole[:8], "little")
    begin, end = json.loads(whole[8 : 8 + length])["vocabulary.slots"]["data_offsets"]
    whole[8 + length + begin : 8 + length + end] = bytes(end - begin)
    file.write_bytes(whole)
    for _ in range(2):
        changed = load(saved)
        assert changed.fingerprint == right.fingerprint
        assert [changed.vocabulary.id(token) for token in right.vocabulary.tokens] == list(range(len(right.vocabulary)))
    assert len(checks) == 6


def test_a_damaged_or_foreign_record_is_ignored(saved: Path, checks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    load(saved)
    (record,) = records_folder().iterdir()
    right = record.read_bytes()
    for wrong in (
        b"",
        b"{",
        b"[]",
        b"null",
        b"[" * 4000,
        right[:-1],
        b"\xff" + right,
        right + b" " * 5000,
        right.replace(b"0", b"1"),
    ):
        record.write_bytes(wrong)
        before = len(checks)
        load(saved)
        assert len(checks) == before + 2
        assert record.read_bytes() == right  # written anew
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    load(saved)
    assert len(checks) == before + 4


def test_a_record_that_is_no_file_does_not_stop_a_load(saved: Path, checks: list[str]) -> None:
    load(saved)
    (record,) = records_folder().iterdir()
    record.unlink()
    os.mkfifo(record)  # to open it would wait for a writer
    load(saved)
    assert len(checks) == 4
    record.unlink()
    record.mkdir()
    load(saved)
    assert len(checks) == 6
    assert list(records_folder().iterdir()) == [record]  # no temporary file stays


@pytest.mark.parametrize("cache", ["file", "relative", ""])
def test_a_cache_that_cannot_be_written_costs_nothing_but_time(
    saved: Path, checks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file") if cache == "file" else cache)
    load(saved)
    load(saved)
    assert len(checks) == 4
    assert not (tmp_path / "relative").exists()


def test_records_do_not_pile_up(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_MOST_RECORDS", 8)
    folder = records_folder()
    folder.mkdir(parents=True)
    for i in range(20):
        (folder / f"{i}.json").write_text("{}")
        os.utime(folder / f"{i}.json", (i, i))
    load(saved)
    names = {path.name for path in folder.iterdir()}
    assert len(names) == 11
    assert {f"{i}.json" for i in range(10, 20)} < names


def test_another_tokenizer_file_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tokenizers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(storage, "_QUIET_NS", -(10**18))
    words = {"[UNK]": 0, "a": 1, "b": 2, "c": 3}
    for name, vocabulary in (("one", words), ("other", words | {"d": 4})):
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.save(str(tmp_path / f"{name}.json"))
    lmgauge.train("witten-bell", Corpus.from_strings(TEXT), order=2, tokenizer=str(tmp_path / "one.json")).save(
        tmp_path / "model"
    )
    load(tmp_path / "model")
    (tmp_path / "model" / "tokenizer.json").write_bytes((tmp_path / "other.json").read_bytes())
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")


def test_a_damaged_record_changes_no_number(saved: Path) -> None:
    """Whatever stands in the record that a file was looked at, the model is read as without it."""
    numbers = [lmgauge.load_model(saved).score_text(text).log_probability for text in TEXT[:3]]
    [record] = records_folder().iterdir()
    content, chance = record.read_bytes(), random.Random(1)
    for _ in range(60):
        value = as_json(changed_value(json.loads(content), chance, 1))
        record.write_bytes(value if chance.random() < 0.5 else changed(content, chance, 2))
        assert [lmgauge.load_model(saved).score_text(text).log_probability for text in TEXT[:3]] == numbers
