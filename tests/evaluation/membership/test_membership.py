"""Models that have seen some texts and not others: what the scores show, and what they do not claim."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus, CustomModel
from lmgauge.base.errors import InputError, UsageError
from lmgauge.evaluation.options import MembershipSettings
from lmgauge.results import Membership

DATA = Path(__file__).parents[2] / "data"
LINES = [line for line in (DATA / "tinyshakespeare.txt").read_text(encoding="utf-8").splitlines() if len(line) > 20]


def asked(
    texts: Sequence[str], control: Sequence[str] | None, train: Sequence[str], order: int = 2, **options: object
) -> Membership:
    model = lmgauge.train("witten-bell", Corpus.from_strings(train), order=order)
    others = None if control is None else Corpus.from_strings(control, documents=[*map(str, range(len(control)))])
    return lmgauge.membership(model, Corpus.from_strings(texts, documents=[*map(str, range(len(texts)))]), others, **options)  # type: ignore[arg-type]


def test_a_model_recognizes_the_half_it_was_trained_on() -> None:
    seen, unseen = LINES[:400:2], LINES[1:400:2]
    result = asked(seen, unseen, seen)
    for name in ("loss", "min_k", "min_k_plus_plus", "zlib"):
        score = result.score(name)
        assert score.auroc is not None
        assert score.auroc > 0.95
        assert score.tells_apart
    assert not any(score.tells_apart for score in result.blind)
    assert "look more like seen ones than the control texts" in str(result)


def test_halves_that_it_did_not_see_are_alike() -> None:
    """Over draws of halves the interval of the AUROC holds 0.5 as often as it says, and no verdict is given in vain."""
    rng = np.random.default_rng(4)
    held_out = LINES[600:760]
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES[:600]), order=2)
    covered = false_verdicts = 0
    for _ in range(24):
        order = rng.permutation(len(held_out))
        halves = [[held_out[i] for i in order[part::2]] for part in (0, 1)]
        texts = [Corpus.from_strings(half, documents=[*map(str, range(len(half)))]) for half in halves]
        result = lmgauge.membership(model, *texts)
        ends = result.score("loss").auroc_interval
        assert ends is not None
        covered += ends.low <= 0.5 <= ends.high
        false_verdicts += any(score.tells_apart for score in result.scores)
    assert covered >= 21
    assert false_verdicts <= 3


def test_without_control_texts_it_says_what_it_cannot_say() -> None:
    result = asked(LINES[:20], None, LINES[:20])
    assert result.control_texts is None
    assert all(score.auroc is None and score.tells_apart is None for score in result.scores)
    assert "Scores alone prove nothing" in str(result)


def test_sets_that_differ_without_any_model_give_no_verdict() -> None:
    long, short = [" ".join(LINES[i : i + 9]) for i in range(0, 360, 9)], LINES[400:440]
    result = asked(long, short, long)
    assert result.score("loss").auroc > 0.95  # type: ignore[operator]
    assert result.score("bytes").tells_apart
    assert "differ even without a model" in str(result)
    assert "does not show that the model has seen the texts" in str(result).replace("\n", " ")


def test_a_second_model_takes_out_what_is_easy() -> None:
    seen, unseen = LINES[:100:2], LINES[1:100:2]
    model = lmgauge.train("witten-bell", Corpus.from_strings(seen), order=2)
    other = lmgauge.train("witten-bell", Corpus.from_strings(LINES[300:600]), order=2)
    result = lmgauge.membership(model, Corpus.from_strings(seen), Corpus.from_strings(unseen), reference=other)
    for line, value in zip(seen[:5], result.rows["reference"], strict=False):
        nats = [-one.score_text(line).log_probability for one in (model, other)]
        assert value == pytest.approx((nats[0] - nats[1]) / len(line.encode()))
    assert result.score("reference").auroc > 0.95  # type: ignore[operator]
    assert result.reference == f"wb2@{other.fingerprint[:6]}"
    assert result.fingerprints["reference"] == other.fingerprint


def test_labels_are_two_files(tmp_path: Path) -> None:
    import json

    seen, unseen = LINES[:60:2], LINES[1:60:2]
    model = lmgauge.train("witten-bell", Corpus.from_strings(seen), order=2)
    records = [{"input": line, "label": label} for label, part in ((1, seen), (0, unseen)) for line in part]
    (tmp_path / "wiki.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    corpus = Corpus.from_files(tmp_path / "wiki.jsonl", field="input")
    labeled = lmgauge.membership(model, corpus, label="label")
    apart = lmgauge.membership(model, Corpus.from_strings(seen), Corpus.from_strings(unseen))
    assert [(s.name, s.auroc, s.median) for s in labeled.scores] == [(s.name, s.auroc, s.median) for s in apart.scores]
    assert (labeled.texts, labeled.control_texts) == (30, 30)
    records[3]["label"] = 7
    (tmp_path / "odd.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    with pytest.raises(InputError, match="'7' is neither 1"):
        lmgauge.membership(model, Corpus.from_files(tmp_path / "odd.jsonl", field="input"), label="label")
    one = Corpus.from_files(tmp_path / "wiki.jsonl", field="input")
    with pytest.raises(UsageError, match="not both"):
        lmgauge.membership(model, one, one, label="label")
    with pytest.raises(UsageError, match="field of files"):
        lmgauge.membership(model, Corpus.from_strings(seen), label="label")


def test_all_labels_alike(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a b", "label": "Member"}\n{"text": "b", "label": 1}\n', encoding="utf-8")
    model = lmgauge.train("laplace", Corpus.from_strings(["a b"]), order=1)
    with pytest.raises(InputError, match="same label"):
        lmgauge.membership(model, tmp_path / "a.jsonl", label="label")


def test_refused() -> None:
    text = Corpus.from_strings(["a b"])
    model = lmgauge.train("laplace", text, order=1)
    with pytest.raises(InputError, match="control texts are the texts themselves"):
        lmgauge.membership(model, text, text)
    with pytest.raises(InputError, match="nothing to ask about"):
        lmgauge.membership(model, Corpus.from_strings([""]))
    for wrong in ({"k": 0.0}, {"k": 1.5}, {"fpr": 0.0}, {"fpr": 1.0}):
        with pytest.raises(UsageError, match="above 0"):
            MembershipSettings(**wrong)
    with pytest.raises(UsageError, match="not known"):
        lmgauge.membership(model, text).score("magic")


class Scores(CustomModel):
    """A model that tells the probabilities of what came, and no distribution."""

    label = "scores"

    def score_ids(self, ids: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return np.full(len(ids) - 1, -1.5)


def test_a_model_without_distributions_has_the_other_scores() -> None:
    result = lmgauge.membership(
        Scores(["a", "b"]), Corpus.from_strings(["a b", "b", "a"]), Corpus.from_strings(["b b", "a a"])
    )
    assert [score.name for score in result.scores] == ["loss", "min_k", "zlib"]
    assert any("Min-K%++ is left out" in note for note in result.notes)
    assert result.score("loss").auroc == 0.5


def test_impossible_events_and_texts_without_a_score() -> None:
    train = Corpus.from_strings(["a b", "b a"])
    model = lmgauge.train("mle", train, order=1)
    result = lmgauge.membership(
        model, Corpus.from_strings(["a b", "c", ""]), Corpus.from_strings(["c a", "b"]), reference=model
    )
    assert result.rows["loss"][1] == float("inf")
    assert result.rows["min_k_plus_plus"][1] == -float("inf")
    assert result.rows["reference"][1] is None  # inf - inf
    assert result.score("reference").missing == 2
    assert any("1 texts without bytes" in note for note in result.notes)


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".tsv", ".jsonl"])
def test_rows_as_files(tmp_path: Path, ending: str) -> None:
    from pyarrow import csv, json, parquet

    path = tmp_path / f"rows{ending}"
    result = asked(LINES[:9], LINES[10:15], LINES[:9], output=path)
    read = {
        ".parquet": parquet.read_table,
        ".csv": csv.read_csv,
        ".tsv": lambda file: csv.read_csv(file, parse_options=csv.ParseOptions(delimiter="\t")),
        ".jsonl": json.read_json,
    }[ending]
    table = read(path)
    assert table.column_names == list(result.rows)
    assert table.column("set").to_pylist() == ["text"] * 9 + ["control"] * 5
    assert table.column("min_k").to_pylist() == pytest.approx(result.rows["min_k"])
    assert result.to_arrow().num_rows == len(result.to_pandas()) == 14
    with pytest.raises(UsageError, match="rows are written as"):
        result.write_rows(tmp_path / "rows.xlsx")


def test_an_output_may_not_replace_an_input(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a b"}\n', encoding="utf-8")
    model = lmgauge.train("laplace", Corpus.from_strings(["a b"]), order=1)
    with pytest.raises(UsageError, match="would replace"):
        lmgauge.membership(model, tmp_path / "a.jsonl", output=tmp_path / "a.jsonl")
