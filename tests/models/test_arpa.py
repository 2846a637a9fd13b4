"""ARPA files: what is written reads back and means the same to KenLM; what others write reads; what is damaged does not."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus, NgramModel, Vocabulary
from lmgauge.base.errors import ModelFileError, UsageError

BACK_OFF_KINDS = ("witten-bell", "absolute-discounting", "kneser-ney", "modified-kneser-ney", "good-turing")
LOG10 = 1e-5
ROUNDED = 2e-6  # nats: nine digits of log10, then float32


class ArpaTwin:
    """The back-off recursion over a plain ARPA file, as its definition has it: log10, dictionaries."""

    def __init__(self, text: str) -> None:
        self.probability: dict[tuple[str, ...], float] = {}
        self.weight: dict[tuple[str, ...], float] = {}
        order = 0
        for line in text.replace("\r", "").split("\n"):
            if line.startswith("\\") and line.endswith("-grams:"):
                order = int(line[1:-7])
            elif order and line.strip() and not line.startswith("\\"):
                fields = line.split()
                gram = tuple(fields[1 : order + 1])
                self.probability[gram] = float(fields[0])
                self.weight[gram] = float(fields[order + 1]) if len(fields) > order + 1 else 0.0
        self.order = max(map(len, self.probability))

    def log10(self, word: str, context: Sequence[str]) -> float:
        context = tuple(context[max(0, len(context) - self.order + 1) :])
        gram = (*context, word)
        if gram in self.probability:
            return self.probability[gram] if self.probability[gram] > -99 else -math.inf
        if not context:
            return self.log10("<unk>", ()) if ("<unk>",) in self.probability else -math.inf
        return self.weight.get(context, 0.0) + self.log10(word, context[1:])

    def score(self, words: Sequence[str]) -> list[float]:
        known = [word if (word,) in self.probability else "<unk>" for word in words]
        line = ["<s>", *known, "</s>"]
        return [self.log10(line[i], line[:i]) for i in range(1, len(line))]


def log10s(model: Any, lines: Sequence[str]) -> list[float]:
    batches = model.score(Corpus.from_strings(lines), threads=1)
    return [value / math.log(10) for batch in batches for value in batch.logprob.tolist()]


def written(model: NgramModel, folder: Path, name: str = "model.arpa") -> Path:
    lmgauge.models.write_arpa(model, folder / name)
    return folder / name


@pytest.fixture(scope="module")
def lines(data: Path) -> tuple[list[str], list[str]]:
    text = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")
    return text[:400], [*text[400:440], "", "unheard-of words", "First Citizen: unheard-of"]


# -- round trips --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"order": 1},
        {"order": 3},
        {"order": 5},
        {"order": 3, "vocabulary": "closed"},
        {"order": 3, "interpolate": False},
        {"order": 4, "cutoffs": (0, 0, 1)},
        {"order": 3, "min_count": 2},
        {"order": 4, "prune": 1e-5},
        {"order": 4, "prune": 1e-3, "interpolate": False},
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", BACK_OFF_KINDS)
def test_round_trip(lines: tuple[list[str], list[str]], tmp_path: Path, kind: Any, options: dict[str, Any]) -> None:
    train, test = lines
    model = lmgauge.train(kind, Corpus.from_strings(train), **options)
    path = written(model, tmp_path)
    read = lmgauge.models.read_arpa(path)
    assert read.types == model.types
    assert read.vocabulary.tokens == model.vocabulary.tokens
    assert read.vocabulary.closed == model.vocabulary.closed
    before, after = np.array(log10s(model, test)), np.array(log10s(read, test))
    assert np.array_equal(np.isinf(before), np.isinf(after))
    np.testing.assert_allclose(after[np.isfinite(after)], before[np.isfinite(before)], rtol=0, atol=ROUNDED)
    twin = ArpaTwin(path.read_text(encoding="utf-8"))
    np.testing.assert_allclose(before, [value for line in test for value in twin.score(line.split())], rtol=0, atol=ROUNDED)
    again = written(read, tmp_path, "again.arpa")
    assert again.read_bytes() == path.read_bytes()


def test_additive_unigrams_have_an_arpa_form_and_nothing_longer_has(tmp_path: Path) -> None:
    texts = ["a b a", "c"]
    unigrams = lmgauge.train("laplace", Corpus.from_strings(texts), order=1)
    read = lmgauge.models.read_arpa(written(unigrams, tmp_path))
    np.testing.assert_allclose(log10s(read, texts), log10s(unigrams, texts), atol=ROUNDED)
    for kind in ("mle", "laplace"):
        with pytest.raises(UsageError, match="does not back off"):
            lmgauge.models.write_arpa(lmgauge.train(kind, Corpus.from_strings(texts), order=2), tmp_path / "no.arpa")  # type: ignore[arg-type]
    stream = lmgauge.train("kneser-ney", Corpus.from_strings(texts), order=2, context="stream")
    with pytest.raises(UsageError, match="across lines"):
        lmgauge.models.write_arpa(stream, tmp_path / "no.arpa")
    assert not (tmp_path / "no.arpa").exists()


def test_zero_probability_is_minus_99(tmp_path: Path) -> None:
    model = lmgauge.train("mle", Corpus.from_strings(["a b a"]), order=1)
    path = written(model, tmp_path)
    assert "\n-99\t<unk>\n" in path.read_text()
    read = lmgauge.models.read_arpa(path)
    assert log10s(read, ["a zzz"])[1] == -math.inf
    assert log10s(read, ["a zzz"]) == pytest.approx(log10s(model, ["a zzz"]), abs=ROUNDED)


def test_gzip_by_name_and_by_content(lines: tuple[list[str], list[str]], tmp_path: Path) -> None:
    model = lmgauge.train("modified-kneser-ney", Corpus.from_strings(lines[0]), order=3)
    plain, packed = written(model, tmp_path), written(model, tmp_path, "model.arpa.gz")
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert packed.read_bytes() == written(model, tmp_path, "other.arpa.gz").read_bytes()  # no time stamp, no name
    misnamed = tmp_path / "packed.arpa"
    misnamed.write_bytes(packed.read_bytes())
    for path in (packed, misnamed):
        assert log10s(lmgauge.load_model(path), lines[1]) == log10s(lmgauge.models.read_arpa(plain), lines[1])


@pytest.mark.parametrize("tokenizer", ["character", "byte"])
@pytest.mark.parametrize("name", ["pud.en.txt", "pud.th.txt", "akutagawa.ja.txt"])
def test_characters_and_bytes(data: Path, tmp_path: Path, tokenizer: str, name: str) -> None:
    text = [*(data / name).read_text(encoding="utf-8").split("\n")[:30]]
    text += ["tab\there", "form\ffeed \u3000 \u00a0 \u0085 x", "<0x20>"]
    model = lmgauge.train("modified-kneser-ney", Corpus.from_strings(text), order=4, tokenizer=tokenizer)
    path = written(model, tmp_path)
    assert b" \t" not in path.read_bytes()
    read = lmgauge.models.read_arpa(path, tokenizer=tokenizer)
    assert read.vocabulary.tokens == model.vocabulary.tokens
    np.testing.assert_allclose(log10s(read, text), log10s(model, text), atol=ROUNDED)


def test_words_that_look_like_escapes_stay_words(tmp_path: Path) -> None:
    texts = ["<0x20> <0x41> a", "a <0x09>", "\\data\\ \\1-grams: \\end\\", "ngram 1=5", "-0.5 -1 1e5"]
    model = lmgauge.train("witten-bell", Corpus.from_strings(texts), order=3)
    read = lmgauge.models.read_arpa(written(model, tmp_path))
    assert read.vocabulary.tokens == model.vocabulary.tokens
    np.testing.assert_allclose(log10s(read, texts), log10s(model, texts), atol=ROUNDED)


@pytest.mark.parametrize(
    "text", [["a <s> b c", "b <s> a"], ["a </s> b", "</s> </s>"], ["a <unk> b", "<unk> zz b"]], ids=repr
)
def test_escaped_reserved_words_round_trip(tmp_path: Path, text: list[str]) -> None:
    """The text's own <s> is the word <<s>>; the file's <s> is the beginning of a sentence. They must not be mixed up."""
    model = lmgauge.train("modified-kneser-ney", Corpus.from_strings(text * 3), order=3, reserved="escape")
    read = lmgauge.models.read_arpa(written(model, tmp_path))
    assert read.types == model.types
    assert read.vocabulary.tokens == model.vocabulary.tokens
    for context in ([1], [1, 3], [3, 4], [4, 3], [5], [2]):
        a, b = model.log_distribution(context), read.log_distribution(context)
        np.testing.assert_allclose(np.exp(a), np.exp(b), atol=1e-6)


def test_escaped_words_survive_with_unknown_words_beside_them(tmp_path: Path) -> None:
    texts = ["a <unk> b a <unk>", "a rare b", "<unk> a seldom"]
    model = lmgauge.train("witten-bell", Corpus.from_strings(texts), order=3, reserved="escape", min_count=2)
    read = lmgauge.models.read_arpa(written(model, tmp_path))
    assert read.types == model.types
    for context in ([1], [0], [3, 0], [4, 3]):
        a, b = model.log_distribution(context), read.log_distribution(context)
        np.testing.assert_allclose(np.exp(a), np.exp(b), atol=1e-6)


# -- KenLM as oracle ----------------------------------------------------------------------------------------------------


def kenlm_log10s(path: Path, lines: Sequence[str]) -> list[float]:
    kenlm = pytest.importorskip("kenlm")
    model = kenlm.Model(str(path))
    return [score for line in lines for score, _, _ in model.full_scores(line, bos=True, eos=True)]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("modified-kneser-ney", {"order": 5}),
        ("modified-kneser-ney", {"order": 3, "prune": 1e-5}),
        ("kneser-ney", {"order": 2, "interpolate": False}),
        ("witten-bell", {"order": 4, "cutoffs": (0, 0, 1)}),
        ("good-turing", {"order": 3, "min_count": 2}),
        ("absolute-discounting", {"order": 3, "vocabulary": "closed"}),
    ],
    ids=repr,
)
def test_kenlm_agrees_on_what_we_wrote(
    lines: tuple[list[str], list[str]], tmp_path: Path, kind: Any, options: dict[str, Any]
) -> None:
    train, test = lines
    if "vocabulary" in options:  # KenLM gives unknown words of its own accord a probability
        words = set(" ".join(train).split())
        test = [" ".join(word for word in line.split() if word in words) for line in test]
    model = lmgauge.train(kind, Corpus.from_strings(train), **options)
    theirs = kenlm_log10s(written(model, tmp_path), test)
    np.testing.assert_allclose(log10s(model, test), theirs, rtol=0, atol=LOG10)
    ours = lmgauge.evaluate(model, Corpus.from_strings(test))
    assert ours.perplexity == pytest.approx(10 ** -(math.fsum(theirs) / len(theirs)), rel=LOG10)


def test_kenlm_agrees_on_characters(data: Path, tmp_path: Path) -> None:
    text = (data / "pud.en.txt").read_text(encoding="utf-8").split("\n")[:40]
    model = lmgauge.train("modified-kneser-ney", Corpus.from_strings(text), order=5, tokenizer="character")
    path = written(model, tmp_path)
    spaced = [" ".join("<0x20>" if c == " " else c for c in line) for line in text]
    np.testing.assert_allclose(log10s(model, text), kenlm_log10s(path, spaced), rtol=0, atol=LOG10)


def test_we_agree_with_kenlm_on_what_it_wrote(data: Path, tmp_path: Path) -> None:
    """tests/data/kenlm3.arpa.gz is by `lmplz`, see the page there."""
    packed = data / "kenlm3.arpa.gz"
    plain = tmp_path / "kenlm3.arpa"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    model = lmgauge.load_model(packed)
    test = (data / "classic-books.test.txt").read_text(encoding="utf-8").split("\n")[:40]
    test += (data / "classic-books.train.txt").read_text(encoding="utf-8").split("\n")[:20]
    ours = log10s(model, test)
    twin = ArpaTwin(plain.read_text(encoding="utf-8"))
    np.testing.assert_allclose(ours, [v for line in test for v in twin.score(line.split())], rtol=0, atol=ROUNDED)
    theirs = kenlm_log10s(plain, test)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=LOG10)
    evaluation = lmgauge.evaluate(model, Corpus.from_strings(test))
    assert evaluation.perplexity == pytest.approx(10 ** -(math.fsum(theirs) / len(theirs)), rel=LOG10)


# -- files by others ----------------------------------------------------------------------------------------------------

SRILM = """\

