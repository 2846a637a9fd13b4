"""Overlap of training and test text: against the slow twin over random text full of repeats, and on real texts."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import overlap as twin
from tests.text.overlap.finding import find_overlap

from lmgauge.base.errors import InputError, UsageError
from lmgauge.text.documents import Corpus
from lmgauge.text.overlap.find import Overlap, write_clean
from lmgauge.text.overlap.token_stream import fold

# Few and short words, some white space in odd places: runs repeat, overlap themselves and end everywhere.
WORDS = st.sampled_from(["a", "b", "a", "c", "<unk>", "日本"])
LINE = st.builds(
    lambda gaps, words: "".join(g + w for g, w in zip(gaps, words, strict=False)),
    st.lists(st.sampled_from([" ", " ", "  ", "\t"]), min_size=12, max_size=12),
    st.lists(WORDS, max_size=12),
)
LINES = st.lists(LINE, max_size=6)
TRAIN = LINES.filter(lambda lines: any(line.strip() for line in lines))


@contextmanager
def corpora(train: Sequence[str], test: Sequence[str], *, lines: bool, block_bytes: int) -> Iterator[tuple[Corpus, Corpus]]:
    """Two corpora of these segments: the lines of files, or records."""
    if not lines:
        yield (
            Corpus.from_strings(train, block_bytes=block_bytes),
            Corpus.from_strings(test, block_bytes=max(1, block_bytes // 2)),
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("train.txt", "test.txt")]
        for path, segments in zip(paths, (train, test), strict=True):
            path.write_bytes("".join(f"{segment}\n" for segment in segments).encode())
        yield tuple(Corpus.from_files(path, block_bytes=block_bytes) for path in paths)  # type: ignore[misc]


def compare_with_twin(found: Overlap, train: Sequence[str], test: Sequence[str], *, lines: bool, unit: str, n: int) -> None:
    """Every count, every passage and every segment."""
    sources = twin.streams_of(train, lines=lines, unit=unit)
    known = {gram for stream in sources for gram in twin.ngrams(stream, n)}
    streams = twin.streams_of(test, lines=lines, unit=unit)
    grams = [gram for stream in streams for gram in twin.ngrams(stream, n)]
    assert (found.ngrams, found.seen_ngrams) == (len(grams), sum(gram in known for gram in grams))
    assert (found.distinct_ngrams, found.seen_distinct_ngrams) == (len(set(grams)), len(set(grams) & known))
    assert found.tokens == sum(map(len, streams))

    covered, touched, expected, runs = np.zeros(len(test), int), set(), [], []
    for stream in streams:
        longest = twin.longest_runs(sources, stream, n)
        runs.append(longest)
        covered += twin.covered_bytes(test, stream, longest, terminator=int(lines))
        touched |= {t.segment for p, length in enumerate(longest) for t in stream[p : p + length]}
        expected += [(stream[p].segment, stream[p].begin, length) for p, length in twin.passages(longest)]
    assert found.segment_ngram_bytes.tolist() == covered.tolist()
    assert found.ngram_bytes == covered.sum()
    duplicates = [bool(segment.strip(twin.WHITE)) and segment in train for segment in test]
    assert found.segment_duplicate.tolist() == duplicates
    whole = twin.contaminated_bytes(test, streams, runs, duplicates, terminator=int(lines))
    assert found.segment_contaminated_bytes.tolist() == whole
    assert found.contaminated_bytes == sum(whole) >= found.ngram_bytes
    assert found.bytes == sum(len(segment.encode()) + lines for segment in test)
    assert found.segment_contaminated.tolist() == [i in touched or duplicates[i] for i in range(len(test))]
    assert sorted((p.segment, p.test.byte, p.length) for p in found.passages) == sorted(expected)
    assert found.longest_run == max((length for *_, length in expected), default=0)
    for passage in found.passages:  # the training place is one
        of_train = next(
            s for s in sources for t in s if (t.segment + 1, t.begin) == (passage.train.line, passage.train.byte)
        )
        q = next(i for i, t in enumerate(of_train) if (t.segment + 1, t.begin) == (passage.train.line, passage.train.byte))
        of_test = next(s for s in streams for t in s if (t.segment, t.begin) == (passage.segment, passage.test.byte))
        p = next(i for i, t in enumerate(of_test) if (t.segment, t.begin) == (passage.segment, passage.test.byte))
        assert twin.common_length(of_test[p:], of_train[q:]) >= passage.length


@settings(max_examples=300)
@given(
    train=TRAIN,
    test=LINES.filter(bool),
    lines=st.booleans(),
    unit=st.sampled_from(["word", "character"]),
    n=st.integers(1, 5),
    block_bytes=st.sampled_from([1, 3, 10, 1000]),
    threads=st.integers(1, 3),
)
def test_finds_what_comparing_every_pair_of_positions_finds(
    train: list[str], test: list[str], lines: bool, unit: str, n: int, block_bytes: int, threads: int
) -> None:
    with corpora(train, test, lines=lines, block_bytes=block_bytes) as (source, text):
        found = find_overlap(source, text, overlap_unit=unit, n=n, passages=10_000, threads=threads)  # type: ignore[arg-type]
    compare_with_twin(found, train, test, lines=lines, unit=unit, n=n)


@given(
    train=TRAIN,
    test=LINES.filter(bool),
    n=st.integers(1, 4),
    threads=st.integers(1, 3),
)
def test_neither_blocks_nor_threads_change_anything(train: list[str], test: list[str], n: int, threads: int) -> None:
    results = []
    for block_bytes, count in ((1, threads), (7, 1), (1 << 20, 2)):
        with corpora(train, test, lines=True, block_bytes=block_bytes) as (source, text):
            found = find_overlap(source, text, n=n, threads=count).to_dict()
        results.append(json.dumps(found).replace(str(Path(source.sources[0].path).parent), ""))
    assert len(set(results)) == 1


# -- streams ------------------------------------------------------------------------------------------------------------


def test_runs_cross_lines_but_neither_files_nor_records(tmp_path: Path) -> None:
    for name, text in {"a": "x one two\n", "b": "three four y\n", "t": "one\ntwo three\nfour\n"}.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "ab.txt").write_text("x one two\n\n three four y\n", encoding="utf-8")
    test = tmp_path / "t.txt"

    def length(*train: str, text: Path = test) -> int:
        names = [tmp_path / f"{name}.txt" for name in train]
        return find_overlap(Corpus.from_files(names), Corpus.from_files(text), n=1).longest_run

    assert length("ab") == 4
    assert length("a", "b") == 2
    assert length("t", "t", text=tmp_path / "ab.txt") == 4
    (tmp_path / "tt.txt").write_text("four one\n", encoding="utf-8")
    assert length("t", "t", text=tmp_path / "tt.txt") == 1  # not from one reading of the file into the next
    records = Corpus.from_strings(["one two", "three four"])
    assert find_overlap(records, Corpus.from_files(test), n=1).longest_run == 2


def test_the_place_of_a_run_that_began_blocks_ago_is_known(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("x\n\na\nb\n\n\nc\nd\ne\n\nf\n", encoding="utf-8")
    for text, n, place in (("a b c d", 4, (3, 0)), ("d e f", 3, (8, 0)), ("x a b c d e f", 1, (1, 0))):
        for block_bytes in (1, 3, 1000):
            train = Corpus.from_files(tmp_path / "train.txt", block_bytes=block_bytes)
            (passage,) = find_overlap(train, Corpus.from_strings([text]), n=n).passages
            assert (passage.train.line, passage.train.byte) == place


def test_characters_run_across_white_space_of_any_kind() -> None:
    train = Corpus.from_strings(["山路を登りながら、\nこう考えた。"])
    test = Corpus.from_strings(["「山路を　登り\u00a0ながら、こう 考えた」"])
    found = find_overlap(train, test, overlap_unit="character", n=10)
    assert found.longest_run == 14
    assert found.passages[0].text == "山路を　登り\u00a0ながら、こう 考えた"
    assert (found.passages[0].train.byte, found.passages[0].test.byte) == (0, 3)


def test_a_word_the_test_does_not_have_ends_a_run() -> None:
    found = find_overlap(Corpus.from_strings(["a b X c d"]), Corpus.from_strings(["a b c d", "b <unk> c"]), n=2)
    assert [passage.text for passage in found.passages] == ["a b", "c d"]


def test_groups_are_counted_apart(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("one two three four\n", encoding="utf-8")
    (tmp_path / "in.txt").write_text("zero one two three\n\nfour\n", encoding="utf-8")
    (tmp_path / "out.txt").write_text("five six\nseven\n", encoding="utf-8")
    test = Corpus.from_files([tmp_path / "in.txt", tmp_path / "out.txt"])
    found = find_overlap(Corpus.from_files(tmp_path / "train.txt"), test, n=2)
    first, second = found.groups
    assert (first.name, first.segments, first.contaminated_segments, first.ngrams, first.seen_ngrams) == ("in", 3, 2, 4, 3)
    assert (first.bytes, first.contaminated_bytes, first.ngram_bytes) == (25, 20, 20)  # all but "zero "
    assert (second.name, second.contaminated_segments, second.ngrams, second.seen_ngrams) == ("out", 0, 2, 0)
    assert first.ngram_share == 0.75
    assert sum(group.contaminated_bytes for group in found.groups) == found.contaminated_bytes


def test_contaminated_bytes_are_those_of_runs_and_of_whole_duplicates(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("new\n  one two \n\n three\nfour five\n", encoding="utf-8")
    (tmp_path / "out.txt").write_text("\n six\nseven\n\n", encoding="utf-8")
    (tmp_path / "train.txt").write_text(" three\nx four five y\nseven\n  one two \n", encoding="utf-8")
    test = Corpus.from_files([tmp_path / "in.txt", tmp_path / "out.txt"])
    found = find_overlap(Corpus.from_files(tmp_path / "train.txt"), test, n=2)
    # "one two" and "four five" are runs, "three" and "seven" duplicates; the last blank line has no other side.
    assert found.segment_contaminated_bytes.tolist() == [0, 11, 1, 7, 10, 0, 0, 6, 1]
    assert found.segment_ngram_bytes.tolist() == [0, 7, 0, 0, 10, 0, 0, 0, 0]
    assert [(group.contaminated_bytes, group.ngram_bytes) for group in found.groups] == [(29, 17), (7, 0)]
    assert (found.contaminated_bytes, found.ngram_bytes) == (36, 17)
    records = Corpus.from_strings(["  ", "a", "\t ", " ", "b", " ", "new", " ", "a", ""])
    found = find_overlap(Corpus.from_strings(["b", "a"]), records, n=2)
    assert found.segment_contaminated_bytes.tolist() == [2, 1, 2, 1, 1, 0, 0, 0, 1, 0]


def test_places_are_those_of_records_and_of_left_out_lines(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"text": "x"}\n\n{"text": "y\\n one two"}\n', encoding="utf-8")
    (tmp_path / "test.txt").write_bytes(b"z\n\xff bad\n  one two\n")
    train, test = Corpus.from_files(tmp_path / "train.jsonl"), Corpus.from_files(tmp_path / "test.txt", errors="skip")
    found = find_overlap(train, test, n=2)
    passage = found.passages[0]
    assert (passage.train.line, passage.train.byte) == (3, 3)
    assert (passage.test.line, passage.test.byte) == (3, 2)
    assert found.notes == ("test: 1 segment left out: not valid text",)


# -- folding ------------------------------------------------------------------------------------------------------------


def test_folding_ignores_case_and_punctuation_and_keeps_places() -> None:
    train = Corpus.from_strings(["It's a truth, UNIVERSALLY acknowledged; Élan"])
    test = Corpus.from_strings(["said: “Its a truth universally -- acknowledged élan!”"])
    assert find_overlap(train, test, n=4).longest_run == 0
    test = Corpus.from_strings(["said: “Its a truth universally -- acknowledged élan!”"])
    found = find_overlap(train, test, n=4, fold=True)
    assert found.longest_run == 6
    assert found.passages[0].text == "Its a truth universally -- acknowledged élan!”"


@given(st.lists(st.text(st.sampled_from("aB'’‘É ß,.—日İ😀𐐀\u212a\u3000"), max_size=8), min_size=1, max_size=4))
def test_folding_keeps_the_place_of_every_word(segments: list[str]) -> None:
    encoded = [segment.encode() for segment in segments]
    ends = np.cumsum([len(part) for part in encoded])
    starts = (ends - [len(part) for part in encoded]).astype(np.int64)
    folded = fold(np.frombuffer(b"".join(encoded), np.uint8), starts)
    assert len(folded) == ends[-1]
    assert fold(folded, starts).tobytes() == folded.tobytes()
    for part, start, end in zip(encoded, starts, ends, strict=True):
        text = folded[start:end].tobytes().decode()
        assert not set(text) & set("'’‘,.—\u3000BÉ")
        assert "".join(text.split()) == "".join(
            {"B": "b", "É": "é", "𐐀": "𐐨"}.get(c, c) for c in part.decode() if c not in "'’‘,.— \u3000😀"
        )
        begins = [
            len(text[:i].encode()) for i in range(len(text)) if not text[i].isspace() and (i == 0 or text[i - 1].isspace())
        ]
        assert all(folded[start + b] == part[b] or part[b] in b"B\xc3\xf0" for b in begins)


# -- clean text ---------------------------------------------------------------------------------------------------------


def test_write_clean_leaves_out_what_was_found(tmp_path: Path) -> None:
    lines = ["a b c d e f g h", "new words stand here", "", "short", "line"]
    (tmp_path / "test.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    train = Corpus.from_strings(["x a b c d e f g h", "short"])
    found = find_overlap(train, Corpus.from_files(tmp_path / "test.txt"), n=8)
    assert found.segment_contaminated.tolist() == [True, False, False, True, False]
    assert write_clean(found, tmp_path / "clean.txt") == 3
    assert (tmp_path / "clean.txt").read_bytes() == b"new words stand here\n\nline\n"
    with pytest.raises(UsageError, match="would replace what this command reads"):
        write_clean(found, tmp_path / "test.txt")


def test_write_clean_of_records_is_json_lines(tmp_path: Path) -> None:
    found = find_overlap(Corpus.from_strings(["one two"]), Corpus.from_strings(["one two", "über\nalles"]), n=2)
    assert write_clean(found, tmp_path / "clean.jsonl") == 1
    assert (tmp_path / "clean.jsonl").read_text(encoding="utf-8") == '{"text": "über\\nalles"}\n'


# -- odd input ----------------------------------------------------------------------------------------------------------


def test_texts_too_short_for_an_ngram_and_empty_ones() -> None:
    found = find_overlap(Corpus.from_strings(["a b"]), Corpus.from_strings(["a b c", "", " "]))
    assert (found.ngrams, found.contaminated_segments, found.blank_segments, found.passages) == (0, 0, 2, [])
    assert (found.ngram_share, found.contaminated_share) == (0.0, 0.0)
    found = find_overlap(Corpus.from_strings(["a b c"]), Corpus.from_strings(["a b c"]))
    assert (found.contaminated_share, found.ngram_share) == (1.0, 0.0)
    assert found.notes == ("no run of 13 words fits in the test: only whole duplicates were searched for",)
    found = find_overlap(Corpus.from_strings(["a"]), Corpus.from_strings([" "]))
    assert (found.tokens, found.contaminated_bytes) == (0, 0)
    with pytest.raises(InputError, match="the test text is empty"):
        find_overlap(Corpus.from_strings(["a"]), Corpus.from_strings([]))
    for train in ([], ["", " \t"]):
        for unit in ("word", "character"):
            with pytest.raises(InputError, match=f"the training text has no {unit}s"):
                find_overlap(Corpus.from_strings(train), Corpus.from_strings(["a b c"]), overlap_unit=unit)  # type: ignore[arg-type]


def test_text_without_spaces_is_said_to_be(data: Path) -> None:
    def notes(*test: str, unit: str = "word", n: int = 1) -> tuple[str, ...]:
        return find_overlap(Corpus.from_strings(["a"]), Corpus.from_strings(test), overlap_unit=unit, n=n).notes  # type: ignore[arg-type]

    said = ("most of the text has no spaces between words: --overlap-unit character compares it",)
    for name in ("pud.zh-Hant", "pud.th", "akutagawa.ja", "pud.en", "pud.de", "pud.ko", "pud.ar"):
        text = (data / f"{name}.txt").read_text(encoding="utf-8")
        assert (notes(text), name) == (said if name in ("pud.zh-Hant", "pud.th", "akutagawa.ja") else (), name)
        assert notes(text, unit="character") == ()
    assert notes("你好嗎我很好你呢") == notes("x" * 21) == said  # 8 characters of such a script, or 21 of any
    assert notes("你好嗎 我很好") == notes("donaudampfschiff fahrt") == notes("x" * 20) == ()


def test_options_out_of_range() -> None:
    def find(**options: object) -> Overlap:
        return find_overlap(Corpus.from_strings(["a"]), Corpus.from_strings(["a"]), **options)  # type: ignore[arg-type]

    for options, message in (
        ({"n": 0}, "n must be a whole number from 1"),
        ({"overlap_unit": "line"}, "one of word, character"),
        ({"passages": -1}, "passages must be a whole number, 0 or more"),
        ({"threads": 0}, "threads must be a whole number from 1 to 4,096"),
    ):
        with pytest.raises(UsageError, match=message):
            find(**options)


def test_repeats_do_not_take_quadratic_time(tmp_path: Path) -> None:
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    train.write_text("ha " * 300_000 + "\n", encoding="utf-8")
    test.write_text("ha " * 100_000 + "\n" + "ho ha\n" * 1000, encoding="utf-8")
    start = time.process_time()
    found = find_overlap(Corpus.from_files(train), Corpus.from_files(test), threads=1)
    assert time.process_time() - start < 5  # quadratic: minutes
    assert found.longest_run == 100_000
    assert found.passages[0].train.line == 1
    # "ha" many times, broken now and then: every position begins a long run.
    train.write_text(("ha " * 500 + "ho ") * 400 + "\n", encoding="utf-8")
    start = time.process_time()
    found = find_overlap(Corpus.from_files(train), Corpus.from_files(test), threads=1)
    assert time.process_time() - start < 5
    assert found.longest_run == 502  # the last words of the long line, and "ho ha" after it


def test_a_text_is_all_in_itself(data: Path) -> None:
    path = data / "classic-books.test.txt"
    found = find_overlap(Corpus.from_files(path), Corpus.from_files(path), threads=2)
    assert found.contaminated_bytes == found.bytes
    assert found.contaminated_segments == found.segments - found.blank_segments == found.whole_duplicates
    assert (found.longest_run, found.passage_count) == (found.tokens, 1)
    assert found.seen_ngrams == found.ngrams == found.tokens - 12


def test_planted_lines_are_found(data: Path, tmp_path: Path) -> None:
    test = (data / "classic-books.test.txt").read_text(encoding="utf-8").splitlines()
    train = (data / "classic-books.train.txt").read_text(encoding="utf-8").splitlines()
    long = [i for i, line in enumerate(test) if len(line.split()) >= 13][5:65:3]
    for k, i in enumerate(long):
        train.insert(37 * (k + 1), test[i])
    (tmp_path / "train.txt").write_text("\n".join(train) + "\n", encoding="utf-8")
    before = find_overlap(
        Corpus.from_files(data / "classic-books.train.txt"), Corpus.from_files(data / "classic-books.test.txt")
    )
    found = find_overlap(
        Corpus.from_files(tmp_path / "train.txt"), Corpus.from_files(data / "classic-books.test.txt"), passages=100
    )
    assert len(long) == 20
    assert before.segment_contaminated[long].sum() == 0
    assert found.segment_contaminated[long].all()
    assert found.segment_duplicate[long].all()
    assert {(p.test.line - 1, p.train.line - 1) for p in found.passages} >= {(i, 37 * (k + 1)) for k, i in enumerate(long)}


def test_short_lines_that_texts_of_a_kind_share_are_no_leak(tmp_path: Path) -> None:
    long = "a line that no two texts have by chance"
    (tmp_path / "train.txt").write_text(f"First Citizen:\n{long}\nother words\n", encoding="utf-8")
    (tmp_path / "test.txt").write_text(f"First Citizen:\n{long}\nquite other words\n", encoding="utf-8")
    found = find_overlap(Corpus.from_files(tmp_path / "train.txt"), Corpus.from_files(tmp_path / "test.txt"))
    assert found.whole_duplicates == 2
    assert found.contaminated_bytes == len("First Citizen:\n") + len(long) + 1
    assert found.long_contaminated_bytes == len(long) + 1
    runs = find_overlap(Corpus.from_files(tmp_path / "train.txt"), Corpus.from_files(tmp_path / "test.txt"), n=5)
    assert runs.long_contaminated_bytes == runs.contaminated_bytes  # a run goes through the short line
