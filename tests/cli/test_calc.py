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

from lmgauge.base.errors import InputError, UsageError
from lmgauge.cli.derive import calc


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
        words = run("--log-unit", "nats", "-1.2345678901").output.split()
        assert "…" not in "".join(words)
        assert "-1.2345678901" in "".join(word for word in words if re.fullmatch(r"[-.\d]+", word))


class TestUnits:
    def test_negative_numbers_need_no_separator(self) -> None:
        for arguments in (
            ("--log-unit", "bits", "-1", "-2"),
            ("-1", "-2", "--log-unit", "bits"),
            ("--log-unit", "bits", "--", "-1", "-2"),
        ):
            found = numbers(*arguments)
            assert found["events"] == 2
            assert found["bits_per_event"] == pytest.approx(1.5, rel=1e-15)
            assert found["perplexity"] == pytest.approx(2**1.5, rel=1e-15)

    def test_all_units_agree(self) -> None:
        wanted = numbers("0.5", "0.125")
        for unit, log in (("nats", math.log), ("bits", math.log2), ("log10", math.log10)):
            found = numbers("--log-unit", unit, repr(log(0.5)), repr(log(0.125)))
            assert found.keys() == wanted.keys()
            for name in ("joint_probability", "log_probability", "bits_per_event", "perplexity"):
                assert found[name] == pytest.approx(wanted[name], rel=1e-14)

    @pytest.mark.parametrize("word", ["-inf", "-Infinity", "-1e3", "-.5", "-1.5E-3", "-0"])
    def test_every_way_to_write_a_negative_number(self, word: str) -> None:
        found = numbers("--log-unit", "nats", word)
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
        assert numbers("0.3")["log_probability"] == pytest.approx(math.log(0.3), rel=1e-15)

    def test_an_unknown_unit(self) -> None:
        result = run("--log-unit", "dits", "-1")
        assert result.exit_code == 2
        assert "'dits' is not one of 'nats', 'bits', 'log10'" in result.output


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

    def test_alone(self) -> None:
        result = run("64", "--perplexity", "64")
        assert result.exit_code == 2
        assert "--perplexity stands alone" in result.output
        with pytest.raises(UsageError, match="units belong to the numbers"):
            CliRunner().invoke(calc, ["--perplexity", "64", "--log-unit", "nats"], catch_exceptions=False)

    def test_not_a_number(self) -> None:
        assert isinstance(run("--perplexity", "many").exception, InputError)

    def test_losses(self) -> None:
        wanted = {"perplexity": math.exp(2.783), "cross_entropy": 2.783, "bits_per_event": 2.783 / math.log(2)}
        assert numbers("--cross-entropy", "2.783") == pytest.approx(wanted, rel=1e-15)
        assert numbers("--bits-per-event", "6") == {
            "perplexity": 64.0,
            "cross_entropy": pytest.approx(6 * math.log(2)),
            "bits_per_event": 6.0,
        }

    def test_one_thing_at_a_time(self) -> None:
        for arguments in (["--perplexity", "2", "--cross-entropy", "1"], ["--p", "1", "--perplexity", "2"]):
            assert "exactly one input" in str(run(*arguments).exception)
        assert "--cross-entropy stands alone" in run("--cross-entropy", "2", "0.5").output
        assert "commas part a list: 1/2,1/4,1/4" in run("--p", "1", "0.5").output
        assert "tokens and units belong to the numbers" in str(run("--p", "1", "--tokens", "a").exception)
        assert "q is compared with the distribution p: give both" in str(run("--q", "1").exception)


class TestWaysToWriteNumbers:
    def test_fractions_and_percentages(self) -> None:
        assert numbers("1/2", "25%", " 0.125") == numbers("0.5", "0.25", "0.125")
        assert numbers("1/3") == numbers(repr(1 / 3))
        assert numbers("12.5 %".replace(" ", ""), "0.5/2") == numbers("0.125", "0.25")
        assert numbers("--log-unit", "bits", "-3/2") == numbers("--log-unit", "bits", "-1.5")
        assert numbers(stdin="1/2 25%\n12.5%") == numbers("0.5", "0.25", "0.125")

    def test_zero_is_zero_however_it_is_written(self) -> None:
        for word in ("0", "0.0", "0e5", "0%", "0/3", "-0"):
            assert numbers(word, "0.5")["zero_probability_events"] == 1


