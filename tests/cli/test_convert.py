"""Models of all forms made into each other, as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

import lmgauge


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, a model of it as a folder, and as binary files of KenLM."""
    folder = tmp_path_factory.mktemp("convert")
    lines = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")
    (folder / "train.txt").write_text("\n".join(lines[:400]), encoding="utf-8")
    (folder / "test.txt").write_text("\n".join(lines[400:450]) + "\n", encoding="utf-8")
    ok("train", "modified-kneser-ney", folder / "train.txt", "-o", folder / "kn3")
    ok("train", "modified-kneser-ney", folder / "train.txt", "-o", folder / "probing.binary")
    ok("convert", folder / "kn3", folder / "trie.klm", "--trie")
    ok("convert", folder / "kn3", folder / "small.bin", "--trie", "--quantize", "8,8")
    return folder


def test_all_forms_score_alike(folder: Path) -> None:
    names = "kn3", "probing.binary", "trie.klm"
    exact, *others = (lmgauge.evaluate(folder / name, folder / "test.txt").perplexity for name in names)
    assert others == pytest.approx([exact, exact], rel=1e-6)
    assert lmgauge.evaluate(folder / "small.bin", folder / "test.txt").perplexity == pytest.approx(exact, rel=0.02)
    assert (
        (folder / "small.bin").stat().st_size
        < (folder / "trie.klm").stat().st_size
        < (folder / "probing.binary").stat().st_size
    )


def test_a_trie_goes_on_to_every_form(folder: Path, tmp_path: Path) -> None:
    exact = lmgauge.evaluate(folder / "kn3", folder / "test.txt").perplexity
    for name in ("again.arpa", "again", "again.binary"):
        ok("convert", folder / "trie.klm", tmp_path / name)
        assert lmgauge.evaluate(tmp_path / name, folder / "test.txt").perplexity == pytest.approx(exact, rel=1e-6)


def test_training_writes_a_trie(folder: Path, tmp_path: Path) -> None:
    options = ["--trie", "--quantize", "8,8"]
    ok("train", "modified-kneser-ney", folder / "train.txt", "-o", tmp_path / "direct.bin", *options)
    assert (tmp_path / "direct.bin").read_bytes() == (folder / "small.bin").read_bytes()


def test_what_is_refused(folder: Path, tmp_path: Path) -> None:
    assert "holds hashes only" in refused("convert", folder / "probing.binary", tmp_path / "x.arpa").replace("\n", " ")
    assert "names end in .binary" in refused("convert", folder / "kn3", tmp_path / "x.arpa", "--trie")
    assert "add --trie" in refused(
        "train", "kneser-ney", folder / "train.txt", "-o", tmp_path / "x.bin", "--quantize", "8,8"
    )
    assert "is for n-gram models" in refused("train", "lstm", folder / "train.txt", "-o", tmp_path / "x", "--trie")
    assert "a mixture that is not --static is a folder" in refused(
        "mix", "-m", folder / "kn3", "-m", folder / "trie.klm", "--weights", "0.5,0.5", "-o", tmp_path / "x.binary"
    )
    (tmp_path / "short.binary").write_bytes((folder / "probing.binary").read_bytes()[:5000])
    assert "shorter than its header says" in refused("eval", "-m", tmp_path / "short.binary", folder / "test.txt")


def test_a_normalizer_goes_with_files_and_stays_in_folders(folder: Path, tmp_path: Path) -> None:
    """A file does not say how its text was made; the folder that it is converted into does."""
    text = folder / "test.txt"
    ok("train", "witten-bell", folder / "train.txt", "--normalizer", "ccnet", "-o", tmp_path / "simple")
    ok("convert", tmp_path / "simple", tmp_path / "simple.arpa")
    ok("convert", tmp_path / "simple.arpa", tmp_path / "again", "--normalizer", "ccnet")
    options = ("--tokenizer", "whitespace", "--normalizer", "ccnet")
    printed = [
        ok("eval", "-m", tmp_path / name, text, "--signature", *chosen).stdout
        for name, chosen in (("simple", ()), ("again", ()), ("simple.arpa", options))
    ]
    assert all("|norm:ccnet|" in page for page in printed)
    assert "norm:" not in ok("eval", "-m", tmp_path / "simple.arpa", text).stdout
    exact, *others = (lmgauge.evaluate(tmp_path / name, text).perplexity for name in ("simple", "again"))
    assert others == pytest.approx([exact], rel=1e-6)
    assert "--normalizer is for ARPA files and KenLM's binaries" in refused(
        "eval", "-m", tmp_path / "simple", text, "--normalizer", "ccnet"
    )
    assert "does not take it" in refused(
        "train", "lstm", folder / "train.txt", "--normalizer", "ccnet", "-o", tmp_path / "x"
    )


def test_a_binary_of_an_arpa_file_has_the_bits_of_build_binary(folder: Path, data: Path, tmp_path: Path) -> None:
    """KenLM scores from the ARPA file as from its own binary: each logarithm is that of the text, in single precision."""
    kenlm = pytest.importorskip("kenlm")
    ok("convert", folder / "kn3", tmp_path / "kn3.arpa")
    lines = (data / "classic-books.test.txt").read_text(encoding="utf-8").splitlines()
    theirs = kenlm.Model(str(tmp_path / "kn3.arpa"))
    for name, options in {"probing.binary": (), "trie.binary": ("--trie",)}.items():
        ok("convert", tmp_path / "kn3.arpa", tmp_path / name, *options)
        model = kenlm.Model(str(tmp_path / name))
        assert all(list(model.full_scores(line)) == list(theirs.full_scores(line)) for line in lines)
