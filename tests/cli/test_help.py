"""Help pages, wrong names and completion: what a user sees before anything runs."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from tests.cli.commands import ok, refused

from lmgauge.cli.commands import COMMANDS, SECTIONS
from lmgauge.cli.derive import _line
from lmgauge.cli.main import cli, main


def headings(page: str) -> list[str]:
    return [line[:-1] for line in page.splitlines() if line.endswith(":") and not line.startswith(" ")]


def test_commands_stand_under_headings() -> None:
    page = ok("--help").output
    assert headings(page) == ["Options", *SECTIONS]
    listed = page.partition("Train:")[2].partition("complete with")[0]
    words = [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "]
    assert [word for word in words if word in COMMANDS] == list(COMMANDS)


@pytest.mark.parametrize(
    ("word", "command"),
    [
        *[(guess, name) for name, row in COMMANDS.items() for guess in row.guesses],
        ("trian", "train"),
        ("Eval", "eval"),
        ("divergance", "divergence"),
    ],
)
def test_a_command_is_found_by_the_word_of_the_field(word: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([word])
    assert end.value.code == 2
    words = capsys.readouterr().err
    assert words.startswith(f"lmgauge: error: no command {word!r}; did you mean `lmgauge {command}`")


def test_a_kind_that_is_misspelled_is_answered_by_those_like_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "kneser-nay", "text.txt", "-o", "model"])
    words = capsys.readouterr().err
    assert words.startswith("lmgauge: error: Invalid value for 'KIND': 'kneser-nay' is not one of 'mle', ")
    assert "; did you mean kneser-ney" in words


@pytest.mark.parametrize(("word", "kinds"), [("kn", "modified-kneser-ney or kneser-ney?"), ("WB", "witten-bell?")])
def test_a_kind_is_found_by_its_short_name(word: str, kinds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", word, "text.txt", "-o", "model"])
    assert f"did you mean {kinds}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        ([], "lmgauge [OPTIONS] COMMAND"),
        (["help"], "lmgauge [OPTIONS] COMMAND"),
        (["help", "eval"], "lmgauge eval [OPTIONS]"),
    ],
)
def test_help_is_a_word_as_well(words: list[str], usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(f"Usage: {usage}")


def test_a_path_that_is_too_long_is_named_and_nothing_is_said_of_writing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["info", "x" * 5000])
    assert end.value.code == 2
    words = capsys.readouterr().err
    assert words.startswith("lmgauge: error: '" + "x" * 100 + "...': ")
    assert "write" not in words


def test_a_word_like_nothing_is_only_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["xyzzy"])
    assert capsys.readouterr().err == "lmgauge: error: no command 'xyzzy' (see `lmgauge --help`)\n"


def test_a_guess_is_not_a_command() -> None:
    guesses = [guess for row in COMMANDS.values() for guess in row.guesses]
    assert len(guesses) == len(set(guesses))
    assert not set(guesses) & set(COMMANDS)


def test_a_word_in_place_of_a_number_is_answered_in_plain_words() -> None:
    assert "'five' is not a valid whole number" in refused("train", "mle", "--order", "five", "text.txt", "-o", "model")


def test_a_misspelled_option_names_the_right_one() -> None:
    assert "--context" in refused("eval", "--contxt", 5)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_on_the_help_page(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    page = ok(name, "--help-all").output
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[-1] in page


@pytest.mark.parametrize("name", COMMANDS)
def test_the_first_page_of_help_fits_one_screen(name: str) -> None:
    page = CliRunner().invoke(cli, [name, "--help"], prog_name="lmgauge", terminal_width=80).output.splitlines()
    assert len(page) <= 40
    assert max(map(len, page)) <= 80
    examples = [line for line in page if line.startswith(f"  lmgauge {name} ")]
    assert 1 <= len(examples) <= 2


@pytest.mark.parametrize(
    ("words", "width", "line"),
    [
        ("A cut at a comma, or at another, is shown.", 34, "A cut at a comma, ..."),
        ("What counts: exp: 1/2, 1/4, ... of it", 36, "What counts: exp: 1/2, ..."),
        (
            "A score table, with columns segment, logprob, ..., in any format.",
            55,
            "A score table, with columns segment, ...",
        ),
        ("A <unk> stops (stop; a, b), else not; a word.", 51, "A <unk> stops (stop; a, b), else not."),
        ("Such as lmgauge.tasks.BLEU. Or v1.2 of it, e.g.", 44, "Such as lmgauge.tasks.BLEU."),
        ("A folder (by its ending, a.b; c); and more.", 26, "A folder."),
        ("Onlyone sentence without any end", 34, "Onlyone sentence ..."),
    ],
)
def test_help_is_cut_at_the_end_of_a_sentence_or_shows_that_it_is_cut(words: str, width: int, line: str) -> None:
    assert _line("-o", words, 5, width).split(None, 1)[1] == f"{line}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_first_page_says_what_there_is_besides_json(name: str) -> None:
    page = CliRunner().invoke(cli, [name, "--help"], prog_name="lmgauge", terminal_width=80).output
    assert "tables" in COMMANDS[name].without or "json" in COMMANDS[name].without or "--csv, --latex, --markdown." in page


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("eval", ["Options", "Resources", "Output", "Text", "Models"]),
    ],
)
def test_options_stand_under_headings(name: str, expected: list[str]) -> None:
    assert headings(ok(name, "--help").output) == expected


@pytest.mark.parametrize(("words", "expected"), [("lmgauge ev", "eval"), ("lmgauge eval --sco", "--scores")])
def test_the_shell_completes(words: str, expected: str) -> None:
    environment = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_LMGAUGE_COMPLETE": "bash_complete"}
    program = "import sys; sys.argv[0] = 'lmgauge'; from lmgauge.cli.main import main; main([])"
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True)
    assert expected in done.stdout.split("plain,")[-1], done.stderr
