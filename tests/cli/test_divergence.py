"""`lmgauge divergence` as users and pipes meet it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import TERMINAL, ok, refused, run

import lmgauge


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts; a model, the same pruned twice, one with a running context over the same words, and one over other words."""
    folder = tmp_path_factory.mktemp("cli")
    lines = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")
    for name, part in {"train": lines[:1200], "test": lines[1400:1600]}.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in part), encoding="utf-8", newline="\n")
    train = ["--order", 3, folder / "train.txt", "-o"]
    ok("train", "modified-kneser-ney", *train, folder / "kn3")
    ok("train", "modified-kneser-ney", "--prune", 1e-4, *train, folder / "pruned")
    ok("train", "modified-kneser-ney", "--prune", 1e-6, *train, folder / "lightly")
    ok("train", "witten-bell", "--context", "stream", *train, folder / "stream")
    ok("train", "laplace", folder / "test.txt", "-o", folder / "other")
    return folder


def found(*arguments: object) -> list[dict[str, Any]]:
    """What `lmgauge divergence --json` says of each candidate."""
    items: list[dict[str, Any]] = json.loads(ok("divergence", *arguments, "--json").stdout)
    return items


def test_divergence_as_people_and_as_programs_read_it(folder: Path) -> None:
    arguments = [folder / "kn3", folder / "pruned", folder / "test.txt", "--events", 300]
    shown = ok("divergence", *arguments).stdout
    (item,) = found(*arguments)
    assert "pruned compared with kn3" in shown
    assert f"{item['events']} of {item['total_events']:,} events" in shown
    for name in (
        "KL, nats",
        "reverse KL, bits",
        "expected acceptance rate",
        "Jensen-Shannon, bits",
        "top-5 overlap, %",
        "perplexity of pruned",
        "perplexity ratio",
        "99.9 %",
        "by class",
    ):
        assert name in shown
    assert f"KL, nats\t{item['kl_ab_nats']['value']:#.2g}\t" in shown
    assert f"99.9 %\t{item['kl_ab_quantiles_nats']['99.9']:#.2g}\t" in shown
    assert "noise floor" not in shown  # an n-gram model repeats its numbers
    assert item["floor"] is None
    assert f"{100 * item['top_1_agreement']['value']:.2f}" in shown
    assert item["signature"] not in shown
    assert item["signature"] in ok("divergence", *arguments, "-v").stdout
    narrow = run("divergence", *arguments, "--signature", env=TERMINAL | {"COLUMNS": "80"}).stdout
    assert max(map(len, narrow.splitlines()[:-1])) <= 80
    assert narrow.splitlines()[-1] == item["signature"]
    assert 0 < item["kl_ab_nats"]["interval"]["low"] < item["kl_ab_nats"]["value"] < item["kl_ab_nats"]["interval"]["high"]
    assert set(item["top_k_overlap"]) == {"1", "5", "10"}
    assert found(*arguments, "--threads", 1) == [item]
    brief = ok("divergence", *arguments, "--no-details").stdout
    assert "by class" not in brief
    assert "furthest apart" not in brief


def test_several_candidates(folder: Path) -> None:
    models = [folder / "kn3", folder / "pruned", folder / "lightly", folder / "stream"]
    arguments = [*models, folder / "test.txt", "--exhaustive"]
    items = found(*arguments)
    assert [item["b"] for item in items] == ["pruned", "lightly", "stream"]
    for item, model in zip(items, models[1:], strict=True):
        (alone,) = found(models[0], model, folder / "test.txt", "--exhaustive")
        assert alone | {"tests": item["tests"]} == item
    assert [[test["first"] for test in item["tests"]] for item in items] == [
        [], ["pruned"] * 2, ["pruned", "lightly"] * 2
    ]  # fmt: skip
    shown = ok("divergence", *arguments).stdout
    verdict = " ".join(shown.split("\n\n")[0].split())
    assert "lightly is closest to kn3: mean KL 0." in verdict
    assert "pruned and stream are further away: by at least" in verdict
    assert "lightly than pruned" in shown
    assert "by class" not in shown
    signatures = ok("divergence", *arguments, "--signature").stdout.splitlines()[-4:]
    assert [line.split("|")[0].partition(":")[0] for line in signatures] == ["# div", "# b", "# b", "# b"]
    assert all(
        set(line[2:].split("|")) < set(item["signature"].split("|"))
        for line, item in zip(signatures[1:], items, strict=True)
    )
    assert "by class" in ok("divergence", *arguments, "--details").stdout


def test_divergence_of_everything(folder: Path) -> None:
    arguments = [folder / "kn3", folder / "stream", folder / "test.txt", "--exhaustive", "--top-k", "3,2"]
    shown = ok("divergence", *arguments).stdout
    (item,) = found(*arguments)
    evaluated = ok("eval", "-m", folder / "kn3", "-m", folder / "stream", folder / "test.txt", "--json").stdout
    one, other = json.loads(evaluated)
    assert item["events"] == item["total_events"] == one["events"]
    assert f"all {one['events']:,} events, all 200 segments" in shown
    assert [item["perplexity_a"]["value"], item["perplexity_b"]["value"]] == [one["perplexity"], other["perplexity"]]
    assert set(item["top_k_overlap"]) == {"2", "3"}
    assert item["log_probability_change_nats"]["value"] == pytest.approx(one["cross_entropy"] - other["cross_entropy"])


