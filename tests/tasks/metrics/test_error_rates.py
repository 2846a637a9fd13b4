"""WER and CER against jiwer, on small cases, random texts, earnings calls and NIST's own utterances."""

from __future__ import annotations

import gzip
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.task_rows import ERROR_CASES, ErrorCase

from lmgauge.base.errors import InputError, UsageError
from lmgauge.tasks.metrics.error_rates import (
    CER,
    WER,
    ErrorRates,
    error_rates,
    information_lost,
    information_preserved,
    match_error_rates,
)
from lmgauge.tasks.metrics.protocol import TaskMetric
from lmgauge.tasks.normalization import STANDARD
from lmgauge.tasks.texts import References, Texts

jiwer = pytest.importorskip("jiwer")

line = st.text("ab c", max_size=40)
pairs = st.lists(st.tuples(line, line), min_size=1, max_size=8)
SYSTEMS = ["amazon", "google", "kaldi_librispeech", "microsoft", "rev_espnet", "rev_kaldi", "speechmatics"]


def rows(metric: TaskMetric, references: list[Any], hypotheses: list[str], threads: int | None = None) -> np.ndarray:
    many = References.of_lists(references)
    many = many.with_texts(metric.prepared(many.texts))
    return metric.statistics(metric.prepared(Texts.of_strings(hypotheses)), many, threads)


def measured(metric: WER | CER, references: list[Any], hypotheses: list[str]) -> ErrorRates:
    return metric.score(rows(metric, references, hypotheses).sum(axis=0), References.of_lists(references).count)


def assert_is_jiwers(found: ErrorRates, theirs: Any) -> None:
    counts = (theirs.hits, theirs.substitutions, theirs.deletions, theirs.insertions)
    assert (found.hits, found.substitutions, found.deletions, found.insertions) == counts
    if found.metric == "CER":
        assert found.score == theirs.cer
    else:
        assert (found.score, found.mer, found.wil, found.wip) == (theirs.wer, theirs.mer, theirs.wil, theirs.wip)


@pytest.mark.parametrize("case", ERROR_CASES, ids=lambda case: f"{case.reference}/{case.hypothesis}")
def test_small_cases(case: ErrorCase) -> None:
    found = measured(WER(), [case.reference], [case.hypothesis])
    assert (found.score, found.mer, found.wil) == (case.wer, case.mer, pytest.approx(case.wil, abs=1e-15))
    assert (found.hits, found.substitutions, found.deletions, found.insertions) == case.counts


@given(pairs)
def test_random_texts_have_jiwers_numbers(texts: list[tuple[str, str]]) -> None:
    references, hypotheses = [one for one, _ in texts], [other for _, other in texts]
    assert_is_jiwers(measured(WER(), references, hypotheses), jiwer.process_words(references, hypotheses))
    assert_is_jiwers(measured(CER(), references, hypotheses), jiwer.process_characters(references, hypotheses))


@given(pairs)
def test_corpus_rates_are_those_of_the_sums(texts: list[tuple[str, str]]) -> None:
    references, hypotheses = [one for one, _ in texts], [other for _, other in texts]
    for metric in (WER(), CER()):
        statistics = rows(metric, references, hypotheses)
        assert statistics.tolist() == [rows(metric, [r], [h])[0].tolist() for r, h in texts]
        whole = measured(metric, references, hypotheses)
        assert metric.scores(statistics.sum(axis=0, dtype=np.float64)[None])[0] == whole.score
        assert whole.reference_length == whole.hits + whole.substitutions + whole.deletions
        assert whole.errors == whole.substitutions + whole.deletions + whole.insertions


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_change_nothing(threads: int) -> None:
    generator = np.random.default_rng(threads)
    texts = [" ".join(generator.choice(list("abcde"), size=generator.integers(200))) for _ in range(4000)]
    other = [text.replace("a b", "c") for text in texts]
    for metric in (WER(), CER()):
        assert np.array_equal(rows(metric, texts, other, threads), rows(metric, texts, other, 1))


