"""Output of SRILM's `ngram -ppl -debug 2`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.scores.imports.outputs import SRILM
from tests.scores.imports.parsing import noted, parsed

from lmgauge.base.errors import InputError
from lmgauge.scores.table import EOS_KIND, OOV, TOKEN


def test_words_orders_and_kinds(tmp_path: Path) -> None:
    segments, notes = noted(tmp_path, SRILM)
    first, second = segments
    assert first.pieces == [b"the", b"cat", b"sat", b"on", b"the", b"mat", b"</s>"]
    assert first.contexts == [2, 3, 3, 3, 3, 3, 1]
    assert first.logprob[0] == -0.2477318 * math.log(10)
    assert second.pieces == [b"a", b"zebra", b"</s>"], "an unseen word has its own string from the sentence before its words"
    assert second.kinds == [TOKEN, OOV, EOS_KIND]
    assert second.logprob[1] == -math.inf
    assert second.contexts == [2, 0, 1]
    assert "1 OOV words have probability 0; SRILM leaves them out" in notes
    assert "SRILM's own counts, logprob and ppl follow from its words" in notes


def test_classes_sums_and_later_debug_levels(tmp_path: Path) -> None:
    """Class models write many orders; -debug 3 writes what probabilities sum to."""
    line = "\tp( a | <s> ) \t= [OOV][1gram][2gram] 0.1 [ -1 ] / 1.00002\n"
    [segment] = parsed(tmp_path, f"a\n{line}1 sentences, 1 words, 0 OOVs\n".replace("1 sent", "0 sent"))
    assert (segment.pieces, segment.contexts, segment.kinds) == ([b"a"], [0], [TOKEN])


def test_an_open_vocabulary(tmp_path: Path) -> None:
    [segment] = parsed(tmp_path, "\tp( <unk> | <s> ) \t= [1gram] 0.01 [ -2 ]\n")
    assert (segment.pieces, segment.kinds) == ([b"<unk>"], [OOV])


def test_words_with_signs_of_the_layout(tmp_path: Path) -> None:
    [segment] = parsed(tmp_path, "\tp( = | <s> ) \t= [1gram] 0.1 [ -1 ]\n\tp( | | = ...) \t= [1gram] 0.1 [ -1 ]\n")
    assert segment.pieces == [b"=", b"|"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("\tp( on | sat ...) \t= [3gram] 0.7963 [ -0.09890125 ]\n", "", "line 9: says 6 words, and its words give 5"),
        ("logprob= -2.957682", "logprob= -3.957682", "line 10: says -3.95768 logprob, and its words give -2.95768"),
        ("1 sentences, 2 words, 1 OOVs", "1 sentences, 2 words, 0 OOVs", "says 0 OOVs, and its words give 1"),
        ("logprob= -5.066679", "logprob= -6", "line 20: says -6 logprob"),
        ("[ -0.2477318 ]", "[ nan ]", "line 2: a log-probability is NaN"),
        ("0.5653 [ -0.2477318 ]", "0.5653", "line 2: "),
        ("[ -0.2477318 ]", "[ x ]", "line 2: 'x' is not a number"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in SRILM
    with pytest.raises(InputError) as error:
        parsed(tmp_path, SRILM.replace(old, new, 1))
    assert words in str(error.value)


def test_an_output_that_was_cut_off_is_said(tmp_path: Path) -> None:
    segments, notes = noted(tmp_path, SRILM.partition("1 sentences")[0])
    assert len(segments) == 1
    assert "1 sentences at the end of a file have no sums" in notes
