"""What unseen words and white space cost, by the formulas of `models.combined.spelling`, in dictionaries and loops."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from lmgauge.models.combined.spelling.model import SpelledModel
from lmgauge.models.combined.spelling.speller import Speller
from lmgauge.models.combined.spelling.whitespace_model import EMPTY, FIRST, INNER, LAST, SeparatorModel
from lmgauge.scores import EOS_KIND, OOV, ScoreBatch
from lmgauge.text.segments import BETWEEN_WORDS, WHITE_SPACE, Segments
from lmgauge.text.vocabulary import BOS, EOS, UNK

AROUND, BEFORE = 64 * 64 * 2, 8


def leading_white_space(text: str, *, divided: bool) -> str:
    """Return the white space that a text begins with."""
    return text[: len(text) - len(text.lstrip(BETWEEN_WORDS if divided else WHITE_SPACE))]


def separator_probability(model: SeparatorModel, text: str, context: int) -> float:
    """Return p(separator | context): counts, each context with one observation of the next coarser one."""
    which = model.known.index(text) if text in model.known else -1
    p = spelled_separator(model, text, context // (AROUND * BEFORE))
    for width in (AROUND * BEFORE, BEFORE, 1):
        seen = {key: n for key, n in model.counts.items() if key[0] // width == context // width}
        here = sum(n for (_, one), n in seen.items() if one == which)
        p = (here + p) / (sum(seen.values()) + 1)
    return p


def spelled_separator(model: SeparatorModel, text: str, place: int) -> float:
    """Return the probability of a separator, character by character."""
    steps = [*zip(["", *text], [*text, ""], strict=True)]
    p = math.prod(separator_step(model, *step) for step in steps)
    if place != INNER or not model.divided:
        return p
    return p / (1 - separator_step(model, "", "")) if text else 0.0


def separator_step(model: SeparatorModel, before: str, following: str) -> float:
    """Return the probability of a character of a separator after another."""
    total = sum(n for (one, _), n in model.spelling.items() if one == before)
    return (model.spelling.get((before, following), 0) + 1 / (len(model.alphabet) + 1)) / (total + 1)


@cache
def word_logprob(speller: Speller, word: str) -> float:
    """Return ln q of a word: one distribution over characters after another."""
    vocabulary, logprob, ids = speller.characters.vocabulary, 0.0, [BOS]
    for character in [*word, None]:
        following = EOS if character is None else vocabulary.id(character)
        logprob += float(speller.characters.log_distribution(np.array(ids, np.uint32))[following])
        if following == UNK:
            logprob += math.log(unseen_character(speller, str(character)))
        ids.append(following)
    return logprob


def unseen_character(speller: Speller, character: str) -> float:
    """Return the share of a character among those outside the alphabet."""
    alphabet = frozenset(ord(one) for one in speller.characters.vocabulary.tokens[3:])
    excluded = alphabet | {ord(one) for one in BETWEEN_WORDS + "\0"}
    return by_blocks(ord(character), alphabet) / (1 - math.fsum(by_blocks(point, alphabet) for point in excluded))


@cache
def by_blocks(point: int, alphabet: frozenset[int]) -> float:
    """Return the probability of a character before the alphabet is left out."""
    mass, above, above_seen = 1.0, 0x110000 - 0x800, len(alphabet)
    for width in (4096, 64, 1):
        size, seen = possible(point // width, width), sum(one // width == point // width for one in alphabet)
        mass *= (seen + size / above) / (above_seen + 1)
        above, above_seen = size, seen
    return mass


@cache
def possible(block: int, width: int) -> int:
    """Return how many code points of a block are characters."""
    return sum(not 0xD800 <= point < 0xE000 for point in range(block * width, (block + 1) * width))


def spelled_rows(model: SpelledModel, block: Segments, batch: ScoreBatch) -> list[tuple[float, float]]:
    """Return what spelling and the separator of each row cost, nats, from the rows of the model inside."""
    assert model.speller is not None
    assert model.separators is not None
    separators, divided = model.separators, model.separators.divided
    known = [word_logprob(model.speller, word) for word in model.vocabulary.tokens[3:]]
    left_over = 1 - math.fsum(map(math.exp, [*known, word_logprob(model.speller, "")]))
    rows, row = [], 0
    for j, (segment, events) in enumerate(zip(batch.segments.tolist(), batch.segment_events.tolist(), strict=True)):
        text, begin, before = block.text(segment - block.first), 0, None
        before_it = block.given_text(segment - block.first)
        crossing = batch.before is not None and bool(batch.before.crossing[j])
        for first in [True] + [False] * (events - 1):
            span = text[begin : int(batch.ends[row])]
            gap = leading_white_space(span.decode(), divided=divided)
            word, left = span[len(gap.encode()) :], before_it + text[:begin]
            is_end = batch.kind[row] == EOS_KIND
            place = (LAST if left else EMPTY) if is_end else (INNER if left else FIRST)
            context = separators.context_of(place, left, b"" if is_end else word, before, quoted=left.count(b'"') % 2 == 1)
            white_before = bool(before_it) and before_it.decode()[-1] in separators.alphabet
            scored = not (first and (crossing or (white_before and not gap)))
            separator = math.log(separator_probability(separators, gap, context)) if scored else 0.0
            spelling = 0.0
            if batch.kind[row] == OOV:
                if crossing and first:
                    cut = max(before_it.rfind(one) for one in BETWEEN_WORDS.encode())
                    word = before_it[cut + 1 :] + word
                spelling = word_logprob(model.speller, word.decode()) - math.log(left_over)
            rows.append((spelling, separator))
            before, begin, row = gap, int(batch.ends[row]), row + 1
    return rows
