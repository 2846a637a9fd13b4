"""`lmgauge prune` as it is typed, and `lmgauge.prune`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

import lmgauge
from lmgauge.cli.odd_values import read_count


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, a model of it as a folder and as an ARPA file, and one that does not back off."""
    folder = tmp_path_factory.mktemp("prune")
    lines = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")
    (folder / "train.txt").write_text("\n".join(lines[:400]), encoding="utf-8")
    (folder / "test.txt").write_text("\n".join(lines[400:450]) + "\n", encoding="utf-8")
    ok("train", "modified-kneser-ney", folder / "train.txt", "-o", folder / "kn3")
    ok("convert", folder / "kn3", folder / "kn3.arpa")
    ok("train", "laplace", folder / "train.txt", "-o", folder / "laplace")
    return folder


def test_an_arpa_file_to_a_size(folder: Path, tmp_path: Path) -> None:
    arguments = ["--to-size", "1.2k", "--text", folder / "test.txt", "-o"]
    printed = ok("prune", folder / "kn3.arpa", *arguments, tmp_path / "small.arpa").stdout
    small = lmgauge.models.read_arpa(tmp_path / "small.arpa")
    assert sum(small.types) == 1200
    rows = [line.split("\t") for line in printed.splitlines() if line and not line.startswith("#")]
    assert rows[0] == ["order", "n-grams before", "after", "share"]
    assert rows[-1][2] == "1,200"
    assert "# perplexity on 218 events: " in printed
    told = json.loads(ok("prune", folder / "kn3", *arguments, tmp_path / "small", "--json").stdout)
    python = lmgauge.prune(folder / "kn3", to_size=1200, text=folder / "test.txt")
    assert told == {"path": str(tmp_path / "small"), **python.to_dict()}
    assert told["perplexity_before"] < told["perplexity"]
    assert lmgauge.evaluate(tmp_path / "small.arpa", folder / "test.txt").perplexity == pytest.approx(told["perplexity"])
    assert lmgauge.load_model(tmp_path / "small").fingerprint == told["fingerprint"]


def test_a_threshold_is_that_of_training(folder: Path, tmp_path: Path) -> None:
    ok("prune", folder / "kn3", "--threshold", "1e-5", "-o", tmp_path / "pruned")
    ok("train", "modified-kneser-ney", folder / "train.txt", "--prune", "1e-5", "-o", tmp_path / "trained")
    one, other = (lmgauge.load_model(tmp_path / name) for name in ("pruned", "trained"))
    assert one.fingerprint == other.fingerprint


def test_to_a_vocabulary(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("the\nand\n", encoding="utf-8")
    shown = ok("prune", folder / "kn3", "--vocabulary", tmp_path / "words", "-o", tmp_path / "cut").output
    assert "2 of 2 words of a list stay" in shown
    assert lmgauge.load_model(tmp_path / "cut").vocabulary.tokens[3:] in (["the", "and"], ["and", "the"])
    printed = ok(
        "prune", folder / "kn3", "--vocabulary", tmp_path / "words", "--renormalize", "-o", tmp_path / "b", "--json"
    )
    assert json.loads(printed.output)["threshold"] is None


def test_what_is_refused(folder: Path, tmp_path: Path) -> None:
    out = ["-o", tmp_path / "out"]
    assert "give one of them" in refused("prune", folder / "kn3", *out)
    assert "give one of them" in refused("prune", folder / "kn3", "--threshold", 1e-5, "--to-size", 3000, *out)
    for options in ((), ("--to-size", 3000)):
        assert "renormalize goes with --vocabulary" in refused("prune", folder / "kn3", *options, "--renormalize", *out)
    (tmp_path / "words").write_text("the\n", encoding="utf-8")
    cut = ["prune", folder / "kn3", "--vocabulary", tmp_path / "words"]
    assert "cannot be compared" in refused(*cut, "--text", folder / "train.txt", *out)
    assert "would replace" in refused(*cut, "-o", tmp_path / "words")
    assert "above 0" in refused("prune", folder / "kn3", "--threshold", "nan", *out)
    assert "not a whole number such as" in refused("prune", folder / "kn3", "--to-size", "5MB", *out)
    assert "unigrams stay" in refused("prune", folder / "kn3", "--to-size", 5, *out)
    assert "does not back off" in refused("prune", folder / "laplace", "--to-size", 5000, *out)
    assert "would replace" in refused("prune", folder / "kn3.arpa", "--threshold", 1e-5, "-o", folder / "kn3.arpa")
    ok("mix", "-m", folder / "kn3", "-m", folder / "laplace", "--weights", "0.5,0.5", "-o", tmp_path / "mixed")
    assert "only n-gram models" in refused("prune", tmp_path / "mixed", "--threshold", 1e-5, *out)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("typed", "count"), [("1M", 10**6), ("500k", 500_000), ("1.5M", 1_500_000), ("12,345", 12345)])
def test_numbers_as_people_write_them(typed: str, count: int) -> None:
    assert read_count(typed) == count


def test_a_trie_of_kenlm_is_pruned_and_merged_and_a_probing_file_is_not(folder: Path, tmp_path: Path) -> None:
    ok("convert", folder / "kn3.arpa", tmp_path / "kn3.binary", "--trie")
    ok("convert", folder / "kn3.arpa", tmp_path / "probing.binary")
    ok("prune", tmp_path / "kn3.binary", "--to-size", "2k", "-o", tmp_path / "small.binary")
    assert lmgauge.load_model(tmp_path / "small.binary").label == "kenlm3"
    both = ["mix", "-m", tmp_path / "kn3.binary", "-m", folder / "kn3.arpa", "--weights", "0.5,0.5", "--static", "-o"]
    ok(*both, tmp_path / "same")
    one, other = (lmgauge.evaluate(path, folder / "test.txt") for path in (tmp_path / "same", folder / "kn3.arpa"))
    assert one.perplexity == pytest.approx(other.perplexity, rel=1e-4)
    assert "probing" in refused("prune", tmp_path / "probing.binary", "--to-size", "2k", "-o", tmp_path / "never")
    assert "probing" in refused(*both[:4], tmp_path / "probing.binary", *both[5:], tmp_path / "never")
