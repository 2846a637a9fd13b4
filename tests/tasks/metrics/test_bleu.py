"""BLEU against sacreBLEU, count for count and digit for digit over the grid of options, and the words around the number."""

from __future__ import annotations

import csv
import tarfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.task_rows import BLEU_ADD_K, BLEU_OF_ORDERS, BLEU_OF_TOKENIZERS, BOTH, SMALL_BLEU, SYSTEM

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.tasks.metrics.bleu import BLEU, BleuScore
from lmgauge.tasks.texts import References, Texts

Peer = pytest.importorskip("sacrebleu.metrics").BLEU

SMOOTHINGS = [("exp", None), ("none", None), ("floor", None), ("floor", 0.01), ("add-k", None), ("add-k", 2.5)]
OWN = ("13a", "none", "intl", "char", "zh")
PAIRS = [("en-de", "de", "intl"), ("en-zh", "zh", "zh"), ("en-ja", "ja", "char"), ("cs-en", "en", "13a")]


def rows_of(metric: BLEU, hypotheses: list[str], references: list[Any], threads: int | None = None) -> np.ndarray:
    packed = References.of_lists(references)
    packed = packed.with_texts(metric.prepared_references(packed.texts))
    return metric.statistics(metric.prepared(Texts.of_strings(hypotheses)), packed, threads)


def measured(metric: BLEU, hypotheses: list[str], references: list[Any]) -> BleuScore:
    return metric.score(rows_of(metric, hypotheses, references).sum(axis=0), References.of_lists(references).count)


def as_sacrebleu_s(metric: BLEU) -> Any:
    return Peer(
        lowercase=metric.lowercase,
        tokenize=metric.tokenizer,
        smooth_method=metric.smoothing,
        smooth_value=metric.smoothing_value,
        max_ngram_order=metric.order,
        effective_order=metric.effective_order,
    )


def assert_agrees(metric: BLEU, hypotheses: list[str], streams: list[list[Any]], *others: BLEU) -> None:
    """`others`: that sacreBLEU counts for as for `metric`, and scores otherwise; it takes long to count."""
    counter = as_sacrebleu_s(metric)
    references = [list(several) for several in zip(*streams, strict=True)]
    counted = counter._extract_corpus_statistics(hypotheses, streams)
    for one in (metric, *others):
        theirs = as_sacrebleu_s(one)
        theirs.num_refs = counter.num_refs
        rows = rows_of(one, hypotheses, references)
        assert rows.tolist() == counted
        expected = theirs._aggregate_and_compute(counted)
        found = one.score(rows.sum(axis=0), References.of_lists(references).count)
        assert found.score == pytest.approx(expected.score, abs=1e-9)
        assert found.brevity_penalty == pytest.approx(expected.bp, abs=1e-12)
        assert found.precisions == pytest.approx(expected.precisions, abs=1e-9)
        signature = str(theirs.get_signature()).rpartition("|")[0]
        assert found.signature.startswith(signature + "|")
        line = expected.format(width=1, signature=found.signature)
        assert str(found) == line
        sentences = [theirs._aggregate_and_compute([list(row)]).score for row in counted]
        assert np.abs(one.scores(rows.astype(np.float64)) - sentences).max(initial=0) < 1e-9


