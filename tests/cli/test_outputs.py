"""What commands write, and what they must leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

import lmgauge

LINES = [
    "eval -m model text.txt --per-segment text.txt",
    "eval -m model text.txt --per-token text.txt",
    "eval -m model text.txt --per-token rows.tsv --per-segment rows.tsv",
    "eval -m model text.txt --per-token run/rows.tsv -o run",
    "eval -m model text.txt --per-token model/own.txt",
    "overlap text.txt other.txt --write-clean text.txt",
    "overlap text.txt other.txt --write-clean other.txt",
    "correlate table.tsv -x perplexity -y score --rows table.tsv",
    "correlate table.tsv -m model --outputs *.txt --rows other.txt",
    "convert model.arpa model.arpa",
    "train mle text.txt --words model.arpa -o model.arpa",
    "train mle model.arpa -o model.arpa",
    "mix -m model -m other text.txt -o model",
    "train ffnn text.txt --valid other.txt -o .",
]


@pytest.mark.parametrize("line", LINES)
def test_no_command_replaces_what_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("text.txt", "other.txt"):
        Path(name).write_text("a rose is a rose\nis a rose\n")
    lmgauge.train("mle", "text.txt", order=2).save("model")
    Path("model", "own.txt").write_text("a\n")
    Path("table.tsv").write_text("system\tperplexity\tscore\n" + "".join(f"s{i}\t{i + 2}\t{9 - i}\n" for i in range(5)))
    Path("model.arpa").write_text("not read so far\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert "would replace" in refused(*line.split())
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_an_earlier_command_wrote_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("a rose is a rose\nis a rose\n")
    lmgauge.train("mle", "text.txt", order=2).save("models/mle")
    for _ in range(2):
        ok("eval", "-m", "models/mle", "text.txt", "--per-token", "rows.tsv", "--per-segment", "rows.jsonl", "-o", "run")
        ok("eval", "-m", "models/mle", "text.txt", "-o", "models/mle/run")
        lmgauge.train("laplace", "text.txt", order=2).save("models/laplace")
        ok("eval", "-m", "models/mle", "-m", "models/laplace", "text.txt", "-o", "runs", "--per-token", "rows.tsv")
    assert sorted(path.name for path in Path("runs").iterdir()) == ["laplace", "mle"]


def test_tables_in_other_forms_and_what_they_do_not_go_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("a rose is a rose\nis a rose\n")
    lmgauge.train("mle", "text.txt", order=2).save("model")
    told = ["eval", "-m", "model", "text.txt"]
    assert ok(*told, "--csv").stdout.splitlines()[0].startswith("model,perplexity,95 % interval,")
    assert ok(*told, "--latex").stdout.startswith("\\begin{tabular}{lrrrrrrrr}\n\\toprule\n")
    assert ok(*told, "--markdown").stdout.startswith("| model | perplexity |")
    assert "--per-token - would" not in refused(*told, "--per-token", "-", "--csv")
    assert "--per-token does not go with --csv" in refused(*told, "--per-token", "-", "--csv")
    assert "--json and --csv are two forms of the same result" in refused(*told, "--csv", "--json")
    assert "--csv does not go with --sentence" in refused("bleu", "text.txt", "text.txt", "--sentence", "--csv")
    assert "--latex does not go with --score-only" in refused("bleu", "text.txt", "text.txt", "--score-only", "--latex")
    for command in ("train", "sample", "explore", "convert"):
        assert "No such option" in refused(command, "--csv")


def test_a_signature_is_printed_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("a rose is a rose\nis a rose\n")
    for order in (1, 2):
        lmgauge.train("mle", "text.txt", order=order).save(f"m{order}")
    told = ["eval", "-m", "m1", "-m", "m2", "text.txt"]
    quiet, signed = (ok(*told, *options).stdout for options in ((), ("--signature",)))
    assert "ppl|" not in quiet
    assert signed.startswith(quiet)
    assert [line.split("@")[0] for line in signed[len(quiet) :].splitlines()][1:] == ["# model:mle1", "# model:mle2"]
    assert "|model:*|" in signed
    assert ok(*told, "-v").stdout.endswith(signed[len(quiet) :])
