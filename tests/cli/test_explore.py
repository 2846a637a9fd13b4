"""`lmgauge explore`: what it prints, how it ends, what it refuses."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from lmgauge import Corpus, evaluate, train

COMMAND = [sys.executable, "-m", "lmgauge", "explore"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, its text, and its model."""
    folder = tmp_path_factory.mktemp("explore")
    (folder / "text.txt").write_text("the cat sat\nthe dog ran\n" * 20)
    model = train("witten-bell", Corpus.from_files(folder / "text.txt"), order=2)
    evaluate(model, folder / "text.txt", output=folder / "run")
    return folder / "run"


def refused(*arguments: str) -> str:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("lmgauge: error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
def test_it_answers_and_ends_quietly(run: Path) -> None:
    pytest.importorskip("uvicorn", reason="the extra explore is not installed")
    with subprocess.Popen([*COMMAND, str(run), "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().decode().strip()
        base, token = address.split("/?token=")
        assert len(token) >= 32
        asked = partial(urllib.request.Request, data=b"{}", headers={"content-type": "application/json"})
        with urllib.request.urlopen(asked(f"{base}/api/segments?token={token}"), timeout=30) as response:
            answer = json.load(response)
        assert answer["items"][0]["text"] == "the cat sat"
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(asked(f"{base}/api/segments"), timeout=30)
        with socket.create_connection(("127.0.0.1", int(base.rpartition(":")[2])), timeout=30) as own:
            own.sendall(b"GET /?q=" + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n")
            assert own.recv(100).startswith(b"HTTP/1.1 400")  # before there is an application
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == b""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
def test_a_terminal_that_is_closed_leaves_no_index(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="the extra explore is not installed")
    command, environment = [*COMMAND, str(run), "--no-browser"], os.environ | {"TMPDIR": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    attached = partial(
        signal.signal, signal.SIGHUP, signal.SIG_DFL
    )  # the tests may run under nohup, which the command heeds
    with subprocess.Popen(command, **pipes, env=environment, preexec_fn=attached) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert list(tmp_path.iterdir())
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=20)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_served_is_said(run: Path, tmp_path: Path) -> None:
    assert "nothing to look at" in refused("--no-browser")
    assert "no such run" in refused(str(tmp_path / "none"), "--no-browser")
    assert "evaluation.json is missing" in refused(str(tmp_path), "--no-browser")
    assert "on this machine only" in refused(str(run), "--host", "0.0.0.0")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "is taken" in refused(str(run), "--port", str(taken.getsockname()[1]))
    assert "needs the model: name it (-m)" in refused(str(run), "--context", "8")


def test_a_missing_extra_is_said(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "starlette.py").write_text("raise ImportError('not installed here')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert "pip install 'lmgauge[explore]'" in refused(str(run))
