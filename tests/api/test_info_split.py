"""`lmgauge.info` and `lmgauge.split`, from Python and from a shell."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import UsageError
from lmgauge.base.json_text import to_json
from lmgauge.report.info import blocks

TEXT = "".join(f"line {i} of the text\n" for i in range(40))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("info")
    (path / "text.txt").write_text(TEXT)
    (path / "poems.txt").write_text("".join(f"a {i}\nb {i}\n\n" for i in range(20)))
    lmgauge.train("witten-bell", path / "text.txt", order=2).save(path / "model")
    lmgauge.evaluate(path / "model", path / "text.txt", output=path / "run")
    return path


@pytest.mark.parametrize("name", ["model", "run"])
def test_both_doors_show_the_same(folder: Path, name: str) -> None:
    found = lmgauge.info(folder / name)
    assert found.kind == name
    assert ok("info", folder / name, "--json").stdout == to_json(found.to_dict()) + "\n"
    assert re.search(rf"^path +{re.escape(str(folder / name))}$", str(found), re.MULTILINE)


def test_an_option_of_models_is_refused_for_a_run(folder: Path) -> None:
    words = "is a run; context is an option of models"
    assert words in refused("info", folder / "run", "--context", 5)
    with pytest.raises(UsageError, match=words):
        lmgauge.info(folder / "run", context=5)


def test_a_run_folder_shows_its_numbers_and_whether_it_was_changed(folder: Path, tmp_path: Path) -> None:
    found = lmgauge.info(folder / "run")
    result = lmgauge.evaluate(folder / "model", folder / "text.txt")
    assert (found["perplexity"], found["signature"]) == (result.perplexity, result.signature)
    assert found["settings"]["text"]["paths"] == [str(folder / "text.txt")]
    assert found["changed_since"] == ""
    for file in (folder / "run").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    content = json.loads((tmp_path / "evaluation.json").read_text())
    content["evaluation"]["perplexity"] = 1.0
    (tmp_path / "evaluation.json").write_text(json.dumps(content))
    assert "was changed" in lmgauge.info(tmp_path)["changed_since"]
    assert "changed since" in ok("info", tmp_path).stdout


def test_a_run_is_shown_as_the_table_of_evaluations_shows_it(folder: Path) -> None:
    result = lmgauge.evaluate(folder / "model", folder / "text.txt")
    assert result.interval is not None
    printed = ok("info", folder / "run").stdout.splitlines()
    lines = dict(line.split("\t") for line in printed)
    assert lines["perplexity"] == f"{result.perplexity:.2f}"
    assert lines["interval"] == f"{result.interval.low:.2f} – {result.interval.high:.2f} (95 %)"


def test_a_model_in_memory_has_no_path() -> None:
    found = lmgauge.info(lmgauge.train("laplace", Corpus.from_strings(["a b"]), order=2))
    assert "path" not in found
    assert found["order"] == 2
    assert len(found) == len(found.to_dict())


def test_both_doors_split_the_same(folder: Path, tmp_path: Path) -> None:
    printed = ok("split", folder / "text.txt", "--seed", 3, "-o", tmp_path / "shell", "--json").stdout
    done = lmgauge.split(folder / "text.txt", tmp_path / "python", seed=3)
    assert json.loads(printed)["parts"][0]["segments"] == done.parts[0].segments == 32
    assert (
        printed.replace(str(tmp_path / "shell"), "X")
        == to_json(done.to_dict()).replace(str(tmp_path / "python"), "X") + "\n"
    )
    for name in ("train", "validation", "test"):
        assert (tmp_path / "shell" / f"{name}.txt").read_bytes() == (tmp_path / "python" / f"{name}.txt").read_bytes()
    assert re.search(r"^train +32 +80\.00 % ", str(done), re.MULTILINE)
    assert done.segments == 40


@pytest.mark.parametrize("given", [["--document", "blank-line"], ["--by", "document", "--document", "blank-line"]])
def test_documents_stay_together(folder: Path, tmp_path: Path, given: list[str]) -> None:
    ok("split", folder / "poems.txt", *given, "--fractions", "0.5,0.25,0.25", "-o", tmp_path / "parts")
    texts = [path.read_text().splitlines() for path in sorted((tmp_path / "parts").iterdir())]
    numbers = [{line.split()[1] for line in lines if line} for lines in texts]
    assert sum(map(len, numbers)) == 20
    assert set.union(*numbers) == {str(i) for i in range(20)}
    assert "one group only" in refused("split", folder / "poems.txt", "--by", "group", "-o", tmp_path / "other")
    with pytest.raises(lmgauge.base.errors.UsageError, match="unknown by 'page': choose one of group, document"):
        lmgauge.split(folder / "poems.txt", tmp_path / "other", by="page")  # type: ignore[arg-type]


def test_values_that_lmgauge_does_not_write_are_shown_as_they_stand() -> None:
    content = {"interval": {"low": None, "high": [], "level": 1}, "notes": 5, "bound_reasons": 1.5, "oov_rate": [0.5]}
    (lines, *_) = blocks(content)
    shown = dict(lines.pairs)  # type: ignore[union-attr]
    assert shown == {"interval": "level 1", "notes": "5", "bound reasons": "1.5000", "oov rate": "0.5000"}
