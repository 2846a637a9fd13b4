"""A stored base on disk: what is written is read, and nothing else is."""

import json
from dataclasses import fields, replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.evaluation.divergence import bases

from lmgauge.base.errors import InputError
from lmgauge.evaluation.divergence import base_file
from lmgauge.evaluation.divergence.base_file import BaseFile, bfloat16_bits, from_table, to_table, writing_base


@pytest.mark.parametrize("stored", ["top", "float32", "bfloat16", "states"])
def test_what_is_written_is_read(tmp_path, stored):
    rows = bases.rows_of(stored)
    path = bases.write(tmp_path / "a.base", stored)
    with BaseFile(path) as file:
        assert file.header == bases.header_of(stored)
        (found,) = file.rows()
    for field in fields(rows):
        ours, theirs = getattr(rows, field.name), getattr(found, field.name)
        if field.name == "logprobs" and stored == "bfloat16":
            ours = (bfloat16_bits(ours).astype(np.uint32) << 16).view(np.float32)
        assert np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"), field.name


def test_how_rows_are_cut_into_calls_makes_no_difference(tmp_path, monkeypatch):
    monkeypatch.setattr(base_file, "_GROUP_VALUES", 5 * 17)  # five rows a group
    rows, header = bases.rows_of(), bases.header_of()
    path = bases.write(tmp_path / "a.base")
    with writing_base(tmp_path / "b.base", header) as writer:
        for begin, end in ((0, 1), (1, 1), (1, 8), (8, 12)):
            writer.write(to_table(rows.part(begin, end), header))
    assert path.read_bytes() == (tmp_path / "b.base").read_bytes()
    assert [len(part) for part in bases.read(path)] == [5, 5, 2]


def test_any_reader_of_parquet_reads_it(tmp_path):
    table = pq.read_table(bases.write(tmp_path / "a.base"))
    rows = bases.rows_of()
    assert table["top_ids"].to_pylist() == rows.top_ids.tolist()
    assert [len(drawn) for drawn in table["drawn_ids"].to_pylist()] == rows.draws.tolist()
    assert json.loads(pq.read_metadata(tmp_path / "a.base").metadata[b"lmgauge"])["format"] == "lmgauge base"


def test_an_error_leaves_nothing_behind(tmp_path):
    header = bases.header_of()

    def interrupted():
        with writing_base(tmp_path / "a.base", header) as writer:
            writer.write(to_table(bases.rows_of(), header))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_every_changed_byte_is_noticed(tmp_path):
    data = bases.write(tmp_path / "a.base").read_bytes()
    for at in range(0, len(data), 7):
        changed = bytearray(data)
        changed[at] ^= 4
        assert bases.attempt(tmp_path / "b.base", bytes(changed)) != "read", at


