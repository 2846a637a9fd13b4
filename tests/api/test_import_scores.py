"""`lmgauge.import_scores`: both doors, runs beside our own, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import ok
from tests.scores.imports.outputs import KENLM, LINES, MINICONS, SRILM, written

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.records.separated import Reader

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
    with pytest.raises(UsageError, match="files are paths of what a program wrote, or a data frame, not int"):
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
    evaluations = lmgauge.evaluate({"a": model, "b": model}, texts=iter(TRAIN))  # which can be read once
    with pytest.raises(UsageError, match=r'figures only: keep the scores with evaluate\(..., output="runs"\)'):
        lmgauge.compare(evaluations)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(UsageError, match="not DataFrame: make it one with import_scores"):
        lmgauge.compare([pandas.DataFrame()] * 2)  # type: ignore[list-item]
    model.save(tmp_path / "wb2")
    with pytest.raises(InputError, match=r"wb2 is a model: score a text with it first: `lmgauge eval -m .*wb2 TEXT -o RUN`"):
        lmgauge.read_run(tmp_path / "wb2")
    with pytest.raises(InputError, match=r"x.html: no such run; `lmgauge eval -m MODEL TEXT -o RUN` makes one"):
        lmgauge.read_run(tmp_path / "x.html")


# -- models side by side in one table ------------------------------------------------------------------------------------
SCORES = [
    (d, s, word, -1.0 - (d * s) % 3, -1.25 - (d * s) % 3) for d in range(6) for s in range(2) for word in ("the", "cat")
]
TWO_MODELS = "doc,segment,token,a,b\n" + "".join(f"d{d},{s},{word},{a},{b}\n" for d, s, word, a, b in SCORES)


def _frame() -> Any:
    pandas = pytest.importorskip("pandas")
    names = ["doc", "segment", "token", "a", "b"]
    return pandas.DataFrame([dict(zip(names, row, strict=True)) for row in SCORES]).astype({"doc": str})


def test_each_column_of_a_table_is_a_run(tmp_path: Path) -> None:
    table, runs = written(tmp_path, TWO_MODELS, "x.csv"), tmp_path / "runs"
    ok("import", table, "--logprob", "a", "--logprob", "b", "--log-unit", "nats", "-o", runs)
    answer = ok("compare", runs / "a", runs / "b", "-v")
    assert "perplexity (shared events)" in answer.output
    assert "6 documents (column document) are taken as independent" in answer.output
    both = lmgauge.import_scores(_frame(), tmp_path / "frames", logprob=["a", "b"], log_unit="nats")
    assert [one.model for one in both] == ["a", "b"]
    assert both[1].perplexity == pytest.approx(both[0].perplexity * math.exp(0.25))
    [comparison] = lmgauge.compare(both)
    [same] = lmgauge.compare([runs / "a", runs / "b"])
    assert comparison.differences[0].difference == same.differences[0].difference


def test_a_table_of_several_columns_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[Reader] = []
    rows = Reader.rows

    def counted(reader: Reader) -> Any:
        readings.append(reader)
        return rows(reader)

    monkeypatch.setattr(Reader, "rows", counted)
    table = written(tmp_path, TWO_MODELS, "x.csv")
    ok("import", table, "--logprob", "a", "--logprob", "b", "--log-unit", "nats", "-o", tmp_path / "runs")
    assert len(readings) == 1


def test_one_column_is_one_run(tmp_path: Path) -> None:
    table = written(tmp_path, TWO_MODELS, "x.csv")
    ok("import", table, "--logprob", "a", "--log-unit", "nats", "-o", tmp_path / "run")
    assert (tmp_path / "run" / "evaluation.json").exists()
    assert lmgauge.import_scores(table, tmp_path / "run", logprob="a", log_unit="nats").events == len(SCORES)


@pytest.mark.parametrize(
    ("value", "words"),
    [("nan", "is NaN"), ("0.5", "is '0.5'; it must be the logarithm of a probability"), ("", "'' is not a number")],
)
def test_what_is_no_log_probability_is_refused_with_its_place(tmp_path: Path, value: str, words: str) -> None:
    lines = TWO_MODELS.splitlines(keepends=True)
    lines[3] = lines[3].rpartition(",")[0] + f",{value}\n"
    table = written(tmp_path, "".join(lines), "x.csv")
    with pytest.raises(InputError) as error:
        lmgauge.import_scores(table, tmp_path / "runs", logprob=["a", "b"], log_unit="nats")
    assert "x.csv, line 4, column 'b': " in str(error.value)
    assert words in str(error.value)
    assert not (tmp_path / "runs").exists()  # nor a run of the column that can be read


def test_positive_log_probabilities_are_not_taken_for_surprisals(tmp_path: Path) -> None:
    table = written(tmp_path, TWO_MODELS.replace("-", "").replace(",b\n", ",nll_b\n"), "x.csv")
    with pytest.raises(InputError, match=r"line 2, column 'a': a log-probability is '1\.0'"):
        lmgauge.import_scores(table, tmp_path / "run", logprob="a", log_unit="nats")
    assert lmgauge.import_scores(table, tmp_path / "run", logprob="nll_b", log_unit="nats").perplexity > 1


def test_columns_that_would_be_one_folder_and_a_name_for_two_are_refused(tmp_path: Path) -> None:
    table = written(tmp_path, TWO_MODELS, "x.csv")
    with pytest.raises(UsageError, match="two models are called 'a'"):
        lmgauge.import_scores(table, tmp_path / "runs", logprob=["a", "a"], log_unit="nats")
    with pytest.raises(UsageError, match="a name is of one model"):
        lmgauge.import_scores(table, tmp_path / "runs", logprob=["a", "b"], log_unit="nats", name="x")
    with pytest.raises(UsageError, match=r'make it one with import_scores\(frame, "runs", logprob=\["a", "b"\]\)'):
        lmgauge.compare([_frame(), _frame()])
