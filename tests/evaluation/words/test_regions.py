"""Regions as files name them, and where they are in their texts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgauge.base.errors import InputError, UsageError
from lmgauge.evaluation.words.merging import Regions
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

TEXTS = ["The horse raced past the barn fell.", "für uns", "left alone"]


def block() -> Segments:
    (one,) = Corpus.from_strings(TEXTS)
    return one


def laid(regions: Regions, segments: Segments | None = None) -> list[tuple[int, str, str]]:
    segments = segments or block()
    units = regions.lay(segments)
    regions.check_all_laid()
    data = segments.data.tobytes()
    spans = zip(
        units.owners.tolist(),
        [one.name for one in units.regions or ()],
        units.starts.tolist(),
        units.ends.tolist(),
        strict=True,
    )
    return [(owner, name, data[start:end].decode()) for owner, name, start, end in spans]


def write(folder: Path, content: str | bytes, ending: str = ".tsv") -> Path:
    path = folder / f"regions{ending}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


EXPECTED = [(0, "subject", "The horse"), (0, "2", "raced"), (0, "verb", "fell."), (1, "1", "für")]


def test_spans(tmp_path: Path) -> None:
    """In any order, with white space at their edges, which does not count; text 3 has none."""
    rows = "text_id\tstart\tend\tregion\n1\t30\t35\tverb\n1\t0\t9\tsubject\n1\t9\t16\t2\n\n2\t0\t5\t1\n"
    regions = Regions.of(write(tmp_path, rows))
    assert laid(regions) == EXPECTED
    assert regions.texts_without == 1


def test_strings(tmp_path: Path) -> None:
    """One after another from the beginning of the text; names that are missing are numbers."""
    rows = 'item,text,region\n1,The horse,subject\n1, raced ,\n1,past the barn,"by, place"\n2,für,\n'
    expected = [*EXPECTED[:2], (0, "by, place", "past the barn"), EXPECTED[3]]
    assert laid(Regions.of(write(tmp_path, "\ufeff" + rows, ".csv"))) == expected


def test_json_lines_and_rows(tmp_path: Path) -> None:
    rows = [{"id": 1, "start": 4, "end": 9, "text": "horse"}, {"id": 2.0, "text": "für uns", "region": None}]
    path = write(tmp_path, "".join(f"{json.dumps(row)}\n" for row in rows), ".jsonl")
    assert laid(Regions.of(path)) == laid(Regions.of(rows)) == [(0, "1", "horse"), (1, "1", "für uns")]
    assert Regions.of(path).fingerprint == Regions.of(rows).fingerprint != Regions.of(rows[:1]).fingerprint


def test_texts_are_named_by_their_own_ids() -> None:
    segments = replace(block(), labels={"id": ["x", "1", "z"]})
    assert laid(Regions.of([{"text_id": "1", "text": "für"}]), segments) == [(1, "1", "für")]
    with pytest.raises(InputError, match="row 1: there is no text '2'; a text is named by its id"):
        laid(Regions.of([{"text_id": "2", "text": "für"}]), segments)
    twice = replace(block(), labels={"id": ["x", "1", "1"]})
    with pytest.raises(InputError, match=r"regions: two texts have the id '1'; give each an id of its own"):
        laid(Regions.of([{"text_id": "1", "start": 0, "end": 3}]), twice)
    with_lines = replace(block(), source="in.txt")
    assert laid(Regions.of([{"text_id": "in.txt:2", "text": "für"}]), with_lines) == [(1, "1", "für")]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("text_id\tstart\tend\n1\t4\t9\n1\t8\t12\n", r"regions\.tsv, line 3: region '2' overlaps that of line 2"),
        ("text_id\tstart\tend\n1\t4\t99\n", "line 2: region '1', bytes 4 to 99, is not in text '1', which has 35 bytes"),
        ("text_id\tstart\tend\n1\t9\t9\n", "line 2: region '1', bytes 9 to 9, is not in text '1'"),
        ("text_id\tstart\tend\n1\t9\t10\n", "line 2: region '1', bytes 9 to 10 of text '1', is white space alone"),
        ("text_id\tstart\tend\n2\t0\t2\n", "line 2: region '1' cuts a character of text '2': start and end count bytes"),
        ("text_id\tstart\tend\ttext\n1\t4\t9\thouse\n", "region '1': bytes 4 to 9 of text '1' are 'horse', not its text"),
        ("text_id\tstart\tend\n1\tx\t9\n", "line 2: 'x' is not a number of bytes"),
        ("text_id\tstart\tend\n1\t-1\t9\n", "line 2: '-1' is not a number of bytes"),
        ("text_id\tstart\tend\n1\t1\t\n", "line 2: names no region; give start and end"),
        ("text_id\ttext\n1\thorse\n", "line 2: text '1' continues with 'The horse .*' at byte 0, not with 'horse'"),
        ("text_id\ttext\n1\tThe\n1\traced\n", "line 3: text '1' continues with 'horse"),
        ("text_id\ttext\n9\tThe\n", "line 2: there is no text '9'"),
        ("text_id\ttext\n\tThe\n", "line 2: names no text; give its id in a column text_id"),
        ("name\ttext\n1\tThe\n", "line 2: names no text"),
        ("text_id\ttext\n1\n", ":2: 1 column, where the first line has 2"),
        ("text_id\ttext\ttext\n1\ta\tb\n", ":1: the column 'text' occurs twice"),
        ("text_id\ttext\n", r"regions\.tsv: no region is named in it"),
        ("", r"regions\.tsv: no region is named in it"),
        (b"text_id\ttext\n1\t\xff\n", r"regions\.tsv:2: 0xFF is not valid UTF-8"),
    ],
)  # fmt: skip
def test_what_is_not_a_region(tmp_path: Path, rows: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        laid(Regions.of(write(tmp_path, rows)))


@pytest.mark.parametrize(
    ("ending", "content", "message"),
    [
        (".jsonl", "{\n", ":1: not (valid|usable) JSON"),
        (".jsonl", "[1]\n", ":1: a JSON object is needed"),
        (".jsonl", "[" * 5000, ":1: not (valid|usable) JSON"),
        (".jsonl", '{"id": 1, "text": "\\ud800"}\n', "line 1: its text holds a lone surrogate"),
        (".jsonl", '{"id": 1, "text": "  "}\n', "line 1: its text is white space alone"),
        (".csv", 'text_id,text\n1,"The\n', ":2: not a record of CSV: unexpected end of data"),
        (".csv", f"text_id,text\n1,{'x' * 140_000}\n", "line 2: text '1' continues with .*, not with 'xxxx"),
    ],
)
def test_files_that_are_not_what_their_names_say(tmp_path: Path, ending: str, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        laid(Regions.of(write(tmp_path, content, ending)))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        Regions.of(tmp_path / "no.tsv")
    (tmp_path / "regions.xlsx").touch()
    with pytest.raises(UsageError, match=r"regions are read from \.jsonl, \.ndjson, \.csv, \.tsv, \.parquet"):
        Regions.of(tmp_path / "regions.xlsx")


PIECES = [
    "text_id",
    "\t",
    ",",
    "\n",
    '"',
    "start",
    "end",
    "text",
    "region",
    "1",
    "2",
    "0",
    "9",
    "The",
    "horse",
    "für",
    "{",
    "}",
    ":",
    " ",
]


@given(
    content=st.one_of(
        st.binary(max_size=60), st.lists(st.sampled_from(PIECES), max_size=40).map(lambda parts: "".join(parts).encode())
    ),
    ending=st.sampled_from([".tsv", ".csv", ".jsonl"]),
    head=st.sampled_from([b"", b"text_id\tstart\tend\n", b"id,text,region\n", b"text_id\ttext\n"]),
)
@settings(max_examples=200, deadline=None)
def test_any_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, ending: str, head: bytes
) -> None:
    """Regions lie in their texts, in order, and do not overlap; what is not a region is refused in one line."""
    path = write(tmp_path_factory.getbasetemp(), head + content, ending)
    segments = block()
    try:
        regions = Regions.of(path)
        units = regions.lay(segments)
        regions.check_all_laid()
    except InputError as error:
        refusal = str(error)
        assert "\n" not in refusal
        return
    first, last = segments.starts[units.owners], segments.ends[units.owners]
    assert np.all((first <= units.starts) & (units.starts < units.ends) & (units.ends <= last))
    assert np.all(units.starts[1:] >= units.ends[:-1])
