"""`lmgauge train`, `eval`, `sample`, `convert` and `info` as users and pipes meet them."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.cli.commands import ok, refused, run
from tests.programs import running

import lmgauge
from lmgauge import Corpus
from lmgauge.cli.commands import COMMANDS

KEYS = {
    "model", "group", "perplexity", "cross_entropy", "bits_per_token", "bits_per_word", "bits_per_character",
    "bits_per_byte", "bits_per_byte_is_bound", "interval", "events", "tokens", "sentence_ends", "oov", "oov_rate",
    "perplexity_without_eos", "perplexity_without_oov", "word_perplexity", "mean_segment_perplexity",
    "log_probability", "zero_probability_events", "perplexity_without_zeros", "first_zero_probability_events",
    "events_by_matched_order", "segments", "words", "characters", "bytes", "lossy_segments", "unit", "context",
    "vocabulary_size", "fingerprints", "signature", "notes",
}  # fmt: skip
POSIX = pytest.mark.skipif(os.name == "nt", reason="signals and pipes are different on Windows")


def start(*arguments: object) -> AbstractContextManager[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "lmgauge", *arguments]
    return running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training text, two test texts, and two models."""
    folder = tmp_path_factory.mktemp("cli")
    lines = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")
    for name, part in {"train": lines[:600], "one": lines[600:640], "two": [*lines[640:650], "unheard-of"]}.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in part), encoding="utf-8", newline="\n")
    ok("train", "modified-kneser-ney", "--order", 3, folder / "train.txt", "-o", folder / "kn3")
    ok("train", "mle", "--order", 2, folder / "train.txt", "-o", folder / "mle2")
    return folder


def evaluate(*arguments: object, stdin: bytes | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ok("eval", "--json", *arguments, stdin=stdin).stdout)
    return found


# -- train --------------------------------------------------------------------------------------------------------------


def test_train_says_what_it_made_on_standard_error(folder: Path, tmp_path: Path) -> None:
    result = ok("train", "kneser-ney", "--order", 2, folder / "train.txt", "-o", tmp_path / "kn")
    assert result.stdout == ""
    assert "kneser-ney, order 2, trained on" in result.stderr
    told = json.loads(ok("train", "kneser-ney", folder / "train.txt", "-o", tmp_path / "kn", "--json").stdout)
    assert told["order"] == 3
    assert told["fingerprint"] == lmgauge.load_model(tmp_path / "kn").fingerprint


def test_train_notes_fallbacks(tmp_path: Path) -> None:
    result = ok("train", "modified-kneser-ney", "-o", tmp_path / "kn", stdin=b"a b\n")
    assert "note: order 1: discounts cannot be estimated" in result.stderr


def test_options_reach_the_model(folder: Path, tmp_path: Path) -> None:
    options = ["--order", 4, "--back-off", "--discount", "0.1,0.5", "--cutoffs", "0,0,1", "--min-count", 2]
    options += ["--context", "stream"]
    ok("train", "absolute-discounting", *options, folder / "train.txt", "-o", tmp_path / "model")
    by_hand = lmgauge.train(
        "absolute-discounting", folder / "train.txt", order=4, interpolate=False, discount=(0.1, 0.5), cutoffs=(0, 0, 1),
        min_count=2, context="stream",
    )  # fmt: skip
    loaded = lmgauge.load_model(tmp_path / "model")
    assert loaded.fingerprint == by_hand.fingerprint
    assert loaded.settings == by_hand.settings  # type: ignore[attr-defined]


def test_lidstone_prune_words_and_characters(folder: Path, tmp_path: Path) -> None:
    ok("train", "lidstone", "--k", 0.1, "--tokenizer", "character", folder / "train.txt", "-o", tmp_path / "characters")
    assert evaluate("-m", tmp_path / "characters", folder / "one.txt")[0]["unit"] == "character"
    ok("train", "kneser-ney", "--prune", 1e-3, folder / "train.txt", "-o", tmp_path / "pruned")
    (tmp_path / "words.txt").write_bytes(b"\xef\xbb\xbfthe\r\nFirst\n\n<unk>\nCitizen:\n")
    ok("train", "kneser-ney", "--words", tmp_path / "words.txt", folder / "train.txt", "-o", tmp_path / "given")
    assert lmgauge.load_model(tmp_path / "given").vocabulary.tokens[3:] == ["the", "First", "Citizen:"]


