"""A source install needs a C++ compiler; without one the message says so, in words and with the remedy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(os.name == "nt", reason="Visual Studio generators find their compiler without CXX")
def test_without_a_compiler_the_message_says_what_to_install(tmp_path: Path) -> None:
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake is not installed")
    if not shutil.which("make") and not shutil.which("ninja"):
        pytest.skip("neither make nor ninja is installed")
    generator = "Unix Makefiles" if shutil.which("make") else "Ninja"
    done = subprocess.run(
        [cmake, "-S", str(ROOT), "-B", str(tmp_path / "build"), "-G", generator],
        env={**os.environ, "CXX": str(tmp_path / "no-such-compiler")},
        capture_output=True,
        text=True,
        check=False,
    )
    message = re.sub(r"\s+", " ", done.stderr)
    assert done.returncode != 0
    assert "lmgauge needs a C++20 compiler to be built from source and none was found." in message
    assert "apt install g++" in message
    assert message.count("CMake Error") == 1
