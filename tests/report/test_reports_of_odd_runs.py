"""Reports of runs that are not as most are, as files and in a browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.browser import Opened

import lmgauge

LINES = ("the cat sat on the mat in 1984 .", "a dog ran to the cat .", "the dog sat .")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs by what is odd about them."""
    folder = tmp_path_factory.mktemp("odd")
    train, test, gone = (folder / f"{name}.txt" for name in ("train", "test", "gone"))
    train.write_text("\n".join(LINES * 4) + "\n", encoding="utf-8")
    test.write_text("the bird sat on the dog .\nthe cat ran .\n", encoding="utf-8")
    gone.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    (folder / "one.txt").write_text("the", encoding="utf-8")
    (folder / "directions.txt").write_text("המודל מנבא את הטקסט\n模型能多好地预测文本\nthe cat\n", encoding="utf-8")
    possible = lmgauge.train("witten-bell", train, order=2)
    unsure = lmgauge.train("mle", train, order=2)
    alone = lmgauge.train("witten-bell", train, order=1, eos=False)
    found = {}
    for name, model, text in (
        ("infinite", unsure, test),
        ("without text", possible, gone),
        ("one event", alone, folder / "one.txt"),
        ("directions", possible, folder / "directions.txt"),
    ):
        found[name] = folder / f"run {name}"
        lmgauge.evaluate(model, text, output=found[name])
    gone.unlink()
    found["foreign"] = folder / "foreign.jsonl"
    rows = [{"segment": i, "token": f"<b>{i}</b>", "logprob": -1.5} for i in range(9)]
    found["foreign"].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return found


WORDS = {
    "infinite": "gives probability zero",
    "without text": "the text is not available",
    "one event": "over 1 event.",
    "directions": "המודל מנבא",
    "foreign": "The text is not available",
}


@pytest.mark.parametrize("kind", list(WORDS))
def test_the_page_shows_what_there_is_and_says_what_is_missing(
    runs: dict[str, Path], opens: Callable[..., Opened], kind: str
) -> None:
    page = lmgauge.report(runs[kind]).html()
    assert WORDS[kind].lower() in page.lower()
    opened = opens(page)
    assert (opened.violations(), opened.complaints) == ([], [])
    opened.page.set_viewport_size({"width": 360, "height": 800})
    assert not opened.is_wider_than_its_window()


def test_a_run_of_many_segments_and_groups_has_a_small_page(tmp_path: Path) -> None:
    words = [f"w{i % 97}x{i % 31}" for i in range(60_000)]
    records = [json.dumps({"text": " ".join(words[i : i + 20]), "g": f"group {i}"}) for i in range(0, len(words), 20)]
    text = tmp_path / "text.jsonl"
    text.write_text("\n".join(records) + "\n", encoding="utf-8")
    model = lmgauge.train("witten-bell", text, order=2)
    corpus = lmgauge.Corpus.from_files([str(text)], group="g")
    lmgauge.evaluate(model, corpus, output=tmp_path / "run")
    page = lmgauge.report(tmp_path / "run", text=corpus, segments=60).html()
    assert 100_000 < len(page.encode()) < 2_000_000