def test_files_that_are_no_base(tmp_path):
    path = bases.write(tmp_path / "a.base")
    data = path.read_bytes()
    assert "was damaged, cut off or changed" in bases.attempt(tmp_path / "b.base", data[:-20])
    assert "it has no seal: it was cut off" in bases.attempt(tmp_path / "b.base", data[:-400])
    assert "it has no seal" in bases.attempt(tmp_path / "b.base", b"the cat sat on the mat\n")
    assert "it has no seal" in bases.attempt(tmp_path / "b.base", b"")
    assert "was damaged, cut off or changed" in bases.attempt(tmp_path / "b.base", data[:100] + b"x" + data[101:])
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), tmp_path / "c.parquet")
    assert "another program wrote it" in bases.attempt(tmp_path / "b.base", (tmp_path / "c.parquet").read_bytes())
    with pytest.raises(InputError, match="no such file"):
        BaseFile(tmp_path / "nowhere")
    with pytest.raises(InputError, match="Is a directory"):
        BaseFile(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"events": 13, "total_events": 13}, "its header speaks of 13"),
        ({"events": 13}, "its header speaks of 13"),
        ({"top": 5}, "the lists of 'top_ids' have other lengths"),
        ({"samples": 15}, "the lists of 'drawn_ids' have other lengths"),
        ({"samples": -1}, "Expected `int` >= 0 - at `$.samples`"),
        ({"top": 0}, "the lists of 'top_ids' have other lengths"),
        ({"vocabulary_size": 20, "ruled_out": ()}, "not in the vocabulary"),
        ({"vocabulary_size": 1 << 40}, "Expected `int` <= 16777216 - at `$.vocabulary_size`"),
        ({"stored": "float32", "top": 0, "samples": 0}, "its columns are not those of a base file"),
        ({"stored": "whole"}, "Invalid enum value 'whole' - at `$.stored`"),
        ({"model": 7}, "Expected `str`, got `int` - at `$.model`"),
        ({"ruled_out": (3, 2)}, "that cannot come are not ids in order"),
        ({"ruled_out": (40,)}, "that cannot come are not ids in order"),
        ({"ruled_out": "abc"}, "Expected `array`, got `str` - at `$.ruled_out`"),
    ],
)
def test_headers_that_contradict_the_rows(tmp_path, changes, message):
    path = bases.write(tmp_path / "a.base", **changes)
    with pytest.raises(InputError, match="is not a base file as lmgauge writes it") as error:
        bases.read(path)
    assert message in str(error.value)


def test_another_version_of_the_format(tmp_path, monkeypatch):
    monkeypatch.setattr(base_file, "FORMAT_VERSION", 2)
    path = bases.write(tmp_path / "a.base")
    monkeypatch.undo()
    with pytest.raises(InputError, match="base file of version 2; this lmgauge reads version 1"):
        BaseFile(path)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("token", 40, "a token is not in the vocabulary"),
        ("kind", 4, "a kind is unknown"),
        ("tail_mass", 1.5, "a mass is not between 0 and 1"),
        ("tail_mass", np.nan, "a mass is not between 0 and 1"),
        ("top_ids", 40, "a most probable token is not in the vocabulary"),
        ("drawn_ids", 1 << 31, "a drawn token is not in the vocabulary"),
    ],
)
def test_values_that_places_in_memory_come_of(tmp_path, column, value, message):
    rows = bases.rows_of()
    values = getattr(rows, column).copy()
    values.reshape(-1)[0] = value
    path = bases.write(tmp_path / "a.base", rows=replace(rows, **{column: values}))
    with pytest.raises(InputError, match="event 0 and those behind it") as error:
        bases.read(path)
    assert message in str(error.value)


@pytest.mark.parametrize("stored", ["top", "float32", "bfloat16", "states"])
def test_tables_are_rows_again(stored):
    rows, header = bases.rows_of(stored), bases.header_of(stored)
    again = from_table(to_table(rows, header), header)
    assert to_table(again, header).equals(to_table(rows, header))
    assert len(from_table(header.schema.empty_table(), header)) == 0


def test_bfloat16_is_rounded_as_torch_rounds_it():
    torch = pytest.importorskip("torch")
    values = np.concatenate([np.random.default_rng(0).normal(-9, 5, 1000), [-np.inf, 0.0, -1.00390625]]).astype(np.float32)
    theirs = torch.asarray(values).to(torch.bfloat16).view(torch.uint16).numpy()
    assert np.array_equal(bfloat16_bits(values), theirs)


def test_whole_distributions_are_divided_by_their_sum():
    rows = bases.rows_of("float32")
    tile = rows.tile()
    assert np.exp(np.asarray(tile.logprob)).sum(axis=1) == pytest.approx(np.ones(len(rows)), abs=1e-12)
    assert tile.p[:, -1].tolist() == [0.0] * len(rows)


def test_rows_of_a_group_follow_from_the_longest_column():
    assert bases.header_of(vocabulary_size=1000, top=64, samples=256).widest == 257
    whole = bases.header_of("float32", vocabulary_size=50257)
    assert (whole.widest, whole.group_rows) == (50257, 20)
