"""Command lines: options at their limits and beside each other, names that are no files; little work is asked for."""

from __future__ import annotations

import json
import random
from pathlib import Path

import click

import lmgauge
from lmgauge import Corpus
from lmgauge.cli.commands import COMMANDS
from lmgauge.cli.main import cli
from tests.fuzz.mutations import changed, hostile_text
from tests.fuzz.parsers.command_line import check_command
from tests.fuzz.table import Attempt

LINES = ["the cat sat on the mat", "a dog ran", "the cat für 東京", "then the dog sat"] * 3
NUMBERS = [
    "-1",
    "0",
    "1",
    "2",
    "3",
    "1.5",
    "-0",
    "nan",
    "inf",
    "1e400",
    "0x1",
    "",
    " ",
    "1_000",
    "١",
    "9" * 30,
    "-" + "9" * 30,
    "1/0",
    "50%",
]
WORDS = [
    "",
    "-",
    "--",
    "x",
    "\x1b[31m",
    "a,b",
    "a=b",
    "a=1,b=nan",
    ",",
    "=",
    "\udc80",
    "é" * 300,
    "text",
    "id",
    "1",
    "p10..p90",
    "[red]",
    "%s",
]
NAMES = [
    "missing",
    "",
    ".",
    "..",
    "/dev/null",
    "\x1b[31m.txt",
    "a\nb",
    "x" * 300,
    "http://127.0.0.1:1/x",
    "*.nothing",
    "[",
    "~",
    "-",
    "\udcff.txt",
]
COSTLY = {
    "--resamples",
    "--tokens",
    "--threads",
    "--workers",
    "--order",
    "--memory",
    "--compression-bytes",
    "--starts",
}
"""Options of which a large number is a request for much work."""
WRITTEN = {
    "--output",
    "--html",
    "--per-segment",
    "--per-token",
    "--rows",
    "--rejects",
    "--write-scores",
    "--per-word",
    "--per-context",
}
FITTING = {
    "--model": "model",
    "--reference": "text.txt",
    "--field": "text",
    "--id": "id",
    "--group": "file",
    "--document": "segment",
    "--weights": "1",
    "--tokenizer": "whitespace",
    "--context": "sentence",
    "--percentiles": "percentiles.json",
    "--keep": "..p90",
    "--labels": "a,b",
    "--fractions": "0.8,0.1,0.1",
    "--columns": "entropy,rank",
    "--contexts": "1,2",
    "--levels": "coverage",
    "--cutoffs": "0,1",
    "--recipe": "a=run",
    "--shard": "1/2",
    "--p": "1/2,1/2",
    "--q": "1/2,1/2",
    "--perplexity": "12",
    "--by": "id",
}
FILES = {"text.txt", "text.jsonl", "table.tsv", "model", "run"}
ARGUMENTS: dict[str, list[str]] = {
    **{
        name: ["text.txt"]
        for name in ("eval", "mix", "cache", "baseline", "spell", "select", "split", "filter", "score", "percentiles")
    },
    **{
        name: ["text.txt", "text.txt"]
        for name in ("bleu", "chrf", "ter", "wer", "cer", "f1", "pairs", "overlap", "divergence")
    },
    **{name: ["run"] for name in ("audit", "diagnose", "info", "report", "merge", "import")},
    "train": ["witten-bell", "text.txt"],
    "compare": ["run", "run"],
    "correlate": ["table.tsv"],
    "rescore": ["text.jsonl"],
    "multiple-choice": ["text.jsonl"],
    "membership": ["model", "text.txt"],
    "sample": ["model"],
    "prune": ["model"],
    "convert": ["model", "out.txt"],
    "calc": ["0.5", "1/4"],
}
LEFT_OUT = {"quickstart", "explore", "doctor"}  # they take seconds, or serve until they are interrupted
OFFLINE = {"--test-set", "-t"}


def prepare(folder: Path) -> Attempt:
    (folder / "text.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    (folder / "text.jsonl").write_text(
        "".join(json.dumps({"text": line, "id": str(i)}) + "\n" for i, line in enumerate(LINES))
    )
    (folder / "table.tsv").write_text("system\tperplexity\tscore\na\t1.5\t2\nb\t2.5\t3\nc\t3\t4\n")
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2)
    model.save(folder / "model")
    lmgauge.evaluate(model, folder / "text.txt", output=folder / "run")
    commands = {name: _command(name) for name in COMMANDS if name not in LEFT_OUT}

    def attempt(chance: random.Random) -> str:
        name = chance.choice(list(commands))
        drawn = _Drawn(folder, chance)
        words = drawn.arguments(commands[name])
        if chance.random() < 0.05:
            words.insert(chance.randint(0, len(words)), chance.choice([*WORDS, "--nothing", "-Z", "--json=1"]))
        arguments = [
            changed(name.encode(), chance, 1).decode("utf-8", "replace") if chance.random() < 0.01 else name,
            *words,
        ]
        arguments = [word.replace("\0", "") for word in arguments]  # no system lets one through
        return check_command(folder, arguments, drawn.outputs, "\n".join(LINES).encode())

    return attempt


def _command(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


class _Drawn:
    """The words of one command line, and what they may write."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder, self._chance = folder, chance
        self._hostile = chance.choice([0.0, 0.1, 0.1, 0.5])  # how many of its words are not what is asked for
        self.outputs = [
            "out",
            "out.txt",
            "out.jsonl",
            "out.tsv",
            "out.html",
            "out.parquet",
            ".out.lmgauge",
            ".out.jsonl.lmgauge",
        ]

    def arguments(self, command: click.Command) -> list[str]:
        """Return options and arguments for the parameters of a command, most of which fit."""
        options: list[str] = []
        given = [self._argument(word) for word in ARGUMENTS.get(str(command.name), ["text.txt"])]
        if self._chance.random() < self._hostile:
            given = given[:-1] if self._chance.random() < 0.5 else [*given, self._argument("text.txt")]
        for parameter in command.params:
            if isinstance(parameter, click.Option) and (parameter.required or self._chance.random() < 0.06):
                options += self._option(parameter)
        return [*options, *given] if self._chance.random() < 0.5 else [*given, *options]

    def _argument(self, word: str) -> str:
        if self._chance.random() < self._hostile:
            return self._chance.choice([*NAMES, *NUMBERS, *WORDS, *(str(self._folder / name) for name in FILES)])
        return str(self._folder / word) if word in FILES else word

    def _option(self, option: click.Option) -> list[str]:
        word = self._chance.choice([*option.opts, *option.secondary_opts])
        if OFFLINE & set(option.opts):
            return []
        return [word] if option.is_flag else [word, self._value(option)]

    def _value(self, option: click.Option) -> str:
        kind, name, fits = option.type, max(option.opts, key=len), self._chance.random() >= self._hostile
        if isinstance(kind, click.Choice):
            return str(self._chance.choice([str(choice) for choice in kind.choices] if fits else ["none of them", ""]))
        if isinstance(kind, (click.types.IntParamType, click.types.FloatParamType)):
            least = getattr(kind, "min", None)
            numbers = ["1", "2"] if least is None or least <= 1 else [str(least)]
            return self._chance.choice(numbers if fits else NUMBERS[:3] if name in COSTLY else NUMBERS)
        if name in WRITTEN:
            return str(self._folder / self._chance.choice(self.outputs[:5]))
        if fits:
            return self._argument(FITTING.get(name, "text.txt"))
        return self._chance.choice([*WORDS, *NUMBERS, *NAMES, hostile_text(self._chance, 3).replace("\0", "")])
