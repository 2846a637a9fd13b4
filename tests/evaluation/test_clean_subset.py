"""A run in a clean and a contaminated part: the parts are evaluations of their own, and add up to the whole."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import lmgauge
from lmgauge import NgramModel
from lmgauge.base.errors import InputError
from lmgauge.cli.main import cli
from lmgauge.evaluation.evaluate import SplitEvaluation, split_by_segments
from lmgauge.evaluation.runs import Run, open_run
from lmgauge.text.documents import Corpus


@pytest.fixture(scope="module")
def text(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").splitlines()[:60]
    path = tmp_path_factory.mktemp("clean") / "test.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


@pytest.fixture(scope="module")
def model(data: Path) -> NgramModel:
    return lmgauge.train("kneser-ney", order=2, texts=data / "tinyshakespeare.txt")


@pytest.fixture(scope="module")
def run(text: Path, model: NgramModel) -> Run:
    folder = text.parent
    model.save(folder / "kn2")
    result = CliRunner().invoke(cli, ["eval", "-m", str(folder / "kn2"), str(text), "-o", str(folder / "run")])
    assert result.exit_code == 0, result.output
    return open_run(folder / "run")


@settings(max_examples=25)
@given(contaminated=st.lists(st.booleans(), min_size=60, max_size=60), block_bytes=st.sampled_from([50, 1 << 20]))
def test_parts_add_up_and_are_what_scoring_them_alone_gives(
    text: Path, model: NgramModel, run: Run, contaminated: list[bool], block_bytes: int
) -> None:
    split = split_by_segments(run, np.array(contaminated), Corpus.from_files(text, block_bytes=block_bytes))
    lines = text.read_text(encoding="utf-8").splitlines()
    parts = (split.clean, False), (split.contaminated, True)
    assert split.whole.events == sum(part.events for part, _ in parts if part)
    assert math.fsum(part.log_probability for part, _ in parts if part) == pytest.approx(
        split.whole.log_probability, rel=1e-15
    )
    for part, flag in parts:
        own = [line for line, value in zip(lines, contaminated, strict=True) if value == flag]
        if part is None:
            assert own == []
            continue
        path = text.with_name(f"{flag}.txt")
        path.write_text("".join(f"{line}\n" for line in own), encoding="utf-8", newline="\n")
        alone = lmgauge.evaluate(model, path)
        for name in ("log_probability", "events", "words", "bytes", "characters", "segments", "oov", "perplexity"):
            assert getattr(part, name) == getattr(alone, name)
        assert part.group == ("contaminated" if flag else "clean")


def test_an_empty_part_is_none(text: Path, run: Run) -> None:
    split: SplitEvaluation = split_by_segments(run, np.zeros(60, bool), Corpus.from_files(text))
    assert split.contaminated is None
    assert split.clean is not None
    assert split.clean.perplexity == split.whole.perplexity
    assert split.to_dict()["contaminated"] is None
    assert split.to_dict()["clean"]["group"] == "clean"


def test_another_text_is_refused(text: Path, run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("something else\n", encoding="utf-8")
    with pytest.raises(InputError, match="scored another text"):
        split_by_segments(run, np.zeros(1, bool), Corpus.from_files(other))
    for count in (59, 61):
        with pytest.raises(InputError, match="read it in the same way"):
            split_by_segments(run, np.zeros(count, bool), Corpus.from_files(text))
