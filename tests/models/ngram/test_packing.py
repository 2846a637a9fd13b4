"""Tables packed from partitions are those packed in memory, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.ngram import KINDS
from tests.reference.partitions import Grams, grams_of, hold_partitions, pack_at_once

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import LmgaugeError
from lmgauge.models.ngram import packed_tables, packing
from lmgauge.models.ngram.ngram_arrays import levels_of
from lmgauge.models.ngram.packed_tables import RepeatedNgramsError
from lmgauge.models.ngram.packing import PackedOrder, Packing, pack_partitions, packed_model
from lmgauge.work.engine import Arrays, Engine, FolderEngine, Stored

TEXT = ["a b c a", "b c d", "a b e f g", "a b c d", "", "g f e a b", "Ärger 漢字 a"] * 4


def random_orders(sizes: list[int], vocabulary: int, seed: int, *, drops: bool = False) -> list[Grams]:
    """About so many n-grams of each order, in random order."""
    random = np.random.default_rng(seed)
    orders: list[Grams] = []
    below = vocabulary
    for size in sizes:
        most = below * vocabulary
        pairs = np.unique(random.integers(0, most, min(size, most))) if size and most else np.zeros(0, np.int64)
        parents, words = np.divmod(random.permutation(pairs), vocabulary)
        n = len(pairs)
        dropped = (random.random(n) < 0.3).astype(np.uint8) if drops and n else np.zeros(0, np.uint8)
        if orders and len(orders[-1].dropped) and n:
            dropped = np.maximum(dropped, orders[-1].dropped[parents]) if len(dropped) else orders[-1].dropped[parents]
        orders.append(
            Grams(
                parents.astype(np.uint32),
                words.astype(np.uint32),
                random.uniform(-1, 1, n).astype(np.float32),
                random.choice([0.25, 0.0, 1.0, 3.0], n).astype(np.float32),
                dropped,
            )
        )
        below = n
    return orders


def packed(
    orders: list[Grams], vocabulary: int, partitions: int = 3, memory: int = 1, seed: int = 0
) -> tuple[Engine, list[PackedOrder]]:
    engine = Engine()
    held = hold_partitions(engine, orders, partitions, seed)
    return engine, pack_partitions(engine, Packing(len(orders) + 1, vocabulary, memory), *held)


def assert_same(engine: Engine, made: list[PackedOrder], orders: list[Grams], vocabulary: int) -> None:
    tables = pack_at_once(orders, vocabulary)
    assert len(made) == len(tables)
    for order, table in zip(made, tables, strict=True):
        assert np.array_equal(np.concatenate(list(order.pieces(engine))), table.lines)
        assert (order.checksum, None) == table.check()
        assert (order.entries, order.blanks) == table.count()
        assert order.lines == len(table.lines)


@given(
    st.lists(st.integers(0, 400), max_size=4),
    st.sampled_from([1, 2, 5, 2**16, 2**19]),
    st.integers(1, 5),
    st.sampled_from([1, 3000, 10**9]),
    st.booleans(),
    st.integers(0, 99),
)
def test_the_bytes_are_those_of_tables_made_in_memory(
    sizes: list[int], vocabulary: int, partitions: int, memory: int, drops: bool, seed: int
) -> None:
    """Whatever the orders, partitions and memory; with n-grams left out, blanks, and orders that have none."""
    orders = random_orders(sizes, vocabulary, seed, drops=drops)
    engine, made = packed(orders, vocabulary, partitions, memory, seed)
    assert_same(engine, made, orders, vocabulary)


@pytest.mark.parametrize(("memory", "buckets"), [(1, [77, 117, 111]), (10_000, [48, 72, 96]), (10**9, [1, 1, 1])])
def test_many_buckets(memory: int, buckets: list[int]) -> None:
    """As many as the memory asks for, but none of fewer than 64 lines."""
    orders = random_orders([20_000, 30_000, 40_000], 900, 7)
    engine, made = packed(orders, 900, 4, memory)
    assert [len(order.parts) for order in made] == buckets
    assert_same(engine, made, orders, 900)


def test_a_table_too_full_gets_more_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in memory: the lines grow until no n-gram lies too far from its home."""
    monkeypatch.setattr(packed_tables, "_FILLED", 1.2)
    orders = random_orders([9_000, 9_000, 9_000], 300, 1)
    engine, made = packed(orders, 300, 2)
    assert all(order.lines > packed_tables.homes_for(9_000, (300, 300), last=False) * 5 / 7 for order in made)
    assert_same(engine, made, orders, 300)


def test_where_buckets_begin() -> None:
    """Sizes, slots that are free behind, slots to begin before; the third is pushed by the second, the fourth is not."""
    assert packing._starts([[5, 20, 99], [30, 35, 99], [2, 40, 51]]) == (0, 20, 50)
    assert packing._starts([[5, 20, 99], [30, 35, 99], [2, 60, 51], [1, 70, 61]]) == (0, 20, 50, 60)
    assert packing._starts([[5, 20, 99], [30, 35, 99], [2, 40, 50]]) is None


def test_what_no_later_stage_reads_is_dropped() -> None:
    orders = random_orders([3000, 3000, 3000], 100, 3, drops=True)
    engine, _ = packed(orders, 100, 2)
    names = [stored.name for stored in engine.arrays.held]
    assert {name.split("-")[0] for name in names} == {"measure", "place"}
    assert {name.split("/")[2] for name in names if name[:5] == "place"} == set("0123")  # no slots


class StoppedError(Exception):
    """Stands for what ends a run."""


