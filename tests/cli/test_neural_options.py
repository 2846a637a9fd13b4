"""Neural models on the command line: what each prediction sees, killed runs, and models of other kinds beside them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.commands import ok, refused
from tests.cli.commands import run as run_command
from tests.programs import running

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.models.network.conftest import TOKENIZERS, network  # noqa: E402

from lmgauge import evaluate as score  # noqa: E402
from lmgauge import load_model  # noqa: E402
from lmgauge.settings import ScoringOptions  # noqa: E402

POSIX = pytest.mark.skipif(os.name == "nt", reason="signals are different on Windows")
WORDS = ["the", "a", "cat", "dog", "sees", "hears", "it", "runs", "and", "then"]


def sentences(count: int, seed: int) -> str:
    random = np.random.default_rng(seed)
    return "".join(" ".join(random.choice(WORDS, int(random.integers(2, 9)))) + "\n" for _ in range(count))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts; two checkpoints with one tokenizer; an n-gram model and a tiny LSTM over the same words."""
    from lmgauge import train_neural
    from lmgauge.text.documents import Corpus

    folder = tmp_path_factory.mktemp("cli")
    for name, count in {"train": 80, "valid": 12, "test": 12, "long": 200}.items():
        (folder / f"{name}.txt").write_text(sentences(count, len(name)), encoding="utf-8", newline="\n")
    own = TOKENIZERS["byte-level"]()
    for kind in ("gpt2", "llama"):
        network(kind, len(own)).save_pretrained(folder / kind)
        own.save_pretrained(folder / kind)
    ok("train", "modified-kneser-ney", "--order", 2, folder / "train.txt", "-o", folder / "kn2")
    sizes: dict[str, Any] = {"embedding_size": 8, "hidden_size": 8, "batch_size": 4, "steps": 5, "epochs": 2}
    train_neural(
        "lstm",
        Corpus.from_files(folder / "train.txt"),
        output=folder / "lstm",
        threads=1,
        device="cpu",
        learning_rate=1.0,
        context="sentence",
        **sizes,
    )
    return folder


def evaluate(*arguments: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ok("eval", "--threads", 1, "--json", *arguments).stdout)
    return found


# -- options ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "context"),
    [
        ((), "sentence,48/48,end=newline"),
        (("--context", 16), "sentence,16/16,end=newline"),
        (("--context", 16, "--stride", 4), "sentence,16/4,end=newline"),
        (("--context", "stream"), "stream,48/48,end=newline"),
        (("--context", "stream,32", "--stride", 16), "stream,32/16,end=newline"),
        (("--first-token", "uniform"), "sentence,48/48,first=uniform,end=newline"),
        (("--first-token", "unscored", "--end", "none"), "sentence,48/48,first=unscored,end=none"),
        (("--end", "eos"), "sentence,48/48"),
        (("--kv-cache", "fp8_e4m3"), "sentence,48/48,end=newline,kv_cache=fp8_e4m3"),
    ],
)
def test_signatures_show_what_was_chosen(options: tuple[object, ...], context: str, folder: Path) -> None:
    (result,) = evaluate("-m", folder / "gpt2", folder / "test.txt", *options)
    assert f"context:{context}|" in result["signature"]
    assert result["context"] == context
    text = (folder / "test.txt").read_text()
    assert result["bytes"] == len(text) - (text.count("\n") if "none" in options else 0)
    assert result["sentence_ends"] == (12 if "eos" in options else 0)


@pytest.mark.usefixtures("bfloat16_products")
def test_precision_is_part_of_the_model(folder: Path) -> None:
    found = {
        dtype: evaluate("-m", folder / "gpt2", folder / "test.txt", "--dtype", dtype)[0]
        for dtype in ("float32", "bfloat16", "auto")
    }
    assert found["float32"]["signature"] == found["auto"]["signature"] != found["bfloat16"]["signature"]
    assert found["bfloat16"]["cross_entropy"] == pytest.approx(found["float32"]["cross_entropy"], rel=0.01)


