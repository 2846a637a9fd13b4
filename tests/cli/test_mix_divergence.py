"""`lmgauge mix` and `lmgauge divergence` as users and pipes meet them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import TERMINAL, ok, refused, run
from tests.programs import running

import lmgauge
from lmgauge.models.mixture.model import MixtureModel

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
    assert "only n-gram models can be converted to ARPA" in refused("convert", mixed, tmp_path / "mixed.arpa")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mixed"]


def test_mix_as_json_is_what_python_says(folder: Path, tmp_path: Path) -> None:
    from lmgauge.models.mixture.weights import estimate_weights

    paths = [folder / "kn3", folder / "pruned"]
    told = json.loads(ok("mix", "-m", paths[0], "-m", paths[1], folder / "valid.txt", "-o", tmp_path / "m", "--json").stdout)
    fit = estimate_weights([lmgauge.load_model(path) for path in paths], lmgauge.Corpus.from_files(folder / "valid.txt"))
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
        with pytest.raises(lmgauge.UsageError, match=message):
            lmgauge.mix(**arguments)  # type: ignore[arg-type]


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
    differ = refused("mix", "-m", kn3, "-m", folder / "other", text, *output)
    assert f"{folder / 'other'} and {kn3} have different vocabularies" in differ
    assert "--words" in differ
    both = ["mix", "-m", kn3, "-m", folder / "stream"]
    assert "sum to 0.9" in refused(*both, "--weights", "0.5,0.4", *output)
    assert "1 weights for 2 models" in refused(*both, "--weights", "1", *output)
    assert "not a list of numbers" in refused(*both, "--weights", "half,half", *output)
    for name in ("m.arpa", "m.arpa.gz"):
        assert "a mixture is a folder" in refused(*both, text, "-o", tmp_path / name)
    (tmp_path / "empty.txt").touch()
    assert "no events" in refused(*both, tmp_path / "empty.txt", *output)
    assert "no such file" in refused(*both, folder / "nothing.txt", *output).lower()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    assert "exists and was not written by lmgauge" in refused(*both, text, "-o", tmp_path / "mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.txt", "mine"]


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
        process.stdin.write(b"a line\n")
        process.stdin.flush()
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert b"interrupted" in errors
    assert list(tmp_path.iterdir()) == []


# -- divergence ---------------------------------------------------------------------------------------------------------


def test_divergence_as_people_and_as_programs_read_it(folder: Path) -> None:
    arguments = ["divergence", folder / "kn3", folder / "pruned", folder / "test.txt", "--events", 300]
    shown = ok(*arguments).stdout
    found = json.loads(ok(*arguments, "--json").stdout)
    assert "A = kn3, B = pruned" in shown
    assert f"{found['events']} of {found['total_events']:,} events" in shown
    for name in ("KL(A || B), nats", "Jensen-Shannon, bits", "top-5 overlap, %", "perplexity of B / A", "99.9 %, nats"):
        assert name in shown
    assert f"{found['kl_ab_nats']['value']:.6f}" in shown
    assert f"{100 * found['top_1_agreement']['value']:.2f}" in shown
    assert found["signature"] in shown
    narrow = run(*arguments, env=TERMINAL | {"COLUMNS": "80"}).stdout
    assert max(map(len, narrow.splitlines()[:-1])) <= 80
    assert narrow.splitlines()[-1] == found["signature"]
    assert (
        0 < found["kl_ab_nats"]["interval"]["low"] < found["kl_ab_nats"]["value"] < found["kl_ab_nats"]["interval"]["high"]
    )
    assert set(found["top_k_overlap"]) == {"1", "5", "10"}
    assert json.loads(ok(*arguments, "--json", "--threads", 1).stdout) == found


def test_divergence_of_everything(folder: Path) -> None:
    arguments = ["divergence", folder / "kn3", folder / "stream", folder / "test.txt", "--exhaustive", "--top-k", "3,2"]
    shown = ok(*arguments).stdout
    found = json.loads(ok(*arguments, "--json").stdout)
    one, other = evaluate("-m", folder / "kn3", "-m", folder / "stream", folder / "test.txt")
    assert found["events"] == found["total_events"] == one["events"]
    assert f"all {one['events']:,} events, all 200 segments" in shown
    assert [found["perplexity_a"]["value"], found["perplexity_b"]["value"]] == [one["perplexity"], other["perplexity"]]
    assert set(found["top_k_overlap"]) == {"2", "3"}
    assert found["log_probability_change_nats"]["value"] == pytest.approx(one["cross_entropy"] - other["cross_entropy"])


def test_divergence_from_itself_and_from_its_arpa_file(folder: Path, tmp_path: Path) -> None:
    same = ok("divergence", folder / "kn3", folder / "kn3", folder / "test.txt", "--events", 100).stdout
    assert "furthest apart" not in same
    assert "100.00" in same
    ok("convert", folder / "kn3", tmp_path / "kn3.arpa")
    arguments = [folder / "kn3", tmp_path / "kn3.arpa", folder / "test.txt", "--events", 100, "--json"]
    found = json.loads(ok("divergence", *arguments).stdout)
    assert found["kl_ab_nats"]["value"] == pytest.approx(0, abs=1e-9)
    assert found["top_1_agreement"]["value"] == 1.0
    assert found["perplexity_ratio"]["value"] == pytest.approx(1, rel=1e-5)


def test_divergence_shows_what_is_infinite_or_uncertain(folder: Path, tmp_path: Path) -> None:
    ok("train", "mle", "--order", 2, folder / "train.txt", "-o", tmp_path / "mle")
    shown = ok("divergence", folder / "kn3", tmp_path / "mle", folder / "test.txt", "--events", 100).stdout
    assert "KL(A || B) is infinite at" in shown
    assert "where finite, nats" in shown
    assert "∞" in shown
    assert "∞ – ∞" not in shown
    (tmp_path / "line.txt").write_text("First Citizen:\n")
    assert "one segment: no interval" in ok("divergence", folder / "kn3", folder / "pruned", tmp_path / "line.txt").stdout


def test_divergence_refuses(folder: Path, tmp_path: Path) -> None:
    kn3, text = folder / "kn3", folder / "test.txt"
    assert "different vocabularies" in refused("divergence", kn3, folder / "other", text)
    assert "no such model" in refused("divergence", kn3, folder / "nothing", text)
    assert "0" in refused("divergence", kn3, folder / "pruned", text, "--events", 0)
    assert "whole numbers" in refused("divergence", kn3, folder / "pruned", text, "--top-k", "1,x")
    assert "whole numbers from 1" in refused("divergence", kn3, folder / "pruned", text, "--top-k", "0")
    for order in ((text, kn3, folder / "pruned"), (kn3, text, folder / "pruned")):
        assert f"{folder / 'pruned'} is a model, not a text: the two models come first" in refused("divergence", *order)
    assert "not an ARPA or GGUF file" in refused("divergence", text, kn3)
    (tmp_path / "empty.txt").touch()
    assert "no event" in refused("divergence", kn3, folder / "pruned", tmp_path / "empty.txt")
    assert "Missing argument" in refused("divergence", kn3)


def test_divergence_in_python_takes_one_rank_or_several(folder: Path) -> None:
    models = folder / "kn3", folder / "pruned"
    for top_k in (2, (2,)):
        found = lmgauge.divergence(*models, folder / "test.txt", events=50, top_k=top_k)  # type: ignore[arg-type]
        assert found.top_k_overlap.keys() == {2}
    with pytest.raises(lmgauge.UsageError, match="whole numbers from 1"):
        lmgauge.divergence(*models, folder / "test.txt", top_k=0)
