"""`lmgauge compare` as users meet it: what it says, what it refuses, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.commands import ok, refused, run

import lmgauge
from lmgauge import Corpus

TEXT = [
    "the cat sat on a mat",
    "a bird sat",
    "",
    "the dog and the cat",
    "on a mat sat the dog",
    "a mat sat",
    "the cat and a bird",
]
TRAIN = ["the cat sat", "the dog sat on the cat", "a dog", "on a mat and the dog"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs kn, wb, mle over words and ch over characters."""
    folder = tmp_path_factory.mktemp("compare")
    for name, lines in {"train": TRAIN, "test": TEXT, "other": ["the dog", "sat"]}.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    for name, kind, unit in (
        ("kn", "kneser-ney", "whitespace"), ("wb", "witten-bell", "whitespace"), ("mle", "mle", "whitespace"),
        ("ch", "witten-bell", "character"),
    ):  # fmt: skip
        model = lmgauge.train(
            kind, Corpus.from_strings([*TRAIN, *["bird"] * (unit != "whitespace")]), order=2, tokenizer=unit
        )
        model.save(folder / name)
        lmgauge.evaluate(folder / name, folder / "test.txt", output=folder / f"run-{name}")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """The runs, for the test to spoil."""
    shutil.copytree(made, tmp_path / "made")
    return tmp_path / "made"


# -- what it says -------------------------------------------------------------------------------------------------------


def test_two_comparable_runs(made: Path) -> None:
    shown = ok("compare", made / "run-kn", made / "run-wb").stdout
    assert "perplexity, bits per byte, bits per character, bits per word: comparable" in shown
    assert re.search(r"^text\t\w{6}\t\w{6}\tyes", shown, re.M)
    assert re.search(r"^perplexity\t[\d.]+\t[\d.]+\t[-+][\d.]+ %\t\S+ % \.\. \S+ %", shown, re.M)
    assert re.search(r"The difference is (real|not significant)", shown)
    assert "by class" in shown
    assert "Segments where wb" in shown
    assert "Traceback" not in shown


def test_details_are_left_out_on_request_and_for_many(made: Path) -> None:
    assert "by class" not in ok("compare", made / "run-kn", made / "run-wb", "--no-details").stdout
    many = made / "run-kn", made / "run-wb", made / "run-ch"
    assert "by class" not in ok("compare", *many).stdout
    assert "by class" in ok("compare", *many, "--details").stdout


def test_words_and_characters(made: Path) -> None:
    shown = ok("compare", made / "run-kn", made / "run-ch").stdout
    assert "perplexity: NOT comparable: events differ (35 words / 103 characters)" in shown
    assert "NOT comparable: kn: a lower bound only (unseen words)" in shown
    assert "compared instead: bits per byte on the text that both models know (below)" in shown
    assert "compared below: 93 of 103 bytes (90.3 %)" in shown  # without " bird"
    assert "bits per byte (exact part)" in shown
    assert re.search(r"^events\t.*\tNO$", shown, re.M)


def test_three_runs_are_adjusted(made: Path) -> None:
    shown = ok("compare", made / "run-kn", made / "run-wb", made / "run-ch").stdout
    assert shown.count("adjusted for 2 comparisons (Holm)") == 2
    assert "wb compared with kn" in shown
    assert "ch compared with kn" in shown


def test_zero_probability_is_said(made: Path) -> None:
    shown = ok("compare", made / "run-kn", made / "run-mle").stdout
    assert "events have probability zero" in shown
    assert "∞" in shown
    assert "nan" not in shown.lower()
    assert "'without'" not in shown  # no segment is left
    shown = ok("compare", made / "run-kn", made / "run-mle", "--no-details").stdout
    (made / "few.txt").write_text("the cat sat\nthe bird\na dog\n", encoding="utf-8", newline="\n")
    for name in ("kn", "mle"):
        lmgauge.evaluate(made / name, made / "few.txt", output=made / f"few-{name}")
    shown = ok("compare", made / "few-kn", made / "few-mle").stdout
    assert "perplexity, without p = 0" in shown
    assert "'without' leaves out the segments they are in" in shown