def test_batches_and_threads_change_nothing(folder: Path) -> None:
    one, other = (
        evaluate("-m", folder / "gpt2", folder / "test.txt", "--batch-tokens", tokens)[0] for tokens in (1, 10_000)
    )
    assert one["signature"] == other["signature"]
    assert one["cross_entropy"] == pytest.approx(other["cross_entropy"], abs=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--context", "0"), "context must be a whole number, 1 or more; got 0"),
        (("--context", "many"), "give a number of tokens, sentence or stream"),
        (("--context", ""), "give a number of tokens, sentence or stream"),
        (("--context", "-5"), "give a number of tokens, sentence or stream"),
        (("--context", "49"), "positions for 48 tokens"),
        (("--context", "8", "--stride", "9"), "stride 9: longer than the context (8)"),
        (("--stride", "0"), "--stride"),
        (("--first-token", "none"), "--first-token"),
        (("--end", "dot"), "--end"),
        (("--dtype", "float16"), "--dtype"),
        (("--device", "cuda:99"), "device 'cuda:99': cannot be used here"),
        (("--device", "abacus"), "device 'abacus': cannot be used here"),
        (("--batch-tokens", "0"), "--batch-tokens"),
    ],
)
def test_bad_values(options: tuple[str, ...], message: str, folder: Path) -> None:
    assert message in refused("eval", "-m", folder / "gpt2", folder / "test.txt", *options)


def test_bad_models(folder: Path, tmp_path: Path) -> None:
    text = folder / "test.txt"
    assert "no such model" in refused("eval", "-m", "nobody/nothing", text)
    assert "no such model" in refused("eval", "-m", tmp_path / "nothing", text)
    broken = Path(shutil.copytree(folder / "gpt2", tmp_path / "broken"))
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    assert "cannot be loaded" in refused("eval", "-m", broken, text)
    weights.unlink()
    assert "no weights" in refused("info", broken)
    (tmp_path / "empty.txt").touch()
    assert "nothing to evaluate" in refused("eval", "-m", folder / "gpt2", tmp_path / "empty.txt")


def test_models_trained_here_end_lines_as_they_learned_to(folder: Path) -> None:
    (result,) = evaluate("-m", folder / "lstm", folder / "test.txt")
    assert result["sentence_ends"] == 12
    assert "|context:sentence|" in result["signature"]
    assert "trained to end lines with </s>" in refused(
        "eval", "-m", folder / "lstm", folder / "test.txt", "--end", "newline"
    )


# -- run folders --------------------------------------------------------------------------------------------------------


def test_a_run_folder_keeps_what_was_chosen(folder: Path, tmp_path: Path) -> None:
    options = ["--context", "stream,16", "--stride", 8, "--first-token", "bos", "--end", "newline"]
    (shown,) = evaluate("-m", folder / "gpt2", folder / "test.txt", "-o", tmp_path / "run", *options)
    content = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert content["evaluation"]["signature"] == shown["signature"]
    told = {name: content["settings"][name] for name in ("context", "stream", "stride", "first_token", "end", "dtype")}
    assert told == {"context": 16, "stream": True, "stride": 8, "first_token": "bos", "end": "newline", "dtype": "auto"}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["evaluation.json", "scores.parquet"]
    scoring = ScoringOptions(context=16, stream=True, stride=8, first_token="bos", end="newline")
    score(folder / "gpt2", folder / "test.txt", output=tmp_path / "named", scoring=scoring)
    loaded = load_model(folder / "gpt2", scoring)
    score(loaded, folder / "test.txt", output=tmp_path / "gpt2")
    from_python = [tmp_path / "named" / "evaluation.json", tmp_path / "gpt2" / "evaluation.json"]
    assert all(json.loads(path.read_text())["settings"] == content["settings"] for path in from_python)


