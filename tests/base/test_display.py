"""The mixin of all results: a short name in one line, and nothing of the reports loaded before something is shown."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.test_import_light import loaded_by

from lmgauge.base import errors
from lmgauge.base.display import Displayable


@dataclass(frozen=True, repr=False)
class Number(Displayable):
    """A result without a document."""

    name: str

    def _in_brief(self) -> str:
        return self.name


def test_the_name_is_one_line_that_drives_no_terminal() -> None:
    assert repr(Number("kn5: 7")) == "<Number: kn5: 7>"
    assert repr(Number("")) == "<Number>"
    assert repr(Number("a\x1b[31m\nb")).isprintable()
    assert repr(Number("x" * 1000)).endswith("x …>")
    assert len(repr(Number("x" * 1000))) == len("<Number: >") + 160


def test_what_has_no_document_cannot_be_shown() -> None:
    with pytest.raises(TypeError, match="Number is not a result that can be shown"):
        str(Number("x"))


def test_results_load_no_renderer() -> None:
    program = "import lmgauge; result = lmgauge.calc([0.5]); repr(result)"
    modules = loaded_by(program)
    assert not {name for name in modules if name.startswith("lmgauge.report")}
    shown = loaded_by(f"{program}; str(result)")
    assert "lmgauge.report.terminal" in shown
    assert not {"jinja2", "vl_convert", "lmgauge.report.page", "lmgauge.report.tasks"} & shown


def test_an_unknown_chart_is_the_user_s_mistake() -> None:
    import lmgauge

    result = lmgauge.calc([0.5])
    assert result.charts == ()
    with pytest.raises(errors.UsageError, match="no chart is called 'loss'; this result has none"):
        result.chart("loss")
