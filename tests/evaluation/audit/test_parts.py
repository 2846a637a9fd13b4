"""The parts of an audit on their own: sums, sampling, spelling, what is asked of a model, and how results read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.audit.auditing import audit
from tests.evaluation.audit.gallery import OtherTemperature, Sound

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.evaluation.audit.audit import NothingToCompareError, check_contamination
from lmgauge.evaluation.audit.checks import FAIL, LEVELS, NOT_CHECKED, PASS, Audit, Check
from lmgauge.evaluation.audit.coverage import recount
from lmgauge.evaluation.audit.spelling import READINGS, Spelling
from lmgauge.evaluation.audit.subject import Portion, Rows, Subject, blocks_of, drawn
from lmgauge.scores import EOS_KIND, OOV, SPELLED, Strings
from lmgauge.text.documents import Corpus

LINES = ["to be or not to be", "that is the question", "to sleep", "", "perchance to dream"]


@given(st.integers(1, 200), st.integers(1, 300))
def test_what_is_drawn_is_distinct_and_in_order(events: int, wanted: int) -> None:
    places = drawn(range(events), wanted, 1)
    assert places == sorted(set(places))
    assert len(places) == min(events, wanted)
    assert places[0] >= 0
    assert places[-1] < events


def rows(segment: int, text: str, tokens: list[str], ends: list[int], kinds: list[int] | None = None) -> Rows:
    n = len(tokens)
    kind = np.array(kinds or [0] * n, np.uint8)
    ids, own, size = np.arange(n, dtype=np.uint32), np.array([segment]), np.array([n])
    return Rows(own, size, ids, Strings(tokens), np.zeros(n), kind, np.array(ends, np.int64), text=text.encode())


def test_a_portion_is_spread_over_the_text_and_of_the_size_asked_for() -> None:
    portion = Portion(500, beginning=False, seed=1)
    for i in range(10_000):
        portion.offer(rows(i, "x" * 9, ["x"], [9]))
    places = [part.segment for part in portion.segments()]
    assert places == sorted(set(places))
    assert len(places) == 50
    assert max(places) > 8000
    assert min(places) < 2000
    fewer = {part.segment for part in portion.segments(100)}
    assert len(fewer) == 10
    assert fewer < set(places)


def test_a_portion_of_a_stream_is_its_beginning() -> None:
    portion = Portion(50, beginning=True, seed=1)
    for i in range(100):
        portion.offer(rows(i, "x" * 9, ["x"], [9]))
    assert [part.segment for part in portion.segments()] == [0, 1, 2, 3, 4]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n"), max_size=8), max_size=6))
def test_denominators_counted_the_plain_way(lines: list[str]) -> None:
    """Against the kernel, which counts by looking at bytes."""
    from lmgauge.evaluation.denominators import count_denominators

    for block in blocks_of([line.encode() for line in lines], 2):
        assert recount(block) == count_denominators(block)


# -- spelling -----------------------------------------------------------------------------------------------------------


def spelled(unit: str, *parts: Rows, oov: int = 0) -> Check:
    spelling = Spelling(unit)
    for part in parts:
        spelling.add(part)
    return spelling.check(oov)


@pytest.mark.parametrize(
    ("unit", "text", "tokens", "ends", "kinds"),
    [
        ("word", " a  b ", ["a", "b", "</s>"], [2, 5, 6], [0, 0, EOS_KIND]),
        ("word", "a zz", ["a", "<unk>", "</s>"], [1, 4, 4], [0, OOV, EOS_KIND]),
        ("word", "<unk>", ["<<unk>>"], [5], [0]),
        ("word", "a zz b", ["a", "<unk>", "b"], [1, 4, 6], [0, SPELLED, 0]),
        ("word", "a zz b", ["a", "<unk>", "b"], [1, 5, 6], [0, OOV, 0]),
        ("character", "a b", ["a", "<unk>", "b"], [1, 2, 3], [0, SPELLED, 0]),
        ("character", "ä日", ["ä", "日", "</s>"], [2, 5, 5], [0, 0, EOS_KIND]),
        ("byte", "ä", ["<0xC3>", "<0xA4>"], [1, 2], [0, 0]),
        ("subword", "the ä", ["the", "Ġ", "Ã", "¤"], [3, 4, 6, 6], [0, 0, 0, 0]),
        ("subword", "the ä", ["▁the", "▁", "<0xC3>", "<0xA4>"], [3, 4, 6, 6], [0, 0, 0, 0]),
        ("token", "the cat", ["the", "Ġcat"], [3, 7], [0, 0]),
    ],
)
def test_tokens_that_spell_their_bytes(unit: str, text: str, tokens: list[str], ends: list[int], kinds: list[int]) -> None:
    assert spelled(unit, rows(0, text, tokens, ends, kinds)).verdict == PASS


@pytest.mark.parametrize(
    ("unit", "text", "tokens", "ends", "kinds"),
    [
        ("word", "a b c", ["a", "c"], [1, 5], [0, 0]),
        ("word", "a b c", ["a", "<unk>"], [1, 5], [0, OOV]),
        ("word", "a zz b", ["a", "<unk>", "b"], [1, 5, 6], [0, SPELLED, 0]),
        ("word", "a b", ["a", "</s>"], [1, 3], [0, EOS_KIND]),
        ("character", "ab", ["a", "</s>"], [1, 2], [0, EOS_KIND]),
        ("byte", "ab", ["<0x61>"], [2], [0]),
        ("byte", "a", ["<0x62>"], [1], [0]),
    ],
)
def test_tokens_that_do_not(unit: str, text: str, tokens: list[str], ends: list[int], kinds: list[int]) -> None:
    found = spelled(unit, rows(0, text, tokens, ends, kinds))
    assert found.verdict == FAIL
    assert "segment 1, event" in found.evidence


@pytest.mark.parametrize("unit", ["subword", "token"])
def test_a_spelling_that_is_not_known_is_not_checked(unit: str) -> None:
    found = spelled(unit, rows(0, "the cat", ["TH##", "##E", "C", "AT"], [2, 3, 4, 7]))
    assert found.verdict == NOT_CHECKED
    assert "by no rule known here" in found.evidence


@pytest.mark.parametrize(
    ("text", "tokens", "ends", "read_as"),
    [
        ("to be or", ["to", "be", "or"], [2, 5, 8], "words"),
        ("ab", ["a", "b"], [1, 2], "characters"),
        ("to be or", ["to", " be", " or"], [2, 5, 8], "plain pieces"),
        ("to beat", ["to", " be", "at"], [2, 5, 7], "plain pieces"),
        ("to beat", ["to", "Ġbe", "at"], [2, 5, 7], "byte-level subwords"),
        ("a ä", ["a", "Ġ", "Ã", "¤"], [1, 2, 4, 4], "byte-level subwords"),
        ("to beat", ["▁to", "▁be", "at"], [2, 5, 7], "subwords with U+2581 for spaces"),
        ("to beat", ["▁to", "▁be", "at"], [3, 5, 7], "subwords with U+2581 for spaces"),  # the space to its other neighbor
    ],
)
def test_the_simplest_reading_that_fits(text: str, tokens: list[str], ends: list[int], read_as: str) -> None:
    found = spelled("token", rows(0, text, tokens, ends))
    assert (found.verdict, found.details["read_as"]) == (PASS, read_as)


@pytest.mark.parametrize("space", [" ", "Ġ", "▁"])
@pytest.mark.parametrize(("wrong", "verdict"), [(1, FAIL), (2, FAIL), (3, NOT_CHECKED)])
def test_a_reading_that_fits_nine_tokens_in_ten_makes_the_others_wrong(space: str, wrong: int, verdict: str) -> None:
    """Rows dropped, and the span of the next stretched over the gap."""
    tokens = ["to", *(f"{space}w{i:02}" for i in range(19 + wrong))]
    ends = [2 + 4 * i for i in range(len(tokens))]
    text = "to" + "".join(f" w{i:02}" for i in range(19 + wrong))
    kept = [i for i in range(len(tokens)) if i not in range(3, 3 + 2 * wrong, 2)]
    found = spelled("token", rows(0, text, [tokens[i] for i in kept], [ends[i] for i in kept]))
    assert found.verdict == verdict, found
    assert ("spans ' w02 w03'" in found.evidence) == (verdict == FAIL)


def test_most_segments_altered_are_no_spelling() -> None:
    spelling = Spelling("subword", "".join)
    for i in range(5):
        spelling.add(rows(i, "aB", ["a", "b"], [1, 2]), altered=i < 3)
    found = spelling.check(0)
    assert found.verdict == NOT_CHECKED
    assert found.evidence.startswith("the tokenizer alters the text, or first tokens have no row: 3 of 5 segments")


# -- what is asked of a model, and how results read ------------------------------------------------------------------------


def test_two_methods_are_enough() -> None:
    model = Sound(LINES)
    bare: Any = SimpleNamespace(
        vocabulary=model.vocabulary,
        tokenizer=model.tokenizer,
        score=lambda segments: model.score(segments),
        log_distribution=model.log_distribution,
    )
    found = audit(bare, Corpus.from_strings(LINES))
    assert found.passed
    assert found.model == "SimpleNamespace"
    del bare.log_distribution
    with pytest.raises(UsageError, match="has no log_distribution; whole distributions and audits need it"):
        audit(bare, Corpus.from_strings(LINES))


def test_distributions_of_another_size_are_refused() -> None:
    model: Any = Sound(LINES)
    model.log_distribution = lambda context: np.zeros(3)
    with pytest.raises(UsageError, match=r"array of shape \(3,\)"):
        audit(model, Corpus.from_strings(LINES))


def test_a_tolerance_has_its_limits() -> None:
    model: Any = Sound(LINES)
    model.tolerance = 5.0
    assert Subject(model).tolerance == 0.01
    model.tolerance = -1.0
    with pytest.raises(UsageError, match="tolerance"):
        Subject(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": ["coverage", "truth"]}, "'truth' is not a level"),
        ({"contexts": 0}, "contexts must be a whole number, 1 or more; got 0"),
        ({"contexts": float("nan")}, "contexts must be a whole number, 1 or more; got nan"),
        ({"seed": -1}, "seed must be a whole number, 0 or more; got -1"),
        ({"compression_bytes": 0}, "compression-bytes must be a whole number, 1 or more"),
        ({"max_overlap": 2}, "max-overlap must be a number from 0 to 1; got 2"),
        ({"sum_tolerance": 0.5}, "sum-tolerance must be a number from 0 to 0.001; got 0.5"),
    ],
)
def test_arguments_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        audit(Sound(LINES), Corpus.from_strings(LINES), **options)


def test_an_empty_text_is_no_text() -> None:
    with pytest.raises(InputError, match="nothing to audit"):
        audit(Sound(LINES), Corpus.from_strings([]))


def test_a_piece_that_only_looks_like_a_byte_is_read_as_text() -> None:
    assert READINGS["metaspace"].of(rows(0, "<0xZZ>", ["<0xZZ>"], [6])) == [True]
    assert READINGS["metaspace"].of(rows(0, "A", ["<0x41>"], [1])) == [True]


def test_levels_that_were_not_asked_for_say_so() -> None:
    found = audit(Sound(LINES), Corpus.from_strings(LINES), levels=["coverage"])
    assert [found.verdict(level) for level in LEVELS] == [PASS] + [NOT_CHECKED] * 4
    assert {check.evidence for check in found.checks if check.level != "coverage"} == {"not asked for"}


def test_a_text_that_can_be_read_only_once() -> None:
    corpus = Corpus.from_strings(iter(LINES))
    assert not corpus.rereadable
    assert audit(Sound(LINES), corpus).passed


@dataclass
class Counts:
    segments: int = 10
    contaminated_segments: int = 1
    bytes: int = 1000
    contaminated_bytes: int = 20
    long_contaminated_bytes: int = 20
    ngrams: int = 50
    n: int = 13
    unit: str = "word"
    unspaced: bool = False


def test_leak() -> None:
    assert check_contamination(None).verdict == NOT_CHECKED
    assert check_contamination(Counts()).verdict == FAIL
    assert check_contamination(lambda: Counts(), 0.02).verdict == PASS
    assert check_contamination(Counts()).evidence.startswith("2.00 % of the bytes (20 of 1,000)")
    assert audit(Sound(LINES), Corpus.from_strings(LINES), overlap=Counts()).verdict("contamination") == FAIL


def test_a_leak_that_could_not_be_looked_for() -> None:
    unspaced = check_contamination(Counts(long_contaminated_bytes=0, unspaced=True))
    assert unspaced.verdict == NOT_CHECKED
    assert "--overlap-unit character" in unspaced.evidence
    assert check_contamination(Counts(long_contaminated_bytes=500, unspaced=True)).verdict == FAIL

    short = check_contamination(Counts(contaminated_bytes=700, long_contaminated_bytes=0))
    assert short.verdict == NOT_CHECKED
    assert short.evidence.startswith("70 % of the bytes are lines that the training text has too")

    def nothing() -> Counts:
        raise NothingToCompareError("the training text has no words")

    assert check_contamination(nothing).verdict == NOT_CHECKED


def test_a_text_without_long_runs() -> None:
    short = check_contamination(Counts(long_contaminated_bytes=0, ngrams=0))
    assert short.verdict == PASS
    assert short.evidence.endswith("No run of 13 words fits in the text: only whole segments were compared.")


@pytest.mark.parametrize("block_bytes", [30, 1000])
def test_the_number_is_that_of_an_evaluation(block_bytes: int) -> None:
    corpus = Corpus.from_strings([*LINES, "an unknown word", "  two  spaces "], block_bytes=block_bytes)
    found, evaluated = audit(Sound(LINES), corpus, levels=["coverage"]), lmgauge.evaluate(Sound(LINES), corpus)
    assert found.perplexity == pytest.approx(evaluated.perplexity, rel=1e-14)
    assert found.bits_per_byte == pytest.approx(evaluated.bits_per_byte, rel=1e-14)
    assert found.bits_per_byte_is_bound == evaluated.bits_per_byte_is_bound is True
    assert found.events == evaluated.events
    assert not audit(Sound(LINES), Corpus.from_strings(LINES), levels=["coverage"]).bits_per_byte_is_bound
    assert audit(Sound(LINES), Corpus.from_strings(LINES), levels=["contamination"]).perplexity is None


def test_results_print_and_turn_into_json() -> None:
    found = audit(OtherTemperature(LINES), Corpus.from_strings(LINES), name="mine")
    assert repr(found) == "<Audit: mine: FAILED, perplexity 2.6037, bits per byte 0.4314, 20 events>"
    assert "FAIL at normalization" in str(found)
    content = json.loads(json.dumps(found.to_dict()))
    assert content["passed"] is False
    assert content["levels"]["normalization"] == "FAIL"
    assert {check["level"] for check in content["checks"]} == set(LEVELS)


def test_an_audit_from_a_file_is_checked_and_shown() -> None:
    written = audit(Sound(LINES), Corpus.from_strings(LINES), levels=["coverage"]).to_dict()
    with pytest.raises(InputError, match=r"Expected a number from 0 on, or `inf` - at `\$\.perplexity`"):
        Audit.from_dict(written | {"perplexity": "nan"})
    bare = Audit.from_dict(written | {"checks": []})
    assert str(bare)
    silent = Audit.from_dict(written | {"checks": [check | {"evidence": ""} for check in written["checks"]]})
    assert str(silent)
