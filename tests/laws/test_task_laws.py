"""Laws of task metrics: parts add up however they are cut and packed, neighbours do not matter, counts fit together."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.task_texts import (
    LINE_PIECES,
    METRICS,
    PLAIN,
    USUAL,
    Segment,
    few,
    metrics,
    of,
    rows,
    rows_of,
    scored,
    segment,
    segments,
    total,
)

from lmgauge.tasks import (
    BLEU,
    CER,
    TER,
    WER,
    ChrF,
    ComparisonSettings,
    Reading,
    bleu,
    cer,
    chrf,
    score_files,
    score_segments,
    score_systems,
    ter,
    wer,
)
from lmgauge.tasks.metrics import compiled
from lmgauge.tasks.texts import References, Texts

FUNCTIONS: dict[type, Callable[..., Any]] = {BLEU: bleu, ChrF: chrf, TER: ter, WER: wer, CER: cer}
ANY_OPTIONS = pytest.mark.parametrize(
    "metric", METRICS, ids=lambda metric: metric.score(total(rows(metric, [USUAL])), 1).signature
)


def measured(metric: Any, pairs: list[Segment]) -> Any:
    """The function on lists, given the metric's options one by one; the sum, for a metric without a function."""
    if type(metric) not in FUNCTIONS:
        return score_systems(metric, **of(pairs), settings=ComparisonSettings(significance="none"))[0].score
    options = {f.name: getattr(metric, f.name) for f in fields(metric)}
    return FUNCTIONS[type(metric)](**of(pairs), **options)


# -- additivity ---------------------------------------------------------------------------------------------------------


@few
@given(metrics, segments(), st.integers(0, 7))
def test_rows_of_the_whole_are_the_rows_of_its_parts(metric: Any, pairs: list[Segment], cut: int) -> None:
    whole = rows(metric, pairs)
    assert whole == rows(metric, pairs[:cut]) + rows(metric, pairs[cut:])
    assert whole == [row for pair in pairs for row in rows(metric, [pair])]
    assert rows(metric, pairs[::-1]) == whole[::-1]


@few
@given(metrics, segments(), st.randoms(use_true_random=False))
def test_the_order_of_segments_changes_no_digit(metric: Any, pairs: list[Segment], random: Any) -> None:
    assert measured(metric, pairs) == measured(metric, random.sample(pairs, len(pairs)))


@few
@given(metrics, segments(), st.data())
def test_groups_are_texts_of_their_own_and_add_up(metric: Any, pairs: list[Segment], data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(["x", "y", ""]), min_size=len(pairs), max_size=len(pairs)))
    other = [hypothesis for hypothesis, _ in pairs[::-1]]
    given_systems = {"one": of(pairs)["hypotheses"], "two": other}
    found = score_systems(
        metric,
        hypotheses=given_systems,
        references=of(pairs)["references"],
        groups=names,
        settings=ComparisonSettings(significance="none"),
    )
    for item, hypotheses in zip(found, given_systems.values(), strict=True):
        table = [(hypothesis, against) for hypothesis, (_, against) in zip(hypotheses, pairs, strict=True)]
        assert item.score == measured(metric, table)
        assert list(item.groups) == list(dict.fromkeys(names))
        sums = np.zeros(len(metric.columns), dtype=np.int64)
        for name, score in item.groups.items():
            part = total(rows(metric, [pair for pair, of_group in zip(table, names, strict=True) if of_group == name]))
            sums += part
            assert score.score == metric.score(part, None).score
        assert sums.tolist() == total(rows(metric, table)).tolist()


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda plain: plain,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def written(path: Path, lines: list[str], end: str, packing: str, last: bool) -> str:
    """A file of lines; `last`: whether the last one has its end, which a blank one needs."""
    text = "".join(line + end for line in lines)
    plain = (text if last or not lines[-1] else text.removesuffix(end)).encode()
    packed = path.with_name(path.name + packing)
    packed.write_bytes(PACKINGS[packing](plain))
    return str(packed)


