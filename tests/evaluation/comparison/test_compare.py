"""Comparisons of real small models: the differences of their evaluations, exactly, in all and in every slice."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.models.network.server.toy_server import ToyServer

import lmgauge
from lmgauge import Corpus
from lmgauge.api.verdicts import compare
from lmgauge.base.errors import InputError, UsageError
from lmgauge.evaluation import runs as runs_module
from lmgauge.evaluation.comparison.comparability import EXACT_PART, METRICS, NOTHING, SHARED_EVENTS, WHOLE
from lmgauge.evaluation.comparison.results import Comparison
from lmgauge.evaluation.runs import open_run
from lmgauge.models.registry import load_model
from lmgauge.numerics.exact import SCALE, exact_to_nats
from lmgauge.numerics.intervals import spread
from lmgauge.scores.files import ScoreWriter

LN2 = math.log(2)


@pytest.fixture(scope="module")
def shop(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A test text and runs of models on it: kn, wb and mle over words, ch over characters, st one stream, cl closed."""
    folder = tmp_path_factory.mktemp("compare")
    lines = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")
    (folder / "train.txt").write_text("\n".join(lines[:1500]) + "\n", encoding="utf-8", newline="\n")
    test = [*lines[1500:1600], "two  spaces", "a\ttab and Zyzzyva", " ", ""]
    (folder / "test.txt").write_text("\n".join(test) + "\n", encoding="utf-8", newline="\n")
    text = folder / "train.txt"
    every_letter = Corpus.from_strings([*lines[:1500], "".join(sorted({*"".join(test)}))])
    models = {
        "kn": lmgauge.train("modified-kneser-ney", text, order=3),
        "wb": lmgauge.train("witten-bell", text, order=3),
        "mle": lmgauge.train("mle", text, order=2),
        "ch": lmgauge.train("witten-bell", every_letter, order=4, tokenizer="character"),
        "by": lmgauge.train("witten-bell", every_letter, order=5, tokenizer="byte"),
        "st": lmgauge.train("witten-bell", text, order=3, context="stream"),
        "cl": lmgauge.train("witten-bell", text, order=3, vocabulary="closed"),
    }
    for name, model in models.items():
        model.save(folder / name)
        lmgauge.evaluate(folder / name, folder / "test.txt", output=folder / f"run-{name}")
    return folder


def pair(shop: Path, *names: str, **options: Any) -> Comparison:
    found = compare([shop / f"run-{name}" for name in names], **options)
    return found[0]