def start(folder: Path, run: Path) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """An evaluation that takes its time: a line at a time."""
    command = [sys.executable, "-m", "lmgauge", "eval", "-m", folder / "gpt2", folder / "long.txt", "-o", run]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    slowly = ["--batch-tokens", "1", "--context", "24", "--stride", "1", "--threads", "1"]
    return running([*command, *slowly], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def wait_for_scores(process: subprocess.Popen[bytes], file: Path, size: int) -> None:
    """Until so many bytes of finished work are there."""
    for _ in range(24_000):
        if file.exists() and file.stat().st_size > size:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError("no finished work after four minutes")


@POSIX
def test_interrupted_then_killed_then_done(folder: Path, tmp_path: Path) -> None:
    run, kept = tmp_path / "run", tmp_path / ".run.unfinished" / "0.scores"
    options = ["-m", folder / "gpt2", folder / "long.txt", "--context", 24, "--stride", 1]
    with start(folder, run) as process:
        wait_for_scores(process, kept, 2_000)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    *slow, kept_line, interrupted_line = (line for line in errors.split(b"\n") if line)
    assert all(line.endswith(b" s)") for line in slow)  # what a busy machine says after ten seconds
    assert kept_line.startswith(b"lmgauge: ")
    assert kept_line.endswith(b"events are scored; the same command resumes there")
    assert interrupted_line.startswith(b"lmgauge: interrupted")
    assert not run.exists()
    first = kept.stat().st_size
    assert first > 2_000

    with start(folder, run) as process:
        wait_for_scores(process, kept, first + 2_000)
    assert not run.exists()

    resumed = ok("eval", "--json", "--threads", 1, *options, "-o", run)
    told = int(resumed.stderr.removeprefix("lmgauge: ").split(" events")[0].replace(",", ""))
    assert "events had been scored before the last run was interrupted" in resumed.stderr
    (whole,) = evaluate(*options, "--threads", 1)
    (found,) = json.loads(resumed.stdout)
    assert 200 < told < found["events"]
    assert found["signature"] == whole["signature"]
    assert found["events"] == whole["events"]
    assert found["cross_entropy"] == pytest.approx(whole["cross_entropy"], abs=1e-6)
    again = ok("eval", "--json", "--threads", 1, *options, "-o", run)  # nothing is taken twice
    assert again.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["run"], "something was left beside the run folder"


@POSIX
def test_a_run_that_failed_to_be_written_has_not_lost_its_scores(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full at the very end: the scores are there for the next run."""
    from lmgauge.base import files

    options = ["eval", "-m", folder / "gpt2", folder / "test.txt", "-o", tmp_path / "run"]

    replace = os.replace

    def full(source: object, target: object) -> None:
        if Path(str(target)).name == "run":
            raise OSError(28, "No space left on device")
        replace(str(source), str(target))

    with monkeypatch.context() as patched:
        patched.setattr(files.os, "replace", full)
        assert "disk is full" in refused(*options)
    assert not (tmp_path / "run").exists()
    assert "events had been scored before" in ok(*options).stderr


def test_two_models_have_finished_work_of_their_own(folder: Path, tmp_path: Path) -> None:
    both = evaluate("-m", folder / "gpt2", "-m", folder / "llama", folder / "test.txt", "-o", tmp_path / "runs")
    alone = [evaluate("-m", folder / kind, folder / "test.txt")[0] for kind in ("gpt2", "llama")]
    assert [one["cross_entropy"] for one in both] == [one["cross_entropy"] for one in alone]
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["gpt2", "llama"]
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_model_that_kept_its_scores_goes_on_to_another_text(folder: Path, tmp_path: Path) -> None:
    """In Python a model outlives the run whose folder it filled: its file is closed, and none of its scores are taken."""
    import lmgauge

    model = load_model(folder / "gpt2")
    fresh = lmgauge.evaluate(load_model(folder / "gpt2"), folder / "valid.txt").cross_entropy
    lmgauge.evaluate(model, folder / "test.txt", output=tmp_path / "run")
    assert lmgauge.evaluate(model, folder / "valid.txt").cross_entropy == fresh
    asked: list[int] = []
    model.progress = asked.append  # type: ignore[attr-defined]
    lmgauge.evaluate(model, folder / "test.txt")
    assert sum(asked) > 0
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


# -- beside other models ------------------------------------------------------------------------------------------------


def test_neural_and_ngram_models_in_one_table(folder: Path, tmp_path: Path) -> None:
    names = ("gpt2", "kn2", "lstm")
    models = [part for name in names for part in ("-m", folder / name)]
    found = evaluate(*models, folder / "test.txt", "-o", tmp_path / "runs", "--context", 24)
    assert [one["model"] for one in found] == list(names)
    assert found[1]["events"] == found[2]["events"] < found[0]["events"]
    assert len({one["bytes"] for one in found}) == 1
    shown = ok("eval", *models, folder / "test.txt").stdout
    for name in names:
        assert name in shown
    told = ok("compare", tmp_path / "runs" / "kn2", tmp_path / "runs" / "lstm").stdout
    assert "not comparable" not in told.split("\n")[0].lower()
    other = json.loads(ok("compare", "--json", tmp_path / "runs" / "gpt2", tmp_path / "runs" / "lstm").stdout)
    assert other


def test_mixture_of_an_lstm_and_an_ngram_model(folder: Path, tmp_path: Path) -> None:
    models = ["-m", folder / "lstm", "-m", folder / "kn2"]
    told = json.loads(ok("mix", *models, folder / "valid.txt", "-o", tmp_path / "mixed", "--json", "--threads", 1).stdout)
    assert load_model(tmp_path / "mixed").fingerprint == told["fingerprint"]
    one, other, both = evaluate(*models, "-m", tmp_path / "mixed", folder / "valid.txt")
    assert both["perplexity"] <= min(one["perplexity"], other["perplexity"]) + 1e-6
    assert both["context"] == "sentence"
    assert len(ok("sample", "-m", tmp_path / "mixed", "-n", 2).stdout.splitlines()) == 2
    assert ok("info", tmp_path / "mixed").stdout


@pytest.mark.usefixtures("bfloat16_products")
@pytest.mark.parametrize(
    "options",
    [("--dtype", "bfloat16"), ("--context", "16", "--stride", "8"), ("--end", "none"), ("--first-token", "uniform")],
)
def test_mixtures_of_neural_models_remember_how_they_score(options: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    """What was chosen when they were mixed is what they are when they are loaded; it cannot be chosen again."""
    models = ["-m", folder / "gpt2", "-m", folder / "llama", "--weights", "0.5,0.5"]
    told = json.loads(ok("mix", *models, "-o", tmp_path / "mixed", "--json", *options).stdout)
    assert load_model(tmp_path / "mixed").fingerprint == told["fingerprint"]
    assert evaluate("-m", tmp_path / "mixed", folder / "valid.txt")
    assert f"{options[0]} is for neural models" in refused("eval", "-m", tmp_path / "mixed", folder / "valid.txt", *options)


def test_options_for_others_are_no_damage_to_a_mixture(folder: Path, tmp_path: Path) -> None:
    ok("mix", "-m", folder / "gpt2", "-m", folder / "llama", "--weights", "0.5,0.5", "-o", tmp_path / "mixed")
    arguments = ["eval", "-m", tmp_path / "mixed", "-m", folder / "gpt2", folder / "valid.txt", "--context", 16]
    found = run_command(*arguments)
    assert found.exit_code == 0 or "exchanged" not in found.stderr, found.stderr


@pytest.mark.parametrize("end", ["none", "newline"])
def test_bytes_that_a_mixture_does_not_score_are_not_counted(end: str, folder: Path, tmp_path: Path) -> None:
    """Its components have windows of 48 and of 64 tokens, and the same ends of lines."""
    models = ["-m", folder / "gpt2", "-m", folder / "llama"]
    ok("mix", *models, "--weights", "0.5,0.5", "-o", tmp_path / "mixed", "--end", end)
    one, other, both = evaluate(*models, "-m", tmp_path / "mixed", folder / "valid.txt", "--end", end)
    assert one["bytes"] == other["bytes"] == both["bytes"]
    assert f"end={end}" in both["signature"]


def test_divergence(folder: Path, tmp_path: Path) -> None:
    def apart(a: str, b: str, *options: object) -> dict[str, Any]:
        arguments = ["divergence", folder / a, folder / b, folder / "test.txt", "--events", 20, "--json", *options]
        of_candidates: list[dict[str, Any]] = json.loads(ok(*arguments).stdout)
        assert of_candidates[0]["events"] >= 20
        return of_candidates[0]

    assert apart("gpt2", "llama", "--context", 16)["kl_ab_nats"]["value"] > 0
    shutil.copytree(folder / "lstm", tmp_path / "copy")
    assert apart("lstm", str(tmp_path / "copy"))["kl_ab_nats"]["value"] == pytest.approx(0, abs=1e-9)
    assert apart("kn2", "lstm")["kl_ab_nats"]["value"] > 0
    # No text goes on with its beginning: what an n-gram model thinks impossible is so for a network trained here.
    # The network leaves a little to `<s>`, which the n-gram model knows to be impossible.
    assert apart("lstm", "kn2")["kl_ab_nats"]["value"] == "inf"
    assert isinstance(apart("kn2", "lstm")["kl_ab_nats"]["value"], float)


def test_one_checkpoint_in_two_number_formats(folder: Path, tmp_path: Path) -> None:
    names = [f"{folder / 'gpt2'}:float32", f"{folder / 'gpt2'}:bfloat16"]
    (item,) = json.loads(ok("divergence", *names, folder / "test.txt", "--json").stdout)
    assert (item["a"], item["b"]) == ("gpt2:float32", "gpt2:bfloat16")
    assert 0 < item["kl_ab_nats"]["value"] < 0.01
    assert item["floor"]["kl_ab_nats"]["value"] < item["kl_ab_nats"]["value"]
    assert item["fingerprints"]["a"] == load_model(folder / "gpt2", dtype="float32").fingerprint
    assert item["fingerprints"]["b"] == load_model(folder / "gpt2", dtype="bfloat16").fingerprint
    shown = ok("divergence", names[0], names[1], folder / "llama", folder / "test.txt").stdout
    assert "gpt2:bfloat16 is closest to gpt2:float32" in shown
    assert "noise floor" in shown
    one, other = json.loads(ok("eval", "-m", names[0], "-m", names[1], folder / "test.txt", "--json", "-o", tmp_path).stdout)
    assert one["perplexity"] != other["perplexity"]
    assert json.loads((tmp_path / "gpt2_bfloat16/evaluation.json").read_text())["settings"]["dtype"] == "bfloat16"
    assert "for checkpoints of networks" in refused("eval", "-m", f"{folder / 'kn2'}:float32", folder / "test.txt")
    assert "no such model" in refused("eval", "-m", "C:float32", folder / "test.txt")


def test_sample(folder: Path) -> None:
    one = ok("sample", "-m", folder / "lstm", "-n", 2, "--max-tokens", 20, "--seed", 5).stdout
    assert one == ok("sample", "-m", folder / "lstm", "-n", 2, "--max-tokens", 20, "--seed", 5).stdout
    assert set(one.split()) <= set(WORDS)
    assert ok("sample", "-m", folder / "gpt2", "-n", 1, "--max-tokens", 50, "--prompt", "the cat").stdout.startswith(
        "the cat"
    )
    assert "positions for 48" in refused("sample", "-m", folder / "gpt2", "--context", 50)


@pytest.mark.parametrize("kind", ["gpt2", "lstm"])
def test_info(kind: str, folder: Path) -> None:
    told = json.loads(ok("info", folder / kind, "--json").stdout)
    assert told["fingerprint"] == load_model(folder / kind).fingerprint
    assert told["bytes"] == sum(file.stat().st_size for file in (folder / kind).iterdir())
    assert told["parameters"] > 1000
    assert told["vocabulary_size"] == len(load_model(folder / kind).vocabulary)
    assert told["context"] == str(load_model(folder / kind).context_policy)
    assert "parameters" in ok("info", folder / kind).stdout


def test_contexts_on_the_command_line(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "long.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    for n in range(6):
        (tmp_path / f"{n}.txt").write_text("".join(lines[20 * n : 20 * n + 20]), encoding="utf-8", newline="\n")
    texts = sorted(tmp_path.glob("*.txt"))
    command = ("eval", "-m", folder / "gpt2", *texts, "--unit", "document", "--contexts", "8,16", "--device", "cpu")
    shown = ok(*command, "--per-context", tmp_path / "rows.csv", "--html", tmp_path / "curve.html").stdout
    assert "What gpt2 gains from a longer context" in shown
    assert len((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()) == 3
    assert "Bits per byte by length of context" in (tmp_path / "curve.html").read_text(encoding="utf-8")
    plain = json.loads(ok(*command, "--json", "--stride", 8).stdout)
    assert [point["context"] for point in plain["points"]] == [8, 16]
    assert plain["stride"] == 8
    assert ok(*command, "--per-context", "-").stdout.startswith("model\tcontext\tevents\t")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--contexts", "8,16", "-o", "run"), "--output does not go with --contexts; --per-context writes rows"),
        (("--contexts", "8,16", "--by-group"), "--by-group does not go with --contexts"),
        (("--contexts", "8,16", "--context", "8"), "contexts already set how much the model sees"),
        (("--contexts", "8,16", "-m", "other"), "--contexts takes one model at a time"),
        (("--contexts", "8,16", "--per-context", "rows.xls"), "rows.xls: rows are written as"),
        (("--contexts", "8,16", "--per-context", "-", "--json"), "does not go with --json: both are standard output"),
        (("--contexts", "8"), "name two lengths or more"),
        (("--contexts", "8,64"), "context 64: this model has positions for 48 tokens"),
        (("--contexts", "8,16", "--given", "prompt"), "lines of text have no field 'prompt'"),
        (("--per-context", "rows.csv"), "--per-context goes with --contexts"),
        (("--processes", "0"), "--processes"),
        (("--devices", "cpu,cuda:0"), "devices of different kinds (cpu, cuda)"),
        (("--devices", "cpu,cpu", "--processes", "2"), "devices and processes both say where to compute"),
        (("--processes", "2", "--context", "stream,16"), "its context spans the whole text"),
    ],
)
def test_contexts_and_processes_that_cannot_be(folder: Path, options: tuple[str, ...], message: str) -> None:
    assert message in refused("eval", "-m", folder / "gpt2", folder / "test.txt", *options)
