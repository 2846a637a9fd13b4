"""The file of percentiles, and files that only look like one."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmgauge.base.errors import InputError
from lmgauge.filtering.documents import Groups
from lmgauge.filtering.percentile_sample import PercentileSample, SampleSettings, document_keys
from lmgauge.filtering.percentiles import Percentiles

MUTATIONS = 1_000


def learned(documents: int = 300) -> Percentiles:
    names = ["en", "\u202e[\n 1 ]\x1b[31m", None]
    groups = Groups.of([names[k % 3] for k in range(documents)])
    sample = PercentileSample(2, SampleSettings(50, 2**64 - 1, "lang"))
    keys, values = document_keys("x", np.arange(1, documents + 1), 1), np.arange(1.0, 2 * documents + 1).reshape(-1, 2)
    values[::10, 1] = math.inf
    values[::7, 0] = math.nan
    mask = sample.wanted(keys, groups)
    sample.add(keys[mask], groups.where(mask), values[mask])
    return Percentiles.learn(sample, {"a": "model:a", "b": "model:b"}, {"field": "text", "lines": "no"}, least=20)


def test_a_file_is_one_line_a_percentile(tmp_path: Path) -> None:
    percentiles = learned()
    lines = percentiles.save(tmp_path / "p.json").read_text("utf-8").splitlines()
    assert sum(line.lstrip().startswith('"p50": [') and line.rstrip(",").endswith("]") for line in lines) == 6
    assert Percentiles.load(tmp_path / "p.json") == percentiles
    assert Percentiles.load(tmp_path / "p.json").source == str(tmp_path / "p.json")
    assert "\x1b" not in "".join(lines)
    assert json.loads("\n".join(lines))["groups"].keys() == {"en", "\u202e[\n 1 ]\x1b[31m"}


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json': no such file"):
        Percentiles.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "Expecting value"),
        (b"\xff\xfe\x00", "decode"),
        (b"[" * 100_000, "too deep"),
        (b'{"seed": ' + b"1" * 5000 + b"}", "5,000 digits"),
        (b'{"format": "lmgauge percentiles", "format": 1}', "the key 'format' occurs twice in one object"),
        (b"[1]", "Expected `object`, got `array`"),
        (b'{"format": "other"}', r"Invalid enum value 'other' - at `\$\.format`"),
        (b'{"format": "lmgauge percentiles", "format_version": 2}', r"Invalid enum value 2 - at `\$\.format_version`"),
    ],
    ids=lambda raw: repr(raw)[:30],
)
def test_other_files_are_refused(raw: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        Percentiles.from_json(raw, "p.json")
    assert "\n" not in str(refusal.value)
    assert "'p.json': is not a file of percentiles as lmgauge writes it: " in str(refusal.value)


def changed(path: str, value: object) -> bytes:
    record: dict[str, Any] = json.loads(json.dumps(learned().to_dict(), default=str).replace("Infinity", '"inf"'))
    *way, last = path.split("/")
    part = record
    for name in way:
        part = part[name]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    return json.dumps(record).encode()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("models", {}, "each model"),
        ("models", ["a"], r"Expected `object`, got `array` - at `\$\.models`"),
        ("models/a", 1, "Expected `str`, got `int`"),
        ("models/\ud800", "x", "each model"),
        ("settings", ..., "missing required field `settings`"),
        ("sample", 0, r"Expected `int` >= 1 - at `\$\.sample`"),
        ("sample", True, "Expected `int | null`, got `bool`"),
        ("seed", 2**64, "seed .* is out of range"),
        ("seed", 1.5, "Expected `int`, got `float`"),
        ("group", 3, "Expected `str | null`, got `int`"),
        ("least", -1, r"Expected `int` >= 0 - at `\$\.least`"),
        ("groups", {str(k): {} for k in range(1001)}, r"Expected `object` of length <= 1000 - at `\$\.groups`"),
        ("groups/en", [], r"Expected `object`, got `array` - at `\$\.groups\[\.\.\.\]`"),
        ("groups/en/models/a", ..., "a group does not have the percentiles of each model"),
        ("overall/sampled", 301, "more documents in the sample"),
        ("overall/models/a/scored", 0, "more documents in the sample"),
        ("overall/models/a/scored", [1, 2, 3], "more documents in the sample"),
        ("overall/models/a/scored", ..., "does not have each percentile once"),
        ("overall/models/a", {"scored": 3}, "no model has percentiles of all documents"),
        ("overall/models/a/p50", ..., "does not have each percentile once"),
        ("overall/models/a/p50", [1, 1], "of length >= 3"),
        ("overall/models/a/p50", "abc", "got `str`"),
        ("overall/models/a/p50", 1, "not inside its interval"),
        ("overall/models/a/p50", [1, 0.5, 2], "below the one before"),
        ("overall/models/a/p50", [None, 1, 2], "not inside its interval"),
        ("overall/models/a/p50", [300, 301, 302], "not inside its interval"),
        ("overall/models/a/p50", ["x", 1, 2], "Expected a number from 0 on"),
        ("overall/models/a/p50", [True, 1, 2], "Expected a number from 0 on"),
        ("overall/models/a/p50", [-1, None, 2], "Expected a number from 0 on"),
        ("overall/models/a/p50", [math.nan, None, 2], "NaN is not JSON"),
        ("overall/models/a/p50", [10**400, None, 2], "401 digits"),
        ("lmgauge", None, "Expected `str`, got `null`"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_damage_is_named(path: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        Percentiles.from_json(changed(path, value), "p.json")
    assert str(refusal.value).startswith("'p.json': is not a file of percentiles as lmgauge writes it: ")


def mutated(raw: bytes, dice: random.Random) -> bytes:
    """The file with a few bytes, numbers or lines changed."""
    for _ in range(dice.choice((1, 1, 2, 5))):
        begin = dice.randrange(len(raw))
        end = min(len(raw), begin + dice.choice((0, 1, 1, 3, 40)))
        new = dice.choice(
            (b"", bytes([dice.randrange(256)]), b"9", b"-", b'"', b"[", b"}", b"null", b"1e999", b"NaN", b",\n")
        )
        raw = raw[:begin] + new + raw[end:] or b" "
    return raw[: dice.randrange(len(raw))] or b" " if dice.random() < 0.05 else raw


def test_mutated_files_are_read_whole_or_refused(tmp_path: Path) -> None:
    raw, dice = learned().save(tmp_path / "p.json").read_bytes(), random.Random(1)
    messages = []
    for _ in range(MUTATIONS):
        try:
            percentiles = Percentiles.from_json(mutated(raw, dice), "p.json")
        except InputError as refusal:
            messages.append(str(refusal))
            continue
        for model in percentiles.models:  # what was read can be used, and written again
            for name in (None, *percentiles.groups):
                assert percentiles.value(model, name, 10) <= percentiles.value(model, name, 70)
        assert Percentiles.from_json(percentiles.save(tmp_path / "again.json").read_bytes(), "again.json") == percentiles
    assert 0 < len(messages) < MUTATIONS
    assert not any("\n" in message or "\x1b" in message for message in messages)