def test_words_part_at_any_white_space() -> None:
    assert measured(WER(), ["a\tb c"], ["a b\u3000c"]).score == 0
    assert jiwer.wer("a\tb c", "a b c") == 1  # jiwer takes "a<TAB>b" for one word


def test_characters_count_inner_white_space() -> None:
    found = measured(CER(), ["  a  b "], ["a b"])
    assert (found.reference_length, found.deletions, found.score) == (4, 1, 0.25)
    assert measured(CER(collapse_spaces=True), ["  a  b "], ["a b"]).score == 0


def test_several_references() -> None:
    found = measured(WER(), [["a b c", "a x"], ["x", "x y"]], ["a x y", "x"])
    assert (found.hits, found.insertions, found.errors, found.reference_length) == (3, 1, 1, 3)
    assert found.signature.startswith("nrefs:2|unit:word|")
    varying = measured(WER(), [["a", "b"], ["c"]], ["b", "c"])
    assert varying.score == 0
    assert varying.signature.startswith("nrefs:var|")


def test_the_signature_names_every_choice() -> None:
    plain = "nrefs:1|unit:word|case:mixed|norm:none|lmgauge:"
    assert measured(WER(), ["a"], ["a"]).signature.startswith(plain)
    standard = WER(standardize=True)
    expected = "nrefs:1|unit:word|case:lc|norm:contractions+nonwords|lmgauge:"
    assert measured(standard, ["a"], ["a"]).signature.startswith(expected)
    every = CER(remove_punctuation=True, collapse_spaces=True, unicode_form="NFKC")
    signature = every.score(np.array([1, 0, 0, 0]), 1, {"bs": "1000", "seed": "12345"}).signature
    assert signature.startswith("nrefs:1|bs:1000|seed:12345|unit:character|case:mixed|norm:nfkc+punct+space|unicode:")
    assert CER(standardize=True).normalization == STANDARD


def test_what_is_printed() -> None:
    found = measured(WER(), ["This is a test"], ["This test"])
    assert re.sub(r"lmgauge:[\d.]+", "lmgauge:V", str(found)) == (
        "WER|nrefs:1|unit:word|case:mixed|norm:none|lmgauge:V = 50.00% (S = 0 D = 2 I = 0 of 4; MER = 50.00% WIL = 50.00%)"
    )
    assert found.to_dict()["errors"] == 2
    assert found.to_dict() | {"errors": 2} == found.to_dict()
    assert measured(CER(), ["ab"], ["b"]).to_dict()["metric"] == "CER"


def test_bad_use_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown unicode-form 'NFX'"):
        WER(unicode_form="NFX")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="1 hypotheses and references of 2 segments"):
        WER().statistics(Texts.of_strings(["a"]), References.single(Texts.of_strings(["a", "b"])))


def test_no_segments_at_all() -> None:
    empty = WER().statistics(Texts.of_strings([]), References.single(Texts.of_strings([])))
    assert empty.shape == (0, 4)
    assert WER().score(empty.sum(axis=0), 0).score == 0


def transcripts(shared_file: Callable[..., Path], name: str) -> list[str]:
    with gzip.open(shared_file("open", "asr-earnings21", f"{name}.tsv.gz"), "rt", encoding="utf-8", newline="\n") as file:
        return [row.rstrip("\n").split("\t", 1)[1] for row in file]


@pytest.mark.parametrize("system", SYSTEMS)
def test_earnings_calls_have_jiwers_numbers(shared_file: Callable[..., Path], system: str) -> None:
    references, hypotheses = transcripts(shared_file, "ref"), transcripts(shared_file, system)
    assert len(references) == 22
    found = rows(WER(), references, hypotheses)
    for row, reference, hypothesis in zip(found.tolist(), references, hypotheses, strict=True):
        theirs = jiwer.process_words(reference, hypothesis)
        assert row == [theirs.hits, theirs.substitutions, theirs.deletions, theirs.insertions]
    if system == SYSTEMS[0]:  # of the others the counts of each call are compared
        assert_is_jiwers(measured(WER(), references, hypotheses), jiwer.process_words(references, hypotheses))


