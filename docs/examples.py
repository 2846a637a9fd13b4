"""Run the examples of the book's pages. `python docs/examples.py PAGE...` writes what they print into the pages.

Examples stand in two kinds of blocks, which run one after the other in a folder with the texts of the book (`stage`):

    ```console                      ```pycon
    $ lmgauge calc 1/2 1/8          >>> lmgauge.perplexity(model, ["the cat sat"])
    what it prints                  what it prints
    ```                             ```

A line `...` in what is printed stands for any lines, `...` within a line for any characters (times, paths). Blocks of other
kinds (`sh`, `python`) are not run. What must happen and is not to be shown stands in comment lines of the page:
`% $ lmgauge train ...`, `% >>> import tiny_network` (makes networks). `% needs: minicons` skips a page where a library is
missing, and hides warnings; a command of a program that is not installed is not run (what it printed once is shown).
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs"
TERMINAL = {"COLUMNS": "100", "LINES": "50", "NO_COLOR": "1", "TERM": "xterm", "TTY_COMPATIBLE": "1"}
"""Makes a command print what it prints in a terminal of 100 columns, without colors."""
_STYLES = re.compile(r"\x1b\[[0-9;]*m")
_PROGRESS = re.compile(r"^lmgauge: [^\n]* \(\d+ s\)\n", re.MULTILINE)
"""What a long command says of its progress; whether an example is long depends on the machine."""
_BLOCK = re.compile(
    r"^```(?P<kind>console|pycon)\n(?P<body>.*?)^```$|^% (?P<hidden>(?:\$|>>>) [^\n]*)$", re.MULTILINE | re.DOTALL
)
_NEEDS = re.compile(r"^% needs: (.*)$", re.MULTILINE)
_COMMAND = re.compile(r"(?P<command>(?:[^\n]*\\\n)*[^\n]*)\n?")
_PLAIN_COMMAND = re.compile(r"lmgauge (?:[^|<>$`;&*?]*|[^|<>$`;&?'\"]*)")
_FIRST_COMMAND = re.compile(r"(?P<ours>lmgauge [^|<>$`;&*?]*?)(?P<rest>\s*(?:[12]?>|[|;])(?!.*\blmgauge ).*)", re.DOTALL)
"""A command of ours, and what the shell does with what it prints."""
_PRINTED = 'lmgauge() { cat "$PRINTED/1"; cat "$PRINTED/2" >&2; return "$(cat "$PRINTED/code")"; }; lmgauge'
"""In place of the command: what it printed to both streams, and its exit code."""
_HEAD = re.compile(r"(?P<command>.*?)\s*\| head -(?P<lines>\d+)", re.DOTALL)
_OF_THE_SHELL = ("cd", "do", "done", "export", "for")
_TIMEOUT = 120


def stage(folder: Path = Path()) -> None:
    """Put the texts of the book into a folder, the current one if none is named.

    `train.txt`, `valid.txt`, `test.txt` are novels, a paragraph a line; `wikitext2.*`, `shakespeare.txt`; `en.txt`,
    `de.txt`, `tr.txt` have the same 60 sentences; `ref.en.txt`, `a.en.txt`, `b.en.txt` are a reference and two imagined
    translations; `ref`, `amazon`, `google`, `microsoft`, `kaldi` (`.tsv`, `.txt`) are transcripts; `kenlm3.arpa.gz` is a
    model of KenLM's.
    """
    texts = ROOT / "tests" / "data"
    lines = (texts / "classic-books.train.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "train.txt").write_text("".join(lines[:900]), encoding="utf-8")
    (folder / "valid.txt").write_text("".join(lines[900:]), encoding="utf-8")
    copies = {"classic-books.test.txt": "test.txt", "tinyshakespeare.txt": "shakespeare.txt", "pud.en.txt": "ref.en.txt"}
    same = ("wikitext2.train.txt.gz", "wikitext2.test.txt", "kenlm3.arpa.gz")
    copies |= {name: name for name in same} | {f"pud.{language}.txt": f"{language}.txt" for language in ("de", "tr")}
    for name, copy in copies.items():
        shutil.copyfile(texts / name, folder / copy)
    shutil.copyfile(texts / "pud.en.txt", folder / "en.txt")
    for path in (BOOK / "data").iterdir():
        shutil.copyfile(path, folder / ("LICENSES.md" if path.suffix == ".md" else path.name))
    for path in folder.glob("*.tsv"):
        rows = path.read_text(encoding="utf-8").splitlines()[1:]
        path.with_suffix(".txt").write_text("".join(f"{row.split(chr(9))[2]}\n" for row in rows), encoding="utf-8")


def drawings(chart: Any) -> str:
    """Return a chart drawn for a page and, after that, for a phone; the page shows the one that fits."""
    from lmgauge.report import charts, drawing
    from lmgauge.report.chart_values import PAGE_WIDTH, WIDTH

    def roomy(drawn: Any, axis: Any = charts._row_axis) -> Any:
        return axis(replace(drawn, width=WIDTH))  # long names of rows are not cut

    with mock.patch.multiple(charts, _FOLDED=48, _row_axis=roomy):
        narrow = charts.specification(chart.data, width=PAGE_WIDTH)
    return "".join(drawing.figure_svg(spec).decode() for spec in (chart.specification, narrow))


def draw_twice() -> None:
    """Let charts that a notebook shows be both drawings."""
    from lmgauge.base.display import Chart

    def bundle(chart: Chart, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"image/svg+xml": drawings(chart), "text/plain": repr(chart)}

    Chart._repr_mimebundle_ = bundle  # type: ignore[method-assign]


def run_here() -> None:
    """Let the `!` commands of a notebook run as those of pages do: in this process, without color or what moves."""
    from IPython import get_ipython

    draw_twice()
    shell: Any = get_ipython()

    def system(command: str) -> None:
        with mock.patch.dict(os.environ, TERMINAL), mock.patch("rich.console._is_jupyter", return_value=False):
            print(_run_command(shell.var_expand(command, depth=1)), end="")

    shell.system = system


@dataclass
class Example:
    """A command or statement of a page.

    Attributes:
        source: without its prompt.
        expected: what the page says it prints.
        line: of the page, the first is 1.
        shell: a command, not Python.
        hidden: not shown, so what it prints is not compared.
    """

    source: str
    expected: str
    line: int
    shell: bool
    hidden: bool = False


@dataclass
class Page:
    """The examples of a page, to be run in order.

    Attributes:
        path: of the page.
        examples: in order.
        needs: libraries without which the page cannot run.
    """

    path: Path
    examples: list[Example] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Page:
        """Return the examples of a page."""
        text = path.read_text(encoding="utf-8")
        page = cls(path, needs=[name for names in _NEEDS.findall(text) for name in names.split()])
        for block in _BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 1
            if hidden := block["hidden"]:
                source = hidden.removeprefix("$ ").removeprefix(">>> ")
                page.examples.append(Example(source, "", line, hidden.startswith("$"), hidden=True))
            elif block["kind"] == "console":
                page.examples.extend(_commands(block["body"], line + 1))
            else:
                page.examples.extend(_statements(block["body"], line + 1))
        return page

    def missing(self) -> list[str]:
        """Return the libraries that the page needs and that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]

    def run(self, folder: Path) -> Iterator[tuple[Example, str]]:
        """Run the examples in a folder with the texts of the book; yield each with what it prints."""
        names: dict[str, Any] = {"__name__": "__main__"}
        modules = mock.patch.object(sys, "path", [str(BOOK), *sys.path])  # tiny_network
        with mock.patch.dict(os.environ, TERMINAL), modules, contextlib.chdir(folder), warnings.catch_warnings():
            if self.needs:
                warnings.simplefilter("ignore")
            for example in self.examples:
                printed = _run_command(example.source) if example.shell else _run_statement(example, names)
                if printed is not None:
                    yield example, printed


