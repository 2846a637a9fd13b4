"""The machine: processor, memory, compilers, graphics cards, folders, terminal. What a system does not say is left out."""

from __future__ import annotations

import locale
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lmgauge.memory import free_memory
from lmgauge.threads import thread_count
from lmgauge.version import NUMBERS_VERSION, __version__

VECTOR_INSTRUCTIONS = {
    "sse4_2": "SSE4.2",
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx512_bf16": "AVX512-BF16",
    "amx_bf16": "AMX-BF16",
    "asimd": "NEON",
    "sve": "SVE",
    "sve2": "SVE2",
    "bf16": "BF16",
}
"""Linux's names of vector instructions, on x86-64 and on arm64 -> what people call them."""
TEMPORARY, CACHE = "temporary files", "cache"
COMPILERS = ("c++", "g++", "clang++", "cl")
_SECONDS = 5
_LONGEST = 200


@dataclass(frozen=True)
class Place:
    """A folder that is written to."""

    name: str
    path: str  # of the folder, `~` for the home of the user
    error: str  # why it cannot be written to; empty where it can
    free_bytes: int | None  # left on its disk; None where the system does not say

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)


def versions() -> dict[str, str]:
    """Return the versions of lmgauge, of its numbers and of Python, and the platform."""
    bits = "64 bits" if sys.maxsize > 2**32 else "32 bits"
    python = f"{platform.python_implementation()} {platform.python_version()}, {bits}, {sys.byteorder}-endian"
    return {"lmgauge": __version__, "numbers": NUMBERS_VERSION, "python": python, "platform": platform.platform()}


def is_supported() -> bool:
    """Return True if Python has 64 bits, the least significant byte first, as the kernels and files of models need it."""
    return sys.maxsize > 2**32 and sys.byteorder == "little"


def processor(root: Path = Path("/")) -> str:
    """Return the name of the processor, as far as the system tells."""
    return cpu_fields(root).get("model name") or platform.processor() or platform.machine() or "unknown"


def vector_instructions(root: Path = Path("/")) -> list[str]:
    """Return the vector instructions of the processor; empty where the system does not tell."""
    fields = cpu_fields(root)
    flags = set(f"{fields.get('flags', '')} {fields.get('Features', '')}".split())
    return [name for flag, name in VECTOR_INSTRUCTIONS.items() if flag in flags]


def cpu_fields(root: Path = Path("/")) -> dict[str, str]:
    """Return what Linux says of the first core, by its own names; nothing elsewhere."""
    with suppress(OSError), open(root / "proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        fields = dict(line.split(":", 1) for line in lines.read().split("\n\n")[0].splitlines() if ":" in line)
        return {key.strip(): value.strip() for key, value in fields.items()}
    return {}


def hardware() -> dict[str, Any]:
    """Return the processor, its instructions, cores that this process may use, and memory in bytes."""
    memory = None
    with suppress(OSError, ValueError, AttributeError):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": processor(),
        "architecture": platform.machine(),
        "vector_instructions": vector_instructions(),
        "cores": thread_count(),
        "memory_bytes": memory,
        "free_memory_bytes": free_memory(),
    }


def compilers() -> dict[str, str]:
    """Return the C++ compilers on the path, with the first line that each says of its version."""
    # Compilers that are one and the same program under several names are named once. That of `CXX` comes first.
    chosen = os.environ.get("CXX", "")
    places = {name: shutil.which(name) for name in ([chosen] if chosen else []) + list(COMPILERS)}
    lines: dict[str, str] = {}
    programs = set()
    for name, path in places.items():
        if path is not None and (program := os.path.realpath(path)) not in programs:
            programs.add(program)
            lines[name] = _first_line([path, *([] if name == "cl" else ["--version"])])
    return lines


def graphics_cards() -> list[str]:
    """Return the NVIDIA cards that the driver knows, each with the version of the driver; empty where there is no driver."""
    path = shutil.which("nvidia-smi")
    if path is None:
        return []
    said = _said([path, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
    cards = [[part.strip() for part in line.split(",")] for line in said.splitlines()]
    return [f"{card[0]}, {card[2]}, driver {card[1]}" for card in cards if len(card) == 3]


def places(cache: Path) -> tuple[Place, ...]:
    """Return the folders that lmgauge writes to besides its outputs: temporary files, and its cache."""
    try:
        temporary = Path(tempfile.gettempdir())
    except OSError as error:
        return (Place(TEMPORARY, "", str(error), None), _place(CACHE, cache))
    return (_place(TEMPORARY, temporary), _place(CACHE, cache))


def _place(name: str, folder: Path) -> Place:
    there = next((parent for parent in (folder, *folder.parents) if parent.exists()), folder)
    error, free = "", None
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"x")
    except OSError as failure:
        error = failure.strerror or str(failure)
    with suppress(OSError):
        free = shutil.disk_usage(there).free
    return Place(name, without_home(str(folder)), error, free)


def without_home(text: str) -> str:
    """Return a text with `~` for the home folder of the user, whose name nobody else needs to know."""
    home = os.path.expanduser("~")
    return text if len(home) < 2 else re.sub(re.escape(home) + r"(?![\w.-])", "~", text)


def terminal() -> dict[str, Any]:
    """Return how text leaves this process: encodings, width, and whether signs such as ≥ can be shown."""
    stream = sys.__stdout__  # what stands in its place while progress is shown says nothing of itself
    encoding = getattr(stream, "encoding", None) or "unknown"
    try:
        shows_signs = bool("≥»▇".encode(encoding))
    except (LookupError, UnicodeError):
        shows_signs = False
    is_terminal = False
    with suppress(OSError, ValueError, AttributeError):
        is_terminal = bool(stream and stream.isatty())
    return {
        "terminal": is_terminal,
        "encoding": encoding,
        "file_names": sys.getfilesystemencoding(),
        "locale": ".".join(part or "C" for part in locale.getlocale()[:1]),
        "columns": shutil.get_terminal_size().columns,
        "shows_signs": shows_signs,
    }


def _first_line(command: list[str]) -> str:
    lines = [line.strip() for line in _said(command).splitlines() if line.strip()]
    return lines[0][:_LONGEST] if lines else "does not say its version"


def _said(command: list[str]) -> str:
    # What a program prints, on either stream; nothing if it cannot be run or takes too long.
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)
        return (done.stdout or done.stderr).decode("utf-8", "replace")
    return ""
