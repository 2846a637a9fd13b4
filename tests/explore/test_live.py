"""A training that is under way is followed by what it writes: curves that grow, a text that is recolored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.explore.conftest import Served, models, serving

from lmgauge import Corpus, evaluate
from lmgauge.explore.live import MOST_POINTS, Follower, progress_file_of
from lmgauge.models.training.progress_file import PROGRESS_FILE, ProgressFile


def curves(served: Served) -> dict[str, dict[str, list[float]]]:
    answer: dict[str, dict[str, list[float]]] = served.get("live")["curves"]
    return answer


@pytest.mark.parametrize("named", ["model", "model.training"])
def test_curves_grow(tmp_path: Path, named: str) -> None:
    with ProgressFile(tmp_path / "model.training") as progress:
        progress.write(25, {"loss": 4.0, "learning_rate": 0.5})
        for served in serving(tmp_path / named):
            state = served.get("state")
            assert state["live"]
            assert state["runs"] == []
            assert curves(served) == {"loss": {"x": [25], "y": [4.0]}, "learning_rate": {"x": [25], "y": [0.5]}}
            progress.write(50, {"loss": 3.0, "perplexity": float("inf")})
            assert curves(served)["loss"] == {"x": [25, 50], "y": [4.0, 3.0]}
            assert "perplexity" not in curves(served)
            assert "no run to look at" in served.refused("segments")


def test_a_training_that_ends_leaves_its_curves(tmp_path: Path) -> None:
    with ProgressFile(tmp_path / "out") as progress:
        progress.write(1, {"loss": 1.0})
    for served in serving(tmp_path / "out"):
        assert not served.get("live")["is_gone"]
        (tmp_path / "out" / PROGRESS_FILE).unlink()
        answer = served.get("live")
        assert answer["is_gone"]
        assert answer["curves"]["loss"]["y"] == [1.0]


def test_lines_that_are_not_whole_wait_and_rubbish_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / PROGRESS_FILE
    path.write_bytes(
        b'{"step": 1, "loss": 5}\nrubbish\n[1]\n{"loss": 2}\n{"step": "x"}\n' + b"[" * 4000 + b'\n{"step": 2, "lo'
    )
    follower = Follower(path)
    assert follower.answer()["curves"] == {"loss": {"x": [1], "y": [5]}}
    with path.open("ab") as file:
        file.write(b'ss": 4, "bad": NaN, "huge": 1' + b"0" * 400 + b', "text": "x", "flag": true}\n')
    assert follower.answer()["curves"] == {"loss": {"x": [1, 2], "y": [5, 4]}}


def test_a_resumed_training_replaces_what_it_does_anew(tmp_path: Path) -> None:
    with ProgressFile(tmp_path) as progress:
        for step in (25, 50, 75):
            progress.write(step, {"loss": float(step)})
    with (tmp_path / PROGRESS_FILE).open("ab") as file:
        file.write(b'{"step": 100, "lo')  # killed while it wrote
    follower = Follower(tmp_path / PROGRESS_FILE)
    assert follower.answer()["curves"]["loss"]["x"] == [25, 50, 75]
    with ProgressFile(tmp_path, resumed=True) as progress:
        progress.write(50, {"loss": 7.0})
    assert follower.answer()["curves"]["loss"] == {"x": [25, 50], "y": [25.0, 7.0]}


def test_a_training_that_begins_anew_begins_new_curves(tmp_path: Path) -> None:
    with ProgressFile(tmp_path) as progress:
        progress.write(25, {"loss": 1.0})
        progress.write(50, {"loss": 1.0})
    follower = Follower(tmp_path / PROGRESS_FILE)
    follower.read()
    with ProgressFile(tmp_path) as progress:
        progress.write(25, {"loss": 9.0})
    assert follower.answer()["curves"]["loss"] == {"x": [25], "y": [9.0]}


def test_long_curves_are_thinned(tmp_path: Path) -> None:
    lines = [json.dumps({"step": step, "loss": step}) for step in range(3 * MOST_POINTS)]
    (tmp_path / PROGRESS_FILE).write_text("\n".join(lines) + "\n")
    loss = Follower(tmp_path / PROGRESS_FILE).answer()["curves"]["loss"]
    assert len(loss["x"]) == MOST_POINTS
    assert loss["x"][-1] == 3 * MOST_POINTS - 1


def test_the_text_is_recolored_at_each_evaluation(folder: Path, tmp_path: Path) -> None:
    text = Corpus.from_files(folder / "text.jsonl")
    with ProgressFile(tmp_path) as progress:
        progress.write(1, {"loss": 2.0})
        for served in serving(tmp_path):
            assert served.get("state")["runs"] == []
            before = []
            for name in ("b", "a"):
                evaluate({"valid": models()[name]}, text, output=tmp_path / "valid")
                assert [run["name"] for run in served.get("state")["runs"]] == ["valid"]
                assert served.explorer.index is not None
                served.explorer.index.wait()
                items = served.get("segments")["items"]
                assert items != before
                before = items


def test_a_finished_model_shows_its_history(tmp_path: Path) -> None:
    history = [{"epoch": 1, "perplexity": 9.5, "learning_rate": 1.0}, {"epoch": 2, "perplexity": 8.5, "learning_rate": 0.5}]
    (tmp_path / "config.json").write_text(json.dumps({"lmgauge": {"training": {"history": history}}}))
    for served in serving(tmp_path):
        assert curves(served) == {
            "perplexity": {"x": [1, 2], "y": [9.5, 8.5]},
            "learning_rate": {"x": [1, 2], "y": [1.0, 0.5]},
        }


def test_where_nothing_is_written_nothing_is_followed(tmp_path: Path) -> None:
    assert progress_file_of(tmp_path) is None
    assert progress_file_of(Path("/")) is None
