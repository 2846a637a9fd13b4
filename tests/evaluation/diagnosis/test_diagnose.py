"""Diagnoses: slices add up to the whole, whatever the tokenizer; seen and unseen, examples, costs, memory, missing parts."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lmgauge
from lmgauge.base.choices import DIAGNOSIS_SECTIONS as SECTIONS
from lmgauge.base.errors import InputError, UsageError
from lmgauge.evaluation.diagnosis.costs import UnseenWords
from lmgauge.evaluation.diagnosis.diagnose import _LongRuns, diagnose
from lmgauge.evaluation.diagnosis.results import Diagnosis
from lmgauge.evaluation.options import DiagnosisSettings
from lmgauge.evaluation.runs import Run, open_run
from lmgauge.evaluation.slicing.span_alignment import ranges_by_event
from lmgauge.evaluation.slicing.sums import Slices
from lmgauge.models.ngram.model import NgramModel
from lmgauge.scores import ScoreBatch, Strings
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

TRAIN = ["the cat sat on a mat", "the dog saw the cat", "a dog ran", "12 cats ran"]
TESTS = {
    "one": ["the cat ran on the mat", "", "zebra 12 dogs"],
    "two": ["a zebra sat; see http://example.org/x now", "猫 é {x} cat"],
    "none": [],
}


def write(folder: Path, name: str, lines: Sequence[str]) -> Path:
    file = folder / f"{name}.txt"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return file


class Shop:
    """Models and runs, made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = [write(folder, name, lines) for name, lines in TESTS.items()]
        self.models: dict[str, NgramModel] = {}
        for name, kind, tokenizer in (
            ("word", "kneser-ney", "whitespace"),
            ("character", "witten-bell", "character"),
            ("byte", "witten-bell", "byte"),
            ("mle", "mle", "whitespace"),
        ):
            self.models[name] = lmgauge.train(kind, Corpus.from_strings(TRAIN), order=2, tokenizer=tokenizer)  # type: ignore[arg-type]
            self.models[name].save(folder / name)
            lmgauge.evaluate(folder / name, self.files, output=folder / f"run-{name}")

    def run(self, name: str) -> Run:
        return open_run(self.folder / f"run-{name}")

    def corpus(self) -> Corpus:
        return Corpus.from_files(self.files)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path_factory.mktemp("diagnose"))


def obvious_counts(block: Segments) -> np.ndarray[Any, np.dtype[np.int64]]:
    known = Counter(word for line in TRAIN for word in line.split())
    return np.array([known[word] for i in range(len(block)) for word in block.text(i).decode().split()], np.int64)


def obvious_longest(block: Segments) -> np.ndarray[Any, np.dtype[np.int64]]:
    padded = [f" {' '.join(line.split())} " for line in TRAIN]
    found = []
    for i in range(len(block)):
        words = block.text(i).decode().split()
        for end in range(1, len(words) + 1):
            lengths = [n for n in range(1, end + 1) if any(f" {' '.join(words[end - n : end])} " in line for line in padded)]
            found.append(max(lengths, default=0))
    return np.array(found, np.int64)


def obvious_training(block: Segments) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return obvious_counts(block), obvious_longest(block)


def by(found: Diagnosis, name: str) -> Slices:
    return next(slices for slices in found.slices if slices.name.startswith(name))


def sizes(slices: Slices) -> dict[str, int]:
    return {row.label: row.size for row in slices.rows}


def test_runs_of_words_that_the_training_text_has() -> None:
    runs = _LongRuns()
    # Words 0 to 5 in one segment, the last of two ranges; 6 and 7 in the next, with white space (no word) between.
    words = np.array([0, 1, 2, 3, 4, 5, 5, 6, -1, 7])
    segments = np.array([0, 0, 0, 0, 0, 0, 0, 1, 1, 1])
    longest = np.array([1, 2, 3, 4, 5, 2, 9, 9])
    runs.add(words, segments, longest)
    assert (runs.words, runs.seen) == (2, 1)  # words 4 and 5 have four before them
    assert "50 % of the runs of 5 words" in next(runs.notes())
    runs.add(words, segments, np.ones(8, np.int64))
    assert list(runs.notes()) == []


