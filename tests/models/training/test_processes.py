"""Several processes train the model that one process trains."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from lmgauge import train_neural
from lmgauge.errors import UsageError
from lmgauge.models.training import processes
from lmgauge.models.training.processes import Processes
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
import datetime, json, os, socket, sys
import torch
from lmgauge.errors import InputError
from lmgauge.models.training import processes, tokenizers
from lmgauge.models.training.loop import Loop, TrainingFailedError
from lmgauge import train_neural
from lmgauge.text.documents import Corpus
torch.set_num_threads(1)
processes._MEETING = datetime.timedelta(seconds=60)
texts, options, output = json.loads(sys.argv[1])

def train(rank, context, stop, resume):
    def watch(event):
        if stop and event.total_update >= stop:
            os._exit(9)
    corpus, valid = Corpus.from_strings(texts), Corpus.from_strings(texts[:5])
    train_neural("lstm", corpus, valid=valid, output=f"{output}-{context}", context=context, watch=watch,
                 checkpoint_every=5, resume=resume, **options)

def subwords(rank):
    # Learnt by the first process alone; two texts are not taken for one.
    made = []
    watching = tokenizers.train_subwords
    tokenizers.train_subwords = lambda *given: made.append(given) or watching(*given)
    train_neural("lstm", Corpus.from_strings(texts), output=f"{output}-subwords", tokenizer="bpe:262", **options)
    assert len(made) == (rank == 0), made
    assert not torch.distributed.is_initialized()
    try:
        train_neural("lstm", Corpus.from_strings(texts[rank:]), output=f"{output}-texts", **options)
    except InputError as error:
        assert "the processes differ in training text" in str(error), error
    else:
        os._exit(7)

def diverge(rank):
    # One process alone has a loss that is no number, and all stop.
    def look(event):
        raise AssertionError(event)
    step = Loop._step
    def broken(self, window):
        step(self, window)
        if rank == 1:
            self.sums += float("nan")
    Loop._step = broken
    try:
        corpus = Corpus.from_strings(texts)
        train_neural("lstm", corpus, output=f"{output}-broken", checkpoint_every=3, watch=look, **options)
    except TrainingFailedError:
        return
    os._exit(7)

def together(work, *arguments):
    # Forked, so that torch is imported once.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    children = []
    for rank in range(2):
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        child = os.fork()
        if not child:
            try:
                work(rank, *arguments)
            except processes.ConnectionLostError as error:
                os._exit(error.exit_code)
            os._exit(0)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]

print(json.dumps([
    together(train, "stream", 25, False), together(train, "stream", 0, True), together(train, "sentence", 0, False),
    together(subwords), together(diverge),
]))
"""


def test_two_processes_train_the_same_model(tmp_path: Path) -> None:
    """In streams, stopped and gone on with; and in sentences. Subwords are learned once, and all stop where one fails."""
    for context in ("stream", "sentence"):
        corpus, valid = Corpus.from_strings(TEXTS), Corpus.from_strings(TEXTS[:5])
        output = tmp_path / f"one-{context}"
        train_neural("lstm", corpus, valid=valid, output=output, context=context, **OPTIONS)  # type: ignore[arg-type]
    argument = json.dumps([TEXTS, OPTIONS, str(tmp_path / "two")])
    done = subprocess.run(
        [sys.executable, "-c", RUN, argument],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    stopped, resumed, sentences, subwords, diverged = json.loads(done.stdout)
    assert stopped == [9, 2]  # the other is told, in words
    assert resumed == sentences == subwords == diverged == [0, 0], done.stderr
    assert not list(tmp_path.glob("two-broken.training/step-*"))
    for context in ("stream", "sentence"):
        one, two = (load_file(tmp_path / f"{name}-{context}" / "model.safetensors") for name in ("one", "two"))
        for name in one:
            torch.testing.assert_close(two[name], one[name], rtol=1e-4, atol=1e-5)
        assert not (tmp_path / f"two-{context}.training").exists()


def test_a_batch_that_cannot_be_shared_out() -> None:
    with pytest.raises(UsageError, match="give a multiple"):
        Processes(0, 3).check(20)
    Processes(0, 4).check(20)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE is set but RANK is not: start it with torchrun, or unset WORLD_SIZE"),
        ({"WORLD_SIZE": "x"}, "WORLD_SIZE is 'x', which is not a number"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE is '0'"),
        ({"WORLD_SIZE": "2", "RANK": "-1"}, "RANK is '-1'"),
        ({"WORLD_SIZE": "2", "RANK": "2"}, "RANK 2 is not one of the 2 processes"),
        ({"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": ""}, "LOCAL_RANK is ''"),
    ],
)
def test_environments_that_cannot_be(variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=message):
        Processes.from_environment()


def test_no_one_to_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"WORLD_SIZE": "2", "RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=r"2 processes of WORLD_SIZE cannot be connected: .*MASTER_ADDR"):
        Processes.from_environment().join(torch.device("cpu"))


def test_the_others_are_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # nobody listens
        variables = {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(nobody.getsockname()[1])}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(processes, "_MEETING", timedelta(seconds=1))
        with pytest.raises(UsageError, match="the 2 processes of WORLD_SIZE cannot be connected"):
            Processes.from_environment().join(torch.device("cpu"))


def test_one_process_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    alone = Processes.from_environment()
    alone.join(torch.device("cpu"))
    values = torch.tensor([1.0, 2.0])
    assert (alone.rank, alone.world_size, alone.device_index) == (0, 1, 0)
    assert alone.sum(values) is values
    assert alone.gather({"a": values}) == {}
    assert alone.bytes_of_first(b"abc") == b"abc"
    alone.check_same({"text": "a"})
    alone.wait()
    alone.close()
