"""Passages: the segments that stand out, each once, with what every event cost, and never more than a page holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmgauge
from lmgauge.evaluation import passages
from lmgauge.evaluation.passages import SAMPLE, WORST, ChosenPassages, _fair_share, choose_passages
from lmgauge.evaluation.runs import Run, open_run
from lmgauge.evaluation.slicing.cuts import Cuts
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus

WORDS = ["the", "cat", "sat", "on", "a", "mat", "zebra", "12", "猫", "http://x.org/y"]
RANDOM = np.random.default_rng(7)
LINES = [" ".join(RANDOM.choice(WORDS, RANDOM.integers(0, 12))) for _ in range(300)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of models with different tokens on two files."""
    path = tmp_path_factory.mktemp("passages")
    for i, part in enumerate((LINES[:100], LINES[100:])):
        (path / f"{i}.txt").write_text("".join(f"{line}\n" for line in part), encoding="utf-8", newline="\n")
    for name, kind, tokenizer in (
        ("word", "witten-bell", "whitespace"),
        ("byte", "witten-bell", "byte"),
        ("mle", "mle", "whitespace"),
    ):
        model = lmgauge.train(kind, Corpus.from_strings(LINES[::2]), order=2, tokenizer=tokenizer)  # type: ignore[arg-type]
        lmgauge.evaluate(model, [path / "0.txt", path / "1.txt"], output=path / name)
    return path


def corpus(folder: Path) -> Corpus:
    text = Corpus.from_files([folder / "0.txt", folder / "1.txt"])
    for _ in text:
        pass
    return text


def chosen(folder: Path, *names: str, text: bool = True, **options: Any) -> ChosenPassages:
    runs = [open_run(folder / name) for name in names]
    read = corpus(folder) if text else None
    cuts = Cuts(read, options.pop("training", None), 2)
    averages = [float(run.evaluation["bits_per_byte"]) if run.evaluation else 0.0 for run in runs]
    averages = [0.5 if np.isinf(average) else average for average in averages]
    return choose_passages(runs, read, cuts=cuts, averages=averages, **options)


def rows(run: Run) -> list[tuple[int, float, int]]:
    """Segment, bits and end of every event."""
    found = []
    for batch in run.batches():
        bits = (-batch.logprob / np.log(2)).tolist()
        found += list(zip(batch.row_segments().tolist(), bits, batch.ends.tolist(), strict=True))
    return found


@pytest.mark.parametrize("names", [("word",), ("byte",), ("word", "byte"), ("mle",), ("mle", "word")])
def test_events_are_those_of_the_table_and_tile_the_text(folder: Path, names: tuple[str, ...]) -> None:
    found = chosen(folder, *names)
    tables = [rows(open_run(folder / name)) for name in names]
    assert len(found.items) > 20
    for passage in found.items:
        assert passage.text == LINES[passage.segment]
        assert passage.size == len(passage.text.encode()) + 1
        assert (
            passage.where == f"0.txt:{passage.segment + 1}" if passage.segment < 100 else passage.where.startswith("1.txt:")
        )
        assert passage.group == f"{int(passage.segment >= 100)}"
        for spans, table, bits, events in zip(passage.spans, tables, passage.bits, passage.events, strict=True):
            own = [(b, end) for segment, b, end in table if segment == passage.segment]
            assert [end for _, end in own] == spans.ends.tolist()
            assert [b for b, _ in own] == pytest.approx(spans.bits.tolist())
            assert bits == pytest.approx(sum(b for b, _ in own))
            assert events == len(own) == len(spans.kinds)
            assert spans.ends[-1] == len(passage.text.encode())
            assert {len(column) for column in (*spans.columns.values(), *spans.slices.values())} == {events}


def test_the_worst_are_those_of_the_diagnosis(folder: Path) -> None:
    found = chosen(folder, "word", segments=7)
    diagnosis = lmgauge.diagnose(folder / "word", examples=7, only="segments")
    worst = [passage.segment for passage in found.items if WORST in passage.why]
    assert worst == [example.segment for example in diagnosis.worst_segments]
    named = chosen(folder, "word", segments=7, named={WORST: worst})
    assert [p.segment for p in named.items] == [p.segment for p in found.items]


