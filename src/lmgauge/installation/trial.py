"""Libraries tried in a process of their own: one that raises, prints, hangs or ends Python does it there."""

# The process is this file, run by the same Python with the same `sys.path`. It reads what to try as JSON, and writes a line
# of JSON for each: `{"module": "torch", "error": ""}`; `torch` also says which devices it can use. What libraries print is
# lost. Where a library ends the process, the next one begins after it.

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any

KERNELS = "lmgauge._kernels._native"
_KNOWN_ANSWER = 2.945285930442359
_SECONDS = 60.0
_LONGEST = 200


@dataclass(frozen=True)
class Trial:
    """What became of a module that was tried."""

    module: str
    error: str  # why it does not work, in a line; empty if it does
    facts: dict[str, Any]


def try_modules(modules: Sequence[str], seconds: float = _SECONDS) -> dict[str, Trial]:
    """Import modules in another process, and say of each whether it works."""
    trials: dict[str, Trial] = {}
    left = list(dict.fromkeys(modules))
    while left:
        request = json.dumps({"path": sys.path, "modules": left, "seconds": seconds})
        try:
            command = [sys.executable, "-P", "-X", "utf8", __file__]
            done = subprocess.run(
                command, input=request.encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
            )
        except (OSError, ValueError, TypeError):  # an embedded Python has no program of its own
            return trials
        begun = ""
        for line in done.stdout.splitlines():
            said = _parsed(line)
            begun = str(said.get("begun", begun))
            if "error" in said:
                trials[begun] = Trial(begun, str(said["error"]), dict(said["facts"]))
        if begun and begun not in trials:
            trials[begun] = Trial(begun, _end_in_words(done.returncode, seconds), {})
        if not begun:
            return trials
        left = left[left.index(begun) + 1 :]
    return trials


def error_in_a_line(error: BaseException) -> str:
    """Return the kind of an error and the first line of what it says, whatever it does when it is asked."""
    try:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    except BaseException:
        lines = ["it cannot say why"]
    return ": ".join([type(error).__name__, *lines[:1]])[:_LONGEST]


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _end_in_words(code: int, seconds: float) -> str:
    if code < 0:
        names = {int(number): number.name for number in signal.Signals}
        return f"importing it ended Python by {names.get(-code, f'signal {-code}')}"
    late = f", or took more than {seconds:g} s" if code == 1 else ""
    return f"importing it ended Python with exit code {code}{late}"


def _try_all(request: dict[str, Any], out: IO[str]) -> None:
    # Try modules one after the other, and say before each which it is.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for module in request["modules"]:
        out.write(json.dumps({"begun": module}) + "\n")
        out.flush()
        for stream in (1, 2):
            os.dup2(nowhere, stream)  # the one before may have closed it
        faulthandler.dump_traceback_later(request["seconds"], exit=True)
        facts: dict[str, Any] = {}
        error = ""
        try:
            facts = _facts(module, import_module(module))
        except BaseException as failure:  # a library may raise anything
            error = error_in_a_line(failure)
        faulthandler.cancel_dump_traceback_later()
        out.write(json.dumps({"error": error, "facts": facts}) + "\n")
        out.flush()


def _facts(name: str, module: Any) -> dict[str, Any]:
    if name == "lmgauge":
        _check_known_answer(module)
    return _devices(module) if name == "torch" else {}


def _check_known_answer(lmgauge: Any) -> None:
    model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"]), order=2)
    perplexity = lmgauge.perplexity(model, ["the cat sat", "the dog ran"])
    if abs(perplexity - _KNOWN_ANSWER) > 1e-12:
        raise ArithmeticError(f"a perplexity of {_KNOWN_ANSWER!r} came out as {perplexity!r}")


def _devices(torch: Any) -> dict[str, Any]:
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
    build = f"ROCm {torch.version.hip}" if getattr(torch.version, "hip", None) else build
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    devices = [str(torch.cuda.get_device_name(number)) for number in range(count)]
    if torch.backends.mps.is_available():
        devices.append("Apple GPU (mps)")
    return {"build": build, "devices": devices}


def _main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    request = json.loads(sys.stdin.buffer.read())
    sys.path[:] = request["path"]
    _try_all(request, answers)
    answers.flush()
    os._exit(0)  # what libraries would do at the end is none of our business


if __name__ == "__main__":
    _main()
