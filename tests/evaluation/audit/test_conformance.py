"""Servers under an audit: each published fault is named, with its place, and sound servers pass."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import run
from tests.models.network.server.faulty_servers import (
    FAULTS,
    EdgeOffByOne,
    EdgeWithoutScore,
    FirstIsStale,
    LongCut,
    SoundServer,
)

import lmgauge
from lmgauge.evaluation.audit.checks import FAIL, NOT_CHECKED, Audit
from lmgauge.evaluation.audit.conformance import _Changes
from lmgauge.models.network.server.http import NOBODY, ServerError

WORDS = ["the", "cat", "dog", "saw", "some", "birds", "in", "an", "old", "garden", "and", "then", "12", "went", "home"]
FORMS: dict[str, dict[str, Any]] = {
    "exact": {},
    "rounding": {"noise": 0.02},
    "BOS hidden": {"bos": "hidden"},
    "content list": {"form": "content"},
    "prompt_logprobs": {"form": "prompt_logprobs"},
}


def lines(count: int = 20) -> list[str]:
    chance = random.Random(1)
    return [" ".join(chance.choices(WORDS, k=chance.randint(5, 18))).capitalize() + "." for _ in range(count)]


def audited(server: SoundServer, text: list[str] | None = None, **settings: Any) -> Audit:
    settings = {"levels": ["normalization", "causality"], "contexts": 10} | settings
    with server.at_hand() as toy:
        return lmgauge.audit(toy.url, lmgauge.Corpus.from_strings(text or lines()), **settings)


def failed(result: Audit) -> dict[str, str]:
    return {check.name: check.evidence for check in result.failures}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("more", [{}, {"limit": 150}, {"takes_lists": False}])
def test_sound_servers_pass(form: str, more: dict[str, Any]) -> None:
    server = SoundServer(**FORMS[form], **more)
    result = audited(server)
    assert failed(result) == {}
    checks = {check.name: check for check in result.checks}
    assert [name for name, check in checks.items() if check.verdict == NOT_CHECKED and name != "all"] == [
        *["agreement"] * (form == "prompt_logprobs"),
        *["groups"] * ("takes_lists" in more),
    ]
    assert (0.05 if form == "rounding" else 0.0) <= checks["repeats"].details["largest"] < 0.15
    # Those that found out how to ask come before.
    asked = [path for path, _, content in server.requests if path == "POST /completions"]
    assert 60 < checks["replies"].details["requests"] < len(asked) < checks["replies"].details["requests"] + 12


@pytest.mark.parametrize("form", ["exact", "rounding"])
@pytest.mark.parametrize(("kind", "name", "words"), FAULTS, ids=[kind.__name__ for kind, _, _ in FAULTS])
def test_every_fault_is_named_with_its_place(kind: type[SoundServer], name: str, words: str, form: str) -> None:
    evidence = failed(audited(kind(**FORMS[form])))
    assert re.search(words, evidence[name]), evidence


@pytest.mark.parametrize("form", ["BOS hidden", "content list", "prompt_logprobs"])
@pytest.mark.parametrize("kind", [EdgeWithoutScore, LongCut])
def test_in_other_dialects(kind: type[SoundServer], form: str) -> None:
    assert list(failed(audited(kind(**FORMS[form])))) == ["replies"]


def test_an_edge_at_512_and_one_that_is_not_there() -> None:
    evidence = failed(audited(EdgeOffByOne(chunk=512), lines(60)))
    assert "1 difference in " in evidence["agreement"]
    assert "at the edges of chunks of 512 tokens; the first: token 513, " in evidence["agreement"]
    assert audited(EdgeOffByOne(chunk=1024), lines(60)).passed  # no prompt is so long


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        ([1], "at the first token of prompts"),
        ([512, 1024], "at the edges of chunks of 512 tokens"),
        ([511, 1024, 1537], "at the edges of chunks of 512 tokens"),
        ([500, 1500, 2000], "at the edges of chunks of 500 tokens"),
        ([499, 999, 1499], "at the edges of chunks of 500 tokens"),
        ([2048], "at the edges of chunks of 2,048 tokens"),
        (range(700, 2100), "behind token 700, up to which all are the same"),
        ([300], "in 1 place from token 301 to 301"),
        (range(2, 2100, 7), "in 300 places from token 3 to 2,096"),
    ],
)
def test_places_in_words(moved: Any, words: str) -> None:
    changes = _Changes(0.1)
    changes._places, changes._moved = [*range(1, 2100)], [*moved]
    assert changes._where() == words


def test_how_much_is_asked() -> None:
    def requests(**settings: Any) -> int:
        result = audited(SoundServer(), lines(40), **settings)
        return int(result.checks[0].details["requests"])

    assert requests(contexts=1) < 30 < requests(contexts=10) < 120 < requests(contexts=1000) < 280
    assert requests(contexts=100, exhaustive=True) > 350


def test_repeats_that_differ_are_the_floor() -> None:
    result = audited(SoundServer(noise=0.05))
    assert result.passed
    floor, *others = [check.details for check in result.checks if check.name in ("repeats", "order", "load")]
    assert floor["tolerance"] == 1.0
    assert all(other["tolerance"] == pytest.approx(2 * floor["largest"]) for other in others)


def test_a_text_that_cannot_be_scored_to_its_end_fails_at_coverage() -> None:
    server = EdgeWithoutScore(chunk=40)
    long = " ".join(lines(6))
    result = audited(server, ["a cat", long], levels=["coverage"])
    [check] = [check for check in result.checks if check.level == "coverage"]
    assert (check.verdict, check.name) == (FAIL, "segments")
    assert "could not be scored to its end: <strings>, line 2: gives no log-probability for token 40" in check.evidence
    assert result.perplexity is None


@pytest.mark.parametrize("text", [[""], ["", "   "], ["東"], ["<s>"]])
def test_odd_texts(text: list[str]) -> None:
    assert failed(audited(SoundServer(), text)) == {}


def test_all_levels_over_a_connection(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(lines(12)) + "\n", encoding="utf-8")
    with SoundServer().running() as toy:
        result = run("audit", "-m", toy.url, path, "--contexts", "6")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("# toy\n# PASS: no problem found; contamination and compression not checked.")
    assert "NOT CHECKED\ta server tells the log-probabilities of the text's tokens" in result.stdout
    with FirstIsStale().running() as toy:
        result = run("audit", "-m", toy.url, path, "--contexts", "6", "--json")
    assert result.exit_code == 1
    levels = json.loads(result.stdout)["levels"]
    assert (levels["coverage"], levels["causality"], levels["compression"]) == ("PASS", "FAIL", "NOT CHECKED")


def test_a_server_that_goes_away_is_no_finding() -> None:
    class Gone(SoundServer):
        def choices(self, prompts: list[str], count: int) -> tuple[int, Any]:
            if len(self.requests) > 20:
                raise ServerError(f"{self.url}: no answer after 6 tries: gone", NOBODY)
            return super().choices(prompts, count)

    with pytest.raises(ServerError, match="no answer after 6 tries"):
        audited(Gone())


def test_a_first_token_without_a_score_is_no_wrong_spelling() -> None:
    result = audited(SoundServer(bos="hidden"), lines(5), levels=["coverage"])
    verdicts = {check.name: check.verdict for check in result.checks if check.level == "coverage"}
    assert (result.passed, verdicts["spelling"], verdicts["spans"]) == (True, NOT_CHECKED, "PASS")


def test_what_is_left_when_the_text_cannot_be_scored() -> None:
    result = audited(EdgeWithoutScore(), [" ".join(lines(9))], levels=["coverage", "contamination", "compression"])
    reasons = {check.level: check.evidence for check in result.checks if check.verdict == NOT_CHECKED}
    assert reasons["contamination"] == "the audit ended before it, at what failed"
    assert reasons["compression"].startswith("a server tells the log-probabilities of the text's tokens")


def test_a_stored_run_with_its_server(tmp_path: Path) -> None:
    text = lmgauge.Corpus.from_strings(lines(5))
    with SoundServer(noise=0.01).at_hand() as toy:
        lmgauge.evaluate(toy.url, text, output=tmp_path / "run")
        result = lmgauge.audit(toy.url, text, run=tmp_path / "run", contexts=1)
    assert result.passed
    assert {"stored rows", "load"} <= {check.name for check in result.checks}
