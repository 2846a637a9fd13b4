"""Commands and formats: the table in the documentation says what reads what, and each of its cells is tried."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.commands import ok, refused

from lmgauge.choices import FORMATS

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "how-to" / "read-your-files.md"
LINES = ["the cat sat", "the dog sat", "a cat ran", "the dog ran on", "a dog sat on the cat", "the cat ran"]
Rows = Sequence[dict[str, object]]

TEXTS: Rows = [{"id": f"u{number}", "text": line} for number, line in enumerate(LINES)]
PAIRS: Rows = [{"good": line, "bad": line[::-1]} for line in LINES]
LISTS: Rows = [{"id": row["id"], "text": text, "score": -1.5} for row in TEXTS for text in (row["text"], "a cat sat")]
TOKENS: Rows = [
    {"item": n, "token": word, "logprob_nats": -0.5 * len(word)} for n, line in enumerate(LINES) for word in line.split()
]
REGIONS: Rows = [{"text_id": n, "region": "first", "text": line.split()[0]} for n, line in enumerate(LINES, 1)]
SYSTEMS: Rows = [{"system": f"s{n}", "score": 20 + n * n, "perplexity": 90 - 3 * n} for n in range(6)]

COMMAND_LINES: dict[str, tuple[Rows, str, str]] = {
    "train": (TEXTS, "train witten-bell {file} --order 2 -o {out} --json", r'"fingerprint": .*'),
    "eval": (TEXTS, "eval -m m {file} --json", r'"(?:perplexity|events)": .*'),
    "eval --per-word": (TEXTS, "eval -m m {file} --per-word -", r"\t\d+\t\D.*"),
    "eval --regions": (REGIONS, "eval -m m text.txt --regions {file} --per-word -", r"\t\d+\t\D.*"),
    "filter": (TEXTS, "filter -m m {file} -o {out}{ending} --json", r'"stay_\w+": \d+|"m": "doc.*'),
    "score": (TEXTS, "score -m m {file} -o {scored} --json", r'"stay_\w+": \d+|"m": "doc.*'),
    "select": (TEXTS, "select {file} --target text.txt --order 2 --share 50% --json", r'"(?:threshold|bytes)": .*'),
    "bleu": (TEXTS, "bleu {file} text.txt --json", r'"score": .*'),
    "pairs": (PAIRS, "pairs -m m {file} --good good --bad bad --by none --json", r'"accuracy": .*'),
    "rescore": (LISTS, "rescore {file} -m m --weights score=1,m=1 -o -", r".+"),
    "import": (TOKENS, "import {file} -o {out} --json", r'"(?:perplexity|log_probability)": .*'),
    "correlate": (SYSTEMS, "correlate {file} --json", r'"(?:pearson|spearman)": .*'),
}
"""What each command reads, its command line, and which parts of its answer say what it read."""


def table() -> dict[str, dict[str, str]]:
    """The cells of the table, by command and format."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    start = next(i for i, line in enumerate(lines) if line.startswith("| command |"))
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[start:]]
    names = [{"lines": "text"}.get(name.lower(), name.lower()) for name in rows[0][1:]]
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in rows[2:] if len(row) == len(rows[0])}


def write(path: Path, rows: Rows) -> None:
    """Write rows in the format that a name ends in; of a text its lines."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
        return
    cells = [list(rows[0]), *(list(map(str, row.values())) for row in rows)]
    lines: dict[str, Callable[[], list[str]]] = {
        ".jsonl": lambda: [json.dumps(row) for row in rows],
        ".csv": lambda: [",".join(row) for row in cells],
        ".tsv": lambda: ["\t".join(row) for row in cells],
        ".txt": lambda: [str(row.get("text", "a line")) for row in rows],
    }
    path.write_text("\n".join(lines[path.suffix]()) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text of lines, and a model of it."""
    folder = tmp_path_factory.mktemp("commands")
    write(folder / "text.txt", TEXTS)
    ok("train", "witten-bell", folder / "text.txt", "--order", "2", "-o", folder / "m")
    return folder


def test_the_table_has_every_command_and_format() -> None:
    assert list(table()) == list(COMMAND_LINES)
    assert all(set(cells) == set(FORMATS) for cells in table().values())


@pytest.mark.parametrize(("command", "form"), [(command, form) for command in COMMAND_LINES for form in FORMATS])
def test_a_command_reads_what_the_table_says(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, form: str
) -> None:
    """The same records in another format give the same answer; what has no tick is refused in words."""
    monkeypatch.chdir(folder)
    rows, line, figures = COMMAND_LINES[command]

    def called(form: str) -> list[str]:
        ending = ".txt" if form == "text" else f".{form}"
        names = {
            "file": f"read{ending}",
            "ending": ending,
            "scored": "scored.jsonl" if form == "text" else f"scored{ending}",
        }
        names |= {name: str(tmp_path / names[name]) for name in ("file", "scored")}
        write(tmp_path / f"read{ending}", rows)
        return line.format(out=tmp_path / f"out-{form}", **names).split()

    if table()[command][form] == "yes":
        expected, answer = (re.findall(figures, ok(*called(name)).stdout) for name in ("jsonl", form))
        assert answer
        assert answer == expected
    else:
        assert refused(*called(form))