def test_divergence_from_its_copy_and_from_its_arpa_file(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "kn3", tmp_path / "copy")
    same = ok("divergence", folder / "kn3", tmp_path / "copy", folder / "test.txt", "--events", 100).stdout
    assert "furthest apart" not in same
    assert "by class" not in same
    assert "100.00" in same
    ok("convert", folder / "kn3", tmp_path / "kn3.arpa")
    (item,) = found(folder / "kn3", tmp_path / "kn3.arpa", folder / "test.txt", "--events", 100)
    assert item["kl_ab_nats"]["value"] == pytest.approx(0, abs=1e-9)
    assert item["top_1_agreement"]["value"] == 1.0
    assert item["perplexity_ratio"]["value"] == pytest.approx(1, rel=1e-5)


def test_divergence_shows_what_is_infinite_or_uncertain(folder: Path, tmp_path: Path) -> None:
    ok("train", "mle", "--order", 2, folder / "train.txt", "-o", tmp_path / "mle")
    shown = ok("divergence", folder / "kn3", tmp_path / "mle", folder / "test.txt", "--events", 100).stdout
    assert "the KL divergence of mle from kn3 is infinite at" in shown
    assert "where finite, nats" in shown
    assert "∞" in shown
    assert "∞ – ∞" not in shown
    (tmp_path / "line.txt").write_text("First Citizen:\n")
    assert "these need 6 documents" in ok("divergence", folder / "kn3", folder / "pruned", tmp_path / "line.txt").stdout


def test_divergence_refuses(folder: Path, tmp_path: Path) -> None:
    kn3, text = folder / "kn3", folder / "test.txt"
    assert "different vocabularies" in refused("divergence", kn3, folder / "other", text)
    assert "no such model" in refused("divergence", kn3, folder / "nothing", text)
    assert "0" in refused("divergence", kn3, folder / "pruned", text, "--events", 0)
    assert "whole numbers" in refused("divergence", kn3, folder / "pruned", text, "--top-k", "1,x")
    assert "whole numbers from 1" in refused("divergence", kn3, folder / "pruned", text, "--top-k", "0")
    told = refused("divergence", kn3, folder / "lightly", text, folder / "pruned")
    assert f"{folder / 'pruned'} is a model, not a text: models come first, then texts" in told
    for order in ((text, kn3, folder / "pruned"), (kn3, text, folder / "pruned"), (text, kn3)):
        assert f"{text}: not an ARPA or GGUF file" in refused("divergence", *order)
    for order in ((kn3, kn3, text), (kn3, folder / "pruned", folder / "pruned", text)):
        assert "the same model is named twice" in refused("divergence", *order)
    (tmp_path / "empty.txt").touch()
    assert "no event" in refused("divergence", kn3, folder / "pruned", tmp_path / "empty.txt")
    assert "Missing argument 'CANDIDATE" in refused("divergence", kn3)
    assert "Missing argument 'BASE'" in refused("divergence")


def test_divergence_in_python_takes_one_rank_or_several(folder: Path) -> None:
    models = folder / "kn3", folder / "pruned"
    several = lmgauge.divergence(models[0], {"p": models[1], "l": folder / "lightly"}, folder / "test.txt", events=50)
    assert [(item.a, item.b) for item in several] == [("kn3", "p"), ("kn3", "l")]
    with pytest.raises(lmgauge.base.errors.UsageError, match="no candidate"):
        lmgauge.divergence(models[0], [], folder / "test.txt")
    for top_k in (2, (2,)):
        found = lmgauge.divergence(*models, folder / "test.txt", events=50, top_k=top_k)  # type: ignore[arg-type]
        assert found.top_k_overlap.keys() == {2}
    with pytest.raises(lmgauge.base.errors.UsageError, match="whole numbers from 1"):
        lmgauge.divergence(*models, folder / "test.txt", top_k=0)


def test_a_run_of_each_candidate_goes_where_it_is_told(folder: Path, tmp_path: Path) -> None:
    models = [folder / "kn3", folder / "pruned", folder / "lightly"]
    assert "add --exhaustive" in refused("divergence", *models, folder / "test.txt", "-o", tmp_path / "runs")
    ok("divergence", *models, folder / "test.txt", "--exhaustive", "-o", tmp_path / "runs")
    page = ok("report", tmp_path / "runs" / "pruned", "-o", tmp_path / "page.html")
    assert page.exit_code == 0
    assert "pruned: KL from its base" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "would replace" in refused("divergence", *models[:2], folder / "test.txt", "--exhaustive", "-o", folder / "kn3")


def test_the_table_of_llama_cpp(folder: Path, tmp_path: Path) -> None:
    arguments = [folder / "kn3", folder / "pruned", folder / "lightly", folder / "test.txt", "--events", 300]
    printed = ok("divergence", *arguments, "--llama-cpp", "--html", tmp_path / "page.html").stdout
    items = lmgauge.divergence(arguments[0], arguments[1:3], folder / "test.txt", events=300)
    assert printed.count("Mean    KLD: ") == 2
    for item in items:
        assert item.to_llama_cpp() in printed
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_the_text_may_come_through_a_pipe(folder: Path) -> None:
    models = [folder / "kn3", folder / "pruned", folder / "lightly"]
    text = (folder / "test.txt").read_bytes()
    for options in (["--exhaustive"], ["--events", 200]):
        named = found(*models, folder / "test.txt", *options)
        piped = json.loads(ok("divergence", *models, *options, "--json", stdin=text).stdout)
        for one, other in zip(named, piped, strict=True):
            assert one["kl_ab_nats"]["value"] == other["kl_ab_nats"]["value"]
