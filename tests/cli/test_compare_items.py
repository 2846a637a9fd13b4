"""`lmgauge compare` on runs of scores of items: what it says, what it refuses, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused
from tests.tasks.items.scored import scored, solved

RUNS = dict(zip(("a", "b"), solved(130, 14, 33, 73), strict=True))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs a and b on the same items, and c on some of them."""
    folder = tmp_path_factory.mktemp("items")
    for name, scores in RUNS.items():
        scored(name, scores, prompts=[f"p{i}" for i in range(250)]).write(folder / name)
    scored("c", RUNS["a"][:200]).write(folder / "c")
    (folder / "scores").mkdir()
    return folder


def test_the_verdict_is_first(made: Path) -> None:
    lines = ok("compare", made / "a", made / "b").stdout.split("\n")
    assert lines[0] == "# acc on 250 items, the same in all runs by id and prompt"
    assert lines[1].startswith("# b is better than a: 0.6520 for b, 0.5760 for a, difference +0.0760, 95 % interval +0.0230")
    assert lines[1].endswith("(p = 0.0079, McNemar's exact test).")
    assert "won by b" in "\n".join(lines)
    assert "won by b" not in ok("compare", made / "a", made / "b", "--no-details").stdout


def test_json_is_a_table_of_systems_for_correlate(made: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.json"
    items.write_text(ok("compare", made / "a", made / "b", made / "c", "--common", "--json").stdout, encoding="utf-8")
    assert [row["system"] for row in json.loads(items.read_text(encoding="utf-8"))["systems"]] == ["a", "b", "c"]
    losses = tmp_path / "losses.json"
    losses.write_text(json.dumps([{"model": name, "perplexity": i + 9.0} for i, name in enumerate("bac")]), encoding="utf-8")
    shown = ok("correlate", items, losses).stdout
    assert "score against perplexity" in shown.lower()


def test_other_items_are_refused_or_left_out_on_request(made: Path) -> None:
    assert "50 items of a not in c ('200', '201', '202' and 47 more)" in refused("compare", made / "a", made / "c")
    assert "50 items of a not in c" in refused("compare", made / "a", made / "c", "--strict", code=1)
    assert "Only the items that all runs have alike are compared: 50 items" in ok(
        "compare", made / "a", made / "c", "--common"
    ).stdout.replace("\n", " ")


def test_options_for_other_runs_are_refused(made: Path) -> None:
    assert "holds no scores of items" in refused("compare", made / "a", made / "scores")
    assert "none: no such run; `lmgauge import LOG --score NAME" in refused("compare", made / "a", made / "none")
    assert "--text is not for runs of scores of items" in refused("compare", made / "a", made / "b", "--text", "x")
    assert "two runs" in refused("compare", made / "a")
    assert "--common is for runs of scores of items" in refused("compare", made / "scores", "--common")