def evaluation(shop: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((shop / f"run-{name}" / "evaluation.json").read_text(encoding="utf-8"))["evaluation"]
    return found


# -- the whole ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [("kn", "wb"), ("wb", "kn"), ("ch", "by")])
def test_figures_are_those_of_the_evaluations(shop: Path, first: str, second: str) -> None:
    found = pair(shop, first, second)
    a, b = evaluation(shop, first), evaluation(shop, second)
    assert found.part == WHOLE
    shown = {d.metric: d for d in found.differences}
    assert list(shown) == list(METRICS if first != "ch" else METRICS[1:])
    for metric, difference in shown.items():
        assert difference.first == a[metric]
        assert difference.second == b[metric]
        assert difference.interval is not None
        assert difference.interval.low < difference.difference < difference.interval.high
        if metric == "perplexity":
            assert difference.difference == pytest.approx(math.exp(b["cross_entropy"] - a["cross_entropy"]), rel=1e-14)
            assert difference.difference == pytest.approx(b[metric] / a[metric], rel=1e-12)
        else:
            assert difference.difference == pytest.approx(b[metric] - a[metric], rel=1e-12)
    assert (found.bytes, found.bytes_in_all) == (a["bytes"], a["bytes"])
    assert found.events == b["events"]
    assert found.segments == a["segments"]
    assert found.lower_bounds == (a["bits_per_byte_is_bound"], b["bits_per_byte_is_bound"])


def test_the_other_way_round_is_the_same_difference(shop: Path) -> None:
    there, back = pair(shop, "kn", "wb"), pair(shop, "wb", "kn")
    assert there.p_value == back.p_value
    for a, b in zip(there.differences, back.differences, strict=True):
        assert a.interval is not None
        assert b.interval is not None
        if a.metric == "perplexity":
            assert (a.difference, a.interval.low) == pytest.approx((1 / b.difference, 1 / b.interval.high), rel=1e-12)
        else:
            assert (a.difference, a.interval.low) == pytest.approx((-b.difference, -b.interval.high), rel=1e-12)
    assert [e.text for e in there.tokens_lost] == [e.text for e in back.tokens_won]
    assert [e.segment for e in there.segments_lost] == [e.segment for e in back.segments_won]


def test_identical_runs(shop: Path, tmp_path: Path) -> None:
    shutil.copytree(shop / "run-kn", tmp_path / "copy")
    (found,) = compare([shop / "run-kn", tmp_path / "copy"])
    assert [d.difference for d in found.differences] == [1.0, 0.0, 0.0, 0.0]
    assert all(d.first == d.second for d in found.differences)
    assert found.p_value == found.p_value_holm == 1.0
    assert found.significant is False
    assert found.units_needed is None
    assert found.segments_lost == found.segments_won == found.tokens_lost == found.tokens_won == ()
    assert (found.first, found.second) == (str(shop / "run-kn"), str(tmp_path / "copy"))
    for slices in found.slices:
        assert {row.difference for row in slices.rows} == {0.0}
        assert {row.p_value for row in slices.rows} == {1.0}


@pytest.mark.parametrize("names", [("kn", "wb"), ("kn", "ch"), ("ch", "by"), ("kn", "mle"), ("kn", "st")])
def test_slices_add_up_to_the_whole(shop: Path, names: tuple[str, str]) -> None:
    """Law 5: each way to cut the text gives the same bits, bytes and, where nothing is infinite, the difference."""
    found = pair(shop, *names, train=shop / "train.txt")
    assert {"class", "position in the segment", "occurrences in training"} == {slices.name for slices in found.slices}
    for slices in found.slices:
        assert slices.unit == "byte"
        assert sum(row.size for row in slices.rows) == found.bytes
        (bits,) = (d for d in found.differences if d.metric == "bits_per_byte")
        for k, figure in enumerate((bits.first, bits.second)):
            whole = sum(row.bits[k] for row in slices.rows)
            assert whole == pytest.approx(figure * (found.bytes or 0), rel=1e-13)
            for row in slices.rows:
                assert row.bits_per_unit[k] == pytest.approx(row.bits[k] / row.size, rel=1e-15)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_and_blocks_change_nothing(shop: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    whole = compare([shop / "run-kn", shop / "run-ch"], threads=2).to_dict()
    monkeypatch.setattr(runs_module, "_SEGMENTS_AT_A_TIME", 7)
    assert compare([shop / "run-kn", shop / "run-ch"], threads=threads).to_dict() == whole


def test_blocks_of_the_text_change_nothing(shop: Path) -> None:
    def text(block_bytes: int) -> Corpus:
        return Corpus.from_files(shop / "test.txt", block_bytes=block_bytes)

    small, large = (compare([shop / "run-kn", shop / "run-ch"], text=text(size)).to_dict() for size in (100, 1 << 20))
    for found in (small, large):
        for comparison in found["comparisons"]:
            for slices in comparison["slices"]:
                for row in slices["rows"]:
                    # Intervals of slices come from float sums, which blocks cut differently; figures do not.
                    low, high = row.pop("interval") or (0.0, 0.0)
                    row["width"] = round(high - low, 9)
                    row["p_value"] = None if row["p_value"] is None else round(row["p_value"], 9)
    assert small == large


# -- the part that both tell exactly ------------------------------------------------------------------------------------


def rows_of(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / "scores.parquet").to_pylist()
    return found


def test_the_exact_part_by_hand(tmp_path: Path) -> None:
    """Three lines; words lose the double space, the tab and the unseen word, and all the character model has beside them.

    Exact for both: "ab" " cd" and the line end | "ab" and the line end (the double space goes with "cd") | the line end
    ("zz" is unseen, "ab" follows a tab).
    """
    train = Corpus.from_strings(["ab cd", "cd ab", "ab"])
    (tmp_path / "t.txt").write_text("ab cd\nab  cd\nzz\tab\n", encoding="utf-8", newline="\n")
    characters = Corpus.from_strings(["ab cd", "cd ab", "ab", "z\t"])
    lmgauge.evaluate(lmgauge.train("laplace", train, order=2), tmp_path / "t.txt", output=tmp_path / "w")
    model = lmgauge.train("laplace", characters, order=2, tokenizer="character")
    lmgauge.evaluate(model, tmp_path / "t.txt", output=tmp_path / "c")
    (found,) = compare([tmp_path / "w", tmp_path / "c"])
    words, letters = rows_of(tmp_path / "w"), rows_of(tmp_path / "c")
    assert [row["token"] for row in words] == ["ab", "cd", "</s>", "ab", "cd", "</s>", "<unk>", "ab", "</s>"]
    chosen_words = [words[i] for i in (0, 1, 2, 3, 5, 8)]
    by_segment = [[r for r in letters if r["segment"] == s] for s in range(3)]
    chosen_letters = [*by_segment[0], *by_segment[1][:2], by_segment[1][-1], by_segment[2][-1]]
    count = len("ab cd\n") + len("ab\n") + len("\n")
    (difference,) = found.differences
    assert found.part == EXACT_PART
    assert difference.metric == "bits_per_byte"
    assert difference.first == pytest.approx(-math.fsum(r["logprob"] for r in chosen_words) / count / LN2, rel=1e-14)
    assert difference.second == pytest.approx(-math.fsum(r["logprob"] for r in chosen_letters) / count / LN2, rel=1e-14)
    assert (found.bytes, found.bytes_in_all) == (count, 19)
    assert found.events == len(chosen_letters)
    assert found.lower_bounds == (False, False)
    assert any("only where it knows the words" in note for note in found.notes)  # the one unseen word is left out


def test_the_part_is_the_same_for_any_second_model_that_loses_nothing(shop: Path) -> None:
    by_characters, by_bytes = pair(shop, "kn", "ch"), pair(shop, "kn", "by")
    assert by_characters.bytes == by_bytes.bytes
    assert by_characters.differences[0].first == by_bytes.differences[0].first


def test_several_verdicts_of_the_same_shop(shop: Path) -> None:
    assert pair(shop, "kn", "st").part == EXACT_PART
    assert pair(shop, "ch", "by").part == WHOLE
    closed = pair(shop, "kn", "cl")  # the same words, of which one model cannot say the unseen
    assert closed.part == EXACT_PART
    assert not closed.verdict("perplexity").comparable
    with pytest.raises(UsageError, match="perplexity, bits_per_byte"):
        closed.verdict("accuracy")


def test_words_without_spaces_between_are_exact_where_there_are_none(tmp_path: Path) -> None:
    """ICU's words are given back one right behind the other: of "Hello, world" all but " world" is exact."""
    pytest.importorskip("icu4py")
    train = Corpus.from_strings(["Hello, world", "world hello,", ",world"])
    (tmp_path / "t.txt").write_text("Hello, world\n,Hello\n", encoding="utf-8", newline="\n")
    lmgauge.evaluate(lmgauge.train("laplace", train, order=1, tokenizer="icu"), tmp_path / "t.txt", output=tmp_path / "i")
    lmgauge.evaluate(lmgauge.train("laplace", train, order=1, tokenizer="byte"), tmp_path / "t.txt", output=tmp_path / "b")
    (found,) = compare([tmp_path / "i", tmp_path / "b"])
    assert found.part == EXACT_PART
    assert found.bytes == len("Hello,") + len("\n") + len(",Hello\n")


# -- probability zero ---------------------------------------------------------------------------------------------------


def test_zero_probability(shop: Path) -> None:
    found = pair(shop, "kn", "mle")
    assert [d.second for d in found.differences] == [math.inf] * 4
    assert [d.difference for d in found.differences] == [math.inf] * 4
    assert [d.interval for d in found.differences] == [None] * 4
    assert found.p_value is found.p_value_holm is found.significant is found.units_needed is None
    assert any("events have probability zero" in note for note in found.notes)
    rows = rows_of(shop / "run-mle")
    hit = {row["segment"] for row in rows if row["logprob"] == -math.inf}
    assert found.segments_with_zeros == len(hit)
    assert found.segments == evaluation(shop, "mle")["segments"] - len(hit)
    for k, name in enumerate(("kn", "mle")):
        kept = [row["logprob"] for row in rows_of(shop / f"run-{name}") if row["segment"] not in hit]
        perplexity = found.without_zeros[0]
        assert (perplexity.first, perplexity.second)[k] == pytest.approx(math.exp(-math.fsum(kept) / len(kept)), rel=1e-14)
    assert all(math.isfinite(d.second) and d.interval is not None for d in found.without_zeros)


def test_a_segment_with_probability_zero_is_never_won(shop: Path) -> None:
    """What is left of its bits is less than it costs: nothing."""
    hit = {row["segment"] for row in rows_of(shop / "run-mle") if row["logprob"] == -math.inf}
    found = pair(shop, "kn", "mle", examples=50)
    assert found.segments_won
    assert not hit & {example.segment for example in (*found.segments_won, *found.segments_lost)}
    other = pair(shop, "mle", "kn", examples=50)
    assert [e.segment for e in other.segments_lost] == [e.segment for e in found.segments_won]


def test_both_infinite(shop: Path, tmp_path: Path) -> None:
    lmgauge.evaluate(lmgauge.train("mle", shop / "train.txt", order=3), shop / "test.txt", output=tmp_path / "mle3")
    (found,) = compare([shop / "run-mle", tmp_path / "mle3"])
    assert [(d.first, d.second) for d in found.differences] == [(math.inf, math.inf)] * 4
    assert [d.difference for d in found.differences] == [1.0, 0.0, 0.0, 0.0]
    assert found.p_value is None
    assert sum("probability zero" in note for note in found.notes) == 2
    json.dumps(found.notes)


def test_an_unseen_line_end(tmp_path: Path) -> None:
    """In one stream without line ends `</s>` was never seen: every segment has probability zero, and nothing is left."""
    (tmp_path / "t.txt").write_text("a b\nb a\n", encoding="utf-8", newline="\n")
    made = []
    for name, kind in (("one", "mle"), ("two", "laplace")):
        model = lmgauge.train(kind, Corpus.from_strings(["a b b a b a a"]), order=2, context="stream")
        lmgauge.evaluate(model, tmp_path / "t.txt", output=tmp_path / name)
        made.append(tmp_path / name)
    (found,) = compare(made)
    assert found.differences[0].first == math.inf
    assert found.segments + found.segments_with_zeros == 2
    if not found.segments:
        assert found.without_zeros == ()


def test_differences_beyond_what_exp_can_tell(tmp_path: Path) -> None:
    """e^50000 is no float64; it is infinite, and no crash."""
    (tmp_path / "t.txt").write_text("a\nb\n", encoding="utf-8", newline="\n")
    lmgauge.evaluate(lmgauge.train("laplace", tmp_path / "t.txt", order=1), tmp_path / "t.txt", output=tmp_path / "a")
    file = tmp_path / "a" / "scores.parquet"
    origin = {b"lmgauge": pq.read_metadata(file).metadata[b"lmgauge"]}
    table = pq.read_table(file).replace_schema_metadata(origin)
    column = table.schema.get_field_index("logprob")
    pq.write_table(table.set_column(column, "logprob", [[-5e4, -4e4, -5e4, -3e4]]), tmp_path / "b.parquet")
    (found,) = compare([tmp_path / "a", tmp_path / "b.parquet"])
    assert found.differences[0].difference == math.inf
    assert found.differences[1].difference == pytest.approx(170_000 / 4 / LN2, rel=1e-3)
    (found,) = compare([tmp_path / "b.parquet", tmp_path / "a"])
    assert found.differences[0].difference == 0.0


# -- few segments, empty groups -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [1, 5])
def test_fewer_than_six_segments(shop: Path, tmp_path: Path, lines: int) -> None:
    text = "First Citizen is here\nspeak\nwe are\nFirst speak\nhere\n".splitlines(keepends=True)[:lines]
    (tmp_path / "one.txt").write_text("".join(text), encoding="utf-8", newline="\n")
    for name in ("kn", "wb"):
        lmgauge.evaluate(shop / name, tmp_path / "one.txt", output=tmp_path / name)
    (found,) = compare([tmp_path / "kn", tmp_path / "wb"])
    assert [d.interval for d in found.differences] == [None] * 4
    assert found.p_value is found.significant is found.units_needed is None
    assert "no interval and no test: these need 6 documents or segments" in found.notes
    assert found.differences[0].first == lmgauge.evaluate(shop / "kn", tmp_path / "one.txt").perplexity
    assert all(row.interval is None and row.p_value is None for slices in found.slices for row in slices.rows)


def test_groups_and_an_empty_one_among_them(shop: Path, tmp_path: Path) -> None:
    texts = {"b.txt": "First Citizen\nspeak\n", "a.txt": "", "c.txt": "we know it\n\nno more\n"}
    for name, content in texts.items():
        (tmp_path / name).write_text(content, encoding="utf-8", newline="\n")
    paths = [tmp_path / name for name in texts]
    results: dict[str, Any] = {}
    for name in ("kn", "wb"):
        results[name] = lmgauge.evaluate(shop / name, paths, by_group=True, output=tmp_path / f"run-{name}")
    found = pair(tmp_path, "kn", "wb")
    (groups,) = (slices for slices in found.slices if slices.name == "group")
    assert [row.label for row in groups.rows] == ["b", "c"]
    for row in groups.rows:
        for k, name in enumerate(("kn", "wb")):
            (own,) = (r for r in results[name] if r.group == row.label)
            assert row.bits_per_unit[k] == pytest.approx(own.bits_per_byte, rel=1e-15)
            assert (row.size, row.segments) == (own.bytes, own.segments)


def test_groups_from_a_field_in_any_order_of_their_appearance(shop: Path, tmp_path: Path) -> None:
    records = [("x", "First Citizen"), ("y", "speak"), ("x", "we know it"), ("z", ""), ("y", "no more")]
    (tmp_path / "t.jsonl").write_text(
        "".join(json.dumps({"text": t, "domain": d}) + "\n" for d, t in records), encoding="utf-8"
    )
    corpus = Corpus.from_files(tmp_path / "t.jsonl", group="domain", block_bytes=10)
    for name in ("kn", "wb"):
        lmgauge.evaluate(shop / name, corpus, output=tmp_path / f"run-{name}")
    found = pair(tmp_path, "kn", "wb")
    (groups,) = (slices for slices in found.slices if slices.name == "group")
    sizes = {"x": len("First Citizen") + len("we know it"), "y": len("speak") + len("no more"), "z": 0}
    assert {row.label: row.size for row in groups.rows} == sizes
    assert found.bytes == sum(sizes.values())


# -- without the text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["line", "document", "jsonl"])
def test_figures_do_not_change_when_the_text_is_gone(shop: Path, tmp_path: Path, unit: str) -> None:
    """A line end is a byte of the text, the end of a document or record is none; without the text that is still known."""
    text = tmp_path / ("t.jsonl" if unit == "jsonl" else "t.txt")
    lines = ["First Citizen", "speak speak", "we know it"]
    text.write_text("".join((json.dumps({"text": line}) if unit == "jsonl" else line) + "\n" for line in lines))
    corpus = Corpus.from_files(text, unit="document" if unit == "document" else "line")
    for name in ("kn", "wb"):
        lmgauge.evaluate(shop / name, corpus, output=tmp_path / f"run-{name}")
    with_text = pair(tmp_path, "kn", "wb")
    text.unlink()
    without = pair(tmp_path, "kn", "wb")
    assert any("the text is not available" in note for note in without.notes)
    assert [d for d in with_text.differences if d.metric in ("perplexity", "bits_per_byte")] == list(without.differences)
    assert (without.bytes, without.p_value) == (with_text.bytes, with_text.p_value)
    assert [slices.name for slices in without.slices] == ["position in the segment"]
    (positions,) = (slices for slices in with_text.slices if slices.name == "position in the segment")
    assert without.slices[0] == positions


def test_a_text_that_changed_is_not_at_hand(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("First Citizen\nspeak\n", encoding="utf-8", newline="\n")
    for name in ("kn", "wb"):
        lmgauge.evaluate(shop / name, tmp_path / "t.txt", output=tmp_path / f"run-{name}")
    for changed in (b"First Citizen\nspoke\n", b"\xff\xfe"):
        (tmp_path / "t.txt").write_bytes(changed)
        found = pair(tmp_path, "kn", "wb")
        assert any("the text is not available" in note for note in found.notes)
    (tmp_path / "again.txt").write_text("First Citizen\r\nspeak", encoding="utf-8", newline="")  # the same, differently
    again = pair(tmp_path, "kn", "wb", text=tmp_path / "again.txt")
    assert again.notes == ("no interval and no test: these need 6 documents or segments",)
    with pytest.raises(InputError, match="scored another text"):
        pair(tmp_path, "kn", "wb", text=shop / "test.txt")
    with pytest.raises(UsageError, match="--text"):
        pair(tmp_path, "kn", "wb", train=shop / "train.txt")


# -- tables without spans or tokens, other texts ------------------------------------------------------------------------


def bare(folder: Path, path: Path, *columns: str) -> Path:
    """The table of a run with only some of its columns, without a word on its origin."""
    table = pq.read_table(folder / "scores.parquet").select(["segment", "logprob", *columns])
    pq.write_table(table.replace_schema_metadata(None), path)
    return path


def test_tables_without_spans_are_compared_by_segment(shop: Path, tmp_path: Path) -> None:
    a, b = (bare(shop / f"run-{name}", tmp_path / f"{name}.parquet", "kind") for name in ("ch", "by"))
    with pytest.raises(InputError, match=r"no rows for segment|reach beyond|another text|same text"):
        compare([a, b], text=shop / "train.txt")
    (found,) = compare([a, b], text=shop / "test.txt")
    assert found.part == WHOLE
    whole = pair(shop, "ch", "by")
    assert [(d.metric, d.first, d.second) for d in found.differences] == [
        (d.metric, d.first, d.second) for d in whole.differences
    ]
    assert found.p_value == pytest.approx(whole.p_value, rel=1e-9)
    assert found.slices == ()
    assert [e.segment for e in found.segments_lost] == [e.segment for e in whole.segments_lost]
    assert any("no byte spans" in note for note in found.notes)


def test_where_one_table_has_a_line_end_and_the_other_not_it_is_left_out(tmp_path: Path) -> None:
    """The last token of the one goes to the line end, which the other has an event for: neither has those bits alone."""
    rows: dict[str, list[tuple[int, int, int, str]]] = {
        "with": [
            (0, 0, 2, "token"),
            (0, 2, 5, "token"),
            (0, 5, 5, "eos"),
            (1, 0, 0, "eos"),
            (2, 0, 1, "token"),
            (2, 1, 1, "eos"),
        ],
        "without": [(0, 0, 2, "token"), (0, 2, 5, "token"), (2, 0, 1, "token")],
    }
    for k, (name, table) in enumerate(rows.items()):
        lines = [{"segment": s, "start": a, "end": b, "kind": kind, "logprob": -1.0 - k} for s, a, b, kind in table]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "t.txt").write_text("ab cd\n\nz\n", encoding="utf-8", newline="\n")
    (found,) = compare([tmp_path / "with.jsonl", tmp_path / "without.jsonl"], text=tmp_path / "t.txt")
    assert (found.part, found.bytes, found.bytes_in_all, found.events) == (EXACT_PART, 2, 9, 1)
    (difference,) = found.differences
    assert (difference.first, difference.second) == (1 / 2 / LN2, 2 / 2 / LN2)


def test_spans_moved_by_hand_leave_perplexity_only(shop: Path, tmp_path: Path) -> None:
    """The events are still those of the model; which bytes they stand for is not certain any more."""
    file = shop / "run-wb" / "scores.parquet"
    origin = {b"lmgauge": pq.read_metadata(file).metadata[b"lmgauge"]}
    table = pq.read_table(file).replace_schema_metadata(origin)
    starts = table["start"].to_pylist()
    starts[3] += 1
    pq.write_table(table.set_column(1, "start", [starts]), tmp_path / "moved.parquet")
    (found,) = compare([shop / "run-kn", tmp_path / "moved.parquet"])
    assert [verdict.comparable for verdict in found.verdicts] == [True, False, False, False]
    assert [d.metric for d in found.differences] == ["perplexity"]
    assert any("do not tile the text" in reason for reason in found.verdict("bits_per_byte").reasons)


def test_tables_that_tell_no_tokens_share_no_events(shop: Path, tmp_path: Path) -> None:
    """As many rows in every segment, but nothing says that they are of the same words."""
    a, b = (bare(shop / f"run-{name}", tmp_path / f"{name}.parquet", "kind") for name in ("kn", "wb"))
    (found,) = compare([a, b])
    assert found.part == NOTHING
    assert found.differences == ()
    assert found.p_value is found.p_value_holm is found.significant is None
    assert "not comparable" in repr(found)
    assert "Not comparable" in str(found)
    with_tokens = [bare(shop / f"run-{name}", tmp_path / f"t{name}.parquet", "kind", "token") for name in ("kn", "wb")]
    (found,) = compare(with_tokens)
    assert found.part == SHARED_EVENTS
    known = [[r["logprob"] for r in rows_of(shop / f"run-{name}") if r["kind"] != "oov"] for name in ("kn", "wb")]
    (difference,) = found.differences
    for value, logprobs in zip((difference.first, difference.second), known, strict=True):
        assert value == pytest.approx(math.exp(-math.fsum(logprobs) / len(logprobs)), rel=1e-14)
    assert found.events == len(known[0])
    assert found.bytes is None


def test_a_text_under_two_vocabularies(tmp_path: Path) -> None:
    """One corpus, published with more or less of its rare words as <unk>: only words that stand in both are compared."""
    lines = ["the cat sat on a mat", "a rare aardvark sat", "the cat"]
    fewer = [line.replace("aardvark", "thing").replace("mat", "thing") for line in lines]
    for name, version in (("more", lines), ("fewer", fewer)):
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in version), encoding="utf-8", newline="\n")
        lmgauge.evaluate(
            lmgauge.train("laplace", tmp_path / f"{name}.txt", order=1),
            tmp_path / f"{name}.txt",
            output=tmp_path / f"run-{name}",
        )
    found = pair(tmp_path, "more", "fewer")
    assert found.part == SHARED_EVENTS
    assert found.events == 6 + 1 - 1 + 4 + 1 - 1 + 2 + 1
    rows = [rows_of(tmp_path / f"run-{name}") for name in ("more", "fewer")]
    same = [(a["logprob"], b["logprob"]) for a, b in zip(*rows, strict=True) if a["token"] == b["token"]]
    (difference,) = found.differences
    assert difference.difference == pytest.approx(math.exp(math.fsum(a - b for a, b in same) / len(same)), rel=1e-13)
    assert {e.text for e in (*found.tokens_lost, *found.tokens_won)} & {" mat", " aardvark"} == set()
    assert any("smaller vocabulary" in note for note in found.notes)


