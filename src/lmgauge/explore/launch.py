"""The explorer from end to end: runs and a model by their paths, a server, a browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lmgauge.api.inputs import PATHS, Model, PathLike
from lmgauge.api.verdicts import RunText
from lmgauge.base.declaration import chosen, verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Bounds
from lmgauge.models.network.options import ScoringOptions

if TYPE_CHECKING:
    import socket

    from lmgauge.evaluation.runs import Run
    from lmgauge.explore.explorer import Explorer
    from lmgauge.text.documents import Corpus

_FIRST_WAIT = 2.0  # seconds, for the first segments before the address is printed


@verb
def open_explorer(
    runs: PathLike | Sequence[PathLike] = (),
    *,
    model: Model | None = None,
    about: RunText = RunText(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Explorer:
    """Return what the server shows."""
    from lmgauge.api.inputs import loaded
    from lmgauge.api.report import report
    from lmgauge.explore.explorer import Explorer, open_runs
    from lmgauge.explore.passages import Playground
    from lmgauge.models.registry import model_names

    opened = open_runs([Path(path) for path in ([runs] if isinstance(runs, PATHS) else runs)])
    playground = None
    if model is not None:
        scores = loaded(model, scoring)
        playground = Playground(scores, model_names([model], [scores])[0])
    elif chosen(scoring):
        raise UsageError(f"{chosen(scoring)[0].replace('_', '-')} needs the model: name it (-m)")
    corpus = _corpus(opened, about) if opened else None
    return Explorer(opened, corpus, playground, lambda: report([run.path for run in opened], about=about).html())


def _corpus(runs: Sequence[Run], about: RunText) -> Corpus | None:
    said: Corpus | None = about.of(runs)["corpus"]
    remembered = (run.corpus() for run in runs if said is None)
    return said or next((corpus for corpus in remembered if corpus is not None and corpus.rereadable), None)


@verb
def explore(
    runs: PathLike | Sequence[PathLike] = (),
    *,
    model: Model | None = None,
    host: str = "127.0.0.1",
    port: Annotated[int, Bounds(0, 65535)] = 0,
    browser: bool | None = None,
    say: Callable[[str], None] = print,
    about: RunText = RunText(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> None:
    """Browse one run, or two runs of the same text, until interrupted: `lmgauge explore`.

    Search, sort, filter, compare, and score text that you type. Local only; the link contains an access token. Press
    Ctrl-C to stop.

    Args:
        runs: one or two folders that `lmgauge eval -o` wrote, or score tables.
        model: a model that scores text that you type.
        host: a name of this machine; other machines cannot connect.
        port: port of the server; 0 picks a free one.
        browser: open the page in a browser; if not given, only with a terminal and a screen.
        say: prints a line.
        about: the text that was scored, and the training text, for the report's slices by what was seen in it.
        scoring: how a model named by its path scores.
        fields: those of `about` and `scoring`, by name.

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
    from lmgauge.explore.server import bound_socket

    with (
        closing(bound_socket(host, port)) as own,
        closing(open_explorer(runs, about=about, model=model, scoring=scoring)) as explorer,
    ):
        _serve(explorer, own, browser, say)


def _serve(explorer: Explorer, own: socket.socket, browser: bool | None, say: Callable[[str], None]) -> None:
    import secrets

    from lmgauge.explore.server import application, page, run

    token = secrets.token_urlsafe(24)
    address = address_of(own, token)
    app = application(explorer, token)
    page(explorer)  # what the first answers need is there when somebody asks
    if explorer.index is not None:
        explorer.index.wait(1, _FIRST_WAIT)
    with suppress(KeyboardInterrupt):
        say(address)
        say("Local only; the link contains an access token. Press Ctrl-C to stop.")
        if browser or (browser is None and _has_screen()):
            import webbrowser

            webbrowser.open(address)
        run(app, own)


def address_of(own: socket.socket, token: str) -> str:
    """Return the address of the page, with its token."""
    from urllib.parse import quote

    name, port = own.getsockname()[:2]
    host = f"[{name}]" if ":" in name else name
    return f"http://{host}:{port}/?token={quote(token)}"


def _has_screen() -> bool:
    has_windows = sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return has_windows and sys.stdout.isatty()
