"""The audit finds every broken model of the gallery at the right check, and passes the sound ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evaluation.audit.gallery import (
    GALLERY,
    UNPROVABLE,
    Sound,
    SoundFloat32,
    SoundStream,
    SoundWithoutEnds,
)

from lmgauge.errors import CheckFailedError
from lmgauge.evaluation.audit import FAIL, LEVELS, NOT_CHECKED, PASS, Audit, audit
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
        found[kind] = audit(kind(lines[:250]), corpus, contexts=200, proof_bytes=10_000)
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
    assert audited[kind].verdict("proof") == FAIL, str(audited[kind])


@pytest.mark.parametrize("kind", [Sound, SoundStream, SoundWithoutEnds, SoundFloat32], ids=lambda value: value.__name__)
def test_sound_models_pass(audited: dict[type[Sound], Audit], kind: type[Sound]) -> None:
    found = audited[kind]
    assert found.passed, str(found)
    assert found.require() is found
    assert [found.verdict(level) for level in LEVELS] == [PASS, PASS, PASS, NOT_CHECKED, PASS]
    assert [c.name for c in found.checks if c.verdict == NOT_CHECKED] == ["training text"]