# --- slices -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["word", "character", "byte", "mle"])
def test_every_way_to_cut_adds_up_to_the_whole(shop: Shop, name: str) -> None:
    found = diagnose(shop.run(name), training=lambda text: obvious_training)
    whole = found.evaluation
    assert whole.bytes == sum(file.stat().st_size for file in shop.files)
    bits = _finite_bits(found)
    names = ["group", "class", "occurrences", "longest n-gram", "kind", "matched order", "position", "length"]
    assert [slices.name.startswith(start) for slices, start in zip(found.slices, names, strict=True)] == [True] * 8
    for slices in found.slices:
        assert slices.unit == "byte"
        assert sum(row.ranges for row in slices.rows) == whole.events
        assert sum(row.size for row in slices.rows) == whole.bytes
        assert sum(row.zeros[0] for row in slices.rows) == whole.zero_probability_events
        assert math.fsum(row.finite_bits[0] for row in slices.rows) == pytest.approx(bits, rel=1e-13)


def _finite_bits(found: Diagnosis) -> float:
    whole = found.evaluation
    assert whole.perplexity_without_zeros is not None
    return math.log2(whole.perplexity_without_zeros) * (whole.events - whole.zero_probability_events)


@pytest.mark.parametrize("name", ["word", "character", "byte"])
def test_groups_are_those_of_an_evaluation_by_group(shop: Shop, name: str) -> None:
    found = diagnose(shop.run(name))
    groups = {e.group: e for e in lmgauge.evaluate(shop.models[name], shop.files, by_group=True) if e.group}
    for row in by(found, "group").rows:
        assert row.bits_per_unit[0] == pytest.approx(groups[row.label].bits_per_byte, rel=1e-14)
        assert row.ranges == groups[row.label].events
    assert {row.label for row in by(found, "group").rows} == {"one", "two"}
    assert any("groups without any text are left out: none" in note for note in found.notes)


def test_bytes_by_class_do_not_depend_on_a_tokenizer_of_characters_or_bytes(shop: Shop) -> None:
    character, byte = (sizes(by(diagnose(shop.run(name)), "class")) for name in ("character", "byte"))
    assert character == byte
    assert character["CJK"] == len("猫".encode())
    assert character["URL"] == len("http://example.org/x")
    assert character["number"] == 2
    assert character["code symbol"] == 2
    assert character["other non-ASCII"] == len("é".encode())


def test_seen_and_unseen(shop: Shop) -> None:
    found = diagnose(shop.run("word"), training=lambda text: obvious_training)
    words = [word for lines in TESTS.values() for line in lines for word in line.split()]
    known = Counter(word for line in TRAIN for word in line.split())
    bands = {row.label: row.ranges for row in by(found, "occurrences").rows}
    assert bands["never"] == sum(known[word] == 0 for word in words) == found.evaluation.oov
    assert bands["once"] == sum(known[word] == 1 for word in words)
    assert bands["no word"] == sum(map(len, TESTS.values()))
    longest = {row.label: row.ranges for row in by(found, "longest n-gram").rows}
    # "the cat" and "the mat"; "sat" after "zebra" is known alone.
    assert longest["none: an unseen word"] == bands["never"]
    assert longest["2 words"] == 1
    assert sum(longest.values()) == found.evaluation.events


def test_kinds_and_matched_orders_are_those_of_the_evaluation(shop: Shop) -> None:
    found = diagnose(shop.run("word"))
    kinds = {row.label: row.ranges for row in by(found, "kind").rows}
    whole = found.evaluation
    assert kinds == {"token": whole.tokens - whole.oov, "unseen word (<unk>)": whole.oov, "</s>": whole.sentence_ends}
    orders = {int(row.label): row.ranges for row in by(found, "matched order").rows}
    assert [orders.get(n, 0) for n in range(1, 3)] == whole.events_by_matched_order