def test_json_holds_what_the_table_shows(made: Path) -> None:
    options = (made / "run-kn", made / "run-wb", made / "run-mle", "--train", made / "train.txt")
    shown = ok("compare", *options, "--details").stdout
    found = json.loads(ok("compare", *options, "--json").stdout)
    assert found["runs"] == ["kn", "wb", "mle"]
    assert [a["what"] for a in found["agreements"]][:3] == ["text", "events", "vocabulary"]
    first, second = found["comparisons"]
    assert second["differences"][0]["second"] == "inf"
    assert {slices["name"] for slices in first["slices"]} == {"class", "position in the segment", "occurrences in training"}
    for difference in first["differences"]:
        digits = 2 if difference["metric"] == "perplexity" else 4
        for name in ("first", "second"):
            assert f"{difference[name]:,.{digits}f}" in shown
    evaluation = json.loads((made / "run-kn" / "evaluation.json").read_text(encoding="utf-8"))["evaluation"]
    assert first["differences"][0]["first"] == evaluation["perplexity"]
    assert first["p_value_holm"] >= first["p_value"]
    for example in (*first["tokens_lost"], *first["segments_won"]):
        assert re.search(
            rf"\t{example['line']}\t.*»{re.escape(example['text'].strip())}«" if example["before"] else "", shown
        )


def test_names_from_all_over(made: Path, tmp_path: Path) -> None:
    """Names may hold brackets, which some terminals' markup would swallow, and any script."""
    for name in ("[red]моя[bold]", "模型"):
        shutil.copytree(made / "kn", tmp_path / name)
        lmgauge.evaluate(tmp_path / name, made / "test.txt", output=tmp_path / f"run {name}")
    shown = ok("compare", tmp_path / "run [red]моя[bold]", tmp_path / "run 模型").stdout
    assert "[red]моя[bold]" in shown
    assert "模型 compared with [red]моя[bold]" in shown
    found = json.loads(ok("compare", tmp_path / "run [red]моя[bold]", tmp_path / "run 模型", "--json").stdout)
    assert found["runs"] == ["[red]моя[bold]", "模型"]


def test_it_works_where_output_is_no_unicode(made: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "lmgauge", "compare", str(made / "run-kn"), str(made / "run-mle")]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.isascii()


def test_a_renamed_folder_and_models_called_alike(folder: Path) -> None:
    (folder / "run-kn").rename(folder / "moved")
    assert "wb compared with kn" in ok("compare", folder / "moved", folder / "run-wb").stdout
    shutil.copytree(folder / "moved", folder / "twice")
    shown = ok("compare", folder / "moved", folder / "twice").stdout
    assert f"{folder / 'twice'} compared with {folder / 'moved'}" in shown
    assert "not significant (p = 1.0000" in shown


def test_from_another_folder_the_text_is_found_beside_the_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for name in ("kn", "wb"):
        lmgauge.evaluate(name, "test.txt", output=f"here-{name}")
    assert "not available" not in ok("compare", "here-kn", "here-wb").stdout
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    assert "by class" in ok("compare", "../here-kn", "../here-wb").stdout
    (folder / "test.txt").rename(folder / "moved.txt")
    shown = ok("compare", "../here-kn", "../here-wb", "-v").stdout
    assert "the text is not available: name it with --text" in shown
    assert "by class" not in shown
    named = ok("compare", "../here-kn", "../here-wb", "--text", "../moved.txt").stdout
    assert "not available" not in named
    assert "by class" in named


# -- --strict -----------------------------------------------------------------------------------------------------------


