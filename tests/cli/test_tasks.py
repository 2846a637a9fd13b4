"""`bleu`, `chrf`, `ter`, `wer`, `cer`, `f1` and `correlate` as users meet them, beside sacreBLEU's own command and jiwer."""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner
from tests.cli.commands import ok, refused, run

DATA = Path(__file__).parent.parent / "data"
DIGITS = 9


def worse(lines: list[str], seed: int, share: float) -> list[str]:
    """What a system might make of lines: words lost, doubled, exchanged with the next, or spelled otherwise."""
    chance = random.Random(seed)
    outputs = []
    for line in lines:
        words: list[str] = []
        for word in line.split(" "):
            event = chance.random() / share
            if event < 0.25:
                continue
            if event < 0.5 and words:
                words.insert(-1, word)
            elif event < 0.75:
                words += [word, word]
            elif event < 1:
                words.append(word.swapcase()[::-1])
            else:
                words.append(word)
        outputs.append(" ".join(words))
    return outputs


def made(folder: Path, language: str, count: int = 60) -> dict[str, Path]:
    """Files: a reference, a second one, and three systems."""
    lines = (DATA / f"pud.{language}.txt").read_text(encoding="utf-8").split("\n")[:count]
    texts = {"ref": lines, "ref2": worse(lines, 7, 0.1), "a": worse(lines, 1, 0.3)}
    texts |= {"b": worse(lines, 2, 0.25), "c": worse(lines, 3, 0.6)}
    for name, content in texts.items():
        (folder / f"{name}.txt").write_text("\n".join(content) + "\n", encoding="utf-8", newline="\n")
    return {name: folder / f"{name}.txt" for name in texts}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return made(tmp_path_factory.mktemp("texts"), "de")


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return made(tmp_path_factory.mktemp("chinese"), "zh-Hant", 6)