def unpacked(shared_file: Callable[..., Path], pair: str, target: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """References and systems of a language pair of WMT 2022."""
    found: dict[str, dict[str, list[str]]] = {"ref": {}, "hyp": {}}
    with tarfile.open(shared_file("restricted", "wmt22", f"{pair}.tar.gz")) as archive:
        for member in archive.getmembers():
            kind, _, rest = Path(member.name).name.partition(".")
            stream = archive.extractfile(member)
            if stream is not None and kind in found and rest.endswith(f".{target}"):
                found[kind][rest.rpartition(".")[0]] = stream.read().decode("utf-8").split("\n")[:-1]
    return found["ref"], found["hyp"]


def test_the_readme_s_example() -> None:
    found = {tokenizer: measured(BLEU(tokenizer=tokenizer), SYSTEM, BOTH).score for tokenizer in BLEU_OF_TOKENIZERS}
    assert found == pytest.approx(BLEU_OF_TOKENIZERS, abs=5e-8)
    assert found["13a"] == pytest.approx(BLEU_OF_TOKENIZERS["13a"], abs=1e-9)
    assert [round(measured(BLEU(order=n), SYSTEM, BOTH).score, 2) for n in range(1, 7)] == BLEU_OF_ORDERS
    assert measured(BLEU(smoothing="add-k"), SYSTEM, BOTH).score == pytest.approx(BLEU_ADD_K, abs=1e-9)


def test_small_cases_by_hand() -> None:
    small = BLEU(tokenizer="none", smoothing="floor", smoothing_value=0.01, effective_order=True)
    found = {text: measured(small, [text], ["a test"]).score for text in SMALL_BLEU}
    assert found == pytest.approx(SMALL_BLEU, abs=1e-9)
    assert (found["a test"], found["none of it"]) == (100.0, 0.0)


def test_the_textbook_s_example() -> None:
    cat = measured(BLEU(order=3), ["The cat sat on the mat"], ["The cat sits on the mat"])
    assert (cat.score, cat.counts, cat.totals, cat.order) == (50.0, (5, 3, 1), (6, 5, 4), 3)


@pytest.mark.parametrize(("tokenizer", "lowercase"), list(product(OWN, [False, True])))
def test_the_grid_on_small_texts(tokenizer: str, lowercase: bool, data: Path) -> None:
    lines = {
        code: (data / f"pud.{code}.txt").read_text(encoding="utf-8").split("\n") for code in ("en", "de", "zh-Hant", "ar")
    }
    texts = [line for code in lines for line in lines[code][:6]] + ["", "a", "...", "“ 5.” "]
    other = [" ".join(text.split()[1:] + text.split()[:1]) for text in texts]
    more = [text.swapcase()[: len(text) // 2] for text in texts]
    for order in (1, 2, 4, 6):
        metrics = [
            BLEU(order, *smoothing, effective, lowercase, tokenizer)
            for smoothing, effective in product(SMOOTHINGS, [False, True])
        ]
        assert_agrees(metrics[0], other, [texts], *metrics[1:])
        assert_agrees(metrics[0], other, [texts, more], *metrics[1:])


@pytest.mark.parametrize(("pair", "target", "usual"), PAIRS)
def test_the_grid_on_real_systems(shared_file: Callable[..., Path], pair: str, target: str, usual: str) -> None:
    references, systems = unpacked(shared_file, pair, target)
    streams = list(references.values())
    first, second = list(systems.values())[:2]
    assert_agrees(BLEU(tokenizer=usual), first, streams[:1])
    assert_agrees(BLEU(tokenizer=usual), second, streams)
    for tokenizer, lowercase in product(OWN, [False, True]):
        some = slice(0, 150)
        assert_agrees(BLEU(tokenizer=tokenizer, lowercase=lowercase), second[some], [stream[some] for stream in streams])


@pytest.mark.parametrize(
    ("pair", "target", "tokenizer"), [("en-de", "de", "13a"), ("en-zh", "zh", "zh"), ("en-ja", "ja", "char")]
)
def test_official_scores_of_wmt22(shared_file: Callable[..., Path], pair: str, target: str, tokenizer: str) -> None:
    references, systems = unpacked(shared_file, pair, target)
    with shared_file("restricted", "wmt22", "automatic-scores.tsv").open(encoding="utf-8") as file:
        official = {
            (row["system"], row["metric"]): float(row["score"])
            for row in csv.DictReader(file, delimiter="\t")
            if row["pair"] == pair and row["metric"] in ("bleu-A", "bleu-B", "bleu-all")
        }
    metric = BLEU(tokenizer=tokenizer)
    checked = 0
    for system, hypotheses in systems.items():
        for name, streams in {
            **{f"bleu-{k}": [v] for k, v in references.items()},
            "bleu-all": list(references.values()),
        }.items():
            key = (system.removeprefix("hyp."), name)
            if key in official:
                score = measured(metric, hypotheses, [list(texts) for texts in zip(*streams, strict=True)]).score
                assert score == pytest.approx(official[key], abs=1e-6), key
                checked += 1
    assert checked >= 9


any_text = st.text(st.sampled_from("ab. ,“字1-&;\n\u3000"), max_size=14)


@given(
    st.lists(st.tuples(any_text, st.lists(any_text | st.none(), min_size=3, max_size=3)), min_size=1, max_size=6).filter(
        lambda segments: all(any(text is not None for text in texts) for _, texts in segments)
    ),
    st.sampled_from(OWN),
    st.sampled_from(SMOOTHINGS),
    st.integers(1, 5),
    st.booleans(),
)
def test_any_texts_and_a_different_number_of_references(
    segments: list[tuple[str, list[str | None]]], tokenizer: str, smoothing: tuple[str, Any], order: int, effective: bool
) -> None:
    streams = [list(stream) for stream in zip(*(references for _, references in segments), strict=True)]
    assert_agrees(BLEU(order, *smoothing, effective, tokenizer=tokenizer), [text for text, _ in segments], streams)


@given(st.lists(st.tuples(any_text, any_text), max_size=8), st.integers(0, 8), st.integers(1, 5))
def test_statistics_add_up_and_do_not_depend_on_threads(pairs: list[tuple[str, str]], cut: int, threads: int) -> None:
    metric = BLEU(lowercase=True)
    texts, references = [a for a, _ in pairs], [b for _, b in pairs]
    whole = rows_of(metric, texts, references, threads)
    halves = [rows_of(metric, texts[:cut], references[:cut], 1), rows_of(metric, texts[cut:], references[cut:], 1)]
    assert whole.tolist() == np.concatenate(halves).tolist()
    assert whole.dtype == np.int64
    assert whole.shape == (len(pairs), len(metric.columns))


def test_reference_lengths() -> None:
    texts, references = ["a b c"], [["a b c d", "a b", "a b c d e f g h"]]
    lengths = {kind: measured(BLEU(reference_length=kind), texts, references) for kind in ("closest", "shortest", "average")}
    assert [score.reference_length for score in lengths.values()] == [2, 2, 14 / 3]
    assert [score.brevity_penalty for score in lengths.values()] == pytest.approx([1.0, 1.0, np.exp(1 - 14 / 9)])
    assert str(lengths["average"]).endswith("ratio = 0.643 hyp_len = 3 ref_len = 4.67)")
    assert "|reflen:average|" in lengths["average"].signature
    assert str(lengths["shortest"]).endswith("ref_len = 2)")


@pytest.mark.parametrize(
    ("options", "references", "signature"),
    [
        ({}, 1, "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"),
        (
            {"lowercase": True, "tokenizer": "zh"},
            None,
            "nrefs:var|case:lc|eff:no|tok:zh|smooth:exp|version:2.6.0",
        ),
        (
            {"order": 2, "smoothing": "floor", "reference_length": "shortest"},
            2,
            "nrefs:2|case:mixed|eff:no|tok:13a|smooth:floor[0.10]|order:2|reflen:shortest|version:2.6.0",
        ),
        (
            {"smoothing": "add-k", "smoothing_value": 0.001, "effective_order": True},
            1,
            "nrefs:1|case:mixed|eff:yes|tok:13a|smooth:add-k[0.001]|version:2.6.0",
        ),
    ],
)
def test_signatures(options: dict[str, Any], references: int | None, signature: str) -> None:
    assert BLEU(**options).signature(references) == f"{signature}|lmgauge:{NUMBERS_VERSION}"


def test_a_signature_with_the_choices_of_the_caller() -> None:
    assert BLEU().signature(1, {"bs": "1000", "seed": "12345"}).startswith("nrefs:1|bs:1000|seed:12345|case:mixed|")


def test_intl_tells_its_unicode_version() -> None:
    pytest.importorskip("regex")
    assert "|tok:intl|smooth:exp|unicode:" in BLEU(tokenizer="intl").signature(1)


def test_a_score_as_a_dictionary() -> None:
    score = measured(BLEU(order=2), ["a b d"], ["a b c"])
    found = score.to_dict()
    assert found == {
        "metric": "BLEU",
        "score": pytest.approx(100 * (2 / 3 / 2) ** 0.5),
        "brevity_penalty": 1.0,
        "ratio": 1.0,
        "hypothesis_length": 3,
        "reference_length": 3,
        "order": 2,
        "precision_1": pytest.approx(200 / 3),
        "precision_2": 50.0,
        "count_1": 2,
        "count_2": 1,
        "total_1": 3,
        "total_2": 2,
        "signature": score.signature,
    }
    assert all(isinstance(value, (str, int, float)) for value in found.values())
    assert score.line(4).startswith(f"BLEU|{score.signature} = 57.7350 66.7/50.0 (BP = 1.000")


def test_only_empty_texts() -> None:
    score = measured(BLEU(), ["", " "], ["", "."])
    assert (score.score, score.hypothesis_length, score.reference_length, score.ratio) == (0.0, 0, 1, 0.0)
    assert measured(BLEU(), [""], [""]).ratio == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": 0}, "order must be .* got 0"),
        ({"smoothing": "chencherry"}, "unknown smoothing 'chencherry'"),
        ({"smoothing_value": 0.5}, "exp takes no value"),
        ({"tokenizer": "moses"}, "unknown tokenizer 'moses': choose one of 13a, none"),
        (
            {"reference_length": "longest"},
            "unknown reference-length 'longest': choose one of closest, shortest, average",
        ),
    ],
)
def test_options_out_of_range(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        BLEU(**options)


def test_segments_without_reference_or_partner() -> None:
    texts = Texts.of_strings(["a", "b"])
    with pytest.raises(InputError, match="2 hypotheses and references of 1 segments"):
        BLEU().statistics(texts, References.of_lists(["a"]))
    missing = References(Texts.of_strings(["a"]), np.array([0, 1, 1], dtype=np.int64))
    with pytest.raises(InputError, match="segment 2 has no reference"):
        BLEU().statistics(texts, missing)


def test_the_average_takes_sixteen_references() -> None:
    many = References.of_lists([["a"] * 16])
    assert BLEU(reference_length="average").statistics(Texts.of_strings(["a"]), many)[0, 1] == 720720
    more = References.of_lists([["a"] * 17])
    with pytest.raises(UsageError, match="segment 1 has 17 references; BLEU averages the lengths of up to 16"):
        BLEU(reference_length="average").statistics(Texts.of_strings(["a"]), more)
    assert BLEU().statistics(Texts.of_strings(["a"]), more)[0, 1] == 1