def test_strict(made: Path) -> None:
    ok("compare", "--strict", made / "run-kn", made / "run-wb")
    told = refused("compare", "--strict", made / "run-kn", made / "run-ch", code=1)
    assert "perplexity of ch and kn may not be compared: events differ" in told
    told = refused("compare", "--strict", "--metric", "bits_per_byte", made / "run-kn", made / "run-ch", code=1)
    assert "bits_per_byte of ch and kn may not be compared: kn: a lower bound only" in told
    told = refused("compare", "--strict", made / "run-kn", made / "run-wb", made / "run-ch", code=1)
    assert "ch and kn" in told
    assert (
        "compared instead" in run("compare", "--strict", made / "run-kn", made / "run-ch").stdout
    )  # the table all the same


def test_strict_where_bits_are_exact(made: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("the cat sat\non a mat\n", encoding="utf-8", newline="\n")
    for name in ("kn", "ch"):
        lmgauge.evaluate(made / name, tmp_path / "t.txt", output=tmp_path / name)
    ok("compare", "--strict", "--metric", "bits_per_byte", tmp_path / "kn", tmp_path / "ch")
    assert "perplexity of ch and kn may not" in refused("compare", "--strict", tmp_path / "kn", tmp_path / "ch", code=1)


# -- what it refuses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        ["{a}", "{b}", "--metric", "accuracy"],
        ["{a}", "{b}", "--threads", "0"],
        ["{a}", "{b}", "--examples", "-1"],
        ["{a}", "{b}", "--recipe", "a=b,c"],
    ],
)
def test_bad_usage(made: Path, options: list[str]) -> None:
    arguments = [option.format(a=made / "run-kn", b=made / "run-wb") for option in options]
    assert "(see `lmgauge compare --help`)" in refused("compare", *arguments)


def test_one_run_is_not_compared(made: Path) -> None:
    for runs in ([], [made / "run-kn"], [made / "run-kn", "--html", made / "page.html"]):
        assert "needs two runs or more; each is compared with the first" in refused("compare", *runs)


def test_a_table_of_several_models_is_told_how_it_becomes_runs(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("segment,word,a,b\n1,the,-1,-2\n", encoding="utf-8")
    way = f"`lmgauge import {tmp_path / 'x.csv'} --logprob COLUMN --logprob COLUMN --log-unit nats -o RUNS`"
    assert way in refused("compare", tmp_path / "x.csv")


def spoil_number(folder: Path) -> None:
    file = folder / "evaluation.json"
    file.write_text(re.sub(r'"perplexity": (\d)', r'"perplexity": 1\1', file.read_text(encoding="utf-8"), count=1), "utf-8")


def other_table(folder: Path) -> None:
    shutil.copy(folder.parent / "run-wb" / "scores.parquet", folder / "scores.parquet")


SPOILED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "edited": (spoil_number, r"evaluation\.json: was changed after it was written"),
    "other table": (other_table, r"scores\.parquet: was changed after it was written"),
    "no table": (lambda f: (f / "scores.parquet").unlink(), "scores.parquet is missing"),
    "no evaluation": (lambda f: (f / "evaluation.json").unlink(), "evaluation.json is missing"),
    "no folder": (lambda f: shutil.rmtree(f), "no such run; `lmgauge eval"),
    "empty evaluation": (lambda f: (f / "evaluation.json").write_text(""), "is not an evaluation as lmgauge writes it"),
    "cut table": (
        lambda f: (f / "scores.parquet").write_bytes((f / "scores.parquet").read_bytes()[:-9]), "was changed after"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
@pytest.mark.parametrize("position", [0, 1])
def test_spoiled_runs(folder: Path, name: str, position: int) -> None:
    spoil, message = SPOILED[name]
    spoil(folder / "run-kn")
    given = [folder / "run-kn", folder / "run-ch"]
    assert re.search(message, refused("compare", *(given if position == 0 else given[::-1])))


def good_table(made: Path) -> pa.Table:
    path = made / "run-ch" / "scores.parquet"
    return pq.read_table(path).replace_schema_metadata({b"lmgauge": pq.read_metadata(path).metadata[b"lmgauge"]})


def with_column(table: pa.Table, name: str, change: Callable[[np.ndarray], np.ndarray]) -> pa.Table:
    values = change(table[name].to_numpy().copy())
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values))


