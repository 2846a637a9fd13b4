"""Tables and charts of measurements in a page: a block `{measured}` holds a call of a function of `measurements.py`."""

from __future__ import annotations

import measurements
from docutils import nodes
from examples import drawings
from notebooks import figures
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata


class Measured(SphinxDirective):
    """What the call gives, as a notebook would show it, without the seconds that starting one takes."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the table or the drawing."""
        shown = eval("\n".join(self.content), vars(measurements))
        if isinstance(shown, measurements.Table):
            return [nodes.raw("", shown._repr_html_(), format="html")]
        return [nodes.raw("", figures(drawings(shown)), format="html")]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the block."""
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
