"""`lmgauge calc`: what is printed, read and refused."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lmgauge.cli.calc import calc
from lmgauge.errors import InputError


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(calc, arguments, input=stdin)


def numbers(*arguments: str, stdin: str | bytes | None = None) -> dict[str, Any]:
    result = run("--json", *arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    fields: dict[str, Any] = json.loads(result.output, parse_constant=pytest.fail)
    return fields


class TestForPeople:
    def test_each_number_under_its_name_with_its_unit(self) -> None:
        lines = [line.split() for line in run("0.5", "0.8", "0.9").output.splitlines()]
        assert lines[:6] == [
            ["events", "3"],
            ["joint", "probability", "0.36"],
            ["log-probability", "-1.02165124753", "nats"],
            ["cross-entropy", "0.340550415844", "nats", "per", "event"],
            ["bits", "per", "event", "0.491310396111", "bits"],
            ["perplexity", "1.40572110884"],
        ]

    def test_the_definitions_are_printed(self) -> None:
        assert "perplexity = exp(cross-entropy) = 2^(bits per event)" in run("0.5").output
        assert "cross-entropy = -(log-probability) / events" in run("0.5").output

    def test_no_colour_in_pipes(self) -> None:
        assert "\x1b" not in run("0.5").output

    def test_zeros_are_counted_and_located(self) -> None:
        output = " ".join(run("0.5", "0", "0.125", "0").output.split())
        assert "perplexity inf" in output
        assert "zero-probability events 2 at 2, 4" in output
        assert "perplexity without zeros 4" in output

    def test_many_zeros(self) -> None:
        output = " ".join(run(*["0"] * 12).output.split())
        assert "zero-probability events 12 at 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ..." in output
        assert "perplexity without zeros none left" in output

    def test_a_narrow_terminal_cuts_no_digit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "24")
        words = run("--nats", "-1.2345678901").output.split()
        assert "…" not in "".join(words)
        assert "-1.2345678901" in "".join(word for word in words if re.fullmatch(r"[-.\d]+", word))


class TestUnits:
    def test_negative_numbers_need_no_separator(self) -> None:
        for arguments in (("--bits", "-1", "-2"), ("-1", "-2", "--bits"), ("--bits", "--", "-1", "-2")):
            found = numbers(*arguments)
            assert found["events"] == 2
            assert found["bits_per_event"] == pytest.approx(1.5, rel=1e-15)
            assert found["perplexity"] == pytest.approx(2**1.5, rel=1e-15)

    def test_all_units_agree(self) -> None:
        wanted = numbers("0.5", "0.125")
        for unit, log in (("--nats", math.log), ("--bits", math.log2), ("--log10", math.log10)):
            found = numbers(unit, repr(log(0.5)), repr(log(0.125)))
            assert found.keys() == wanted.keys()
            for name in ("joint_probability", "log_probability", "bits_per_event", "perplexity"):
                assert found[name] == pytest.approx(wanted[name], rel=1e-14)

    @pytest.mark.parametrize("word", ["-inf", "-Infinity", "-1e3", "-.5", "-1.5E-3", "-0"])
    def test_every_way_to_write_a_negative_number(self, word: str) -> None:
        found = numbers("--nats", word)
        wanted = float(word)
        assert found["log_probability"] == ("-inf" if math.isinf(wanted) else wanted)

    def test_json_has_no_bare_infinity(self) -> None:
        found = numbers("0", "0.5")
        assert found["perplexity"] == "inf"
        assert found["log_probability"] == "-inf"
        assert found["perplexity_without_zeros"] == 2.0
        assert found["first_zero_events"] == [1]

    def test_json_is_full_precision(self) -> None:
        assert numbers("0.5", "0.8", "0.9")["perplexity"] == pytest.approx(1.405721108836, abs=5e-13)
        assert numbers("0.3")["log_probability"] == math.log(0.3)

    def test_units_exclude_each_other(self) -> None:
        result = run("--nats", "--bits", "-1")
        assert result.exit_code == 2
        assert "exclude each other" in result.output


class TestPerplexity:
    def test_conversion(self) -> None:
        assert numbers("--perplexity", "64") == {
            "perplexity": 64.0,
            "cross_entropy": math.log(64),
            "bits_per_event": 6.0,
        }
        lines = [line.split() for line in run("--perplexity", "64").output.splitlines()]
        assert lines[:3] == [
            ["perplexity", "64"],
            ["cross-entropy", "4.15888308336", "nats", "per", "event"],
            ["bits", "per", "event", "6", "bits"],
        ]

    def test_infinite(self) -> None:
        assert set(numbers("--perplexity", "inf").values()) == {"inf"}

    @pytest.mark.parametrize("word", ["0.5", "-3", "nan"])
    def test_impossible(self, word: str) -> None:
        assert isinstance(run("--perplexity", word).exception, InputError)

    @pytest.mark.parametrize("arguments", [["64", "--perplexity", "64"], ["--perplexity", "64", "--nats"]])
    def test_alone(self, arguments: list[str]) -> None:
        result = run(*arguments)
        assert result.exit_code == 2
        assert "--perplexity goes without other numbers" in result.output

    def test_not_a_number(self) -> None:
        assert run("--perplexity", "many").exit_code == 2


class TestStandardInput:
    @pytest.mark.parametrize(
        "text", ["0.5 0.8 0.9", "0.5\n0.8\n0.9\n", "0.5\t0.8\r\n\r\n 0.9", b"\xef\xbb\xbf0.5\n0.8 0.9\n"]
    )
    @pytest.mark.parametrize("arguments", [[], ["-"]])
    def test_separators(self, text: str | bytes, arguments: list[str]) -> None:
        assert numbers(*arguments, stdin=text) == numbers("0.5", "0.8", "0.9")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("0.5\n0.8 x\n", "<stdin>, line 2: 'x' is not a number: give numbers only"),
            ("0.5\n\n0,8", "<stdin>, line 3: '0,8' is not a number"),
            (b"\xff\xfe0", "<stdin>, line 1: .* is not a number"),
            ("1_0", "<stdin>, line 1: '1_0' is not a number"),
            ("", "<stdin> holds no numbers"),
            (" \n ", "<stdin> holds no numbers"),
        ],
    )
    def test_refused(self, text: str | bytes, message: str) -> None:
        with pytest.raises(InputError, match=message):
            CliRunner().invoke(calc, [], input=text, catch_exceptions=False)


class TestMistakes:
    @pytest.mark.parametrize("word", ["--foo", "-x", "-h", "--foo=1"])
    def test_unknown_options(self, word: str) -> None:
        result = run(word, "0.5")
        assert result.exit_code == 2
        assert "No such option" in result.output
        assert word in result.output

    def test_a_near_miss_is_suggested(self) -> None:
        assert "--bits" in run("--bit", "-1").output.split("No such option", 1)[1]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["0.5", "half"], "argument 2, 'half', is not a number"),
            (["-1x"], "argument 1, '-1x', is not a number"),
            (["0.5", ""], "argument 2, '', is not a number"),
            (["-1", "-2"], r"value 1 of 2 is -1\.0, below 0: .* name their unit: nats, bits or log10"),
            (["50", "80"], r"value 1 of 2 is 50\.0, above 1: divide percentages"),
            (["--nats", "0.5"], r"value 1 of 1 is 0\.5, above 0"),
            (["nan"], "value 1 of 1 is nan"),
        ],
    )
    def test_bad_numbers(self, arguments: list[str], message: str) -> None:
        with pytest.raises(InputError, match=message):
            CliRunner().invoke(calc, arguments, catch_exceptions=False)


def test_help_shows_examples() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for text in ("lmgauge calc 0.5 0.8 0.9", "--perplexity", "--json", "--log10", "standard input"):
        assert text in result.output


def test_the_command_costs_nothing_until_it_runs() -> None:
    program = "import sys, lmgauge.cli.calc; print(sorted({'numpy', 'rich'} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
