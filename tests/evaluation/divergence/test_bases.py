"""Divergence from a stored base: beside that of the two models, in odd pieces, and what is refused."""

import numpy as np
import pyarrow.parquet as pq
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.evaluation.divergence.base_file import BaseFile, writing_base
from lmgauge.evaluation.divergence.bases import StoredBase, header_of, write_base
from lmgauge.evaluation.divergence.sample import Sample
from lmgauge.evaluation.options import DivergenceSettings, StoringSettings

LINES = [f"{a} {b} c {d}" for a in "abcd" for b in "cde" for d in "fgh"]
EXACT = ("top_1_agreement", "log_probability_change_nats", "probability_change_rms", "perplexity_a", "perplexity_b")
MEANS = ("kl_ab_nats", "kl_ba_nats", "jensen_shannon_bits", "total_variation", "acceptance_rate")


@pytest.fixture(scope="module")
def models():
    text = Corpus.from_strings(LINES)
    return {order: lmgauge.train("witten-bell", text, order=order) for order in (1, 2, 3)}


@pytest.fixture
def text():
    return Corpus.from_strings([*LINES[::3], "a c", "h g f", ""])


def test_where_all_tokens_are_stored_all_figures_are_those_of_the_models(models, text, tmp_path):
    saved = lmgauge.save_base(models[3], text, tmp_path / "a.base", base_top=20)
    assert saved.top == len(models[3].vocabulary)
    stored = lmgauge.divergence(tmp_path / "a.base", {"one": models[1], "two": models[2]}, text)
    exact = lmgauge.divergence(models[3], {"one": models[1], "two": models[2]}, text)
    assert "how much storing may have changed" in str(stored)
    assert "how much storing may have changed" not in str(exact)
    for ours, theirs in zip(stored, exact, strict=True):
        assert (ours.events, ours.segments, ours.total_segments) == (theirs.events, theirs.segments, theirs.total_segments)
        for name, figure in theirs.figures().items():
            assert ours.figures()[name].value == pytest.approx(figure.value, abs=1e-6), name
        for error in ours.storage.errors.values():
            assert error.low == error.high
    assert [test.p_value for test in stored.tests] == pytest.approx([test.p_value for test in exact.tests], abs=1e-6)


def test_figures_from_draws_lie_in_their_bounds(models, text, tmp_path):
    lmgauge.save_base(models[3], text, tmp_path / "a.base", base_top=2, base_samples=8)
    stored = lmgauge.divergence(tmp_path / "a.base", models[1], text, top_k=2)
    exact = lmgauge.divergence(models[3], models[1], text, top_k=2)
    for name in EXACT:
        assert getattr(stored, name).value == pytest.approx(getattr(exact, name).value), name
    assert stored.storage.tail_mass > 0.1
    for name in MEANS:
        error, value = stored.storage.errors[name], getattr(exact, name).value
        assert error.low <= value, name
        assert error.high is None or value <= error.high, name
    assert "stored:top=2,samples=8" in stored.signature


@pytest.mark.parametrize(("exact", "close"), [("float32", 1e-6), ("bfloat16", 0.02)])
def test_whole_distributions(models, text, tmp_path, exact, close):
    saved = lmgauge.save_base(models[3], text, tmp_path / "a.base", exact=exact)
    assert (saved.stored, saved.top) == (exact, 0)
    stored = lmgauge.divergence(tmp_path / "a.base", models[1], text, top_k=12)
    theirs = lmgauge.divergence(models[3], models[1], text, top_k=12)
    assert stored.kl_ab_nats.value == pytest.approx(theirs.kl_ab_nats.value, abs=close)
    assert stored.storage.errors == {}


@pytest.mark.parametrize("stored", ["top", "float32"])
def test_a_sample_is_the_same_on_both_sides(models, text, tmp_path, stored):
    saved = lmgauge.save_base(
        models[2], text, tmp_path / "a.base", events=20, seed=7, exact=None if stored == "top" else stored
    )
    result = lmgauge.divergence(tmp_path / "a.base", models[1], text)
    for other in ({"events": 10}, {"exhaustive": True}, {"seed": 1}):
        with pytest.raises(UsageError, match="set by the stored base"):
            lmgauge.divergence(tmp_path / "a.base", models[1], text, **other)
    direct = lmgauge.divergence(models[2], models[1], text, events=20, seed=7)
    assert (result.events, result.total_events, result.seed) == (saved.events, saved.total_events, 7)
    assert 20 <= saved.events < saved.total_events
    assert result.perplexity_a.value == direct.perplexity_a.value
    assert result.kl_ab_nats.value == pytest.approx(direct.kl_ab_nats.value, abs=1e-6)


def test_the_file_is_the_same_to_the_byte_with_any_number_of_threads(models, text, tmp_path):
    for threads in (1, 2):
        lmgauge.save_base(models[3], text, tmp_path / f"{threads}.base", base_top=2, threads=threads)
    assert (tmp_path / "1.base").read_bytes() == (tmp_path / "2.base").read_bytes()
    lmgauge.save_base(models[3], text, tmp_path / "3.base", base_top=2, seed=1)
    assert (tmp_path / "1.base").read_bytes() != (tmp_path / "3.base").read_bytes()


