"""The explorer's page: the style and the script of the report page, and a script of its own that asks for more."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from lmgauge.report.page import environment, policy
from lmgauge.version import __version__

if TYPE_CHECKING:
    from lmgauge.explore.explorer import Explorer


def page(explorer: Explorer) -> tuple[str, str]:
    """Return the page and its content security policy.

    Args:
        explorer: what is looked at.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    style = f"{_text('lmgauge.report', 'page.css')}\n{_text('lmgauge.explore', 'explore.css')}"
    script = f"{_text('lmgauge.report', 'page.js')}\n{_text('lmgauge.explore', 'explore.js')}"
    allowed = policy(style, script, connect="'self'")
    template = environment("lmgauge.explore").get_template("explore.html")
    html = template.render(title=explorer.title, style=style, script=script, version=__version__)
    return html, f"{allowed}; frame-ancestors 'none'"


def _text(package: str, name: str) -> str:
    return (files(package) / "templates" / name).read_text("utf-8").strip()