def test_nothing_depends_on_how_the_text_is_cut_into_blocks(shop: Shop) -> None:
    small = Corpus.from_files(shop.files, block_bytes=8)
    one, two = (
        diagnose(shop.run("word"), DiagnosisSettings(threads=1), corpus=corpus).to_dict()
        for corpus in (shop.corpus(), small)
    )
    assert one["slices"] == two["slices"]
    assert one["baselines"] == two["baselines"]
    assert one["unseen_words"] == two["unseen_words"]
    assert [e["text"] for e in one["worst_tokens"]] == [e["text"] for e in two["worst_tokens"]]


# --- tokens, segments, unseen words -------------------------------------------------------------------------------------


def rows_of(run: Run) -> list[tuple[str, float]]:
    return [
        (b.strings.tokens[i], -p / math.log(2)) for b in run.batches() for i, p in zip(b.token_ids, b.logprob, strict=True)
    ]


def test_costs_of_tokens_are_sums_of_rows(shop: Shop) -> None:
    run = shop.run("word")
    found = diagnose(run, DiagnosisSettings(examples=1000))
    rows = rows_of(run)
    assert {cost.token for cost in found.costly_tokens} == {token for token, _ in rows}
    for cost in found.costly_tokens:
        own = [bits for token, bits in rows if token == cost.token]
        assert (cost.events, cost.zeros) == (len(own), 0)
        assert cost.bits == pytest.approx(sum(own))
        assert cost.mean_bits == pytest.approx(sum(own) / len(own))
    assert [cost.bits for cost in found.costly_tokens] == sorted((cost.bits for cost in found.costly_tokens), reverse=True)


def test_the_worst_tokens_are_the_least_probable(shop: Shop) -> None:
    run = shop.run("word")
    found = diagnose(run, DiagnosisSettings(examples=4))
    assert [e.value for e in found.worst_tokens] == pytest.approx(sorted((b for _, b in rows_of(run)), reverse=True)[:4])
    assert all(e.bits == (pytest.approx(e.value),) for e in found.worst_tokens)
    assert found.impossible_tokens == ()


def test_impossible_tokens_are_told_apart(shop: Shop) -> None:
    found = diagnose(shop.run("mle"), DiagnosisSettings(examples=3))
    assert found.evaluation.zero_probability_events > 3
    first = [e.token for e in found.evaluation.first_zero_probability_events[:3]]
    shown = [e.text.strip() for e in found.impossible_tokens]
    assert len(shown) == 3
    assert all(a == b or a in ("<unk>", "</s>") for a, b in zip(first, shown, strict=True))
    assert all(math.isinf(e.bits[0]) for e in found.impossible_tokens)
    assert all(math.isfinite(e.value) for e in found.worst_tokens)


def test_segments_cost_beyond_the_average(shop: Shop) -> None:
    found = diagnose(shop.run("word"), DiagnosisSettings(examples=10))
    excess = [e.value for e in found.worst_segments]
    assert excess == sorted(excess, reverse=True)
    per_byte = found.evaluation.bits_per_byte
    assert per_byte is not None
    for example in found.worst_segments:
        assert example.value == pytest.approx(example.bits[0] - per_byte * (len(example.text.encode()) + 1))
        assert example.value > 0


def test_unseen_words_as_they_stand_in_the_text(shop: Shop) -> None:
    found = diagnose(shop.run("word"), DiagnosisSettings(examples=3))
    assert len(found.unseen_words) == 3
    assert (found.unseen_words[0].word, found.unseen_words[0].events) == ("zebra", 2)
    assert found.unseen_types == found.evaluation.oov - 1
    known = {word for line in TRAIN for word in line.split()}
    assert all(
        unseen.word not in known for unseen in diagnose(shop.run("word"), DiagnosisSettings(examples=99)).unseen_words
    )


