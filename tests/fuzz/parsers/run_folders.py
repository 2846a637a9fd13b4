"""Run folders through every command: evaluation.json and the score table changed, the seals made anew or not."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lmgauge
from lmgauge import Corpus
from lmgauge.base.files import file_sha256
from lmgauge.evaluation.runs import EVALUATION_FILE, SCORES_FILE
from lmgauge.work.manifest import content_fingerprint
from tests.fuzz.mutations import changed, changed_value, drawn_number
from tests.fuzz.parsers.command_line import check_command, some
from tests.fuzz.parsers.parquet import OTHERS, VIEW, array_of
from tests.fuzz.table import Attempt

TEXTS = ["the cat sat", "", "a dog sees für 東京", "the dog and the zebra", "then it runs", "the cat hears it"]
FEW = ["--resamples", "1000"]


def prepare(folder: Path) -> Attempt:
    text = folder / "text.jsonl"
    rows = [
        {"text": one, "kind": ["news", "law"][i % 2], "book": f"b{i // 2}", "name": f"n{i}"} for i, one in enumerate(TEXTS)
    ]
    text.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name, order, group, columns in (("a", 2, "kind", ["entropy", "rank", "top2"]), ("b", 1, None, [])):
        corpus = Corpus.from_files(text, group=group, document="book" if group else None, id="name" if group else None)
        model = lmgauge.train("witten-bell", Corpus.from_strings(TEXTS[:4]), order=order)
        lmgauge.evaluate(
            model, corpus, by_group=bool(group), output=lmgauge.settings.Outputs(folder / name, columns=columns)
        )
    whole = {name: _Run(folder / name) for name in ("a", "b")}

    def attempt(chance: random.Random) -> str:
        name = chance.choice(["a", "b"])
        whole[name].write_changed(folder / "run", chance)
        arguments, outputs = _command(chance, folder)
        return check_command(folder, arguments, outputs)

    return attempt


class _Run:
    """A run folder, in memory."""

    def __init__(self, folder: Path) -> None:
        self.evaluation = json.loads((folder / EVALUATION_FILE).read_text())
        self.scores = (folder / SCORES_FILE).read_bytes()
        self.table = pq.read_table(folder / SCORES_FILE)

    def write_changed(self, folder: Path, chance: random.Random) -> None:
        """Write the folder with something changed, mostly so that its seals hold."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        content, scores = self.evaluation, self.scores
        draw = chance.random()
        if draw < 0.5:
            content = changed_value(content, chance, 2)
        elif draw < 0.9:
            scores = _changed_table(self.table, chance)
        if chance.random() < 0.03:
            scores = changed(scores, chance, 2)
        (folder / SCORES_FILE).write_bytes(scores)
        if chance.random() < 0.95:
            content = dict(content) | {"scores_sha256": file_sha256(folder / SCORES_FILE)}
            content["fingerprint"] = content_fingerprint(content)
        written = json.dumps(content).encode()
        (folder / EVALUATION_FILE).write_bytes(changed(written, chance, 2) if chance.random() < 0.03 else written)


