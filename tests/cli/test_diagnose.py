"""`lmgauge diagnose` as users meet it: what it shows at any width, what it refuses, and how it ends."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused, run
from tests.programs import running

import lmgauge
from lmgauge import Corpus


def printed(*arguments: object) -> str:
    return ok(*arguments).stdout


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training text, a test text, a model of each kind, and their runs."""
    folder = tmp_path_factory.mktemp("diagnose")
    lines = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")
    for name, part in {"train": lines[:600], "test": [*lines[600:700], "unheard-of words \x1b[31m{x}"]}.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in part), encoding="utf-8", newline="\n")
    for name, kind in (("kn2", "kneser-ney"), ("mle2", "mle")):
        lmgauge.train(kind, folder / "train.txt", order=2).save(folder / name)  # type: ignore[arg-type]
        lmgauge.evaluate(folder / name, folder / "test.txt", output=folder / f"run-{name}")
    return folder


# -- what it shows ------------------------------------------------------------------------------------------------------


def test_everything_in_a_readable_order(folder: Path) -> None:
    shown = printed("diagnose", folder / "run-kn2", "--train", folder / "train.txt", "-m", folder / "kn2")
    titles = [
        "what the number is worth", "by class", "by occurrences in training", "by longest n-gram seen in training",
        "by kind of event", "by matched order", "by position in the segment", "by length of the segment",
        "tokens that cost most in total", "events with the least probability", "segments furthest above", "unseen words",
        "calibration", "how sure it is",
    ]  # fmt: skip
    places = [re.search(f"^# {re.escape(title)}", shown, re.M) for title in titles]
    assert all(places)
    assert [place.start() for place in places if place] == sorted(place.start() for place in places if place)
    assert re.search(r"^kn2\t≥ \d\.\d{3}\t", shown, re.M)
    assert re.search(r"^gzip -9\t\d\.\d{3}\t(–\t)?\d\.\d\d ×\t", shown, re.M)
    assert "\x1b" not in shown


def test_what_is_missing_is_said(folder: Path) -> None:
    shown = printed("diagnose", folder / "run-kn2")
    assert "need the training text: --train TRAIN" in shown
    assert "needs the model's distributions: -m MODEL" in shown
    assert "calibration:" not in shown


def test_training_text_that_holds_the_test_is_told(folder: Path, tmp_path: Path) -> None:
    words = "% of the runs of 5 words are in the training text, too"
    assert words not in printed("diagnose", folder / "run-kn2", "--train", folder / "train.txt", "--only", "slices")
    both = tmp_path / "both.txt"
    both.write_bytes((folder / "train.txt").read_bytes() + (folder / "test.txt").read_bytes())
    shown = printed("diagnose", folder / "run-kn2", "--train", both, "--only", "slices")
    assert f"100 {words}" in shown
    assert "lmgauge overlap TRAIN TEST" in shown


def test_events_of_probability_zero_are_shown_beside_the_slices(folder: Path) -> None:
    shown = printed("diagnose", folder / "run-mle2", "-m", folder / "mle2")
    assert re.search(r"events\tbytes\tbits/byte\tperplexity\tp = 0\tppl without", shown)
    assert "events of probability zero, the first" in shown
    assert re.search(r"^0\t[\d,]+\t0\t\S+\t\d+\t0\.0\t∞$", shown, re.M)
    assert re.search(r"^mle2\t∞\t\tthe model", shown, re.M)


def test_json_has_full_precision_and_all_parts(folder: Path) -> None:
    arguments = "diagnose", folder / "run-kn2", "-m", folder / "kn2", "--contexts", 20, "--json"
    found = json.loads(printed(*arguments))
    evaluation = json.loads((folder / "run-kn2" / "evaluation.json").read_text())["evaluation"]
    assert found["evaluation"]["bits_per_byte"] == evaluation["bits_per_byte"]
    assert found["evaluation"]["signature"] == evaluation["signature"]
    assert found["calibration"]["contexts"] == 20
    assert found["calibration"]["seed"] == 12345
    rows = {row["slice"]: row for row in found["slices"][1]["rows"]}
    assert set(rows["word"]) >= {"events", "bytes", "bits", "share_of_bits", "bits_per_byte", "perplexity"}
    assert found == json.loads(printed(*arguments, "--threads", 1))
    infinite = json.loads(printed("diagnose", folder / "run-mle2", "--json"))
    assert infinite["slices"][1]["rows"][0]["bits"] == "inf"


