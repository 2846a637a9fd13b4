"""May two numbers be put side by side: a table of cases, each with what agrees and the verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.evaluation.comparison.comparability import (
    EXACT_PART,
    METRICS,
    NOTHING,
    SHARED_EVENTS,
    WHOLE,
    Facts,
    agreements,
    gather_facts,
    verdicts,
)
from lmgauge.evaluation.comparison.compare import compare
from lmgauge.evaluation.runs import Run, about, open_run

TRAIN = ["the cat sat", "the dog sat on the cat", "a dog", "on a mat"]
PLAIN = ["the cat sat", "a dog sat on a mat", "", "on the dog"]  # nothing unseen, single spaces
UNSEEN = ["the cat ran", "a bird sat on a mat", "", "on the dog"]
SPACED = ["the  cat sat", "a dog sat on a mat ", "", "\ton the dog"]


@dataclass
class Workshop:
    """Makes runs in a folder."""

    folder: Path
    made: int = 0

    def text(self, lines: Sequence[str]) -> Path:
        self.made += 1
        path = self.folder / f"{self.made}.txt"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        return path

    def run(self, lines: Sequence[str], kind: Any = "witten-bell", train: Sequence[str] = TRAIN, **options: Any) -> Run:
        model = lmgauge.train(kind, Corpus.from_strings(train), order=2, **options)
        self.made += 1
        lmgauge.evaluate(model, self.text(lines), output=self.folder / f"run{self.made}")
        return open_run(self.folder / f"run{self.made}")

    def foreign(
        self, lines: Sequence[str], *, eos: bool = True, spans: bool = True, tokens: bool = True, unit: int = 1
    ) -> Run:
        """A table that tells nothing of its origin: pieces of `unit` characters."""
        rows: list[dict[str, Any]] = []
        for segment, line in enumerate(lines):
            end = 0
            pieces = [line[i : i + unit] for i in range(0, len(line), unit)]
            for piece in [*pieces, *["</s>"] * eos]:
                start, end = end, end + (0 if piece == "</s>" else len(piece.encode()))
                row = {"segment": segment, "logprob": -0.5, "kind": "eos" if piece == "</s>" else "token"}
                rows.append(row | ({"start": start, "end": end} if spans else {}) | ({"token": piece} if tokens else {}))
        self.made += 1
        path = self.folder / f"foreign{self.made}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return open_run(path)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def closed(shop: Workshop, lines: Sequence[str]) -> Run:
    return shop.run(lines, vocabulary="closed")


def spread(lines: Sequence[str]) -> Callable[[Workshop], tuple[Run, Run]]:
    return lambda shop: (shop.run(lines), shop.run(lines, train=[*TRAIN, "some other words"]))


# case -> runs, what does not agree (? if not known), perplexity comparable, bits comparable, part
Case = tuple[Callable[[Workshop], tuple[Run, Run]], dict[str, bool | None], bool, bool, str]
CASES: dict[str, Case] = {
    "the same model twice": (lambda s: (s.run(PLAIN), s.run(PLAIN)), {}, True, True, WHOLE),
    "two smoothings": (lambda s: (s.run(PLAIN), s.run(PLAIN, "kneser-ney")), {}, True, True, WHOLE),
    "two smoothings, unseen words": (
        lambda s: (s.run(UNSEEN), s.run(UNSEEN, "laplace")), {"bits exact": False}, True, True, WHOLE
    ),
    "two orders, lossy white space": (
        lambda s: (s.run(SPACED), s.run(SPACED, "laplace")), {"bits exact": False}, True, True, WHOLE
    ),
    "other words, none unseen": (spread(PLAIN), {"vocabulary": False}, False, True, WHOLE),
    "other words, some unseen": (
        spread(UNSEEN), {"vocabulary": False, "bits exact": False}, False, False, EXACT_PART
    ),
    "words and characters": (
        lambda s: (s.run(PLAIN), s.run(PLAIN, tokenizer="character")),
        {"vocabulary": False, "events": False}, False, True, WHOLE,
    ),
    "words and characters, unseen": (
        lambda s: (s.run(UNSEEN), s.run(UNSEEN, tokenizer="character", train=[*TRAIN, "bird ran"])),
        {"vocabulary": False, "events": False, "bits exact": False}, False, False, EXACT_PART,
    ),
    "words and characters, white space lost": (
        lambda s: (s.run(SPACED), s.run(SPACED, tokenizer="byte", train=["\t abcdefghijklmnopqrstuvwxyz"])),
        {"vocabulary": False, "events": False, "bits exact": False}, False, False, EXACT_PART,
    ),
    "closed and open": (
        lambda s: (s.run(PLAIN), closed(s, PLAIN)), {"vocabulary": False, "unseen words": False}, False, True, WHOLE
    ),
    "sentences and one stream": (
        lambda s: (s.run(PLAIN), s.run(PLAIN, context="stream")), {"context": False}, False, True, WHOLE
    ),
    "sentences and one stream, unseen": (
        lambda s: (s.run(UNSEEN), s.run(UNSEEN, context="stream")),
        {"context": False, "bits exact": False}, False, False, EXACT_PART,
    ),
    "a foreign table of unknown text": (
        lambda s: (s.run(PLAIN), s.foreign(PLAIN)),
        {"text": None, "events": False, "vocabulary": None, "unseen words": None, "context": None, "bits exact": None},
        False, False, NOTHING,
    ),
    "two foreign tables of unknown text, as many events": (
        lambda s: (s.foreign(PLAIN), s.foreign(PLAIN)),
        {"text": None, "vocabulary": None, "unseen words": None, "context": None, "bits exact": None},
        False, False, SHARED_EVENTS,
    ),
    "other texts": (
        lambda s: (s.run(PLAIN), s.run(["the dog sat on"])), {"text": False, "events": False}, False, False, NOTHING
    ),
    "other words of one text": (
        lambda s: (s.run(PLAIN), s.run([line.replace("mat", "cat") for line in PLAIN])),
        {"text": False}, False, False, SHARED_EVENTS,
    ),
    "the same text in another order": (
        lambda s: (s.run(PLAIN), s.run(PLAIN[::-1])), {"text": False, "events": False}, False, False, NOTHING
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cases(shop: Workshop, name: str) -> None:
    make, differing, perplexity, bits, part = CASES[name]
    runs = make(shop)
    facts = gather_facts(runs)[0]
    found = {agreement.what: agreement.agrees for agreement in agreements(runs, [facts])}
    expected: dict[str, bool | None] = dict.fromkeys(found, True)
    assert differing.keys() <= found.keys()
    assert found == expected | differing
    told, compared = verdicts(*runs, facts)
    assert [verdict.metric for verdict in told] == list(METRICS)
    assert [verdict.comparable for verdict in told] == [perplexity, bits, bits, bits]
    assert compared == part
    for verdict in told:
        assert bool(verdict.reasons) == (not verdict.comparable)
        assert verdict.nearest is None or not verdict.comparable
        assert (verdict.nearest is None) == (verdict.comparable or part == NOTHING)
    # Nothing depends on who comes first.
    swapped, swapped_part = verdicts(*runs[::-1], gather_facts(runs[::-1])[0])
    assert [v.comparable for v in swapped] == [v.comparable for v in told]
    assert swapped_part == part


def told(*runs: Run) -> tuple[dict[str, tuple[str, ...]], dict[str, Any], str, Facts]:
    facts = gather_facts(runs)[0]
    found, part = verdicts(*runs, facts)
    shown = {agreement.what: agreement.values for agreement in agreements(runs, [facts])}
    return shown, {verdict.metric: verdict for verdict in found}, part, facts


def test_what_is_shown(shop: Workshop) -> None:
    text = UNSEEN
    characters = shop.run(text, tokenizer="character", train=[*TRAIN, "bird ran"])
    shown, found, _, _ = told(shop.run(text), characters)
    assert shown["unseen words"] == ("<unk>, 2 events", "<unk>, 0 events")
    assert shown["events"] == ("16 words", "44 characters")
    assert shown["bits exact"] == ("no: unseen words", "yes")
    assert shown["</s> scored"] == ("yes", "yes")
    assert shown["context"] == ("sentence", "sentence")
    assert len(set(shown["text"])) == 1
    assert len(shown["text"][0]) == 6
    assert found["perplexity"].reasons[0] == "events differ (16 words / 44 characters)"
    assert found["bits_per_byte"].reasons == (f"{lmgauge_name(shop)}: a lower bound only (unseen words)",)
    assert "on the text that both models know" in found["bits_per_byte"].nearest


def lmgauge_name(shop: Workshop) -> str:
    return open_run(sorted(shop.folder.glob("run*"), key=lambda p: int(p.name[3:]))[-1]).name


def test_bits_are_the_nearest_where_only_perplexity_is_not_comparable(shop: Workshop) -> None:
    _, found, _, _ = told(shop.run(PLAIN), shop.run(PLAIN, tokenizer="character"))
    assert found["perplexity"].nearest == "bits per byte"


def test_the_closed_vocabulary_is_called_so(shop: Workshop) -> None:
    shown, _, _, _ = told(shop.run(PLAIN), closed(shop, PLAIN))
    assert shown["unseen words"] == ("<unk>, 0 events", "impossible, 0 events")


# -- tables that tell nothing of themselves -----------------------------------------------------------------------------


def with_text(lines: Sequence[str], *runs: Run) -> list[Run]:
    text = Path(runs[0].path).parent / "given.txt"
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return [about(run, Corpus.from_files(text)) for run in runs]


def test_naming_the_text_makes_bits_comparable(shop: Workshop) -> None:
    runs = with_text(PLAIN, shop.run(PLAIN), shop.foreign(PLAIN, unit=3))
    shown, found, part, _ = told(*runs)
    assert len(set(shown["text"])) == 1
    assert shown["vocabulary"][1] == shown["context"][1] == "unknown"
    assert [verdict.comparable for verdict in found.values()] == [False, True, True, True]
    assert any("vocabulary unknown for foreign" in reason for reason in found["perplexity"].reasons)
    assert part == WHOLE


def test_nothing_is_exact_of_an_unknown_text(shop: Workshop) -> None:
    runs = [shop.foreign(PLAIN, unit=3), shop.foreign(PLAIN, unit=3)]
    facts = gather_facts(runs)
    [exact] = [one for one in agreements(runs, facts) if one.what == "bits exact"]
    assert (exact.values, exact.agrees) == (("unknown", "unknown"), None)
    shown, found, _, _ = told(*runs)
    assert shown["context"] == ("unknown", "unknown")
    assert [reason.partition(" for")[0] for reason in found["bits_per_byte"].reasons] == ["text unknown"]


def test_a_table_without_line_ends_has_only_the_part_without(shop: Workshop) -> None:
    runs = with_text(PLAIN, shop.run(PLAIN), shop.foreign(PLAIN, eos=False))
    shown, found, part, _ = told(*runs)
    assert shown["</s> scored"] == ("yes", "no")
    assert found["bits_per_byte"].reasons == ("</s> scored differs (yes / no)",)
    assert part == EXACT_PART


def test_a_table_without_spans_is_comparable_as_a_whole_or_not_at_all(shop: Workshop) -> None:
    exact = with_text(PLAIN, shop.run(PLAIN), shop.foreign(PLAIN, spans=False))
    assert told(*exact)[2] == WHOLE
    inexact = with_text(UNSEEN, shop.run(UNSEEN), shop.foreign(UNSEEN, spans=False))
    assert told(*inexact)[2] == NOTHING


@pytest.mark.parametrize(
    "starts_and_ends",
    [[(0, 3), (4, 5)], [(0, 3), (2, 5)], [(0, 5), (0, 5)], [(1, 5)], [(0, 3)], [(0, 3), (3, 2), (2, 5)]],
    ids=["hole", "overlap", "twice", "late", "short", "backwards"],
)
def test_spans_that_do_not_tile_the_text_are_no_bits(shop: Workshop, starts_and_ends: list[tuple[int, int]]) -> None:
    """Law 1. Bytes that no event or two events stand for would be counted all the same."""
    good = [{"segment": 0, "start": 0, "end": 5, "logprob": -1.0}]
    bad = [{"segment": 0, "start": a, "end": b, "logprob": -1.0} for a, b in starts_and_ends]
    runs = []
    for name, rows in (("good", good), ("bad", bad)):
        path = shop.folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        runs.append(open_run(path))
    runs = with_text(["ab cd"], *runs)
    shown, found, part, facts = told(*runs)
    assert facts.apart[0] == 0
    assert facts.apart[1] > 0
    assert shown["bits exact"][0] == "yes"
    assert shown["bits exact"][1].startswith("no: spans do not tile the text")
    assert not found["bits_per_byte"].comparable
    assert any(reason.startswith("bad.jsonl: not exact") for reason in found["bits_per_byte"].reasons)
    assert part == NOTHING


def test_a_span_that_ends_behind_its_segment_is_told_of_the_run_that_has_it(shop: Workshop) -> None:
    """Beside it the sound run seems to end too early; only the text tells which of the two is wrong."""
    good, bad = shop.run(PLAIN), shop.foreign(PLAIN)
    rows = [json.loads(line) for line in bad.path.read_text(encoding="utf-8").splitlines()]
    rows[10]["end"] += 3
    rows[11] |= {"start": rows[11]["start"] + 3, "end": rows[11]["end"] + 3}
    bad.path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for runs in ((good, bad), (bad, good)):
        with pytest.raises(
            lmgauge.base.errors.InputError, match=f"{bad.name}: the spans of segment 0 reach beyond the 11 bytes"
        ):
            compare(runs, corpus=Corpus.from_files(shop.text(PLAIN)))


def test_a_long_segment_in_two_batches_is_no_gap(tmp_path: Path) -> None:
    """Parquet is read so many rows at a time; the first row of the next lot goes on where the last one ended."""
    count = (1 << 18) + 7
    columns = {
        "segment": [0] * count,
        "start": list(range(count)),
        "end": list(range(1, count + 1)),
        "logprob": [-0.5] * count,
    }
    pq.write_table(pa.table(columns), tmp_path / "long.parquet")
    run = open_run(tmp_path / "long.parquet")
    assert len(list(run.batches())) > 1
    assert gather_facts([run, run])[0].apart == (0, 0)
    seen = lmgauge.evaluate_scores(tmp_path / "long.parquet", Corpus.from_strings(["x" * count]))
    assert not any("span" in note for note in seen.notes)


# -- texts --------------------------------------------------------------------------------------------------------------


def test_a_shuffled_text_is_noticed(shop: Workshop) -> None:
    *_, facts = told(shop.run(PLAIN), shop.run(PLAIN[::-1]))
    assert facts.same_lengths_shuffled
    *_, facts = told(shop.run(PLAIN), shop.run([*PLAIN[1:], "the dog ran off"]))
    assert not facts.same_lengths_shuffled
    *_, facts = told(shop.run(PLAIN), shop.run(PLAIN))
    assert not facts.same_lengths_shuffled


def test_facts_are_sums_of_the_tables(shop: Workshop) -> None:
    runs = shop.run(UNSEEN), shop.run(UNSEEN, tokenizer="character", train=[*TRAIN, "bird ran"])
    facts = gather_facts(runs)[0]
    for run, tally in zip(runs, facts.totals, strict=True):
        assert run.evaluation is not None
        assert tally.nats() == run.evaluation["log_probability"]
        assert tally.total_events == run.evaluation["events"]
    assert facts.span_bytes == sum(len(line) for line in UNSEEN)
    assert (facts.same_counts, facts.same_events, facts.spans) == (False, False, True)


def test_many_runs_are_held_against_the_first(shop: Workshop) -> None:
    runs = [shop.run(PLAIN), shop.run(PLAIN, "laplace"), shop.run(PLAIN, tokenizer="character")]
    facts = gather_facts(runs)
    found = {agreement.what: agreement for agreement in agreements(runs, facts)}
    assert [len(agreement.values) for agreement in found.values()] == [3] * 7
    assert found["events"].agrees is False
    assert found["events"].values[1] == "16 words"
    assert found["text"].agrees is True


def test_what_is_not_known_does_not_hide_what_differs(shop: Workshop) -> None:
    """Of three texts two are known and differ: that is a difference, though the third is unknown."""
    runs = [shop.run(PLAIN), shop.foreign(PLAIN), shop.run(UNSEEN)]
    facts = gather_facts(runs)
    (text, *_) = agreements(runs, facts)
    assert text.agrees is False
    (text, *_) = agreements(runs[:2], facts[:1])
    assert text.agrees is None


def before(run: Run) -> Run:
    """The run as versions before 0.3.0 wrote it: its only digest of the vocabulary is that of the words in order."""
    prints = dict(run.origin.fingerprints)
    prints["vocabulary"] = prints.pop("vocabulary_in_order")
    return replace(run, origin=replace(run.origin, fingerprints=prints))


def test_vocabularies_of_runs_that_name_them_in_two_ways(shop: Workshop) -> None:
    """The same words in the same order agree; in another order, only what an old run states is not known."""
    one, same, turned = shop.run(PLAIN), shop.run(PLAIN, "laplace"), shop.run(PLAIN, train=TRAIN[::-1])
    other = shop.run(PLAIN, train=[*TRAIN, "more words"])
    cases: list[tuple[Run, Run, bool | None]] = [
        (one, same, True), (one, turned, True), (one, other, False), (before(one), before(same), True),
        (before(one), before(other), False), (before(one), same, True), (same, before(one), True),
        (before(one), turned, None), (before(one), other, None),
    ]  # fmt: skip
    for first, second, agrees in cases:
        (fact,) = gather_facts([first, second])
        (found,) = (one for one in agreements([first, second], [fact]) if one.what == "vocabulary")
        assert found.agrees is agrees
        assert verdicts(first, second, fact)[0][0].comparable == (agrees is True)
