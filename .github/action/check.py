"""What action.yml runs: `check.py install` installs lmgauge, `check.py check` runs a command of it and says what came out.

Inputs arrive as variables of the environment, LMGAUGE_ACTION_*, and may hold anything: nothing of them is run or reaches a
shell, paths cannot pass for options, and what is printed cannot pass for commands of GitHub. Standard library only.
"""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

COMMANDS = ("audit", "compare")
FAIL_ON = ("check", "worse", "never")
_PAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.html")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,40}")
_EXTRAS = re.compile(r"[a-z0-9]+(,[a-z0-9]+)*")
_MOST_ROWS = 200
_MOST_BYTES = 900_000  # GitHub refuses a summary of a step above 1 MiB
_REMARK = "# "


class InputError(Exception):
    """An input that is not of its form."""


def read(name: str) -> str:
    """Return an input without the white space around it."""
    return os.environ.get(f"LMGAUGE_ACTION_{name}", "").strip()


def read_paths(name: str) -> list[str]:
    """Return the lines of an input; none of them may pass for an option."""
    paths = [line.strip() for line in read(name).splitlines() if line.strip()]
    for path in paths:
        if path.startswith("-"):
            raise InputError(f"{name.lower()}: {path!r} begins with a hyphen: write ./{path}")
    return paths


def choice(name: str, values: tuple[str, ...], default: str = "") -> str:
    """Return an input that is one of some words."""
    value = read(name) or default
    if value not in values:
        raise InputError(f"{name.lower().replace('_', '-')} must be one of {', '.join(values)}; got {value!r}")
    return value


def install_arguments() -> list[str]:
    """Return the arguments of pip: a version from the index, or the source that this action is part of."""
    version, extras = read("VERSION"), read("EXTRAS").replace(" ", "")
    if version and not _VERSION.fullmatch(version):
        raise InputError(f"version must be a version, such as 0.2.0; got {version!r}")
    if extras and not _EXTRAS.fullmatch(extras):
        raise InputError(f"extras must be names with commas between, such as audit,neural; got {extras!r}")
    names = f"[{','.join(['report', *filter(None, extras.split(','))])}]"
    source = Path(__file__).resolve().parents[2]
    return ["install", f"lmgauge{names}=={version}" if version else f"{source}{names}"]


def lmgauge_arguments() -> list[str]:
    """Return the arguments of lmgauge but --html and --json."""
    command = choice("COMMAND", COMMANDS)
    runs, model, texts, train = read_paths("RUNS"), read("MODEL"), read_paths("TEXT"), read_paths("TRAIN")
    try:
        options = shlex.split(read("OPTIONS"))
    except ValueError as error:
        raise InputError(f"options: {error}") from error
    if any(option.split("=")[0] in ("--html", "--json") for option in options):
        raise InputError("options: --html and --json belong to the action; the input page names the page")
    named = [f"--train={path}" for path in train]
    if command == "compare":
        if model:
            raise InputError("model: compare takes runs; evaluate the model first")
        if len(runs) < 2 and "--recipe" not in " ".join(options):
            raise InputError("runs: compare needs two or more, one on each line")
        strict = [] if runs == [] else ["--strict", "--no-details"]
        return [command, *strict, *named, *(f"--text={path}" for path in texts), *options, "--", *runs]
    if len(runs) > 1 or not (runs or model):
        raise InputError("runs: audit needs one, or a model and its text")
    named += [f"--model={model}"] if model else []
    named += [f"--text={path}" for path in texts] if runs else []
    return [command, *named, *options, "--", *(runs or texts)]


