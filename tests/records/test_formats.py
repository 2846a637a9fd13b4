"""The table of text formats: each is listed for options, has endings of its own, and a reader that exists."""

from __future__ import annotations

from pathlib import Path

from lmgauge.base.choices import FORMATS
from lmgauge.records.formats import BY_SUFFIX, FORMATS_OF_RECORDS
from lmgauge.text.documents import Corpus


def test_the_table_and_the_options_name_the_same_formats() -> None:
    assert tuple(FORMATS_OF_RECORDS) == FORMATS


def test_every_suffix_belongs_to_one_format() -> None:
    assert len(BY_SUFFIX) == sum(len(known.suffixes) for known in FORMATS_OF_RECORDS.values())


def test_people_are_told_of_every_format() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "read-your-files.md").read_text(encoding="utf-8").lower()
    assert [name for name in FORMATS if name not in page] == []
    told = str(Corpus.from_files.__doc__)
    assert [suffix for suffix, name in BY_SUFFIX.items() if name != "text" and suffix not in told] == []


def test_every_reader_and_writer_exists() -> None:
    assert all(callable(known.load(what)) for known in FORMATS_OF_RECORDS.values() for what in ("Reader", "Writer"))
