"""The explorer from end to end: runs and a model by their paths, a server, a browser."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from lmgauge.api.types import PATHS, Model, PathLike, Text
from lmgauge.declaration import chosen, verb
from lmgauge.errors import UsageError
from lmgauge.models.network.options import ScoringOptions
from lmgauge.option_numbers import Bounds

if TYPE_CHECKING:
    from lmgauge.evaluation.runs import Run
    from lmgauge.explore.explorer import Explorer
    from lmgauge.text.documents import Corpus

_FIRST_WAIT = 2.0  # seconds, for the first segments before the address is printed


def open_explorer(
    runs: PathLike | Sequence[PathLike] = (),
    *,
    text: Text | None = None,
    train: Text | None = None,
    model: Model | None = None,
    scoring: ScoringOptions = ScoringOptions(),
) -> Explorer:
    """Return what the server shows."""
    from lmgauge.api.inputs import loaded
    from lmgauge.api.report import report
    from lmgauge.explore.explorer import Explorer
    from lmgauge.explore.typed import Typed
    from lmgauge.models.registry import model_names

    for name in chosen(scoring) if model is None else ():
        raise UsageError(f"{name} needs the model: name it (-m)")
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
    from lmgauge.api.inputs import text_of

    if text is not None:
        return text_of(runs, text)
    return next((corpus for run in runs if (corpus := run.corpus()) is not None and corpus.rereadable), None)


@verb
def explore(
    runs: PathLike | Sequence[PathLike] = (),
    *,
    text: Text | None = None,
    train: Text | None = None,
    model: Model | None = None,
    host: str = "127.0.0.1",
    port: Annotated[int, Bounds(0, 65535)] = 0,
    browser: bool | None = None,
    say: Callable[[str], None] = print,
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> None:
    """Show runs in the browser until interrupted: `lmgauge explore`.

    Search, sort, filter, compare, score what is typed. The server answers only this machine, and only to who has the address
    with its token; it ends with Ctrl-C.

    Args:
        runs: one or two run folders or score tables, or the folder of a training that is under way, which is followed.
        text: the text that was scored, if it is not where the runs remember it.
        train: training text, for the report's slices by what was seen in it.
        model: a model that scores what is typed.
        host: a name of this machine; no other is served.
        port: where it listens; 0 for a free one.
        browser: open the page; if not said, where there is a terminal and a screen.
        say: prints a line.
        scoring: how a model named by its path scores.
        fields: those of `scoring`, by name.

    Raises:
        InputError: a run cannot be read, or two are of different texts.
        MissingExtraError: starlette, uvicorn or Jinja2 is not installed.
        ModelFileError: the model cannot be loaded.
        UsageError: there is nothing to look at, or too much; the port is taken; the host is not this machine.

    Shell:
        lmgauge explore run-kn5/
        lmgauge explore run-kn5/ run-lstm/ -m kn5/

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
    from lmgauge.explore.page import page
    from lmgauge.explore.server import application, bound_socket, run

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
