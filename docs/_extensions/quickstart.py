"""The pages that the quickstart makes, as part of the site: the one it writes, and one of two of its models."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

import lmgauge
from lmgauge.cli.main import main

FOLDER = "quickstart"


def write_pages(folder: Path) -> None:
    """Write `report.html`, what `lmgauge quickstart` writes, and `two.html`, its bigram and trigram compared.

    Args:
        folder: for the pages; made where it does not exist.
    """
    with (
        tempfile.TemporaryDirectory() as models,
        as_file(files("lmgauge") / "data" / "quickstart-test.txt.xz") as test,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        folder = folder.resolve()
        with contextlib.suppress(SystemExit):
            main(["quickstart", "-o", models])
        folder.mkdir(parents=True, exist_ok=True)
        folder.joinpath("report.html").write_bytes(Path(models, "report.html").read_bytes())
        names = ("bigram", "trigram")
        with contextlib.chdir(models):  # a page names the runs as they are named here
            lmgauge.evaluate({name: name for name in names}, test, output="runs")
            lmgauge.report([f"runs/{name}" for name in names], folder / "two.html")


def _write(app: Sphinx) -> None:
    if app.builder.format == "html":
        # In a process of its own: vl-convert has threads, and no process that this one forks later could draw with it.
        subprocess.run([sys.executable, __file__, Path(app.outdir, FOLDER)], check=True)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect to the beginning of the build."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
