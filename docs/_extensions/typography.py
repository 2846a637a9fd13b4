"""Numbers and their signs stay on one line: the blank of `95 %` becomes one that does not break."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

_PERCENT = re.compile(r"(?<=\d) (?=%)")
_AS_TYPED = (nodes.literal, nodes.literal_block, nodes.doctest_block, nodes.math, nodes.math_block, nodes.raw)


def _keep_together(app: Sphinx, document: nodes.document) -> None:
    for text in list(document.findall(nodes.Text)):
        if _PERCENT.search(text) and not isinstance(text.parent, _AS_TYPED):
            text.parent.replace(text, nodes.Text(_PERCENT.sub("\N{NO-BREAK SPACE}", text)))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect to what reads a page."""
    app.connect("doctree-read", _keep_together)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
