"""`--html`: a page besides what is printed; what would stop it is said before the work begins."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused, run

LINES = ["the cat sat on the mat", "a dog ran", "the cat ran on", "a mat sat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("html")
    (folder / "train.txt").write_text("".join(f"{line}\n" for line in LINES * 3), encoding="utf-8")
    (folder / "test.txt").write_text("".join(f"{line}\n" for line in LINES[::-1]), encoding="utf-8")
    for name, rule in (("kn", "kneser-ney"), ("wb", "witten-bell")):
        ok("train", rule, "--order", 2, folder / "train.txt", "-o", folder / name)
        ok("eval", "-m", folder / name, folder / "test.txt", "-o", folder / f"run-{name}")
    (folder / "ref.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    for i, (old, new) in enumerate((("cat", "hat"), ("the ", ""))):
        (folder / f"{i}.txt").write_text("".join(f"{line.replace(old, new)}\n" for line in LINES), encoding="utf-8")
    (folder / "ids.txt").write_text("".join(f"u{i} {line}\n" for i, line in enumerate(LINES)), encoding="utf-8")
    lists = [f'{{"id": "u{i}", "nbest": ["{line.replace("cat", "hat")}", "{line}"]}}\n' for i, line in enumerate(LINES)]
    (folder / "lists.jsonl").write_text("".join(lists), encoding="utf-8")
    (folder / "systems.tsv").write_text("system\tperplexity\tscore\na\t10\t5\nb\t20\t4\nc\t30\t2\nd\t41\t1\n", "utf-8")
    return folder


COMMANDS = {
    "bleu": ("bleu", "ref.txt", "0.txt", "1.txt"),
    "chrf": ("chrf", "ref.txt", "0.txt"),
    "ter": ("ter", "ref.txt", "-r", "1.txt", "0.txt"),
    "wer": ("wer", "ref.txt", "0.txt", "1.txt"),
    "cer": ("cer", "ref.txt", "0.txt", "--score-only"),
    "audit": ("audit", "run-kn"),
    "diagnose": ("diagnose", "run-kn", "--train", "train.txt", "-m", "kn", "--examples", "3"),
    "compare": ("compare", "run-kn", "run-wb", "--train", "train.txt", "--examples", "2"),
    "divergence": ("divergence", "kn", "wb", "test.txt"),
    "overlap": ("overlap", "train.txt", "test.txt", "--ngram", "3"),
    "membership": ("membership", "kn", "train.txt", "--control", "test.txt"),
    "rescore": ("rescore", "lists.jsonl", "-m", "kn", "--tune", "lists.jsonl", "--ref", "ids.txt", "--test-ref", "ids.txt"),
    "correlate": ("correlate", "systems.tsv"),
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_page_is_written_besides_what_is_printed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(folder)
    page = tmp_path / "page.html"
    written, plain = ok(*arguments, "--html", page), ok(*arguments)
    assert written.stdout == plain.stdout
    assert f"open it in a browser: {page.as_uri()}" in written.stderr
    text = page.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")


def test_with_json_too(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = ok("compare", folder / "run-kn", folder / "run-wb", "--json", "--html", page)
    assert json.loads(result.stdout) == json.loads(ok("compare", folder / "run-kn", folder / "run-wb", "--json").stdout)
    assert page.exists()


def test_a_page_of_three_runs_does_not_change_what_is_printed(folder: Path, tmp_path: Path) -> None:
    """The page compares each with the best, the command with the first that is named."""
    ok("train", "laplace", "--order", 2, folder / "train.txt", "-o", tmp_path / "last")
    ok("eval", "-m", tmp_path / "last", folder / "test.txt", "-o", tmp_path / "run")
    runs = (tmp_path / "run", folder / "run-kn", folder / "run-wb")
    written = ok("compare", *runs, "--html", tmp_path / "page.html")
    assert written.stdout == ok("compare", *runs).stdout
    assert "The best is laplace2" not in (tmp_path / "page.html").read_text("utf-8")


def test_runs_have_their_text_on_the_page(folder: Path, tmp_path: Path) -> None:
    for arguments in (("compare", folder / "run-kn", folder / "run-wb"), ("diagnose", folder / "run-kn")):
        ok(*arguments, "--html", tmp_path / "page.html")
        assert "the cat sat on the mat</p>" in (tmp_path / "page.html").read_text("utf-8")


def test_a_failed_audit_has_its_page_and_exits_with_1(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    train = folder / "train.txt"
    arguments = ("audit", "-m", folder / "kn", train, "--train", train, "--levels", "contamination", "--html", page)
    assert run(*arguments).exit_code == 1
    assert "FAIL at contamination" in page.read_text("utf-8")


def test_an_input_is_never_replaced(folder: Path) -> None:
    before = (folder / "0.txt").read_bytes()
    said = refused("wer", folder / "ref.txt", folder / "0.txt", "--html", folder / "0.txt")
    assert "would replace what this command reads" in said
    assert "would replace" in refused("wer", folder / "ref.txt", folder / "[01].txt", "--html", folder / "0.txt")
    assert (folder / "0.txt").read_bytes() == before
    out = folder / "new.html"
    texts = (folder / "train.txt", folder / "test.txt")
    assert "would replace each other" in refused("overlap", *texts, "--write-clean", out, "--html", out)
    assert "needs a file" in refused("audit", folder / "run-kn", "--html", "-")


def test_a_missing_extra_is_said_before_the_work(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    result = run("wer", folder / "ref.txt", folder / "0.txt", "--html", tmp_path / "page.html")
    assert result.exit_code == 2
    assert "pip install 'lmgauge[report]'" in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "page.html").exists()


def test_what_does_not_go_together_is_refused(folder: Path, tmp_path: Path) -> None:
    files = (folder / "ref.txt", folder / "0.txt")
    page = tmp_path / "page.html"
    assert "name it with --html" in refused("wer", *files, "--segments", 3)
    assert "--html does not go with --sentence" in refused("bleu", *files, "--sentence", "--html", page)
    assert "--html" in refused("wer", *files, "--align", "--html", page)
    assert not page.exists()


def test_a_page_is_small_whatever_the_corpus(tmp_path: Path) -> None:
    long = " ".join(f"word{i}" for i in range(3000))
    lines = [f"{long} {i}" if i % 50 == 0 else f"<&'\" line {i} & 日本語 words" for i in range(1000)]
    (tmp_path / "ref.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    outputs = [tmp_path / f"{i}.txt" for i in range(12)]
    for i, path in enumerate(outputs):
        path.write_text("".join(f"x{i} {line[::2]}\n" for line in lines), encoding="utf-8")
    for command in ("wer", "chrf"):
        page = tmp_path / f"{command}.html"
        ok(command, tmp_path / "ref.txt", *outputs, "--significance", "none", "--segments", 60, "--html", page)
        assert page.stat().st_size < 2_000_000