class TestTokens:
    def test_a_table_of_the_sentence(self) -> None:
        output = run("--tokens", "the cat sat", "1/2", "80%", "0.9").output
        lines = [line.split() for line in output.splitlines()]
        assert lines[0] == ["token", "probability", "log-probability,", "nats", "surprisal,", "bits"]
        assert lines[1:4] == [
            ["the", "0.5", "-0.693147", "1"],
            ["cat", "0.8", "-0.223144", "0.321928"],
            ["sat", "0.9", "-0.105361", "0.152003"],
        ]
        assert "perplexity\t1.40572110884\n" in output

    def test_json(self) -> None:
        fields = numbers("--tokens", "a b", "--log-unit", "bits", "-1", "-2")
        assert fields["events"] == 2
        assert fields["tokens"] == [
            {"token": "a", "probability": 0.5, "log_probability": pytest.approx(-math.log(2)), "bits": 1.0},
            {"token": "b", "probability": 0.25, "log_probability": pytest.approx(-2 * math.log(2)), "bits": 2.0},
        ]

    def test_a_token_drives_no_terminal(self) -> None:
        assert "\x1b" not in run("--tokens", "\x1b[31mred", "0.5").output


class TestDistributions:
    def test_the_identity(self) -> None:
        lines = [line.split() for line in run("--p", "1/2,1/4,1/4", "--q", "1/4,1/4,50%").output.splitlines()]
        assert lines[:6] == [
            ["H(p)", "1.5", "bits"],
            ["H(q)", "1.5", "bits"],
            ["H(p,", "q)", "1.75", "bits"],
            ["KL(p", "||", "q)", "0.25", "bits"],
            ["Jensen-Shannon", "0.0612781244591", "bits"],
            ["perplexity", "3.36358566101"],
        ]
        assert ["#", "H(p,", "q)", "=", "H(p)", "+", "KL(p", "||", "q)"] in lines

    def test_one_distribution(self) -> None:
        assert run("--p", "1/2,1/4,1/4").output.splitlines()[:2] == [
            "H(p)\t1.5 bits",
            "branching factor\t2.82842712475",
        ]
        assert numbers("--p", "1/4,1/4,1/4,1/4") == {
            "p": [0.25] * 4,
            "entropy_p_bits": 2.0,
            "branching_factor": 4.0,
            "perplexity": 4.0,
        }

    def test_what_q_rules_out_is_infinitely_surprising(self) -> None:
        found = numbers("--p", "1/2,1/2", "--q", "1,0")
        assert found["kl_divergence_bits"] == found["cross_entropy_bits"] == found["perplexity"] == "inf"


