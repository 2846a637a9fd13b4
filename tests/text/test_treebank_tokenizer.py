"""Treebank words: the rules by example, against NLTK's reading of the same script, and on hostile text."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.text.documents import Corpus, Segments
from lmgauge.text.tokenizers import Tokenizer, load_tokenizer, make_tokenizer
from lmgauge.text.treebank_tokenizer import TreebankTokenizer

DATA = Path(__file__).parent.parent / "data"

PIECES = (
    *(
        "'",
        "''",
        "s",
        "t",
        "n't",
        "N'T",
        "'s",
        "'ll",
        "'d",
        "'ve",
        " ",
        "  ",
        ".",
        "...",
        "..",
        ",",
        ":",
        "--",
        "-",
        "(",
        ")",
    ),
    *('"', "`", "``", "?", "<", ">", "cannot", "gonna", "wanna", "'tis", "d'ye", "more'n", "é", "1", "a", "٣", "三"),
)
hostile = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)
QUIRKS = re.compile(r"(?i)[,:][,:]|'(?:[smdt]|ll|re|ve)'|'t(?:is|was)'")
"""Where a substitution of NLTK's takes a character that its next one needs: of `,,a` it cuts off one comma, of
`shouldn't've` one contraction, of `'Tom's'` at the end the quote alone. The script cuts off both."""


def words(text: str) -> list[str]:
    (segments,) = Corpus.from_strings([text])
    return [token.decode() for token in TreebankTokenizer().tokenize(segments).strings()]


def nltk_words(text: str) -> list[str]:
    treebank = pytest.importorskip("nltk.tokenize.treebank")
    return list(treebank.TreebankWordTokenizer().tokenize(text))


def without_direction(tokens: list[str]) -> list[str]:
    """Quotes as one token: NLTK's say whether they open or close."""
    return ['"' if token in ("``", "''") else token for token in tokens]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("They'll save and invest more.", "They|'ll|save|and|invest|more|."),
        ("hi, my name can't hello,", "hi|,|my|name|ca|n't|hello|,"),
        ("I CAN'T, she'd've; we're John's", "I|CA|N'T|,|she'd|'ve|;|we|'re|John|'s"),
        ("Etc. of U.S. firms (at 9:30, $3.88).", "Etc.|of|U.S.|firms|(|at|9:30|,|$|3.88|)|."),
        ('He said: "Go ... now--1,000 [x]!" ', 'He|said|:|"|Go|...|now|--|1,000|[|x|]|!|"'),
        ("the boys' 'Tom's' ''a''", "the|boys|'|'Tom|'s|'|''|a|''"),
        ("gonna cannot Gimme lemme gotta d'ye more'n", "gon|na|can|not|Gim|me|lem|me|got|ta|d|'ye|more|'n"),
        ("'Tis (so 'twasn't x'tis) wanna wanna-be", "'T|is|(|so|'t|was|n't|x'tis|)|wan|na|wanna-be"),
        ("shouldn't've mustn't,", "should|n't|'ve|must|n't|,"),
        ("a.. b.... c. d.')", "a..|b|...|.|c.|d|.|'|)"),
        ("n't 's ' , .", "n't|'s|'|,|."),
        ("x\u00a0y\u3000don't\u2028z\x1ct\x85u", "x|y|do|n't|z|t|u"),
    ],
)
def test_words(text: str, tokens: str) -> None:
    assert words(text) == tokens.split("|")


def test_spans_and_what_is_lost() -> None:
    (segments,) = Corpus.from_strings(["don't,  é.", "", " \u3000", "x", " y", "z.", "\u2003"])
    tokens = TreebankTokenizer().tokenize(segments)
    assert tokens.counts.tolist() == [5, 0, 0, 1, 1, 2, 0]
    assert tokens.span_ends.tolist() == [2, 5, 6, 10, 11, 1, 2, 1, 2]
    assert tokens.lossy.tolist() == [True, False, True, False, True, True, True]
    assert tokens.starts.dtype == tokens.counts.dtype == tokens.span_ends.dtype == np.int64


def test_segments_with_gaps_between_and_their_ends() -> None:
    data = np.frombuffer(b"a.\n\n\xffb.c \xfe.", np.uint8)
    segments = Segments(data, np.array([0, 5, 7, 10]), np.array([4, 7, 9, 10]), "x")
    tokens = TreebankTokenizer().tokenize(segments)
    assert tokens.strings() == [b"a", b".", b"b", b".", b"c"]
    assert (tokens.counts.tolist(), tokens.span_ends.tolist()) == ([2, 2, 1, 0], [1, 2, 1, 2, 1])
    none = np.zeros(0, np.int64)
    assert len(TreebankTokenizer().tokenize(Segments(np.zeros(0, np.uint8), none, none, "x"))) == 0


def test_identity(tmp_path: Path) -> None:
    tokenizer = make_tokenizer("treebank")
    assert isinstance(tokenizer, Tokenizer)
    assert (tokenizer.name, tokenizer.unit, tokenizer.kernel) == ("treebank", "word", None)
    again = load_tokenizer(json.loads(json.dumps(tokenizer.settings())), tmp_path)
    assert (type(again), again.fingerprint) == (TreebankTokenizer, tokenizer.fingerprint)


@pytest.mark.parametrize(
    "text",
    [
        'I can\'t say "no" (or $3.88, 5%).',
        "gonna cannot 'tis, d'ye see?",
        'It\'s John\'s; he\'s [here]... "a" "b"!',
        "",
    ],
)
def test_detokenized(text: str) -> None:
    assert TreebankTokenizer().detokenize(words(text)) == text


@given(hostile)
def test_nltk_cuts_alike(text: str) -> None:
    if not QUIRKS.search(text):
        assert without_direction(words(text)) == without_direction(nltk_words(text))


@given(st.text() | hostile)
def test_nothing_but_white_space_is_lost_and_all_of_it_divides(text: str) -> None:
    text = text.replace("\0", "")
    tokens = words(text)
    assert "".join(tokens) == "".join(text.split())
    assert tokens == words(" ".join(text.split()))


@pytest.mark.parametrize("name", ["wikitext2.test.txt", "classic-books.test.txt", "pud.en.txt", "pud.cs.txt"])
def test_nltk_cuts_a_text_alike(name: str) -> None:
    for line in (DATA / name).read_text(encoding="utf-8").split("\n")[:400]:
        assert without_direction(words(line)) == without_direction(nltk_words(line))


@pytest.mark.parametrize("piece", ["'", '"', ".", ".'", "n't", "'s", " ", ". ", "....'", "\u3000", ",", ".)", "'tis "])
def test_hostile_text_takes_no_longer(piece: str) -> None:
    def seconds(size: int) -> float:
        begin = time.process_time()
        words(piece * (size // len(piece)))
        return time.process_time() - begin

    seconds(1_000)
    assert seconds(200_000) < 1.0