def sacrebleu(*arguments: object) -> Any:
    """What sacreBLEU's own command prints, as JSON; it runs in this process, on streams that it opens anew."""
    with mock.patch("signal.signal"):  # it would have this process end, unseen, where a connection of a later test breaks
        command = pytest.importorskip("sacrebleu.sacrebleu")
    words = ["sacrebleu", *map(str, arguments), "-w", str(DIGITS), "-f", "json", "--force"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SACREBLEU")} | {"NO_COLOR": "1"}
    with TemporaryFile() as printed:
        output = SimpleNamespace(fileno=lambda: os.dup(printed.fileno()))
        streams = {"stdin": SimpleNamespace(fileno=lambda: os.open(os.devnull, os.O_RDONLY)), "stdout": output}
        with (
            mock.patch.multiple(sys, argv=words, **streams),
            mock.patch.dict(os.environ, environment, clear=True),
            warnings.catch_warnings(action="ignore", category=ResourceWarning),  # it leaves files open
        ):
            command.main()
            sys.stdin.close()
            sys.stdout.close()
        printed.seek(0)
        return json.load(printed)


def ours(*arguments: object) -> Any:
    return json.loads(ok(*arguments, "--json").stdout)


GRID: list[tuple[str, list[str], list[str]]] = [
    ("bleu", [], []),
    *[("bleu", ["--tokenizer", name], ["-tok", name]) for name in ("none", "intl", "char", "zh")],
    ("bleu", ["--smoothing", "none"], ["-s", "none"]),
    ("bleu", ["--smoothing", "floor", "--smoothing-value", "0.3"], ["-s", "floor", "-sv", "0.3"]),
    ("bleu", ["--smoothing", "floor", "--lowercase"], ["-s", "floor", "-lc"]),
    ("bleu", ["--smoothing", "add-k"], ["-s", "add-k"]),
    ("bleu", ["--smoothing", "add-k", "--smoothing-value", "2.5"], ["-s", "add-k", "-sv", "2.5"]),
    ("chrf", [], []),
    ("chrf", ["--plus-plus"], ["--chrf-word-order", "2"]),
    ("chrf", ["--char-order", "4", "--beta", "3", "--lowercase"], ["-cc", "4", "--chrf-beta", "3", "--chrf-lowercase"]),
    ("chrf", ["--whitespace", "--eps-smoothing"], ["--chrf-whitespace", "--chrf-eps-smoothing"]),
    ("ter", [], []),
    ("ter", ["--normalized"], ["--ter-normalized"]),
    ("ter", ["--no-punct", "--case-sensitive"], ["--ter-no-punct", "--ter-case-sensitive"]),
    ("ter", ["--normalized", "--asian-support"], ["--ter-normalized", "--ter-asian-support"]),
]


def both(
    texts: dict[str, Path], metric: str, options: list[str], theirs: list[str], refs: int
) -> tuple[list[list[str]], list[list[str]]]:
    """Name and score of each system as our command prints them, and as sacreBLEU's does."""
    given = [texts["ref"], texts["ref2"]][:refs]
    systems = [texts[name] for name in "abc"]
    wanted = sacrebleu(*given, "-i", *systems, "-m", metric, *theirs)
    more = [argument for path in given[1:] for argument in ("-r", path)]
    found = ours(metric, given[0], *more, *systems, *options, "--significance", "none")["systems"]
    names = [next(name for name in peer if name != "system") for peer in wanted]
    mine = [[system["metric"], f"{system['score']:.{DIGITS}f}"] for system in found]
    return mine, [[name, peer[name]] for name, peer in zip(names, wanted, strict=True)]


@pytest.mark.parametrize(("metric", "options", "theirs"), GRID, ids=[" ".join([m, *o]) for m, o, _ in GRID])
def test_the_table_is_sacrebleu_s(texts: dict[str, Path], metric: str, options: list[str], theirs: list[str]) -> None:
    mine, peers = both(texts, metric, options, theirs, 1)
    assert mine == peers


@pytest.mark.parametrize(("metric", "options", "theirs"), GRID, ids=[" ".join([m, *o]) for m, o, _ in GRID])
def test_so_it_is_with_two_references(chinese: dict[str, Path], metric: str, options: list[str], theirs: list[str]) -> None:
    mine, peers = both(chinese, metric, options, theirs, 2)
    assert mine == peers


def marked(texts: dict[str, Path], folder: Path, *names: str) -> dict[str, Path]:
    """The same files, those named with a byte order mark at the head."""
    for name in names:
        (folder / f"{name}.txt").write_bytes(b"\xef\xbb\xbf" + texts[name].read_bytes())
    return texts | {name: folder / f"{name}.txt" for name in names}


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_a_byte_order_mark_counts_as_in_sacrebleu(texts: dict[str, Path], tmp_path: Path, metric: str) -> None:
    for names in (("a", "c"), ("ref",), ("ref", "b")):
        mine, peers = both(marked(texts, tmp_path, *names), metric, [], [], 1)
        assert mine == peers


@pytest.mark.parametrize(("command", "theirs"), [("wer", []), ("cer", ["-c"])])
def test_a_byte_order_mark_counts_as_in_jiwer(
    texts: dict[str, Path], tmp_path: Path, command: str, theirs: list[str]
) -> None:
    jiwer = pytest.importorskip("jiwer.cli")
    for names in ((), ("a",), ("ref",), ("ref", "a")):
        files = marked(texts, tmp_path, *names)
        printed = CliRunner().invoke(jiwer.cli, ["-r", str(files["ref"]), "-h", str(files["a"]), *theirs]).output
        assert ours(command, files["ref"], files["a"], "--significance", "none")["systems"][0]["score"] == float(printed)


def test_what_reading_says_goes_to_standard_error_where_numbers_stand_alone(texts: dict[str, Path], tmp_path: Path) -> None:
    pair = [marked(texts, tmp_path, "a")[name] for name in ("ref", "a")]
    for options in (["-b"], ["--sentence"], ["--align"]):
        done = ok("wer", *pair, *options)
        assert done.stderr.startswith(f"lmgauge: {pair[1]}: a byte order mark at the start is counted as text")
        assert "byte order mark" not in done.stdout
    assert ok("wer", pair[0], texts["a"], "-b").stderr == ""


@pytest.mark.parametrize(("line", "form"), [("{id} {text}", "kaldi"), ("{text} ({id})", "trn")])
def test_ids_of_utterances_are_recognized_in_files_and_told_of_a_pipe(
    texts: dict[str, Path], tmp_path: Path, line: str, form: str
) -> None:
    for name in ("ref", "a"):
        plain = texts[name].read_text(encoding="utf-8").removesuffix("\n").split("\n")
        rows = [line.format(id=f"spk1-{i:04d}", text=text) for i, text in enumerate(plain)]
        rows = rows if name == "ref" else rows[::-1]
        (tmp_path / name).write_text("".join(row + "\n" for row in rows), encoding="utf-8", newline="\n")
    files = (tmp_path / "ref", tmp_path / "a")
    wanted = ok("wer", texts["ref"], texts["a"], "-b", "-w", 9).stdout
    found = ok("wer", *files, "-b", "-w", 9)
    assert found.stdout == ok("wer", *files, "--format", form, "-b", "-w", 9).stdout == wanted
    assert all(f"{path}: read as " in found.stderr for path in files)
    piped = ok("wer", files[0], "-", "-b", "-w", 9, stdin=files[1].read_bytes())
    assert piped.stdout != wanted
    assert piped.stderr.endswith(f", and it is scored as words: take it out, or, for wer and cer, give --format {form}\n")


# sacreBLEU cannot print its bootstrap of chrF and TER as JSON; tests/tasks/test_systems.py asks it in Python.
@pytest.mark.parametrize(
    ("metric", "option", "theirs"),
    [
        ("bleu", "sacrebleu-bootstrap", "--paired-bs"),
        ("bleu", "sacrebleu", "--paired-ar"),
        ("chrf", "sacrebleu", "--paired-ar"),
        ("ter", "sacrebleu", "--paired-ar"),
    ],
)
def test_verdicts_are_sacrebleu_s(texts: dict[str, Path], metric: str, option: str, theirs: str) -> None:
    systems = [texts[name] for name in "abc"]
    wanted = sacrebleu(texts["ref"], "-i", *systems, "-m", metric, theirs, f"{theirs}-n", "500")
    found = ours(metric, texts["ref"], *systems, "--significance", option, "--resamples", "500")
    for mine, peer in zip(found["systems"], wanted, strict=True):
        result = next(value for key, value in peer.items() if key != "system")
        assert mine["score"] == pytest.approx(result["score"], abs=1e-9)
        assert mine["p_value"] == (None if result["p_value"] is None else pytest.approx(result["p_value"], abs=1e-12))
        if option == "sacrebleu-bootstrap":
            assert mine["mean"] == pytest.approx(result["mean"], abs=1e-4)
            assert mine["half_width"] == pytest.approx(result["ci"], abs=1e-4)


def test_signatures_begin_and_end_as_sacrebleu_s(texts: dict[str, Path]) -> None:
    wanted = sacrebleu(texts["ref"], "-i", texts["a"], "-ci", "-cin", "200")
    found = ours("bleu", texts["ref"], texts["a"], "--resamples", "200", "--significance", "sacrebleu-bootstrap")
    keys = dict(part.split(":") for part in found["systems"][0]["signature"].split("|"))
    assert list(keys)[-1] == "lmgauge"
    assert all(keys[name] == wanted[name] for name in ("nrefs", "bs", "seed", "case", "eff", "tok", "smooth", "version"))
    assert f"{found['systems'][0]['mean']:.4f}" == f"{wanted['confidence_mean']:.4f}"


def test_packed_and_structured_files_give_the_same(texts: dict[str, Path], tmp_path: Path) -> None:
    lines = {name: texts[name].read_text(encoding="utf-8").split("\n")[:-1] for name in ("ref", "a")}
    plain = ok("bleu", texts["ref"], texts["a"], "-b", "-w", 9).stdout
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress(texts["a"].read_bytes()))
    rows = tmp_path / "ref.jsonl"
    rows.write_text("".join(json.dumps({"target": line}) + "\n" for line in lines["ref"]), encoding="utf-8")
    table = tmp_path / "a.tsv"
    table.write_text("".join(f"{i}\t{line}\n" for i, line in enumerate(lines["a"])), encoding="utf-8", newline="\n")
    assert ok("bleu", texts["ref"], packed, "-b", "-w", 9).stdout == plain
    assert ok("bleu", rows, texts["a"], "--ref-field", "target", "-b", "-w", 9).stdout == plain
    assert ok("bleu", texts["ref"], table, "--field", "2", "-b", "-w", 9).stdout == plain
    assert ok("bleu", texts["ref"], "-", "-b", "-w", 9, stdin=texts["a"].read_bytes()).stdout == plain
    assert ok("bleu", texts["ref"], texts["a"], "--threads", 2, "-b", "-w", 9).stdout == plain


