"""Normalisation against jiwer's transformations, step by step, and text by text."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.errors import LmgaugeError, UsageError
from lmgauge.tasks import WER, wer
from lmgauge.tasks.normalization import CONTRACTIONS, STANDARD, Normalization
from lmgauge.tasks.substitutions import Substitutions
from lmgauge.tasks.texts import Texts

jiwer = pytest.importorskip("jiwer")

# Brackets that do not close in their text, contractions, white space of all kinds, the sigma whose lower case depends on
# what follows, and marks that could combine with the text before.
PARTS = [
    "[laugh]",
    "<unk>",
    "[",
    "]",
    "<",
    ">",
    "won't",
    "CAN'T",
    "she'll",
    "n't",
    "'",
    " ",
    "  ",
    "\t",
    "\u3000",
    "a",
    "ΑΣ",
]
parts = st.lists(st.sampled_from([*PARTS, "Σ", "\u0301", "ﬁ", "İ", "…", "-", "中。", "x"]), max_size=8).map("".join)
anything = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
texts = st.lists(st.one_of(parts, anything), max_size=6)


def applied(normalization: Normalization, strings: list[str]) -> list[str]:
    return normalization.applied(Texts.of_strings(strings)).strings()


@pytest.mark.parametrize(
    ("options", "step"),
    [
        ({"lowercase": True}, jiwer.ToLowerCase),
        ({"expand_contractions": True}, jiwer.ExpandCommonEnglishContractions),
        ({"remove_nonwords": True}, jiwer.RemoveKaldiNonWords),
        ({"remove_punctuation": True}, jiwer.RemovePunctuation),
    ],
)
def test_each_step_is_jiwers(options: dict[str, Any], step: Callable[[], Any]) -> None:
    transformed = step()

    @given(texts)
    def check(strings: list[str]) -> None:
        assert applied(Normalization(**options), strings) == transformed(strings)

    assert check() is None


@given(texts)
def test_the_standard_leads_to_jiwers_words(strings: list[str]) -> None:
    # jiwer parts words at blanks, and makes blanks of ASCII white space only.
    narrow = ["".join("_" if c.isspace() and c not in " \t\n\r\v\f" else c for c in text) for text in strings]
    expected = jiwer.transformations.wer_standardize(narrow)
    assert [text.split() for text in applied(STANDARD, narrow)] == (expected if narrow else [])
    assert all(text == " ".join(text.split()) for text in applied(STANDARD, strings))


@given(texts)
def test_one_text_does_not_touch_the_next(strings: list[str]) -> None:
    for form in ("NFC", "NFKC"):
        every = Normalization(
            unicode_form=form,  # type: ignore[arg-type]
            lowercase=True,
            expand_contractions=True,
            remove_nonwords=True,
            remove_punctuation=True,
            collapse_spaces=True,
        )
        assert applied(every, strings) == [applied(every, [text])[0] for text in strings]
        assert applied(Normalization(unicode_form=form), strings) == [unicodedata.normalize(form, text) for text in strings]  # type: ignore[arg-type]
    assert applied(Normalization(collapse_spaces=True), strings) == [" ".join(text.split()) for text in strings]
    assert applied(Normalization(lowercase=True), strings) == [text.lower() for text in strings]


def test_nothing_asked_nothing_done() -> None:
    packed = Texts.of_strings(["A  b"])
    assert Normalization().applied(packed) is packed
    assert Normalization().signature() == {"case": "mixed", "norm": "none"}


def test_texts_out_of_a_larger_block() -> None:
    packed = Texts.of_strings(["A", "B'S", "", "C"])
    assert STANDARD.applied(packed.part(1, 4)).strings() == ["b is", "", "c"]
    assert STANDARD.applied(packed.part(2, 3)).strings() == [""]
    assert STANDARD.applied(packed.part(0, 0)).strings() == []


def test_the_order_of_contractions_is_part_of_them() -> None:
    assert applied(Normalization(expand_contractions=True), ["won't isn't 'tis"]) == ["will not is not  notis"]
    assert dict(CONTRACTIONS)["n't"] == " not"


@given(st.lists(st.text(st.sampled_from("'wontcalesrdvm W\u2003"), max_size=30), max_size=4))
def test_contractions_side_by_side(strings: list[str]) -> None:
    assert applied(Normalization(expand_contractions=True), strings) == jiwer.ExpandCommonEnglishContractions()(strings)


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(UsageError, match="choose one of NFC, NFKC"):
        Normalization(unicode_form="NFD")  # type: ignore[arg-type]


# What parts words in jiwer, what does not, and runs of both.
spaces = st.lists(st.sampled_from(["a", "b", " ", "\t", "\u00a0", "\u2003", "\x1c", "\n"]), max_size=8).map("".join)


@given(st.lists(st.tuples(spaces, spaces), min_size=1, max_size=4), st.booleans())
def test_words_are_parted_as_in_jiwer(pairs: list[tuple[str, str]], standardize: bool) -> None:
    references, hypotheses = (list(texts) for texts in zip(*pairs, strict=True))
    transform = jiwer.transformations.wer_standardize if standardize else jiwer.transformations.wer_default
    words = transform(references)
    normalized = WER(jiwer_words=True, standardize=standardize).prepared(Texts.of_strings(references)).strings()
    assert [len(text.split()) for text in normalized] == [len(of_text) for of_text in words]
    if all(words):
        ours = wer(hypotheses=hypotheses, references=references, jiwer_words=True, standardize=standardize)
        theirs = jiwer.process_words(references, hypotheses, reference_transform=transform, hypothesis_transform=transform)
        assert ours.score == theirs.wer
        assert (ours.substitutions, ours.deletions, ours.insertions) == (
            *(theirs.substitutions, theirs.deletions, theirs.insertions),
        )


def test_a_transform_is_for_both_sides_and_in_the_signature() -> None:
    score = wer(hypotheses=["JA gut"], references=["ja GUT"], transform=str.lower)
    assert score.score == 0
    assert "transform:str.lower" in score.signature
    composed = jiwer.Compose([jiwer.ToLowerCase(), jiwer.SubstituteWords({"gut": "prima"})])
    other = wer(hypotheses=["JA gut"], references=["ja prima"], transform=composed)
    assert other.score == 0
    assert "transform:jiwer.transforms.Compose" in other.signature


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transform": "lower"}, "transform is str, not a function"),
        ({"transform": len}, "transform returned int"),
        ({"transform": str.lower, "whisper": "basic"}, "give one of transform and whisper"),
        ({"whisper": "german"}, "choose one of english, basic"),
    ],
)
def test_what_is_not_a_normalizer_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LmgaugeError, match=message):
        wer(hypotheses=["a"], references=["a"], **options)


def test_substitutions_come_after_lower_case() -> None:
    pairs = {"Gonna": "going to", "Mr.": "mister"}
    score = wer(hypotheses=["GONNA go Mr. X"], references=["going to go mister x"], lowercase=True, substitutions=pairs)
    assert score.score == 0
    assert f"substitutions:{Substitutions.of(pairs).digest}" in score.signature
