"""The audit finds every broken model of the gallery at the right check, and passes the sound ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evaluation.audit.auditing import audit
from tests.evaluation.audit.gallery import (
    GALLERY,
    UNPROVABLE,
    CheatsLate,
    FitsItselfOnFirstScore,
    MemorizesPrefixes,
    NotANumber,
    Sound,
    SoundFloat32,
    SoundStream,
    SoundWithoutEnds,
)

from lmgauge.errors import CheckFailedError
from lmgauge.evaluation.audit.results import FAIL, LEVELS, NOT_CHECKED, PASS, Audit
from lmgauge.text.documents import Corpus


@pytest.fixture(scope="module")
def lines(data: Path) -> list[str]:
    text = (data / "tinyshakespeare.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line][:400]


@pytest.fixture(scope="module")
def audited(lines: list[str]) -> dict[type[Sound], Audit]:
    found: dict[type[Sound], Audit] = {}
    test = [*lines[200:260], "an unheardofword here", "  two  spaces ", "", "the last line"]
    for kind in {*(kind for kind, _, _ in GALLERY), *UNPROVABLE, Sound, SoundStream, SoundWithoutEnds, SoundFloat32}:
        corpus = Corpus.from_strings(test, block_bytes=900)
        found[kind] = audit(kind(lines[:250]), corpus, contexts=200, compression_bytes=10_000)
    return found


@pytest.mark.parametrize(("kind", "level", "check"), GALLERY, ids=lambda value: getattr(value, "__name__", value))
def test_broken_models_are_caught(audited: dict[type[Sound], Audit], kind: type[Sound], level: str, check: str) -> None:
    found = audited[kind]
    assert not found.passed
    assert (level, check) in [(c.level, c.name) for c in found.failures], str(found)
    with pytest.raises(CheckFailedError, match="fails the audit at"):
        found.require()


@pytest.mark.parametrize("kind", UNPROVABLE, ids=lambda value: value.__name__)
def test_what_claims_too_much_cannot_be_proved(audited: dict[type[Sound], Audit], kind: type[Sound]) -> None:
    assert audited[kind].verdict("compression") == FAIL, str(audited[kind])


@pytest.mark.parametrize("kind", [Sound, SoundStream, SoundWithoutEnds, SoundFloat32], ids=lambda value: value.__name__)
def test_sound_models_pass(audited: dict[type[Sound], Audit], kind: type[Sound]) -> None:
    found = audited[kind]
    assert found.passed, str(found)
    assert found.require() is found
    assert [found.verdict(level) for level in LEVELS] == [PASS, PASS, PASS, NOT_CHECKED, PASS]
    assert [c.name for c in found.checks if c.verdict == NOT_CHECKED] == ["training text"]


@pytest.mark.parametrize("kind", [MemorizesPrefixes, FitsItselfOnFirstScore], ids=lambda value: value.__name__)
def test_what_learns_from_the_test_fails_at_nothing_else(audited: dict[type[Sound], Audit], kind: type[Sound]) -> None:
    """Every other level is right to pass: once it has learned, the model is sound."""
    found = audited[kind]
    assert {check.name for check in found.failures} == {"memory", "untouched copy"}, str(found)
    assert any("changed by being shown the text, at" in check.evidence for check in found.failures)
    assert found.perplexity is not None
    honest = audited[Sound].perplexity
    assert honest is not None
    assert found.perplexity < honest / 2


def test_one_pass_is_enough_to_see_it(lines: list[str]) -> None:
    once = Corpus.from_strings(iter(lines[200:260]))
    failures = audit(FitsItselfOnFirstScore(lines[:250]), once).failures
    assert {check.name for check in failures} == {"memory", "untouched copy"}


def test_a_stream_is_looked_at_to_its_end(lines: list[str]) -> None:
    text = [lines[i % 400] for i in range(6000)]
    found = audit(CheatsLate(lines[:250]), Corpus.from_strings(text), levels=["normalization"], contexts=100)
    assert [check.name for check in found.failures] == ["agreement"], str(found)
    assert 20 < found.failures[0].details["apart"] < 80
    assert audit(SoundStream(lines[:250]), Corpus.from_strings(text), levels=["normalization"], contexts=100).passed


def test_not_a_number_has_words_of_its_own(audited: dict[type[Sound], Audit]) -> None:
    found = audited[NotANumber]
    sums = next(check for check in found.failures if check.name == "sums")
    assert sums.evidence.startswith("log_distribution gives NaN after “")
    assert "tolerance" not in " ".join(check.evidence for check in found.failures if check.level == "causality")
    assert "perplexity nan" in str(found)
