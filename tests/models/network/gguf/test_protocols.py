"""llama.cpp's protocol on GGUF files: beside its own program where that is installed, and its arithmetic in Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.models.network.gguf.gguf_files import logprobs, sentencepiece_vocabulary, write_gguf

import lmgauge
from lmgauge.models.network.gguf.model import load_gguf
from lmgauge.models.network.options import ScoringOptions

LINES = ["the cat sat.", "", "he sat at the cat", "a" * 30 + " the cat", "  two  ", "s"] * 6
_FLOAT32 = (
    "-fa",
    "off",
    "-ctk",
    "f32",
    "-ctv",
    "f32",
)  # as lmgauge keeps the context; the default rounds it to half precision


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("llama_cpp")
    folder = tmp_path_factory.mktemp("protocols")
    (folder / "text.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("bos", [True, False])
@pytest.mark.parametrize("chunk", [48, 17])
def test_chunks_are_scored_as_llama_cpp_does(folder: Path, chunk: int, bos: bool) -> None:
    path = folder / f"{bos}.gguf"
    tensors = write_gguf(path, sentencepiece_vocabulary(add_bos_token=bos))
    model = load_gguf(path, ScoringOptions(protocol="llama.cpp", context=chunk, device="cpu"))
    ids = [*([1] if bos else []), *model.network.tokenize("\n".join(LINES).encode())]
    nats: list[float] = []
    for begin in range(0, len(ids) - chunk + 1, chunk):
        shown = ids[begin : begin + chunk]
        shown[0] = 1 if bos else shown[0]
        rows = logprobs(tensors, shown)
        nats += [-rows[place, shown[place + 1]] for place in range(chunk // 2, chunk - 1)]
    result = lmgauge.evaluate(model, folder / "text.txt")
    assert result.events == len(nats)
    assert result.source_figures == {"PPL": pytest.approx(np.exp(np.mean(nats)), rel=1e-4)}
    assert result.context.endswith("end=none,bos=each,protocol=llama.cpp" if bos else "end=none,protocol=llama.cpp")


@pytest.mark.parametrize("bos", [True, False])
def test_llama_perplexity_prints_the_same(folder: Path, bos: bool) -> None:
    program = shutil.which("llama-perplexity")
    if program is None:
        pytest.skip("llama-perplexity is not installed")
    path = folder / f"{bos}.gguf"
    write_gguf(path, sentencepiece_vocabulary(add_bos_token=bos))
    command = [program, "-m", str(path), "-f", str(folder / "text.txt"), "-c", "40", "-t", "1", *_FLOAT32]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    (printed,) = re.findall(r"Final estimate: PPL = ([0-9.]+)", said.stdout + said.stderr)
    scoring = ScoringOptions(protocol="llama.cpp", context=40, device="cpu")
    result = lmgauge.evaluate(path, folder / "text.txt", scoring=scoring)
    assert result.source_figures["PPL"] == pytest.approx(float(printed), rel=1e-4)