class TestSteps:
    def test_events(self) -> None:
        assert run("0.5", "0.8", "0.9", "--steps").output.replace("# ", "").splitlines()[7:] == [
            "Steps",
            "joint probability = 0.5 * 0.8 * 0.9 = 0.36",
            "log-probability = ln 0.5 + ln 0.8 + ln 0.9 = -(0.693147 + 0.223144 + 0.105361) = -1.02165 nats",
            "cross-entropy = -(-1.02165) / 3 = 0.34055 nats per event",
            "bits per event = 0.34055 / ln 2 = 0.34055 / 0.693147 = 0.49131 bits",
            "perplexity = exp(0.34055) = 1.40572",
            "check: 2^0.49131 = 1.40572",
            "figures in the steps are rounded to 6 digits; the calculation is not",
        ]

    def test_log_probabilities_and_zeros(self) -> None:
        output = run("--log-unit", "bits", "-1", "-inf", "--steps").output
        assert "log-probability = -(0.693147 + inf) = -inf nats" in output
        assert "perplexity without events of probability 0 = 2" in output

    def test_distributions(self) -> None:
        output = run("--p", "1/2,1/2,0", "--q", "1/4,1/2,1/4", "--steps").output
        for line in (
            "H(p) = -sum p log2 p = 0.5 * 1 + 0.5 * 1 = 1 bits",
            "H(p, q) = -sum p log2 q = 0.5 * 2 + 0.5 * 1 = 1.5 bits",
            "KL(p || q) = sum p log2(p / q) = 0.5 * log2(0.5 / 0.25) + 0.5 * log2(0.5 / 0.5) = 0.5 bits",
            "H(p) + KL(p || q) = 1 + 0.5 = 1.5 = H(p, q)",
            "perplexity = 2^H(p, q) = 2^1.5 = 2.82843",
        ):
            assert f"# {line}" in output.splitlines()

    def test_many_events_are_not_all_written(self) -> None:
        output = run(*["0.5"] * 1000, "--steps").output
        assert "0.5 * 0.5 * 0.5 * 0.5 * ... * 0.5 = 9.33263618503e-302" in output.replace(
            "9.33264e-302", "9.33263618503e-302"
        )
        assert max(map(len, output.splitlines())) < 240


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
            ("0.5\n0.8 x\n", "<stdin>, line 2: 'x' is not a number: write 0.5, 1/2 or 50%"),
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
    @pytest.mark.parametrize("word", ["--foo", "-x", "--foo=1"])
    def test_unknown_options(self, word: str) -> None:
        result = run(word, "0.5")
        assert result.exit_code == 2
        assert "No such option" in result.output
        assert word in result.output

    def test_h_shows_the_help_of_the_command(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from lmgauge.cli.main import cli

        monkeypatch.setattr(calc, "_help_option", None)  # click keeps the one of the first call, here without the group
        result = CliRunner().invoke(cli, ["calc", "-h"])
        assert result.exit_code == 0
        assert result.output.startswith("Usage: cli calc")

    def test_a_near_miss_is_suggested(self) -> None:
        assert "--log-unit" in run("--log-units", "-1").output.split("No such option", 1)[1]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["0.5", "half"], "value 2: 'half' is not a number: write 0.5, 1/2 or 50%"),
            (["-1x"], "value 1: '-1x' is not a number"),
            (["0.5", ""], "value 2: '' is not a number"),
            (["0.5", "-"], "value 2: '-' is not a number"),
            (["0.5", "1/0"], "value 2: '1/0' divides by zero"),
            (["1/2/3"], "value 1: '1/2/3' is not a number"),
            (["1/"], "value 1: '1/' is not a number"),
            (["1e400"], "value 1: '1e400' is beyond the range of float64"),
            (["0.5", "1e-400"], "value 2: '1e-400' is beyond the range of float64"),
            (["150%"], r"value 1 of 1 is 1\.5, above 1"),
            (["--log-unit", "nats", "50%"], "value 1: '50%' is not a number: write 2.5 or 5/2"),
            (["--tokens", "the cat", "0.5"], "tokens: 2, numbers: 1; give one number for each token"),
            (["--tokens", "", "0.5"], "tokens: 0, numbers: 1;"),
            (["--p", "0.5,0.25"], r"p sums to 0\.75, not to 1"),
            (["--p", "1/2,1/2", "--q", "1/2,1/4,1/4"], "p has 2 outcomes, q has 3"),
            (["--p", "1/2,half"], "value 2 of p: 'half' is not a number"),
            (["--p", "1.5,-0.5"], r"p value 1 of 2 is 1\.5, above 1|negative"),
            (["--cross-entropy", "-1"], r"is -1\.0, negative"),
            (["--bits-per-event", "nan"], "nan, not a number"),
            (["--perplexity", "1e999"], "perplexity: '1e999' is beyond the range"),
            (
                ["-1", "-2"],
                r"value 1 of 2 is .*, below 0: .* name their unit \(--log-unit; in Python log_unit\): nats, bits or log10",
            ),
            (["50", "80"], r"value 1 of 2 is 50\.0, above 1: divide percentages"),
            (["--log-unit", "nats", "0.5"], r"value 1 of 1 is 0\.5, above 0"),
            (["nan"], "value 1 of 1 is nan"),
        ],
    )
    def test_bad_numbers(self, arguments: list[str], message: str) -> None:
        with pytest.raises(InputError, match=message):
            CliRunner().invoke(calc, arguments, catch_exceptions=False)


def test_help_shows_examples() -> None:
    result = run("--help-all")
    assert result.exit_code == 0
    for text in ("lmgauge calc 0.5 0.8 0.9", "--perplexity", "--json", "log10", "standard input", "--p 0.5,0.25,0.25"):
        assert text in result.output


def test_the_command_costs_nothing_until_it_runs() -> None:
    program = "import sys; from lmgauge.cli.derive import calc; print(sorted({'numpy', 'rich'} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