def test_too_many_unseen_words_forget_the_rare() -> None:
    (block,) = Corpus.from_strings(["aa aa bb cc dd"])
    ends = np.array([2, 5, 8, 11, 14])
    table = ScoreBatch(
        np.array([0]),
        np.array([5]),
        np.zeros(5, np.uint32),
        Strings(["<unk>"]),
        np.full(5, -1.0),
        np.ones(5, np.uint8),
        ends,
    )
    words = UnseenWords(most=3)
    words.add(block, table, ranges_by_event([table]))
    assert [(unseen.word, unseen.events) for unseen in words.most(9)] == [("aa", 2)]
    assert words.forgotten == 3


# --- what may be missing ------------------------------------------------------------------------------------------------


def test_without_the_text_it_says_what_the_table_knows(shop: Shop, tmp_path: Path) -> None:
    file = write(tmp_path, "gone", TESTS["one"])
    lmgauge.evaluate(shop.models["word"], file, output=tmp_path / "run")
    there = diagnose(open_run(tmp_path / "run"))
    file.unlink()
    gone = diagnose(open_run(tmp_path / "run"))
    assert [slices.name.split()[0] for slices in gone.slices] == ["kind", "matched", "position", "length"]
    assert all(slices.unit == "event" for slices in gone.slices)
    assert (gone.baselines, gone.worst_tokens, gone.unseen_words) == ((), (), ())
    assert gone.costly_tokens == there.costly_tokens
    assert gone.evaluation.bits_per_byte == there.evaluation.bits_per_byte
    assert gone.evaluation.signature == there.evaluation.signature
    assert any("--text" in note for note in gone.notes)


def test_a_foreign_table_without_spans_or_tokens(shop: Shop, tmp_path: Path) -> None:
    rows = [{"segment": i // 3, "logprob": -1.5} for i in range(9)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    corpus = Corpus.from_strings(["ab", "cd", "ef"])
    found = diagnose(open_run(tmp_path / "t.jsonl"), corpus=corpus)
    assert [row.size for row in by(found, "group").rows] == [9]
    assert {slices.unit for slices in found.slices} == {"event"}
    assert (found.costly_tokens, found.worst_tokens) == ((), ())
    assert any("no byte spans" in note for note in found.notes)
    assert any("does not tell its tokens" in note for note in found.notes)
    assert found.baselines


def test_slices_by_training_words_are_said_not_to_be_by_the_tokens_of_the_run(shop: Shop) -> None:
    for name, noted in (("word", False), ("mle", False), ("character", True), ("byte", True)):
        found = diagnose(shop.run(name), training=lambda text: obvious_training)
        assert any("are by words between white space" in note for note in found.notes) == noted
        assert not any("are by words" in note for note in diagnose(shop.run(name)).notes)


def test_another_text_is_refused(shop: Shop) -> None:
    with pytest.raises(InputError, match="scored another text"):
        diagnose(shop.run("word"), corpus=Corpus.from_strings(["other"]))


def test_an_unknown_section_is_refused(shop: Shop) -> None:
    with pytest.raises(UsageError, match="section 'slice' is not known"):
        diagnose(shop.run("word"), DiagnosisSettings(only=["slice"]))


def test_only_what_is_asked_for(shop: Shop) -> None:
    found = diagnose(shop.run("word"), DiagnosisSettings(only=["baselines"]))
    assert found.baselines
    assert not any((found.slices, found.costly_tokens, found.worst_segments, found.unseen_words))
    assert {"baselines", "slices"} < set(SECTIONS)


def test_results_turn_into_plain_values_and_frames(shop: Shop) -> None:
    model = shop.models["word"]
    found = diagnose(shop.run("word"), model=model)
    plain = found.to_dict()
    assert json.loads(json.dumps(plain))["calibration"]["contexts"] == found.evaluation.events
    assert plain["slices"][0]["rows"][0]["share_of_bits"] <= 1
    frame = found.to_pandas()
    assert set(frame["by"]) == {slices.name for slices in found.slices}
    assert frame[frame["by"] == "class"]["bytes"].sum() == found.evaluation.bytes
    assert "by class" in str(found)
    assert repr(found).startswith(f"<Diagnosis: {found.evaluation.model}: perplexity ")
