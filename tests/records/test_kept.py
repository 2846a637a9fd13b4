"""A record is written back with every field: its bytes where it is a line, its columns and their types in Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.commands import ok

from lmgauge.base.choices import FORMATS

COMMANDS = {
    "filter": "filter -m m in{ending} -o out{ending} --max-perplexity 1e9",
    "score": "score -m m in{ending} -o out{ending}",
    "select": "select in{ending} --target seen.txt --order 2 --share 100% -o out{ending}",
}
RECORDS = {
    "jsonl": [
        f'{{"n": 1.0e2,  "text":"the cat {word}", "deep": {{"a": [null, "\\u00e9"]}}}}' for word in ("sat", "ran", "sat on")
    ],
    "csv": ["n,text,note", '1,the cat sat,"a, ""b"""', '2,"the cat, ran",', '3,"the\ncat",é'],
    "tsv": ["n\ttext\tnote", '1\tthe cat sat\ta, "b"', "2\tthe cat ran\t", "3\tthe cat\té"],
    "parquet": [],
}


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "text"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_field_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, form: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("seen.txt").write_text("the cat sat\na cat ran\nthe dog sat\nthe dog ran\n" * 3)
    ok("train", "witten-bell", "seen.txt", "--order", "2", "-o", "m")
    table = pa.table(
        {
            "n": pa.array([1, None, 3], pa.int8()),
            "text": pa.array(["the cat sat", "a dog ran", "the\ncat"], pa.large_string()),
            "deep": pa.array([[{"a": 1}], None, []], pa.list_(pa.struct([("a", pa.int16())]))),
        }
    )
    if form == "parquet":
        pq.write_table(table, "in.parquet")
    else:
        Path(f"in.{form}").write_text("\n".join(RECORDS[form]) + "\n", encoding="utf-8")
    ok(*COMMANDS[command].format(ending=f".{form}").split())
    if form == "parquet":
        kept = pq.read_table("out.parquet").select(table.column_names)
        assert kept.equals(table)
        assert kept.schema.equals(table.schema)
        return
    content, begins = Path(f"out.{form}").read_bytes(), [record.encode().removesuffix(b"}") for record in RECORDS[form]]
    places = [content.find(begin) for begin in begins]
    assert places == sorted(places)
    assert places[0] == 0
    # What stands behind a record is of figures alone: no other byte of it is written.
    assert all(content[at - 1 : at] == b"\n" for at in places[1:])
