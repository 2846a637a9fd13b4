"""The scorer: its figures are those of an evaluation by segment, and no document touches the figures of another."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filtering.filtered import small_model

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.filtering.documents import Documents
from lmgauge.filtering.scorer import model_at
from lmgauge.models.network.options import ScoringOptions

LINES = ["the cat sat", "a dog", "", "b c zzz", "the the the"]
FIGURES = ("bits", "bits_per_byte", "perplexity", "tokens", "unseen")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "small"
    small_model().save(folder)  # type: ignore[attr-defined]
    return str(folder)


def figures(scorer: lmgauge.Scorer, texts: Any, **options: Any) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in scorer.score_texts(texts, **options).columns().items()}


def test_the_figures_are_those_of_an_evaluation_of_each_document() -> None:
    columns = figures(lmgauge.Scorer({"m": small_model()}), LINES)
    for row, line in enumerate(LINES):
        one = lmgauge.evaluate(small_model(), lmgauge.Corpus.from_strings([line]))
        assert columns["m_perplexity"][row] == one.perplexity
        assert columns["m_tokens"][row] == one.events
        assert columns["m_bits"][row] == pytest.approx(one.bits_per_token * one.events, rel=1e-15)
    assert columns["m_unseen"] == [0.0, 0.5, 0.0, 1 / 3, 0.0]
    assert np.isnan(columns["m_bits_per_byte"][2])


@given(st.lists(st.none() | st.text(max_size=12) | st.binary(max_size=6), max_size=8))
def test_a_batch_is_its_documents_one_by_one(texts: list[str | bytes | None]) -> None:
    scorer = lmgauge.Scorer({"m": small_model()})
    whole = scorer.score_texts(texts)
    alone = [scorer.score_texts([text]) for text in texts]
    assert {*whole.problems} == {row for row, one in enumerate(alone) if one.problems}
    assert [whole.problems.get(row, ("",))[0] for row in range(len(texts))] == [
        one.problems.get(0, ("",))[0] for one in alone
    ]
    for name, values in whole.columns().items():
        np.testing.assert_array_equal(values, [one.columns()[name][0] for one in alone])


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=8))
def test_a_column_of_arrow_is_its_strings(texts: list[str | None]) -> None:
    scorer = lmgauge.Scorer({"m": small_model()})
    expected = scorer.score_texts(texts)
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        column = pa.chunked_array([pa.array(["x", *texts], kind).slice(1), pa.array([], kind)])
        scores = scorer.score_documents(Documents.of_column(column))
        assert {*scores.problems} == {*expected.problems}
        for name, values in scores.columns().items():
            np.testing.assert_array_equal(values, expected.columns()[name])


def test_a_table_keeps_its_rows_and_gets_columns() -> None:
    table = pa.table({"id": [1, 2, 3], "text": pa.array(["a b", None, "x\0"]).dictionary_encode()})
    scorer = lmgauge.Scorer({"m": small_model()})
    scored = scorer(table)
    assert scored.select(["id", "text"]).equals(table)
    assert scored.column_names[2:] == [*(f"m_{figure}" for figure in FIGURES), "score_problem"]
    assert scored["m_tokens"].to_pylist() == [3, None, None]
    problems = scored["score_problem"].to_pylist()
    assert problems[:2] == [None, "no text: null"]
    assert problems[2].startswith("invalid text: ")
    assert scorer.arrow_schema(table.schema) == scored.schema


def test_batches_of_spark_are_those_of_the_table() -> None:
    table = pa.table({"text": [*LINES, None]})
    scorer = lmgauge.Scorer({"m": small_model()})
    batches = list(scorer.map_arrow(table.to_batches(max_chunksize=2)))
    assert [batch.num_rows for batch in batches] == [2, 2, 2]
    assert pa.Table.from_batches(batches).equals(scorer.score_batch(table))


@pytest.mark.parametrize("kind", [pa.null(), pa.string()])
def test_tables_without_any_text(kind: pa.DataType) -> None:
    scorer = lmgauge.Scorer({"m": small_model()})
    scored = scorer.score_batch(pa.table({"text": pa.array([None, None], kind)}))
    assert scored["score_problem"].to_pylist() == ["no text: null"] * 2
    assert scorer.score_batch(pa.table({"text": pa.array([], kind)})).num_rows == 0


def test_lines_are_sentences() -> None:
    whole, lines = (lmgauge.Scorer({"m": small_model()}, lines=way) for way in (False, True))
    assert "documents:lines" in lines.signatures["m"]
    assert whole.signatures["m"] != lines.signatures["m"]
    columns = figures(lines, ["a b\nthe cat", "a b"])
    parts = figures(whole, ["a b", "the cat"])
    assert columns["m_tokens"] == [6, 3]
    assert columns["m_bits"] == [pytest.approx(sum(parts["m_bits"])), parts["m_bits"][0]]


def test_a_field_chooses_the_model() -> None:
    other = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["x y"]), order=1)
    scorer = lmgauge.Scorer({"en": small_model(), "7": other}, by="lang")
    texts = ["a b", "a b", "a b", "a b"]
    scores = scorer.score_texts(texts, ["en", "7", "fr", None])
    first, second = (figures(lmgauge.Scorer({"lm": model}), ["a b"])["lm_bits"][0] for model in (small_model(), other))
    assert scores.columns()["lm_bits"].tolist() == [first, second, 0.0, 0.0]
    assert scores.problems == {2: ("no model", "lang is 'fr'"), 3: ("no model", "lang is None")}
    with_default = lmgauge.Scorer({"en": small_model(), "*": other}, by="lang")
    assert with_default.score_texts(texts, ["en", "7", "fr", None]).columns()["lm_bits"].tolist() == [first, *[second] * 3]
    table = pa.table({"text": texts[:2], "lang": ["en", "fr"]})
    assert scorer.score_batch(table)["lm_tokens"].to_pylist() == [3, None]
    with pytest.raises(UsageError, match="'lang' chooses the model: give its values"):
        scorer.score_texts(texts)


def test_a_document_that_the_model_refuses_is_alone() -> None:
    class Refuses:
        """A model that does not take documents with an x."""

        def __getattr__(self, name: str) -> Any:
            if name in ("sum_block", "blocks_are_independent"):
                raise AttributeError
            return getattr(small_model(), name)

        def score(self, blocks: Any, **options: Any) -> Any:
            for block in blocks:
                if b"x" in block.data.tobytes()[block.starts[0] : block.ends[-1]]:
                    raise InputError("<x>: it has an x")
                yield from small_model().score([block], **options)

    scores = lmgauge.Scorer({"m": Refuses()}).score_texts(["a b", "x", "c b", "a", "x x"])  # type: ignore[dict-item]
    expected = lmgauge.Scorer({"m": small_model()}).score_texts(["a b", None, "c b", "a", None])
    assert scores.problems == dict.fromkeys((1, 4), ("refused by the model", "it has an x"))
    assert scores.columns()["m_tokens"].tolist() == expected.columns()["m_tokens"].tolist()


def test_errors_are_to_fail_on_request() -> None:
    scorer = lmgauge.Scorer({"m": small_model()}, errors="fail")
    with pytest.raises(InputError, match="document 2: no text: null"):
        scorer.score_texts(["a", None])


def test_what_is_wrong_with_tables_is_said() -> None:
    scorer = lmgauge.Scorer({"m": small_model()}, field="body")
    with pytest.raises(InputError, match="no column 'body'; the columns are 'text': name one of them"):
        scorer.score_batch(pa.table({"text": ["a"]}))
    with pytest.raises(InputError, match="holds int64, not strings: name another field"):
        scorer.score_batch(pa.table({"body": [1]}))
    with pytest.raises(InputError, match="there is already a field 'm_bits'"):
        scorer.score_batch(pa.table({"body": ["a"], "m_bits": [1]}))
    with pytest.raises(InputError, match="there is already a field 'score_problem'"):
        scorer.arrow_schema(pa.schema({"body": pa.string(), "score_problem": pa.string()}))


def test_what_is_wrong_with_models_is_said() -> None:
    with pytest.raises(UsageError, match="there is no model to score with"):
        lmgauge.Scorer({})
    with pytest.raises(UsageError, match="by='lang' chooses among models by that field"):
        lmgauge.Scorer(small_model(), by="lang")
    with pytest.raises(UsageError):
        lmgauge.Scorer(7)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="holds a tab"):  # in TSV it would be two columns
        lmgauge.Scorer({"a\tb": small_model()})


def test_it_is_sent_by_path_and_loads_once(path: str) -> None:
    scorer = lmgauge.Scorer(path)
    first = figures(scorer, LINES)
    sent = pickle.dumps(scorer)
    assert len(sent) < 2000
    other = pickle.loads(sent)
    assert figures(other, LINES).keys() == first.keys()
    assert other.models["small"] is scorer.models["small"]
    assert (scorer.loads_by_path, lmgauge.Scorer(small_model()).loads_by_path) == (True, False)


def test_a_model_that_is_replaced_is_loaded_anew(tmp_path: Path) -> None:
    path, options = tmp_path / "model", ScoringOptions()
    small_model().save(path)  # type: ignore[attr-defined]
    first = model_at(path, options)
    assert model_at(str(path), options) is first
    lmgauge.train("laplace", lmgauge.Corpus.from_strings(["x y"]), order=1).save(path)
    assert model_at(path, options).fingerprint != first.fingerprint


def test_a_model_beside_others_has_columns_of_its_own(path: str) -> None:
    scorer = lmgauge.Scorer({"a": path, "b": small_model()})
    assert scorer.column_names == [f"{name}_{figure}" for name in "ab" for figure in FIGURES]
    columns = figures(scorer, LINES)
    np.testing.assert_array_equal(columns["a_bits"], columns["b_bits"])


def test_documents_with_reserved_words_cost_the_others_nothing() -> None:
    calls = 0

    class Counting(lmgauge.NgramModel):
        def sum_block(self, block: Any) -> Any:
            nonlocal calls
            calls += 1
            return super().sum_block(block)

    model = small_model()
    counting = Counting(model.tables, model.vocabulary, model.tokenizer, model.settings)  # type: ignore[attr-defined]
    texts = [f"the cat{' <s> sat' if number % 50 == 7 else ''}" for number in range(1_000)]
    scores = lmgauge.Scorer({"m": counting}).score_texts(texts)
    assert [*scores.problems] == [*range(7, 1_000, 50)]
    assert all("reserved token <s>" in detail for _, detail in scores.problems.values())
    assert calls <= 2 + len(scores.problems)
    others = [text for text in texts if "<s>" not in text]
    alone = lmgauge.Scorer({"m": model}).score_texts(others).columns()["m_bits"]
    assert np.delete(scores.columns()["m_bits"], [*scores.problems]).tolist() == alone.tolist()
