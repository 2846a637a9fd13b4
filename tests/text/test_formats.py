"""The table of text formats: each is listed for options, has endings of its own, and a reader that exists."""

from __future__ import annotations

from lmgauge.choices import FORMATS
from lmgauge.text.formats import BY_SUFFIX, TEXT_FORMATS


def test_the_table_and_the_options_name_the_same_formats() -> None:
    assert tuple(TEXT_FORMATS) == FORMATS


def test_every_suffix_belongs_to_one_format() -> None:
    assert len(BY_SUFFIX) == sum(len(known.suffixes) for known in TEXT_FORMATS.values())


def test_every_reader_exists() -> None:
    assert all(callable(known.load_reader()) for known in TEXT_FORMATS.values())