@few
@given(
    metrics,
    segments(LINE_PIECES),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(sorted(PACKINGS)),
    st.integers(1, 100) | st.just(1 << 20),
    st.booleans(),
)
def test_files_and_lists_give_the_same(
    metric: Any, pairs: list[Segment], end: str, packing: str, block: int, last: bool
) -> None:
    """Whatever ends lines, packs files, and however few bytes are read at a time."""
    hypotheses, references = of(pairs)["hypotheses"], of(pairs)["references"]
    systems = {"a": hypotheses, "b": hypotheses[::-1]}
    names = [f"g{i % 2}" for i in range(len(pairs))]
    drawn = ComparisonSettings(significance="sacrebleu-bootstrap", resamples=40, threads=1)
    lists = score_systems(metric, hypotheses=systems, references=references, groups=names, settings=drawn)
    assert replace(lists[0].score, signature="") == replace(measured(metric, pairs), signature="")
    with TemporaryDirectory() as folder:
        at = Path(folder)
        if all(len(several) == 1 for several in references):
            against = written(at / "ref.txt", [text for (text,) in references], end, packing, last)
        else:
            against = written(at / "ref.jsonl", [json.dumps({"text": many}) for many in references], end, packing, last)
        outputs = [written(at / f"{name}.txt", lines, end, packing, last) for name, lines in systems.items()]
        groups = written(at / "groups.txt", names, end, "", last)
        given_files = {
            "references": against,
            "hypotheses": outputs,
            "reading": Reading(group=str(groups), block_bytes=block),
        }
        files = score_files(metric, **given_files, settings=drawn)
        blocks = list(score_segments(metric, **given_files, threads=1))
    assert replace(files, notes=()) == replace(lists, notes=())
    assert set(lists.notes) <= set(files.notes)
    alone = [score for part in blocks for score in part.scores[0].tolist()]
    assert alone == [scored(metric, [pair]).score for pair in pairs]
    assert [name for part in blocks for name in part.groups] == names
    assert (
        total([row for part in blocks for row in part.statistics[0].tolist()]).tolist()
        == total(rows(metric, pairs)).tolist()
    )


# -- invariance ---------------------------------------------------------------------------------------------------------

JUNK = (b"", b" ", b"a", b"\0", b"\xff", b"\xe7\x9a", b"\x84", b".", b"&amp", b"'", "的".encode(), "\u0301".encode(), b"1\n")


def scattered(strings: list[str], random: Any) -> Texts:
    """Texts anywhere in an array, in any order, with bytes around them that would change them."""
    places = list(range(len(strings)))
    random.shuffle(places)
    data = bytearray(random.choice(JUNK))
    starts, ends = np.zeros(len(strings), dtype=np.int64), np.zeros(len(strings), dtype=np.int64)
    for i in places:
        starts[i] = len(data)
        data += strings[i].encode()
        ends[i] = len(data)
        data += random.choice(JUNK)
    return Texts(np.frombuffer(bytes(data), dtype=np.uint8), starts, ends)


@given(metrics, segments(), st.randoms(use_true_random=False), st.integers(1, 4))
def test_rows_depend_on_nothing_around_a_text(metric: Any, pairs: list[Segment], random: Any, threads: int) -> None:
    hypotheses, references = of(pairs)["hypotheses"], References.of_lists(of(pairs)["references"])
    flat = [text for _, several in pairs for text in several]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "BYTES_PER_THREAD", 1)  # so that few texts are shared among threads too
        found = rows_of(metric, scattered(hypotheses, random), references.with_texts(scattered(flat, random)), threads)
    assert found == rows(metric, pairs)
    if isinstance(metric, BLEU):
        prepared = metric.prepared(scattered(flat, random), threads).strings()
        assert prepared == metric.prepared(Texts.of_strings(flat), 1).strings()


