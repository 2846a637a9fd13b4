"""What an evaluation and a comparison say of models whose unseen words are spelled and whose white space is predicted."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.evaluation.origin import Origin
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import EOS_KIND, SPELLED, TOKEN, join_batches

TRAIN = ["the cat sat on the mat", "a dog  ran to the cat", "the dog sat", "zebras ran quickly"] * 2
TEXT = ["the quokka  sat on a mat", "dogs ran\t", "", "the cat"]


@pytest.fixture(scope="module")
def models() -> dict[str, lmgauge.models.LanguageModel]:  # type: ignore[name-defined]
    text = Corpus.from_strings(TRAIN)
    return {
        "open": lmgauge.train("witten-bell", text, order=2, min_count=3),
        "spelled": lmgauge.train("witten-bell", text, order=2, min_count=3, vocabulary="spelled"),
        "characters": lmgauge.train("witten-bell", text, order=3, tokenizer="character", vocabulary="spelled"),
    }


def test_bits_are_exact_and_unseen_words_are_still_counted(models) -> None:
    plain, spelled = lmgauge.evaluate({name: models[name] for name in ("open", "spelled")}, Corpus.from_strings(TEXT))
    assert plain.bits_per_byte_is_bound
    assert not spelled.bits_per_byte_is_bound
    assert spelled.bound_reasons == []
    assert spelled.oov == plain.oov > 0
    assert (spelled.oov_rate, spelled.tokens, spelled.events) == (plain.oov_rate, plain.tokens, plain.events)
    assert spelled.lossy_segments == 0
    assert (spelled.oov_policy, plain.oov_policy) == ("spelled", "unk")
    assert "|oov:spelled|" in spelled.signature
    assert Origin.of_model(models["spelled"]).oov_policy == "spelled"
    assert spelled.bits_per_byte > float(plain.bits_per_byte)


def test_spelling_and_white_space_are_the_difference(models) -> None:
    text = Corpus.from_strings(TEXT)
    plain, spelled = lmgauge.evaluate({name: models[name] for name in ("open", "spelled")}, text)
    extra = nats_to_bits(plain.log_probability - spelled.log_probability)
    assert spelled.spelling_bits + spelled.separator_bits == pytest.approx(extra, rel=1e-12)
    (batch,) = models["spelled"].score(text)
    assert spelled.spelling_bits == pytest.approx(-nats_to_bits(math.fsum(batch.extra["spelling"])), rel=1e-14)
    assert "spelling_bits" in spelled.to_dict()
    assert "spelling_bits" not in plain.to_dict()


def test_perplexities_without_unseen_words_and_without_ends(models) -> None:
    (batch,) = models["spelled"].score(Corpus.from_strings(TEXT))
    result = lmgauge.evaluate(models["spelled"], Corpus.from_strings(TEXT))
    for figure, rows in (
        ("perplexity_without_oov", batch.kind != SPELLED),
        ("perplexity_without_eos", batch.kind != EOS_KIND),
    ):
        assert getattr(result, figure) == pytest.approx(math.exp(-batch.logprob[rows].mean()))


def test_notes_say_what_is_spelled(models) -> None:
    text = Corpus.from_strings(TEXT)
    spelled = lmgauge.evaluate(models["spelled"], text)
    share = 100 * spelled.spelling_bits / nats_to_bits(-spelled.log_probability)
    (note,) = [note for note in spelled.notes if "spelled" in note]
    unseen = f"unseen words ({100 * spelled.oov_rate:.1f} %)"
    assert note.startswith(f"{unseen} are spelled: spelling takes {share:.1f} % of the bits, white space ")
    assert not any("all one token <unk>" in note for note in spelled.notes)
    characters = lmgauge.evaluate(models["characters"], text)
    assert not characters.bits_per_byte_is_bound
    assert any("unseen characters (" in note for note in characters.notes)
    assert characters.separator_bits is None
    assert characters.spelling_bits > 0
    known = lmgauge.evaluate(
        models["characters"], Corpus.from_strings(["".join(models["characters"].vocabulary.tokens[3:])])
    )
    assert not any("unseen characters" in note for note in known.notes)


def test_sums_do_not_depend_on_how_rows_are_cut(models) -> None:
    (batch,) = models["spelled"].score(Corpus.from_strings(TEXT))
    whole, parts = EventSums(), EventSums()
    whole.add(batch)
    for i in range(len(batch.segments)):
        part = EventSums()
        part.add(batch.of_segments(i, i + 1))
        parts.merge(part)
    assert whole.parts == parts.parts
    assert whole.parts.keys() == {"spelling", "separator"}
    assert whole.event_nats() == pytest.approx(math.fsum(batch.event_logprob()), rel=1e-12)
    assert whole.event_nats(TOKEN) == pytest.approx(math.fsum(batch.event_logprob()[batch.kind == TOKEN]), rel=1e-12)
    assert whole.unseen_events == np.count_nonzero(batch.unseen())
    assert whole.part_nats("spelling", TOKEN) == 0


def test_a_run_gives_the_same_numbers_again(models, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in TEXT), encoding="utf-8", newline="\n")
    result = lmgauge.evaluate(models["spelled"], path, output=tmp_path / "run")
    again = lmgauge.evaluate_scores(tmp_path / "run", path)
    assert again.to_dict() == result.to_dict()
    assert json.dumps(result.spelling_bits) in (tmp_path / "run" / "evaluation.json").read_text()
    segments = lmgauge.read_run(tmp_path / "run", path).to_arrow("segment")
    assert sum(segments.column("oov").to_pylist()) == result.oov
    tokens = lmgauge.read_run(tmp_path / "run", path).to_arrow("token")
    assert tokens.column("kind").to_pylist().count("spelled") == result.oov
    assert {"spelling", "separator"} <= set(tokens.column_names)


@pytest.mark.parametrize("wrong", [0.5, np.nan, -1e6])
def test_a_part_is_never_more_than_the_whole(models, wrong: float) -> None:
    (batch,) = models["spelled"].score(Corpus.from_strings(TEXT))
    column = batch.extra["spelling"].copy()
    column[1] = wrong
    with pytest.raises(InputError, match=r"segment 0: spelling .* is not a part of the log-probability"):
        EventSums().add(replace(batch, extra={**batch.extra, "spelling": column}))


def test_bits_of_exact_models_are_compared_and_perplexities_are_not(models, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in TEXT * 5), encoding="utf-8", newline="\n")
    lmgauge.evaluate(models, path, output=tmp_path)
    runs = [tmp_path / name for name in ("spelled", "characters", "open")]
    characters, plain = lmgauge.compare(runs, text=path)
    verdicts = {verdict.metric: verdict.comparable for verdict in characters.verdicts}
    assert verdicts == {"perplexity": False, "bits_per_byte": True, "bits_per_character": True, "bits_per_word": True}
    assert characters.part == "whole"
    assert characters.lower_bounds == (False, False)
    reasons = " ".join(reason for verdict in plain.verdicts for reason in verdict.reasons)
    assert "unseen words differ (spelled, 25 events / <unk>, 25 events)" in reasons
    assert plain.part == "exact part"
    assert plain.bytes < plain.bytes_in_all


def test_perplexities_of_one_vocabulary_spelled_alike_are_compared(models, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in TEXT * 5), encoding="utf-8", newline="\n")
    text = Corpus.from_strings(TRAIN)
    larger = lmgauge.train("witten-bell", text, order=3, min_count=3, vocabulary="spelled")
    lmgauge.evaluate({"two": models["spelled"], "three": larger}, path, output=tmp_path)
    (compared,) = lmgauge.compare([tmp_path / "two", tmp_path / "three"], text=path)
    assert all(verdict.comparable for verdict in compared.verdicts)


def test_a_table_of_spelled_rows_alone_knows_its_policy(models, tmp_path: Path) -> None:
    (batch,) = models["spelled"].score(Corpus.from_strings(TEXT))
    result = lmgauge.evaluate_scores([join_batches([batch])], name="mine")
    assert result.oov == np.count_nonzero(batch.kind == SPELLED)
    assert not result.bits_per_byte_is_bound
