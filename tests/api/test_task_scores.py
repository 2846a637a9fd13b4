"""BLEU, chrF, TER, WER and CER in Python: functions on lists and on files, what they give, and what they refuse."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.tasks import (
    BLEU,
    CER,
    TER,
    WER,
    ChrF,
    ComparisonSettings,
    Reading,
    align_files,
    score_files,
    score_label_files,
    score_labels,
    score_segments,
    score_systems,
)
from lmgauge.tasks.settings import BleuOptions, ChrfOptions, NormalizationOptions, TerOptions

REFERENCES = ["the cat sits on the mat", "it is raining today", "nothing to see here , move on", "a dog barks"]
GOOD = ["the cat sat on the mat", "it is raining today", "nothing to see here , move on", "a dog barks"]
BAD = ["a cat was on a mat", "rain", "see nothing here , move", "the dog"]
TWO = [[text, text.replace("the", "a")] for text in REFERENCES]
NOTHING = ComparisonSettings(significance="none")
FUNCTIONS = [
    (lmgauge.tasks.bleu, BLEU, {"order": 2, "tokenizer": "none"}),
    (lmgauge.tasks.chrf, ChrF, {"word_order": 2, "beta": 1}),
    (lmgauge.tasks.ter, TER, {"normalized": True}),
    (lmgauge.tasks.wer, WER, {"lowercase": True}),
    (lmgauge.tasks.cer, CER, {"collapse_spaces": True}),
]
EACH = pytest.mark.parametrize(
    ("function", "metric", "options"), FUNCTIONS, ids=lambda value: getattr(value, "__name__", "")
)


def written(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {"ref": REFERENCES, "good": GOOD, "bad": BAD}
    return {name: written(tmp_path / f"{name}.txt", lines) for name, lines in texts.items()}


# -- one system ---------------------------------------------------------------------------------------------------------


def test_numbers_by_hand() -> None:
    given = {"hypotheses": ["The cat sat on the mat"], "references": ["The cat sits on the mat"]}
    assert lmgauge.tasks.bleu(**given, order=3).score == 50  # the cube root of 5/6 * 3/5 * 1/4
    assert lmgauge.tasks.wer(**given).score == 1 / 6
    assert lmgauge.tasks.cer(**given).score == 2 / 23  # "a" for "i", and an "s" is missing
    assert lmgauge.tasks.ter(**given).score == pytest.approx(100 / 6)
    one_letter = lmgauge.tasks.chrf(hypotheses=["ab"], references=["ac"], char_order=1)
    assert (one_letter.score, one_letter.matches) == (50, (1,))


@EACH
def test_functions_are_the_metric_with_these_options(function: Any, metric: Any, options: dict[str, Any]) -> None:
    found = function(hypotheses=BAD, references=TWO, **options)
    (item,) = score_systems(metric(**options), hypotheses=BAD, references=TWO, settings=NOTHING)
    assert found == item.score
    assert item.system == "system"
    assert found == function(hypotheses=tuple(BAD), references=[tuple(pair) for pair in TWO], threads=2, **options)
    assert found.signature.startswith("nrefs:2|")
    assert found != function(hypotheses=BAD, references=TWO)


@EACH
def test_as_many_lists_as_texts_in_each_are_refused_and_tuples_are_those_of_segments(
    function: Any, metric: Any, options: dict[str, Any]
) -> None:
    """sacreBLEU has a list for each translation, and here both readings are possible."""
    streams = [GOOD[:2], REFERENCES[:2]]
    for references in (streams, [*map(list, zip(*streams, strict=True))], np.array(streams)):
        for call in (function, partial(score_systems, metric(**options))):
            with pytest.raises(UsageError, match=r"2 lists of 2 references: what is each\? .*tuple\(texts\).*zip\(\*ref"):
                call(hypotheses=BAD[:2], references=references)
    pairs = list(zip(*streams, strict=True))
    turned = function(hypotheses=REFERENCES[:2], references=pairs, **options)
    assert turned == function(hypotheses=REFERENCES[:2], references=[(*pair, None) for pair in pairs], **options)
    assert turned.score == function(hypotheses=REFERENCES[:2], references=REFERENCES[:2], **options).score
    assert turned.score != function(hypotheses=REFERENCES[:2], references=[tuple(one) for one in streams], **options).score
    assert function(hypotheses=BAD[:1], references=[REFERENCES[:1]], **options).score >= 0


@EACH
def test_what_is_no_text_is_refused(function: Any, metric: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="2 hypotheses and 1 references: there are 1 hypotheses too many"):
        function(hypotheses=["a", "b"], references=["a"])
    with pytest.raises(InputError, match="there is no segment to score"):
        function(hypotheses=[], references=[])
    with pytest.raises(InputError, match="segment 2 has no reference"):
        function(hypotheses=["a", "b"], references=[["a"], [None]])
    with pytest.raises(InputError, match="hypothesis 1 holds NUL"):
        function(hypotheses=["\0"], references=["a"])
    with pytest.raises(InputError, match=r"reference 1 holds a lone surrogate \(U\+D800\)"):
        function(hypotheses=["a"], references=["\ud800"])
    with pytest.raises(UsageError, match="one string was given where a list"):
        function(hypotheses="a", references=["a"])
    with pytest.raises(UsageError, match="one string was given where a list with a reference"):
        function(hypotheses=["a"], references="a")
    with pytest.raises(UsageError, match="hypothesis 1 is int, not a string"):
        function(hypotheses=[1], references=["a"])
    with pytest.raises(UsageError, match="references of segment 1 are int"):
        function(hypotheses=["a"], references=[1])
    with pytest.raises(UsageError, match="threads must be a whole number, 1 or more; got 0"):
        function(hypotheses=["a"], references=["a"], threads=0)
    with pytest.raises(TypeError, match=r"takes hypotheses and references by name.*\(hypotheses=..., references=...\)"):
        function(["a"], ["a"])  # exchanged, they would give a plausible wrong number


# -- several systems ----------------------------------------------------------------------------------------------------


def test_systems_are_held_against_the_first() -> None:
    found = score_systems(BLEU(order=2), hypotheses={"good": GOOD, "bad": BAD}, references=REFERENCES)
    assert [item.system for item in found] == ["good", "bad"]
    assert (found.test, found.trials, found.resamples, found.seed) == ("student", None, None, None)
    assert found[1].difference == found[1].score.score - found[0].score.score < 0
    assert (found[1].p_value, found.unit) == (None, None)
    assert any("no interval and no test" in note for note in found.notes)
    assert found.best.system == "good"
    assert found[0].score.score == lmgauge.tasks.bleu(hypotheses=GOOD, references=REFERENCES, order=2).score


def test_groups_are_scored_too() -> None:
    names = ["x", "y", "x", "y"]
    (found,) = score_systems(WER(), hypotheses=BAD, references=REFERENCES, groups=names, settings=NOTHING)
    assert list(found.groups) == ["x", "y"]
    for name, score in found.groups.items():
        part = [[text for text, group in zip(side, names, strict=True) if group == name] for side in (BAD, REFERENCES)]
        assert score == lmgauge.tasks.wer(hypotheses=part[0], references=part[1])
    assert sum(score.errors for score in found.groups.values()) == found.score.errors


def test_keywords_are_the_fields_of_the_metric() -> None:
    for _, metric, _ in FUNCTIONS:
        made = {BLEU: BleuOptions, ChrF: ChrfOptions, TER: TerOptions}.get(metric, NormalizationOptions)
        assert [field.name for field in fields(made)] == [field.name for field in fields(metric)]
        assert isinstance(metric(), made)
    with pytest.raises(UsageError, match="did you mean order"):
        lmgauge.tasks.bleu(hypotheses=BAD, references=REFERENCES, ordr=3)
    with pytest.raises(UsageError, match="choose one of student, sacrebleu"):
        ComparisonSettings(significance="t-test")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"hypotheses": {}}, UsageError, "no system to score"),
        ({"hypotheses": {"a": GOOD, "b": BAD[:3]}}, InputError, "3 hypotheses and 4 references"),
        ({"hypotheses": {"a": GOOD, "b": [*BAD[:3], 4]}}, UsageError, "b: hypothesis 4 is int"),
        ({"hypotheses": {"a": GOOD, "b": [""] * 4}}, InputError, "all 4 hypotheses of b are blank"),
        ({"hypotheses": [], "references": []}, InputError, "no segment to score"),
        ({"groups": ["a"]}, InputError, "1 groups for 4 segments"),
        ({"settings": ComparisonSettings(significance="sacrebleu-bootstrap", resamples=39)}, UsageError, "at least 40"),
        ({"significance": "sacrebleu", "seed": -1}, UsageError, "seed"),
        ({"sources": BAD}, UsageError, "BLEU does not use source texts"),
    ],
)
def test_systems_that_cannot_be_scored(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        score_systems(BLEU(), **({"hypotheses": {"a": GOOD, "b": BAD}, "references": REFERENCES} | options))


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (BLEU, "is not a metric: write lmgauge.tasks.BLEU()"),
        (None, "is not a metric"),
        ("blue", "metric 'blue': choose one"),
    ],
)
def test_what_is_not_a_metric_is_refused(metric: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        score_systems(metric, hypotheses={"a": GOOD}, references=REFERENCES)
    assert words in str(caught.value)


def test_a_metric_may_be_named() -> None:
    named, made = (score_systems(one, hypotheses={"a": GOOD}, references=REFERENCES)[0] for one in ("bleu", BLEU()))
    assert named.score == made.score


# -- files --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [metric(**options) for _, metric, options in FUNCTIONS], ids=lambda metric: metric.name)
def test_files_are_scored_as_lists(files: dict[str, Path], metric: Any) -> None:
    told: list[int] = []
    found = score_files(metric, references=files["ref"], hypotheses=[files["good"], str(files["bad"])], progress=told.append)
    lists = score_systems(metric, hypotheses={"good": GOOD, "bad": BAD}, references=REFERENCES)
    assert found == lists
    assert told == [4]
    (one,) = score_files(
        metric,
        references=[files["ref"]],
        hypotheses=files["bad"],
        significance="none",
        threads=1,
    )
    assert one.score.to_dict() == {**lists[1].score.to_dict(), "signature": one.score.signature}


def test_several_references_in_files_records_and_folders(files: dict[str, Path], tmp_path: Path) -> None:
    (wanted,) = score_systems(BLEU(), hypotheses={"bad": BAD}, references=TWO, settings=NOTHING)
    second = written(tmp_path / "second.txt", [pair[1] for pair in TWO])
    rows = written(tmp_path / "ref.jsonl", [json.dumps({"one": a, "two": b}) for a, b in TWO])
    packed = tmp_path / "bad.jsonl.gz"
    packed.write_bytes(gzip.compress("".join(json.dumps({"out": text}) + "\n" for text in BAD).encode()))
    for references, reading in (([files["ref"], second], None), (rows, Reading(ref_field=("one", "two")))):
        (found,) = score_files(BLEU(), references=references, hypotheses=files["bad"], reading=reading, settings=NOTHING)
        assert found == wanted
    reading = Reading(ref_field=("one", "two"), field="out")
    (found,) = score_files(BLEU(), references=rows, hypotheses=packed, reading=reading, settings=NOTHING)
    assert found.score == wanted.score
    for folder, lines in (("refs", REFERENCES), ("bad", BAD)):
        written(tmp_path / folder / "a.txt", lines[:2])
        written(tmp_path / folder / "b.txt", lines[2:])
    folders = {"references": tmp_path / "refs", "hypotheses": tmp_path / "bad"}
    (found,) = score_files(WER(), **folders, reading=Reading(group="file"), settings=NOTHING)
    assert (found.system, list(found.groups)) == ("bad", ["a.txt", "b.txt"])
    assert found.score == lmgauge.tasks.wer(hypotheses=BAD, references=REFERENCES)


def test_a_name_of_a_system_is_of_one_file(files: dict[str, Path], tmp_path: Path) -> None:
    outputs = {"a": tmp_path / "*d.txt"}  # good and bad
    with pytest.raises(UsageError, match="1 names of systems for 2 files: give each name one file"):
        score_files(WER(), references=files["ref"], hypotheses=outputs, settings=NOTHING)


def test_each_segment_on_its_own(files: dict[str, Path], tmp_path: Path) -> None:
    groups = written(tmp_path / "groups.txt", ["x", "y", "x", "y"])
    hypotheses = [files["good"], files["bad"]]
    (block,) = score_segments(ChrF(), references=files["ref"], hypotheses=hypotheses, reading=Reading(group=str(groups)))
    assert (block.names, block.first, block.groups) == (("good", "bad"), 0, ["x", "y", "x", "y"])
    assert block.references.tolist() == [1, 1, 1, 1]
    for lines, scores, rows in zip((GOOD, BAD), block.scores, block.statistics, strict=True):
        alone = [lmgauge.tasks.chrf(hypotheses=[a], references=[b]).score for a, b in zip(lines, REFERENCES, strict=True)]
        assert scores.tolist() == alone
        assert ChrF().score(rows.sum(axis=0), 1) == lmgauge.tasks.chrf(hypotheses=lines, references=REFERENCES)


def test_alignments_of_files(files: dict[str, Path], tmp_path: Path) -> None:
    hypotheses = [files["good"], files["bad"]]
    found = list(align_files(WER(), references=files["ref"], hypotheses=hypotheses))
    assert [(item.segment, item.system) for item in found] == [(i, name) for i in range(4) for name in ("good", "bad")]
    score = lmgauge.tasks.wer(hypotheses=BAD, references=REFERENCES)
    of_bad = [item.alignment for item in found if item.system == "bad"]
    for count in ("hits", "substitutions", "deletions", "insertions"):
        assert sum(getattr(alignment, count) for alignment in of_bad) == getattr(score, count)
    with pytest.raises(UsageError, match="several"):
        list(align_files(WER(), references=[files["ref"], files["good"]], hypotheses=files["bad"]))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"references": "none.txt"}, InputError, "none.txt"),
        ({"hypotheses": []}, UsageError, "at least one system"),
        ({"hypotheses": ["bad.txt", "bad.txt"]}, UsageError, "named twice"),
        ({"hypotheses": "short.txt"}, InputError, "short.txt ends first, after 2 lines"),
        ({"hypotheses": "empty.txt"}, InputError, "empty.txt: the file is empty"),
        ({"hypotheses": "latin.txt"}, InputError, "not valid UTF-8"),
        ({"hypotheses": "blank.txt"}, InputError, "all 4 hypotheses are blank"),
        ({"reading": Reading(group="short.txt")}, InputError, "short.txt ends first"),
        ({"reading": Reading(id="id")}, UsageError, "lines of text have no field 'id'"),
        ({"format": "docx"}, UsageError, "unknown format 'docx'"),
        ({"sources": "bad.txt"}, UsageError, "BLEU does not use source texts"),
    ],
)
def test_files_that_cannot_be_scored(
    files: dict[str, Path], tmp_path: Path, change: dict[str, Any], error: type[Exception], words: str, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "short.txt", BAD[:2])
    written(tmp_path / "empty.txt", [])
    written(tmp_path / "blank.txt", [""] * 4)
    (tmp_path / "latin.txt").write_bytes("é\n".encode("latin-1") * 4)
    options = {"references": "ref.txt", "hypotheses": "bad.txt"} | change
    with pytest.raises(error, match=words):
        score_files(BLEU(), **options)
    if change != {"hypotheses": "blank.txt"}:  # of a blank one each segment has its score
        with pytest.raises(error, match=words):
            list(score_segments(BLEU(), **options))


# -- labels -------------------------------------------------------------------------------------------------------------

GOLD, RIGHT, WRONG = list("abacbaab"), list("abacbaaa"), list("bbbcacab")


def test_labels_in_lists_and_files(tmp_path: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    paths = {"gold": GOLD, "right": RIGHT, "wrong": WRONG}
    names = {name: written(tmp_path / f"{name}.txt", [f" {label} " for label in labels]) for name, labels in paths.items()}
    settings = ComparisonSettings(significance="sacrebleu", resamples=200)
    for average in ("macro", "micro", "weighted"):
        lists = score_labels(gold=GOLD, predicted={"right": RIGHT, "wrong": WRONG}, average=average, settings=settings)
        for item, predicted in zip(lists, (RIGHT, WRONG), strict=True):
            assert item.score.score == pytest.approx(metrics.f1_score(GOLD, predicted, average=average), abs=1e-12)
            assert item.score.labels.accuracy == metrics.accuracy_score(GOLD, predicted)
        predicted_files = [names["right"], names["wrong"]]
        read = score_label_files(gold=names["gold"], predicted=predicted_files, average=average, settings=settings)
        assert read == lists
    (only,) = score_labels(gold=GOLD, predicted=WRONG, labels=["a", "b"], settings=NOTHING)
    assert only.score.score == pytest.approx(metrics.f1_score(GOLD, WRONG, labels=["a", "b"], average="macro"))


@pytest.mark.parametrize(
    ("gold", "predicted", "words"),
    [
        (["a"], ["a", "b"], "1 gold labels and 2 predicted"),
        (["a", 1], ["a", "b"], r"gold label 2 is 1 \(int\)"),
        (["a", "b"], ["a", None], r"predicted label 2 is None"),
        ("ab", ["a", "b"], "gold is one string"),
        (["a", "b"], {"x": "ab"}, "predicted is one string"),
        ([], [], "there are no labels"),
    ],
)
def test_labels_that_cannot_be_scored(gold: Any, predicted: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        score_labels(gold=gold, predicted=predicted)


def test_label_options_out_of_range() -> None:
    pytest.importorskip("sklearn")
    with pytest.raises(UsageError, match="choose one of macro, micro, weighted"):
        score_labels(gold=["a"], predicted=["a"], average="none")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="label 'a' is given twice"):
        score_labels(gold=["a"], predicted=["a"], labels=["a", "a"])
    with pytest.raises(UsageError, match="at least one system"):
        score_labels(gold=["a"], predicted={})
