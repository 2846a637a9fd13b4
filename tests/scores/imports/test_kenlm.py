"""Output of KenLM's `query`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.scores.imports.outputs import KENLM
from tests.scores.imports.parsing import noted, parsed

from lmgauge.base.errors import InputError
from lmgauge.scores.table import EOS_KIND, OOV, TOKEN


def test_words_orders_and_kinds(tmp_path: Path) -> None:
    segments, notes = noted(tmp_path, KENLM)
    assert [len(segment.pieces) for segment in segments] == [7, 4, 6, 3]
    third = segments[2]
    assert third.pieces == [b"the", b"zebra", b"sat", b"on", "café".encode(), b"</s>"]
    assert third.kinds == [TOKEN, OOV, TOKEN, TOKEN, TOKEN, EOS_KIND]
    assert third.contexts == [2, 1, 1, 2, 1, 1]
    assert third.logprob[1] == -2.7515976 * math.log(10)
    assert "KenLM's own perplexities follow from its words" in notes


def test_words_alone_have_no_lines(tmp_path: Path) -> None:
    """`query -v word` writes one line, without sums; sentences end at </s>."""
    one_line = "".join(cell + "\t" for line in KENLM.splitlines()[:4] for cell in line.split("\t")[:-1])
    segments, notes = noted(tmp_path, one_line)
    assert [segment.pieces for segment in segments] == [segment.pieces for segment in parsed(tmp_path, KENLM)]
    assert "come out" not in notes


def test_words_with_signs_of_the_layout(tmp_path: Path) -> None:
    assert parsed(tmp_path, "a==4 1 -1\t=b=5 1 -2\t</s>=2 1 -1\t")[0].pieces == [b"a=", b"=b", b"</s>"]


def test_sentences_without_an_end(tmp_path: Path) -> None:
    """`query -n`; and a last line without a newline, whose words KenLM counts and does not add."""
    plain = (
        "the=3 1 -0.5\tcat=4 2 -1\tTotal: -1.5 OOV: 0\na=9 1 -1\tTotal: -1 OOV: 0\nPerplexity including OOVs:\t6.8129207\n"
    )
    segments, notes = noted(tmp_path, plain)
    assert [segment.pieces for segment in segments] == [[b"the", b"cat"], [b"a"]]
    assert "2 sentences have no </s>" in notes
    cut = "a=9 1 -1\t</s>=2 1 -1\tTotal: -2 OOV: 0\nb=8 1 -1\tPerplexity including OOVs:\t4.64\n"
    segments, notes = noted(tmp_path, cut)
    assert [segment.pieces for segment in segments] == [[b"a", b"</s>"], [b"b"]]
    assert "come out" not in notes


def test_what_is_said_while_a_model_loads_is_passed_over(tmp_path: Path) -> None:
    noise = "Loading the LM will be faster if you build a binary file.\nReading k.arpa\n----5---10\n***\n"
    assert len(parsed(tmp_path, noise + KENLM + "Name:query\tVmPeak:16 kB\tuser:0.1\n")) == 4


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("a=9 2 -0.80796665\t", "", "line 2: says 'Total: -2.84416', and its words sum to -2.03619"),
        ("Total: -8.511564 OOV: 1", "Total: -8.511564 OOV: 0", "line 3: says 'Total: "),
        ("OOVs:\t9.473", "OOVs:\t8.473", "says 'Perplexity including OOVs: 8.47305', and its words give 9.47305"),
        ("a=9 2 -0.80796665", "a=9 2 nan", "line 2: a log-probability is NaN"),
        ("dog=10 3 -0.054684136", "dog 10 3", "line 2: 'dog 10 3' stands where KenLM writes WORD=ID ORDER LOG10"),
        ("a=9 2 -0.80796665", "a=9 2 0.5", "line 2: says 'Total"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in KENLM
    with pytest.raises(InputError) as error:
        parsed(tmp_path, KENLM.replace(old, new, 1))
    assert words in str(error.value)