def put(row: int, value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(values: np.ndarray) -> np.ndarray:
        values[row] = value
        return values

    return change


# The table keeps its metadata: it says it is of the same text. Rows 0 .. 20 are those of the first line.
TABLES: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "NaN": (lambda t: with_column(t, "logprob", put(5, np.nan)), "logprob is nan in segment 0"),
    "positive": (lambda t: with_column(t, "logprob", put(25, 0.25)), "logprob is 0.25 in segment 1"),
    "out of bounds": (lambda t: with_column(t, "logprob", put(5, -1e300)), "is not that of an event"),
    "falling spans": (lambda t: with_column(t, "end", put(5, 2)), "do not tile the text|comes after one"),
    "a span too long": (lambda t: with_column(t, "end", put(20, 99)), "same text|do not tile"),
    "overlapping": (lambda t: with_column(t, "start", put(5, 3)), "do not tile the text"),
    "a gap": (lambda t: with_column(t, "end", put(5, 5)), "do not tile the text"),
    "another order": (lambda t: t.take([*range(21, t.num_rows), *range(21)]), "must not fall"),
    "a segment missing": (
        lambda t: t.filter(pa.compute.not_equal(t["segment"], 3)), "no rows for segment 3|do not tile the text"
    ),
    "the end missing": (lambda t: t.slice(0, t.num_rows - 25), "no rows for segment 6|do not tile the text"),
    "a segment too many": (
        lambda t: with_column(t, "segment", lambda s: np.where(s == 6, 9, s)), "no rows for segment 6|do not tile"
    ),
    "negative segment": (lambda t: with_column(t, "segment", lambda s: s - 1), "segments count from 0"),
    "empty": (lambda t: t.slice(0, 0), "no rows"),
    "no log-probabilities": (lambda t: t.drop_columns(["logprob"]), "no column 'logprob'"),
    "null": (lambda t: with_column(t, "end", lambda e: np.where(e == 3, np.nan, e)), "without a value|wrong type|end"),
    "text for numbers": (lambda t: with_column(t, "logprob", lambda p: np.char.add(p.astype(str), "x")), "wrong type"),
    "a kind unknown": (lambda t: t.set_column(5, "kind", pa.array(["word"] * t.num_rows)), "wrong type"),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("text", [True, False], ids=["text", "no text"])
def test_bad_tables(made: Path, tmp_path: Path, name: str, text: bool) -> None:
    change, message = TABLES[name]
    pq.write_table(change(good_table(made)), tmp_path / "bad.parquet")
    given: list[object] = [made / "run-kn", tmp_path / "bad.parquet"]
    if not text:
        shutil.copytree(made / "run-kn", tmp_path / "run-kn")
        shutil.copy(made / "run-kn" / "scores.parquet", tmp_path / "kn.parquet")
        given[0] = tmp_path / "kn.parquet"  # which does not remember where the text is
    for order in (given, given[::-1]):
        told = refused("compare", *order)
        assert re.search(message, told), told
        assert "bad.parquet" in told or "segment" in told or "ch" in told


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no rows"),
        ("garbage\n", ":1: not valid JSON"),
        ('{"segment": 0, "logprob": -1}\n{"segment": 1, "logprob"', ":2: not valid JSON"),
        ("[1]\n", ":1: a JSON object is needed, not a list"),
        ('{"segment": 0}\n', "no column 'logprob'"),
        ('{"segment": 0, "logprob": "many"}\n', "line 1: 'many' is not a number"),
        ('{"segment": 1, "logprob": -1}\n{"segment": 0, "logprob": -1}\n', "must not fall"),
        ('{"segment": 99999999999999999999, "logprob": -1}\n', "cannot be read|wrong type"),
        ("\x00\n", ":1: not valid JSON"),
    ],
)
def test_json_lines_that_are_no_table(made: Path, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "t.jsonl").write_text(content, encoding="utf-8")
    assert re.search(message, refused("compare", made / "run-kn", tmp_path / "t.jsonl"))