@pytest.mark.parametrize("suffix", ["arpa", "arpa.gz"])
def test_train_to_arpa(folder: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"kn.{suffix}"
    ok("train", "modified-kneser-ney", folder / "train.txt", "-o", path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    theirs, ours = evaluate("-m", path, "-m", folder / "kn3", folder / "one.txt")
    assert theirs["perplexity"] == pytest.approx(ours["perplexity"], rel=1e-6)


def test_standard_input_gzip_and_globs_are_the_same_text(folder: Path, tmp_path: Path) -> None:
    text = (folder / "train.txt").read_bytes()
    (tmp_path / "train.txt.gz").write_bytes(gzip.compress(text))
    expected = lmgauge.load_model(folder / "kn3").fingerprint
    sources: list[tuple[list[object], bytes | None]] = [
        ([], text), (["-"], text), ([tmp_path / "train.txt.gz"], None), ([folder / "tra*.txt"], None),
    ]  # fmt: skip
    for arguments, stdin in sources:
        ok("train", "modified-kneser-ney", *arguments, "-o", tmp_path / "model", stdin=stdin)
        assert lmgauge.load_model(tmp_path / "model").fingerprint == expected
    by_pipe = evaluate("-m", folder / "kn3", stdin=(folder / "one.txt").read_bytes())
    by_name = evaluate("-m", folder / "kn3", folder / "one.txt")
    assert by_pipe == by_name


def test_same_text_same_bytes(folder: Path, tmp_path: Path) -> None:
    for threads in (1, 3):
        ok("train", "modified-kneser-ney", folder / "train.txt", "-o", tmp_path / "model", "--threads", threads)
        for name in ("config.json", "model.safetensors"):
            assert (tmp_path / "model" / name).read_bytes() == (folder / "kn3" / name).read_bytes()


# -- eval ---------------------------------------------------------------------------------------------------------------


def test_eval_json_is_the_api_in_full_precision(folder: Path) -> None:
    (seen,) = evaluate("-m", folder / "kn3", folder / "one.txt")
    assert set(seen) >= KEYS
    expected = lmgauge.evaluate(folder / "kn3", folder / "one.txt").to_dict()
    assert {**seen, "model": ""} == {**json.loads(json.dumps(expected)), "model": ""}
    assert seen["model"] == "kn3"


def test_a_model_among_the_texts_is_recognized(folder: Path) -> None:
    model = folder / "kn3"
    assert f"{model} is a model: write -m {model}" in refused("eval", model, folder / "test.txt")


def test_several_models_are_one_table(folder: Path) -> None:
    result = ok("eval", "-m", folder / "kn3", "-m", folder / "mle2", folder / "one.txt", folder / "two.txt")
    lines = result.stdout.split("\n")
    assert len([line for line in lines if line.split()[:1] == ["kn3"]]) == 1
    assert len([line for line in lines if line.split()[:1] == ["mle2"]]) == 1
    assert "∞" in result.stdout
    assert "have probability zero" in result.stdout
    assert "≥ is a lower bound: " in result.stdout
    assert result.stdout.count("ppl|unit:word|") == 0
    kn, mle = evaluate("-m", folder / "kn3", "-m", folder / "mle2", folder / "one.txt")
    assert (kn["model"], mle["model"]) == ("kn3", "mle2")
    assert mle["perplexity"] == "inf"  # JSON has no infinity
    assert isinstance(mle["perplexity_without_zeros"], float)
    assert mle["zero_probability_events"] > 0
    assert mle["first_zero_probability_events"][0]["token"]


def test_by_group(folder: Path) -> None:
    whole, one, two = evaluate("-m", folder / "kn3", folder / "one.txt", folder / "two.txt", "--by-group")
    assert whole["group"] is None
    assert [part["group"] for part in (one, two)] == ["one", "two"]
    assert one["events"] + two["events"] == whole["events"]
    assert one["perplexity"] == evaluate("-m", folder / "kn3", folder / "one.txt")[0]["perplexity"]


def test_a_run_folder(folder: Path, tmp_path: Path) -> None:
    ok("eval", "-m", folder / "kn3", folder / "one.txt", "-o", tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["evaluation.json", "scores.parquet"]
    content = json.loads((tmp_path / "run" / "evaluation.json").read_text(encoding="utf-8"))
    assert set(content) >= {"evaluation", "groups", "settings", "environment"}
    assert content["evaluation"] == evaluate("-m", folder / "kn3", folder / "one.txt")[0]
    table = pq.read_table(tmp_path / "run" / "scores.parquet")
    assert table.num_rows == content["evaluation"]["events"]
    assert math.fsum(table["logprob"].to_pylist()) == pytest.approx(content["evaluation"]["log_probability"], rel=1e-14)
    told = json.loads(pq.read_metadata(tmp_path / "run" / "scores.parquet").metadata[b"lmgauge"])
    assert told
    again = json.loads(ok("eval", "--json", "--scores", tmp_path / "run" / "scores.parquet", folder / "one.txt").stdout)[0]
    for name in ("perplexity", "bits_per_byte", "oov", "perplexity_without_eos"):
        assert again[name] == content["evaluation"][name]
    ok("eval", "-m", folder / "kn3", folder / "two.txt", "-o", tmp_path / "run")  # a run replaces a run
    assert json.loads((tmp_path / "run" / "evaluation.json").read_text())["evaluation"]["segments"] == 11
    result = run("eval", "-m", folder / "kn3", folder / "one.txt", "-o", folder / "mle2")  # and nothing else
    assert result.exit_code == 2
    assert (folder / "mle2" / "config.json").exists()


def test_documents_of_the_text_are_remembered(folder: Path, tmp_path: Path) -> None:
    evaluate("-m", folder / "kn3", folder / "one.txt", "--document", "blank-line", "-o", tmp_path / "run")
    content = json.loads((tmp_path / "run" / "evaluation.json").read_text(encoding="utf-8"))
    assert content["settings"]["text"]["document"] == "blank-line"
    plain = evaluate("-m", folder / "kn3", folder / "one.txt")[0]
    assert content["evaluation"]["fingerprints"] == plain["fingerprints"]
    assert content["evaluation"]["log_probability"] == plain["log_probability"]
    result = run("eval", "-m", folder / "kn3", folder / "one.txt", "--document", "talk")
    assert result.exit_code == 2
    assert "lines of text have no field 'talk'" in result.stderr


def test_the_table_s_metadata_carries_the_fingerprints(folder: Path, tmp_path: Path) -> None:
    """Of model, tokenizer, vocabulary and text; besides the context policy and the version."""
    ok("eval", "-m", folder / "kn3", folder / "one.txt", "-o", tmp_path / "run")
    told = json.loads(pq.read_metadata(tmp_path / "run" / "scores.parquet").metadata[b"lmgauge"])
    model = lmgauge.load_model(folder / "kn3")
    written = json.dumps(told)
    for value in (model.fingerprint[:6], model.vocabulary.fingerprint[:6], model.tokenizer.fingerprint[:6], "sentence"):
        assert value in written, value
    assert lmgauge.__version__ in written


def test_run_folders_of_several_models(folder: Path, tmp_path: Path) -> None:
    ok("eval", "-m", folder / "kn3", "-m", folder / "mle2", folder / "one.txt", "-o", tmp_path / "runs")
    for name in ("kn3", "mle2"):
        content = json.loads((tmp_path / "runs" / name / "evaluation.json").read_text(encoding="utf-8"))
        assert content["evaluation"]["model"] == name


def test_models_of_the_same_name_are_told_apart(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "mle2", tmp_path / "kn3")
    a, b = evaluate("-m", folder / "kn3", "-m", tmp_path / "kn3", folder / "one.txt")
    assert a["model"] != b["model"]
    ok("eval", "-m", folder / "kn3", "-m", tmp_path / "kn3", folder / "one.txt", "-o", tmp_path / "runs")
    assert len(list((tmp_path / "runs").rglob("evaluation.json"))) == 2


def test_rows_a_segment_and_rows_a_token(folder: Path, tmp_path: Path) -> None:
    segments, tokens = tmp_path / "segments.jsonl", tmp_path / "tokens.tsv"
    arguments = ["-m", folder / "kn3", folder / "one.txt", folder / "two.txt"]
    (whole,) = evaluate(*arguments, "--per-segment", segments, "--per-token", tokens)
    rows = [json.loads(line) for line in segments.read_text(encoding="utf-8").split("\n")[:-1]]
    assert len(rows) == whole["segments"]
    assert {row["group"] for row in rows} == {"one", "two"}
    assert math.fsum(row["logprob"] for row in rows) == pytest.approx(whole["log_probability"], rel=1e-12)
    assert all(row["perplexity"] == pytest.approx(math.exp(-row["logprob"] / row["events"])) for row in rows)
    header, *lines = [line.split("\t") for line in tokens.read_text(encoding="utf-8").split("\n")[:-1]]
    assert header == ["model", "segment", "start", "end", "token", "logprob", "kind", "context", "id"]
    assert len(lines) == whole["events"]
    assert math.fsum(float(line[5]) for line in lines) == pytest.approx(whole["log_probability"], rel=1e-12)
    assert sum(line[6] == "oov" for line in lines) == whole["oov"]
    printed = ok("eval", *arguments, "--per-token", "-").stdout
    assert printed == tokens.read_text(encoding="utf-8")
    result = run("eval", *arguments, "--per-token", tmp_path / "rows.csv")
    assert result.exit_code == 2
    assert not (tmp_path / "rows.csv").exists()


def test_rows_join_on_ids_whatever_is_skipped(folder: Path, tmp_path: Path) -> None:
    """The records of a corpus: ids and groups from fields, records that cannot be used left out and told of."""
    lines = [
        b'{"text": "a b", "key": "k1", "domain": "x"}',
        b'{"text": null, "key": "k2", "domain": "x"}',
        b"{oops",
        b"\xff",
    ]
    lines.append(b'{"text": "unseen", "key": 5, "domain": "y"}')
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    arguments = ["eval", "-m", folder / "kn3", tmp_path / "a.jsonl", "--group", "domain", "--errors", "skip"]
    result = ok(*arguments, "--id", "key", "--document", "domain", "--per-segment", "-", "-o", tmp_path / "run")
    header, *rows = [line.split("\t") for line in result.stdout.split("\n")[:-1]]
    found = [dict(zip(header, row, strict=True)) for row in rows]
    assert [row["id"] for row in found] == ["k1", "5"]
    assert [row["group"] for row in found] == ["x", "y"]
    assert [row["document"] for row in found] == ["0", "1"]
    assert [row["oov"] for row in found] == ["1", "1"]
    assert "note: 1 segment left out: not valid text" in result.stderr
    assert "note: 2 records left out: no usable text; the first: " in result.stderr
    assert "a.jsonl:2: field 'text' holds null" in result.stderr
    table = pq.read_table(tmp_path / "run" / "scores.parquet")
    by_segment = dict(zip(table["segment"].to_pylist(), table["id"].to_pylist(), strict=True))
    assert by_segment == {0: "k1", 1: "5"}
    again = json.loads(ok("eval", "--json", "--scores", tmp_path / "run" / "scores.parquet").stdout)[0]
    whole = json.loads((tmp_path / "run" / "evaluation.json").read_text(encoding="utf-8"))["evaluation"]
    assert again["perplexity"] == whole["perplexity"]
    ids = [line.split("\t")[-1] for line in ok(*arguments, "--per-token", "-").stdout.split("\n")[1:-1]]
    assert list(dict.fromkeys(ids)) == [f"{tmp_path / 'a.jsonl'}:1", f"{tmp_path / 'a.jsonl'}:5"]
    ok(*arguments, "-o", tmp_path / "run")
    assert "id" not in pq.read_table(tmp_path / "run" / "scores.parquet").column_names


def test_same_output_on_any_number_of_threads(folder: Path) -> None:
    arguments = ["eval", "-m", folder / "kn3", folder / "one.txt", "--json"]
    assert ok(*arguments, "--threads", 1).stdout == ok(*arguments, "--threads", 2).stdout


def test_a_foreign_table(tmp_path: Path) -> None:
    table = tmp_path / "theirs.jsonl"
    table.write_text('{"segment": 0, "logprob": -0.6931471805599453}\n')
    (seen,) = json.loads(ok("eval", "--json", "--scores", table).stdout)
    assert seen["perplexity"] == pytest.approx(2)
    assert seen["bits_per_byte"] is None


# -- the rest -----------------------------------------------------------------------------------------------------------


def test_sample_info_convert(folder: Path, tmp_path: Path) -> None:
    first = ok("sample", "-m", folder / "kn3", "-n", 3, "--seed", 5).stdout
    assert first == ok("sample", "-m", folder / "kn3", "-n", 3, "--seed", 5).stdout
    assert first.count("\n") == 3
    assert first != ok("sample", "-m", folder / "kn3", "-n", 3, "--seed", 6).stdout
    shown = ok("info", folder / "kn3").stdout
    assert "modified-kneser-ney" in shown
    told = json.loads(ok("info", folder / "kn3", "--json").stdout)
    assert told["order"] == 3
    assert told["fingerprint"] == lmgauge.load_model(folder / "kn3").fingerprint
    ok("convert", folder / "kn3", tmp_path / "kn3.arpa.gz")
    ok("convert", tmp_path / "kn3.arpa.gz", tmp_path / "back")
    results = evaluate("-m", folder / "kn3", "-m", tmp_path / "kn3.arpa.gz", "-m", tmp_path / "back", folder / "one.txt")
    assert [result["perplexity"] for result in results] == pytest.approx([results[0]["perplexity"]] * 3, rel=1e-6)
    assert results[1]["perplexity"] == results[2]["perplexity"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "kneser-nay", "x"], "kneser-nay"),
        (["train", "laplace", "train.txt"], "--output"),
        (["train", "laplace", "missing.txt", "-o", "m"], "missing.txt"),
        (["train", "laplace", "train.txt", "-o", "m", "--k", "2"], "lidstone"),
        (["train", "laplace", "train.txt", "-o", "m", "--order", "0"], "order"),
        (["train", "kneser-ney", "train.txt", "-o", "m", "--cutoffs", "0,x"], "0,x"),
        (["train", "laplace", "bad.txt", "-o", "m"], "bad.txt"),
        (["train", "laplace", "empty.txt", "-o", "m"], "empty"),
        (["train", "laplace", "reserved.txt", "-o", "m"], "reserved.txt, line 2"),
        (["train", "laplace", "train.txt", "-o", "m.arpa"], "ARPA"),
        (["train", "laplace", "train.txt", "-o", "train.txt"], "train.txt"),
        (["train", "laplace", "train.txt", "-o", "m", "--words", "missing.txt"], "missing.txt"),
        (["train", "laplace", "train.txt", "-o", "m", "--tokenizer", "nope"], "nope"),
        (["eval", "train.txt"], "-m"),
        (["eval", "-m", "missing", "train.txt"], "missing"),
        (["eval", "-m", "train.txt", "train.txt"], "train.txt"),
        (["eval", "-m", "kn3", "missing.txt"], "missing.txt"),
        (["eval", "-m", "run", "train.txt"], "run: a run, not a model"),
        (["eval", "-m", "kn3", "empty.txt"], "empty.txt: there is nothing to evaluate: no segment of the text is scored"),
        (["eval", "-m", "kn3", "bad.txt"], "bad.txt"),
        (["eval", "-m", "kn3", "--scores", "x.jsonl"], "-m"),
        (["eval", "--scores", "missing.jsonl"], "missing.jsonl"),
        (["sample", "-m", "missing"], "missing"),
        (["info", "missing"], "missing"),
        (["convert", "missing", "m"], "missing"),
        (["convert", "mle2", "m.arpa"], "ARPA"),
        (["nonsense"], "nonsense"),
    ],
    ids=str,
)
def test_mistakes_are_one_line_and_exit_2(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    (folder / "bad.txt").write_bytes(b"a\nb\xff\n")
    (folder / "empty.txt").write_bytes(b"")
    (folder / "reserved.txt").write_bytes(b"a\nb <unk> c\n")
    (folder / "run").mkdir(exist_ok=True)
    (folder / "run" / "evaluation.json").write_bytes(b"{}")
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert isinstance(result.exception, SystemExit)
    assert sorted(folder.rglob("*")) == before
    lines = result.stderr.strip().split("\n")
    assert len(lines) == 1
    assert lines[0].startswith("lmgauge: error: ")


def test_every_command_has_help_that_says_the_same_as_the_list() -> None:
    for name, row in COMMANDS.items():
        line = row.summary
        shown = ok(name, "--help").stdout
        assert " ".join(line.split()) in " ".join(shown.split()), name


# -- signals and pipes --------------------------------------------------------------------------------------------------


@POSIX
@pytest.mark.parametrize("command", ["train", "eval"])
def test_interrupted_is_130_and_leaves_nothing(folder: Path, tmp_path: Path, command: str) -> None:
    output = ["-o", tmp_path / "out"]
    arguments = ["train", "kneser-ney", *output] if command == "train" else ["eval", "-m", folder / "kn3", *output]
    with start(*arguments) as process:
        assert process.stdin is not None
        process.stdin.write(b"a b c d e f g h\n" * 40_000)  # more than a pipe holds: it is reading when this returns
        process.stdin.flush()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == b""
    assert b"interrupted" in err
    assert b"Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def first_line_of(*arguments: object) -> tuple[bytes, bytes, int]:
    """What `| head -1` sees, what the command then says on standard error, and how it ends."""
    with start(*arguments) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        process.stdout.close()
        return line, process.stderr.read(), process.wait(30)


@POSIX
def test_a_reader_that_has_enough_is_no_error(folder: Path) -> None:
    arguments = ["eval", "-m", folder / "kn3", folder / "train.txt", folder / "train.txt", "--per-token", "-"]
    line, complaint, code = first_line_of(*arguments)
    assert line.startswith(b"model\tsegment")
    assert complaint == b""
    assert code == 0


@POSIX
def test_sample_into_head(folder: Path) -> None:
    line, complaint, code = first_line_of("sample", "-m", folder / "kn3", "-n", 100_000)
    assert line.endswith(b"\n")
    assert complaint == b""
    assert code == 0


@POSIX
def test_a_full_output_is_an_error_not_a_traceback(folder: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full")
    with full.open("wb") as sink:
        command = [sys.executable, "-m", "lmgauge", "eval", "-m", str(folder / "kn3"), str(folder / "one.txt"), "--json"]
        done = subprocess.run(command, stdout=sink, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


@POSIX
def test_standard_error_that_cannot_be_written_changes_no_exit_code(folder: Path, tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full")
    for texts, code in ((folder / "one.txt", 0), (folder / "missing.txt", 2)):
        command = [sys.executable, "-m", "lmgauge", "train", "mle", str(texts), "-o", str(tmp_path / "model")]
        with full.open("wb") as sink:
            assert subprocess.run(command, stderr=sink, check=False).returncode == code
        reader, writer = os.pipe()
        os.close(reader)  # `2> >(true)`
        with os.fdopen(writer, "wb") as sink:
            assert subprocess.run(command, stderr=sink, check=False).returncode == code
    assert lmgauge.load_model(tmp_path / "model").label == "mle3"


def test_advice_where_memory_does_not_suffice_fits_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhaust(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Corpus, "__iter__", exhaust)
    text = folder / "one.txt"
    assert "try --memory, a lower order, --cutoffs or" in refused("train", "mle", text, "-o", folder / "never")
    evaluated = refused("eval", "-m", folder / "kn3", text)
    assert "try fewer --threads, shorter lines or a smaller text" in evaluated
    assert "--resamples" not in refused("split", text, "-o", folder / "never")


# -- what a hostile first user met ---------------------------------------------------------------------------------------


def test_a_stored_table_is_told_as_its_evaluation_was(folder: Path, tmp_path: Path) -> None:
    """A bound stays a bound, and the signature the same, when the table is read back."""
    (tmp_path / "lossy.txt").write_bytes(b"the  king\nis dead\n")
    ok("train", "mle", "--order", 1, tmp_path / "lossy.txt", "-o", tmp_path / "m")
    first = evaluate("-m", tmp_path / "m", tmp_path / "lossy.txt", "-o", tmp_path / "run")[0]
    again = evaluate("--scores", tmp_path / "run" / "scores.parquet", tmp_path / "lossy.txt")[0]
    assert again["bits_per_byte_is_bound"] is True
    for name in ("signature", "perplexity", "bits_per_byte", "unit", "context", "lossy_segments", "fingerprints"):
        assert again[name] == first[name], name


def test_rows_with_zero_probability_can_be_read_back(folder: Path, tmp_path: Path) -> None:
    first = evaluate("-m", folder / "mle2", folder / "one.txt", "--per-token", tmp_path / "rows.jsonl")[0]
    assert first["perplexity"] == "inf"
    again = evaluate("--scores", tmp_path / "rows.jsonl", folder / "one.txt")[0]
    assert again["zero_probability_events"] == first["zero_probability_events"]
    assert again["perplexity_without_zeros"] == pytest.approx(first["perplexity_without_zeros"], rel=1e-12)


@POSIX
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_output_that_cannot_show_a_sign_is_no_crash(folder: Path, encoding: str) -> None:
    command = [sys.executable, "-m", "lmgauge", "eval", "-m", str(folder / "mle2"), str(folder / "one.txt")]
    done = subprocess.run(
        command, capture_output=True, check=False, env=dict(os.environ, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    )
    assert done.returncode == 0, done.stderr
    assert b"inf" in done.stdout
    assert b"Traceback" not in done.stderr


def test_names_with_brackets_are_shown_as_they_are(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "kn3", tmp_path / "kn[v2]")
    assert "kn[v2]" in ok("eval", "-m", tmp_path / "kn[v2]", folder / "one.txt").stdout


def test_a_folder_with_a_stranger_s_file_is_left_alone(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "mle2", tmp_path / "m")
    (tmp_path / "m" / "NOTES.md").write_text("precious")
    result = run("train", "mle", folder / "train.txt", "-o", tmp_path / "m")
    assert result.exit_code == 2
    assert (tmp_path / "m" / "NOTES.md").read_text() == "precious"


def test_an_older_split_is_not_mixed_with_a_new_one(folder: Path, tmp_path: Path) -> None:
    ok("split", folder / "train.txt", "-o", tmp_path / "parts")
    result = run("split", folder / "train.txt", "--fractions", "1,0,0", "-o", tmp_path / "parts")
    assert result.exit_code == 2
    assert "already has a validation.txt of another split" in result.stderr


def test_reserved_words_may_be_told_apart_when_evaluating(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"a <unk> b\n")
    assert run("eval", "-m", folder / "kn3", tmp_path / "text.txt").exit_code == 2
    unknown = evaluate("-m", folder / "kn3", "--reserved", "unk", tmp_path / "text.txt")[0]
    assert unknown["oov"] >= 1


def test_convert_changes_the_meaning_of_reserved_words_of_folders_too(folder: Path, tmp_path: Path) -> None:
    ok("convert", folder / "kn3", tmp_path / "unk", "--reserved", "unk")
    (tmp_path / "text.txt").write_bytes(b"a <unk> b\n")
    assert evaluate("-m", tmp_path / "unk", tmp_path / "text.txt")[0]["oov"] >= 1
    ok("convert", folder / "kn3", tmp_path / "same")
    assert lmgauge.load_model(tmp_path / "same").fingerprint == lmgauge.load_model(folder / "kn3").fingerprint
