"""What tutorials show, and what they leave behind: charts drawn into the page, notebooks and texts to download."""

from __future__ import annotations

import logging
import os
import re
import tempfile
import zipfile
from pathlib import Path
from posixpath import relpath

import nbformat
from docutils import nodes
from examples import stage
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata

from lmgauge.report import page

_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_TEXTS = "texts.zip"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The time of each file in the archive, so that it is the same from build to build."""


def _quiet_kernels(app: Sphinx) -> None:
    """Let kernels report errors alone: each would warn that other users of the machine could read what it says."""
    logging.getLogger("traitlets").setLevel(logging.WARNING)
    profile = Path(app.doctreedir, "ipython", "profile_default")
    profile.mkdir(parents=True, exist_ok=True)
    profile.joinpath("ipython_kernel_config.py").write_text("c.Application.log_level = 'ERROR'\n", encoding="utf-8")
    os.environ["IPYTHONDIR"] = str(profile.parent)


def _spread(app: Sphinx, env: BuildEnvironment, names: list[str]) -> None:
    """Read the tutorials, which run, among the other pages, so that no process of the build has most of them to itself."""
    slow = [name for name in names if name.startswith("tutorials/")]
    names[:] = [name for name in names if name not in slow]
    for i, name in enumerate(slow):
        names.insert(i + (i + 1) * len(names) // (len(slow) + 1), name)


def _write_styles(app: Sphinx) -> None:
    """Write what results look like, once for all pages."""
    target = Path(app.outdir, "_static", "lmgauge.css")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page.asset("page.css"), encoding="utf-8")


def _write_texts(app: Sphinx) -> None:
    """Write the texts of the tutorials as an archive."""
    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(Path(app.outdir, _TEXTS), "w") as archive:
        stage(Path(name))
        for path in sorted(Path(name).iterdir()):
            entry = zipfile.ZipInfo(path.name, _LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())


def _write_notebook(app: Sphinx, document: nodes.document) -> None:
    """Write a tutorial as a notebook beside its page, without the cells that only its page needs, and link to it."""
    source = Path(app.env.doc2path(app.env.docname))
    text = source.read_text(encoding="utf-8")
    if not app.env.docname.startswith("tutorials/") or not is_myst_markdown_notebook(text):
        return  # other pages are notebooks only to draw charts
    notebook = read_myst_markdown_notebook(text)
    notebook.cells = [cell for cell in notebook.cells if "remove-cell" not in cell.metadata.get("tags", [])]
    target = Path(app.outdir, f"{app.env.docname}.ipynb")
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)
    texts = relpath(_TEXTS, str(Path(app.env.docname).parent.as_posix()))
    title = next(document.findall(nodes.title))
    link = (
        f'<p class="notebook"><a href="{target.name}" download>Download this page as a notebook</a>, '
        f'and <a href="{texts}" download>the texts</a> to unpack beside it.</p>'
    )
    title.parent.insert(title.parent.index(title) + 1, nodes.raw("", link, format="html"))


def figures(drawings: str) -> str:
    """Return the drawings of a chart, one for a page and one for a phone, as elements of a page."""
    wide, narrow = re.findall(r"<svg\b.*?</svg>", drawings, re.DOTALL)
    return f'<figure class="lmgauge chart">{wide}</figure><figure class="lmgauge chart narrow">{narrow}</figure>'


def _draw_into_the_page(app: Sphinx, document: nodes.document, name: str) -> None:
    """Replace pictures of charts by the drawing itself, so that a dark page recolors it; take styles from results."""
    if app.builder.format != "html":
        return
    for image in list(document.findall(nodes.image)):
        path = Path(app.srcdir, image["uri"])
        if path.parent.name == "jupyter_execute" and path.suffix == ".svg":
            image.replace_self(nodes.raw("", figures(path.read_text(encoding="utf-8")), format="html"))
    for raw in document.findall(nodes.raw):
        if raw.astext().startswith('<div class="lmgauge fragment">'):
            raw.children = [nodes.Text(_STYLE.sub("", raw.astext(), count=1))]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect to the steps of the build."""
    app.connect("builder-inited", _quiet_kernels)
    app.connect("env-before-read-docs", _spread)
    app.connect("builder-inited", _write_styles)
    app.connect("builder-inited", _write_texts)
    app.connect("doctree-read", _write_notebook)
    app.connect("doctree-resolved", _draw_into_the_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
