"""`lmgauge mix` as users and pipes meet it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import ok, refused
from tests.programs import running

import lmgauge
from lmgauge.models.combined.mixture.model import MixtureModel

POSIX = pytest.mark.skipif(os.name == "nt", reason="signals are different on Windows")


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts; two models over the same words, one of them also pruned and as an ARPA file; one over other words."""
    folder = tmp_path_factory.mktemp("cli")
    lines = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")
    for name, part in {"train": lines[:1200], "valid": lines[1200:1400], "test": lines[1400:1600]}.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in part), encoding="utf-8", newline="\n")
    train = ["--order", 3, folder / "train.txt", "-o"]
    ok("train", "modified-kneser-ney", *train, folder / "kn3")
    ok("train", "modified-kneser-ney", "--prune", 1e-4, *train, folder / "pruned")
    ok("train", "witten-bell", "--context", "stream", *train, folder / "stream")
    ok("train", "kneser-ney", *train, folder / "kn.arpa")
    ok("train", "laplace", folder / "test.txt", "-o", folder / "other")
    return folder


def evaluate(*arguments: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ok("eval", "--json", *arguments).stdout)
    return found


# -- mix ----------------------------------------------------------------------------------------------------------------


def test_mix_eval_info_sample(folder: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    told = ok("mix", "-m", folder / "kn3", "-m", folder / "stream", folder / "valid.txt", "-o", mixed)
    assert told.stderr == ""
    assert "held-out perplexity" in told.stdout
    assert "weights by EM in" in told.stdout
    one, other, both = evaluate("-m", folder / "kn3", "-m", folder / "stream", "-m", mixed, folder / "valid.txt")
    assert both["perplexity"] <= min(one["perplexity"], other["perplexity"])
    assert f"{both['perplexity']:,.3f}" in told.stdout
    assert both["context"] == "stream"
    assert "model:mix(mkn3+wb3)@" in both["signature"]
    info = ok("info", mixed).stdout
    assert "mkn3 in component-1" in info
    assert "EM, " in info
    described = json.loads(ok("info", mixed, "--json").stdout)
    assert described["bytes"] == sum(file.stat().st_size for file in mixed.rglob("*") if file.is_file())
    assert [part["label"] for part in described["components"]] == ["mkn3", "wb3"]
    assert len(ok("sample", "-m", mixed, "-n", 3).stdout.splitlines()) == 3
    assert "mix --static makes one of a mixture" in refused("convert", mixed, tmp_path / "mixed.arpa")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mixed"]


def test_mix_as_json_is_what_python_says(folder: Path, tmp_path: Path) -> None:
    from lmgauge.models.combined.mixture.mixing import find_weights

    paths = [folder / "kn3", folder / "pruned"]
    told = json.loads(ok("mix", "-m", paths[0], "-m", paths[1], folder / "valid.txt", "-o", tmp_path / "m", "--json").stdout)
    models, valid = [lmgauge.load_model(path) for path in paths], lmgauge.Corpus.from_files(folder / "valid.txt")
    fit = find_weights(models, None, valid)
    assert [part["weight"] for part in told["components"]] == list(fit.weights)
    assert [part["path"] for part in told["components"]] == [str(path) for path in paths]
    assert told["estimation"]["perplexity"] == fit.perplexity
    assert told["fingerprint"] == lmgauge.load_model(tmp_path / "m").fingerprint


def test_mix_with_an_arpa_file_and_standard_input(folder: Path, tmp_path: Path) -> None:
    arguments = ["mix", "-m", folder / "kn3", "-m", folder / "kn.arpa", "-o", tmp_path / "mixed"]
    assert "'refuse' to" in refused(*arguments, folder / "valid.txt")
    valid = (folder / "valid.txt").read_bytes()
    ok(*arguments, "--reserved", "unk", stdin=valid)
    loaded = lmgauge.load_model(tmp_path / "mixed")
    assert isinstance(loaded, MixtureModel)
    assert loaded.reserved == "unk"
    assert loaded.estimation["events"] == lmgauge.evaluate(folder / "kn3", folder / "valid.txt").events


def test_mix_with_given_weights(folder: Path, tmp_path: Path) -> None:
    models = ["-m", folder / "kn3", "-m", folder / "stream"]
    silent = ok("mix", *models, "--weights", "0.25,0.75", "-o", tmp_path / "a").stdout
    assert "0.2500" in silent
    assert "perplexity" not in silent
    measured = ok("mix", *models, "--weights", "0.25,0.75", folder / "test.txt", "-o", tmp_path / "b").stdout
    perplexity = evaluate("-m", tmp_path / "a", folder / "test.txt")[0]["perplexity"]
    assert f"{perplexity:,.3f}" in measured
    assert "weights given" in measured
    assert lmgauge.load_model(tmp_path / "a").fingerprint == lmgauge.load_model(tmp_path / "b").fingerprint


def test_mix_in_python_is_mix_on_the_command_line(folder: Path, tmp_path: Path) -> None:
    models, valid = [folder / "kn3", folder / "stream"], folder / "valid.txt"
    named = ["-m", models[0], "-m", models[1]]
    given = ["--weights", "0.25,0.75"]
    for i, (options, mixture) in enumerate(
        (
            ([valid], lmgauge.mix(models, valid)),
            (given, lmgauge.mix(models, weights=[0.25, 0.75])),
            ([*given, valid], lmgauge.mix(models, valid, weights=[0.25, 0.75])),
        )
    ):
        ok("mix", *named, *options, "-o", tmp_path / str(i))
        told = lmgauge.load_model(tmp_path / str(i))
        assert isinstance(told, MixtureModel)
        assert (mixture.weights, mixture.fingerprint) == (told.weights, told.fingerprint)
        assert mixture.estimation == told.estimation
    for arguments, message in (
        ({"models": str(models[0]), "held_out": valid}, "a list of two models"),
        ({"models": models[0], "weights": [1.0]}, "a list of two models"),
        ({"models": models}, "or the weights themselves"),
        ({"models": models, "weights": []}, "0 weights for 2 models"),
        ({"models": models, "weights": [0.5, 0.4]}, "sum to 0.9"),
        ({"models": models[:1], "weights": [1.0]}, "two models"),
    ):
        with pytest.raises(lmgauge.base.errors.UsageError, match=message):
            lmgauge.mix(**arguments)  # type: ignore[arg-type]


def test_models_over_different_words(folder: Path, tmp_path: Path) -> None:
    ok("train", "witten-bell", folder / "test.txt", "-o", tmp_path / "other")
    arguments = ["-m", folder / "kn3", "-m", tmp_path / "other", folder / "valid.txt", "-o"]
    printed = ok("mix", *arguments, tmp_path / "mixed").stdout
    assert "where all know the word" in printed
    assert "are words that only some of the models know" in printed
    (result,) = evaluate("-m", tmp_path / "mixed", folder / "valid.txt")
    assert "model:mix(mkn3+wb3,union)@" in result["signature"]
    assert any("words are known to some of its models only" in note for note in result["notes"])
    assert ok("audit", "-m", tmp_path / "mixed", folder / "valid.txt").stdout.splitlines()[1].startswith("# PASS")
    static = ok("mix", *arguments, tmp_path / "static.arpa", "--static").stdout
    assert f"# {tmp_path / 'static.arpa'}: n-grams of order 1, 2, ...: " in static
    (merged,) = evaluate("-m", tmp_path / "static.arpa", folder / "valid.txt")
    assert f"of the mixture {result['perplexity']:,.3f}, static {merged['perplexity']:,.3f} (" in static


def test_a_static_mixture_of_a_mixture_is_that_of_its_models(folder: Path, tmp_path: Path) -> None:
    ok("train", "kneser-ney", "--order", 2, folder / "train.txt", "-o", tmp_path / "kn2")
    parts = ["-m", folder / "pruned", "-m", tmp_path / "kn2"]
    ok("mix", *parts, folder / "valid.txt", "-o", tmp_path / "mixed")
    one = json.loads(ok("mix", *parts, folder / "valid.txt", "--static", "-o", tmp_path / "one", "--json").stdout)
    other = ok("mix", "-m", tmp_path / "mixed", folder / "valid.txt", "--static", "-o", tmp_path / "other", "--json").stdout
    python = lmgauge.mix([folder / "pruned", tmp_path / "kn2"], folder / "valid.txt", static=True)
    assert one["fingerprint"] == json.loads(other)["fingerprint"] == python.model.fingerprint
    assert one["path"] == str(tmp_path / "one")
    assert lmgauge.load_model(tmp_path / "one").fingerprint == one["fingerprint"]
    ok("mix", "-m", tmp_path / "mixed", "--static", "-o", tmp_path / "untold.arpa.gz")
    out = ["--static", "-o", tmp_path / "never"]
    assert "has its weights" in refused("mix", "-m", tmp_path / "mixed", "--weights", "0.5,0.5", *out)
    assert "at least two models, or one mixture" in refused("mix", "-m", folder / "kn3", *out)
    assert "run on across lines" in refused("mix", "-m", folder / "kn3", "-m", folder / "stream", folder / "valid.txt", *out)


def test_mix_says_what_no_model_can(folder: Path, tmp_path: Path) -> None:
    for order in (1, 2):
        ok("train", "mle", "--order", order, folder / "train.txt", "-o", tmp_path / f"mle{order}")
    told = ok("mix", "-m", tmp_path / "mle1", "-m", tmp_path / "mle2", folder / "valid.txt", "-o", tmp_path / "mixed").stdout
    impossible = evaluate("-m", tmp_path / "mixed", folder / "valid.txt")[0]["zero_probability_events"]
    assert impossible > 0
    assert f"{impossible:,} held-out events are impossible to this mixture; perplexity without them" in told


def test_mix_refuses(folder: Path, tmp_path: Path) -> None:
    kn3, text, output = folder / "kn3", folder / "valid.txt", ["-o", tmp_path / "mixed"]
    assert "at least two models" in refused("mix", "-m", kn3, text, *output)
    assert "named twice" in refused("mix", "-m", kn3, "-m", kn3, text, *output)
    assert "no such model" in refused("mix", "-m", kn3, "-m", folder / "nothing", text, *output)
    ok("train", "laplace", "--tokenizer", "character", text, "-o", tmp_path / "letters")
    differ = refused("mix", "-m", kn3, "-m", tmp_path / "letters", text, *output)
    assert f"{tmp_path / 'letters'} cuts text by the tokenizer 'character', {kn3} by 'whitespace'" in differ
    both = ["mix", "-m", kn3, "-m", folder / "stream"]
    assert "sum to 0.9" in refused(*both, "--weights", "0.5,0.4", *output)
    assert "1 weights for 2 models" in refused(*both, "--weights", "1", *output)
    assert "not a list of numbers" in refused(*both, "--weights", "half,half", *output)
    for name in ("m.arpa", "m.arpa.gz", "m.binary"):
        assert "a mixture that is not --static is a folder" in refused(*both, text, "-o", tmp_path / name)
    (tmp_path / "empty.txt").touch()
    assert "no events" in refused(*both, tmp_path / "empty.txt", *output)
    assert "no such file" in refused(*both, folder / "nothing.txt", *output).lower()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    assert "exists and was not written by lmgauge" in refused(*both, text, "-o", tmp_path / "mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.txt", "letters", "mine"]


def test_info_of_weights_that_were_found_in_another_way(folder: Path, tmp_path: Path) -> None:
    parts = [lmgauge.load_model(folder / "kn3"), lmgauge.load_model(folder / "pruned")]
    MixtureModel(parts, [0.5, 0.5], estimation={"by": "hand"}).save(tmp_path / "mixed")
    assert "by hand" in ok("info", tmp_path / "mixed").stdout


def test_a_damaged_mixture_is_refused(folder: Path, tmp_path: Path) -> None:
    ok("mix", "-m", folder / "kn3", "-m", folder / "pruned", "--weights", "0.5,0.5", "-o", tmp_path / "mixed")
    file = tmp_path / "mixed" / "config.json"
    file.write_text(file.read_text().replace('"weight": 0.5', '"weight": 0.6', 1))
    assert "was edited or damaged" in refused("eval", "-m", tmp_path / "mixed", folder / "test.txt")
    file.write_text(file.read_text()[:100])
    assert "cannot be read" in refused("info", tmp_path / "mixed")


@POSIX
def test_interrupted_while_it_reads(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lmgauge", "mix", "-m", str(folder / "kn3"), "-m", str(folder / "pruned")]
    command += ["-o", str(tmp_path / "mixed")]
    with running(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"a line\n" * 40_000)  # more than a pipe holds: it is reading when this returns
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert b"interrupted" in errors
    assert list(tmp_path.iterdir()) == []
