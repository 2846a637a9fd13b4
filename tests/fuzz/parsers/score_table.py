"""Score tables of other programs, as JSON lines and as Parquet: rows, columns, types and metadata changed, bytes changed."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import CliRunner

import lmgauge
from lmgauge import Corpus
from lmgauge.base.json_text import to_json
from tests.fuzz.mutations import PIECES, changed, changed_lines, changed_value, drawn_number
from tests.fuzz.parsers.parquet import OTHERS, VIEW, array_of, written
from tests.fuzz.table import Attempt

TEXTS = ["the cat sat", "", "on für 東京", "the mat"]
SPANS = [(0, 3), (3, 7), (7, 11), (11, 11)], [(0, 0)], [(0, 2), (2, 7), (7, 14), (14, 14)], [(0, 3), (3, 7), (7, 7)]
ROW_PIECES = [
    b'"logprob": "-inf"',
    b'"kind": "oov"',
    b'"logprob": NaN',
    b'"segment": 1e18',
    b'"end": -1',
    b'"logprob": 1e-9',
]
NUMBERS = ("context", "rank", "entropy", "mean_logprob", "mass", "kl", "base_logprob", "spelling", "separator", "document")
METADATA = [
    *(
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"fingerprints": 1}',
        b'{"fingerprints": {"text": []}}',
        b'{"model": {"a": 1}}',
        b"\xff",
    ),
    *(b'{"model": "\\u001b[31m", "fingerprints": {"text": "0"}}', b'{"settings": {"text": 3}}', b'{"version": 1e999}'),
    *(b'{"model": null, "evaluation": 1, "unit": [], "vocabulary": -1}', b'{"label": "x", "context": {}, "model_type": 4}'),
]


def prepare(folder: Path) -> Attempt:
    def attempt(chance: random.Random) -> str:
        rows = _rows(chance)
        if chance.random() < 0.4:
            path = folder / "scores.jsonl"
            path.write_bytes(_json_lines(rows, chance))
        else:
            path = folder / "scores.parquet"
            content = written(_table(rows, chance), chance)
            path.write_bytes(changed(content, chance, chance.choice([1, 1, 3])) if chance.random() < 0.2 else content)
        corpus = Corpus.from_strings(TEXTS) if chance.random() < 0.6 else None
        check_evaluation(lmgauge.evaluate_scores(path, corpus))
        if chance.random() < 0.1:
            check_evaluation(lmgauge.diagnose(path, text=corpus))
        return "read"

    return attempt


def check_evaluation(result: Any) -> None:
    """Hold the numbers of a result against what holds for all: no NaN, a perplexity of 1 or more; it can be shown."""
    values = result.to_dict()
    json.loads(to_json(values), parse_constant=refuse_nan)
    perplexity = values.get("perplexity")
    assert perplexity is None or math.isinf(perplexity) or perplexity >= 1, perplexity
    with CliRunner().isolation():
        shown = str(result)
    assert not any(ord(character) < 32 and character != "\n" for character in shown), shown


def refuse_nan(name: str) -> str:
    """Refuse NaN, as a reader of JSON."""
    assert name != "NaN", "NaN in JSON"
    return name


def _rows(chance: random.Random) -> list[dict[str, Any]]:
    """Return the rows of a table about `TEXTS`, with the columns that some program writes."""
    extra = [name for name in NUMBERS if chance.random() < 0.1]
    leave_out = {name for name in ("start", "end", "token", "kind") if chance.random() < 0.2}
    rows = []
    for segment, spans in enumerate(SPANS):
        text = TEXTS[segment].encode()
        for start, end in spans:
            row: dict[str, Any] = {"segment": segment, "start": start, "end": end, "token": text[start:end].decode()}
            row |= {"logprob": -6 * chance.random(), "kind": "token" if start < end else "eos"}
            row |= {name: _extra(name, segment, chance) for name in extra}
            rows.append({name: value for name, value in row.items() if name not in leave_out})
    if chance.random() < 0.1:
        for row in rows:
            row |= {"top_tokens": ["a", "b"], "top_logprobs": [-1.0, -2.0]}
    if chance.random() < 0.5:
        row = chance.choice(rows)
        name = chance.choice(list(row))
        row[name] = (
            drawn_number(chance) if chance.random() < 0.7 else chance.choice(["", None, "oov", [], True, "-inf", "\x1b[31m"])
        )
    return rows


def _extra(name: str, segment: int, chance: random.Random) -> Any:
    if name in ("context", "rank", "document"):
        return segment if name == "document" else chance.randint(1, 4)
    return -chance.random() if "logprob" in name or name in ("spelling", "separator") else chance.random()


def _json_lines(rows: list[dict[str, Any]], chance: random.Random) -> bytes:
    if chance.random() < 0.2:
        rows = [row if chance.random() < 0.9 else changed_value(row, chance, 1) for row in rows]
    content = b"".join(json.dumps(row).encode("utf-8", "surrogatepass") + b"\n" for row in rows)
    if chance.random() < 0.2:
        content = changed_lines(content, chance, 1)
    return changed(content, chance, 2, [*PIECES, *ROW_PIECES]) if chance.random() < 0.2 else content


def _table(rows: list[dict[str, Any]], chance: random.Random) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name in rows[0]:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, OverflowError):
            columns[name] = array_of(pa.string(), [str(value) for value in values])
    if chance.random() < 0.3:
        name = chance.choice(list(columns))
        kinds = [
            pa.int8(),
            pa.uint64(),
            pa.float32(),
            pa.float64(),
            pa.string(),
            pa.large_string(),
            VIEW,
            *OTHERS,
        ]
        kinds += [pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.int64())]
        columns[name] = array_of(chance.choice(kinds), [str(value) for value in columns[name].to_pylist()])
    names = list(columns)
    if chance.random() < 0.05:
        names[chance.randrange(len(names))] = chance.choice(["logprob", "token", "", "id", "document", "top_tokens"])
    table = pa.Table.from_arrays(list(columns.values()), names=names)
    if chance.random() < 0.2:
        table = table.replace_schema_metadata({b"lmgauge": _metadata(chance)})
    return table


def _metadata(chance: random.Random) -> bytes:
    if chance.random() < 0.6:
        return chance.choice(METADATA)
    known = {
        "model": "m",
        "label": "m",
        "fingerprints": {"text": "0" * 64, "vocabulary": "1"},
        "unit": "word",
        "context": "sentence",
    }
    return json.dumps(changed_value(known, chance)).encode()