def _changed_table(table: pa.Table, chance: random.Random) -> bytes:
    """Return a score table with rows, values, types or metadata changed."""
    for _ in range(chance.randint(1, 2)):
        name = chance.choice(table.column_names)
        at = table.column_names.index(name)
        match chance.randrange(6):
            case 0:
                cut = chance.randrange(len(table) + 1)
                table = chance.choice([table.slice(cut), table.slice(0, cut), pa.concat_tables([table, table.slice(cut)])])
            case 1:
                table = table.remove_column(at)
            case 2:
                kind = chance.choice([pa.int32(), pa.float32(), pa.string(), pa.large_string(), VIEW, *OTHERS])
                table = table.set_column(at, name, array_of(kind, [str(value) for value in table[name].to_pylist()]))
            case 3:
                metadata = json.loads((table.schema.metadata or {}).get(b"lmgauge", b"{}"))
                table = table.replace_schema_metadata({b"lmgauge": json.dumps(changed_value(metadata, chance)).encode()})
            case _:
                values = table[name].to_pylist()
                for _ in range(chance.randint(1, 3)):
                    if values:
                        values[chance.randrange(len(values))] = _value(name, values, chance)
                with_value = _array(values, table.schema.field(name).type)
                table = table if with_value is None else table.set_column(at, name, with_value)
        if not table.column_names:
            table = pa.table({"x": [1]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _value(name: str, values: list[Any], chance: random.Random) -> Any:
    if chance.random() < 0.5:
        return chance.choice(values)
    if name in ("token", "kind", "id"):
        return chance.choice(["", "oov", "eos", "token", "\x1b[31m[red]", "<b>", "a" * 5000, None, "</s>"])
    number = drawn_number(chance)
    return -abs(number) if name == "logprob" and chance.random() < 0.8 else number


def _array(values: list[Any], kind: pa.DataType) -> pa.Array | None:
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None


def _command(chance: random.Random, folder: Path) -> tuple[list[str], list[str]]:
    """Return a command that reads the changed run, and the names of what it may write."""
    run, other, text = str(folder / "run"), str(folder / chance.choice("ab")), str(folder / "text.jsonl")
    page = str(folder / "page.html")
    name, weight = zip(*_COMMANDS.items(), strict=True)
    command = chance.choices(name, [one for _, one in weight])[0]
    arguments, outputs = _COMMANDS[command][0](chance, run, other)
    if command in ("compare", "diagnose", "audit", "info"):
        arguments += some(chance, ["--json"], rate=0.4)
    if command in ("compare", "diagnose", "audit"):
        arguments += some(chance, ["--html", page], rate=0.1)
    if command != "info":
        arguments += some(chance, ["--text", text] if command != "eval" else [text], rate=0.3)
    return [command, *arguments], [*outputs, "page.html"]


Made = tuple[list[str], list[str]]


def _compare(chance: random.Random, run: str, other: str) -> Made:
    runs = chance.choice([[run, other], [other, run], [run, run]])
    options = some(
        chance, ["--details"], ["--strict"], ["--document", chance.choice(["segment", "blank-line", "book", "file"])]
    )
    return [*runs, *FEW, *options, *some(chance, ["--metric", "bits_per_byte"])], []


def _diagnose(chance: random.Random, run: str, other: str) -> Made:
    parts = ["baselines", "slices", "tokens", "segments", "unseen"]
    return [run, *some(chance, ["--only", chance.choice(parts)], ["--examples", "0"])], []


def _audit(chance: random.Random, run: str, other: str) -> Made:
    return [run, *some(chance, ["--levels", chance.choice(["coverage", "normalization", "overlap"])])], []


def _report(chance: random.Random, run: str, other: str) -> Made:
    output = str(Path(run).parent / "page.html")
    return [run, *some(chance, [other], rate=0.3), "-o", output, *some(chance, ["--json"], ["--title", "\x1b[31m<b>"])], []


def _eval(chance: random.Random, run: str, other: str) -> Made:
    output = Path(run).parent
    writes = some(chance, ["--per-segment", str(output / "rows.tsv")], ["--per-token", str(output / "rows.jsonl")])
    return ["--scores", chance.choice([run, f"{run}/{SCORES_FILE}"]), *writes, *some(chance, ["--json"])], [
        "rows.tsv",
        "rows.jsonl",
    ]


def _explore(chance: random.Random, run: str, other: str) -> Made:
    return [run, *some(chance, [other], rate=0.3), "--no-browser"], []


def _info(chance: random.Random, run: str, other: str) -> Made:
    return [run], []


_COMMANDS: dict[str, tuple[Callable[[random.Random, str, str], Made], float]] = {
    "compare": (_compare, 3),
    "diagnose": (_diagnose, 3),
    "audit": (_audit, 3),
    "report": (_report, 1),
    "eval": (_eval, 2),
    "explore": (_explore, 1),
    "info": (_info, 2),
}
"""Command -> what makes its arguments, and how often it is drawn."""
