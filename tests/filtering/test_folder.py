"""What a folder of outputs remembers; what is damaged, or meant to do harm, is refused in a sentence."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.filtering.filtered import small_model

import lmgauge
from lmgauge.base.errors import InputError, LmgaugeError, UsageError
from lmgauge.base.json_text import to_json
from lmgauge.filtering.filter_files import is_output_folder, read_folder
from lmgauge.filtering.results import FilteredDocuments

HARM: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 1e308, 10**30, 10**400, float("nan"), float("inf")),
    *("", "inf", "nan", "\x1b[31m", "\ud800", "x" * 10_000, [], {}, [[]], {"a": 1}, [1, 2, 3], {"": None}),
]


@pytest.fixture
def filtered(tmp_path: Path) -> Path:
    """A folder of outputs of two files."""
    for name in "ab":
        rows = [{"text": "a b", "lang": "en"}, {"text": "the cat", "lang": "de"}, {"text": None}]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(tmp_path)
    return tmp_path / "out"


def run(root: Path) -> FilteredDocuments:
    options: dict[str, Any] = {"group": "lang", "max_perplexity": 8}
    return lmgauge.filter_documents({"m": small_model()}, str(root / "*.jsonl"), f"{root / 'out'}/", **options)


def test_a_folder_says_what_became_of_all_of_it(filtered: Path) -> None:
    assert is_output_folder(str(filtered))
    assert not is_output_folder(str(filtered.parent))
    again = run(filtered.parent)
    assert again.files_before == 2
    whole = read_folder(str(filtered))
    for name in ("records", "documents", "stay_documents", "reasons", "problems", "groups", "rules", "signatures"):
        assert getattr(whole, name) == getattr(again, name), name


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_folder(str(tmp_path))


def test_a_file_that_is_not_complete_is_named(filtered: Path) -> None:
    (filtered / "_lmgauge/files/b.jsonl.json").unlink()
    with pytest.raises(UsageError, match=r"1 of 2 files are not complete: 'b\.jsonl'; run all shards first"):
        read_folder(str(filtered))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"3", b"{}", b"\xff", b"[" * 100_000, b'{"tally": {}}'])
@pytest.mark.parametrize("name", ["files/a.jsonl.json", "work.json"])
def test_what_is_damaged_is_refused_by_its_name(filtered: Path, content: bytes, name: str) -> None:
    (filtered / "_lmgauge" / name).write_bytes(content)
    with pytest.raises(LmgaugeError, match="out") as refusal:
        read_folder(str(filtered))
    assert str(refusal.value).isprintable()
    with pytest.raises(LmgaugeError, match="out"):
        run(filtered.parent)


def harmed(source: random.Random, value: Any) -> Any:
    """A value with something else somewhere in it."""
    if isinstance(value, dict) and value and source.random() < 0.93:
        key = source.choice(list(value))
        kind = source.randrange(12)
        if kind == 0:
            return {name: own for name, own in value.items() if name != key}
        if kind == 1:
            return value | {source.choice(["", "x", "\ud800", "\x1b[31m"]): value[key]}
        return value | {key: harmed(source, value[key])}
    if isinstance(value, list) and value and source.random() < 0.93:
        place = source.randrange(len(value))
        if source.random() < 0.1:
            return value + [value[place]] * source.randint(1, 3)
        return [*value[:place], harmed(source, value[place]), *value[place + 1 :]]
    return source.choice(HARM)


def try_harm(filtered: Path, source: random.Random, name: str, original: bytes) -> bool:
    """Harm a file; return whether it was noticed, and said in a line. What is not noticed has to be shown well."""
    path = filtered / "_lmgauge" / name
    document = json.loads(original)
    for _ in range(source.randint(1, 3)):
        document = harmed(source, document)
    content = json.dumps(document).encode()
    path.write_bytes(content if source.random() < 0.8 else content[: source.randrange(len(content) + 1)])
    try:
        result = read_folder(str(filtered))
        assert str(result)
        assert to_json(result.to_dict())
        return False
    except LmgaugeError as error:
        return "\n" not in str(error)
    finally:
        path.write_bytes(original)


@pytest.mark.parametrize("name", ["files/a.jsonl.json", "work.json"])
def test_harm_is_noticed_or_does_nothing(filtered: Path, name: str) -> None:
    source, original = random.Random(5), (filtered / "_lmgauge" / name).read_bytes()
    noticed = sum(try_harm(filtered, source, name, original) for _ in range(150))
    assert noticed > 30
