"""Words as the Penn Treebank has them: "do n't", "they 'll", punctuation apart.

The rules are those of Robert MacIntyre's script tokenizer.sed (1995), as NLTK's `TreebankWordTokenizer` reads it. Here they
are places where a text is cut: nothing is replaced, so that tokens are bytes of the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lmgauge.text.segments import Segments, is_character_start, is_unicode_white_space
from lmgauge.text.tokens import TokenizerBase, Tokens, TokenUnit, runs

# In these patterns \0, which no text contains, is where a segment begins or ends.
_ALONE = "|".join(map(re.escape, '"?!;@#$%&()[]{}<>'))
_POINTS = r"""\.(?:\.\.|(?<!\.\.)(?=[\])}>"']*\s*\0))"""  # three, or the one at the end of a segment
_MARK = rf"{_ALONE}|,(?!\d)|:(?!\d)|--|``|''|{_POINTS}"
# A contraction ends before a gap: white space, a mark, and another contraction that the script splits off before it.
_GAP = rf"\s|\0|{_MARK}"
_CLOSING = rf"'(?={_GAP})"
_GAP += f"|{_CLOSING}"
_SHORT = rf"'[smdSMD](?={_GAP})"
_GAP += f"|{_SHORT}"
_LONG = rf"'(?:ll|re|ve|LL|RE|VE)(?={_GAP})"
_GAP += f"|{_LONG}"
_NOT = rf"'(?:(?<=[^']n')t|(?<=[^']N')T)(?={_GAP})"

_TOKENS = re.compile(rf"{_MARK}|{_CLOSING}|{_SHORT}|{_LONG}|({_NOT})")
"""Tokens that are cut off from what is beside them; before the group stands one more letter, of `n't`."""
_END = rf"(?:\b|(?=[nN]{_NOT}))"
_TWO_WORDS = re.compile(
    rf"(?i:\b(?:(can)not|(d)'ye|(gim)me|(gon)na|(got)ta|(lem)me|(more)'n|(?P<before_gap>wan)na)|(?P<behind_gap>'t)(?:is|was)){_END}"
)
"""Words that are cut in two behind the group."""


class TreebankTokenizer(TokenizerBase):
    """Words and marks as in the Penn Treebank: `do n't`, `gon na`, `( 3.5 % )`; spans are exact."""

    # Punctuation is cut off, a point at the end of a segment only, a comma or colon unless a digit follows. Contractions
    # are cut as the script does. Unlike in the script, quotes and brackets stay as the text has them (no `-LRB-` for `(`),
    # and any white space of Unicode divides words. Rules are for English, one sentence a segment. White space is not a
    # token; it belongs to the span of the token after it. A segment is restored exactly if it is one token.
    # Source: https://web.archive.org/web/19970614160127/http://www.cis.upenn.edu/~treebank/tokenizer.sed

    name = "treebank"
    unit: TokenUnit = "word"
    kernel: int | None = None

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the words of `segments`."""
        # -> its tokens, with byte spans, int64 [tokens].
        lengths = segments.ends - segments.starts
        # Segments in a row, with one byte before each and one behind the last, whatever lies between them in the block.
        at = np.cumsum(lengths + 1) - lengths
        whole = segments.data.tobytes()
        bounds = zip(segments.starts.tolist(), segments.ends.tolist(), strict=True)
        joined = b"\0".join([b"", *(whole[start:end] for start, end in bounds), b""])
        data = np.frombuffer(joined, np.uint8)
        white = is_unicode_white_space(data) | (data == 0)
        starts, ends = runs(~white, _cuts(joined.decode(), data, white))
        owner = np.searchsorted(at, starts, side="right") - 1
        counts = np.bincount(owner, minlength=len(segments)).astype(np.int64, copy=False)
        shift = (segments.starts - at)[owner]
        lossy = (counts > 1) | (np.add.reduceat(white, at, dtype=np.int64) > 1)
        return Tokens(segments.data, starts + shift, ends + shift, counts, ends - at[owner], lossy)

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the words as a text would have them."""
        # Contractions closed up, no blank before a comma or behind a bracket.
        pieces: list[str] = []
        closed, quoted = True, False
        for before, token in zip(["", *tokens], tokens, strict=False):
            opens = token == '"' and not quoted
            if not (closed or token in _CLOSED_UP or (token == '"' and quoted) or _is_one_word(before, token)):
                pieces.append(" ")
            pieces.append(token)
            closed = token in _OPENING or opens
            quoted ^= token == '"'
        return "".join(pieces)


_CONTRACTED = ("'s", "'m", "'d", "'S", "'M", "'D", "'ll", "'re", "'ve", "'LL", "'RE", "'VE", "n't", "N'T")
_CLOSED_UP = frozenset({*".,:;?!)]}%'", "...", "''", *_CONTRACTED})
_OPENING = frozenset({*"([{$#", "``"})


def _is_one_word(before: str, token: str) -> bool:
    match = _TWO_WORDS.fullmatch(before + token)
    return match is not None and match.end(match.lastindex or 0) == len(before)


def _cuts(text: str, data: NDArray[np.uint8], white: NDArray[np.bool_]) -> NDArray[np.int64]:
    # Where a text is cut beside where white space cuts it, int64 [cuts], in bytes.
    # white: bool [bytes], which are white space or NUL.
    # `lastindex` is 1 for `'t`, whose token begins one character before it.
    places = [place for match in _TOKENS.finditer(text) for place in (match.start() - (match.lastindex or 0), match.end())]
    in_bytes = np.flatnonzero(is_character_start(data)) if len(text) < len(data) else np.arange(len(data))
    cut = np.zeros(len(data), bool)
    cut[in_bytes[np.array(places, np.int64)]] = True
    for match in _TWO_WORDS.finditer(text):
        start, middle, end = in_bytes[[match.start(), match.end(match.lastindex or 0), match.end()]].tolist()
        if match["before_gap"] and not (cut[end] or white[end]):
            continue
        if match["behind_gap"] and not (cut[start] or white[start - 1]):
            continue
        cut[[start, middle, end]] = True
    return np.flatnonzero(cut)