def test_a_row_for_each_sentence(texts: dict[str, Path]) -> None:
    pytest.importorskip("sacrebleu")
    from sacrebleu.metrics import BLEU

    rows = ok("bleu", texts["ref"], texts["a"], texts["b"], "--sentence", "-w", 6).stdout.splitlines()
    head, *rest = [row.split("\t") for row in rows]
    lines = {name: texts[name].read_text(encoding="utf-8").split("\n")[:-1] for name in ("ref", "a", "b")}
    judge = BLEU(effective_order=True)
    assert head == ["segment", "a", "b"]
    for i, row in enumerate(rest):
        scores = [judge.sentence_score(lines[name][i], [lines["ref"][i]]).score for name in ("a", "b")]
        assert row == [str(i + 1), *(f"{score:.6f}" for score in scores)]
    objects = [json.loads(row) for row in ok("chrf", texts["ref"], texts["a"], "--sentence", "--json").stdout.splitlines()]
    assert [found["segment"] for found in objects] == list(range(1, len(lines["ref"]) + 1))
    assert {"score", "signature", "system"} <= set(objects[0])


def test_groups_add_up(texts: dict[str, Path], tmp_path: Path) -> None:
    count = len(texts["ref"].read_text(encoding="utf-8").split("\n")) - 1
    labels = tmp_path / "documents"
    labels.write_text("".join(f"{'news' if i % 3 else 'chat'}\n" for i in range(count)), encoding="utf-8")
    found = ours("wer", texts["ref"], texts["a"], "--group", labels)["systems"][0]
    assert list(found["groups"]) == ["chat", "news"]
    for name in ("hits", "substitutions", "deletions", "insertions"):
        assert sum(group[name] for group in found["groups"].values()) == found[name]
    table = ok("wer", texts["ref"], texts["a"], "--group", labels).stdout.partition("by group")[2]
    assert table.split("\n")[1].split()[:4] == ["group", "WER", "%", "subs"]
    both = ok("wer", texts["ref"], texts["a"], texts["b"], "--group", labels).stdout.partition("by group")[2]
    assert both.split("\n")[1].split() == ["group", "a", "b"]