def test_slices_are_those_of_the_diagnosis(folder: Path) -> None:
    """All segments chosen: the bits of their events by slice are the diagnosis' own."""
    everything = {WORST: list(range(60))}
    found = chosen(folder, "word", segments=60, named=everything)
    items = [p for p in found.items if p.segment < 60]
    assert len(items) == 60
    (folder / "few.txt").write_text("".join(f"{line}\n" for line in LINES[:60]), encoding="utf-8", newline="\n")
    whole = Corpus.from_files(folder / "few.txt")
    lmgauge.evaluate(lmgauge.train("witten-bell", Corpus.from_strings(LINES[::2]), order=2), whole, output=folder / "few")
    diagnosis = lmgauge.diagnose(folder / "few", only="slices")
    assert {
        "class",
        "kind of event",
        "matched order (context used)",
        "position in the segment (events)",
    } <= found.cuts.keys()
    for slices in diagnosis.slices:
        if slices.name == "group":
            continue
        labels = found.cuts[slices.name]
        for row in slices.rows:
            events = sum(int((p.spans[0].slices[slices.name] == labels.index(row.label)).sum()) for p in items)
            assert events == row.ranges, (slices.name, row.label)


def test_slices_of_two_are_those_of_the_comparison(folder: Path) -> None:
    comparison = lmgauge.compare([folder / "word", folder / "byte"])[0]
    found = chosen(folder, "word", "byte")
    assert set(found.cuts) == {"group", "class", "position in the segment"}
    for slices in comparison.slices:
        assert set(found.cuts[slices.name]) <= {row.label for row in slices.rows}
    # Both runs have the same slice at the same byte.
    for passage in found.items:
        first, second = passage.spans
        for name in found.cuts:
            of_byte = dict(zip(second.ends.tolist(), second.slices[name].tolist(), strict=True))
            of_word = dict(zip(first.ends.tolist(), first.slices[name].tolist(), strict=True))
            assert all(of_byte[end] == code for end, code in of_word.items() if end in of_byte)


def test_the_sample_is_drawn_by_its_seed_from_segments_with_text(folder: Path) -> None:
    def sample(seed: int) -> list[int]:
        found = chosen(folder, "word", segments=9, seed=seed)
        return [passage.segment for passage in found.items if SAMPLE in passage.why]

    assert sample(1) == sample(1) != sample(2)
    assert len(sample(1)) == 9
    assert all(LINES[segment] for segment in sample(3))


def test_a_segment_is_there_once_with_all_its_reasons(folder: Path) -> None:
    found = chosen(folder, "word", "byte", named={"most lost": [5, 6], "most improved": [7]}, segments=60)
    segments = [passage.segment for passage in found.items]
    assert len(set(segments)) == len(segments)
    why = {passage.segment: passage.why for passage in found.items}
    assert "most lost" in why[5]
    assert "most improved" in why[7]
    assert any(len(reasons) > 1 for reasons in why.values())


def test_columns_of_a_run(folder: Path, tmp_path: Path) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES[::2]), order=2)
    outputs = lmgauge.settings.Outputs(tmp_path / "run", columns=("entropy", "rank", "top7"))
    lmgauge.evaluate(model, folder / "0.txt", output=outputs)
    run, text = open_run(tmp_path / "run"), Corpus.from_files(folder / "0.txt")
    counts = {word: i for i, word in enumerate(WORDS)}

    def training(block: Any) -> tuple[Any, Any]:
        words = [word for i in range(len(block)) for word in block.text(i).decode().split()]
        return np.array([counts[word] for word in words], np.int64), np.ones(len(words), np.int64)

    found = choose_passages([run], text, cuts=Cuts(text, training, 2), averages=[1.0])
    passage = found.items[0]
    assert set(passage.spans[0].columns) == {"rank", "entropy", "context", "occurrences"}
    words = [counts[word] for word in passage.text.split()]
    assert passage.spans[0].columns["occurrences"].tolist() == [*words, -1]
    batch = next(iter(run.batches()))
    own = batch.row_segments() == passage.segment
    assert passage.spans[0].columns["entropy"] == pytest.approx(batch.extra["entropy"][own] / np.log(2))
    tops = passage.spans[0].tops
    assert tops is not None
    assert tops.tokens.tolist() == batch.extra["top_tokens"][own, :5].tolist()
    assert tops.logprobs.tolist() == batch.extra["top_logprobs"][own, :5].tolist()


