"""chrF and chrF++ against sacreBLEU, count for count and digit for digit, and the words around the number."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.task_rows import BOTH, CHRF_PLUS_PLUS, ONE, SYSTEM, TWO
from tests.golden.task_rows import CHRF as CHRF_OF_THE_README
from tests.kernels.test_chrf import segments, texts
from tests.reference import chrf as twin

from lmgauge.base.errors import InputError, UsageError
from lmgauge.tasks.metrics.chrf import ChrF, ChrfScore, chrf_averages, chrf_scores
from lmgauge.tasks.texts import References, Texts

CHRF = pytest.importorskip("sacrebleu.metrics").CHRF

GRID = [
    {"word_order": words, "lowercase": lower, "whitespace": space, "eps_smoothing": eps}
    for words, lower, space, eps in product([0, 2], [False, True], [False, True], [False, True])
]
GRID += [{"char_order": 3}, {"char_order": 9, "beta": 1}, {"char_order": 0, "word_order": 3}, {"beta": 3, "word_order": 1}]


def measured(metric: ChrF, hypotheses: list[str], references: list[list[str]], **options: Any) -> ChrfScore:
    """`references`: those of each segment."""
    packed = References.of_lists(references)
    packed = packed.with_texts(metric.prepared_references(packed.texts))
    sums = metric.statistics(metric.prepared(Texts.of_strings(hypotheses)), packed).sum(axis=0)
    return metric.score(sums, packed.count, **options)


def assert_agrees(options: dict[str, Any], hypotheses: list[str], streams: list[list[str]]) -> None:
    metric, theirs = ChrF(**options), CHRF(**options)
    references = References.of_lists(list(zip(*streams, strict=True)))
    references = references.with_texts(metric.prepared_references(references.texts))
    rows = metric.statistics(metric.prepared(Texts.of_strings(hypotheses)), references)
    counted = theirs._extract_corpus_statistics(hypotheses, streams)
    assert rows.tolist() == [list(map(int, row)) for row in counted]
    expected = theirs._aggregate_and_compute(counted)  # as its corpus_score does, after counting all anew
    found = metric.score(rows.sum(axis=0), references.count)
    assert found.score == pytest.approx(expected.score, abs=1e-9)
    assert found.metric == expected.name
    assert found.signature.rpartition("|")[0].rpartition("|")[0] == str(theirs.get_signature()).rpartition("|")[0]
    sentences = [theirs._aggregate_and_compute([row]).score for row in counted]
    assert np.abs(metric.scores(rows.astype(np.float64)) - sentences).max() < 1e-9


def test_the_readme_s_example() -> None:
    assert measured(ChrF(), SYSTEM, BOTH).score == pytest.approx(CHRF_OF_THE_README, abs=1e-9)
    assert measured(ChrF(word_order=2), SYSTEM, BOTH).score == pytest.approx(CHRF_PLUS_PLUS, abs=1e-9)


@pytest.mark.parametrize("options", GRID, ids=str)
def test_every_option_on_parallel_sentences(options: dict[str, Any], data: Path) -> None:
    """The same sentences in other languages stand for hypotheses: names and numbers match."""
    pud = {
        language: (data / f"pud.{language}.txt").read_text("utf-8").split("\n")[:-1] for language in ("en", "de", "cs", "tr")
    }
    assert_agrees(options, pud["de"], [pud["en"]])
    assert_agrees(options, pud["cs"], [pud["tr"], pud["de"], pud["en"]])


@pytest.mark.parametrize("language", ["ar", "ko", "th", "zh-Hant"])
def test_other_scripts(language: str, data: Path) -> None:
    lines = (data / f"pud.{language}.txt").read_text("utf-8").split("\n")[:-1]
    assert_agrees({"word_order": 2, "lowercase": True}, lines[1:] + lines[:1], [lines])


@pytest.mark.parametrize("options", GRID[:2] + GRID[8:9] + GRID[-4:], ids=str)
@pytest.mark.parametrize("pair", ["en-de", "zh-en"])
def test_outputs_of_translation_systems(options: dict[str, Any], pair: str, shared_file: Callable[..., Path]) -> None:
    target = pair.rpartition("-")[2]
    names = [f"hyp.Online-A.{target}", f"ref.A.{target}", f"ref.B.{target}"]
    with tarfile.open(shared_file("restricted", "wmt22", f"{pair}.tar.gz")) as archive:
        read = [archive.extractfile(name) for name in names]
        found = [file.read().decode("utf-8").split("\n")[:80] for file in read if file is not None]
    assert len(found) == 3
    assert_agrees(options, found[0], found[1:2])
    assert_agrees(options, found[0], found[1:])


def test_the_official_scores_of_wmt22(shared_file: Callable[..., Path]) -> None:
    """Those of the first references, in full precision."""
    table = shared_file("restricted", "wmt22", "automatic-scores.tsv").read_text("utf-8")
    rows = [line.split("\t") for line in table.splitlines()]
    official = {(pair, system): float(score) for pair, system, _, _, metric, score in rows[1:] if metric == "chrf-A"}
    with tarfile.open(shared_file("restricted", "wmt22", "en-de.tar.gz")) as archive:
        texts_of = {
            member.name: file.read().decode("utf-8").split("\n")[:-1]
            for member in archive
            if (file := archive.extractfile(member)) is not None
        }
    systems = [name.split(".")[1] for name in texts_of if name.startswith("hyp.")]
    checked = [name for name in systems if ("en-de", name) in official]
    assert checked
    references = [[line] for line in texts_of["ref.A.de"]]
    for name in checked:
        found = measured(ChrF(), texts_of[f"hyp.{name}.de"], references)
        assert found.score == pytest.approx(official["en-de", name], abs=1e-6)


@given(segments, st.sampled_from(GRID))
def test_any_text_and_any_number_of_references(given_segments: list[tuple[str, list[str]]], options: dict[str, Any]) -> None:
    metric, theirs = ChrF(**options), CHRF(**options)
    found = measured(metric, [h for h, _ in given_segments], [r for _, r in given_segments])
    widest = max(len(r) for _, r in given_segments)
    streams = [[r[k] if k < len(r) else None for _, r in given_segments] for k in range(widest)]
    expected = theirs.corpus_score([h for h, _ in given_segments], streams)
    assert found.score == pytest.approx(expected.score, abs=1e-9)


@given(st.lists(texts, max_size=6))
def test_lower_case_is_made_text_by_text(strings: list[str]) -> None:
    assert Texts.of_strings(strings).lowered().strings() == [text.lower() for text in strings]


def test_lower_case_of_sigma_does_not_look_past_the_text() -> None:
    strings = ["ΑΣ", "ΣΑ", "Σ", "Α\nΣ", "İ"]
    assert Texts.of_strings(strings).lowered().strings() == [text.lower() for text in strings]
    assert Texts.of_strings(strings[:3]).lowered().strings() == [text.lower() for text in strings[:3]]


def test_threads_change_nothing() -> None:
    hypotheses, references = Texts.of_strings(SYSTEM * 400), References.of_lists(TWO * 400)
    metric = ChrF(word_order=2)
    expected = metric.statistics(hypotheses, references, threads=1)
    assert expected.shape == (1200, len(metric.columns))
    assert all((metric.statistics(hypotheses, references, threads=n) == expected).all() for n in (2, 3, 4))


def test_parts_add_up() -> None:
    metric = ChrF()
    rows = metric.statistics(Texts.of_strings(SYSTEM), References.of_lists(ONE))
    whole = metric.score(rows.sum(axis=0), 1)
    assert metric.score(rows[:1].sum(axis=0) + rows[1:].sum(axis=0), 1) == whole
    assert whole.hypothesis_ngrams == tuple(rows.sum(axis=0)[0::3].tolist())


def test_of_two_equal_references_the_first_counts() -> None:
    """F1 of characters is 2 M / (H + R): 4 / 8 with the one, 8 / 16 with the other."""
    metric, one, other = ChrF(char_order=1, beta=1), "aacc", "aabb" + "c" * 8
    for references, row in (([one, other], [4, 4, 2]), ([other, one], [4, 12, 4])):
        found = metric.statistics(Texts.of_strings(["aabb"]), References.of_lists([references]))
        assert found.tolist() == [row]
        assert metric.scores(found.astype(np.float64)).tolist() == [50]


def test_the_line_people_paste() -> None:
    found = measured(ChrF(), SYSTEM, [[text] for text in ONE], choices={"bs": "1000", "seed": "12345"})
    keys = "nrefs:1|bs:1000|seed:12345|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0|lmgauge:"
    assert str(found).startswith(f"chrF2|{keys}")
    assert str(found).endswith(f" = {found.score:.1f}")
    assert found.to_dict()["matches"] == found.matches
    assert found.to_dict()["score"] == found.score
    assert 0 < found.precision < 100


@pytest.mark.parametrize(
    ("options", "name"),
    [({}, "chrF2"), ({"word_order": 2}, "chrF2++"), ({"beta": 3.0}, "chrF3"), ({"beta": 0.5, "word_order": 1}, "chrF0.5+")],
)
def test_names(options: dict[str, Any], name: str) -> None:
    assert ChrF(**options).name == name
    assert len(ChrF(**options).columns) == 3 * (6 + options.get("word_order", 0))


def test_a_varying_number_of_references_is_said() -> None:
    found = measured(ChrF(), ["a", "b"], [["a"], ["b", "c"]])
    assert found.signature.startswith("nrefs:var|")
    assert found.score == 100


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"char_order": -1}, "char-order must be .* got -1"),
        ({"char_order": 65}, "from 0 to 64"),
        ({"word_order": 1.5}, "word-order must be .* got 1.5"),
        ({"char_order": 0}, "no n-grams"),
        ({"beta": 0}, "beta must be a number from above 0 .* got 0"),
        ({"beta": float("nan")}, "beta must .* got nan"),
        ({"beta": "2"}, "beta must .* got '2'"),
        ({"char_order": True}, "char-order must be .* got True"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ChrF(**options)


def test_unequal_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="2 hypotheses and references of 1 segments"):
        ChrF().statistics(Texts.of_strings(["a", "b"]), References.of_lists(["a"]))


@st.composite
def rows(draw: st.DrawFn) -> list[list[int]]:
    orders = draw(st.integers(1, 8))
    triple = st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50)).map(lambda t: [t[0], t[1], min(t)])
    row = st.lists(triple, min_size=orders, max_size=orders).map(lambda triples: [c for triple in triples for c in triple])
    return draw(st.lists(row, min_size=1, max_size=6))


@given(rows(), st.sampled_from([1, 2, 3, 0.25, 10]), st.booleans())
def test_rows_are_what_they_are_alone(sums: list[list[int]], beta: float, eps_smoothing: bool) -> None:
    found = chrf_scores(np.array(sums, dtype=np.float64), beta=beta, eps_smoothing=eps_smoothing)
    assert found.tolist() == [twin.f_score(row, beta, eps_smoothing) for row in sums]


def test_by_hand() -> None:
    """Precision 3/4 and 1/2, recall 1/2 and 1/4: averages 5/8 and 3/8, F2 = 5 * 15/64 / (4 * 5/8 + 3/8)."""
    sums = np.array([[4.0, 6.0, 3.0, 2.0, 4.0, 1.0]])
    precision, recall = chrf_averages(sums)
    assert (precision[0], recall[0]) == (5 / 8, 3 / 8)
    assert chrf_scores(sums, beta=2)[0] == pytest.approx(100 * (75 / 64) / (23 / 8))
    # F2 of the orders: 5 * 3/8 / (3 + 1/2) and 5 * 1/8 / (2 + 1/4).
    assert chrf_scores(sums, beta=2, eps_smoothing=True)[0] == pytest.approx(50 * (15 / 28 + 5 / 18))


def test_an_order_that_one_text_lacks_does_not_count() -> None:
    sums = np.array([[4.0, 6.0, 3.0, 2.0, 0.0, 0.0], [4.0, 6.0, 3.0, 0.0, 4.0, 0.0]])
    alone = chrf_scores(sums[:, :3], beta=2)
    assert (chrf_scores(sums, beta=2) == alone).all()


def test_nothing_gives_zero() -> None:
    nothing = np.zeros((2, 18))
    assert chrf_scores(nothing, beta=2).tolist() == [0, 0]
    assert chrf_scores(nothing, beta=2, eps_smoothing=True).max() < 1e-13
    assert chrf_scores(np.zeros((0, 18)), beta=2).shape == (0,)