def test_characters_of_earnings_calls(shared_file: Callable[..., Path]) -> None:
    references, hypotheses = transcripts(shared_file, "ref")[17:20], transcripts(shared_file, "google")[17:20]
    assert_is_jiwers(measured(CER(), references, hypotheses), jiwer.process_characters(references, hypotheses))


def test_standardized_as_jiwer_does(shared_file: Callable[..., Path]) -> None:
    references, hypotheses = transcripts(shared_file, "ref"), transcripts(shared_file, "amazon")
    transform = jiwer.transformations.wer_standardize
    theirs = jiwer.process_words(references, hypotheses, transform, transform)
    assert_is_jiwers(measured(WER(standardize=True), references, hypotheses), theirs)


def utterances(text: str) -> dict[str, str]:
    """`words (id)` on each line."""
    found = (re.fullmatch(r"(.*)\(([^()]*)\)\s*", row) for row in text.splitlines())
    return {match[2].lower(): match[1].strip() for match in found if match}


def test_sclite_counts_the_same_where_utterances_are_plain(shared_file: Callable[..., Path]) -> None:
    # sclite weighs a substitution 4 and the others 3, so that it may prefer another alignment; here it never does.
    with tarfile.open(shared_file("open", "sctk", "testdata.tar.gz")) as archive:
        members = {Path(member.name).name: member for member in archive if member.isfile()}

        def read(name: str) -> str:
            file = archive.extractfile(members[name])
            assert file is not None
            return file.read().decode("utf-8")

        references, hypotheses, report = utterances(read("csrnab.ref")), utterances(read("csrnab.hyp")), read("test1.pra")
    expected = {
        match[1]: [int(number) for number in match[2].split()]
        for match in re.finditer(r"id: \((\S+)\)\nScores: \(#C #S #D #I\) ([\d ]+)", report)
    }
    # Braces hold alternatives, which jiwer does not know.
    plain = [name for name in references if not re.search(r"[{}()@<>%*\[\]-]", references[name] + hypotheses[name])]
    assert len(plain) == 45
    found = rows(WER(lowercase=True), [references[name] for name in plain], [hypotheses[name] for name in plain])
    assert found.tolist() == [expected[name] for name in plain]
    assert found.sum(axis=0).tolist() == [1060, 109, 7, 17]


counts = st.tuples(*[st.integers(0, 2**40)] * 4)


def rates(*row: int) -> tuple[float, float, float]:
    sums = np.array([row], dtype=np.float64)
    return float(error_rates(sums)[0]), float(match_error_rates(sums)[0]), float(information_lost(sums)[0])


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        *((case.counts, (case.wer, case.mer, case.wil)) for case in ERROR_CASES),
        ((0, 0, 0, 0), (0, 0, 0)),  # both empty
        ((0, 0, 0, 5), (5, 1, 1)),  # empty reference: the number of insertions
        ((0, 0, 5, 0), (1, 1, 1)),  # empty hypothesis
    ],
)
def test_small_counts(row: tuple[int, ...], expected: tuple[float, float, float]) -> None:
    assert rates(*row) == expected


@given(counts)
def test_what_holds_between_the_rates(row: tuple[int, ...]) -> None:
    wer, mer, wil = rates(*row)
    hits, substitutions, deletions, insertions = row
    assert 0 <= mer <= min(wer, 1)
    assert mer <= wil + 1e-12 or not hits
    assert 0 <= wil <= 1
    preserved = float(information_preserved(np.array([row], dtype=np.float64))[0])
    assert preserved == pytest.approx(1 - wil, abs=1e-15)
    if hits + substitutions + deletions:
        assert wer * (hits + substitutions + deletions) == pytest.approx(substitutions + deletions + insertions)


@given(st.lists(counts, max_size=5))
def test_rows_do_not_touch_each_other(rows: list[tuple[int, ...]]) -> None:
    sums = np.array(rows, dtype=np.float64).reshape(-1, 4)
    together = zip(error_rates(sums), match_error_rates(sums), information_lost(sums), strict=True)
    assert [tuple(map(float, row)) for row in together] == [rates(*row) for row in rows]
