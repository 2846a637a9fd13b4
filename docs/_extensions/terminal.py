"""Examples of the terminal: only `$` begins a command, so that output which begins with `(` or `%` stays output."""

from __future__ import annotations

import re

from pygments.lexers.shell import BashSessionLexer
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata


class Terminal(BashSessionLexer):
    """A session of commands after `$`, without names of environments before it."""

    _venv = re.compile(r"(?!)")
    _ps1rgx = re.compile(r"^(\$ )(.*\n?)")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the lexer."""
    app.add_lexer("console", Terminal)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
