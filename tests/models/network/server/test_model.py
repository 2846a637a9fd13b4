"""Models on servers: the score table against the toy model's own numbers, and what a server cannot do."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.network.server.toy_server import SPELLINGS, ToyServer, toy_scores, toy_tokens

import lmgauge
from lmgauge.base.errors import UsageError
from lmgauge.base.remote import problems
from lmgauge.base.threads import map_in_order
from lmgauge.evaluation.evaluate import evaluate
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.server import model as completions
from lmgauge.models.network.server.http import KEY_VARIABLE, ServerError
from lmgauge.models.network.server.model import CompletionsModel, UnknownVocabulary, load_completions
from lmgauge.models.protocol import LanguageModel
from lmgauge.models.registry import load_model
from lmgauge.scores import ScoreBatch, ScoreWriter, read_scores
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

LINES = ["The café is open.", "", "  two  spaces ", "東京 1984", "😀", "a"]


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def score(toy: ToyServer, corpus: Corpus, **options: Any) -> list[ScoreBatch]:
    return list(load_completions(toy.url, ScoringOptions(**options)).score(corpus))


def rows(batch: ScoreBatch) -> Iterator[tuple[list[str], list[float], list[int]]]:
    """Tokens, log-probabilities and span ends of each segment."""
    at = 0
    for count in batch.segment_events.tolist():
        part = slice(at, at + count)
        tokens = [batch.strings.tokens[i] for i in batch.token_ids[part].tolist()]
        yield tokens, batch.logprob[part].tolist(), batch.ends[part].tolist()
        at += count


@pytest.mark.parametrize("spelling", sorted(SPELLINGS))
def test_every_token_once_with_line_ends_as_text(spelling: str, lines: Path) -> None:
    with ToyServer(spelling=spelling).running() as toy:
        [batch] = score(toy, Corpus.from_files([lines]))
    assert not batch.lossy.any()
    for line, (tokens, logprob, ends) in zip(LINES, rows(batch), strict=True):
        own = toy_tokens(line + "\n")
        assert tokens == [SPELLINGS[spelling](token) for token in own]
        assert logprob == toy_scores(line + "\n")
        assert ends == np.minimum(np.cumsum([len(token) for token in own]), len(line.encode())).tolist()


@pytest.mark.parametrize("bos", ["hidden", "none"])
def test_first_tokens_without_a_score(bos: str, lines: Path) -> None:
    with ToyServer(bos=bos).running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        [batch] = model.score(Corpus.from_files([lines]))
    assert str(model.context_policy) == "sentence,first=unscored,end=newline"
    assert batch.lossy.all()
    for line, (tokens, logprob, ends) in zip(LINES, rows(batch), strict=True):
        expected = toy_scores(line + "\n", b"" if bos == "none" else b"<s>")
        assert logprob == expected[1:]
        assert len(tokens) == len(logprob) == len(ends)
        assert (ends[-1] if ends else len(line.encode())) == len(line.encode())
    assert batch.segment_events[1] == 0  # of the empty line nothing but its end, which came first


def test_a_text_before_gives_the_first_token_a_score(lines: Path) -> None:
    with ToyServer(bos="none").running() as toy:
        [batch] = score(toy, Corpus.from_files([lines]), bos="<s>")
        assert toy.requests[-1][2]["prompt"].startswith("<s>")
    assert not batch.lossy.any()
    assert [logprob for _, logprob, _ in rows(batch)] == [toy_scores(line + "\n") for line in LINES]


def test_documents_have_no_line_end_of_their_own() -> None:
    with ToyServer().running() as toy:
        [batch] = score(toy, Corpus.from_strings(["The café", "", "a\nb"]))
        assert [logprob for _, logprob, _ in rows(batch)] == [toy_scores("The café"), [], toy_scores("a\nb")]
    assert not batch.lossy.any()


def test_line_ends_may_be_left_out(lines: Path) -> None:
    with ToyServer().running() as toy:
        model = load_completions(toy.url, ScoringOptions(end="none"))
        [batch] = model.score(Corpus.from_files([lines]), spans=False)
    assert str(model.context_policy) == "sentence,end=none"
    assert len(batch.ends) == 0
    expected = [value for line in LINES for value in toy_scores(line)]
    assert batch.logprob.tolist() == expected


@pytest.mark.parametrize("special", ["<unk>", "</s>", "<|endoftext|>"])
def test_names_of_special_tokens_make_bits_a_bound(special: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ToyServer().running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        monkeypatch.setattr(completions, "printable", lambda piece: special if piece == " x" else piece)
        [batch] = model.score(Corpus.from_strings(["a x", "a b"]))
    assert batch.lossy.tolist() == [True, False]


def test_altered_text_is_marked(lines: Path) -> None:
    class Lower(ToyServer):
        def _show(self, token: bytes) -> str:
            return super()._show(token).lower()

    with Lower().running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        [batch] = model.score(Corpus.from_files([lines]))
    assert batch.lossy.tolist() == [True, False, False, False, False, False]
    assert batch.logprob[: batch.segment_events[0]].tolist() == toy_scores(LINES[0] + "\n")
    assert batch.ends[batch.segment_events[0] - 1] == len(LINES[0].encode())


def test_requests_run_together_and_rows_come_in_order(lines: Path) -> None:
    together = threading.Barrier(4, timeout=5)
    passed = []

    def wait(prompt: str) -> None:
        if prompt.startswith("line"):
            passed.append(together.wait())

    corpus = Corpus.from_strings([f"line {i}" for i in range(8)])
    with ToyServer(before_reply=wait).running() as toy:
        [batch] = score(toy, corpus)
    assert len(passed) == 8
    assert [logprob for _, logprob, _ in rows(batch)] == [toy_scores(f"line {i}") for i in range(8)]


def test_a_request_that_fails_ends_the_waiting_of_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They neither ask again nor say so: the command may be at its end by then, and its server gone."""
    monkeypatch.setattr(problems, "FIRST_PAUSE", 25.0)
    free = threading.Barrier(4, timeout=10)

    class Dying(ToyServer):
        def reply(self, path: str, content: dict[str, Any]) -> tuple[int, str]:
            prompt = content.get("prompt", "")
            while prompt == "refused" and len(caplog.records) < 3:
                time.sleep(0.01)
            found = {"refused": (400, "no"), "busy": (503, "loading")}.get(prompt)
            return found or super().reply(path, content)

    with Dying().running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        with pytest.raises(ServerError, match=r"line 1: .*HTTP 400: no"):
            list(model.score(Corpus.from_strings(["refused", "busy", "busy", "busy"])))
        asked = len(toy.requests)
        list(map_in_order(lambda _: free.wait(), range(4), 4))  # none of the four waits for the server any more
    assert (len(toy.requests), len(caplog.records)) == (asked, 3)