def test_long_segments_are_cut_at_shared_boundaries_and_all_is_bounded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "_EVENTS", 40)
    monkeypatch.setattr(passages, "_EVENTS_IN_ALL", {1: 200, 2: 100})
    for names, most in ((("byte",), 200), (("word", "byte"), 100)):
        found = chosen(folder, *names, segments=5)
        cut = [passage for passage in found.items if passage.is_cut]
        assert cut
        assert any("cut" in note for note in found.notes)
        assert sum(max(len(spans.ends) for spans in p.spans) for p in found.items) <= max(most, len(found.items))
        for passage in cut:
            assert LINES[passage.segment].startswith(passage.text)
            assert all(spans.ends[-1] == len(passage.text.encode()) for spans in passage.spans)
            assert passage.size == len(LINES[passage.segment].encode()) + 1  # of the whole


@pytest.mark.parametrize("word", ["x" * 1_000_000, "é" * 300_000, "a b " * 200_000])
def test_a_segment_of_a_million_bytes_is_cut(tmp_path: Path, word: str) -> None:
    text = tmp_path / "long.txt"
    text.write_text(f"a b\n{word}\na\n", encoding="utf-8")
    model = lmgauge.train("laplace", Corpus.from_strings(["a b", "b a"]), order=1)
    lmgauge.evaluate(model, text, output=tmp_path / "run")
    read = Corpus.from_files(text)
    found = choose_passages([open_run(tmp_path / "run")], read, cuts=Cuts(read), averages=[0.5])
    (long,) = (passage for passage in found.items if passage.segment == 1)
    assert long.is_cut
    assert len(long.text.encode()) <= 12_000
    assert len(long.spans[0].ends) <= 1200
    assert long.size == len(word.encode()) + 1
    assert word.startswith(long.text)


def test_without_the_text_there_are_scores_and_a_note(folder: Path) -> None:
    found = chosen(folder, "word", text=False)
    assert found.items == ()
    assert "the text is not available" in found.notes[0]
    assert found.scores is not None
    assert found.scores.unit == "event"


def test_a_table_without_spans_has_scores_and_a_note(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "bare.jsonl"
    table.write_text("".join(f'{{"segment": {i}, "logprob": -{i + 1}.5}}\n' for i in range(3)), encoding="utf-8")
    text = Corpus.from_strings(["a", "b", "c"])
    found = choose_passages([open_run(table)], text, cuts=Cuts(text), averages=[1.0])
    assert found.items == ()
    assert "no byte spans" in found.notes[0]
    assert found.scores is not None
    assert sum(found.scores.counts[0]) == 3


@given(st.lists(st.integers(0, 100), max_size=30), st.integers(30, 1000))
def test_a_fair_share_fills_the_whole_and_no_more(sizes: list[int], whole: int) -> None:
    share = _fair_share(sizes, whole)
    assert sum(min(size, share) for size in sizes) <= max(whole, len(sizes))
    if sum(sizes) <= whole:
        assert share >= max(sizes, default=0)


def test_few_segments_are_held_whatever_the_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passages are read block by block, and those that are overtaken are dropped."""
    held: list[int] = []
    add = passages._Reading.add

    def watched(self: Any, block: Any, tables: Sequence[ScoreBatch]) -> None:
        add(self, block, tables)
        held.append(len(self.passages))

    monkeypatch.setattr(passages._Reading, "add", watched)
    chosen(folder, "word", segments=3)
    assert max(held) <= 6
