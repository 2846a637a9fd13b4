"""What minicons returns, as it is saved."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.scores.imports.outputs import FRAME, MINICONS
from tests.scores.imports.parsing import noted, parsed

from lmgauge.errors import InputError, UsageError


def test_lists(tmp_path: Path) -> None:
    segments, notes = noted(tmp_path, MINICONS, unit="nats")
    assert [segment.pieces for segment in segments] == [["<|endoftext|>", "the", "Ġcat"], ["a", "Ġdog", "ĠcafÃ©"]]
    assert [segment.logprob for segment in segments] == [[None, -6.5, -6.25], [-5.5, -5.625, -7.0]]
    assert "1 first tokens have the score 0" in notes


def test_surprisals_in_bits_with_ranks(tmp_path: Path) -> None:
    [segment] = parsed(tmp_path, json.dumps([[["a", 0.0, 0], ["b", 3.0, 12]]]), unit="bits")
    assert segment.logprob == [None, -3.0 * math.log(2)]


def test_one_sentence_and_batches(tmp_path: Path) -> None:
    assert len(parsed(tmp_path, '[["a", -1.5], ["b", -2]]', unit="nats")) == 1
    assert len(parsed(tmp_path, '[[[["a", -1.5]], [["b", -2]]], [[["c", -2]]]]', "minicons", "nats")) == 3


def test_a_table_by_its_columns(tmp_path: Path) -> None:
    segments, notes = noted(tmp_path, FRAME)
    assert [segment.pieces for segment in segments] == [["the", "cat"], ["a", "dog"]]
    assert segments[0].logprob == [-2.0 * math.log(2)] * 2
    assert "the unit is bits, as the column 'surprisal_bits' says" in notes
    with pytest.raises(UsageError, match="--log-unit nats: column 'surprisal_bits' writes bits"):
        parsed(tmp_path, FRAME, unit="nats")


@pytest.mark.parametrize(("perplexity", "unit"), [(4.0, "bits"), (math.exp(2), "nats"), (100.0, "log10")])
def test_the_unit_is_what_gives_a_stated_perplexity(tmp_path: Path, perplexity: float, unit: str) -> None:
    table = f"token\tsurprisal\tppl\nthe\t2.5\t{perplexity}\ncat\t1.5\t{perplexity}\n"
    [segment], notes = noted(tmp_path, table)
    assert f"the unit is {unit}: so the scores give the perplexity that the file states" in notes
    scores = [value for value in segment.logprob if value is not None]
    assert math.exp(-sum(scores) / 2) == pytest.approx(perplexity)


@pytest.mark.parametrize("content", [MINICONS, FRAME.replace("_bits", ""), "token,surprisal,ppl\na,2.0,9.0\n"])
def test_an_unknown_unit_is_asked_for(tmp_path: Path, content: str) -> None:
    with pytest.raises(UsageError, match="the file does not say the unit of its scores; name the unit with --log-unit"):
        parsed(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[[["a", 0.5], ["b", 0.25]]]', "all scores are between 0 and 1: are they probabilities?"),
        ('[[["a", -1.5], ["b", 2.0]]]', "a log-probability is '2.0'"),
        ('[[["a", NaN]]]', "a score is NaN"),
        ('[[["a", -1.5]], [["b", "x"]]]', "item 2: 'x' is not a number"),
        ('[[["a", -1.5]], ["b"]]', "item 2: is not a list of tokens with their scores"),
        ("token,surprisal\na\n", "line 2: has 1 columns, and the header has 2 or more"),
        ("token,surprisal\na,x\n", "line 2: 'x' is not a number"),
    ],
)
def test_other_values_are_refused(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        parsed(tmp_path, content, "minicons", "nats")
    assert words in str(error.value)