def test_transcripts_are_jiwer_s(texts: dict[str, Path]) -> None:
    jiwer = pytest.importorskip("jiwer")
    lines = {name: texts[name].read_text(encoding="utf-8").split("\n")[:-1] for name in ("ref", "a")}
    for command, process in (("wer", jiwer.process_words), ("cer", jiwer.process_characters)):
        found = ours(command, texts["ref"], texts["a"])["systems"][0]
        wanted = process(lines["ref"], lines["a"])
        for name in ("hits", "substitutions", "deletions", "insertions"):
            assert found[name] == getattr(wanted, name)
        assert found["score"] == pytest.approx(getattr(wanted, command), abs=1e-12)
    aligned = [json.loads(row) for row in ok("wer", texts["ref"], texts["a"], "--align", "--json").stdout.splitlines()]
    for mine, theirs in zip(aligned, jiwer.process_words(lines["ref"], lines["a"]).alignments, strict=True):
        chunks = [(c["type"], c["ref_start"], c["ref_end"], c["hyp_start"], c["hyp_end"]) for c in mine["chunks"]]
        assert chunks == [(c.type, c.ref_start_idx, c.ref_end_idx, c.hyp_start_idx, c.hyp_end_idx) for c in theirs]


def test_alignments_and_frequent_errors(tmp_path: Path) -> None:
    (tmp_path / "ref.txt").write_text("short one here\nthe same\n", encoding="utf-8")
    (tmp_path / "hyp.txt").write_text("shoe order one\nthe same\n", encoding="utf-8")
    shown = ok("wer", tmp_path / "ref.txt", tmp_path / "hyp.txt", "--align").stdout
    assert "REF:  **** short one here\nHYP:  shoe order one ****\nEVAL: I    S         D\n" in shown
    assert "the same" not in shown
    top = ok("wer", tmp_path / "ref.txt", tmp_path / "hyp.txt", "--top", 2).stdout
    assert "short -> order" in top
    assert "reads the files twice" in refused("wer", tmp_path / "ref.txt", "-", "--top", 2)
    pair = (tmp_path / "ref.txt", tmp_path / "hyp.txt")
    late = run("wer", *pair, "-r", tmp_path / "ref.txt", "--top", 2)
    assert (late.exit_code, late.stdout) == (2, "")
    assert "--align" in refused("wer", tmp_path / "ref.txt", tmp_path / "hyp.txt", "--align", "--sentence")


