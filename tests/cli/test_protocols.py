"""`lmgauge eval --protocol`: one protocol as a run, and what cannot be followed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.models.network.conftest import TEXT, TOKENIZERS, network

import lmgauge


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of 48 positions, an n-gram model, and a text."""
    folder = tmp_path_factory.mktemp("protocols")
    own = TOKENIZERS["byte-level"]()
    network("gpt2", len(own)).save_pretrained(folder / "gpt2")
    own.save_pretrained(folder / "gpt2")
    (folder / "text.txt").write_text(TEXT * 3, encoding="utf-8")
    lmgauge.train("laplace", folder / "text.txt", order=1).save(folder / "laplace1")
    return folder


def test_a_run_follows_a_protocol_and_says_so_wherever_it_is_shown(folder: Path) -> None:
    run, model, text = folder / "run", folder / "gpt2", folder / "text.txt"
    printed = ok("eval", "-m", model, text, "--protocol", "llama.cpp", "--context", 40, "-o", run, "-v").output
    by_python = lmgauge.evaluate(model, text, scoring=lmgauge.settings.ScoringOptions(protocol="llama.cpp", context=40))
    assert f"as llama-perplexity prints it: PPL {by_python.perplexity:.4f}" in printed
    assert "protocol llama.cpp scores" in printed
    assert "context:sentence,39/40,first=unscored,end=none,protocol=llama.cpp" in printed
    content = json.loads((run / "evaluation.json").read_text())
    assert content["evaluation"]["source_figures"] == by_python.source_figures
    assert content["settings"]["protocol"] == "llama.cpp"
    ok("report", run, "-o", folder / "page.html")
    assert "protocol llama.cpp" in (folder / "page.html").read_text(encoding="utf-8")
    assert "leaves out the rest" in ok("audit", run).output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--protocol", "mine"), "'mine' is not one of"),
        (("--protocol", "gptq", "--stride", 4), "stride: protocol gptq decides that"),
        (("--protocol", "gptq", "--first-token", "bos"), "first-token: protocol gptq decides that"),
        (("--protocol", "gptq", "--end", "none"), "end: protocol gptq decides that"),
        (("--protocol", "gptq", "--context", "stream,40"), "context stream or sentence: protocol gptq decides that"),
        (("--protocol", "gptq", "--by-group"), "has no groups"),
        (("--protocol", "llama.cpp"), "windows of 512 tokens, and this model positions for 48"),
        (("--protocol", "gptq", "--contexts", "8,16"), "protocol gptq"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(folder: Path, options: tuple[object, ...], words: str) -> None:
    assert words in refused("eval", "-m", folder / "gpt2", folder / "text.txt", *options)


def test_models_that_show_no_windows_cannot_follow(folder: Path) -> None:
    laplace, text = folder / "laplace1", folder / "text.txt"
    assert "protocol is for neural models" in refused("eval", "-m", laplace, text, "--protocol", "gptq")
    both = ("-m", folder / "gpt2", "-m", laplace)
    assert "laplace1 cannot follow it" in refused("eval", *both, text, "--protocol", "gptq")
    assert "bos-each-window is for neural models" in refused("eval", "-m", laplace, text, "--bos-each-window")
