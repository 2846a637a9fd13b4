"""What may be done to transcripts before they are compared; each step is named in the signature."""

# Many texts go through a step as one string, with NUL between them: see `Texts.mapped_together`.

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from lmgauge.base.errors import UsageError
from lmgauge.tasks.settings import NormalizationOptions
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


class Normalization(NormalizationOptions):
    """Steps: `transform` or `whisper` first, then those of `_applied` in their order, whatever `standardize` says."""

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
        if isinstance(self.substitutions, Substitutions):
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
        if isinstance(self.substitutions, Substitutions):
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
