"""Baselines: adaptive codes against twins that learn symbol by symbol, compressors against one call."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.evaluation.diagnosis.compressors import Baseline, Baselines, order_0_nats, unigram_nats, words_and_gaps
from lmgauge.text.documents import Corpus

TEXT = st.text("ab \n\t é中", max_size=60)


def baselines(corpus: Corpus, *, size: int | None = None, threads: int | None = None) -> tuple[Baseline, ...]:
    collector = Baselines(size, threads)
    for block in corpus:
        collector.add(block)
    return collector.finish()


def found(corpus: Corpus, **options: int) -> dict[str, float]:
    return {baseline.name: baseline.bits for baseline in baselines(corpus, **options)}


# --- adaptive codes -----------------------------------------------------------------------------------------------------


def krichevsky_trofimov(symbols: list[int], size: int) -> float:
    """Code length, one symbol after the other."""
    counts = [0.5] * size
    nats = 0.0
    for symbol in symbols:
        nats -= math.log(counts[symbol] / sum(counts))
        counts[symbol] += 1
    return nats


@given(st.lists(st.integers(0, 4), max_size=50))
def test_the_byte_model_learns_as_it_goes(symbols: list[int]) -> None:
    counts = np.bincount(np.array(symbols, np.int64), minlength=5)
    assert order_0_nats(counts) == pytest.approx(krichevsky_trofimov(symbols, 5), rel=1e-12, abs=1e-12)


@given(st.lists(st.sampled_from([b"a", b"bc", b"", b"bcd"]), max_size=40))
def test_the_word_model_learns_as_it_goes(words: list[bytes]) -> None:
    seen: Counter[bytes] = Counter()
    spelled: list[int] = []
    nats = 0.0
    for word in words:
        nats -= math.log((seen[word] or 1.0) / (seen.total() + 1))
        if not seen[word]:
            spelled += [*word, 256]
        seen[word] += 1
    assert unigram_nats(seen) == pytest.approx(nats + krichevsky_trofimov(spelled, 257), rel=1e-12, abs=1e-12)


@given(TEXT)
def test_words_and_gaps_are_all_there_is(text: str) -> None:
    (block,) = Corpus.from_strings([text])
    words, gaps = words_and_gaps(block, b"")
    assert words == text.encode().split()
    # As a decoder reads it: a gap opens each line, then word and gap take turns until a gap ends it.
    lines = text.encode().split(b"\n")
    expected = Counter[bytes]()
    for i, line in enumerate(lines):
        end = b"\0" if i == len(lines) - 1 else b"\n"
        rest = line
        while True:
            gap = rest[: len(rest) - len(rest.lstrip(b" \t"))]
            rest = rest[len(gap) :]
            if not rest:
                expected[gap + end] += 1
                break
            expected[gap] += 1
            rest = rest[len(rest.split(None, 1)[0]) :]
    assert Counter(gaps) == expected


def test_lines_end_in_their_newline(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"a  b\n\n c\n")
    (block,) = Corpus.from_files(tmp_path / "t.txt")
    words, gaps = words_and_gaps(block, b"a  b\n\n c\n")
    assert words == [b"a", b"b", b"c"]
    assert Counter(gaps) == Counter([b"", b"  ", b"\n", b"\n", b" ", b"\n"])


def test_the_word_model_beats_the_byte_model_on_natural_text(data: Path) -> None:
    bits = found(Corpus.from_files(data / "wikitext2.test.txt"))
    assert bits["unigram of words"] < bits["unigram of bytes"] < bits["uniform"]


# --- compressors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_bytes", [1 << 10, 1 << 20])
@pytest.mark.parametrize("threads", [1, 2])
def test_compressors_give_what_one_call_gives(data: Path, block_bytes: int, threads: int) -> None:
    file = data / "pud.de.txt"
    text = file.read_bytes()
    corpus = Corpus.from_files(file, block_bytes=block_bytes)
    bits = found(corpus, threads=threads, size=len(text))
    assert bits["bzip2 -9"] == 8 * len(bz2.compress(text, 9))
    assert bits["gzip -9"] == 8 * len(gzip.compress(text, 9, mtime=0))
    assert bits["xz -9e"] == pytest.approx(8 * len(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME)), abs=8 * 32)
    if "zstd -19" in bits:
        zstandard = pytest.importorskip("zstandard")
        assert bits["zstd -19"] == pytest.approx(8 * len(zstandard.compress(text, 19)), rel=0.01)
    assert bits["uniform"] == 8 * len(text)
    distinct = len(set(text))
    assert bits[f"uniform over {distinct} bytes"] == pytest.approx(math.log2(distinct) * len(text))


def test_the_cheapest_comes_first_and_per_byte_is_per_byte_of_the_text(data: Path) -> None:
    listed = baselines(Corpus.from_files(data / "pud.zh-Hant.txt"))
    size = (data / "pud.zh-Hant.txt").stat().st_size
    assert [b.bits for b in listed] == sorted(b.bits for b in listed)
    assert all(b.bits_per_byte == b.bits / size for b in listed)


def test_records_have_no_line_ends() -> None:
    bits = found(Corpus.from_strings(["ab", "cd\n", ""]))
    assert bits["uniform"] == 8 * 5
    assert bits["gzip -9"] == 8 * len(gzip.compress(b"abcd\n", 9, mtime=0))


def test_no_text_has_no_baselines() -> None:
    assert baselines(Corpus.from_strings([])) == ()
    assert baselines(Corpus.from_strings([""])) == ()


def test_one_repeated_byte_costs_next_to_nothing() -> None:
    bits = found(Corpus.from_strings(["a" * 10_000]))
    assert bits["uniform over 1 bytes"] == 0
    assert bits["unigram of bytes"] < 1000
