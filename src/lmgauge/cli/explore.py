"""`lmgauge explore`."""

from __future__ import annotations

import click

from lmgauge.cli.command import Command, names_of, refuse_given
from lmgauge.cli.options import scored_text_option, scoring_settings, training_text
from lmgauge.cli.say import say
from lmgauge.models.network.options import ScoringOptions


@click.command("explore", cls=Command)
@click.argument("runs", nargs=-1, type=click.Path(), metavar="[RUN] [RUN]")
@click.option("-m", "--model", type=click.Path(), help="A model that scores what is typed.")
@scored_text_option
@training_text("for the report's slices by what was seen in it")
@click.option("--host", default="127.0.0.1", metavar="NAME", help="A name of this machine; no other is served.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="0: a free one.")
@click.option(
    "--browser/--no-browser", default=None, help="Open the page in a browser; if not said, where there is a screen."
)
@scoring_settings()
def explore(
    runs: tuple[str, ...],
    model: str | None,
    texts: tuple[str, ...],
    train: tuple[str, ...],
    host: str,
    port: int,
    browser: bool | None,
    scoring: ScoringOptions,
) -> None:
    """Look at all of a run, or two of one text, in the browser.

    Search, sort, filter, compare, score what is typed. RUN is a folder that `lmgauge eval -o` wrote, a score table (Parquet,
    JSONL), or the folder of a training that is under way, which is followed. The server answers only this machine, and only
    to who has the address with its token; it ends with Ctrl-C.

    \b
    lmgauge explore run-kn5/
    lmgauge explore run-kn5/ run-lstm/ -m kn5/
    """
    from lmgauge.explore.door import explore as serve

    if model is None:
        refuse_given(names_of(ScoringOptions), "needs the model: name it with -m")
    serve(
        runs,
        text=list(texts) or None,
        train=list(train) or None,
        model=model,
        scoring=None if model is None else scoring,
        host=host,
        port=port,
        browser=browser,
        say=say,
    )