def test_exhaustive_looks_at_every_context(folder: Path) -> None:
    found = json.loads(
        printed("diagnose", folder / "run-kn2", "-m", folder / "kn2", "--exhaustive", "--only", "calibration", "--json")
    )
    assert found["calibration"]["contexts"] == found["evaluation"]["events"]
    assert found["calibration"]["seed"] is None
    assert (found["slices"], found["baselines"]) == ([], [])


def test_another_place_of_the_text(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "moved.txt").write_bytes((folder / "test.txt").read_bytes())
    assert "by class" in printed("diagnose", folder / "run-kn2", "--text", tmp_path / "moved.txt", "--only", "slices")


@pytest.mark.skipif(os.name == "nt", reason="terminals are different on Windows")
@pytest.mark.parametrize("width", [40, 120])
def test_lines_fit_the_terminal(folder: Path, width: int) -> None:
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "lmgauge", "diagnose", str(folder / "run-kn2"), "-m", str(folder / "kn2")]
    environment = os.environ | {"COLUMNS": str(width), "NO_COLOR": "1", "TERM": "xterm"}
    with running(command, stdout=follower, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(follower)
        shown = io.BytesIO()
        while True:
            try:
                part = os.read(leader, 1 << 16)
            except OSError:  # Linux says so that the other end is closed
                break
            if not part:
                break
            shown.write(part)
        os.close(leader)
        assert process.wait() == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue().decode()).replace("\r", "").split("\n")
    assert len(lines) > 50
    # A signature is never broken, so that it can be copied.
    assert [line for line in lines if len(line) > width and not line.startswith("ppl|")] == []


# -- what it refuses ----------------------------------------------------------------------------------------------------


def test_another_model_is_refused(folder: Path) -> None:
    assert "was made by the model" in refused("diagnose", folder / "run-kn2", "-m", folder / "mle2")


def test_another_text_is_refused(folder: Path) -> None:
    assert "scored another text" in refused("diagnose", folder / "run-kn2", "--text", folder / "train.txt")


def test_no_run_is_refused(folder: Path) -> None:
    assert "no such run" in refused("diagnose", folder / "nothing")
    assert "kn2 is a model: score a text with it first: `lmgauge eval -m" in refused("diagnose", folder / "kn2")


def test_training_text_without_the_text_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"segment": 0, "logprob": -1.0}\n')
    assert "name it (--text)" in refused("diagnose", tmp_path / "t.jsonl", "--train", folder / "train.txt")


def test_a_run_that_was_edited_is_refused(folder: Path, tmp_path: Path) -> None:
    lmgauge.evaluate(folder / "kn2", folder / "test.txt", output=tmp_path / "run")
    file = tmp_path / "run" / "evaluation.json"
    file.write_text(file.read_text().replace('"tokens": ', '"tokens": 1'))
    assert "was changed after it was written" in refused("diagnose", tmp_path / "run")


def test_bad_options_are_refused(folder: Path) -> None:
    assert "is not one of" in run("diagnose", folder / "run-kn2", "--only", "nothing").stderr
    assert run("diagnose", folder / "run-kn2", "--contexts", 0).exit_code == 2


def test_a_corpus_of_one_segment_has_no_worst_one(tmp_path: Path) -> None:
    model = lmgauge.train("laplace", Corpus.from_strings(["a b"]), order=1)
    model.save(tmp_path / "m")
    (tmp_path / "t.txt").write_text("a b c\n")
    lmgauge.evaluate(tmp_path / "m", tmp_path / "t.txt", output=tmp_path / "run")
    shown = printed("diagnose", tmp_path / "run")
    assert "segments furthest above" not in shown