def test_blocks_and_threads_change_nothing(lines: Path) -> None:
    def scored(block_bytes: int, threads: int) -> list[float]:
        model = load_completions(toy.url, ScoringOptions())
        batches = list(model.score(Corpus.from_files([lines], block_bytes=block_bytes), threads=threads))
        assert np.concatenate([batch.segments for batch in batches]).tolist() == list(range(len(LINES)))
        return np.concatenate([batch.logprob for batch in batches]).tolist()

    with ToyServer().running() as toy:
        assert scored(1, 1) == scored(1 << 20, 8) == [value for line in LINES for value in toy_scores(line + "\n")]


def test_progress_counts_tokens(lines: Path) -> None:
    told: list[int] = []
    with ToyServer().running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        model.progress = told.append
        [batch] = model.score(Corpus.from_files([lines]))
    assert told == batch.segment_events.tolist()


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (
            (400, '{"error": {"message": "maximum context length is 9"}}'),
            "line 3: .*HTTP 400: maximum context length is 9; cut the text into shorter",
        ),
        ((200, '{"choices": [{"logprobs": {"tokens": ["a"], "token_logprobs": [NaN]}}]}'), "line 3: gives NaN"),
        ((200, "<html>"), "line 3: .*does not answer with JSON"),
        ((200, '{"choices": [{"logprobs": null}]}'), "line 3: .*without log-probabilities"),
    ],
)
def test_errors_say_which_segment(failure: object, words: str, lines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completions, "_AT_A_TIME", 1)
    with ToyServer().running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        toy.failures = [None, None, failure]
        with pytest.raises(ServerError, match=rf"lines.txt, {words}"):
            list(model.score(Corpus.from_files([lines])))


