"""Alignments: jiwer's chunks, lines to read, and the errors that come most often."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.share import error_counts

from lmgauge.base.errors import InputError, UsageError
from lmgauge.tasks.alignment import Alignment, align, align_all, aligned_segments
from lmgauge.tasks.metrics.error_rates import CER, WER
from lmgauge.tasks.texts import Block, ParallelTexts, References, Texts

jiwer = pytest.importorskip("jiwer")

lines = st.text("ab c", max_size=40)


def chunks(alignment: Alignment) -> list[tuple[str, int, int, int, int]]:
    return [(c.type, c.ref_start, c.ref_end, c.hyp_start, c.hyp_end) for c in alignment.chunks]


def jiwers(chunks: list[object]) -> list[tuple[object, ...]]:
    names = ("type", "ref_start_idx", "ref_end_idx", "hyp_start_idx", "hyp_end_idx")
    return [tuple(getattr(chunk, name) for name in names) for chunk in chunks]


@given(lines, lines)
def test_chunks_are_jiwers(reference: str, hypothesis: str) -> None:
    for unit, process in (("word", jiwer.process_words), ("character", jiwer.process_characters)):
        found, theirs = align(reference, hypothesis, unit), process(reference, hypothesis)  # type: ignore[arg-type]
        assert chunks(found) == jiwers(theirs.alignments[0])
        assert (list(found.reference), list(found.hypothesis)) == (theirs.references[0], theirs.hypotheses[0])
        counts = (found.hits, found.substitutions, found.deletions, found.insertions)
        assert counts == (theirs.hits, theirs.substitutions, theirs.deletions, theirs.insertions)


@given(lines, lines)
def test_operations_turn_the_reference_into_the_hypothesis(reference: str, hypothesis: str) -> None:
    found = align(reference, hypothesis)
    pairs = list(found.pairs())
    assert [one for _, one, _ in pairs if one is not None] == reference.split()
    assert [other for _, _, other in pairs if other is not None] == hypothesis.split()
    assert all((one == other) == (operation == "equal") for operation, one, other in pairs)


def test_lines_to_read() -> None:
    assert str(align("quite a bit of longer sentence", "quite bit of an even longest sentence here")) == (
        "REF:  quite a bit of ** **** longer  sentence ****\n"
        "HYP:  quite * bit of an even longest sentence here\n"
        "EVAL:       D        I  I    S                I"
    )
    assert str(align("abc", "bd", "character")) == "REF:  abc\nHYP:  *bd\nEVAL: D S"
    assert str(align("", "")) == "REF:\nHYP:\nEVAL:"


def test_wide_and_invisible_characters() -> None:
    # Two columns for each of the wide ones; the mark on the e none.
    assert align("東京 は e\u0301", "東京都 x a").lines() == [
        ("REF:  東京   は e\u0301", "HYP:  東京都 x  a", "EVAL: S      S  S")
    ]
    assert align("a\tb", "a b", "character").lines()[0][0] == "REF:  a\\tb"


@given(lines, lines, st.integers(1, 60))
def test_lines_of_limited_width(reference: str, hypothesis: str, width: int) -> None:
    rows = align(reference, hypothesis).lines(width)
    assert " ".join(row[0][6:] for row in rows).replace("*", "").split() == reference.split()
    assert " ".join(row[1][6:] for row in rows).replace("*", "").split() == hypothesis.split()
    longest = max(map(len, [*reference.split(), *hypothesis.split()]), default=0)
    assert all(len(part) <= max(width, 6 + longest) for row in rows for part in row)


def test_frequent_errors() -> None:
    found = error_counts(
        align(*pair) for pair in [("the cat sat on it", "a cat sit on the mat"), ("the dog", "a dog"), ("a b c", "c")]
    )
    assert found.substitutions == Counter({("the", "a"): 2, ("sat", "sit"): 1, ("it", "mat"): 1})
    assert found.deletions == Counter({"a": 1, "b": 1})
    assert found.insertions == Counter({"the": 1})
    assert [line.split() for line in str(found).splitlines()[3:5]] == [
        ["2", "substituted", "the", "->", "a"],
        ["1", "substituted", "it", "->", "mat"],
    ]
    assert found.most_frequent(1)[:2] == [(2, "substituted", "the -> a"), (1, "deleted", "a")]


def by_chunk(alignments: list[Alignment], kind: str) -> Counter[Any]:
    """Errors of one kind, words wrong side by side as one, as jiwer counts them."""
    counts: Counter[Any] = Counter()
    for alignment in alignments:
        for chunk in alignment.chunks:
            one = " ".join(alignment.reference[chunk.ref_start : chunk.ref_end])
            other = " ".join(alignment.hypothesis[chunk.hyp_start : chunk.hyp_end])
            counts[(one, other) if kind == "substitute" else one or other] += chunk.type == kind
    return +counts


@given(st.lists(st.tuples(lines, lines), max_size=5))
def test_errors_add_up_and_their_chunks_are_jiwers(pairs: list[tuple[str, str]]) -> None:
    references, hypotheses = [one for one, _ in pairs], [other for _, other in pairs]
    many = list(align_all(Texts.of_strings(references), Texts.of_strings(hypotheses)))
    if pairs:
        expected = jiwer.collect_error_counts(jiwer.process_words(references, hypotheses))
        assert tuple(by_chunk(many, kind) for kind in ("substitute", "insert", "delete")) == tuple(map(Counter, expected))
    single = error_counts(many)
    assert single.substitutions.total() == sum(alignment.substitutions for alignment in many)
    assert single.deletions.total() == sum(alignment.deletions for alignment in many)
    assert single.insertions.total() == sum(alignment.insertions for alignment in many)


def test_systems_of_a_segment_come_one_after_the_other() -> None:
    def block(references: list[str], *systems: list[str]) -> Block:
        return Block(References.of_lists(references), tuple(map(Texts.of_strings, systems)), None)

    blocks = [block(["A b", "c"], ["a", "c"], ["a b", "d"]), block([], [], []), block(["e"], ["E"], [""])]
    found = list(aligned_segments(WER(lowercase=True), ParallelTexts(["one", "two"], blocks)))
    assert [(s.segment, s.system) for s in found] == [(i, name) for i in range(3) for name in ("one", "two")]
    assert [(s.alignment.hits, s.alignment.deletions) for s in found] == [(1, 1), (2, 0), (1, 0), (0, 0), (1, 0), (0, 1)]
    several = Block(References.of_lists([["a", "b"]]), (Texts.of_strings(["a"]),), None)
    with pytest.raises(UsageError, match="one reference for each segment"):
        list(aligned_segments(CER(), ParallelTexts(["one"], [several])))


def test_bad_use_is_refused() -> None:
    with pytest.raises(UsageError, match="give word or character"):
        align("a", "b", "letter")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="1 hypotheses and 2 references"):
        next(align_all(Texts.of_strings(["a", "b"]), Texts.of_strings(["a"])))
    with pytest.raises(InputError, match="NUL"):
        align("a\0", "b")


def test_more_segments_than_are_held_at_once() -> None:
    references = [f"a b {i}" for i in range(2500)]
    many = list(align_all(Texts.of_strings(references), Texts.of_strings(["a c"] * 2500)))
    assert [alignment.reference[-1] for alignment in many] == [str(i) for i in range(2500)]
    assert all((a.hits, a.substitutions, a.deletions) == (1, 1, 1) for a in many)


def test_whole_calls_are_aligned_as_jiwer_does(shared_file: Callable[..., Path]) -> None:
    calls = []
    for name in ("ref", "speechmatics"):
        packed = shared_file("open", "asr-earnings21", f"{name}.tsv.gz")
        with gzip.open(packed, "rt", encoding="utf-8", newline="\n") as file:
            calls.append([row.rstrip("\n").split("\t", 1)[1] for row in file])
    many = list(align_all(*map(Texts.of_strings, calls)))
    theirs = jiwer.process_words(*calls)
    assert [chunks(alignment) for alignment in many] == [jiwers(found) for found in theirs.alignments]
    assert max(len(alignment.reference) for alignment in many) > 9_000