@pytest.mark.parametrize(
    ("reference", "hypothesis", "message"),
    [
        (b"a\nb\n", b"a\n", "hyp.txt ends first, after 1 line"),
        (b"a\n", b"a\nb\nc\n", "ref.txt ends first, after 1 line"),
        (b"a\nb\n", b"", "hyp.txt: the file is empty"),
        (b"", b"", "the file is empty"),
        (b"a\nb\n", b"a\n\xff\n", "line 2, byte 2: 0xFF is not valid UTF-8"),
        (b"a\nb\n", b"a\n\0\n", "NUL"),
        (b"a\nb\n", b"\n \n", "all 2 hypotheses are blank"),
        (b"\n\n", b"a\nb\n", "all 2 references are blank"),
    ],
)
@pytest.mark.parametrize("command", ["bleu", "chrf", "ter"])
def test_bad_input_is_told_in_words(tmp_path: Path, command: str, reference: bytes, hypothesis: bytes, message: str) -> None:
    (tmp_path / "ref.txt").write_bytes(reference)
    (tmp_path / "hyp.txt").write_bytes(hypothesis)
    assert message in refused(command, tmp_path / "ref.txt", tmp_path / "hyp.txt")


def test_blanks_are_counted_and_shown(tmp_path: Path) -> None:
    (tmp_path / "ref.txt").write_text("a b\nc d\ne f\n", encoding="utf-8")
    (tmp_path / "hyp.txt").write_text("a b\n\ne f\n", encoding="utf-8")
    shown = ok("bleu", tmp_path / "ref.txt", tmp_path / "hyp.txt").stdout
    assert "1 of 3 hypotheses are blank, the first that of segment 2" in shown
    assert ours("wer", tmp_path / "ref.txt", tmp_path / "hyp.txt")["systems"][0]["deletions"] == 2


def test_contradictions_are_refused(tmp_path: Path) -> None:
    for name in ("ref", "hyp"):
        (tmp_path / f"{name}.txt").write_text("a b\n", encoding="utf-8")
    pair = (tmp_path / "ref.txt", tmp_path / "hyp.txt")
    assert "no such file" in refused("bleu", tmp_path / "ref.txt", tmp_path / "none.txt")
    assert "give one of the two" in refused("chrf", *pair, "--plus-plus", "--word-order", 3)
    assert "chrF++ is a metric of its own: --also chrf++" in refused("bleu", *pair, "--plus-plus")
    assert "named twice" in refused("bleu", *pair, tmp_path / "hyp.txt")
    assert "have no field 'id'" in refused("bleu", *pair, "--id", "id")
    assert "--score-only does not go with --sentence" in refused("bleu", *pair, "-b", "--sentence")
    assert "--json does not go with --score-only" in refused("bleu", *pair, "-b", "--json")
    assert "--html does not go with --align" in refused("wer", *pair, "--align", "--html", tmp_path / "page.html")
    assert "--segments is for the page" in refused("ter", *pair, "--segments", 3)
    assert run("bleu", tmp_path / "ref.txt").exit_code == 2


