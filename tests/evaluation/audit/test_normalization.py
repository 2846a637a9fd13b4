"""Spelled models pass the audit, all bytes proved; what pays too little for letters or blanks fails, and it says why."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluation.audit.auditing import audit, events_of
from tests.evaluation.audit.gallery import Sound

import lmgauge
from lmgauge import Corpus
from lmgauge.evaluation.audit.checks import FAIL, NOT_CHECKED, PASS, Audit
from lmgauge.evaluation.audit.compression import NoCodeError, check_compression, decode_segments, encode_segments
from lmgauge.evaluation.audit.subject import Rows, Subject
from lmgauge.models.combined.mixture.model import MixtureModel
from lmgauge.models.combined.spelling.model import SpelledModel
from lmgauge.models.combined.spelling.speller import Spelling
from lmgauge.scores import OOV, SEPARATOR, SPELLED, SPELLING, ScoreBatch, iter_segments
from lmgauge.text.segments import Segments

pytest.importorskip("constriction")
LINES = ["to be or not to be", "that  is the question", "\tto sleep", "", "perchance to dream, my lord"]
TEST = [*LINES[:2], "the lady  dreams", " 日本 to\tbe", "", "  ", "isn't it", "x\u3000y", "to sleep"]


def trained(lines: Sequence[str] = LINES, **options: Any) -> SpelledModel:
    model = lmgauge.train("witten-bell", Corpus.from_strings(list(lines)), order=2, vocabulary="spelled", **options)
    assert isinstance(model, SpelledModel)
    return model


@pytest.fixture(scope="module")
def model() -> SpelledModel:
    return trained()


def audited(model: Any, lines: Sequence[str] = TEST, **options: Any) -> Audit:
    return audit(model, Corpus.from_strings(list(lines), block_bytes=40), contexts=80, **options)


def evidence(found: Audit, name: str) -> str:
    return next(check.evidence for check in found.checks if check.name == name)


def verdicts(found: Audit) -> dict[str, str]:
    return {check.name: check.verdict for check in found.checks}


def assert_proved(found: Audit) -> None:
    size = sum(len(line.encode()) for line in TEST)
    assert found.passed, str(found)
    assert {name for name, verdict in verdicts(found).items() if verdict == NOT_CHECKED} <= {"training text"}
    assert f"all {size:,} bytes" in evidence(found, "decoding")
    assert not found.bits_per_byte_is_bound
    assert verdicts(found)["letters"] == verdicts(found)["parts"] == PASS


@pytest.mark.parametrize("tokenizer", ["whitespace", "icu", "treebank", "character"])
@pytest.mark.parametrize("context", ["sentence", "stream"])
def test_spelled_models_are_proved(tokenizer: str, context: Any) -> None:
    if tokenizer == "icu":
        pytest.importorskip("icu4py")
    found = audited(trained(tokenizer=tokenizer, context=context))
    assert_proved(found)
    assert ("separators" in verdicts(found)) == (tokenizer != "character")


def test_a_mixture_inside_is_proved() -> None:
    one, two = trained(), trained([*LINES, "to be my lord"])
    same = lmgauge.train("laplace", Corpus.from_strings(LINES), order=1)
    mixture = MixtureModel([one.inner, same], [0.5, 0.5])
    assert_proved(audited(SpelledModel(mixture, two.speller, two.separators)))


def test_a_text_of_known_words_has_nothing_to_spell(model: SpelledModel) -> None:
    found = audited(model, ["to be", "or not"])
    assert found.passed
    assert evidence(found, "letters").startswith("The text has no unseen word. None of")


def test_text_given_before_segments(model: SpelledModel) -> None:
    blocks = [*Corpus.from_strings(["to be zork |", "or not"])]
    block = blocks[0]
    text = block.data.tobytes()
    begin = text.index(b"zork")
    lines = Segments(block.data, np.array([begin]), np.array([begin + 6]), "text", given_starts=np.array([0]))
    found = audit(model, [replace(lines, boundary="apart")], contexts=10, levels=["normalization"])
    assert found.passed, str(found)


# -- tampered rows --------------------------------------------------------------------------------------------------


class Tampered(SpelledModel):
    """Changes its rows after they are made."""

    change: Callable[[ScoreBatch], ScoreBatch]

    @classmethod
    def of(cls, model: SpelledModel, change: Callable[[ScoreBatch], ScoreBatch]) -> Tampered:
        tampered = cls(model.inner, model.speller, model.separators)
        tampered.change = change
        return tampered

    def spelled(self, block: Segments, batch: ScoreBatch) -> ScoreBatch:
        return self.change(super().spelled(block, batch))


def with_column(name: str, change: Callable[[Any], Any]) -> Callable[[ScoreBatch], ScoreBatch]:
    def changed(batch: ScoreBatch) -> ScoreBatch:
        column = change(batch.extra[name])
        logprob = batch.logprob - batch.extra[name] + column
        return replace(batch, logprob=logprob, extra={**batch.extra, name: column})

    return changed


def failures(found: Audit) -> dict[str, str]:
    return {check.name: check.evidence for check in found.failures}


def test_letters_at_half_their_price(model: SpelledModel) -> None:
    found = failures(audited(Tampered.of(model, with_column(SPELLING, lambda column: column / 2))))
    assert {"letters", "code length", "untouched copy"} <= set(found)
    assert "The column `spelling` is not what the model gives at 6 of 6 unseen words" in found["letters"]
    assert "step by step it is -" in found["letters"]
    assert "the numbers are not probabilities" in found["code length"]


def test_letters_at_twice_their_price(model: SpelledModel) -> None:
    found = failures(audited(Tampered.of(model, with_column(SPELLING, lambda column: column * 2))))
    assert {"letters", "code length"} <= set(found)  # a code that is shorter than claimed is no proof either


def test_separators_of_other_rows(model: SpelledModel) -> None:
    found = failures(audited(Tampered.of(model, with_column(SEPARATOR, lambda column: np.roll(column, 1)))))
    assert "The column `separator` is not what the model gives" in found["separators"]


def test_letters_moved_to_the_event(model: SpelledModel) -> None:
    """The sum of the row stays, so that the code is as long as before: only the parts are wrong."""

    def moved(batch: ScoreBatch) -> ScoreBatch:
        return replace(batch, extra={**batch.extra, SPELLING: batch.extra[SPELLING] / 2})

    found = failures(audited(Tampered.of(model, moved)))
    assert {"agreement", "letters"} <= set(found)
    assert "code length" not in found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: replace(b, extra={}), "is spelled, but there is no column `spelling` that pays for its letters"),
        (with_column(SPELLING, lambda c: c * 0), "is spelled, but nothing is paid for its letters"),
        (with_column(SPELLING, lambda c: c - 1.0), "is not spelled, but has a spelling (-1 nats)"),
        (with_column(SEPARATOR, lambda c: c * 0 + 0.5), "has a separator that is NaN or above 0 (0.5 nats)"),
        (
            lambda b: replace(b, extra={**b.extra, SEPARATOR: b.extra[SEPARATOR] - 100.0}),
            "costs less than its spelling and white space do",
        ),
    ],
)
def test_parts_that_break_a_rule(model: SpelledModel, change: Any, message: str) -> None:
    found = failures(audited(Tampered.of(model, change), levels=["coverage"]))
    assert message in found["parts"]


def test_spelled_rows_of_a_model_that_cannot_spell() -> None:
    class Claims(Sound):
        def score(self, segments: Any, **options: Any) -> Any:
            for batch in super().score(segments, **options):
                kind = np.where(batch.kind == OOV, SPELLED, batch.kind).astype(np.uint8)
                yield replace(batch, kind=kind, lossy=np.zeros_like(batch.lossy))

    found = failures(audited(Claims(LINES)))
    assert {"parts", "letters", "decoding"} <= set(found)
    assert "the model has no method `writer`" in found["letters"]
    assert "the model has no method `writer`" in found["decoding"]


# -- spellers that are wrong ----------------------------------------------------------------------------------------


class WithSpelling(SpelledModel):
    """Spells in another way."""

    kind: type[Spelling] = Spelling

    def __init__(self, model: SpelledModel, kind: type[Spelling]) -> None:
        super().__init__(model.inner, model.speller, model.separators)
        assert model.speller is not None
        self.__dict__["spelling"] = kind(model.speller, model.vocabulary)


class SpellsKnownWords(Spelling):
    """Takes known words out of nothing."""

    def _known_next(self, prefix: bytes, logprob: float) -> Any:
        return super()._known_next(prefix, logprob) * 0


class TakesThemOutOfRowsAlone(SpellsKnownWords):
    """As published numbers have it: divided by what is left, but spelled with all."""


class SumsToMore(Spelling):
    """Gives 1 % too much at each letter."""

    def next_character(self, prefix: str) -> Any:
        return super().next_character(prefix) * 1.01


class ForgetsKnownWords(SpellsKnownWords):
    """Knows of no known word, in its rows neither: sound, but known words have two codes."""

    def _sum_known(self) -> float:
        return self._empty


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (SumsToMore, "letters", "probabilities do not sum to 1: to 1.01"),
        (TakesThemOutOfRowsAlone, "letters", "The column `spelling` is not what the model gives"),
        (ForgetsKnownWords, "letters", "Known words can be spelled, so one word has two codes"),
    ],
)
def test_spellers_that_are_wrong(model: SpelledModel, kind: type[Spelling], name: str, message: str) -> None:
    assert message in failures(audited(WithSpelling(model, kind)))[name]


def rows_of(model: SpelledModel, lines: Sequence[str]) -> list[Rows]:
    segments = iter_segments(model.score(Corpus.from_strings(list(lines))))
    return [Rows.beside(rows, lines[rows.segment].encode(), 0) for rows in segments]


def test_a_decoder_with_another_speller_does_not_get_the_text_back(model: SpelledModel) -> None:
    other = trained([*LINES[:4], "percchance tto dreaam, my lorrd"])
    mixed = SpelledModel(model.inner, other.speller, model.separators)
    lines = [*TEST, *TEST]
    rows = rows_of(model, lines)
    code = encode_segments(Subject(model), rows)
    assert events_of(decode_segments(Subject(trained()), code)) == [part.token_ids.tolist() for part in rows]
    with contextlib.suppress(NoCodeError):
        assert events_of(decode_segments(Subject(mixed), code)) != [part.token_ids.tolist() for part in rows]

    class Changes(SpelledModel):
        """One speller for who codes, another for who decodes."""

        writers = 0

        def writer(self, text: bytes = b"", begin: int | None = None) -> Any:
            self.writers += 1
            return (model if self.writers <= len(rows) else mixed).writer(text, begin)

    length, decoding = check_compression(Subject(Changes(model.inner, model.speller, model.separators)), rows)
    assert length.verdict == PASS
    assert decoding.verdict == FAIL
    assert "Decoding gave other" in decoding.evidence or "cannot be decoded" in decoding.evidence


def test_other_bytes_under_the_same_events_are_told(model: SpelledModel) -> None:
    class Shouts(SpelledModel):
        """Writes down what it decodes in capitals."""

        def writer(self, text: bytes = b"", begin: int | None = None) -> Any:
            return Loud(super().writer(text, begin))

    class Loud:
        def __init__(self, writer: Any) -> None:
            self.writer = writer

        def write(self, *arguments: Any) -> Any:
            return self.writer.write(*arguments)

        @property
        def text(self) -> bytes:
            return bytes(self.writer.text).replace(b"lady", b"LADY")

    model = Shouts(model.inner, model.speller, model.separators)
    _, decoding = check_compression(Subject(model), rows_of(model, TEST))
    assert decoding.verdict == FAIL
    assert decoding.evidence == "Decoding gave other bytes, first byte 5 of segment 3."


def test_words_without_end_are_no_code(model: SpelledModel) -> None:
    class Endless(SpelledModel):
        """Has letters left wherever it is asked."""

        def writer(self, text: bytes = b"", begin: int | None = None) -> Any:
            return Same()

    class Same:
        text = b""

        def write(self, token: int, choose: Any, text: bytes | None = None) -> bytes:
            from lmgauge.models.combined.spelling.incremental_decoding import Step

            step = Step(SPELLING, np.zeros(1), 0)
            while text is None:
                choose(step)
            choose(step)
            return b""

    subject = Subject(Endless(model.inner, model.speller, model.separators))
    with pytest.raises(NoCodeError, match="a spelling has no end"):
        decode_segments(subject, encode_segments(subject, rows_of(model, ["to be"])))


# -- stored runs ----------------------------------------------------------------------------------------------------


def test_a_run_of_a_spelled_model(model: SpelledModel, tmp_path: Path) -> None:
    from lmgauge.evaluation.audit.audit import audit_run, check_model_of_run
    from lmgauge.evaluation.runs import open_run

    (tmp_path / "test.txt").write_text("\n".join(TEST) + "\n", encoding="utf-8")
    model.save(tmp_path / "model")
    lmgauge.evaluate(tmp_path / "model", tmp_path / "test.txt", output=tmp_path / "run")
    run = open_run(tmp_path / "run")
    corpus = Corpus.from_files(tmp_path / "test.txt")
    found = audit_run(run, corpus)
    assert found.passed, str(found)
    assert not found.bits_per_byte_is_bound
    assert verdicts(found)["claims"] == verdicts(found)["parts"] == verdicts(found)["spelling"] == PASS
    checks = check_model_of_run(run, corpus, model)
    assert [check.verdict for check in checks] == [PASS, PASS], checks

    moved = [replace(b, extra={**b.extra, SPELLING: b.extra[SPELLING] / 2}) for b in run.batches()]

    class Edited:
        origin = run.origin

        def batches(self) -> Any:
            return iter(moved)

    checks = check_model_of_run(Edited(), corpus, model)  # type: ignore[arg-type]
    assert checks[1].verdict == FAIL
    assert "a spelling of -" in checks[1].evidence
