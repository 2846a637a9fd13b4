"""Tables and charts of measurements in a page: a block `{measured}` holds a call of a function of `measurements.py`."""

from __future__ import annotations

from unittest import mock

import measurements
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from lmgauge.report import charts

_OF_A_PHONE = {"WIDTH": 350, "_FOLDED": 40, "_WIDEST_LABEL": 205}


class Measured(SphinxDirective):
    """What the call gives, as a notebook would show it, without the seconds that starting one takes."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the table or the drawing."""
        shown = eval("\n".join(self.content), vars(measurements))
        if isinstance(shown, measurements.Table):
            return [nodes.raw("", shown._repr_html_(), format="html")]
        with mock.patch.multiple(charts, **_OF_A_PHONE):
            narrow = shown._repr_mimebundle_()["image/svg+xml"]
        drawings = {"wide": shown._repr_mimebundle_()["image/svg+xml"], "narrow": narrow}  # the page shows the one that fits
        figures = (f'<figure class="lmgauge chart {width}">{drawing}</figure>' for width, drawing in drawings.items())
        return [nodes.raw("", "".join(figures), format="html")]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the block."""
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