def test_nothing_to_compare(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("other words\n", encoding="utf-8", newline="\n")
    lmgauge.evaluate(shop / "kn", tmp_path / "t.txt", output=tmp_path / "run-kn")
    (found,) = compare([shop / "run-kn", tmp_path / "run-kn"])
    assert (found.part, found.differences, found.slices, found.bytes) == (NOTHING, (), (), 0)
    assert found.units_needed is None


# -- many runs ----------------------------------------------------------------------------------------------------------


def test_several_runs_are_adjusted_together(shop: Path) -> None:
    names = ["kn", "wb", "ch", "by", "mle"]
    found = compare([shop / f"run-{name}" for name in names])
    assert found.runs == tuple(names)
    assert [c.second for c in found] == names[1:]
    alone = [pair(shop, "kn", name) for name in names[1:]]
    assert [c.p_value for c in found] == [c.p_value for c in alone]
    assert [c.p_value_holm for c in found] == runs_holm([c.p_value for c in alone])
    assert found[-1].p_value_holm is None
    assert len(found) == 4


def runs_holm(values: Sequence[float | None]) -> list[float | None]:
    from tests.reference.resample import holm

    adjusted = iter(holm([p for p in values if p is not None]))
    return [None if p is None else next(adjusted) for p in values]


def test_a_difference_that_adjusting_undid_still_says_what_would_be_needed(tmp_path: Path) -> None:
    """Alone p is below 5 %, among several models it is not: then more text is needed than there is, and said so."""
    generator = np.random.default_rng(0)
    base = generator.normal(-3, 1, 100).clip(max=-0.1)
    nats = {}
    for name, shift in (("a", 0.0), ("b", 0.27), ("c", 0.0), ("d", 0.0), ("e", 0.0), ("f", 0.0)):
        noise = np.zeros(100) if name == "a" else generator.normal(shift, 1, 100)
        nats[name] = values = (base - noise).clip(max=-0.01)
        rows = [{"segment": i, "logprob": value, "token": "w"} for i, value in enumerate(values.tolist())]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    found = compare([tmp_path / f"{name}.jsonl" for name in "abcdef"])
    first = found[0]
    assert first.p_value is not None
    assert first.p_value_holm is not None
    assert first.p_value < 0.05 <= first.p_value_holm
    expected = spread(nats["a"] - nats["b"], np.ones(100))
    assert expected is not None
    assert first.units_needed == expected.units_needed(1 - 0.05 / 5)
    assert (first.units_needed or 0) > first.units == 100
    (alone,) = compare([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], plan=0.2)
    assert alone.significant
    assert alone.units_needed is None
    # 2.8016 errors are found with 80 % power (1.959964 + 0.841621); n units have errors as 1 / sqrt(n).
    assert alone.detectable == pytest.approx(math.exp(2.801585 * expected.error) - 1)
    assert alone.units_planned == math.ceil(100 * (2.801585 * expected.error / math.log(1.2)) ** 2)


def test_one_run_is_no_comparison(shop: Path) -> None:
    for given in ([], [shop / "run-kn"]):
        with pytest.raises(UsageError, match="two runs"):
            compare(given)


# -- what a comparison turns into ---------------------------------------------------------------------------------------


def test_as_dict_as_frame_and_as_lines(shop: Path) -> None:
    found = compare([shop / "run-kn", shop / "run-wb", shop / "run-ch"])
    plain = found.to_dict()
    assert plain["runs"] == ("kn", "wb", "ch")
    assert [c["second"] for c in plain["comparisons"]] == ["wb", "ch"]
    assert plain["comparisons"][0]["significant"] is True
    assert plain["comparisons"][0]["differences"][0]["first"] == found[0].differences[0].first
    assert repr(found) == "<Comparisons: 2 items>"
    assert repr(found[0]).startswith("<Comparison: wb / kn: perplexity")
    assert str(found[0]).startswith("wb compared with kn\n")
    assert str(found).startswith("wb compared with kn\n")
    pandas = pytest.importorskip("pandas")
    frame = found.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["metric"]) == [*METRICS, "bits_per_byte"]
    assert frame["second_value"][0] == found[0].differences[0].second


