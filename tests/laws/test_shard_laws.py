"""The law of shards: any job, cut into any number of shards, run and merged in any order, gives what it gives uncut."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.test_model_laws import texts

import lmgauge
from lmgauge.text import work_units

TRAINED = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat sat on the mat", "a dog"]), order=3)


def write_text(folder: Path, lines: Sequence[str], files: int) -> list[Path]:
    """Lines in some files, the last one without a newline at its end."""
    bounds = [len(lines) * i // files for i in range(files + 1)]
    paths = [folder / f"{i}.txt" for i in range(files)]
    for path, begin, end in zip(paths, bounds, bounds[1:], strict=False):
        path.write_text("\n".join(lines[begin:end]), encoding="utf-8", newline="\n")
    return paths


def same_run(one: Path, other: Path) -> bool:
    """Byte for byte; both are written by one program on one machine, so that their environments agree, too."""
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in ("evaluation.json", "scores.parquet"))


@settings(max_examples=20, deadline=None)
@given(
    lines=texts(unseen=True),
    files=st.integers(1, 3),
    count=st.integers(1, 5),
    order=st.randoms(use_true_random=False),
    chosen=st.fixed_dictionaries({"by_group": st.booleans(), "columns": st.sampled_from([(), ("entropy", "rank")])}),
    sizes=st.tuples(st.sampled_from([1, 20, 1 << 20]), st.sampled_from([1, 15, 1 << 18])),
)
def test_an_evaluation_in_shards_is_the_evaluation(
    lines: list[str], files: int, count: int, order: Any, chosen: dict[str, Any], sizes: tuple[int, int]
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(work_units, "UNIT_BYTES", sizes[1])
        folder = Path(name)
        corpus = lmgauge.Corpus.from_files(write_text(folder, lines, files), block_bytes=sizes[0])
        job = lmgauge.sharding.EvaluationJob(TRAINED, corpus, **chosen)
        ranks = list(range(count))
        order.shuffle(ranks)
        shards = [lmgauge.sharding.run_shard(job, rank, count, folder / "shards") for rank in ranks]
        order.shuffle(shards)
        outputs = lmgauge.settings.Outputs(folder / "whole", columns=chosen["columns"])
        whole = lmgauge.evaluate(TRAINED, corpus, by_group=chosen["by_group"], output=outputs)
        merged = lmgauge.merge([shard.folder for shard in shards], folder / "merged")
        assert json.dumps(merged.to_dict()) == json.dumps(whole.to_dict())
        assert same_run(folder / "whole", folder / "merged")
        assert sum(shard.parts for shard in shards) >= 1
