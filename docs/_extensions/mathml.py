"""Formulas as MathML, which browsers draw by themselves: no script, nothing loaded."""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

_WORDS = re.compile(r"(?<=\\text{)[^{}]*")


def _formula(source: str, display: str) -> str:
    # The converter leaves what stands in \text as it is, and <unk> is a tag of no element.
    return convert(_WORDS.sub(lambda words: escape(words[0], quote=False), source), display=display)


def _inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(_formula(node.astext(), "inline"))
    raise nodes.SkipNode


def _displayed(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{_formula(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
