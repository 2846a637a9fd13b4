"""The tree of all pages beside each page: made of titles only, where the theme has them sought out anew on every page."""

from __future__ import annotations

from typing import Any
from unittest import mock

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata


def _titles(contents: nodes.Element) -> nodes.Element:
    """Return the title of a page and the lists of pages below it, as `titles_only` leaves them of its contents."""
    contents = contents.deepcopy()
    for entry in contents.children:
        if isinstance(entry, nodes.Element) and len(entry) > 1:
            if lists := list(entry.findall(addnodes.toctree)):
                entry[1][:] = lists
            else:
                entry.pop(1)
    return contents


def _from_titles(app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None) -> None:
    """Let a page make its tree without copying the headings and names of every other page first."""
    if "toctree" not in context:
        return
    if not hasattr(app, "titles_of_pages"):
        app.titles_of_pages = {name: _titles(contents) for name, contents in app.env.tocs.items()}
    made = context["toctree"]

    def toctree(**options: Any) -> str:
        with mock.patch.object(app.env, "tocs", app.titles_of_pages if options.get("titles_only") else app.env.tocs):
            return made(**options)

    context["toctree"] = toctree


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect to what comes before the theme makes the tree."""
    app.connect("html-page-context", _from_titles, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
