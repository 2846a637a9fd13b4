"""Several processes train the model that one process trains."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from lmgauge.errors import UsageError
from lmgauge.models.neural.training.processes import Processes
from lmgauge.models.neural.training.run import train_neural
from lmgauge.text.documents import Corpus

TEXTS = [" ".join(f"w{(3 * i + j * (1 + i % 3)) % 11}" for j in range(7)) for i in range(40)]
OPTIONS = {
    "embedding_size": 6,
    "hidden_size": 6,
    "batch_size": 4,
    "steps": 5,
    "epochs": 2,
    "learning_rate": 0.5,
    "threads": 1,
    "device": "cpu",
}
RUN = """
import json, os, sys
import torch
from lmgauge.models.neural.training.run import train_neural
from lmgauge.text.documents import Corpus
torch.set_num_threads(1)
texts, options, output, port = json.loads(sys.argv[1])

def train(rank, context, stop, resume):
    def watch(event):
        if stop and event.total_update >= stop:
            os._exit(9)
    corpus, valid = Corpus.from_strings(texts), Corpus.from_strings(texts[:5])
    train_neural("lstm", corpus, valid=valid, output=f"{output}-{context}", context=context, watch=watch,
                 checkpoint_every=5, resume=resume, **options)

def together(*arguments):
    # Forked, so that torch is imported once.
    children = []
    for rank in range(2):
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        child = os.fork()
        if not child:
            train(rank, *arguments)
            os._exit(0)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]

print(json.dumps([together("stream", 25, False), together("stream", 0, True), together("sentence", 0, False)]))
"""


def test_two_processes_train_the_same_model(tmp_path: Path) -> None:
    """In streams, stopped and gone on with; and in sentences."""
    for context in ("stream", "sentence"):
        corpus, valid = Corpus.from_strings(TEXTS), Corpus.from_strings(TEXTS[:5])
        output = tmp_path / f"one-{context}"
        train_neural("lstm", corpus, valid=valid, output=output, context=context, **OPTIONS)  # type: ignore[arg-type]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    argument = json.dumps([TEXTS, OPTIONS, str(tmp_path / "two"), port])
    done = subprocess.run(
        [sys.executable, "-c", RUN, argument],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    stopped, resumed, sentences = json.loads(done.stdout)
    assert stopped[0] == 9  # what the other does, left alone, is not the point
    assert resumed == sentences == [0, 0]
    for context in ("stream", "sentence"):
        one, two = (load_file(tmp_path / f"{name}-{context}" / "model.safetensors") for name in ("one", "two"))
        for name in one:
            torch.testing.assert_close(two[name], one[name], rtol=1e-4, atol=1e-5)
        assert not (tmp_path / f"two-{context}.training").exists()


def test_a_batch_that_cannot_be_shared_out() -> None:
    with pytest.raises(UsageError, match="give a multiple"):
        Processes(0, 3).check(20)
    Processes(0, 4).check(20)


def test_one_process_does_nothing() -> None:
    alone = Processes.from_environment()
    values = torch.tensor([1.0, 2.0])
    assert (alone.rank, alone.world_size, alone.device_index) == (0, 1, 0)
    assert alone.sum(values) is values
    assert alone.gather({"a": values}) == {}
    alone.wait()
