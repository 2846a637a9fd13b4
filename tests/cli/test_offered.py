"""What a command offers as a choice is accepted by what it calls: formats, metrics, smoothings, columns, shards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest
from tests.cli.commands import ok, refused
from tests.tasks.nbest import share

from lmgauge.base.choices import DISTRIBUTION_COLUMNS, FORMATS
from lmgauge.cli.main import COMMANDS, cli
from lmgauge.tasks.metrics.protocol import METRICS

LINES = ["the cat sat", "the dog sat", "a cat ran", "the dog ran on", "a dog sat on the cat", "the cat ran"]
ENDINGS = {"text": "txt", "kaldi": "txt"}
COMMAND_LINES = {
    "audit": "-m m {text}",
    "baseline": "{text} control.{ending}",
    "bleu": "{text} {text}",
    "cache": "m {text} -o {out}",
    "cer": "{text} {outputs}",
    "chrf": "{text} {text}",
    "compare": "run-m run-n",
    "divergence": "m n {text}",
    "eval": "-m m {text}",
    "f1": "{text} {text}",
    "filter": "-m m {text} -o {out}.{ending}",
    "import": "table.jsonl --text {text} -o {out}",
    "membership": "m {text} --control control.{ending}",
    "mix": "-m m -m n {text} -o {out}",
    "overlap": "{text} {text}",
    "percentiles": "-m m {text} -o {out}.json",
    "prune": "m --threshold 0.1 --text {text} -o {out}",
    "rescore": "lists.jsonl -m m --weights score=1,m=1 --test-ref ref.txt",
    "score": "-m m {text} -o {out}.{scored}",
    "select": "{text} --target {text} --order 2 --share 50% -o {out}.{ending}",
    "spell": "m --train {text} -o {out}",
    "split": "{text} -o {out}/",
    "ter": "{text} {text}",
    "train": "witten-bell {text} --order 2 -o {out}",
    "wer": "{text} {outputs}",
}
"""What each command needs besides the option."""
OTHER_FORMATS = {"rescore"}
"""Their formats are those of n-best lists, which `tests/tasks/nbest` reads."""


def commands_with(option: str) -> Iterator[tuple[str, click.Parameter]]:
    """Each command that has an option, and the option."""
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        yield from ((name, parameter) for parameter in command.params if parameter.name == option)


def offered(option: str) -> Iterator[tuple[str, str]]:
    """Each command that has an option, with each of its choices."""
    for name, parameter in commands_with(option):
        if isinstance(parameter.type, click.Choice):
            yield from ((name, str(choice)) for choice in parameter.type.choices)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, also as transcripts, two models, and what else the command lines name."""
    folder = tmp_path_factory.mktemp("offered")
    for name, lines in {"text": LINES, "control": [line[::-1] for line in LINES]}.items():
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = [(number, line.split()) for number, line in enumerate(LINES)]
    (folder / "kaldi.txt").write_text("".join(f"u{number} {line}\n" for number, line in enumerate(LINES)))
    (folder / "text.trn").write_text("".join(f"{line} (u{number})\n" for number, line in enumerate(LINES)))
    (folder / "text.stm").write_text("".join(f"r 1 s {10 * n} {10 * n + 9} {' '.join(line)}\n" for n, line in words))
    (folder / "text.ctm").write_text("".join(f"r 1 {10 * n + i} 0.5 {w}\n" for n, line in words for i, w in enumerate(line)))
    share.write_jsonl(folder / "lists.jsonl")
    (folder / "ref.txt").write_text("u1 a dog barks\nu2 the dog sleeps\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, smoothing in {"m": "witten-bell", "n": "laplace"}.items():
            ok("train", smoothing, "text.txt", "--order", "2", "-o", name)
            ok("eval", "-m", name, "text.txt", "-o", f"run-{name}")
        rows = pq.read_table(folder / "run-m" / "scores.parquet").to_pylist()
        table = [{name: row[name] for name in ("segment", "token", "logprob")} for row in rows]
        (folder / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    return folder


def arguments(command: str, out: Path, form: str = "text") -> list[str]:
    """The command line that gives a command what it needs, with its text in a format."""
    ending = ENDINGS.get(form, form)
    text = "kaldi.txt" if form == "kaldi" else f"text.{ending}"
    outputs = "text.ctm" if form == "stm" else text
    scored = "jsonl" if form == "text" else ending
    line = COMMAND_LINES[command].format(text=text, outputs=outputs, ending=ending, scored=scored, out=out / "out")
    return [command, *line.split()]


TRANSCRIPTS = [pair for pair in offered("format") if pair[0] not in OTHER_FORMATS and pair[1] not in FORMATS]
"""Formats of records, which all commands with texts offer, are tried in `tests/records/test_commands.py`."""


@pytest.mark.parametrize(("command", "form"), TRANSCRIPTS)
def test_every_format_of_transcripts_is_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, form: str
) -> None:
    monkeypatch.chdir(folder)
    assert ok(*arguments(command, tmp_path, form), "--format", form).exit_code == 0


@pytest.mark.parametrize(
    ("command", "option", "choice"),
    [(command, option, choice) for option in ("smoothing", "metric") for command, choice in offered(option)],
)
def test_every_metric_and_smoothing_is_known(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, option: str, choice: str
) -> None:
    monkeypatch.chdir(folder)
    assert ok(*arguments(command, tmp_path), f"--{option}", choice).exit_code == 0


@pytest.mark.parametrize("column", DISTRIBUTION_COLUMNS)
def test_every_column_is_written(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str) -> None:
    monkeypatch.chdir(folder)
    assert ok(*arguments("eval", tmp_path), "--columns", column.replace("N", "2"), "-o", tmp_path / "run").exit_code == 0


@pytest.mark.parametrize("command", [name for name, _ in commands_with("shard")])
def test_a_shard_is_computed_wherever_one_is_offered(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(folder)
    line = arguments(command, tmp_path)
    line = line[: line.index("-o")] if "-o" in line else line
    assert ok(*line, "--shard", "1/1", "-o", f"{tmp_path}/shards/").exit_code == 0


@pytest.mark.parametrize("name", [*METRICS.ours, "f1", "rescore"])
def test_tasks_without_files_say_what_is_missing(name: str) -> None:
    assert "Missing argument" in refused(name)