def test_labels(tmp_path: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    gold, a, b = list("abacbaabca") * 5, list("abbcbaabcc") * 5, list("aaacbaaaca") * 5
    for name, labels in {"gold": gold, "a": a, "b": b}.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(labels) + "\n", encoding="utf-8")
    files = [tmp_path / f"{name}.txt" for name in ("gold", "a", "b")]
    for average in ("macro", "micro", "weighted"):
        found = ours("f1", *files, "--average", average)["systems"]
        for mine, labels in zip(found, (a, b), strict=True):
            assert mine["score"] == pytest.approx(metrics.f1_score(gold, labels, average=average), abs=1e-12)
        assert found[1]["p_value"] is not None
    shown = ok("f1", *files).stdout
    assert "accuracy" in shown
    assert "Labels of b" in shown
    assert "No such option '--sentence'" in refused("f1", *files, "--sentence")


def test_correlation_of_tables(tmp_path: Path, texts: dict[str, Path]) -> None:
    systems = [texts[name] for name in "abc"]
    (tmp_path / "bleu.json").write_text(ok("bleu", texts["ref"], *systems, "--json").stdout, encoding="utf-8")
    (tmp_path / "ppl.tsv").write_text("system\tperplexity\na\t90\nb\t80\nc\t200\n", encoding="utf-8")
    found = ours("correlate", tmp_path / "bleu.json", tmp_path / "ppl.tsv")
    assert [row["system"] for row in found["systems"]] == ["a", "b", "c"]
    assert found["spearman"] == pytest.approx(-1)
    rows = ok("correlate", tmp_path / "bleu.json", tmp_path / "ppl.tsv", "--rows", "-").stdout.splitlines()
    assert rows[0].split("\t") == ["system", "x", "y", "rank_x", "rank_y", "rank_difference"]
    assert "too few for an interval" in ok("correlate", tmp_path / "bleu.json", tmp_path / "ppl.tsv").stdout
    assert "ppl.tsv: row 1 has no column 'ppl'" in refused(
        "correlate", tmp_path / "bleu.json", tmp_path / "ppl.tsv", "-x", "ppl"
    )
    (tmp_path / "other.tsv").write_text("system\tperplexity\nx\t90\n", encoding="utf-8")
    assert "no system is in both" in refused("correlate", tmp_path / "bleu.json", tmp_path / "other.tsv")


def test_correlation_with_a_language_model(tmp_path: Path) -> None:
    lines = (DATA / "pud.de.txt").read_text(encoding="utf-8").split("\n")[:120]
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "ref.txt").write_text("\n".join(lines[:40]) + "\n", encoding="utf-8")
    outputs = []
    for i, share in enumerate((0.1, 0.3, 0.5, 0.7)):
        outputs.append(tmp_path / f"s{i}.txt")
        outputs[-1].write_text("\n".join(worse(lines[:40], i, share)) + "\n", encoding="utf-8")
    ok("train", "kneser-ney", "--order", 2, tmp_path / "train.txt", "-o", tmp_path / "lm")
    (tmp_path / "bleu.json").write_text(ok("bleu", tmp_path / "ref.txt", *outputs, "--json").stdout, encoding="utf-8")
    named = [argument for path in outputs for argument in ("--outputs", path)]
    found = ours("correlate", tmp_path / "bleu.json", "-m", tmp_path / "lm", *named)
    assert found["spearman"] == pytest.approx(-1)
    (tmp_path / "ppl.json").write_text(
        ok("eval", "-m", tmp_path / "lm", *outputs, "--by-group", "--json").stdout, encoding="utf-8"
    )
    again = ours("correlate", tmp_path / "bleu.json", tmp_path / "ppl.json")
    assert [row["x"] for row in again["systems"]] == pytest.approx([row["x"] for row in found["systems"]])