def run_lmgauge(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run lmgauge, with what is in the working directory neither imported nor in its way."""
    command = [sys.executable, "-P", "-X", "utf8", "-m", "lmgauge", *arguments]
    environment = {**os.environ, "TERM": "dumb", "NO_COLOR": "1"}
    environment = {key: value for key, value in environment.items() if key not in ("FORCE_COLOR", "TTY_COMPATIBLE")}
    return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", env=environment, check=False)


def with_page(arguments: list[str], page: Path) -> list[str]:
    """Return the arguments with --html right behind the command."""
    return [arguments[0], f"--html={page}", *arguments[1:]]


def worse(arguments: list[str]) -> list[str]:
    """Return the names of runs that are significantly worse than the first one.

    Raises:
        ValueError: lmgauge does not print what it should.
    """
    done = run_lmgauge([arguments[0], "--json", *arguments[1:]])
    compared = json.loads(done.stdout)["comparisons"]
    return [
        item["second"]
        for item in compared
        if item["significant"] and item["differences"][0]["second"] > item["differences"][0]["first"]
    ]


def verdict_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return the verdict of what was printed, in a line; the error where there is one."""
    if done.returncode == 2 or not done.stdout.strip():
        lines = [line for line in done.stderr.splitlines() if "error:" in line] or ["lmgauge did not say what is wrong"]
        return lines[-1].removeprefix("lmgauge: error: ")
    remarks = [line.removeprefix(_REMARK) for line in done.stdout.splitlines() if line.startswith(_REMARK)]
    return remarks[1] if len(remarks) > 1 else (remarks or ["no verdict"])[0]


def summary(title: str, passed: bool, verdict: str, printed: str, problems: Iterable[str]) -> str:
    """Return a summary of the step, as HTML without blank lines, in which no Markdown is read: all words are foreign."""
    parts = [f"<h2>{'✅' if passed else '❌'} {html.escape(title)}</h2>", f"<p><b>{html.escape(verdict)}</b></p>"]
    parts += [f"<p>❌ {html.escape(problem)}</p>" for problem in problems if problem != verdict]
    for part in shown(printed, verdict):
        if sum(map(len, parts)) + len(part) > _MOST_BYTES // 4:  # a character may be four bytes
            parts.append("<p>The page has the rest.</p>")
            break
        parts.append(part)
    return "\n".join(parts) + "\n\n"


def shown(printed: str, verdict: str) -> Iterator[str]:
    """Yield what lmgauge printed into a pipe, remarks as paragraphs and rows with tabs as tables."""
    for block in re.split(r"\n{2,}", printed.strip("\n")):
        lines = [line for line in block.splitlines() if line.strip()]
        for line in lines:
            if line.startswith(_REMARK) and line.removeprefix(_REMARK) != verdict:
                yield f"<p>{html.escape(line.removeprefix(_REMARK))}</p>"
        rows = [line.split("\t") for line in lines if not line.startswith(_REMARK)]
        if rows:
            left = len(rows) - _MOST_ROWS
            yield (
                "<table>"
                + "".join(_row(row, "th" if i == 0 else "td") for i, row in enumerate(rows[:_MOST_ROWS]))
                + "</table>"
            )
            if left > 0:
                yield f"<p>{left} more rows: see the page.</p>"


def _row(cells: list[str], tag: str) -> str:
    indented = [cell.replace("  ", "\u2003", 1) if cell.startswith("  ") else cell for cell in cells]
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in indented) + "</tr>"


def append(variable: str, text: str) -> None:
    """Append to the file that a variable of GitHub names, if it does."""
    path = os.environ.get(variable)
    if path:
        with open(path, "a", encoding="utf-8", newline="\n") as file:
            file.write(text)


def write_output(name: str, value: str) -> None:
    """Set an output of the step; no value can end it and begin another."""
    end = f"end-{uuid.uuid4()}"
    append("GITHUB_OUTPUT", f"{name}<<{end}\n{' '.join(value.split())}\n{end}\n")


def print_safely(text: str) -> None:
    """Print into the log, in which a line that begins with `::` would be a command of GitHub."""
    stop = f"stop-{uuid.uuid4()}"
    print(f"::stop-commands::{stop}\n{text.rstrip()}\n::{stop}::", flush=True)


def check() -> int:
    """Run the check, write summary, outputs and page; return the exit code of the step."""
    page_name, fail_on = read("PAGE") or "lmgauge.html", choice("FAIL_ON", FAIL_ON, "check")
    if not _PAGE.fullmatch(page_name):
        raise InputError(f"page must be a name that ends in .html, without folders; got {page_name!r}")
    arguments = lmgauge_arguments()
    page = Path(os.environ.get("RUNNER_TEMP") or ".").resolve() / page_name
    page.unlink(missing_ok=True)
    done = run_lmgauge(with_page(arguments, page))
    problems = [
        line.removeprefix("lmgauge: error: ") for line in done.stderr.splitlines() if line.startswith("lmgauge: error: ")
    ]
    failed = done.returncode not in (0, 1) or (done.returncode == 1 and fail_on != "never")
    if fail_on == "worse" and arguments[0] == "compare" and done.returncode == 0:
        names = worse(arguments)
        problems += [f"{name} is significantly worse than the first run" for name in names]
        failed |= bool(names)
    verdict = verdict_of(done)
    print_safely(f"{done.stdout}{done.stderr}")
    append("GITHUB_STEP_SUMMARY", summary(f"lmgauge {arguments[0]}", not failed, verdict, done.stdout, problems))
    if page.exists():
        append("GITHUB_STEP_SUMMARY", f"<p>The report page is attached to this run, as <code>{page.stem}</code>.</p>\n\n")
    write_output("verdict", verdict)
    write_output("passed", "false" if failed else "true")
    write_output("exit-code", str(done.returncode))
    write_output("page", str(page) if page.exists() else "")
    write_output("artifact", page.stem)
    return int(failed)


def main(arguments: list[str]) -> int:
    """Install or check; the exit code is 0, 1 where the check failed, 2 for an input that is not of its form."""
    try:
        if arguments == ["install"]:
            return subprocess.run([sys.executable, "-m", "pip", *install_arguments()], check=False).returncode
        if arguments == ["check"]:
            return check()
    except InputError as error:
        print_safely(f"lmgauge: error: {error}")
        append("GITHUB_STEP_SUMMARY", summary("lmgauge", False, str(error), "", []))
        write_output("passed", "false")
        write_output("exit-code", "2")
        write_output("verdict", str(error))
        return 2
    print("check.py install | check.py check", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