def test_streams_are_stored_and_compared_in_their_contexts(text, tmp_path):
    words = Corpus.from_strings(LINES)
    base, candidate = (lmgauge.train("witten-bell", words, order=order, context="stream") for order in (3, 2))
    lmgauge.save_base(base, text, tmp_path / "a.base", events=15)
    stored = lmgauge.divergence(tmp_path / "a.base", candidate, text)
    direct = lmgauge.divergence(base, candidate, text, events=15)
    assert stored.kl_ab_nats.value == pytest.approx(direct.kl_ab_nats.value, abs=1e-6)


def test_another_model_or_text_is_refused_in_words(models, text, tmp_path):
    base = tmp_path / "a.base"
    lmgauge.save_base(models[2], text, base)
    other_words = lmgauge.train("witten-bell", Corpus.from_strings(["a b", "x y"]), order=2)
    stream = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2, context="stream")
    letters = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2, tokenizer="character")
    for model, message in (
        (other_words, "has another vocabulary than the stored base"),
        (letters, "cuts text by another tokenizer"),
        (stream, "scores with the context stream, the stored base"),
    ):
        with pytest.raises(InputError, match=message):
            lmgauge.divergence(base, model, text)
    with pytest.raises(InputError, match="the text is not that of the stored base"):
        lmgauge.divergence(base, models[1], Corpus.from_strings(LINES[:5]))
    # All tokens are stored, so more than there are may be asked for.
    assert lmgauge.divergence(base, models[1], text, top_k=100).top_k_overlap[100].value == 1
    lmgauge.save_base(models[2], text, base, base_top=2)
    with pytest.raises(UsageError, match="lower --top-k"):
        lmgauge.divergence(base, models[1], text, top_k=3)


def test_another_text_is_refused_where_all_events_are_stored(models, text, tmp_path):
    base = tmp_path / "a.base"
    lines = LINES[::3]
    lmgauge.save_base(models[2], Corpus.from_strings(lines), base, events=None)
    for other in (lines[:-1], [*lines, "a"], lines[::-1], []):
        with pytest.raises(InputError, match=r"another text|not that of the stored base|nothing to compare"):
            lmgauge.divergence(base, models[1], Corpus.from_strings(other))
    # The same tokens, other bytes.
    with pytest.raises(InputError, match="not that of the stored base"):
        lmgauge.divergence(base, models[1], Corpus.from_strings([line.replace(" ", "  ") for line in lines]))


def test_nothing_is_written_without_events_or_with_wrong_numbers(models, text, tmp_path):
    for wrong in ({"base_top": 0}, {"base_samples": 0}, {"events": 0}):
        with pytest.raises(UsageError, match="must be"):
            lmgauge.save_base(models[2], text, tmp_path / "a.base", **wrong)
    with pytest.raises(InputError, match="has no event"):
        lmgauge.save_base(models[2], Corpus.from_strings([]), tmp_path / "a.base", events=None)
    assert list(tmp_path.iterdir()) == []


def test_rows_for_a_run_have_the_divergence(models, text, tmp_path):
    lmgauge.save_base(models[2], text, tmp_path / "a.base", events=None, base_top=20)
    lmgauge.save_base(models[2], text, tmp_path / "b.base")
    with pytest.raises(UsageError, match="a run has all events of a text"):
        lmgauge.divergence(tmp_path / "b.base", models[1], text, output=tmp_path / "run")
    result = lmgauge.divergence(tmp_path / "a.base", models[1], text, output=tmp_path / "run")
    kl = np.array(pq.read_table(tmp_path / "run" / "scores.parquet")["kl"])
    assert kl.mean() == pytest.approx(result.kl_ab_nats.value)


def test_a_base_file_in_hand(models, text, tmp_path):
    saved = lmgauge.save_base(models[2], text, tmp_path / "a.base")
    with BaseFile(saved.path) as file:
        assert lmgauge.divergence(file, models[2], text).kl_ab_nats.value == pytest.approx(0, abs=1e-9)
    assert saved.to_dict()["file_bytes"] == saved.path.stat().st_size
    assert "wb2" in repr(saved)


ODD_LINES = ["a b", "", "c a b", "b", "", "a a c b"]


def test_blocks_of_any_size_and_events_of_any_choice(tmp_path):
    model = lmgauge.train("witten-bell", Corpus.from_strings(ODD_LINES), order=2)
    candidate = lmgauge.train("witten-bell", Corpus.from_strings(ODD_LINES), order=1)
    header = header_of(model, StoringSettings(base_top=10), name="base", asked_events=None)
    for events in (None, np.array([0, 3, 9, 14]), np.array([2]), np.zeros(0, np.int64)):
        with writing_base(tmp_path / "a.base", header) as writer:
            write_base(writer, model, Corpus.from_strings(ODD_LINES), events=events)
            count, ruled_out = writer.header.events, writer.header.ruled_out
        assert count == (16 if events is None else len(events))
        small = list(Corpus.from_strings(ODD_LINES, block_bytes=4))
        with BaseFile(tmp_path / "a.base") as base:
            parts = list(StoredBase(base).compared(candidate, small, Sample(small, events), DivergenceSettings(top_k=1)))
        assert len(parts) == len(small)  # a block without events has its rows: none
        assert sum(len(batch) for _, batch, _ in parts) == count
        assert sum(len(columns["kl_ab"]) for _, _, columns in parts) == count
        if count:
            assert [model.vocabulary.tokens[i] for i in ruled_out] == ["<s>"]
