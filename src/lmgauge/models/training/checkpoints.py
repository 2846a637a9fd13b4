"""Checkpoints of a run that is under way: everything the next update depends on, as named tensors and JSON."""

# A run resumed from one gives the bits of a run that was never stopped: on a processor, with the same number of threads.
#
# `OUTPUT.training/` holds the newest checkpoint `step-N/` and, in `best/`, the parameters of the epoch with the
# lowest validation perplexity. A checkpoint appears under its name when it is whole; only then is the one before removed.

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from lmgauge.base.errors import InputError, ModelFileError
from lmgauge.base.files import locking, read_regular, regular, writing, writing_directory
from lmgauge.base.temporaries import temporary_beside
from lmgauge.models.training.progress_file import PROGRESS_FILE
from lmgauge.work.manifest import read_manifest, write_manifest

_BEST = "best"
_LOCK = "lock"
_NOTE = "checkpoint.json"
_TENSORS = "tensors.safetensors"
_PREFIX = "step-"


@dataclass
class Checkpoint:
    """What a run resumes from."""

    made_of: dict[str, Any]  # settings, digests of texts, tokenizer and vocabulary
    facts: dict[str, Any]  # position, learning rate and history, as JSON values
    tensors: dict[str, Tensor]  # parameters, the optimizer's state, carried state and random generators by name


def training_folder(output: str | os.PathLike[str]) -> Path:
    """Return where the checkpoints of a model are while it is trained."""
    output = Path(output)
    return output.with_name(f"{output.name}.training")


class CheckpointFolder:
    """The folder with a run's checkpoints."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder in the block: a second run to the same name is refused."""
        # Failing with nothing to resume removes it.
        self._names()
        with locking(self.path / _LOCK, self.path):
            try:
                yield
            except BaseException:
                with suppress(OSError):
                    if {*os.listdir(self.path)} <= {_LOCK, PROGRESS_FILE}:
                        self.remove()
                raise

    def newest(self) -> Path | None:
        """Return the checkpoint to resume from; None if there is none yet."""
        checkpoints = [(int(name[len(_PREFIX) :]), self.path / name) for name in self._names()]
        return max(checkpoints)[1] if checkpoints else None

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        except NotADirectoryError as error:
            raise InputError(f"{self.path}: is in the way of the training's checkpoints; move it") from error
        return [name for name in names if name.startswith(_PREFIX) and name[len(_PREFIX) :].isdigit()]

    def save(self, step: int, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, and remove those before it."""
        older = self._names()
        name = f"{_PREFIX}{step}"
        if name in older:
            return  # nothing has happened since
        self._write(name, checkpoint)
        for other in older:
            shutil.rmtree(self.path / other, ignore_errors=True)

    def _write(self, name: str, checkpoint: Checkpoint) -> None:
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
        with writing_directory(self.path / name, is_ours=lambda path: name == _BEST) as folder:
            (folder / _TENSORS).write_bytes(save(plain))
            write_manifest(folder / _NOTE, "training", checkpoint.made_of, checkpoint.facts, [_TENSORS])

    def load(self, path: Path) -> Checkpoint:
        """Read a checkpoint."""
        try:
            manifest = read_manifest(path / _NOTE, [_TENSORS])
            with open(path / _TENSORS, "rb", opener=regular), safe_open(path / _TENSORS, "pt") as opened:
                # Copied to where torch puts its own: the last bits of a product may depend on where its factors begin.
                tensors: dict[str, Tensor] = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
        except (OSError, ValueError, SafetensorError) as error:
            raise ModelFileError(f"{error}; delete {self.path} to start anew") from error
        return Checkpoint(manifest.made_of, manifest.facts, tensors)

    def keep(self, name: str, content: bytes) -> None:
        """Write a small file beside the checkpoints."""
        self.path.mkdir(parents=True, exist_ok=True)
        with writing(self.path / name) as file:
            file.write(content)

    def kept(self, name: str) -> bytes | None:
        """Return the content of a small file; None if there is none."""
        file = self.path / name
        return read_regular(file) if file.is_file() else None

    def save_best(self, model: nn.Module) -> None:
        """Keep the parameters of a model as the best so far."""
        self._write(_BEST, Checkpoint({}, {}, parameters_of(model)))

    def load_best(self, model: nn.Module) -> None:
        """Give a model the best parameters so far."""
        load_parameters(model, self.load(self.path / _BEST).tensors)

    def remove(self) -> None:
        """Remove the folder, when the model it led to is written; in one step, as a part of it cannot be resumed."""
        try:
            with temporary_beside(self.path, folder=True) as aside:
                os.rename(self.path, aside / "old")
        except OSError:  # a full disk has no room for another folder
            shutil.rmtree(self.path, ignore_errors=True)


def parameters_of(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters by name, each of its own shape, tied ones once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


@torch.no_grad()
def load_parameters(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Put parameters back."""
    own = dict(model.named_parameters())
    if {name: tuple(p.shape) for name, p in own.items()} != {name: tuple(t.shape) for name, t in tensors.items()}:
        raise ModelFileError("the checkpoint's parameters are not those of this model; was a newer lmgauge used?")
    for name, parameter in own.items():
        parameter.copy_(tensors[name])


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimizer's state by name: number of the parameter and name of the quantity."""
    # optimizer_tensors(torch.optim.SGD([torch.zeros(1)], lr=1.0)) -> {}
    state = optimizer.state_dict()["state"]
    return {f"{number}.{name}": value for number, values in state.items() for name, value in values.items()}


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put the optimizer's state back."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        number, _, quantity = name.partition(".")
        state.setdefault(int(number), {})[quantity] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def random_tensors(device: torch.device) -> dict[str, Tensor]:
    """Return where torch's random generators stand."""
    # -> uint8 [bytes of the state], by cpu and cuda.
    # list(random_tensors(torch.device("cpu"))) -> ['cpu']
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def load_random(tensors: dict[str, Tensor], device: torch.device) -> None:
    """Put torch's random generators back where they stood."""
    # tensors: as `random_tensors` gave them: uint8 [bytes of the state].
    torch.set_rng_state(tensors["cpu"])
    if "cuda" in tensors and device.type == "cuda":
        torch.cuda.set_rng_state(tensors["cuda"], device)


def with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors under `prefix/name`."""
    # list(with_prefix("model", {"weight": torch.zeros(2)})) -> ['model/weight']
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def under_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors that are under a prefix, without it."""
    # list(under_prefix("model", {"model/weight": torch.zeros(2), "state/h": torch.zeros(2)})) -> ['weight']
    start = f"{prefix}/"
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
