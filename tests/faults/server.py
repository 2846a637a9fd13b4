"""A process with the shim and all of lmgauge loaded, that runs each command in a fork of itself: some 50 ms in place of 500.

It reads jobs from standard input, a JSON object a line, and answers each with the exit status. Only `machine.py` starts it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import platform
import re
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import NoReturn

import lmgauge
from tests.faults.orders import orders_in

_SECONDS = 120
_LOADED = (
    *("array_api_compat.numpy", "multiprocessing.popen_fork", "numpy.fft", "pyarrow.compute", "pyarrow.csv"),
    *("pyarrow.parquet", "resource", "rich.console", "safetensors.numpy"),
)
_LOADED_IF_THERE = ("jinja2", "pandas", "vl_convert")  # pyarrow imports pandas
_HEAVY = re.compile(r"\.(torch|training|gguf|integrations|compat|ray_|server|explore|__main__)")


def main() -> None:
    """Load, then serve until standard input ends; the fork of a job ends with the exit code of its command."""
    orders = orders_in(Path(os.environ["FAULTS_ORDERS"]))
    own = [module.name for module in pkgutil.walk_packages(lmgauge.__path__, "lmgauge.") if not _HEAVY.search(module.name)]
    for name in [*_LOADED, *own, *sys.argv[1:]]:
        importlib.import_module(name)
    for name in _LOADED_IF_THERE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    platform.platform()  # starts a program, and remembers what it says
    gc.freeze()  # a collection in a fork would copy all pages of memory
    print("ready", flush=True)
    stopped = 0
    for line in sys.stdin:
        job = json.loads(line)
        if "go_on" in job:
            os.kill(stopped, signal.SIGCONT)
        child = stopped if "go_on" in job else os.fork()
        if child == 0:
            _become(job)
            orders.armed = 1
            from lmgauge.cli.main import main as command

            try:
                command(job["arguments"])
            except SystemExit as end:
                _end(int(end.code or 0))
            _end(0)
        _, status = os.waitpid(child, os.WUNTRACED)
        orders.armed = 0
        if os.WIFSTOPPED(status):
            stopped = child
        print(-os.WSTOPSIG(status) if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status), flush=True)


def _become(job: dict[str, object]) -> None:
    """Set this fork up as a process of its own: folder, streams, environment, and an end if it hangs."""
    os.setsid()
    signal.alarm(_SECONDS)
    os.chdir(str(job["folder"]))
    os.environ.update(job["environment"])  # type: ignore[arg-type,call-overload]
    tempfile.tempdir = None
    for descriptor, path in enumerate((os.devnull, str(job["stdout"]), str(job["stderr"]))):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)


def _end(code: int) -> NoReturn:
    """End this fork as Python does, but take no module apart: that copies all memory, and costs more than a command."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
