"""The explorer's page: the style and the script of the report page, and a script of its own that asks for more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmgauge.report.page import asset, environment, policy
from lmgauge.version import __version__

if TYPE_CHECKING:
    from lmgauge.explore.explorer import Explorer


def page(explorer: Explorer) -> tuple[str, str]:
    """Return the page and its content security policy."""
    style = f"{asset('page.css')}\n{asset('explore.css', 'lmgauge.explore')}"
    script = f"{asset('page.js')}\n{asset('explore.js', 'lmgauge.explore')}"
    allowed = policy(style, script, connect="'self'")
    template = environment("lmgauge.explore").get_template("explore.html")
    html = template.render(title=explorer.title, style=style, script=script, version=__version__)
    return html, f"{allowed}; frame-ancestors 'none'"
