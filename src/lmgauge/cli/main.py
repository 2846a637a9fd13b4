"""The `lmgauge` command. Subcommands are imported when they are called, so that `--help` is instant."""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

import click

from lmgauge.base.errors import LmgaugeError, NotEnoughMemoryError
from lmgauge.base.version import __version__
from lmgauge.cli.commands import COMMANDS, SECTIONS

INTERRUPTED = 130
_ELSEWHERE = dict.fromkeys(("-p", "--plus-plus"), " chrF++ is a metric of its own: --also chrf++")
"""What is said of an option that only another command has."""


_EPILOG = """\b
In a pipe or a file, the cells of a table are separated by tabs, and all other lines begin with "# ".

\b
To complete commands and options with the Tab key, add this line to ~/.bashrc (zsh: zsh_source, ~/.zshrc):
  eval "$(_LMGAUGE_COMPLETE=bash_source lmgauge)"
"""


def _complain(message: str) -> None:
    from lmgauge.cli.say import say

    say(f"lmgauge: error: {message}", err=True)


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the command line; without any the page of help is asked for."""
        return super().parse_args(ctx, args or ["--help"])

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the help page."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        from lmgauge.cli.derive import command_of

        return command_of(cmd_name, COMMANDS[cmd_name])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name.

        Args:
            ctx: of the whole program.
            args: what follows its options, the name of a command first.

        Raises:
            click.UsageError: there is none of that name; it says which may be meant.
        """
        if args[0] == "help":
            if not args[1:]:
                click.echo(ctx.get_help())
                ctx.exit()
            args = [args[1], "--help"]
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            meant = " or ".join(f"`lmgauge {name}`" for name in _commands_like(args[0].lower()))
            raise click.UsageError(f"no command {args[0]!r}" + (f"; did you mean {meant}?" if meant else ""), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings without importing one."""
        width = max(map(len, COMMANDS))
        for heading, section in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), row.summary) for name, row in section.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command.

        Args:
            ctx: of the whole program.

        Raises:
            NotEnoughMemoryError: it needs less memory in another way, which it says.
        """
        try:
            return super().invoke(ctx)
        except MemoryError as error:
            raise NotEnoughMemoryError(f"there is not enough memory for this; try {self._memory_advice(ctx)}") from error

    def _memory_advice(self, ctx: click.Context) -> str:
        """Return what makes the command that ran out of memory need less of it."""
        name = ctx.invoked_subcommand or ""
        if name == "train":
            return "--memory, a lower order, --cutoffs or a smaller text"
        command = self.get_command(ctx, name)
        options = {option for parameter in command.params for option in parameter.opts} if command else set()
        fewer = [f"fewer {option}" for option in ("--resamples", "--threads") if option in options]
        return ", ".join([*fewer, "shorter lines"]) + " or a smaller text"


def _commands_like(word: str) -> list[str]:
    """Return the commands that a word stands for in the field, or, where none does, those spelled like it."""
    from difflib import get_close_matches

    known = {guess: name for name, row in COMMANDS.items() for guess in (name, *row.guesses)}
    if word in known:
        return [known[word]]
    return list(dict.fromkeys(known[near] for near in get_close_matches(word, known, n=3, cutoff=0.7)))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog=_EPILOG,
)
@click.version_option(__version__, prog_name="lmgauge")
def cli() -> None:
    """Measure how well language models predict a text, exactly.

    \b
    lmgauge quickstart
    lmgauge train modified-kneser-ney --order 5 train.txt -o kn5/
    lmgauge eval -m kn5/ test.txt
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 a check failed, 2 bad usage or input, 130 interrupted."""
    _prepare_streams()
    output = sys.stdout
    try:
        code = cli.main(args=None if arguments is None else list(arguments), prog_name="lmgauge", standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        code = _interrupted()
    except LmgaugeError as error:
        _complain(" ".join(str(error).split("\n")))
        code = error.exit_code
    except click.ClickException as error:
        context: click.Context | None = getattr(error, "ctx", None)
        hint = _ELSEWHERE.get(getattr(error, "option_name", ""), "")
        hint += f" (see `{context.command_path} --help`)" if context else ""
        _complain(f"{error.format_message()}{hint}")
        code = error.exit_code
    except OSError as error:
        code = _output_failed(error)
    except Exception as error:
        from lmgauge.base.plugins import broken_plugin

        if (message := broken_plugin(error)) is None:
            raise
        _complain(message)
        code = 2
    except SystemExit as error:
        # click meets a closed pipe (`| head`) with exit code 1 and a wrapped standard output; to us that is not an error.
        if sys.stdout is output:
            _leave_threads(error.code)
            raise
        code = 0 if error.code == 1 else error.code
    gc.freeze()  # the process ends: nobody needs to look for garbage once more
    sys.exit(code if isinstance(code, int) else 0)


class _LosingFile(io.FileIO):
    """A file that loses what cannot be written to it: its disk is full, its reader has gone."""

    def write(self, data: Any, /) -> int:
        """Write bytes, or lose them."""
        try:
            return super().write(data) or 0
        except OSError:
            return memoryview(data).nbytes


def _prepare_streams() -> None:
    """Make the standard streams safe to write to, and let SIGTERM and a terminal that is closed tidy up.

    A closed stream swallows what is written; one that cannot show a character shows another. Standard error only says how
    the work goes: where it cannot be written, the work and the exit code are what they are without it.
    """
    if (own := sys.__stderr__) is not None and sys.stderr is own:  # not what a test or a notebook has put in its place
        raw = _LosingFile(own.fileno(), "wb", closefd=False)
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(raw), encoding=own.encoding, line_buffering=True)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the rest of the process
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace" if name == "stdout" else "backslashreplace")
    with contextlib.suppress(ValueError):  # not the main thread: whoever runs us there has signals of their own
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores it, and so do we
                signal.signal(number, lambda number, frame: sys.exit(128 + number))


def _output_failed(error: OSError) -> int:
    """Return the exit code for a standard output that is gone (`| head` has what it wanted: not an error) or full."""
    if error.filename is not None:  # not standard output: a path that the system does not take, such as one too long
        _complain(f"{os.fsdecode(error.filename)[:100]}: {error.strerror or error}")
        return 2
    quiet = error.errno in (errno.EPIPE, errno.EINVAL) or isinstance(error, BrokenPipeError)
    # Python would complain once more while it closes standard output.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if quiet:
        return 0
    _complain(f"cannot write: {error.strerror or error}")
    return 2


def _interrupted() -> int:
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is tidied up: a second one has nothing to interrupt
    click.echo("lmgauge: interrupted; no half-written files are left", err=True)
    _leave_threads(INTERRUPTED)
    return INTERRUPTED


def _leave_threads(code: str | int | None) -> None:
    """End the process where other threads are at work: Python would wait for them, or end them within a kernel."""
    if threading.active_count() > 1 and isinstance(code, int) and code > 128:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
