"""`lmgauge rescore`: the same as from Python, files written, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused, run
from tests.tasks.nbest import share

import lmgauge


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rescore")
    model = lmgauge.train("kneser-ney", lmgauge.Corpus.from_strings(["a dog barks", "the dog sleeps"] * 3), order=3)
    model.save(folder / "kn")
    share.write_jsonl(folder / "lists.jsonl")
    share.write_kaldi(folder / "kaldi")
    (folder / "ref.txt").write_text("u1 a dog barks\nu2 the dog sleeps\n")
    (folder / "utt2spk").write_text("u1 anna\nu2 ben\n")
    return folder


def test_the_command_and_the_function_are_one(folder: Path, tmp_path: Path) -> None:
    files = (folder / "kaldi", "-m", folder / "kn", "--tune", folder / "kaldi", "--ref", folder / "ref.txt")
    more = ("--test-ref", folder / "ref.txt", "--document", folder / "utt2spk", "-o", tmp_path / "best.txt")
    printed = ok("rescore", *files, *more, "--starts", 3, "--seed", 7, "--write-scores", tmp_path / "all.jsonl")
    assert "# Another hypothesis is the best in 1 of 2 lists; WER goes from 16.67 % to 0.00 %: no sure" in printed.stdout
    assert "acwt\trecognizer\t1.0000" in printed.stdout
    told = json.loads(ok("rescore", *files, *more, "--starts", 3, "--seed", 7, "--json").stdout)
    result = lmgauge.rescore(
        folder / "kaldi",
        folder / "kn",
        tune=folder / "kaldi",
        ref=folder / "ref.txt",
        test_ref=folder / "ref.txt",
        document=folder / "utt2spk",
        starts=3,
        seed=7,
    )
    assert told["weights"] == result.weights
    assert told["test"]["systems"] == json.loads(json.dumps(result.to_dict()["test"]["systems"]))
    assert (tmp_path / "best.txt").read_text() == "".join(
        f"{u} {t}\n" for u, t in zip(result.ids, result.texts, strict=True)
    )
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 5


def test_the_best_are_written_in_the_form_of_the_name_and_read_from_it(folder: Path, tmp_path: Path) -> None:
    files = (folder / "lists.jsonl", "-m", folder / "kn", "--weights", "score=1/2,kn=100%")
    for name in ("best.txt", "text"):
        ok("rescore", *files, "-o", tmp_path / name)
        assert (tmp_path / name).read_text().startswith("u1 a dog barks\n")
        assert ok("wer", folder / "ref.txt", tmp_path / name, "-b").stdout == "0.00\n"
    for name in ("best.stm", "best.trn", "best.tsv", "best.parquet", "best.txt.gz"):
        assert "written as .txt or .jsonl" in refused("rescore", *files, "-o", tmp_path / name)


def test_references_in_each_form_give_one_rate(folder: Path, tmp_path: Path) -> None:
    rows = '{"id": "u1", "text": "wait; a dog"}\n{"id": "u2", "text": "so; it sleeps;"}\n'
    (tmp_path / "lists.jsonl").write_text(rows)
    (tmp_path / "ref.txt").write_text("u1 wait; a dog\nu2 so; he sleeps;\n")
    (tmp_path / "ref.trn").write_text("wait; a dog (u1)\nso; he sleeps; (u2)\n")
    files = (tmp_path / "lists.jsonl", "-m", folder / "kn", "--weights", "kn=1", "--test-ref")
    rates = [json.loads(ok("rescore", *files, tmp_path / name, "--json").stdout)["test"] for name in ("ref.txt", "ref.trn")]
    assert rates[0] == rates[1]
    assert rates[0]["systems"][1]["score"] == pytest.approx(1 / 6)


def test_standard_streams(folder: Path) -> None:
    lists = (folder / "lists.jsonl").read_bytes()
    result = ok("rescore", "-", "-m", folder / "kn", "--weights", "score=1, kn=1", "-o", "-", stdin=lists)
    assert result.stdout == "u1 a dog barks\nu2 the dog sleeps\n"
    rows = ok("rescore", "-", "-m", folder / "kn", "--weights", "kn=1", "--write-scores", "-", stdin=lists).stdout
    again = ok("rescore", "-", "--weights", "kn=1", "-o", "-", stdin=rows.encode()).stdout
    assert again == "u1 a dog barks\nu2 the dog sleeps\n"


def test_characters_and_normalization(folder: Path) -> None:
    files = (folder / "lists.jsonl", "-m", folder / "kn", "--weights", "characters=1", "--test-ref", folder / "ref.txt")
    told = json.loads(ok("rescore", *files, "--metric", "cer", "--lowercase", "--significance", "none", "--json").stdout)
    assert list(told["weights"]) == ["score", "kn", "characters"]
    assert told["test"]["metric"] == "CER"
    assert told["test"]["test"] is None
    assert "|case:lc|" in told["signature"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--weights", "kn"), "'kn' is not NAME=NUMBER"),
        (("--weights", "=1"), "is not NAME=NUMBER"),
        (("--weights", "kn=x"), "is not NAME=NUMBER"),
        (("--weights", "kn=1", "--starts", "3"), "starts is for tuning"),
        (("--weights", "kn=1", "--document", "ref.txt"), "document, significance and resamples are for the test"),
        (("--weights", "kn=1", "--significance", "none"), "document, significance and resamples are for the test"),
        (("--weights", "kn=1", "-o", "lists.jsonl"), "would replace what this command reads"),
        (("li*.jsonl", "--weights", "kn=1", "-o", "lists.jsonl"), "would replace what this command reads"),
        (("--weights", "kn=1", "-o", "x.txt", "--write-scores", "x.txt"), "would replace each other"),
        (("--weights", "kn=1", "-o", "-", "--write-scores", "-"), "would both be standard output"),
        (("--tune", "-", "--ref", "-"), "standard input (-) is named twice"),
        (("--tune", "kaldi", "--ref", "ref.txt"), "the lists to tune on have the scores 'acwt', the others 'score'"),
        (("--format", "kaldi", "--weights", "kn=1"), "lists of kaldi are folders"),
        ((), "weights are tuned on other lists (--tune DEV --ref REF) or given"),
        (("--weights", "kn=1", "--device", "cuda"), "--device is for"),
    ],
)
def test_what_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str) -> None:
    monkeypatch.chdir(folder)
    assert says in refused("rescore", "lists.jsonl", "-m", "kn", *arguments)
    assert not (folder / "x.txt").exists()


def test_words_of_the_field_lead_to_it() -> None:
    assert "rescore" in run("mert").output
