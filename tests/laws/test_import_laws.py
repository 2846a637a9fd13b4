"""Laws of imported scores: in whatever layout they come, rows have the scores that were written, and span their bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgauge.base.choices import LogUnit, Program
from lmgauge.evaluation.imported_run import import_runs
from lmgauge.evaluation.runs import open_run
from lmgauge.numerics.units import nats_to_bits, nats_to_log10
from lmgauge.scores.imports.programs import open_logs
from lmgauge.text.documents import Corpus

Logged = list[tuple[bytes, float]]
"""Tokens of a segment and their log-probabilities, nats."""

CHARACTERS = st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co", "Z"], exclude_characters="\ufeff\ufffd▁")
TEXTS = st.text(st.one_of(st.sampled_from("ab é日"), CHARACTERS), min_size=1, max_size=12).filter(
    lambda text: text.strip() == text
)
SCORES = st.floats(-30, -0.001)
PRINTABLE = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
BYTE_LEVEL = {value: chr(value) for value in PRINTABLE}
BYTE_LEVEL |= {value: chr(256 + i) for i, value in enumerate(sorted(set(range(256)) - set(PRINTABLE)))}


def minicons(segments: list[Logged], bits: bool) -> str:
    scale = nats_to_bits if bits else float
    return json.dumps([[["".join(BYTE_LEVEL[b] for b in token), scale(nats)] for token, nats in s] for s in segments])


def contents(segments: list[Logged]) -> list[dict[str, Any]]:
    """Segments as the `logprobs` of OpenAI's replies, with bytes."""
    return [{"content": [{"token": "", "bytes": list(token), "logprob": nats} for token, nats in s]} for s in segments]


def openai(segments: list[Logged], bits: bool) -> str:
    replies = [{"choices": [{"logprobs": part}], "usage": {"completion_tokens": 0}} for part in contents(segments)]
    return "".join(json.dumps(reply) + "\n" for reply in replies)


LAYOUTS: dict[Program, Callable[[list[Logged], bool], str]] = {"minicons": minicons, "openai": openai}


@st.composite
def cut_texts(draw: st.DrawFn) -> list[Logged]:
    """Texts, cut into tokens anywhere, also within characters."""
    segments = []
    for text in draw(st.lists(TEXTS, min_size=1, max_size=3)):
        data = text.encode()
        cuts = sorted(draw(st.sets(st.integers(1, max(1, len(data) - 1)), max_size=6)) - {len(data)})
        parts = [data[a:b] for a, b in pairwise([0, *cuts, len(data)])]
        segments.append([(part, draw(SCORES)) for part in parts])
    return segments


@pytest.mark.parametrize("program", LAYOUTS)
@settings(max_examples=40)
@given(segments=cut_texts(), bits=st.booleans())
def test_rows_are_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, program: Program, segments: list[Logged], bits: bool
) -> None:
    folder = tmp_path_factory.mktemp("import")
    log = folder / "log"
    log.write_text(LAYOUTS[program](segments, bits), encoding="utf-8")
    unit: LogUnit | None = ("bits" if bits else "nats") if program == "minicons" else None
    text = Corpus.from_strings([b"".join(token for token, _ in segment).decode() for segment in segments])
    [result] = import_runs([open_logs([log], program, unit)], folder / "run", text)
    nats = [value for segment in segments for _, value in segment]
    assert math.isclose(result.log_probability, math.fsum(nats), rel_tol=1e-12)
    assert result.lossy_segments == 0
    batches = list(open_run(folder / "run").batches())
    assert np.concatenate([batch.ends for batch in batches]).tolist() == [
        end for segment in segments for end in accumulate(len(token) for token, _ in segment)
    ]
    assert np.allclose(np.concatenate([batch.logprob for batch in batches]), nats, rtol=1e-14)


WORDS = st.lists(st.tuples(st.text(CHARACTERS, min_size=1, max_size=4), SCORES), min_size=1, max_size=5)


@settings(max_examples=40)
@given(segments=st.lists(WORDS, min_size=1, max_size=3), tool=st.sampled_from(["kenlm", "srilm"]))
def test_words_too(tmp_path_factory: pytest.TempPathFactory, segments: list[list[tuple[str, float]]], tool: Program) -> None:
    folder = tmp_path_factory.mktemp("import")
    lines, nats = [], []
    for segment in segments:
        values = [(word, nats_to_log10(score)) for word, score in [*segment, ("</s>", -1.0)]]
        nats += [score for _, score in segment] + [-1.0]
        total, words = math.fsum(value for _, value in values), len(segment)
        if tool == "kenlm":
            lines.append("\t".join([f"{word}=7 1 {value!r}" for word, value in values] + [f"Total: {total!r} OOV: 0"]))
        else:
            lines += [" ".join(word for word, _ in segment)]
            lines += [f"\tp( {word} | x ...) \t= [1gram] 0.5 [ {value!r} ]" for word, value in values]
            lines += [f"1 sentences, {words} words, 0 OOVs", f"0 zeroprobs, logprob= {total!r} ppl= 1 ppl1= 1", ""]
    log = folder / "log"
    log.write_bytes("".join(line + "\n" for line in lines).encode())
    text = Corpus.from_strings([" ".join(word for word, _ in segment) for segment in segments])
    [result] = import_runs([open_logs([log], tool)], Path(folder, "run"), text)
    assert math.isclose(result.log_probability, math.fsum(nats), rel_tol=1e-12)
    assert (result.sentence_ends, result.lossy_segments, result.oov) == (len(segments), 0, 0)
