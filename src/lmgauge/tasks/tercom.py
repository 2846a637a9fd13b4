"""Texts as Tercom prepares them for TER: lower case, punctuation separated or removed, Chinese and Japanese by character."""

# The words are those of sacreBLEU 2.6's Tercom tokenizer, its oddities included: "enclosed CJK letters" reach from U+3200
# to U+3F22, far into ideographs that are split anyway, and runs of Hiragana and Katakana are never split, as the rules for
# them are tied to the start of a text that begins with a blank.

from __future__ import annotations

import re
from functools import partial

from lmgauge.tasks.settings import TerOptions
from lmgauge.tasks.texts import Texts

# What is between texts that are prepared together. No rule below looks across one: NUL is neither a letter nor skipped
# between letters (the final sigma's rule), and there is a blank to both its sides.
_BREAK = "\0"

_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
# ASCII punctuation without ' , - and the full stop, which the other rules are about.
_PUNCTUATION = re.compile(r"([{|}~\[\\\]^_`!\"#$%&()*+:;<=>?@/])")
_AFTER_NO_DIGIT = re.compile(r"([^0-9])([.,])")
_BEFORE_NO_DIGIT = re.compile(r"([.,])([^0-9])")
_DASH_AFTER_DIGIT = re.compile(r"([0-9])-")
_REMOVED = re.compile(r"[.,?:;!\"()]")

_ASIAN_PUNCTUATION = "\u3001\u3002\u3008-\u3011\u3014-\u301f\uff61-\uff65\u30fb"
_FULL_WIDTH_PUNCTUATION = "\uff0e\uff0c\uff1f\uff1a\uff1b\uff01\uff02\uff08\uff09"
_IDEOGRAPHS = "\u2e80-\u2eff\u31c0-\u31ef\u3200-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f"
# Blanks around a character are all that any of the Asian rules adds, so that one rule does for all.
_ASIAN = re.compile(f"([{_IDEOGRAPHS}{_ASIAN_PUNCTUATION}{_FULL_WIDTH_PUNCTUATION}])")
_ASIAN_REMOVED = re.compile(f"[{_ASIAN_PUNCTUATION}{_FULL_WIDTH_PUNCTUATION}]")


def tercom(texts: Texts, options: TerOptions) -> Texts:
    """Return texts as Tercom prepares them; their words are what is between white space."""
    # tercom(Texts.of_strings(["The mat."]), TerOptions(normalized=True)).strings() -> ['the mat .']
    if options.case_sensitive and not options.normalized and not options.no_punct:
        return texts
    return texts.mapped_together(partial(_prepared, options))


def _prepared(options: TerOptions, text: str) -> str:
    if options.normalized:  # what ends a text would otherwise come between its last word and the blank set behind it
        text = _BREAK.join([one.rstrip() for one in text.split(_BREAK)])
    if not options.case_sensitive:
        text = text.lower()
    if options.normalized:
        text = _western(text)
        if options.asian_support:
            text = _ASIAN.sub(r" \1 ", text)
    if options.no_punct:
        text = _REMOVED.sub("", text)
        if options.asian_support:
            text = _ASIAN_REMOVED.sub("", text)
    # References pass twice, and the second pass looks for a blank behind 's: white space of any kind becomes one.
    return " ".join(text.split()) if options.normalized else text


def _western(text: str) -> str:
    text = text.replace("\n-", "").replace("\n", " ")
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    text = " " + text.replace(_BREAK, f" {_BREAK} ") + " "
    text = _PUNCTUATION.sub(r" \1 ", text)
    text = text.replace("'s ", " 's ")
    text = _AFTER_NO_DIGIT.sub(r"\1 \2 ", text)
    text = _BEFORE_NO_DIGIT.sub(r" \1 \2", text)
    return _DASH_AFTER_DIGIT.sub(r"\1 - ", text)