@pytest.mark.parametrize("command", ["bleu", "chrf", "ter", "wer", "cer"])
def test_documents_are_what_is_independent(texts: dict[str, Path], tmp_path: Path, command: str) -> None:
    docids = tmp_path / "docids.txt"
    docids.write_text("".join(f"talk {i // 9}\n" for i in range(60)), encoding="utf-8")
    out = ok(command, texts["ref"], texts["a"], texts["b"], "--document", docids, "-v").stdout
    assert "7 documents (docids.txt) are taken as independent." in out
    assert "(paired, Student's t)" in out
    assert "only 7 documents: treat the interval as rough" in out
    assert "|independent:7-documents|" in out
    found = json.loads(ok(command, texts["ref"], texts["a"], texts["b"], "--document", docids, "--json").stdout)
    assert (found["unit"], found["units"], found["trials"]) == ("documents", 7, None)
    plain = ok(command, texts["ref"], texts["a"], texts["b"], "--signature").stdout
    assert "if segments form documents, use --document" in plain
    assert "|independent:unknown|" in plain
    theirs = ok(command, texts["ref"], texts["a"], texts["b"], "--significance", "sacrebleu", "-v").stdout
    assert "60 segments are taken as independent, as sacreBLEU takes them" in theirs
    assert "independent:" not in theirs


def test_documents_of_labels_and_of_folders(texts: dict[str, Path], tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    rows = [{"text": "xyz"[i % 3], "talk": i // 10} for i in range(60)]
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name, step in (("a", 7), ("b", 11)):
        lines = "".join("xyz"[(i + (i % step == 0)) % 3] + "\n" for i in range(60))
        (tmp_path / f"{name}.txt").write_text(lines, encoding="utf-8")
    out = ok("f1", gold, tmp_path / "a.txt", tmp_path / "b.txt", "--document", "talk", "-v").stdout
    assert "6 documents (field talk) are taken as independent." in out
    for name in ("ref", "a", "b"):
        lines = texts[name].read_text(encoding="utf-8").splitlines(keepends=True)
        (tmp_path / name).mkdir()
        for i in range(6):
            (tmp_path / name / f"call{i}.txt").write_text("".join(lines[10 * i : 10 * i + 10]), encoding="utf-8")
    folders = [tmp_path / name for name in ("ref", "a", "b")]
    assert "6 documents (files) are taken as independent." in ok("wer", *folders, "-v").stdout
    assert "if segments form documents" in ok("wer", *folders, "--document", "unknown").stdout
    assert "as --document segment says" in ok("wer", *folders, "--document", "segment").stdout
    assert "there is no such file" in refused("wer", texts["ref"], texts["a"], "--document", "talk")


def test_several_metrics_are_one_table(texts: dict[str, Path]) -> None:
    told = [texts["ref"], texts["a"], texts["b"]]
    table = ok("bleu", *told, "--also", "chrf,ter", "--csv").stdout.splitlines()
    assert table[0] == '"system","BLEU"'.replace('"', "") + "".join(
        f',"{metric}, 95 % interval","{metric}, p",{then}'
        for metric, then in (("BLEU", "chrF2"), ("chrF2", "TER"), ("TER", ""))
    ).rstrip(",")
    alone = {name: json.loads(ok(name, *told, "--json").stdout) for name in ("bleu", "chrf", "ter")}
    scores = [[f"{one['systems'][i]['score']:.2f}" for one in alone.values()] for i in range(2)]
    assert [[line.split(",")[k] for k in (1, 4, 7)] for line in table[1:]] == scores
    assert json.loads(ok("bleu", *told, "--also", "chrf,ter", "--json").stdout) == list(alone.values())
    shown = ok("bleu", *told, "--also", "ter", "--lowercase", "-v").stdout
    assert f"# {60} segments; lower is better for TER" in shown
    signed = [line for line in shown.splitlines() if "|nrefs:1|" in line]
    assert [line.split("|")[0] for line in signed] == ["# BLEU", "# TER"]
    assert "|case:lc|" in signed[0]
    plus = json.loads(ok("bleu", *told, "--also", "chrF++", "--json").stdout)[1]
    assert plus == json.loads(ok("chrf", *told, "--plus-plus", "--json").stdout)
    assert "choose one of bleu, cer, chrf, ter, wer" in refused("bleu", *told, "--also", "meteor")
    assert "reads the files twice" in refused("bleu", texts["ref"], "-", "--also", "ter")
    assert "--html does not go with --also" in refused("bleu", *told, "--also", "ter", "--html", "x.html")
    assert "No such option" in refused("f1", *told, "--also", "ter")
