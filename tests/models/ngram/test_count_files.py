"""Counts of n-grams as files: what stands in them, that a model of them is that of the text, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import InputError, LmgaugeError, UsageError
from lmgauge.models import count_ngrams

LINES = ["the cat sat", "a cat sat", "the cat", "", "a"]
BIGRAMS = """<s>\t5
</s>\t5
the\t2
cat\t3
sat\t2
a\t2
<s> </s>\t1
<s> the\t2
<s> a\t2
the cat\t2
cat </s>\t1
cat sat\t2
sat </s>\t2
a </s>\t1
a cat\t1
"""


def count(lines: list[str], file: Path, **options: Any) -> Path:
    count_ngrams(Corpus.from_strings(lines), output=file, **options)
    return file


def alike(one: NgramModel, other: NgramModel) -> bool:
    return one.fingerprint == other.fingerprint and one.record.discounts == other.record.discounts


def test_lines_are_those_of_srilm(tmp_path: Path) -> None:
    assert count(LINES, tmp_path / "counts.tsv", order=2).read_text(encoding="utf-8") == BIGRAMS
    counts = count_ngrams(Corpus.from_strings(LINES), output=tmp_path / "counts.tsv.gz", order=2)
    assert gzip.decompress((tmp_path / "counts.tsv.gz").read_bytes()).decode() == BIGRAMS
    assert (counts.ngrams, counts.events, counts.segments) == ((6, 9), 14, 5)


def test_words_that_are_left_out_are_unknown(tmp_path: Path) -> None:
    lines = count(LINES, tmp_path / "counts", order=2, min_count=3).read_text(encoding="utf-8").splitlines()
    assert lines == [
        *("<unk>\t6", "<s>\t5", "</s>\t5", "cat\t3"),
        *("<unk> </s>\t3", "<unk> cat\t3", "<s> <unk>\t4", "<s> </s>\t1", "cat <unk>\t2", "cat </s>\t1"),
    ]
    assert alike(
        lmgauge.train("witten-bell", counts=tmp_path / "counts", order=2),
        lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2, min_count=3),
    )


@pytest.mark.parametrize("ending", ["", ".zst", ".xz", ".bz2"])
def test_a_model_of_counts_is_that_of_the_text(tmp_path: Path, ending: str) -> None:
    file = count(LINES, tmp_path / f"counts.tsv{ending}")
    stages: list[str] = []
    model = lmgauge.train("modified-kneser-ney", counts=file, progress=stages.append)
    assert any("estimating" in stage for stage in stages)
    assert alike(model, lmgauge.train("modified-kneser-ney", Corpus.from_strings(LINES)))
    assert model.record.training.keys() == {"counts_sha256", "segments", "events"}
    # a line of a longer order, whose words are seen nowhere else
    lines = tmp_path / "lines"
    lines.write_text(f"x y z\t1\n{BIGRAMS}x y z\t1\n", encoding="utf-8")
    expected = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2)
    assert alike(lmgauge.train("witten-bell", counts=lines, order=2), expected)
    # a longer order than is asked for, and words that are not in the list
    assert alike(
        lmgauge.train("good-turing", counts=file, order=2, words=["cat", "dog"]),
        lmgauge.train("good-turing", Corpus.from_strings(LINES), order=2, words=["cat", "dog"]),
    )


def test_order_of_lines_does_not_matter_but_for_the_numbers_of_words(tmp_path: Path) -> None:
    file = count(LINES, tmp_path / "counts")
    expected = lmgauge.train("kneser-ney", counts=file)
    file.write_bytes(b"".join(sorted(file.read_bytes().splitlines(keepends=True))))
    model = lmgauge.train("kneser-ney", counts=file)
    assert model.types == expected.types
    for words in LINES:
        assert model.score_text(words).log_probability == expected.score_text(words).log_probability


def test_counts_of_two_texts_add_up(tmp_path: Path) -> None:
    file = count(LINES[:2], tmp_path / "counts")
    file.write_bytes(file.read_bytes() + count(LINES[2:], tmp_path / "rest").read_bytes())
    assert alike(lmgauge.train("witten-bell", counts=file), lmgauge.train("witten-bell", Corpus.from_strings(LINES)))


def test_google_form(tmp_path: Path) -> None:
    folder = count(LINES, tmp_path / "counts", google=True)
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
    assert files == ["1gms/vocab.gz", "2gms/2gm-0000.gz", "2gms/2gm.idx", "3gms/3gm-0000.gz", "3gms/3gm.idx"]
    bigrams = gzip.decompress((folder / "2gms/2gm-0000.gz").read_bytes()).splitlines()
    assert bigrams == sorted(line.encode() for line in BIGRAMS.splitlines() if " " in line)
    assert (folder / "2gms/2gm.idx").read_bytes() == b"2gm-0000.gz\t<s> </s>\n"
    model, expected = lmgauge.train("kneser-ney", counts=folder), lmgauge.train("kneser-ney", Corpus.from_strings(LINES))
    values = [np.exp(one.log_distribution(one.vocabulary.ids(["<s>", "the"]))) for one in (model, expected)]
    for word in expected.vocabulary:
        assert values[0][model.vocabulary.id(word)] == values[1][expected.vocabulary.id(word)]
    with pytest.raises(InputError, match="4gms/4gm-"):
        lmgauge.train("kneser-ney", counts=folder, order=4)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(InputError, match="not written by lmgauge"):
        count(LINES, tmp_path / "other", google=True)


def test_counts_within_memory_are_the_same(tmp_path: Path) -> None:
    count(LINES, tmp_path / "counts", memory="1G", threads=1, tokenizer="character")
    assert (tmp_path / "counts").read_bytes() == count(LINES, tmp_path / "all", tokenizer="character").read_bytes()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["all", "counts"]
    assert "<0x20>" in (tmp_path / "all").read_text(encoding="utf-8")
    for unit in ("character", "byte"):
        model = lmgauge.train("witten-bell", counts=count(LINES, tmp_path / "all", tokenizer=unit), tokenizer=unit)
        assert alike(model, lmgauge.train("witten-bell", Corpus.from_strings(LINES), tokenizer=unit))


@pytest.mark.parametrize(
    "line",
    ["a cat", "a cat\t-1", "a cat\t2.5", "a cat\t0", "a cat\t1" + 18 * "0", "a  cat\t3", " a\t2", "\t5", "", "a\x0bcat\t1"],
)
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "counts").write_text(f"{BIGRAMS}{line}\na\t1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"counts, line 16: a line has words with one blank .* got '"):
        lmgauge.train("witten-bell", counts=tmp_path / "counts", order=2)


@pytest.mark.parametrize(
    ("left_out", "put_in", "options", "said"),
    [
        ("cat sat\t2\n", "", {}, "'sat' has the count 2, but the 2-grams that end in it have 0 in all: a cut-off"),
        (
            "",
            "the cat\t2\n",
            {},
            "'cat' has the count 3, but the 2-grams that end in it have 5 in all: a cut-off, or a repeated",
        ),
        ("", "dog cat\t1\n", {}, "'cat' has the count 3, but"),
        ("", "a <s>\t1\n", {}, "'<s>' has the count 5, but the 2-grams that end in it have 1 in all"),
        ("", "", {"order": 3}, "3-grams that end in it have 0 in all: a lower --order"),
        ("", "dog cat sat\t1\n", {"order": 3}, "'dog cat' is part of longer n-grams, but is not counted"),
        (
            "",
            "a cat\t5000000000\n",
            {},
            "'a cat' has the count 5,000,000,001; those of two words and more end at 2\\^32",
        ),
        ("<s>\t5\n", "", {}, "counts of <s> and </s> are 0 and 5"),
        ("", "", {"eos": False}, "--context sentence and --no-eos"),
        ("", "", {"context": "stream"}, "--context stream and --eos"),
        ("<s>\t5\n", "<s>\t4\n", {}, "counts of <s> and </s> are 4 and 5"),
        ("", "", {"words": ["cat"], "vocabulary": "closed"}, "a closed vocabulary must hold every word"),
        (BIGRAMS, "", {}, "counts: has no counts of single words"),
        (BIGRAMS, "a cat\t1\n", {}, "counts: has no counts of single words"),
        ("", "", {"tokenizer": "character"}, "'the' is not a character: leave out --tokenizer character"),
        ("", "", {"tokenizer": "byte"}, "'the' is not a byte: leave out --tokenizer byte"),
    ],
)
def test_counts_that_do_not_suffice_are_refused(
    tmp_path: Path, left_out: str, put_in: str, options: dict[str, Any], said: str
) -> None:
    (tmp_path / "counts").write_text(BIGRAMS.replace(left_out, "", 1) + put_in, encoding="utf-8")
    with pytest.raises(LmgaugeError, match=said):
        lmgauge.train("witten-bell", counts=tmp_path / "counts", **{"order": 2} | options)


def test_options_about_texts_are_refused(tmp_path: Path) -> None:
    file = count(LINES, tmp_path / "counts")
    beside: list[dict[str, Any]] = [{"field": "body"}, {"texts": Corpus.from_strings(LINES)}, {"vocabulary": "spelled"}]
    for options in (*beside, {"memory": "2G", "output": tmp_path / "model"}):
        with pytest.raises(UsageError, match="in place of a text, and in memory"):
            lmgauge.train("witten-bell", counts=file, **options)
    with pytest.raises(UsageError, match="nothing to train on"):
        lmgauge.train("witten-bell")
    with pytest.raises(UsageError, match="would replace"):
        lmgauge.train("witten-bell", counts=file, output=file)
    with pytest.raises(UsageError, match=r"packed as \.gz, "):
        count(LINES, tmp_path / "counts.zip")
    with pytest.raises(UsageError, match="an open one"):
        count(LINES, tmp_path / "closed", vocabulary="closed")