def test_the_wrong_text(made: Path) -> None:
    told = refused("compare", made / "run-kn", made / "run-wb", "--text", made / "other.txt")
    assert "scored another text" in told
    refused("compare", made / "run-kn", made / "run-wb", "--text", made / "none.txt")


def foreign(path: Path, lines: list[str], **extra: Any) -> Path:
    rows = [
        {"segment": i, "start": a, "end": a + 1, "logprob": -1.5} | extra
        for i, line in enumerate(lines)
        for a in range(len(line))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_foreign_tables_need_the_text(made: Path, tmp_path: Path) -> None:
    theirs = foreign(tmp_path / "theirs.jsonl", TEXT)
    told = refused("compare", made / "run-ch", theirs)
    assert "text unknown for theirs.jsonl" in told
    assert "--text" in told
    shown = ok("compare", made / "run-ch", theirs, "--text", made / "test.txt").stdout
    assert "</s> scored differs (yes / no)" in shown
    assert "bits per byte (exact part)" in shown
    refused("compare", "--strict", "--metric", "bits_per_byte", made / "run-ch", theirs, "--text", made / "test.txt", code=1)
    both = foreign(tmp_path / "more.jsonl", TEXT, logprob=-1.25)
    shown = ok("compare", theirs, both, "--text", made / "test.txt").stdout
    assert "bits per byte, bits per character, bits per word: comparable" in shown
    assert "perplexity: NOT comparable: vocabulary unknown for theirs.jsonl and more.jsonl" in shown


@pytest.mark.parametrize(
    "lines",
    [[*TEXT[:4], TEXT[4] + " too"], [*TEXT, "more"], TEXT[:4], [*TEXT[:4], TEXT[4][:-2]], TEXT[::-1]],
    ids=["longer", "more", "fewer", "shorter", "other order"],
)
def test_foreign_tables_and_a_text_that_is_not_theirs(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "t.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    theirs = foreign(tmp_path / "theirs.jsonl", TEXT)
    assert "same text" in refused("compare", theirs, theirs, "--text", tmp_path / "t.txt")


def test_other_texts_and_the_same_one_shuffled(made: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("".join(f"{line}\n" for line in TEXT[::-1]), encoding="utf-8", newline="\n")
    lmgauge.evaluate(made / "wb", tmp_path / "t.txt", output=tmp_path / "shuffled")
    told = refused("compare", made / "run-kn", tmp_path / "shuffled")
    assert re.search(r"text differs \(\w{6} / \w{6}\)", told)
    assert "evaluate both on one text" in told
    assert "the same text, shuffled?" in run("compare", made / "run-kn", tmp_path / "shuffled").stdout
    refused("compare", "--strict", made / "run-kn", tmp_path / "shuffled", code=1)
    found = json.loads(run("compare", "--json", made / "run-kn", tmp_path / "shuffled").stdout)
    assert found["comparisons"][0]["part"] == "nothing"
    assert found["comparisons"][0]["differences"] == []


def test_documents_can_be_named_afterwards(made: Path) -> None:
    plain, lines = (
        json.loads(ok("compare", made / "run-kn", made / "run-wb", "--json", *options).stdout)["comparisons"][0]
        for options in ((), ("--document", "segment"))
    )
    assert (plain["unit"], lines["unit"]) == ("unknown", "segments")
    assert "if segments form documents, use --document" in plain["independence"]
    assert "as --document segment says" in lines["independence"]
    assert plain["differences"][0]["difference"] == lines["differences"][0]["difference"]
    shown = ok("compare", made / "run-kn", made / "run-wb", "--document", "segment", "-v").stdout
    assert "segments are taken as independent" in shown
    assert "This verdict covers these two models on similar texts" in shown


# -- until it is decided ------------------------------------------------------------------------------------------------
UNTIL = "--until", "decided"


def test_two_models_until_it_is_decided(made: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("".join(f"{line}\n" for line in TEXT * 20 if line), encoding="utf-8", newline="\n")
    models = ("compare", "-m", made / "kn", "-m", made / "wb", tmp_path / "t.txt", "--document", "segment")
    shown = ok(*models, "--until", "decided", "-o", tmp_path / "totals").stdout
    assert re.search(r"Decided after \d+ of 120 documents \(\d+ %\): \w+ is better\.", shown)
    assert re.search(r"^perplexity\t[\d.]+\t[\d.]+\t[-+][\d.]+ %\t[-+]\S+ % \.\. [-+]\S+ %", shown, re.M)
    again = json.loads(ok(*models, "--until", "decided", "-o", tmp_path / "totals", "--json").stdout)
    assert f"after {again['documents']} of" in shown
    assert again["difference"]["interval"]["method"] == "confidence sequence"


def test_models_are_compared_on_all_of_a_text_unless_asked_otherwise(made: Path) -> None:
    """As their runs are, also where the text can be read once; words cannot be counted by segment then."""
    options = "--document", "segment", "--json"
    text, models = (made / "test.txt").read_bytes(), ("-m", made / "kn", "-m", made / "wb")
    printed = ok("compare", made / "run-kn", made / "run-wb", *options), ok("compare", *models, "-", *options, stdin=text)
    of_runs, of_models = (json.loads(one.stdout)["comparisons"][0]["differences"][:2] for one in printed)
    assert of_models == of_runs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-m", "kn", "test.txt", *UNTIL), "two models are compared until it is decided, not 1"),
        (("-m", "kn", "-m", "wb", "test.txt", *UNTIL), "say what they are with --document (segment"),
        (("-m", "kn", "-m", "wb", "other.txt", "--document", "segment", *UNTIL), "fewer than 7 documents decide nothing"),
        (("-m", "kn", "-m", "wb", "test.txt", "--margin", "1", *UNTIL), "margin must be a number from above 0 to below 1"),
        (("-m", "kn", "-m", "wb", "test.txt", "--plan", "1%", *UNTIL), "--plan is for a whole text, or RUNS"),
        (("-m", "kn", "-m", "wb", "test.txt", "--margin", "1%"), "--margin needs --until decided: without it, all of"),
        (("-m", "kn", "-m", "wb", "--text", "test.txt"), "--text is for RUNS"),
        (("-m", "kn", "test.txt"), "a comparison needs two runs or more"),
        (("--target", "3.28"), "--target is about the runs of one recipe"),
        (("--recipe", "a=RUN", "--target", "3.28"), "a target needs two run folders or more"),
        (("--recipe", "a=RUN,RUN", "--target", "3.28"), "they are the same model, not two seeds"),
        (("--recipe", "a=RUN,RUN", "--target", "3.28", "--margin", "1%"), "--margin does not go with --target"),
        (("--recipe", "a=RUN", "--recipe", "b=RUN", *UNTIL), "recipe a: has 1 run; give two or more"),
        (("--recipe", "a=RUN", *UNTIL, "--margin", "1%"), "--margin does not go with --recipe and --until"),
        (("run-kn", "run-wb", "--margin", "1%"), "--margin is for models"),
        (("run-kn", "run-wb", "--plan", "0"), "plan must be a number from above 0 to below 1"),
        (("-m", "kn", "-m", "wb", "-", "--document", "segment", *UNTIL), "save it in a file first"),
    ],
)
def test_what_decides_nothing_is_refused(made: Path, options: tuple[str, ...], message: str) -> None:
    paths = [one.replace("RUN", str(made / "run-kn")) for one in options]
    paths = [str(made / one) if (made / one).exists() else one for one in paths]
    assert message in refused("compare", *paths)
