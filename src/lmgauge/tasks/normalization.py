"""What may be done to transcripts before they are compared; each step is named in the signature."""

# Many texts go through a step as one string, with NUL between them: see `Texts.mapped_together`.

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from lmgauge.choices import UNICODE_FORMS, WHISPER_NORMALIZERS, UnicodeForm, WhisperNormalizer
from lmgauge.errors import UsageError
from lmgauge.tasks.substitutions import Substitutions
from lmgauge.tasks.texts import Texts
from lmgauge.tasks.whisper import whisper_normalizer

CONTRACTIONS = (
    ("won't", "will not"),
    ("can't", "can not"),
    ("let's", "let us"),
    ("n't", " not"),
    ("'re", " are"),
    ("'s", " is"),
    ("'d", " would"),
    ("'ll", " will"),
    ("'t", " not"),
    ("'ve", " have"),
    ("'m", " am"),
)
"""Common English contractions and what they stand for, one after the other: jiwer's list. Rough: "Anna's" becomes
"Anna is", and capital letters and typographic apostrophes are left alone."""

# From an apostrophe to the end of its word; the three characters before it matter too ("won't").
_APOSTROPHE = re.compile(r"'\S*")
_BEFORE = 3
# No bracket reaches into the next text.
_NON_WORDS = re.compile(r"[<\[][^>\]\0]*[>\]]")
_WHITE_SPACE = re.compile(r"[^\S\0]+")
_STRIPPED = re.compile(r" ?\0 ?")
# White space other than the blank, alone between two characters of words; what stands for it is in no text (noncharacters).
_SINGLE_SPACE = re.compile(r"(?<=[^\s\0])[^\S \0](?=[^\s\0])")
_OTHER_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
_OTHER_SPACES += "\u2028\u2029\u202f\u205f\u3000"
_BLANKS = str.maketrans(dict.fromkeys("\t\n\r\v\f", " "))
_NO_SPACES = {space: chr(0xFDD0 + k) for k, space in enumerate(_OTHER_SPACES)}


@dataclass(frozen=True)
class Normalization:
    """Steps, in the order in which they are done."""

    transform: Callable[[str], str] | None = None  # a function of one's own, of one text, before all other steps
    whisper: WhisperNormalizer | None = None  # "english" or "basic": Whisper's normalizer, likewise
    unicode_form: UnicodeForm | None = None  # "NFC" or "NFKC": one spelling for what Unicode can spell in several ways
    lowercase: bool = False
    # words and phrases that others take the place of; in lower case if the texts are
    substitutions: Substitutions | None = None
    expand_contractions: bool = False  # "won't" becomes "will not" and so on, see `CONTRACTIONS`
    remove_nonwords: bool = False  # what stands in [] or <> is taken out, as speech recognizers write [laugh] and <unk>
    remove_punctuation: bool = False  # characters of the Unicode categories P are taken out (nothing takes their place)
    collapse_spaces: bool = False
    # a single tab, no-break space or the like does not part words: only blanks, and two or more white-space characters in a
    # row, do so in jiwer. With `collapse_spaces` tabs and the like become blanks before, no others.
    jiwer_words: bool = False

    def __post_init__(self) -> None:
        if self.transform is not None and not callable(self.transform):
            raise UsageError(f"transform is {type(self.transform).__name__}, not a function of one string that returns one")
        if self.whisper is not None and self.whisper not in WHISPER_NORMALIZERS:
            raise UsageError(f"Whisper's normalizer {self.whisper!r}: give {' or '.join(WHISPER_NORMALIZERS)}")
        if self.transform is not None and self.whisper is not None:
            raise UsageError("give one of transform and whisper: both are the first step")
        if self.unicode_form is not None and self.unicode_form not in UNICODE_FORMS:
            raise UsageError(f"Unicode form {self.unicode_form!r}: give NFC, NFKC or none")

    def applied(self, texts: Texts) -> Texts:
        """Return the texts after all steps; the same object without any."""
        first = self.transform if self.whisper is None else whisper_normalizer(self.whisper)[0]
        if first is not None:
            texts = Texts.of_strings([_transformed(first, text) for text in texts.strings()], "transformed text")
        if self == Normalization(transform=self.transform, whisper=self.whisper):
            return texts
        return texts.mapped_together(self._applied)

    def _applied(self, whole: str) -> str:
        if self.unicode_form is not None:
            whole = unicodedata.normalize(self.unicode_form, whole)
        if self.lowercase:
            whole = whole.lower()
        if self.substitutions is not None:
            whole = (self.substitutions.lowered() if self.lowercase else self.substitutions).applied(whole)
        if self.expand_contractions:
            whole = _expanded(whole)
        if self.remove_nonwords and ("[" in whole or "<" in whole):
            whole = _NON_WORDS.sub("", whole)
        if self.remove_punctuation:
            for character in sorted(c for c in set(whole) if unicodedata.category(c)[0] == "P"):
                whole = whole.replace(character, "")
        if self.collapse_spaces and self.jiwer_words:
            whole = whole.translate(_BLANKS)
        elif self.collapse_spaces:
            whole = _STRIPPED.sub("\0", _WHITE_SPACE.sub(" ", whole)).strip(" ")
        if self.jiwer_words:
            whole = _SINGLE_SPACE.sub(lambda match: _NO_SPACES[match[0]], whole)
        return whole

    def signature(self) -> dict[str, str]:
        """Keys of the signature: `case`, `norm` and, where its tables decide, the version of `unicode`."""
        steps = [
            (self.unicode_form or "").lower(),
            "contractions" * self.expand_contractions,
            "nonwords" * self.remove_nonwords,
            "punct" * self.remove_punctuation,
            "space" * self.collapse_spaces,
            "jiwer-words" * self.jiwer_words,
        ]
        keys = {"case": "lc" if self.lowercase else "mixed", "norm": "+".join(filter(None, steps)) or "none"}
        if self.unicode_form is not None or self.remove_punctuation:
            keys["unicode"] = unicodedata.unidata_version
        if self.substitutions is not None:
            keys["substitutions"] = self.substitutions.digest
        if self.whisper is not None:
            keys["whisper"] = whisper_normalizer(self.whisper)[1]
        if self.transform is not None:
            keys["transform"] = _name_of(self.transform)
        return keys


STANDARD = Normalization(lowercase=True, expand_contractions=True, remove_nonwords=True, collapse_spaces=True)
"""What jiwer calls `wer_standardize`."""


def _transformed(transform: Callable[[str], str], text: str) -> str:
    result = transform(text)
    if not isinstance(result, str):
        raise UsageError(f"transform returned {type(result).__name__} for a text, not a string")
    return result


def _name_of(transform: Callable[[str], str]) -> str:
    # What a signature calls a function (or an object that is called as one).
    named = transform if hasattr(transform, "__qualname__") else type(transform)
    return re.sub(r"[|:\s]", "-", ".".join(filter(None, (getattr(named, "__module__", ""), named.__qualname__))))


def _expanded(whole: str) -> str:
    # Text with contractions replaced, one kind after the other; where there are apostrophes, each word once.
    parts: list[str] = []
    known: dict[str, str] = {}
    done = 0
    for match in _APOSTROPHE.finditer(whole):
        begin = max(done, match.start() - _BEFORE)
        word = whole[begin : match.end()]
        expanded = known.get(word)
        if expanded is None:
            expanded = word
            for short, full in CONTRACTIONS:
                expanded = expanded.replace(short, full)
            known[word] = expanded
        parts += (whole[done:begin], expanded)
        done = match.end()
    return "".join([*parts, whole[done:]])
