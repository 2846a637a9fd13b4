"""Context curves beside a twin that scores each token alone, and how sure they say they are."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.models.network.conftest import byte_level, network  # noqa: E402
from tests.reference.context_curve import log_probabilities, tokens_seen  # noqa: E402

import lmgauge  # noqa: E402
from lmgauge.base.errors import InputError, UsageError  # noqa: E402
from lmgauge.evaluation.context_curve.curve import ContextCurve  # noqa: E402
from lmgauge.models.network.options import ScoringOptions  # noqa: E402
from lmgauge.models.network.torch.model import NeuralModel  # noqa: E402
from lmgauge.models.network.windows import Layout  # noqa: E402
from lmgauge.numerics.intervals import spread  # noqa: E402
from lmgauge.numerics.resampling import holm  # noqa: E402
from lmgauge.numerics.units import nats_to_bits  # noqa: E402
from lmgauge.scores.context_policy import ContextPolicy  # noqa: E402

WORDS = "the cat sat on the mat and nobody came to see a long day »é« "
TEXTS = [WORDS[n:] + WORDS[: 3 * n] + "xyz" * n for n in range(8)]
SHORT = ["a cat", ""]


def model(kind: str = "gpt2", **options: Any) -> NeuralModel:
    tokenizer = byte_level()
    return NeuralModel.wrap(network(kind, len(tokenizer)), tokenizer, ScoringOptions(**options), label="tiny")


def corpus(texts: list[str] | None = None, *, documents: list[str] | None = None, **options: Any) -> lmgauge.Corpus:
    texts = TEXTS[:4] + SHORT + TEXTS[4:] if texts is None else texts
    return lmgauge.Corpus.from_strings(texts, documents=documents, **options)


@torch.inference_mode()
def expected(own: NeuralModel, length: int, longest: int, stride: int, *, newline: bool = False) -> list[list[float]]:
    """Of each of the texts the log-probabilities of the counted tokens, each predicted alone."""

    def predict(ids: list[int]) -> Any:
        return own.network(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1).numpy()

    tokenizer = byte_level()
    ids = [tokenizer(text + "\n" * newline, add_special_tokens=False)["input_ids"] for text in TEXTS]
    start = [tokenizer.bos_token_id] if own.context_policy.first in ("bos", "eos") else []
    return log_probabilities(ids, start, length, longest, stride, predict)


@pytest.mark.parametrize(
    ("kind", "options", "lengths", "stride"),
    [
        ("gpt2", {}, (8, 12, 24), None),
        ("gpt2", {"first_token": "uniform", "end": "none"}, (7, 16), 5),
        ("gpt2", {"first_token": "unscored", "batch_tokens": 30}, (8, 20), 8),
        ("mamba", {}, (4, 16), None),
        ("mamba", {"end": "none"}, (8, 24), 1),
    ],
)
def test_figures_are_those_of_tokens_scored_alone(
    kind: str, options: Any, lengths: tuple[int, ...], stride: int | None
) -> None:
    own = model(kind, **options)
    curve = lmgauge.context_curve(own, corpus(documents=[str(n) for n in range(10)]), lengths, stride=stride)
    step = curve.stride
    assert step == (lengths[0] // 4 if stride is None else stride)
    alone = [expected(own, length, lengths[-1], step) for length in lengths]
    table = np.array([[math.fsum(part) for part in parts] for parts in alone])
    counts = np.array([len(part) for part in alone[0]])
    assert curve.events == counts.sum()
    assert (curve.segments, curve.segments_in_all) == (np.count_nonzero(counts), 10)
    for point, length, nats in zip(curve.points, lengths, table, strict=True):
        assert point.context == length
        assert point.log_probability == pytest.approx(nats.sum(), abs=2e-3)
        assert point.bits_per_token == pytest.approx(nats_to_bits(-nats.sum() / counts.sum()), abs=1e-5)
        over = spread(-nats, counts.astype(float), np.arange(8))
        assert over is not None
        assert point.interval_per_token is not None
        assert point.interval_per_token.high == pytest.approx(nats_to_bits(over.interval().high), abs=1e-4)
        assert point.interval_per_token.units == np.count_nonzero(counts)
    p_values = []
    for step_of, (shorter, longer) in zip(curve.steps, pairwise(table), strict=True):
        saved = shorter - longer
        over = spread(saved, counts.astype(float), np.arange(8))
        assert over is not None
        assert step_of.bits_per_token == pytest.approx(nats_to_bits(saved.sum() / counts.sum()), abs=1e-5)
        assert step_of.interval_per_token is not None
        assert step_of.interval_per_token.low == pytest.approx(nats_to_bits(over.interval().low), abs=1e-4)
        p_values.append(over.p_value)
    assert [one.p_value for one in curve.steps] == pytest.approx(p_values, rel=0.02)
    assert [one.p_value_holm for one in curve.steps] == holm([one.p_value for one in curve.steps])


def test_what_a_window_shows() -> None:
    for length in range(1, 9):
        for stride in range(1, length + 1):
            for before in range(length, 40):
                seen = tokens_seen(before, length, stride)
                assert length - stride + 1 <= seen <= length
                assert seen == before - Layout(length, stride).begin(before)
                if length % stride == 0:  # then longer contexts have the same number of tokens more, of every token
                    assert seen - length == tokens_seen(before, stride, stride) - stride


def test_bytes_are_those_of_the_counted_tokens() -> None:
    """A token is one byte or a few; with a first token that is uniform and lengths 1 and 2, all but the first two count."""
    own = model(first_token="uniform")
    scored = own.score_text(TEXTS[3])
    curve = lmgauge.context_curve(own, corpus([TEXTS[3]]), [1, 2])
    assert curve.events == len(scored) - 2
    assert curve.bytes == len(TEXTS[3].encode()) - scored.spans[1][1]


def test_line_ends_count_where_they_are_scored(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    curves = [lmgauge.context_curve(model(end=end), tmp_path / "lines.txt", [4, 8]) for end in ("newline", "none")]
    assert curves[0].bytes - curves[1].bytes == curves[0].events - curves[1].events == len(TEXTS)
    assert curves[0].events_in_all - curves[1].events_in_all == len(TEXTS)


def test_documents_are_what_is_independent() -> None:
    names = [str(n // 2) for n in range(10)]
    own = model()
    few = lmgauge.context_curve(own, corpus(documents=names), "8,16")
    assert few.documents == 4  # the fifth is too short
    assert few.independence.startswith(
        "fewer than 6 documents, so this is about text like these; 8 spans of 64 tokens are taken as independent"
    )
    assert "|independent:unknown|" in few.signature
    known = lmgauge.context_curve(own, corpus(documents=[str(n) for n in range(10)]), "8,16")
    assert "8 segments are taken as independent, as each is a document (names)" in known.independence
    assert "|lengths:8+16|stride:2|n:" in known.signature
    assert "|context:sentence,end=newline|independent:segments|" in known.signature
    assert any("only 8 segments" in note for note in known.notes)
    unknown = lmgauge.context_curve(own, corpus(), "8,16")
    assert unknown.documents is None
    assert "spans of 64 tokens" in unknown.independence
    assert "documents" not in unknown.independence
    one = lmgauge.context_curve(own, corpus([" ".join(TEXTS)] * 2, documents=["a", "a"]), "8,16")
    assert one.documents == 1
    assert one.independence.startswith("fewer than 6 documents, so this is about text like these")
    assert [point.log_probability for point in few.points] == [point.log_probability for point in unknown.points]


def test_how_a_text_is_cut_into_blocks_changes_rounding_only() -> None:
    own = model(batch_tokens=10_000)
    whole, parts = (lmgauge.context_curve(own, corpus(block_bytes=size), "8,16") for size in (10_000, 50))
    assert whole.events == parts.events
    assert [p.bits_per_byte for p in whole.points] == pytest.approx([p.bits_per_byte for p in parts.points], abs=1e-6)


def test_lengths_run_in_several_processes(checkpoint_folder: Path) -> None:
    alone, shared = (
        lmgauge.context_curve(
            checkpoint_folder, corpus(block_bytes=80), "8,16", threads=n, scoring=ScoringOptions(device="cpu", processes=n)
        )
        for n in (1, 2)
    )
    assert shared == alone


@pytest.fixture
def checkpoint_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from lmgauge.text import work_units

    monkeypatch.setattr(work_units, "UNIT_BYTES", 300)
    tokenizer = byte_level()
    network("gpt2", len(tokenizer)).save_pretrained(tmp_path / "net")
    tokenizer.save_pretrained(tmp_path / "net")
    return tmp_path / "net"


def test_a_curve_as_rows_and_plain_values(tmp_path: Path) -> None:
    curve = lmgauge.context_curve(model(), corpus(), [8, "16", 24])
    assert isinstance(curve, ContextCurve)
    plain = curve.to_dict()
    assert [point["context"] for point in plain["points"]] == [8, 16, 24]
    rows = curve.to_rows()
    assert [row["context"] for row in rows] == [8, 16, 24]
    assert rows[0]["difference_per_token"] is None
    assert rows[1]["difference_per_token"] == curve.steps[0].bits_per_token
    assert curve.points[0].interval_per_byte is not None
    assert rows[0]["byte_low"] == curve.points[0].interval_per_byte.low
    for ending in (".csv", ".tsv", ".jsonl", ".parquet"):
        curve.write_rows(tmp_path / f"rows{ending}")
        assert (tmp_path / f"rows{ending}").stat().st_size
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert len(lines) == 4
    assert curve.charts == ("context", "context-steps")
    assert repr(curve).startswith("<ContextCurve: tiny: bits per token with a context of 8: ")


def test_bits_per_byte_are_a_bound_where_the_tokens_lose_text() -> None:
    from tests.models.network.conftest import lowercasing

    tokenizer = lowercasing()
    own = NeuralModel.wrap(network("mamba", len(tokenizer)), tokenizer, label="tiny")
    text = "the cat sat on the mat . " * 3
    curve = lmgauge.context_curve(own, corpus([text.title(), text]), "2,4")
    assert curve.bits_per_byte_is_bound
    assert curve.bound_reasons


def curve_of(lengths: str, texts: list[str] | None = None, *, own: Any = None, **options: Any) -> ContextCurve:
    return lmgauge.context_curve(model() if own is None else own, corpus(texts), lengths, **options)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: curve_of("8,64"), UsageError, "context 64: this model has positions for 48"),
        (lambda: curve_of("8,16", SHORT), InputError, "no segment of the text has a token with 16"),
        (lambda: curve_of("8,16", stride=9), UsageError, "stride 9: give 1 to 8, the shortest"),
        (lambda: curve_of("8,16", stride=0), UsageError, "stride must be a whole number, 1 or more; got 0"),
        (
            lambda: curve_of("8,16", own=model(stream=True, context=16)),
            UsageError,
            "tiny: its context continues across segments",
        ),
        (
            lambda: curve_of("8,16", own="x", scoring=ScoringOptions(context=8)),
            UsageError,
            "contexts already set how much the model sees",
        ),
        (lambda: curve_of("8,16", own=lmgauge.train("laplace", corpus(["a b"]))), UsageError, "laplace3: contexts need a"),
    ],
)
def test_what_has_no_curve(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_policies_keep_all_but_their_windows() -> None:
    own = model(first_token="uniform", end="none")
    policy = own.with_options(replace(own.options, context=16, stride=4)).context_policy
    assert policy == ContextPolicy(unit="sentence", length=16, stride=4, first="uniform", end="none")
