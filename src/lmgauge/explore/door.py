"""The explorer from end to end: runs and a model by their paths, a server, a browser."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, loaded, text_of
from lmgauge.api.report import report
from lmgauge.evaluation.runs import Run
from lmgauge.explore.explorer import Explorer
from lmgauge.explore.page import page
from lmgauge.explore.server import application, bound_socket, run
from lmgauge.explore.typed import Typed
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.registry import model_names
from lmgauge.text.documents import Corpus

_FIRST_WAIT = 2.0  # seconds, for the first segments before the address is printed


def open_explorer(
    runs: PathLike | Sequence[PathLike] = (),
    *,
    text: Text | None = None,
    train: Text | None = None,
    model: Model | None = None,
    scoring: ScoringOptions | None = None,
) -> Explorer:
    """Return what the server shows."""
    paths = [Path(path) for path in ([runs] if isinstance(runs, PATHS) else runs)]
    typed = None
    if model is not None:
        scores = loaded(model, scoring)
        typed = Typed(scores, model_names([model], [scores])[0])
    return Explorer(
        paths,
        lambda opened: _corpus(opened, text),
        typed,
        lambda opened: report([run.path for run in opened], text=text, train=train).html(),
    )


def _corpus(runs: Sequence[Run], text: Text | None) -> Corpus | None:
    if text is not None:
        return text_of(runs, text)
    return next((corpus for run in runs if (corpus := run.corpus()) is not None and corpus.rereadable), None)


def explore(
    runs: PathLike | Sequence[PathLike] = (),
    *,
    text: Text | None = None,
    train: Text | None = None,
    model: Model | None = None,
    scoring: ScoringOptions | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Show runs in the browser until interrupted: `lmgauge explore`.

    Args:
        runs: one or two run folders or score tables, or the folder of a training that is under way.
        text: what the runs scored; if None, where they remember it.
        train: training text, for the report's slices by what was seen in it.
        model: scores what is typed.
        scoring: how a model named by its path scores.
        host: a name of this machine.
        port: 0 for a free one.
        browser: open the page; if None, where there is a terminal and a screen.
        say: prints a line.

    Raises:
        InputError: a run cannot be read, or two are of different texts.
        MissingExtraError: starlette, uvicorn or Jinja2 is not installed.
        ModelFileError: the model cannot be loaded.
        UsageError: there is nothing to look at, or too much; the port is taken; the host is not this machine.

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus, evaluate, train
        >>> def show(line):
        ...     print(line[:17])
        ...     raise KeyboardInterrupt  # the Ctrl-C that ends it
        >>> text = Corpus.from_strings(["the cat sat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = evaluate(train("witten-bell", text), text, output=f"{folder}/run")
        ...     explore(f"{folder}/run", text=text, say=show)
        http://127.0.0.1:
    """
    own = bound_socket(host, port)
    try:
        explorer = open_explorer(runs, text=text, train=train, model=model, scoring=scoring)
    except BaseException:
        own.close()
        raise
    token = secrets.token_urlsafe(24)
    address = address_of(own, token)
    app = application(explorer, token)
    page(explorer)  # what the first answers need is there when somebody asks
    if explorer.index is not None:
        explorer.index.wait(1, _FIRST_WAIT)
    try:
        say(address)
        say("Only this machine is answered, and only with the token in this address. Ctrl-C ends it.")
        if browser or (browser is None and _has_screen()):
            import webbrowser

            webbrowser.open(address)
        run(app, own)
    except KeyboardInterrupt:
        return
    finally:
        explorer.close()
        own.close()


def address_of(own: socket.socket, token: str) -> str:
    """Return the address of the page, with its token."""
    name, port = own.getsockname()[:2]
    host = f"[{name}]" if ":" in name else name
    return f"http://{host}:{port}/?token={quote(token)}"


def _has_screen() -> bool:
    if not sys.stdout.isatty():
        return False
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
