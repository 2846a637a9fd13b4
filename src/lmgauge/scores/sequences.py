"""Logs with a row a sequence, as trainers and engines keep them: lists of token ids and of log-probabilities, in columns.

Column names are those of verl, TRL, vLLM, SGLang (slime), OpenRLHF, SkyRL, AReaL, NeMo-RL and prime-rl.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.base.escaping import first_few
from lmgauge.records.records import Row

if TYPE_CHECKING:
    import pyarrow as pa

LOWEST = -9999.0
"""What vLLM writes for anything below, as JSON has no infinity."""
ROUNDING = 1e-4
"""Nats: the softmax of an engine may round a certain event to a little more than probability one."""

SEQUENCES = 256
"""Rows of a log that are read at a time."""

_LOGPROBS = re.compile("(?i)log_?p")
_TOKENS = (
    *("token_ids", "response_ids", "responses", "response_token_ids", "completion_ids", "completion_token_ids"),
    *("output_ids", "output_token_ids", "tokens", "input_ids", "sequences"),
)
_MASKS = (
    *("response_mask", "completion_mask", "action_mask", "loss_mask", "loss_masks", "token_mask", "tool_mask"),
    *("assistant_masks", "mask"),
)
_VALUES = ("integer", "string", "large_string")
_GROUPS = ("document", "group", "group_index", "group_id", "uid", "prompt_id", "index", "prompt")
"""What several rollouts of one prompt have in common; the most certain name first."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a log are read."""

    logprob: str
    tokens: str
    masks: list[str]  # 0 where a token is padding, or not of the model
    group: list[str]  # at most one
    tails: list[str]  # those that have the prompt too: the last values are of the response

    @property
    def names(self) -> list[str]:
        """Return the names of all of them."""
        return [self.logprob, self.tokens, *self.masks, *self.group]


def logprob_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that hold lists of log-probabilities; none if it is not such a log."""
    return [field.name for field in schema if _LOGPROBS.search(field.name) and _is_list(field.type, "floating", "null")]


def choose(schema: pa.Schema, name: str, column: str = "") -> Columns:
    """Return the columns of a log, that of log-probabilities as chosen."""
    known = logprob_columns(schema)
    if column and not any(field.name == column and _is_list(field.type, "floating") for field in schema):
        raise InputError(f"{name}: no column {column!r} of lists of log-probabilities; it has {first_few(known)}")
    if not column and len(known) > 1:
        raise InputError(
            f"{name}: has several columns of log-probabilities ({first_few(known)}); name one: {name}:{known[0]}"
        )
    types = dict(zip(schema.names, schema.types, strict=True))
    lists = [name for name, kind in types.items() if _is_list(kind, *_VALUES, "boolean", "floating")]
    tokens = next((known for known in _TOKENS if known in lists), None)
    if tokens is None:
        wanted = f"{', '.join(_TOKENS[:5])}, ..."
        raise InputError(f"{name}: no column has the lists of token ids ({wanted}); it has {first_few(schema.names)}")
    masks = [known for known in _MASKS if known in lists] or [known for known in lists if known == "attention_mask"]
    groups = [known for known in _GROUPS if known in types and _is(types[known], *_VALUES, "dictionary")]
    tails = ["attention_mask", "tokens" if "response_length" in types else ""]
    return Columns(column or known[0], tokens, masks, groups[:1], tails)


def schema_of(row: dict[str, Any]) -> pa.Schema:
    """Return the types of the fields of a record, without those that are a mixture."""
    import pyarrow as pa

    fields = []
    for name, value in row.items():
        with suppress(pa.ArrowException, ValueError, TypeError, OverflowError):
            fields.append((name, pa.array([value]).type))
    return pa.schema(fields)


def rows_of(log: pa.RecordBatch, columns: Columns, first: int, places: Sequence[str]) -> pa.RecordBatch:
    """Return the tokens of some sequences as rows of a score table: a segment a sequence, the first of them `first`."""
    # places: where each sequence is, for messages; position: the place of a token among those of its sequence.
    import pyarrow as pa
    import pyarrow.compute as pc

    logprob, sizes = _flat(log[columns.logprob])
    ends, is_there = np.cumsum(sizes), pc.is_valid(log[columns.logprob]).to_numpy(zero_copy_only=False)
    lists = {}
    for name in (columns.tokens, *columns.masks):
        values, own = _flat(log[name])
        short = own < sizes if name in columns.tails else (own != sizes) & is_there
        if short.any():
            row = int(np.argmax(short))
            raise InputError(f"{places[row]}: {name} has {own[row]} values, {columns.logprob} has {sizes[row]}")
        if not np.array_equal(own, sizes):  # the last values of each: 2 and 1 of lists with 3 and 1 -> places 1, 2, 3
            values = values.take(pa.array(np.arange(len(logprob)) + np.repeat(np.cumsum(own) - ends, sizes)))
        lists[name] = values
    scored = pc.is_valid(logprob).to_numpy(zero_copy_only=False)
    for name in columns.masks:
        scored &= pc.fill_null(lists[name].cast(pa.bool_()), False).to_numpy(zero_copy_only=False)
    nats = logprob.cast(pa.float64()).to_numpy(zero_copy_only=False)
    position = np.arange(len(nats)) - np.repeat(ends - sizes, sizes)
    wrong = scored & ~(nats <= ROUNDING)
    if wrong.any():
        at = int(np.argmax(wrong))
        where = f"{places[int(np.searchsorted(ends, at, side='right'))]}: {columns.logprob}[{position[at]}]"
        raise InputError(f"{where} is {nats[at]}; it must be the natural log of a probability")
    encoded = pc.dictionary_encode(lists[columns.tokens])
    strings = encoded.dictionary.cast(pa.string())
    if pa.types.is_integer(encoded.dictionary.type):
        strings = pc.binary_join_element_wise("#", strings, "")
    rows = {
        "segment": pa.array(np.repeat(np.arange(first, first + len(log)), sizes)),
        "token": pa.DictionaryArray.from_arrays(encoded.indices, strings),
        "logprob": pa.array(np.where(nats <= LOWEST, -np.inf, np.minimum(nats, 0.0))),
        "position": pa.array(position),
    }
    for group in columns.group:
        rows["document"] = log[group].take(pa.array(np.repeat(np.arange(len(log)), sizes)))
    table = pa.RecordBatch.from_pydict(rows)
    return table if scored.all() else table.filter(pa.array(scored))


def rows_of_records(records: Iterator[Row], columns: Columns, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of records, see `rows_of`."""
    import pyarrow as pa

    first = 0
    while some := list(islice(records, SEQUENCES)):
        log = pa.RecordBatch.from_pydict({column: [row.fields.get(column) for row in some] for column in columns.names})
        yield rows_of(log, columns, first, [f"{name}, line {row.number}" for row in some])
        first += len(some)


def _flat(column: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
    # Values of lists one behind the other, and how many each has.
    import pyarrow.compute as pc

    return pc.list_flatten(column), pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)


def _is(kind: pa.DataType, *names: str) -> bool:
    import pyarrow as pa

    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def _is_list(kind: pa.DataType, *names: str) -> bool:
    return _is(kind, "list", "large_list", "fixed_size_list") and _is(kind.value_type, *names)
