"""What may be done to transcripts before they are compared; each step is named in the signature.

Many texts go through a step as one string, with NUL between them: see `Texts.mapped_together`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from lmgauge.choices import UNICODE_FORMS, UnicodeForm
from lmgauge.errors import UsageError
from lmgauge.tasks.texts import Texts

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


@dataclass(frozen=True)
class Normalization:
    """Steps, in the order in which they are done.

    Attributes:
        unicode_form: "NFC" or "NFKC": one spelling for what Unicode can spell in several ways.
        lowercase: Python's str.lower().
        expand_contractions: "won't" becomes "will not" and so on, see `CONTRACTIONS`.
        remove_nonwords: what stands in [] or <> is taken out, as speech recognizers write [laugh] and <unk>.
        remove_punctuation: characters of the Unicode categories P are taken out (nothing takes their place).
        collapse_spaces: white space becomes one blank, and none at the ends. Word error rates are the same without; for
            character error rates every blank counts.
    """

    unicode_form: UnicodeForm | None = None
    lowercase: bool = False
    expand_contractions: bool = False
    remove_nonwords: bool = False
    remove_punctuation: bool = False
    collapse_spaces: bool = False

    def __post_init__(self) -> None:
        """Check the form.

        Raises:
            UsageError: `unicode_form` is unknown.
        """
        if self.unicode_form is not None and self.unicode_form not in UNICODE_FORMS:
            raise UsageError(f"Unicode form {self.unicode_form!r}: give NFC, NFKC or none")

    def applied(self, texts: Texts) -> Texts:
        """Return the texts after all steps; the same object without any.

        Args:
            texts: one for each segment, as they were written.

        >>> Normalization(lowercase=True, remove_punctuation=True).applied(Texts.of_strings(["Well, yes!"])).strings()
        ['well yes']
        """
        if self == Normalization():
            return texts
        return texts.mapped_together(self._applied)

    def _applied(self, whole: str) -> str:
        if self.unicode_form is not None:
            whole = unicodedata.normalize(self.unicode_form, whole)
        if self.lowercase:
            whole = whole.lower()
        if self.expand_contractions:
            whole = _expanded(whole)
        if self.remove_nonwords and ("[" in whole or "<" in whole):
            whole = _NON_WORDS.sub("", whole)
        if self.remove_punctuation:
            for character in sorted(c for c in set(whole) if unicodedata.category(c)[0] == "P"):
                whole = whole.replace(character, "")
        if self.collapse_spaces:
            whole = _STRIPPED.sub("\0", _WHITE_SPACE.sub(" ", whole)).strip(" ")
        return whole

    def signature(self) -> dict[str, str]:
        """Keys of the signature: `case`, `norm` and, where its tables decide, the version of `unicode`."""
        steps = [
            (self.unicode_form or "").lower(),
            "contractions" * self.expand_contractions,
            "nonwords" * self.remove_nonwords,
            "punct" * self.remove_punctuation,
            "space" * self.collapse_spaces,
        ]
        keys = {"case": "lc" if self.lowercase else "mixed", "norm": "+".join(filter(None, steps)) or "none"}
        if self.unicode_form is not None or self.remove_punctuation:
            keys["unicode"] = unicodedata.unidata_version
        return keys


STANDARD = Normalization(lowercase=True, expand_contractions=True, remove_nonwords=True, collapse_spaces=True)
"""What jiwer calls `wer_standardize`."""


def _expanded(whole: str) -> str:
    """Return the text with contractions replaced, one kind after the other; where there are apostrophes, each word once."""
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