\\data\\
ngram 1=6
ngram 2=5
ngram 3=3

\\1-grams:
-0.6020600\t</s>
-99\t<s>\t-0.3010300
-0.7000000\ta\t-0.2500000
-0.8000000\tb\t-0.1500000
-0.9000000\tc
-1.2000000\td\t0.1000000

\\2-grams:
-0.4000000\t<s> a\t-0.0500000
-0.5000000\ta b\t-0.1200000
-0.3500000\tb c\t0
-0.4500000\td a
-0.2000000\tc </s>

\\3-grams:
-0.1500000\t<s> a b
-0.2500000\ta b c
-0.3000000\td a d

\\end\\
"""
SENTENCES = ["a b c", "d a d", "a b c d a d b", "b", "", "c c c", "a zzz b"]


def read_text(folder: Path, text: str | bytes) -> NgramModel:
    path = folder / "file.arpa"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return lmgauge.models.read_arpa(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t,
        lambda t: t.replace("\t", " "),
        lambda t: t.replace("\t", "  \t "),
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t.replace("ngram 1=6", "ngram  1 = 6"),
        lambda t: t.removesuffix("\n"),
        lambda t: "some notes\nof the author\n" + t,
        lambda t: t + "\nanything behind the end\n",
        lambda t: t.replace("-99\t<s>", "-inf\t<s>"),
        lambda t: "\ufeff" + t,
        lambda t: "\ufeff\n" + t,
        lambda t: t.replace("-0.7000000", "-7e-1").replace("-0.8000000", "-.8"),
    ],
    ids=[
        "plain", "spaces", "mixed", "crlf", "header", "no-newline", "preamble", "appendix", "inf", "bom", "bom-line",
        "exponents",
    ],
)  # fmt: skip
def test_srilm_style_files_read(tmp_path: Path, change: Callable[[str], str]) -> None:
    """SRILM leaves out back-off weights of zero and n-grams that longer ones end in (here "a d")."""
    model = read_text(tmp_path, change(SRILM))
    assert model.types == [5, 5, 3]  # a, b, c, d and </s>; <s> is no event
    assert model.vocabulary.closed
    twin = [value for line in SENTENCES for value in ArpaTwin(SRILM).score(line.split())]
    np.testing.assert_allclose(log10s(model, SENTENCES), twin, rtol=0, atol=ROUNDED)
    assert any("missing in the file" in note for note in model.record.notes)


def test_kenlm_agrees_on_an_srilm_style_file(tmp_path: Path) -> None:
    text = SRILM.replace("ngram 1=6", "ngram 1=7").replace("-99\t<s>", "-2\t<unk>\n-99\t<s>")
    model = read_text(tmp_path, text)
    np.testing.assert_allclose(log10s(model, SENTENCES), kenlm_log10s(tmp_path / "file.arpa", SENTENCES), rtol=0, atol=LOG10)


CAPITALS = (
    SRILM.replace("ngram 1=6", "ngram 1=7").replace("ngram 2=5", "ngram 2=7")
    .replace("-99\t<s>", "-2\t<UNK>\t-0.3\n-99\t<s>").replace("-0.3500000\tb c", "-0.6\ta <UNK>\n-0.7\t<UNK> b\n-0.35\tb c")
)  # fmt: skip


def test_the_unknown_word_in_capitals_is_the_unknown_word(tmp_path: Path) -> None:
    """As KenLM has it; other toolkits write it so."""
    model = read_text(tmp_path, CAPITALS)
    assert not model.vocabulary.closed
    assert "<UNK>" not in model.vocabulary
    assert [note for note in model.record.notes if "<UNK>" in note] == [
        "the file calls the unknown word <UNK>; here it is <unk>"
    ]
    sentences = [*SENTENCES, "a <UNK> b", "<UNK>"]
    found = log10s(model, sentences)
    assert min(found) > -10
    np.testing.assert_allclose(found, kenlm_log10s(tmp_path / "file.arpa", sentences), rtol=0, atol=LOG10)
    assert log10s(read_text(tmp_path, CAPITALS.replace("<UNK>", "<unk>")), sentences) == found


def test_beside_the_unknown_word_capitals_are_a_word(tmp_path: Path) -> None:
    both = SRILM.replace("ngram 1=6", "ngram 1=8").replace("-99\t<s>", "-2\t<unk>\n-3\t<UNK>\n-99\t<s>")
    model = read_text(tmp_path, both)
    assert "<UNK>" in model.vocabulary
    assert not any("<UNK>" in note for note in model.record.notes)


def test_what_was_missing_is_not_written(tmp_path: Path) -> None:
    model = read_text(tmp_path, SRILM)
    again = written(model, tmp_path, "again.arpa").read_text()
    before, after = ArpaTwin(SRILM), ArpaTwin(again)
    assert after.probability.keys() == before.probability.keys()
    for gram, value in before.probability.items():
        assert gram == ("<s>",) or after.probability[gram] == pytest.approx(value, abs=ROUNDED)
        assert after.weight[gram] == pytest.approx(before.weight[gram], abs=ROUNDED)


def test_an_empty_order_and_a_missing_beginning_of_sentence(tmp_path: Path) -> None:
    text = "\\data\\\nngram 1=2\nngram 2=0\n\n\\1-grams:\n-0.3 a\n-0.3 </s>\n\n\\2-grams:\n\n\\end\\\n"
    assert log10s(read_text(tmp_path, text), ["a"]) == pytest.approx([-0.3, -0.3], abs=ROUNDED)


# -- damage -------------------------------------------------------------------------------------------------------------

DAMAGE: list[tuple[str, Callable[[str], str], str]] = [
    ("empty", lambda t: "", "not an ARPA file"),
    ("no data", lambda t: t.replace("\\data\\", "data"), "not an ARPA file"),
    ("no header", lambda t: t.split("ngram 1")[0], "header|ends"),
    ("count too small", lambda t: t.replace("ngram 1=6", "ngram 1=5"), r"line \d+"),
    ("count too large", lambda t: t.replace("ngram 1=6", "ngram 1=7"), r"line \d+.*header promises"),
    ("absurd count", lambda t: t.replace("ngram 1=6", "ngram 1=999999999999999999"), r"line \d+"),
    ("absurd count, last", lambda t: t.replace("ngram 3=3", "ngram 3=999999999999999999"), r"line \d+"),
    ("count of 100 digits", lambda t: t.replace("ngram 3=3", "ngram 3=" + "9" * 100), r"line \d+"),
    ("negative count", lambda t: t.replace("ngram 3=3", "ngram 3=-3"), r"line \d+"),
    ("no unigrams", lambda t: t.replace("ngram 1=6", "ngram 1=0"), r"line \d+"),
    ("last count too small", lambda t: t.replace("ngram 3=3", "ngram 3=2"), r"line \d+.*end"),
    ("last count too large", lambda t: t.replace("ngram 3=3", "ngram 3=4"), r"line \d+"),
    ("order missing in header", lambda t: t.replace("ngram 2=5\n", ""), r"line \d+"),
    ("order twice in header", lambda t: t.replace("ngram 2=5\n", "ngram 2=5\nngram 2=5\n"), r"line \d+"),
    ("order too many in header", lambda t: t.replace("ngram 3=3\n", "ngram 3=3\nngram 4=1\n"), r"line \d+"),
    ("section missing", lambda t: t.split("\\2-grams:")[0] + "\\3-grams:" + t.split("\\3-grams:")[1], r"line \d+.*2-grams"),
    ("sections swapped", lambda t: t.replace("\\2-grams:", "\\9-grams:"), r"line \d+"),
    ("nan", lambda t: t.replace("-0.5000000", "nan"), r"line 17.*out of range|line 17.*cannot be read"),
    ("nan weight", lambda t: t.replace("-0.1200000", "nan"), "line 17"),
    ("positive", lambda t: t.replace("-0.5000000", "0.5"), "line 17.*out of range"),
    ("infinite weight", lambda t: t.replace("-0.1200000", "inf"), "line 17"),
    ("huge weight", lambda t: t.replace("-0.1200000", "300"), "line 17"),
    ("text for a number", lambda t: t.replace("-0.5000000", "half"), "line 17.*cannot be read"),
    ("hexadecimal", lambda t: t.replace("-0.5000000", "-0x1p-1"), "line 17.*cannot be read"),
    ("comma", lambda t: t.replace("-0.5000000", "-0,5"), "line 17.*cannot be read"),
    ("too few words", lambda t: t.replace("\ta b\t", "\ta\t"), r"line \d+"),
    ("too many words", lambda t: t.replace("\ta b\t", "\ta b c d\t"), "line 17"),
    ("unknown word", lambda t: t.replace("\ta b\t", "\ta q\t"), r"line \d+.*'q'"),
    ("unknown context", lambda t: t.replace("\ta b c", "\tq b c"), r"line \d+.*'q'"),
    ("unigram twice", lambda t: t.replace("\tc\n", "\tb\n"), r"line \d+.*twice"),
    ("special twice", lambda t: t.replace("\tc\n", "\t</s>\n"), r"line \d+.*twice"),
    ("bigram twice", lambda t: t.replace("\tb c\t", "\ta b\t"), r"line \d+.*twice"),
    ("trigram twice", lambda t: t.replace("\td a d", "\ta b c"), r"line \d+.*twice"),
    ("no end of sentence", lambda t: t.replace("</s>", "e"), r"</s>"),
    ("no end", lambda t: t.replace("\\end\\\n", ""), r"line \d+"),
    ("blank line inside", lambda t: t.replace("-0.5000000", "\n-0.5000000"), r"line \d+"),
    ("too small", lambda t: t.replace("-0.5000000", "-60"), r"line \d+"),
    ("absurd weights", lambda t: t.replace("\ta\t-0.2500000", "\ta\t30"), r"line \d+"),
]


@pytest.mark.parametrize(("name", "change", "message"), DAMAGE, ids=[name for name, _, _ in DAMAGE])
def test_damage_is_an_error_with_its_line(tmp_path: Path, name: str, change: Callable[[str], str], message: str) -> None:
    assert change(SRILM) != SRILM
    with pytest.raises(ModelFileError, match=message) as raised:
        read_text(tmp_path, change(SRILM))
    assert str(raised.value).startswith(str(tmp_path / "file.arpa"))
    assert "\n" not in str(raised.value)


def test_the_line_of_an_unknown_word_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"line 17: .*'q'"):
        read_text(tmp_path, SRILM.replace("\ta b\t", "\ta q\t"))


def test_a_file_that_was_cut_off_anywhere_is_an_error(tmp_path: Path) -> None:
    whole = SRILM.encode()
    for size in range(len(whole) - 2):
        with pytest.raises(ModelFileError):
            read_text(tmp_path, whole[:size])


def test_a_flipped_bit_never_breaks_more_than_the_file(tmp_path: Path) -> None:
    """Text has no checksum, so a flip can make another valid model; it must be one, or an error."""
    whole = SRILM.encode()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << (position % 8)
        try:
            values = np.array(log10s(read_text(tmp_path, bytes(damaged)), SENTENCES))
        except ModelFileError:  # when it is read, or when a probability comes out above one
            continue
        assert not np.isnan(values).any()


def test_invalid_utf8_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"line \d+.*UTF-8"):
        read_text(tmp_path, SRILM.encode().replace(b"\tc\n", b"\t\xff\n"))


def test_damaged_gzip_is_an_error(tmp_path: Path) -> None:
    whole = gzip.compress(SRILM.encode() * 20, mtime=0)
    path = tmp_path / "file.arpa.gz"
    pieces = [whole[:20], whole[:-9], whole[:-1], whole[: len(whole) // 2], whole[:2]]
    pieces.append(whole[:40] + b"\xff" * 40 + whole[80:])
    for piece in pieces:
        path.write_bytes(piece)
        with pytest.raises(ModelFileError):
            lmgauge.models.read_arpa(path)
        with pytest.raises(ModelFileError):
            lmgauge.load_model(path)


def test_a_long_line_and_a_binary_file_are_errors(tmp_path: Path) -> None:
    for text in (b"x" * 3_000_000, bytes(range(256)) * 100, b"\\data\\\n" + b"y" * 1_000_000, b"\n" * 100_000):
        with pytest.raises(ModelFileError):
            read_text(tmp_path, text)


def test_a_line_without_end_is_refused_before_memory_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmgauge.models.ngram import arpa_reader

    monkeypatch.setattr(arpa_reader, "READ_BYTES", 1000)
    monkeypatch.setattr(arpa_reader, "MAX_LINE_BYTES", 5000)
    endless = b"x" * 100_000
    head, words = SRILM.encode().split(b"-0.9000000")
    for text, line in (
        (endless, 1),
        (b"\\data\\\n" + endless, 2),
        (head + endless + words, 12),
        (SRILM.encode().removesuffix(b"\\end\\\n") + endless, 27),
    ):
        with pytest.raises(ModelFileError, match=rf"line {line}: the line has more than 5,000 bytes"):
            read_text(tmp_path, text)


def test_a_million_blank_lines_take_no_time_to_speak_of(tmp_path: Path) -> None:
    """Each used to copy all that followed: this took minutes."""
    blank = "\n" * 1_000_000
    model = read_text(tmp_path, SRILM.replace("\\data\\\n", "\\data\\\n" + blank).replace("\\end", blank + "\\end"))
    assert model.types == [5, 5, 3]


def test_orders_beyond_reason_are_an_error(tmp_path: Path) -> None:
    orders = 400
    header = "\\data\\\nngram 1=2\n" + "".join(f"ngram {k}=0\n" for k in range(2, orders + 1))
    sections = "\n\\1-grams:\n-0.3 a\n-0.3 </s>\n" + "".join(f"\n\\{k}-grams:\n" for k in range(2, orders + 1))
    with pytest.raises(ModelFileError, match="has n-grams up to order 400; orders up to 64 can be read"):
        read_text(tmp_path, header + sections + "\n\\end\\\n")


def test_pieces_of_any_size_give_the_same_model(
    lines: tuple[list[str], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lmgauge.models.ngram import arpa_reader, arpa_writer

    model = lmgauge.train("modified-kneser-ney", Corpus.from_strings(lines[0][:60]), order=3)
    path = written(model, tmp_path)
    expected = lmgauge.models.read_arpa(path).fingerprint
    for size in (7, 64, 1000, 4099):
        monkeypatch.setattr(arpa_reader, "READ_BYTES", size)
        assert lmgauge.models.read_arpa(path).fingerprint == expected
    for rows in (1, 7, 100):
        monkeypatch.setattr(arpa_writer, "_WRITE_ROWS", rows)
        assert written(model, tmp_path, "again.arpa").read_bytes() == path.read_bytes()


def test_ngrams_come_in_a_fixed_order(lines: tuple[list[str], list[str]], tmp_path: Path) -> None:
    """By the ids of their words, from the first on: the same file from any number of threads."""
    kept = b""
    for threads in (1, 2, 5):
        model = lmgauge.train("kneser-ney", Corpus.from_strings(lines[0]), order=3, threads=threads)
        path = written(model, tmp_path)
        kept = kept or path.read_bytes()
        assert path.read_bytes() == kept
    section = path.read_text(encoding="utf-8").split("\\3-grams:\n")[1].split("\n\n")[0].split("\n")
    ids = [tuple(model.vocabulary.id(word) for word in line.split("\t")[1].split(" ")) for line in section]
    assert all(a < b for a, b in pairwise(ids))


def test_unigrams_that_do_not_sum_to_one_are_told(tmp_path: Path) -> None:
    lines = ["\\data\\", "ngram 1=4", "", "\\1-grams:", "-0.1 <unk>", "-99 <s>", "-0.1 </s>", "-0.1 a", "", "\\end\\", ""]
    (tmp_path / "m.arpa").write_text("\n".join(lines))
    model = lmgauge.models.read_arpa(tmp_path / "m.arpa")
    assert any("sum to 2.383, not to 1" in note for note in model.record.notes)  # 3 * 10**-0.1


def test_probabilities_above_one_are_told_with_the_file(tmp_path: Path) -> None:
    """Only where a weight meets a probability it does not belong to; the file is read until then."""
    model = read_text(tmp_path, SRILM.replace("\ta\t-0.2500000", "\ta\t0.9"))
    with pytest.raises(ModelFileError, match=rf"^{tmp_path}/file.arpa: gives an event the probability 1\.\d+: its back-off"):
        log10s(model, ["a a"])
    model = read_text(tmp_path, SRILM.replace("\ta\t-0.2500000", "\ta\t0.6020603"))  # above one by rounding alone
    assert log10s(model, ["b a"])[-1] == 0
    assert model.log_distribution([model.vocabulary.id("a")]).max() == 0


def test_tokens_with_blanks_have_no_arpa_form(tmp_path: Path) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(["a b"]), order=1)
    strange = NgramModel(model.tables, Vocabulary.from_tokens(["a", "b c"]), model.tokenizer, model.settings)
    with pytest.raises(UsageError, match="white space"):
        lmgauge.models.write_arpa(strange, tmp_path / "m.arpa")
    assert list(tmp_path.iterdir()) == []


def test_zero_as_the_cmu_toolkit_writes_it_and_a_long_comment(tmp_path: Path) -> None:
    plain = read_text(tmp_path, SRILM)
    other = read_text(tmp_path, "# made by hand\n" * 800 + SRILM.replace("-99\t<s>", "-98.9031\t<s>"))
    assert other.fingerprint == plain.fingerprint
    assert lmgauge.load_model(tmp_path / "file.arpa").fingerprint == plain.fingerprint
