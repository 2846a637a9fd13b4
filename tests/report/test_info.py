"""What `lmgauge info` shows of a file that says odd things."""

from __future__ import annotations

from typing import Any

import pytest

from lmgauge.report.info import blocks
from lmgauge.report.tsv_renderer import as_rows


@pytest.mark.parametrize("name", ["notes", "bound_reasons"])
@pytest.mark.parametrize("value", [[1, [2]], [None], [{"a": 1}], {"a": [3]}])
def test_what_is_no_list_of_strings_is_shown_as_it_stands(name: str, value: Any) -> None:
    assert as_rows(blocks({name: value}))
