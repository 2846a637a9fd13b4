"""Where bfloat16 is used, and that float32 takes its place with a note; memory settings hold for a computation alone."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from lmgauge.base.errors import ModelFileError  # noqa: E402
from lmgauge.models.network.options import ScoringOptions  # noqa: E402
from lmgauge.models.network.torch import checkpoint as loading  # noqa: E402
from lmgauge.models.network.torch import runtime as precision  # noqa: E402
from lmgauge.models.network.torch.model import load_neural  # noqa: E402
from lmgauge.models.network.torch.runtime import (  # noqa: E402
    FLOAT32_INSTEAD,
    exact_float32,
    has_bfloat16_products,
    in_bfloat16,
    kept_pages,
)
from lmgauge.text.documents import Corpus  # noqa: E402

Folder = Callable[..., Path]
CPU, GPU = torch.device("cpu"), torch.device("cuda")
BFLOAT16 = ScoringOptions(dtype="bfloat16", device="cpu")

# An older processor, as torch's library of products is told: it must be told before torch is loaded.
PROGRAM = """
import json, sys
import lmgauge
from lmgauge.models.training.settings import NEURAL_KINDS
text, folder = sys.argv[1:]
sizes = dict(embedding_size=8, hidden_size=8, batch_size=2, steps=4, epochs=1, heads=2, device="cpu", threads=1)
found = {}
for kind in NEURAL_KINDS:
    options = {name: value for name, value in sizes.items() if name != "heads" or kind == "transformer"}
    trained = lmgauge.train_neural(kind, text, output=f"{folder}/{kind}", precision="bfloat16", **options)
    scored = lmgauge.evaluate(
        lmgauge.load_model(f"{folder}/{kind}", lmgauge.settings.ScoringOptions(dtype="bfloat16", device="cpu")), text
    )
    found[kind] = [trained.settings.precision, trained.notes, scored.notes, scored.signature]
print(json.dumps(found))
"""


def refuse(*arguments: Any, **options: Any) -> NoReturn:
    raise RuntimeError("could not create a primitive descriptor for the LSTM forward propagation primitive")


@pytest.fixture
def without_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_bfloat16_products", lambda: False)


def test_without_products_nothing_is_tried(without_products: None) -> None:
    assert in_bfloat16(refuse, CPU) is None
    assert in_bfloat16(lambda: 3, GPU) == 3


def test_what_a_library_refuses_is_done_in_float32(bfloat16_products: None) -> None:
    assert in_bfloat16(lambda: 3, CPU) == 3
    assert in_bfloat16(refuse, CPU) is None
    with pytest.raises(RuntimeError, match="primitive"):
        in_bfloat16(refuse, GPU)


def test_too_little_memory_is_not_a_missing_product(bfloat16_products: None) -> None:
    def fill() -> NoReturn:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    with pytest.raises(RuntimeError, match="allocate"):
        in_bfloat16(fill, CPU)


def test_a_network_is_loaded_in_float32_instead(checkpoint: Folder, without_products: None) -> None:
    model, exact = load_neural(checkpoint(), BFLOAT16), load_neural(checkpoint(), ScoringOptions(device="cpu"))
    assert model.network.dtype == torch.float32
    assert (model.fingerprint, model.label) == (exact.fingerprint, exact.label)
    assert (model.notes, exact.notes) == ([FLOAT32_INSTEAD], [])
    assert list(model.score(Corpus.from_strings(["the cat sat ."])))
    assert model.with_reserved("unk").notes == [FLOAT32_INSTEAD]


def test_a_network_that_does_not_run_is_loaded_again(
    checkpoint: Folder, bfloat16_products: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = loading._network

    def broken(source: str, dtype: torch.dtype, *rest: Any, **options: Any) -> Any:
        network = load(source, dtype, *rest, **options)
        if dtype == torch.bfloat16:
            network.forward = refuse
        return network

    monkeypatch.setattr(loading, "_network", broken)
    assert load_neural(checkpoint(), BFLOAT16).notes == [FLOAT32_INSTEAD]


def test_a_copy_in_bfloat16_is_not_another_model(
    checkpoint: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mixture knows its parts by their fingerprints: in float32 they would not be what was mixed."""
    monkeypatch.setattr(precision, "has_bfloat16_products", lambda: True)
    load_neural(checkpoint(), BFLOAT16).save(tmp_path / "copy")
    monkeypatch.setattr(precision, "has_bfloat16_products", lambda: False)
    with pytest.raises(ModelFileError, match="copied as a bfloat16 model, which this processor cannot compute"):
        load_neural(tmp_path / "copy", ScoringOptions(device="cpu"))
    assert load_neural(tmp_path / "copy", ScoringOptions(device="cpu", dtype="float32")).notes == []


@pytest.mark.parametrize(
    ("machine", "library", "instructions", "expected"),
    [
        ("x86_64", True, True, True),
        ("x86_64", True, False, False),  # AVX-512 alone: products are emulated
        ("AMD64", True, False, False),
        ("x86_64", False, True, False),  # instructions that the library is told not to use
        ("aarch64", True, False, True),
        ("arm64", None, False, False),  # macOS: torch is built without the library
    ],
)
def test_what_the_processor_is_asked(
    machine: str, library: bool | None, instructions: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = None if library is None else lambda: library
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: library is not None)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", asked, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: instructions)
    assert has_bfloat16_products.__wrapped__() is expected


def test_every_kind_of_network_on_an_older_processor(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat\na dog ran\nthe dog sat\n" * 4, encoding="utf-8")
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", PROGRAM, str(text), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240, check=False)
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    for kind, (trained_in, told_in_training, told_in_scoring, signature) in json.loads(run.stdout).items():
        if platform.machine().lower() in ("x86_64", "amd64"):
            assert trained_in == "float32", kind
        assert (FLOAT32_INSTEAD in told_in_training) == (trained_in == "float32"), kind
        assert (FLOAT32_INSTEAD in told_in_scoring) == ("-bf16" not in signature), kind


def test_float32_on_a_gpu_keeps_its_bits() -> None:
    library: Any = torch.backends.cudnn
    before = library.rnn.fp32_precision, library.conv.fp32_precision
    for device, inside in ((GPU, ("ieee", "ieee")), (CPU, before)):
        with exact_float32(device):
            assert (library.rnn.fp32_precision, library.conv.fp32_precision) == inside
        assert (library.rnn.fp32_precision, library.conv.fp32_precision) == before


def test_settings_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, name: int, value: int) -> int:
            calls.append((name, value))
            return 1

    monkeypatch.setattr(precision.sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    with kept_pages():
        assert calls == [(-3, 1 << 30), (-1, 1 << 30)]
    assert calls[2:] == [(-3, 128 << 10), (-1, 128 << 10)]


def test_elsewhere_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision.sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("no such library"))
    with kept_pages():
        assert np.ones(1 << 20).sum() == 1 << 20
