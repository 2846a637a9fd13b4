"""What tutorials show: charts drawn into the page, in its colors, and each tutorial as a notebook to download."""

from __future__ import annotations

from pathlib import Path

import nbformat
from docutils import nodes
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from lmgauge.report import page


def _copy_styles(app: Sphinx) -> None:
    """Write what results look like, so that charts have the page's colors."""
    target = Path(app.outdir, "_static", "lmgauge.css")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page.asset("page.css"), encoding="utf-8")


def _draw_charts_into_the_page(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace pictures of our charts by the drawing itself: only so can a dark page recolor it, and a reader select its text."""
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        path = Path(app.srcdir, image["uri"])
        if path.suffix == ".svg" and path.is_relative_to(Path(app.outdir).parent) or "lmgauge-chart" in image.get("classes", []):
            drawing = path.read_text(encoding="utf-8")
            image.replace_self(nodes.raw("", f'<figure class="lmgauge chart">{drawing}</figure>', format="html"))


def _write_notebooks(app: Sphinx, error: Exception | None) -> None:
    """Write each tutorial as a notebook beside its page, to open in Jupyter."""
    if error or app.builder.format != "html":
        return
    for name in sorted(app.env.found_docs):
        source = Path(app.env.doc2path(name))
        text = source.read_text(encoding="utf-8")
        if is_myst_markdown_notebook(text):
            nbformat.write(read_myst_markdown_notebook(text), Path(app.outdir, f"{name}.ipynb"))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect to the steps of the build."""
    app.connect("builder-inited", _copy_styles)
    app.connect("doctree-resolved", _draw_charts_into_the_page)
    app.connect("build-finished", _write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
