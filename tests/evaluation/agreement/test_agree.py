"""Two tables of log-probabilities beside each other: figures, floor, verdict, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.reference import agreement as twin

from lmgauge.base.errors import CheckFailedError, InputError
from lmgauge.base.result_list import columns_of
from lmgauge.evaluation.agreement.agree import agree
from lmgauge.evaluation.agreement.results import QUANTILE_WIDTH, EngineAgreement, PairFigures
from lmgauge.evaluation.runs import Run, open_run
from lmgauge.text.documents import Corpus

BAND = (0.9, 1.1)
Segments = Sequence[Sequence[float]]


def run(path: Path, segments: Segments, *, documents: Sequence[int] = (), tokens: str | None = "token") -> Run:
    """A score table as another program writes it."""
    with path.open("w") as file:
        for segment, values in enumerate(segments):
            for position, value in enumerate(values):
                row: dict[str, object] = {"segment": segment, "logprob": value if math.isfinite(value) else "-inf"}
                if tokens is not None:
                    row["token"] = f"{tokens}{position}"
                if documents:
                    row["document"] = documents[segment]
                file.write(json.dumps(row) + "\n")
    return open_run(path)


def draw(seed: int, sizes: Sequence[int]) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return [(-rng.exponential(2.0, size)).tolist() for size in sizes]


def noisy(segments: Segments, seed: int, scale: float, shift: float = 0.0, heat: float = 0.0) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return [[min(0.0, x + rng.normal(shift, scale) - heat * (x + 2.0)) for x in one] for one in segments]


SIZES = [5, 17, 1, 40, 8, 12, 30, 9, 21, 4]


def test_figures_are_those_of_the_slow_twin(tmp_path: Path) -> None:
    a = draw(1, SIZES)
    b = noisy(a, 2, 0.1)
    b[3][7] = -math.inf
    made = agree(run(tmp_path / "a.jsonl", a), run(tmp_path / "b.jsonl", b), band=BAND)
    expected = twin.figures(a, b, BAND)
    for name in expected:
        figure = getattr(made.figures, name)
        assert figure.value == pytest.approx(expected[name], rel=1e-9), name
        assert figure.interval is None or figure.interval.low <= (figure.value or 0.0) <= figure.interval.high
    assert made.figures.events == sum(SIZES)
    assert made.segments == len(SIZES)
    assert made.figures.zeros == (0, 1)
    assert "in no mean" in " ".join(made.notes)
    d = np.sort([y - x for one, other in zip(a, b, strict=True) for x, y in zip(one, other, strict=True) if y > -math.inf])
    assert made.figures.largest.value == pytest.approx(np.abs(d).max())
    assert sum(count for _, count in made.figures.histogram) == len(d)
    for percent, value in made.figures.quantiles.items():
        assert value == pytest.approx(d[int(float(percent) / 100 * (len(d) - 1))], rel=QUANTILE_WIDTH)


def test_a_table_agrees_with_itself_and_an_exchange_turns_signs(tmp_path: Path) -> None:
    a = draw(3, SIZES)
    first, second = run(tmp_path / "a.jsonl", a), run(tmp_path / "b.jsonl", noisy(a, 4, 0.05))
    same = agree(first, first)
    values = {name: getattr(same.figures, name).value for name in columns_of(PairFigures)}
    assert all(values[name] == 0.0 for name in ("mean_difference", "mean_size", "rms", "share_outside", "k1", "k3", "slope"))
    assert values["effective_sample_size"] == 1.0
    assert same.beyond is False
    one, other = agree(first, second).figures, agree(second, first).figures
    assert one.mean_difference.value == -(other.mean_difference.value or 0.0)
    assert one.mean_size.value == other.mean_size.value
    assert one.rms.value == other.rms.value
    assert (one.k3.value or 0.0) > 0.0
    assert (other.k3.value or 0.0) > 0.0
    assert 1 / len(SIZES) <= (one.effective_sample_size.value or 0.0) <= 1.0


def test_figures_do_not_depend_on_how_the_table_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = draw(5, SIZES)
    first, second = (
        run(tmp_path / "a.jsonl", a, documents=[i // 3 for i in range(10)]),
        run(tmp_path / "b.jsonl", noisy(a, 6, 0.1)),
    )
    floor = run(tmp_path / "f.jsonl", noisy(a, 6, 0.1))
    whole = agree(first, second, floor)
    monkeypatch.setattr("lmgauge.scores.files._JSON_ROWS", 7)
    assert agree(first, second, floor) == whole


def verdict(tmp_path: Path, b: Segments, floor: Segments, a: Segments) -> EngineAgreement:
    documents = [i // 2 for i in range(len(a))]
    runs = [run(tmp_path / f"{name}.jsonl", one, documents=documents) for name, one in (("a", a), ("b", b), ("f", floor))]
    return agree(*runs)


def test_noise_as_large_as_the_floor_is_within_it_and_faults_are_beyond(tmp_path: Path) -> None:
    a = draw(7, [50] * 40)
    floor = noisy(a, 8, 0.01)
    sound = verdict(tmp_path, noisy(a, 9, 0.01), floor, a)
    assert sound.beyond is False
    assert sound.require() is sound
    assert len(sound.p_values) == 4
    for fault in (noisy(a, 9, 0.03), noisy(a, 9, 0.01, shift=0.005), noisy(a, 9, 0.01, heat=0.01)):
        made = verdict(tmp_path, fault, floor, a)
        assert made.beyond is True
        with pytest.raises(CheckFailedError, match="further apart"):
            made.require()
    edges = [[x - 1.0 if i == 49 and j % 4 == 0 else x for i, x in enumerate(one)] for j, one in enumerate(floor)]
    assert verdict(tmp_path, edges, floor, a).beyond is True


def test_a_floor_without_noise_leaves_room_for_rounding_only(tmp_path: Path) -> None:
    a = draw(10, [10] * 8)
    assert verdict(tmp_path, [[x - 1e-6 for x in one] for one in a], a, a).beyond is False
    one_off = [list(one) for one in a]
    one_off[5][3] -= 0.01
    made = verdict(tmp_path, one_off, a, a)
    assert made.beyond is True
    assert made.p_values == {}
    assert (made.worst_tokens[0].segment, made.worst_tokens[0].position) == (5, 3)
    assert (made.worst_tokens[0].before, made.worst_tokens[0].token) == ("token0token1token2", "token3")
    impossible = [list(one) for one in a]
    impossible[2][2] = -math.inf
    made = verdict(tmp_path, impossible, a, a)
    assert made.beyond is True
    assert "which has fewer zero probabilities" in str(made)
    barely = verdict(tmp_path, [[x - 1e-6 for x in one] for one in a], noisy(a, 17, 1e-9), a)
    assert barely.beyond is False
    assert "agree up to the rounding of float32" in str(barely)


def test_too_little_text_gives_no_verdict(tmp_path: Path) -> None:
    a = draw(11, [30] * 3)
    made = verdict(tmp_path, noisy(a, 12, 0.1), noisy(a, 13, 0.01), a)
    assert made.beyond is None
    assert made.p_values == {}
    with pytest.raises(CheckFailedError, match="too little text"):
        made.require()
    assert "Fewer than six" in str(made)


def test_other_tokens_are_refused_with_the_first_place(tmp_path: Path) -> None:
    a = draw(14, [3, 4])
    first = run(tmp_path / "a.jsonl", a)
    other = run(tmp_path / "b.jsonl", a)
    rows = other.path.read_text().splitlines()
    other.path.write_text("\n".join([*rows[:4], *rows[5:]]) + "\n")  # the second token of the second segment is missing
    with pytest.raises(InputError, match=r"b.jsonl: token 2 of segment 2 is 'token2', and in .*a.jsonl it is 'token1'"):
        agree(first, other)


def test_rows_that_end_early_are_counted(tmp_path: Path) -> None:
    a = draw(15, [3, 4, 5, 2])
    b = [a[0], a[1][:2], [], a[3]]
    made = agree(run(tmp_path / "a.jsonl", a), run(tmp_path / "b.jsonl", b))
    assert (made.figures.events, made.segments) == (7, 3)
    assert made.missing == ((0, 0), (2, 1))
    assert "b.jsonl lacks 2 tokens of its segments and 1 whole segment" in " ".join(made.notes)


def test_tables_without_tokens_are_compared_with_a_note(tmp_path: Path) -> None:
    a = draw(16, SIZES)
    first, second = (run(tmp_path / name, a, tokens=None) for name in ("a.jsonl", "b.jsonl"))
    assert "was not checked" in " ".join(agree(first, second).notes)


@pytest.mark.parametrize(
    ("times", "said"),
    [(1 / math.log(2), "as if the second is in bits"), (math.log(10), "as if the first is in log10"), (1.01, "")],
)
def test_other_logarithms_are_suspected(times: float, said: str, tmp_path: Path) -> None:
    a = draw(3, SIZES)
    b = [[times * x for x in one] for one in noisy(a, 4, 1e-4)]
    notes = agree(run(tmp_path / "a.jsonl", a), run(tmp_path / "b.jsonl", b), band=BAND).notes
    assert [said in note for note in notes if "times that of the first" in note] == [True] * bool(said)


def test_the_worst_token_stands_in_its_text(tmp_path: Path) -> None:
    corpus = Corpus.from_strings(["the cat sat", "a dog ran"])
    for name, value in (("a", -1.0), ("b", -1.5)):
        rows = [
            {"segment": i, "start": start, "end": end, "token": token, "logprob": value if token == "cat" else -1.0}
            for i, text in enumerate(("the cat sat", "a dog ran"))
            for start, end, token in spans(text)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = agree(open_run(tmp_path / "a.jsonl"), open_run(tmp_path / "b.jsonl"), corpus=corpus)
    (worst,) = made.worst_tokens
    assert (worst.before, worst.token, worst.after, worst.difference) == ("the", " cat", " sat", -0.5)


def spans(text: str) -> list[tuple[int, int, str]]:
    made, end = [], 0
    for word in text.split():
        start, end = end, end + len(word) + (end > 0)
        made.append((start, end, word))
    return made