@pytest.mark.parametrize("stages", [1, 4, 6])
def test_files_and_a_run_that_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stages: int) -> None:
    """What is done is not done again; where the buckets of a table begin is computed once more."""
    monkeypatch.setattr(packed_tables, "_FILLED", 1.2)
    orders = random_orders([6000, 6000, 6000], 200, 4)
    packing = Packing(4, 200, 20_000)
    begun: list[str] = []
    run = FolderEngine.run

    def _stopped(engine: FolderEngine, name: str, *arguments: Any) -> Any:
        if len(begun) == stages:
            raise StoppedError
        begun.append(name)
        return run(engine, name, *arguments)

    with FolderEngine(tmp_path / "work", {}, workers=2) as engine, monkeypatch.context() as patch:
        held = hold_partitions(engine, orders, 3, 0)
        patch.setattr(FolderEngine, "run", _stopped)
        with pytest.raises(StoppedError):
            pack_partitions(engine, packing, *held)
    with FolderEngine(tmp_path / "work", {}, workers=2, resume=True) as engine:
        assert [engine.is_finished(name) for name in begun] == [True] * stages
        assert_same(engine, pack_partitions(engine, packing, *held), orders, 200)


def test_an_ngram_that_comes_twice_is_an_error() -> None:
    grams = random_orders([50], 30, 5)[0]
    for column in (grams.parents, grams.words):
        column[1], column[3] = column[0], column[2]
    with pytest.raises(RepeatedNgramsError, match="2 n-grams came twice"):
        packed([grams], 30, 1)


def test_a_wrong_number_of_ngrams_is_an_error() -> None:
    engine = Engine()
    grams, (count,) = hold_partitions(engine, random_orders([50], 30, 5), 2, 0)
    with pytest.raises(ValueError, match=f"there are {count} n-grams of order 2, not {count + 1}"):
        pack_partitions(engine, Packing(2, 30, 10**9), grams, [count + 1])


def test_what_is_out_of_range_is_refused() -> None:
    """Arrays lie in files between stages: whatever they hold, nothing outside is read or written."""
    orders = random_orders([60, 60], 30, 5)
    for name in ("words/3/0", "parents/3/0", "parents/2/0", "dropped/2/0"):
        engine = Engine()
        grams, entries = hold_partitions(engine, orders, 1, 0)
        if name == "dropped/2/0":  # then n-grams of order 3 begin with one that is left out
            engine.write(name, np.ones(entries[0], np.uint8))
            entries[0] = 0
        else:
            engine.write(name, engine.read(Stored(name)) + 60)
        with pytest.raises(LmgaugeError, match="do not belong together"):
            pack_partitions(engine, Packing(3, 30, 10**9), grams, entries)


@st.composite
def models(draw: st.DrawFn) -> NgramModel:
    kind = draw(st.sampled_from(KINDS))
    options: dict[str, Any] = {"k": 0.1} if kind == "lidstone" else {}
    if kind not in ("mle", "laplace", "lidstone"):
        options["prune"] = draw(st.sampled_from([None, None, 1e-3, 1e-1]))
        options["cutoffs"] = draw(st.sampled_from([(), (0, 1), (0, 0, 1)]))
    return lmgauge.train(kind, Corpus.from_strings(TEXT), order=draw(st.integers(1, 5)), **options)


@settings(max_examples=25)
@given(models(), st.integers(1, 4), st.sampled_from([1, 10**9]))
def test_the_folder_is_what_save_writes(tmp_path_factory: Any, model: NgramModel, partitions: int, memory: int) -> None:
    """Of any smoothing, with cut-offs and pruning, and so with blanks."""
    folder = tmp_path_factory.mktemp("models")
    model.save(folder / "once")
    engine = Engine()
    held = hold_partitions(engine, grams_of(levels_of(model.tables)), partitions, 0)
    made = pack_partitions(engine, Packing(model.order, len(model.vocabulary), memory), *held)
    tables = replace(model.tables, tables=[])
    unigrams = NgramModel(tables, model.vocabulary, model.tokenizer, model.settings, model.record)
    loaded = packed_model(engine, made, unigrams, folder / "packed")
    assert {path.name: path.read_bytes() for path in (folder / "packed").iterdir()} == {
        path.name: path.read_bytes() for path in (folder / "once").iterdir()
    }
    assert loaded.fingerprint == model.fingerprint
    assert loaded.types == model.types
    again = NgramModel(loaded.tables, loaded.vocabulary, loaded.tokenizer, loaded.settings, loaded.record)
    assert again.fingerprint == model.fingerprint  # from the tables, not from config.json


class DamagedArrays(Arrays):
    """Changes some bytes of some arrays that are written."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = np.random.default_rng(seed)
        self.damages = False

    def write(self, stored: Stored, array: Any) -> None:
        array = array.copy()
        if self.damages and array.size and self.random.random() < 0.05:
            data = array.reshape(-1).view(np.uint8)
            data[self.random.integers(0, data.size, 3)] = self.random.choice([0, 1, 127, 128, 255], 3)
        super().write(stored, array)


@given(st.integers(0, 2**32))
def test_damaged_arrays_are_an_error_or_other_lines(seed: int) -> None:
    """Whatever they hold, nothing outside the arrays is read or written."""
    arrays, vocabulary = DamagedArrays(seed), 2**17
    engine = Engine(arrays=arrays)
    held = hold_partitions(engine, random_orders([80, 80, 80], vocabulary, seed), 2, 0)
    arrays.damages = True
    try:
        made = pack_partitions(engine, Packing(4, vocabulary, 1), *held)
    except (LmgaugeError, ValueError, TypeError, KeyError):
        return
    assert [sum(map(len, order.pieces(engine))) for order in made] == [order.lines for order in made]
