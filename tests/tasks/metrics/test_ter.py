"""TER against sacreBLEU, count for count and digit for digit, and the words around the number."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.golden.task_rows import BOTH, ONE, SYSTEM
from tests.golden.task_rows import TER as TER_OF_THE_README

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.tasks.metrics.compiled import LENGTH_SCALE
from lmgauge.tasks.metrics.ter import TER, TerScore, ter_scores, tercom
from lmgauge.tasks.settings import TerOptions
from lmgauge.tasks.texts import References, Texts

NAMES = ("normalized", "no_punct", "asian_support", "case_sensitive")
GRID = [dict(zip(NAMES, chosen, strict=True)) for chosen in product([False, True], repeat=4)]


def measured(metric: TER, hypotheses: list[str], references: list[list[str]], **options: Any) -> TerScore:
    """`references`: those of each segment."""
    packed = References.of_lists(references)
    packed = packed.with_texts(metric.prepared_references(packed.texts))
    sums = metric.statistics(metric.prepared(Texts.of_strings(hypotheses)), packed).sum(axis=0)
    return metric.score(sums, packed.count, **options)


def assert_agrees(options: dict[str, bool], hypotheses: list[str], streams: list[list[str]]) -> None:
    metric, theirs = TER(**options), pytest.importorskip("sacrebleu.metrics").TER(**options)
    references = References.of_lists([list(several) for several in zip(*streams, strict=True)])
    references = references.with_texts(metric.prepared_references(references.texts))
    rows = metric.statistics(metric.prepared(Texts.of_strings(hypotheses)), references)
    expected_rows = theirs._extract_corpus_statistics(hypotheses, streams)
    assert rows[:, 0].tolist() == [edits for edits, _ in expected_rows]
    assert (rows[:, 1] / LENGTH_SCALE).tolist() == [length for _, length in expected_rows]
    expected = theirs._aggregate_and_compute(expected_rows)  # as its corpus_score does, after counting all edits anew
    found = metric.score(rows.sum(axis=0), references.count)
    assert found.score == pytest.approx(expected.score, abs=1e-9)
    assert (found.metric, found.num_edits) == (expected.name, expected.num_edits)
    assert found.ref_length == pytest.approx(expected.ref_length, abs=1e-6)
    assert found.signature.rpartition("|lmgauge:")[0] == str(theirs.get_signature())


def archived(path: Path, names: list[str]) -> list[list[str]]:
    with tarfile.open(path) as archive:
        read = [archive.extractfile(name) for name in names]
        found = [file.read().decode("utf-8").split("\n")[:-1] for file in read if file is not None]
    assert len(found) == len(names)
    return found


def test_the_readme_s_example() -> None:
    assert measured(TER(), SYSTEM, BOTH).score == pytest.approx(TER_OF_THE_README, abs=1e-9)


@pytest.mark.parametrize("options", GRID, ids=str)
def test_every_option_on_parallel_sentences(options: dict[str, bool], data: Path) -> None:
    """Sentences of other languages, and their words in another order, stand for hypotheses."""
    pud = {
        language: (data / f"pud.{language}.txt").read_text("utf-8").split("\n")[:12] for language in ("en", "de", "zh-Hant")
    }
    assert_agrees(options, pud["de"], [pud["en"]])
    turned = [" ".join(line.split()[5:] + line.split()[:5]) for line in pud["en"]]
    assert_agrees(options, turned, [pud["en"], pud["de"], turned[1:] + turned[:1]])
    assert_agrees(options, [line[8:] + line[:8] for line in pud["zh-Hant"][:8]], [pud["zh-Hant"][:8]])


@pytest.mark.parametrize(
    ("pair", "options"),
    [
        ("en-de", {}),
        ("en-de", {"normalized": True, "no_punct": True}),
        ("en-zh", {"normalized": True, "asian_support": True}),
    ],
)
def test_outputs_of_translation_systems(pair: str, options: dict[str, bool], shared_file: Callable[..., Path]) -> None:
    target = pair.rpartition("-")[2]
    names = [f"hyp.Online-B.{target}", f"ref.A.{target}", f"ref.B.{target}"]
    lines = 25 if target == "zh" else 150
    system, *references = (found[:lines] for found in archived(shared_file("restricted", "wmt22", f"{pair}.tar.gz"), names))
    assert_agrees(options, system, references[:1])
    assert_agrees(options, system, references)


def test_captions_with_four_references(shared_file: Callable[..., Path]) -> None:
    names = [f"val.{k}.en" for k in range(1, 6)]
    system, *references = archived(shared_file("restricted", "multi30k", "task2.tar.gz"), names)
    assert_agrees({}, system[:100], [lines[:100] for lines in references])


@given(
    st.lists(st.tuples(st.text("aAb., \n"), st.lists(st.text("aAb., \n"), min_size=1, max_size=4)), min_size=1, max_size=4)
)
def test_any_number_of_references(segments: list[tuple[str, list[str]]]) -> None:
    theirs = pytest.importorskip("sacrebleu.metrics").TER(normalized=True)
    found = measured(TER(normalized=True), [h for h, _ in segments], [r for _, r in segments])
    widest = max(len(r) for _, r in segments)
    streams = [[r[k] if k < len(r) else None for _, r in segments] for k in range(widest)]
    expected = theirs.corpus_score([h for h, _ in segments], streams)
    assert found.score == pytest.approx(expected.score, abs=1e-9)
    assert found.num_edits == expected.num_edits


any_text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
# White space of every kind, and what the rules of the normaliser look for.
pieces = st.sampled_from([*"aB1.,-'&;!\"() \t\n\v\x1c\x85\u00a0\u2009\u2028\u3000", "'s", "'S", "&quot;", "ΑΣ", "一", "、"])
awkward = st.lists(pieces, max_size=15).map("".join)


@pytest.mark.parametrize("options", [options for options in GRID if options["normalized"]], ids=str)
@given(segments=st.lists(st.tuples(any_text | awkward, any_text | awkward, awkward), min_size=1, max_size=4))
@example(segments=[("the dog s bone", "the dog's\u00a0bone is here", "it's,\tand")])
def test_normalized_texts_count_as_in_sacrebleu(options: dict[str, bool], segments: list[tuple[str, str, str]]) -> None:
    """References are normalized twice; between the passes white space of any kind becomes a blank."""
    hypotheses, one, two = (list(texts) for texts in zip(*segments, strict=True))
    assert_agrees(options, hypotheses, [one, two])


def test_threads_change_nothing(data: Path) -> None:
    lines = (data / "pud.en.txt").read_text("utf-8").split("\n")[:-1]
    turned = [" ".join(line.split()[4:] + line.split()[:4]) for line in lines]
    hypotheses, references = Texts.of_strings(turned * 20), References.of_lists(lines * 20)
    expected = TER().statistics(hypotheses, references, threads=1)
    assert expected.shape == (1200, 2)
    assert all((TER().statistics(hypotheses, references, threads=n) == expected).all() for n in (2, 3, 4))


def test_parts_add_up_and_lines_read_as_sacrebleu_s() -> None:
    rows = TER().statistics(Texts.of_strings(SYSTEM), References.of_lists(ONE))
    whole = TER().score(rows.sum(axis=0), 1, {"bs": "1000", "seed": "12345"})
    assert (rows[:1].sum(axis=0) + rows[1:].sum(axis=0)).tolist() == rows.sum(axis=0).tolist()
    signature = (
        f"nrefs:1|bs:1000|seed:12345|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0|lmgauge:{NUMBERS_VERSION}"
    )
    assert str(whole) == f"TER|{signature} = {whole.score:.1f}"
    assert whole.to_dict() == {
        "metric": "TER",
        "score": 100 * whole.num_edits / 14,
        "num_edits": int(rows[:, 0].sum()),
        "ref_length": 14.0,
        "signature": signature,
    }
    varying = TER(case_sensitive=True, no_punct=True).score(rows.sum(axis=0), None).signature
    assert varying.startswith("nrefs:var|case:mixed|tok:tercom|norm:no|punct:no|asian:no|")


def test_what_empty_texts_cost() -> None:
    assert measured(TER(), ["a b", ""], [[""], [""]]).score == 100.0
    assert measured(TER(), [""], [[""]]).score == 0.0
    assert measured(TER(), ["", "a"], [["a b"], ["a"]]).score == pytest.approx(200 / 3)
    assert TER().statistics(Texts.of_strings([]), References.of_lists([])).shape == (0, 2)


def test_what_does_not_fit_is_refused() -> None:
    texts = Texts.of_strings(["a", "b"])
    with pytest.raises(InputError, match="2 hypotheses and references of 1 segments"):
        TER().statistics(texts, References.of_lists(["a"]))
    with pytest.raises(UsageError, match="segment 2 has 17 references"):
        TER().statistics(texts, References.of_lists([["a"], ["b"] * 17]))
    with pytest.raises(InputError, match="segment 1 has no reference"):
        TER().statistics(texts, References(Texts.of_strings(["a"]), np.array([0, 0, 1], dtype=np.int64)))
    assert TER().statistics(texts, References.of_lists([["a"] * 16, ["b"]])).tolist() == [
        [0, LENGTH_SCALE],
        [0, LENGTH_SCALE],
    ]


CHOICES = list(product([False, True], repeat=4))
PIECES = [
    *"aA1 9.,-'s\n&;!?\"()[]{}~`^_/:@\t\x1c\x1f\x85",
    *(
        "'s",
        "\n-",
        "&amp;",
        "&lt;",
        "&gt;",
        "&quot;",
        " .",
        " ,",
        "1-",
        "ΑΣ",
        "\u03a3",
        "\u0130",
        "\u017f",
        "\u2028",
        "\u3000",
    ),
    *(
        "あ",
        "い",
        "ア",
        "カ",
        "ㇰ",
        "一",
        "㐀",
        "㈀",
        "㌀",
        "㼢",
        "㼣",
        "豈",
        "︰",
        "⺀",
        "㇀",
        "ー",
        "\U00020000",
        "\u0301",
        "\u00ad",
    ),
    *("、", "。", "「", "〔", "・", "｡", "．", "，", "？", "：", "；", "！", "＂", "（", "）"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def words(texts: list[str], *choices: bool) -> list[list[str]]:
    return [text.split() for text in tercom(Texts.of_strings(texts), TerOptions(*choices)).strings()]


def sacrebleu_words(texts: list[str], *choices: bool) -> list[list[str]]:
    tokenizer = pytest.importorskip("sacrebleu.tokenizers.tokenizer_ter").TercomTokenizer(*choices)
    return [tokenizer(text.rstrip()).split() for text in texts]


@settings(max_examples=600)
@given(st.lists(texts, max_size=4), st.sampled_from(CHOICES))
def test_words_are_sacrebleu_s(strings: list[str], choices: tuple[bool, ...]) -> None:
    assert words(strings, *choices) == sacrebleu_words(strings, *choices)


@given(
    st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=4),
    st.sampled_from(CHOICES),
)
def test_words_of_any_text_are_sacrebleu_s(strings: list[str], choices: tuple[bool, ...]) -> None:
    assert words(strings, *choices) == sacrebleu_words(strings, *choices)


def test_every_character_is_treated_as_sacrebleu_treats_it() -> None:
    characters = [f"x{chr(c)}7{chr(c)}" for c in range(1, 0x20000) if not 0xD800 <= c < 0xE000]
    strings = ["".join(characters[at : at + 100]) for at in range(0, len(characters), 100)]
    assert words(strings, True, False, True, True) == sacrebleu_words(strings, True, False, True, True)
    assert words(strings, False, True, True, False) == sacrebleu_words(strings, False, True, True, False)


@pytest.mark.parametrize("language", ["ar", "de", "en", "ko", "th", "zh-Hant"])
def test_words_of_sentences_are_sacrebleu_s(language: str, data: Path) -> None:
    lines = (data / f"pud.{language}.txt").read_text("utf-8").split("\n")
    for choices in CHOICES:
        assert words(lines, *choices) == sacrebleu_words(lines, *choices)


def test_by_example() -> None:
    text = "The DOG's 3,000 &lt;b&gt; end-of-\n-line, (1990-2000)."
    assert words([text]) == [text.lower().split()]
    assert words([text], False, False, False, True) == [text.split()]
    assert words([text], True) == [
        ["the", "dog", "'s", "3,000", "<", "b", ">", "end-of-line", ",", "(", "1990", "-", "2000", ")", "."]
    ]
    assert words([text], False, True) == [["the", "dog's", "3000", "&ltb&gt", "end-of-", "-line", "1990-2000"]]


def test_chinese_and_japanese() -> None:
    text = "彼は東京、へ行く！カタカナ"
    assert words([text], True, False, True) == [["彼", "は", "東", "京", "、", "へ", "行", "く", "！", "カタカナ"]]
    assert words([text], False, True, True) == [["彼は東京へ行くカタカナ"]]
    assert words([text], False, False, True) == [[text]]


def test_the_end_of_one_text_does_not_reach_the_next() -> None:
    """A final sigma is told by what follows in its own text; a comma is set apart unless a digit follows in it."""
    assert words(["ΑΣ", "Σα", "1.", "5", "x\n", "-y"], True) == [["ας"], ["σα"], ["1", "."], ["5"], ["x"], ["-y"]]
    assert words(["ΑΣ", "Α"]) == [["ας"], ["α"]]


def test_no_texts_and_empty_ones() -> None:
    assert words([]) == []
    assert words(["", " ", ""], True, True, True) == [[], [], []]


def test_more_texts_than_are_prepared_at_a_time() -> None:
    strings = [f"A{k}." for k in range(40_000)]
    assert words(strings, True) == [[f"a{k}", "."] for k in range(40_000)]


def test_nothing_to_do_copies_nothing() -> None:
    packed = Texts.of_strings(["A b."])
    assert tercom(packed, TerOptions(asian_support=True, case_sensitive=True)) is packed


def test_by_hand() -> None:
    rows = np.array([[4, 13 * LENGTH_SCALE], [3, 1 * LENGTH_SCALE], [0, 9 * LENGTH_SCALE], [1, LENGTH_SCALE * 7 // 3]])
    assert ter_scores(rows.astype(np.float64)).tolist() == [100 * (4 / 13), 300.0, 0.0, 100 * (1 / (7 / 3))]


def test_without_reference_words_it_is_all_or_nothing() -> None:
    assert ter_scores(np.array([[5.0, 0.0], [0.0, 0.0]])).tolist() == [100.0, 0.0]


def test_every_number_of_references_divides_the_scale() -> None:
    assert all(LENGTH_SCALE % references == 0 for references in range(1, 17))


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=8))
def test_rows_are_what_they_are_alone(rows: list[tuple[int, int]]) -> None:
    sums = np.array([[edits, length * LENGTH_SCALE] for edits, length in rows], dtype=np.float64)
    expected = [100 * (edits / length) if length else 100.0 * (edits > 0) for edits, length in rows]
    assert ter_scores(sums).tolist() == expected
