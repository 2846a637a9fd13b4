"""Checkpoints: whole or not there, and the same tensors again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from lmgauge.base.errors import InputError, ModelFileError
from lmgauge.models.training.checkpoints import (
    Checkpoint,
    CheckpointFolder,
    load_optimizer,
    load_parameters,
    load_random,
    optimizer_tensors,
    parameters_of,
    random_tensors,
    training_folder,
    under_prefix,
    with_prefix,
)


def checkpoint(value: float = 1.0) -> Checkpoint:
    half = torch.ones(2, dtype=torch.bfloat16)
    tensors = {"model/weight": torch.full((2, 3), value), "model/half": half, "sums": torch.zeros(0)}
    return Checkpoint({"settings": {"seed": 1}}, {"epoch": 3, "history": [{"perplexity": 1e308}]}, tensors)


def test_the_folder_stands_beside_the_model() -> None:
    assert training_folder("models/lstm") == Path("models/lstm.training")


def test_saved_and_loaded_and_the_one_before_removed(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "run")
    assert folder.newest() is None
    folder.save(9, checkpoint(1.0))
    folder.save(10, checkpoint(2.0))
    newest = folder.newest()
    assert newest == tmp_path / "run" / "step-10"
    assert sorted(path.name for path in folder.path.iterdir()) == ["step-10"]
    loaded = folder.load(newest)
    assert loaded.facts["history"] == [{"perplexity": 1e308}]
    assert torch.equal(loaded.tensors["model/weight"], torch.full((2, 3), 2.0))
    assert loaded.tensors["model/half"].dtype == torch.bfloat16
    folder.remove()
    assert not folder.path.exists()


def test_tensors_lie_where_torch_puts_its_own(tmp_path: Path) -> None:
    """MKL's last bits depend on it: a run that was resumed would go on with others."""
    folder = CheckpointFolder(tmp_path)
    odd = {"sums": torch.zeros(2, dtype=torch.float64), "carried/0": torch.zeros(3), "random/cpu": torch.zeros(7).byte()}
    folder.save(9, Checkpoint({}, {}, odd))
    loaded = folder.load(tmp_path / "step-9")
    assert all(tensor.data_ptr() % 64 == 0 for tensor in loaded.tensors.values())


def test_what_a_kill_left_half_written_is_not_looked_at(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.save(9, checkpoint())
    (tmp_path / ".step-20.x1y2.tmp").mkdir()
    (tmp_path / "step-x").mkdir()
    assert folder.newest() == tmp_path / "step-9"


@pytest.mark.parametrize("file", ["checkpoint.json", "tensors.safetensors"])
@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff" * 40])
def test_damaged_files_are_told(file: str, content: bytes, tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.save(9, checkpoint())
    (tmp_path / "step-9" / file).write_bytes(content)
    with pytest.raises(ModelFileError, match="step-9"):
        folder.load(tmp_path / "step-9")


def test_a_flipped_bit_is_told(tmp_path: Path) -> None:
    """Numbers that are others are still numbers: only a checksum knows."""
    folder = CheckpointFolder(tmp_path)
    folder.save_best(nn.Linear(3, 2))
    folder.save(9, checkpoint())
    for file in (tmp_path / "step-9" / "tensors.safetensors", tmp_path / "best" / "tensors.safetensors"):
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ModelFileError, match=r"step-9/tensors\.safetensors: was changed after it was written"):
        folder.load(tmp_path / "step-9")
    with pytest.raises(ModelFileError, match=r"best/tensors\.safetensors: was changed after it was written"):
        folder.load_best(nn.Linear(3, 2))
    note = tmp_path / "step-9" / "checkpoint.json"
    note.write_text(note.read_text(encoding="utf-8").replace('"epoch": 3', '"epoch": 2'), encoding="utf-8")
    with pytest.raises(ModelFileError, match=r"checkpoint\.json: was changed after it was written"):
        folder.load(tmp_path / "step-9")


def test_other_versions_are_told(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.save(9, checkpoint())
    note = tmp_path / "step-9" / "checkpoint.json"
    note.write_text(note.read_text(encoding="utf-8").replace('"job"', '"format_version"'), encoding="utf-8")
    with pytest.raises(ModelFileError, match=r"is not what lmgauge .* notes of its work"):
        folder.load(tmp_path / "step-9")


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="in the way"):
        CheckpointFolder(tmp_path / "run").newest()


def test_best_parameters(tmp_path: Path) -> None:
    folder, first, second = CheckpointFolder(tmp_path), nn.Linear(3, 2), nn.Linear(3, 2)
    folder.save_best(first)
    folder.load_best(second)
    assert torch.equal(first.weight, second.weight)
    with pytest.raises(ModelFileError, match="not those of this model"):
        folder.load_best(nn.Linear(3, 4))
    (tmp_path / "best" / "tensors.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelFileError, match=r"best/tensors\.safetensors: was changed"):
        folder.load_best(first)
    (tmp_path / "best" / "tensors.safetensors").unlink()
    with pytest.raises(ModelFileError, match="to start anew"):
        folder.load_best(first)


def test_optimizer_state_goes_on() -> None:
    def steps(model: nn.Linear, optimizer: torch.optim.Optimizer, count: int) -> None:
        for _ in range(count):
            model(torch.ones(1, 3)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    one, two = (torch.optim.AdamW(model.parameters(), lr=0.1, fused=True) for model in (first, second))
    steps(first, one, 3)
    load_parameters(second, parameters_of(first))
    load_optimizer(two, {name: tensor.clone() for name, tensor in optimizer_tensors(one).items()})
    steps(first, one, 3)
    steps(second, two, 3)
    assert torch.equal(first.weight, second.weight)


def test_random_generators_go_on() -> None:
    kept = with_prefix("random", random_tensors(torch.device("cpu")))
    first = torch.rand(5)
    load_random(under_prefix("random", kept), torch.device("cpu"))
    assert torch.equal(torch.rand(5), first)
