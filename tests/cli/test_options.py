"""An option that what was chosen does not take is refused by its name, never ignored."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from tests.cli.commands import ok, refused

from lmgauge.cli.main import cli


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("options")
    (path / "text.txt").write_text("the cat sat\nthe dog sat\n" * 20)
    (path / "text.jsonl").write_text('{"body": "the cat sat"}\n')
    rows = [{"segment": 0, "logprob": -1.0}, {"segment": 1, "logprob": -2.0}]
    (path / "scores.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    (path / "two.txt").write_text("a\nb\n")
    ok("train", "laplace", path / "text.txt", "--order", 2, "-o", path / "model")
    ok("eval", "-m", path / "model", path / "text.txt", "-o", path / "run")
    return path


@pytest.mark.parametrize(
    "option",
    [
        ["--context", "5"],
        ["--stride", "5"],
        ["--reserved", "unk"],
        ["--device", "cuda"],
        ["--dtype", "auto"],
        ["--trust-remote-code"],
    ],
)
def test_a_score_table_takes_no_option_of_models(folder: Path, option: list[str]) -> None:
    words = refused("eval", "--scores", folder / "scores.jsonl", folder / "two.txt", *option)
    assert f"{option[0]} is for models; a score table" in words


@pytest.mark.parametrize("option", ["--field", "--group", "--unit", "--format", "--errors"])
def test_a_score_table_alone_takes_no_option_of_texts(folder: Path, option: str) -> None:
    value = {"--unit": "document", "--format": "text", "--errors": "skip"}.get(option, "foo")
    assert f"{option[2:]} is about the text that was scored" in refused(
        "eval", "--scores", folder / "scores.jsonl", option, value
    )


def test_a_score_table_has_no_groups(folder: Path) -> None:
    words = refused("eval", "--scores", folder / "scores.jsonl", folder / "two.txt", "--group", "part")
    assert "group is for models" in words
    ok("eval", "--scores", folder / "scores.jsonl", folder / "two.txt", "--unit", "line")


def test_plain_text_has_no_fields(folder: Path) -> None:
    words = "field names a field of records, and the text is plain"
    assert words in refused("eval", "-m", folder / "model", folder / "text.txt", "--field", "zz")
    assert words in refused("train", "laplace", folder / "text.txt", "--field", "zz", "-o", folder / "x")
    assert words in refused("overlap", folder / "text.txt", folder / "text.txt", "--field", "zz")
    assert words in refused("audit", "-m", folder / "model", folder / "text.txt", "--field", "zz")
    assert words in refused(
        "audit", "-m", folder / "model", folder / "text.txt", "--train", folder / "text.txt", "--field", "zz"
    )
    ok("eval", "-m", folder / "model", folder / "text.txt", folder / "text.jsonl", "--field", "body")
    ok("overlap", folder / "text.jsonl", folder / "text.txt", "--field", "body")
    ok("audit", "-m", folder / "model", folder / "two.txt", "--train", folder / "text.jsonl", "--field", "body")


@pytest.mark.parametrize("kind", [["mle"], ["laplace"], ["lidstone", "--k", "1"]])
def test_what_has_no_lower_orders_does_not_back_off(folder: Path, kind: list[str]) -> None:
    for option in ("--back-off", "--interpolate"):
        words = refused("train", *kind, folder / "text.txt", option, "-o", folder / "x")
        assert f"{option} is for smoothings that use lower orders; {kind[0]} does not" in words


def test_good_turing_backs_off(folder: Path) -> None:
    words = refused("train", "good-turing", folder / "text.txt", "--interpolate", "-o", folder / "x")
    assert "--interpolate cannot be combined with good-turing" in words
    ok("train", "good-turing", folder / "text.txt", "--back-off", "--order", 2, "-o", folder / "good-turing")


@pytest.mark.parametrize("option", ["--exhaustive", "--contexts=5", "--context=5"])
def test_without_a_model_nothing_is_asked_of_it(folder: Path, option: str) -> None:
    for command in ("diagnose", "audit"):
        assert f"{option.partition('=')[0].strip('-')} needs the model: name it " in refused(command, folder / "run", option)


def test_diagnose_refuses_what_the_model_does_not_take(folder: Path) -> None:
    words = refused("diagnose", folder / "run", "-m", folder / "model", "--context", 5)
    assert "--context is for neural models" in words


def test_numbers_are_read_alike_by_all_options() -> None:
    """As `calc` reads them: by `NUMBER` and `CommaList`, which also take 1/4 and 25%; those within limits are floats."""
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    options = [(name, option) for name, command in commands.items() if command for option in command.params]
    assert [(name, option.name) for name, option in options if option.type.name == "float"] == []


def test_lists_of_numbers_take_fractions_and_percentages(folder: Path, tmp_path: Path) -> None:
    ok("train", "laplace", folder / "text.txt", "--order", 1, "-o", tmp_path / "other")
    models = ["-m", folder / "model", "-m", tmp_path / "other"]
    for name, written in (("a", "0.25,0.75"), ("b", "1/4,75%")):
        assert "0.2500" in ok("mix", *models, "--weights", written, "-o", tmp_path / name).stdout
    assert "not a list of numbers like 0.5,0.5" in refused("mix", *models, "--weights", "1/0,1", "-o", tmp_path / "c")
    ok("split", folder / "text.txt", "--fractions", "4/5,10%,0.1", "-o", tmp_path / "parts")
    assert len((tmp_path / "parts" / "train.txt").read_text().splitlines()) == 32