def test_exact_sums_of_a_run_and_its_evaluation(shop: Path) -> None:
    """The sum of a table's rows is the evaluation's, to the last bit: both are counted in multiples of 2^-80."""
    assert SCALE == 1 << 80
    assert exact_to_nats(3 * SCALE) == 3.0
    run = open_run(shop / "run-kn")
    assert run.evaluation is not None
    assert run.evaluation["log_probability"] == lmgauge.evaluate(shop / "kn", shop / "test.txt").log_probability


def test_segments_without_their_first_token_are_not_said_to_be_altered(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("First Citizen is here\nspeak\n", encoding="utf-8", newline="\n")
    lmgauge.evaluate(shop / "kn", tmp_path / "t.txt", output=tmp_path / "kn")
    with ToyServer(bos="none").running() as toy:
        lmgauge.evaluate(load_model(toy.url), tmp_path / "t.txt", output=tmp_path / "toy")
    (found,) = compare([tmp_path / "kn", tmp_path / "toy"])
    [told] = [note for note in found.notes if "not exact" in note]
    assert told.startswith("toy: 2 segments are not exact (first tokens not scored)")
    assert not any("tokenizer" in note for note in found.notes)


@pytest.mark.parametrize(("gap", "equal"), [(1e-8, True), (1e-5, False)])
def test_a_difference_that_scores_do_not_carry_is_none(tmp_path: Path, gap: float, equal: bool) -> None:
    """As when a log of another program, with the digits it prints, is laid beside the same model here."""
    text = lmgauge.Corpus.from_strings([f"{a} {b}" for a in "abcdefgh" for b in "abcdefgh"])
    model = lmgauge.train("witten-bell", text, order=1)
    lmgauge.evaluate(model, text, output=tmp_path / "one")
    with ScoreWriter(tmp_path / "other.parquet", {}) as writer:
        for batch in model.score(text):
            writer.write(replace(batch, logprob=batch.logprob - gap))
    (comparison,) = lmgauge.compare([tmp_path / "one", tmp_path / "other.parquet"], text=text)
    assert comparison.within_rounding == equal
    assert comparison.significant == (None if equal else True)
    assert ("the two are equal" in str(comparison)) == equal


def test_line_ends_that_no_run_scores_are_in_no_denominator(tmp_path: Path) -> None:
    """Bits per byte are those of the evaluations, also of models that do not predict where lines end."""
    lines = [f"{a} {b} {c}" for a in "abc" for b in "abc" for c in "abc"]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    models = {f"wb{n}": lmgauge.train("witten-bell", tmp_path / "text.txt", order=n, eos=False) for n in (1, 2)}
    results = lmgauge.evaluate(models, tmp_path / "text.txt", output=tmp_path)
    figures = [result.bits_per_byte for result in results]
    runs = [tmp_path / name for name in models]
    (found,) = compare(runs, text=tmp_path / "text.txt")
    (bits,) = [one for one in found.differences if one.metric == "bits_per_byte"]
    assert [bits.first, bits.second] == pytest.approx(figures, rel=1e-12)
    assert found.bytes == results.items[0].bytes
    for cut in found.slices:
        assert sum(row.size for row in cut.rows) == found.bytes
    diagnosis = lmgauge.diagnose(runs[0], text=tmp_path / "text.txt")
    for cut in diagnosis.slices:
        assert sum(row.size for row in cut.rows) == results.items[0].bytes


def test_so_it_is_with_recipes(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{a}{b} {c}\n" for a in "abc" for b in "abc" for c in "abc"), encoding="utf-8", newline="\n")
    models = {
        f"{tokenizer}{n}": lmgauge.train("witten-bell", text, order=n, eos=False, tokenizer=tokenizer)
        for tokenizer in ("character", "byte")
        for n in (1, 2)
    }
    figures = [result.bits_per_byte for result in lmgauge.evaluate(models, text, output=tmp_path)]
    runs = [tmp_path / name for name in models]
    (found,) = lmgauge.compare_recipes({"character": runs[:2], "byte": runs[2:]}, text=text)
    assert found.metric == "bits_per_byte"
    assert [*found.values[0], *found.values[1]] == pytest.approx(figures, rel=1e-12)