@pytest.mark.parametrize("text", ["The cat sat on the mat, as cats do.", "Zwei große Bäume standen am Weg zu dem Haus"])
@pytest.mark.parametrize("spelling", ["replaced", "dropped", "escaped"])
@pytest.mark.parametrize("bos", ["shown", "none"])
@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({"drops": slice(-6, None)}, "tokens for only part of the prompt|no token for"),
        ({"drops": slice(0, 6)}, "tokens for only part of the prompt|no token for"),
        ({"shows": b"x"}, "tokens of another text than the prompt|no token for"),
        ({"shows": b""}, "no token for the end of the prompt"),
    ],
)
def test_tokens_that_do_not_cover_the_prompt_are_refused(
    faults: dict[str, Any], words: str, bos: str, spelling: str, text: str
) -> None:
    with ToyServer(bos=bos, spelling=spelling).running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        vars(toy).update(faults)
        with pytest.raises(ServerError, match=rf"line 1: the server's reply has ({words})"):
            list(model.score(Corpus.from_strings([text])))


def test_a_server_that_cuts_prompts_is_refused_when_it_is_met() -> None:
    with ToyServer(drops=slice(-2, None)).running() as toy, pytest.raises(ServerError, match=rf"{toy.url}: .* only part of"):
        load_completions(toy.url, ScoringOptions())


def test_the_true_reason_of_a_bound_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lower(ToyServer):
        def _show(self, token: bytes) -> str:
            return super()._show(token).lower()

    with Lower().running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        evaluated = evaluate([model], Corpus.from_strings(["The Café", "two", "a <unk> b"]))[0]
        assert evaluated.notes[0] == "toy: the tokens show the text with changes in 1 segment"
        monkeypatch.setattr(completions, "printable", lambda piece: "<unk>" if piece == " b" else piece)
        evaluated = evaluate([model], Corpus.from_strings(["two", "a b"]))[0]
        assert evaluated.notes[:1] == [
            "toy: names of special tokens (<unk>) stand in 1 segment; the server may read them as those tokens"
        ]