def agrees(expected: str, printed: str) -> bool:
    """Return True if an example prints what the page says, where `...` stands for anything.

    >>> agrees("one\\n...\\nthree in ... s\\n", "one\\ntwo\\nthree in 0.3 s\\n")
    True
    """
    lines = [_normal(expected), _normal(printed)]
    pattern = re.escape(lines[0]).replace(re.escape("\n...\n"), r"\n(?:.*\n)?").replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, lines[1], re.DOTALL) is not None


def _normal(text: str) -> str:
    return "\n" + "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines())


def _commands(body: str, line: int) -> Iterator[Example]:
    """Yield the commands of a block; one goes on behind a backslash at the end of its line."""
    for part in re.split(r"^(?=\$ )", body, flags=re.MULTILINE):
        if part.startswith("$ "):
            lines = _COMMAND.match(part[2:])
            assert lines is not None
            yield Example(lines["command"], part[2 + lines.end() :], line, shell=True)
        line += part.count("\n")


def _statements(body: str, line: int) -> Iterator[Example]:
    """Yield the statements of a block; what one prints ends before the next, and may contain empty lines."""
    parsed, lines = doctest.DocTestParser().get_examples(body), body.splitlines(keepends=True)
    for one, end in zip(parsed, [*(after.lineno for after in parsed[1:]), len(lines)], strict=True):
        printed = "".join(lines[one.lineno + one.source.count("\n") : end]).rstrip()
        yield Example(one.source, f"{printed}\n" if printed else "", line + one.lineno, shell=False)