@ANY_OPTIONS
def test_many_segments_among_threads(metric: Any) -> None:
    words = ["a", "B", "c.", "d,", "的", "é", "n't", "1-2"]
    numbers = np.random.default_rng(5).integers(0, len(words), (3000, 2, 12))
    pairs = [(" ".join(words[k] for k in one), [" ".join(words[k] for k in two)]) for one, two in numbers.tolist()]
    once = rows(metric, pairs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "BYTES_PER_THREAD", 1 << 10)
        assert rows(metric, pairs, 3) == once
    assert rows(metric, pairs[1000:1003], None) == once[1000:1003]


@given(metrics, segments())
def test_absent_references_are_as_if_never_named(metric: Any, pairs: list[Segment]) -> None:
    padded = [(hypothesis, [None, *against, None]) for hypothesis, against in pairs]
    assert rows(metric, padded) == rows(metric, pairs)


# -- letters and references ---------------------------------------------------------------------------------------------

LOWER = [
    (BLEU(lowercase=True), BLEU()),
    (BLEU(lowercase=True, tokenizer="none"), BLEU(tokenizer="none")),
    (ChrF(lowercase=True, word_order=2), ChrF(word_order=2)),
    (TER(), TER(case_sensitive=True)),
    (TER(normalized=True, asian_support=True), TER(normalized=True, asian_support=True, case_sensitive=True)),
    (WER(lowercase=True), WER()),
    (CER(lowercase=True), CER()),
    (WER(standardize=True), WER(expand_contractions=True, remove_nonwords=True)),
]


@given(st.sampled_from(LOWER), segments())
def test_lower_case_may_be_made_before(both: tuple[Any, Any], pairs: list[Segment]) -> None:
    folding, exact = both
    lowered = [(hypothesis.lower(), [text.lower() for text in against]) for hypothesis, against in pairs]
    assert rows(folding, pairs) == rows(folding, lowered) == rows(exact, lowered)


def cost(metric: Any, row: list[int]) -> float:
    """What is least for the reference that counts."""
    if isinstance(metric, (WER, CER)):
        return sum(row[1:])
    return row[0] if isinstance(metric, TER) else -float(metric.scores(np.array([row], dtype=np.float64))[0])


@given(metrics, segment(PLAIN) | segment(), st.randoms(use_true_random=False))
def test_the_order_of_references_moves_no_score(metric: Any, pair: Segment, random: Any) -> None:
    """BLEU and TER not a single count; the others only between references that are equally good."""
    shuffled = (pair[0], random.sample(pair[1], len(pair[1])))
    (before,), (after,) = rows(metric, [pair]), rows(metric, [shuffled])
    assert cost(metric, after) == cost(metric, before)
    if isinstance(metric, (BLEU, TER)):
        assert after == before


@given(metrics, segment(PLAIN) | segment(), segment(PLAIN))
def test_a_further_reference_never_costs(metric: Any, pair: Segment, other: Segment) -> None:
    (before,), (after,) = rows(metric, [pair]), rows(metric, [(pair[0], [*pair[1], other[0]])])
    if not isinstance(metric, BLEU):
        assert cost(metric, after) <= cost(metric, before)
        return
    length, matches = after[0], slice(2, 2 + metric.order)
    assert all(new >= old for new, old in zip(after[matches], before[matches], strict=True))
    assert after[matches.stop :] == before[matches.stop :]
    if metric.reference_length == "closest":
        assert abs(after[1] - length) <= abs(before[1] - length)
    if metric.reference_length == "shortest":
        assert after[1] <= before[1]


@given(metrics, segment())
def test_a_reference_twice_is_a_reference_once(metric: Any, pair: Segment) -> None:
    assert rows(metric, [(pair[0], pair[1] * 2)])[0][:1] == rows(metric, [pair])[0][:1]
    assert rows(metric, [(pair[0], pair[1][:1] * 3)]) == rows(metric, [(pair[0], pair[1][:1])])
