"""The audit finds every broken model of the gallery at the right check, and passes the sound ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluation.audit.auditing import audit
from tests.evaluation.audit.gallery import (
    GALLERY,
    UNPROVABLE,
    CheatsLate,
    FitsItselfOnFirstScore,
    Floats,
    HashedCache,
    Ids,
    MemorizesPrefixes,
    NotANumber,
    RemembersWhatItWasAsked,
    Sound,
    SoundCache,
    SoundFloat32,
    SoundStream,
    SoundWithoutEnds,
)

from lmgauge.base.errors import CheckFailedError
from lmgauge.evaluation.audit.checks import FAIL, LEVELS, NOT_CHECKED, PASS, Audit
from lmgauge.text.documents import Corpus


@pytest.fixture(scope="module")
def lines(data: Path) -> list[str]:
    text = (data / "tinyshakespeare.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line][:400]


def asked_together(kind: type[Sound]) -> type[Sound]:
    """The same model, which can also be asked about many contexts at a time."""

    class Many(kind):  # type: ignore[misc, valid-type]
        contexts_at_a_time = 8

        def log_distributions(self, contexts: Ids) -> Floats:
            assert len({len(context) for context in contexts}) == 1
            return np.stack([self.log_distribution(context) for context in contexts])

        log_distribution = kind.log_distribution

    return Many


Audits = dict[tuple[type[Sound], bool], Audit]
"""By the class, and if it is asked about many contexts at a time."""
SOUND = [Sound, SoundStream, SoundCache, SoundWithoutEnds, SoundFloat32]
OF_PREDICTIONS = [kind for kind, level, _ in GALLERY if level == "normalization"] + UNPROVABLE
OF_PREDICTIONS += [MemorizesPrefixes, RemembersWhatItWasAsked, FitsItselfOnFirstScore]
"""Models whose fault shows in whole distributions or changes them. How many are asked for at a time matters to no other."""
KINDS = [(kind, False) for kind in dict.fromkeys([*(kind for kind, _, _ in GALLERY), *UNPROVABLE, *SOUND])]
KINDS += [(kind, True) for kind in dict.fromkeys([*OF_PREDICTIONS, *SOUND])]


@pytest.fixture(scope="module")
def audited(lines: list[str]) -> Audits:
    """The audit of each model, asked about one context at a time and about many."""
    test = [*lines[200:225], "an unheardofword here", "  two  spaces ", "", "the last line"]
    return {
        (kind, many): audit(
            (asked_together(kind) if many else kind)(lines[:250]),
            Corpus.from_strings(test, block_bytes=450),
            contexts=40,
            compression_bytes=6_000,
        )
        for kind, many in KINDS
    }


def ways(kinds: Iterable[type[Sound]]) -> list[Any]:
    """Each model of `kinds`, asked in each way that is tried."""
    return [
        pytest.param((kind, many), id=f"{kind.__name__}-{'many' if many else 'one'}")
        for kind in kinds
        for many in (False, True)
        if (kind, many) in KINDS
    ]


@pytest.mark.parametrize(("kind", "level", "check"), GALLERY, ids=lambda value: getattr(value, "__name__", value))
def test_broken_models_are_caught(audited: Audits, kind: type[Sound], level: str, check: str) -> None:
    for many in (False, True):
        if (found := audited.get((kind, many))) is not None:
            assert not found.passed
            assert (level, check) in [(c.level, c.name) for c in found.failures], str(found)
            with pytest.raises(CheckFailedError, match="fails the audit at"):
                found.require()


@pytest.mark.parametrize("kind", ways(UNPROVABLE))
def test_what_claims_too_much_cannot_be_proved(audited: Audits, kind: tuple[type[Sound], bool]) -> None:
    assert audited[kind].verdict("compression") == FAIL, str(audited[kind])


@pytest.mark.parametrize("kind", ways(SOUND))
def test_sound_models_pass(audited: Audits, kind: tuple[type[Sound], bool]) -> None:
    found = audited[kind]
    assert found.passed, str(found)
    assert found.require() is found
    assert [found.verdict(level) for level in LEVELS] == [PASS, PASS, PASS, NOT_CHECKED, PASS]
    assert [c.name for c in found.checks if c.verdict == NOT_CHECKED] == ["training text"]


@pytest.mark.parametrize("kind", ways([MemorizesPrefixes, FitsItselfOnFirstScore]))
def test_what_learns_from_the_test_fails_at_nothing_else(audited: Audits, kind: tuple[type[Sound], bool]) -> None:
    """Every other level is right to pass: once it has learned, the model is sound."""
    found = audited[kind]
    assert {check.name for check in found.failures} == {"memory", "untouched copy"}, str(found)
    assert any("changed by being shown the text, at" in check.evidence for check in found.failures)
    assert found.perplexity is not None
    honest = audited[Sound, kind[1]].perplexity
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


@pytest.mark.parametrize("kind", ways([NotANumber]))
def test_not_a_number_has_words_of_its_own(audited: Audits, kind: tuple[type[Sound], bool]) -> None:
    found = audited[kind]
    sums = next(check for check in found.failures if check.name == "sums")
    assert sums.evidence.startswith("log_distribution gives NaN after “")
    assert "tolerance" not in " ".join(check.evidence for check in found.failures if check.level == "causality")
    assert "perplexity nan" in str(found)


class HonestAlone(Sound):
    """Probabilities that sum to one only where a single context is asked about."""

    contexts_at_a_time = 8

    def log_distributions(self, contexts: Ids) -> Floats:
        return np.stack([self.log_distribution(context) + 0.01 for context in contexts])


class HonestTogether(HashedCache):
    """Probabilities that sum to one only where many contexts are asked about."""

    contexts_at_a_time = 8

    def log_distributions(self, contexts: Ids) -> Floats:
        return np.stack([np.log(self.table[context[-1]] / self.table[context[-1]].sum()) for context in contexts])


@pytest.mark.parametrize("kind", [HonestAlone, HonestTogether])
def test_both_ways_of_asking_are_looked_at(lines: list[str], kind: type[Sound]) -> None:
    found = audit(kind(lines[:250]), Corpus.from_strings(lines[200:260]), levels=["normalization"], contexts=200)
    assert "sums" in [check.name for check in found.failures], str(found)


def test_a_class_that_changes_its_predictions_is_not_asked_by_what_it_inherits(lines: list[str]) -> None:
    class Changed(asked_together(Sound)):  # type: ignore[misc]
        def log_distribution(self, context_ids: Ids) -> Floats:
            return super().log_distribution(context_ids) + 0.01

    found = audit(Changed(lines[:250]), Corpus.from_strings(lines[200:260]), levels=["normalization"], contexts=200)
    sums = next(check for check in found.checks if check.name == "sums")
    assert sums.details["off"] == sums.details["contexts"] == 200