def _run_command(command: str) -> str | None:
    """Return what a command prints, errors included; None if its program is not installed."""
    if (head := _HEAD.fullmatch(command)) and "|" not in head["command"]:
        printed = _run_command(head["command"])
        return None if printed is None else "".join(printed.splitlines(keepends=True)[: int(head["lines"])])
    line = command.replace("\\\n", " ")
    if _PLAIN_COMMAND.fullmatch(line):
        printed = _stream()
        words = shlex.split(line, comments=True)[1:]
        if "*" in line:  # nothing is quoted then
            words = [file for word in words for file in sorted(glob(word)) or [word]]
        _run_lmgauge(words, printed, printed)
        return _plain(printed.buffer.getvalue())
    if any(shutil.which(program) is None for program in _programs(line)):
        return None
    if not (first := _FIRST_COMMAND.fullmatch(line)):
        return _run_shell(command)
    streams = _stream(), _stream()
    code = _run_lmgauge(shlex.split(first["ours"])[1:], *streams)
    with tempfile.TemporaryDirectory() as name:
        for number, stream in enumerate(streams, 1):
            Path(name, str(number)).write_bytes(stream.buffer.getvalue())
        Path(name, "code").write_text(str(code))
        return _run_shell(_PRINTED + first["rest"], PRINTED=name)


def _run_shell(command: str, **environment: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_TIMEOUT,
        check=False,
        env=os.environ | environment,
    )
    return _plain(done.stdout)


def _programs(line: str) -> Iterator[str]:
    """Yield the programs that a line of the shell calls, but not what the shell does itself.

    >>> list(_programs("A=1 lmgauge calc 1/2 --json | jq '.x | length' > out; for x in 1 2; do cat out; done"))
    ['lmgauge', 'jq', 'cat']
    """
    is_first = True
    for word in shlex.shlex(line, posix=True, punctuation_chars="|;&()"):
        if word in _OF_THE_SHELL or set(word) <= set("|;&()"):
            is_first = word not in ("cd", "export", "for")
        elif is_first and not re.match(r"\w+=|\d+$", word):  # neither A=1 nor the 1 of 2>&1
            is_first = False
            yield word


def _stream() -> Any:
    """Return a stream in memory; rows go to its buffer, as to a terminal's."""
    return io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)


def _run_lmgauge(arguments: list[str], stdout: Any, stderr: Any) -> int:
    """Run our command in this process, which saves its start, and return its exit code."""
    from lmgauge.cli.main import main

    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        try:
            main(arguments)
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def _plain(printed: bytes) -> str:
    r"""Return what was printed without colors and progress.

    >>> _plain(b"lmgauge: scored 5,307 tokens, 1,835 a second (10 s)\n\x1b[1mkn5\x1b[0m\n")
    'kn5\n'
    """
    return _PROGRESS.sub("", _STYLES.sub("", printed.decode("utf-8", "replace")))


def _run_statement(example: Example, names: dict[str, Any]) -> str:
    """Return what a statement prints, or the last line of its error."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(example.source, f"<line {example.line}>", "single", dont_inherit=True), names)
        except Exception as error:
            if example.hidden:
                raise
            printed.write("Traceback (most recent call last):\n    ...\n")
            printed.write(f"{type(error).__name__}: {error}\n")
    return printed.getvalue()


def refresh(path: Path) -> bool:
    """Write what the examples of a page print into it, where the page says something else.

    Returns:
        True if the page has changed.
    """
    page = Page.read(path)
    if missing := page.missing():
        print(f"{path}: not run, as {', '.join(missing)} is not installed")
        return False
    with tempfile.TemporaryDirectory() as name:
        stage(Path(name))
        results = {(one.line, one.source): printed for one, printed in page.run(Path(name))}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    changed = False
    for one in sorted(page.examples, key=lambda example: -example.line):
        printed = results.get((one.line, one.source))
        if one.hidden or printed is None or agrees(one.expected, printed):
            continue
        first = one.line - 1 + one.source.rstrip("\n").count("\n") + 1
        new = [f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines()]
        old = one.expected.count("\n")
        lines[first : first + old] = new
        changed = True
    if changed:
        path.write_text("".join(lines), encoding="utf-8")
    return changed


if __name__ == "__main__":
    for argument in sys.argv[1:] or [str(path) for path in sorted(BOOK.rglob("*.md"))]:
        if refresh(Path(argument)):
            print(f"{argument}: written anew")
