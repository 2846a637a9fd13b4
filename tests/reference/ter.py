"""Slow twin of `_kernels/ter.cpp`: Tercom's search for shifts with a whole table of costs for each order of the words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

BEAM = 25
LONGEST, FARTHEST, MOST = 10, 50, 1000
INFINITY = 10**16

Words = Sequence[str]


def table(hypothesis: Words, reference: Words) -> list[list[int]]:
    """Costs after i words of the hypothesis and j of the reference; infinite outside the beam."""
    rows, columns = len(hypothesis), len(reference)
    ratio = columns / rows if rows else 1.0
    beam = math.ceil(ratio / 2 + BEAM) if ratio / 2 > BEAM else BEAM
    costs = [list(range(columns + 1))]
    for i in range(1, rows + 1):
        diagonal = math.floor(i * ratio)
        end = columns + 1 if i == rows else min(columns + 1, diagonal + beam)
        row = [INFINITY] * (columns + 1)
        for j in range(max(0, diagonal - beam), end):
            row[j] = costs[i - 1][j] + 1
            if j:
                row[j] = min(costs[i - 1][j - 1] + (hypothesis[i - 1] != reference[j - 1]), row[j], row[j - 1] + 1)
        costs.append(row)
    return costs


def align(hypothesis: Words, reference: Words, costs: list[list[int]]) -> tuple[list[int], list[bool], list[bool]]:
    """The place of each reference word, and the errors of hypothesis and reference, along the cheapest path."""
    i, j = len(hypothesis), len(reference)
    places, wrong, missed = [0] * j, [False] * i, [False] * j
    while i or j:
        differ = bool(i and j) and hypothesis[i - 1] != reference[j - 1]
        if i and j and costs[i - 1][j - 1] + differ == costs[i][j]:
            places[j - 1], wrong[i - 1], missed[j - 1] = i - 1, differ, differ
            i, j = i - 1, j - 1
        elif i and costs[i - 1][j] + 1 == costs[i][j]:
            wrong[i - 1] = True
            i -= 1
        else:
            places[j - 1], missed[j - 1] = i - 1, True
            j -= 1
    return places, wrong, missed


def common_runs(hypothesis: Words, reference: Words) -> Iterator[tuple[int, int, int]]:
    """Starts in hypothesis and reference, and length, of equal words that are not too far from each other."""
    for start in range(len(hypothesis)):
        for place in range(len(reference)):
            if abs(place - start) > FARTHEST:
                continue
            for length in range(1, LONGEST + 1):
                if max(start + length - len(hypothesis), place + length - len(reference)) > 0:
                    break
                if hypothesis[start + length - 1] != reference[place + length - 1]:
                    break
                yield start, place, length


def shifted(words: Words, start: int, length: int, target: int) -> list[str]:
    """`length` words moved from `start` to before `target`; one from `start` to their end counts without them."""
    moved, rest = words[start : start + length], [*words[:start], *words[start + length :]]
    at = target - length if target > start + length else target
    return [*rest[:at], *moved, *rest[at:]]


def edits(hypothesis: Words, reference: Words) -> int:
    """Shifts, insertions, deletions and substitutions."""
    if not reference:
        return len(hypothesis)
    words, shifts, looked_at = list(hypothesis), 0, 0
    while True:
        costs = table(words, reference)
        places, wrong, missed = align(words, reference, costs)
        found: list[tuple[tuple[int, int, int, int], list[str]]] = []
        for start, place, length in common_runs(words, reference):
            if not any(wrong[start : start + length]) or not any(missed[place : place + length]):
                continue
            if start <= places[place] < start + length:
                continue
            targets = [places[j] + 1 if j >= 0 else 0 for j in range(place - 1, place + length)]
            for target in (t for k, t in enumerate(targets) if k == 0 or t != targets[k - 1]):
                looked_at += 1
                moved = shifted(words, start, length, target)
                saved = costs[-1][-1] - table(moved, reference)[-1][-1]
                found.append(((saved, length, -start, -target), moved))
            if looked_at >= MOST:
                break
        best = max(found, default=((0, 0, 0, 0), words))
        if looked_at >= MOST or best[0][0] <= 0:
            return shifts + costs[-1][-1]
        words, shifts = best[1], shifts + 1
