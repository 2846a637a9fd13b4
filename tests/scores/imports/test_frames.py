"""What minicons returns, as it is saved."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pytest
from tests.scores.imports.outputs import FRAME, MINICONS
from tests.scores.imports.parsing import noted, parsed

from lmgauge.base.errors import InputError, UsageError
from lmgauge.evaluation.runs import open_run
from lmgauge.scores.imports.log import LogFile
from lmgauge.scores.imports.programs import open_logs


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


@pytest.mark.parametrize("content", [MINICONS, FRAME.replace("_bits", ""), "token,surprisal,ppl\na,2.0,9.0\n"])
def test_an_unknown_unit_is_asked_for(tmp_path: Path, content: str) -> None:
    with pytest.raises(UsageError, match="the file does not say the unit of its scores; name the unit with --log-unit"):
        parsed(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[[["a", 0.5], ["b", 0.25]]]', "all scores are between 0 and 1: are they probabilities?"),
        ('[[["a", -1.5], ["b", 2.0]]]', "a log-probability is '2.0'"),
        ('[[["a", NaN]]]', "a log-probability is NaN"),
        ('[[["a", -1.5]], [["b", "x"]]]', "item 2: 'x' is not a number"),
        ('[[["a", -1.5]], ["b"]]', "item 2: is not a list of tokens with their scores"),
        ("token,surprisal\na\n", "log:2: 1 column, where the first line has 2"),
        ("token,surprisal\na,x\n", "line 2, column 'surprisal': 'x' is not a number"),
    ],
)
def test_other_values_are_refused(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        parsed(tmp_path, content, "minicons", "nats")
    assert words in str(error.value)


TWO = "segment\ttoken\tmodel_a\tmodel b_bits\n0\tthe\t-1.5\t-2\n0\tcat\t-3.25\t-2.5\n1\ta\t-1\t-1.25\n"


def _named(folder: Path, content: str, name: str, unit: str | None = None) -> list[list[float | None]]:
    path = folder / ("scores.tsv" if "\t" in content else "scores.csv")
    path.write_text(content, encoding="utf-8", newline="\n")
    return [list(segment.logprob) for segment in open_logs([path], None, unit, name).segments()]


def test_one_column_of_several(tmp_path: Path) -> None:
    assert _named(tmp_path, TWO, "model_a", "nats") == [[-1.5, -3.25], [-1.0]]
    assert _named(tmp_path, TWO, "model b_bits", "log10")[1] == [pytest.approx(-1.25 * math.log(10))]
    assert _named(tmp_path, TWO.replace("\t", ","), "model_a", "nats") == [[-1.5, -3.25], [-1.0]]
    both = "word,logprob_nats,Surprisal_bits\na,-1,2\nb,-3,4\n"
    assert _named(tmp_path, both, "Surprisal_bits") == [[-2 * math.log(2), -4 * math.log(2)]]


def test_named_columns_need_no_tokens(tmp_path: Path) -> None:
    assert _named(tmp_path, "segment,model_a\n0,-2\n0,-1\n1,-3\n", "model_a", "nats") == [[-2.0, -1.0], [-3.0]]
    path = tmp_path / "bare.csv"
    path.write_text("model_a\n-2\n-1\n-3\n", encoding="utf-8")
    logs = open_logs([path], None, "nats", "model_a")
    [segment] = logs.segments()
    assert (list(segment.pieces), segment.logprob) == (["", "", ""], [-2.0, -1.0, -3.0])
    assert any("neither interval nor test" in note for note in logs.log.notes())
    frame = LogFile(Path("data frame"), pa.table({"doc": ["a", "b"], "model_a": [-2.0, -1.0]}))
    by_document = open_logs([frame], None, "nats", "model_a")
    assert [segment.document for segment in by_document.segments()] == ["a", "b"]
    assert by_document.log.notes() == []


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (TWO, "model_a", "does not say the unit of its scores; name the unit with --log-unit"),
        (TWO, "model_c", "names no column 'model_c'; it has 'segment', 'token', 'model_a', 'model b_bits'"),
        ("x,model_a\n1,-2\n", "model_b", "names no column 'model_b'; it has 'x', 'model_a'"),
        (MINICONS, "model_a", "names no column 'model_a'"),
    ],
)
def test_a_column_that_cannot_be_read(tmp_path: Path, content: str, name: str, words: str) -> None:
    with pytest.raises((InputError, UsageError), match=words):
        _named(tmp_path, content, name)


def test_a_table_of_unknown_columns_is_told_the_recipe(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text(TWO, encoding="utf-8", newline="\n")
    with pytest.raises(
        InputError, match=r"columns 'segment', 'token', 'model_a', 'model b_bits'; name those .* --logprob COLUMN"
    ):
        open_logs([path])
    with pytest.raises(InputError, match=r"another table is imported first: `lmgauge import .*x.tsv --logprob COLUMN"):
        list(open_run(path).batches())
    with pytest.raises(UsageError, match="logprob names a column of a table; output of kenlm is none"):
        open_logs([path], "kenlm", None, "model_a")


def test_a_quoted_name_of_a_column_may_hold_a_comma(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('token,"logprob, nats"\nthe,-1\n', encoding="utf-8")
    assert LogFile(path).columns() == ["token", "logprob, nats"]
