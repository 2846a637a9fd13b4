"""Examples of the terminal: only `$` begins a command, so that output which begins with `(` or `%` stays output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pygments.lexers.shell import BashLexer, BashSessionLexer
from pygments.token import Generic, Text
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

_OPTION = re.compile(r"((?<![\w-])--?[a-zA-Z][\w-]*)")


def _with_options(tokens: Iterator[tuple[int, Any, str]]) -> Iterator[tuple[int, Any, str]]:
    """Yield tokens with options (`--document`) as tokens of their own, which the style sheet does not break at a hyphen."""
    for at, kind, text in tokens:
        parts = _OPTION.split(text) if kind in (Text, Generic.Output) else [text]
        for i, part in enumerate(parts):
            if part:
                yield at, kind.Option if i % 2 else kind, part
            at += len(part)


class Shell(BashLexer):
    """Commands."""

    def get_tokens_unprocessed(self, text: str, *arguments: Any) -> Iterator[tuple[int, Any, str]]:
        """Yield the tokens of commands."""
        yield from _with_options(super().get_tokens_unprocessed(text, *arguments))


class Terminal(BashSessionLexer):
    """A session of commands after `$`, without names of environments before it."""

    _venv = re.compile(r"(?!)")
    _ps1rgx = re.compile(r"^(\$ )(.*\n?)")

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Yield the tokens of commands and of what they print."""
        yield from _with_options(super().get_tokens_unprocessed(text))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the lexers."""
    app.add_lexer("console", Terminal)
    app.add_lexer("sh", Shell)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
