"""`lmgauge.import_scores`: both doors, runs beside our own, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import ok
from tests.scores.imports.outputs import KENLM, LINES, MINICONS, SRILM, written

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError

TRAIN = ["the cat sat on the mat", "a dog ran", "the cat ran", "a café sat on the dog"] * 3


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return written(tmp_path, "".join(line + "\n" for line in LINES), "text.txt")


@pytest.mark.parametrize(
    ("content", "shell", "python"),
    [
        (KENLM, [], {}),
        (
            KENLM,
            ["--program", "kenlm", "--log-unit", "log10", "--name", "x"],
            {"program": "kenlm", "log_unit": "log10", "name": "x"},
        ),
        (MINICONS, ["--log-unit", "nats"], {"log_unit": "nats"}),
    ],
)
def test_both_doors_write_the_same_bytes(
    tmp_path: Path, text: Path, content: str, shell: list[str], python: dict[str, Any]
) -> None:
    log = written(tmp_path, content, "log")
    named = {"text": text} if content is KENLM else {}
    ok("import", log, "-o", tmp_path / "shell", *shell, *(("--text", text) if named else ()))
    lmgauge.import_scores(log, tmp_path / "python", **named, **python)
    for name in ("evaluation.json", "scores.parquet"):
        assert (tmp_path / "shell" / name).read_bytes() == (tmp_path / "python" / name).read_bytes()


def test_kenlm_beside_our_own_scores(tmp_path: Path, text: Path) -> None:
    """One ARPA file in KenLM and here: every event the same, to the eight digits that KenLM prints."""
    kenlm = pytest.importorskip("kenlm")
    lmgauge.models.write_arpa(lmgauge.train("witten-bell", Corpus.from_strings(TRAIN), order=3), tmp_path / "3.arpa")
    theirs = kenlm.Model(str(tmp_path / "3.arpa"))
    with (tmp_path / "query.txt").open("w", encoding="utf-8") as file:
        for line in LINES:
            for word, (log10, order, oov) in zip([*line.split(), "</s>"], theirs.full_scores(line), strict=True):
                file.write(f"{word}={0 if oov else 7} {order} {log10:.8g}\t")
    lmgauge.evaluate(tmp_path / "3.arpa", text, output=tmp_path / "ours")
    lmgauge.import_scores(tmp_path / "query.txt", tmp_path / "theirs", text=text)
    [comparison] = lmgauge.compare([tmp_path / "ours", tmp_path / "theirs"])
    assert comparison.part == "exact part", "all but the unseen words"
    assert comparison.p_value is None  # of fewer than six segments
    ours, imported = (lmgauge.read_run(tmp_path / name).to_arrow("token").to_pydict() for name in ("ours", "theirs"))
    assert imported["logprob"] == pytest.approx(ours["logprob"], abs=3e-7)
    for column in ("segment", "start", "end", "kind", "context"):
        assert imported[column] == ours[column]


def test_what_reads_runs_reads_it(tmp_path: Path, text: Path) -> None:
    log = written(tmp_path, KENLM, "log")
    lmgauge.import_scores(log, tmp_path / "run", text=text)
    assert lmgauge.audit_run(tmp_path / "run").passed
    assert lmgauge.diagnose(tmp_path / "run").to_dict()
    assert "café" in lmgauge.report([tmp_path / "run"]).html()
    [comparison] = lmgauge.compare([tmp_path / "run", tmp_path / "run"])
    assert comparison.differences[0].difference == 0


def test_an_audit_reads_parts_of_characters(tmp_path: Path) -> None:
    """vLLM shows the two tokens of é as U+FFFD each: they spell the bytes they span all the same."""
    data = Path(__file__).resolve().parents[2] / "docs" / "data"
    lmgauge.import_scores(data / "log-vllm.jsonl", tmp_path / "run", text=data / "house.txt")
    assert lmgauge.audit_run(tmp_path / "run").passed


def test_terminal_escapes_in_tokens_are_harmless(tmp_path: Path) -> None:
    log = written(tmp_path, "\x1b[31mred\x07=3 2 -0.25\t</s>=2 1 -1.9\t", "log")
    printed = ok("import", log, "-o", tmp_path / "run", "--name", "\x1b[31mred").output
    assert "\x1b" not in printed + ok("diagnose", tmp_path / "run").output


def test_what_is_refused(tmp_path: Path, text: Path) -> None:
    log = written(tmp_path, KENLM, "log")
    with pytest.raises(UsageError, match="would replace what this command reads"):
        lmgauge.import_scores(log, log)
    with pytest.raises(UsageError, match="files are paths of what a program wrote, not int"):
        lmgauge.import_scores(3, tmp_path / "run")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="output is the path of a run folder, not NoneType"):
        lmgauge.import_scores(log, None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no such file"):
        lmgauge.import_scores(tmp_path / "none", tmp_path / "run")
    with pytest.raises(InputError, match="is not about"):
        lmgauge.import_scores(written(tmp_path, SRILM, "srilm"), tmp_path / "run", text=text)
    assert not (tmp_path / "run").exists()


def test_two_columns_of_a_table_are_compared(tmp_path: Path) -> None:
    rows = [(i, word, -1.5 - i, -2.0) for i, line in enumerate(LINES) for word in line.split()]
    table = "sentence_id,token,a,b\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    path = written(tmp_path, table, "x.csv")
    text = written(tmp_path, "".join(line + "\n" for line in LINES), "text.txt")
    result = lmgauge.import_scores(path, tmp_path / "a", logprob="a", log_unit="nats", text=text)
    assert (result.model, result.events) == ("a", len(rows))
    assert "imported from the column 'a', logarithms in nats" in result.notes
    ok("import", path, "--logprob", "b", "--log-unit", "nats", "--text", text, "-o", tmp_path / "b")
    compared = lmgauge.compare([tmp_path / "a", tmp_path / "b"])[0]
    bits = next(one for one in compared.differences if one.metric == "bits_per_byte")
    assert bits.second == pytest.approx(lmgauge.evaluate_scores(tmp_path / "b", text).bits_per_byte)


def test_what_is_no_run_is_told_what_to_do(tmp_path: Path) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(TRAIN), order=2)
    evaluations = lmgauge.evaluate({"a": model, "b": model}, texts=TRAIN)
    with pytest.raises(UsageError, match=r'figures only: keep the scores with evaluate\(..., output="runs"\)'):
        lmgauge.compare(evaluations)  # type: ignore[arg-type]
    pandas = pytest.importorskip("pandas")
    with pytest.raises(UsageError, match="not DataFrame: save its columns segment, token and logprob with to_parquet"):
        lmgauge.compare([pandas.DataFrame()] * 2)  # type: ignore[list-item]
    model.save(tmp_path / "wb2")
    with pytest.raises(InputError, match=r"wb2 is a model: score a text with it first: `lmgauge eval -m .*wb2 TEXT -o RUN`"):
        lmgauge.read_run(tmp_path / "wb2")
    with pytest.raises(InputError, match=r"x.html: no such run; `lmgauge eval -m MODEL TEXT -o RUN` makes one"):
        lmgauge.read_run(tmp_path / "x.html")