def test_a_server_that_stops_giving_first_scores(lines: Path) -> None:
    with ToyServer().running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        toy.bos = "hidden"
        with pytest.raises(ServerError, match="line 1: the server gives no log-probability for the first token"):
            list(model.score(Corpus.from_files([lines])))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"context": 512}, "--context and --stride count tokens"),
        ({"stride": 5}, "--context and --stride count tokens"),
        ({"stream": True}, "--context stream"),
        ({"first_token": "uniform"}, "the size of the vocabulary on a server is not known"),
        ({"first_token": "eos"}, "--bos"),
        ({"end": "eos"}, "newline or none"),
    ],
)
def test_options_that_do_not_fit_a_server(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_completions("http://127.0.0.1:9/v1", ScoringOptions(**options))


def test_first_token_options() -> None:
    with ToyServer(bos="hidden").running() as toy:
        with pytest.raises(UsageError, match=r"first-token bos: this server scores no first token.*--bos"):
            load_completions(toy.url, ScoringOptions(first_token="bos"))
        assert load_completions(toy.url, ScoringOptions(first_token="unscored")).context_policy.first == "unscored"
        toy.bos = "shown"
        with pytest.raises(UsageError, match="first-token unscored: this server scores the first token"):
            load_completions(toy.url, ScoringOptions(first_token="unscored"))
        assert (
            str(load_completions(toy.url, ScoringOptions(first_token="bos", stream=False)).context_policy)
            == "sentence,end=newline"
        )


def test_what_a_server_cannot_tell() -> None:
    with ToyServer().running() as toy:
        model = load_completions(toy.url, ScoringOptions())
    assert isinstance(model, LanguageModel)
    with pytest.raises(UsageError, match="not of the whole vocabulary"):
        model.log_distribution(np.array([1], np.uint32))
    with pytest.raises(UsageError, match="keeps its tokenizer to itself"):
        model.tokenizer.tokenize(next(iter(Corpus.from_strings(["a"]))))
    for ask in (lambda v: v.tokens, lambda v: v.id("a"), lambda v: v.token(0), lambda v: v.arrays, lambda v: "a" in v):
        with pytest.raises(UsageError, match="the vocabulary of a model on a server is not known"):
            ask(model.vocabulary)
    with pytest.raises(AttributeError):
        model.vocabulary.anything_else  # noqa: B018
    assert len(model.vocabulary) == 0
    assert repr(model.vocabulary) == "UnknownVocabulary()"
    assert model.tokenizer.settings() == {"name": model.tokenizer.name}
    assert (model.tokenizer.files(), model.tokenizer.detokenize(["a", " b"])) == ({}, "a b")
    assert model.to_dict()["server"] == toy.url
    assert toy.url in repr(model)


def test_models_are_told_apart_by_name_and_policy() -> None:
    def fingerprints(name: str, **options: Any) -> tuple[str, str, str]:
        model = load_completions(f"{toy.url}#{name}", ScoringOptions(**options))
        return model.fingerprint, model.vocabulary.fingerprint, model.tokenizer.fingerprint

    with ToyServer(models=["one", "two"]).running() as toy:
        one = fingerprints("one")
        assert one == fingerprints("one")
        assert all(a != b for a, b in zip(one, fingerprints("two"), strict=True))
        for other in (fingerprints("one", end="none"), fingerprints("one", bos="<s>")):
            assert other[0] != one[0]
            assert other[1:] == one[1:]
    assert UnknownVocabulary("a").fingerprint != UnknownVocabulary("b").fingerprint


def test_found_by_its_address() -> None:
    with ToyServer(models=["folder/toy.gguf"]).running() as toy:
        model = load_model(f"{toy.url}#toy.gguf")
    assert isinstance(model, CompletionsModel)
    assert model.label == "toy.gguf"


def test_evaluated_and_compared_like_any_model(lines: Path, tmp_path: Path) -> None:
    with ToyServer(models=["one", "two"]).running() as toy:
        models = [load_completions(f"{toy.url}#{name}", ScoringOptions()) for name in ("one", "two")]
        result = lmgauge.evaluate(models[0], str(lines))
        again = lmgauge.evaluate(models[0], str(lines))
        other = lmgauge.evaluate(models[1], str(lines))
    values = [value for line in LINES for value in toy_scores(line + "\n")]
    size = len(lines.read_bytes())
    assert result.bits_per_byte == pytest.approx(-math.fsum(values) / math.log(2) / size, rel=1e-12)
    assert result.perplexity == pytest.approx(math.exp(-math.fsum(values) / len(values)), rel=1e-12)
    assert not result.bits_per_byte_is_bound
    assert result.signature == again.signature
    assert result.fingerprints["vocabulary"] != other.fingerprints["vocabulary"]


def test_stored_tables_name_the_tokens(tmp_path: Path) -> None:
    texts = [f"word{chr(97 + i % 26)} number {i}" for i in range(60)]
    with ToyServer().running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        with ScoreWriter(tmp_path / "scores.parquet", {}) as writer:
            for batch in model.score(Corpus.from_strings(texts, block_bytes=1)):
                writer.write(batch)
    stored = [tokens for batch in read_scores(tmp_path / "scores.parquet") for tokens, _, _ in rows(batch)]
    assert stored == [[token.decode() for token in toy_tokens(text)] for text in texts]


def test_empty_blocks_are_batches_too() -> None:
    empty = Segments(np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64), "x", terminator=1)
    with ToyServer().running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        [batch] = model.score([empty])
        assert len(model.score_block(empty)) == 0
    assert len(batch) == len(batch.segments) == 0
