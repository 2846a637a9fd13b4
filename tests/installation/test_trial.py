"""Libraries that do what none should when they are imported, tried in a process of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lmgauge.installation.trial import KERNELS, error_in_a_line, try_modules

SOUND = "value = 1\n"
HURT = {
    "raises": ('raise OSError("libcudart.so.12: no such file\\nsecond line")', "OSError: libcudart.so.12: no such file"),
    "silent": ("class Odd(BaseException):\n    def __str__(self): raise KeyError\nraise Odd", "Odd: it cannot say why"),
    "leaves": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "interrupts": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "ends": ("import os; os._exit(7)", "importing it ended Python with exit code 7"),
    "killed": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "importing it ended Python by SIGKILL"),
    "syntax": ("def", "SyntaxError: invalid syntax (syntax.py, line 1)"),
}
NOISY = {
    "prints": "import sys\nprint('x' * 100000)\nprint('noise', file=sys.stderr)\n",
    "forges": """print('{"begun": "numpy"}'); print('{"error": "forged", "facts": {}}')""",
    "closes": "import os; os.close(1); os.close(2)",
    "lives_on": "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n",
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_each_library_is_judged_for_itself(modules: Path) -> None:
    """Whatever one of them does, the others are tried after it."""
    sources = {name: source for name, (source, _) in HURT.items()} | NOISY
    for name, source in sources.items():
        (modules / f"{name}.py").write_text(source)
    (modules / "sound.py").write_text(SOUND)
    names = [part for name in sources for part in (name, f"sound_after_{name}")]
    for name in sources:
        (modules / f"sound_after_{name}.py").write_text(SOUND)
    trials = try_modules(names)
    assert list(trials) == names
    assert {name: trial.error for name, trial in trials.items() if trial.error} == {
        name: why for name, (_, why) in HURT.items()
    }


def test_one_that_never_ends_is_ended(modules: Path) -> None:
    (modules / "hangs.py").write_text("while True: pass")
    (modules / "sound.py").write_text(SOUND)
    trials = try_modules(["hangs", "sound"], seconds=0.2)
    assert trials["hangs"].error == "importing it ended Python with exit code 1, or took more than 0.2 s"
    assert trials["sound"].error == ""


def test_the_kernels_give_a_known_answer() -> None:
    trials = try_modules([KERNELS, "lmgauge"])
    assert [trial.error for trial in trials.values()] == ["", ""]


def test_a_wrong_answer_is_an_error(modules: Path) -> None:
    (modules / "lmgauge.py").write_text(
        "class Corpus:\n    from_strings = staticmethod(list)\ntrain = lambda *a, **k: None\nperplexity = lambda *a: 2.5\n"
    )
    assert try_modules(["lmgauge"])["lmgauge"].error == "ArithmeticError: a perplexity of 2.945285930442359 came out as 2.5"


def test_torch_says_what_it_can_use(modules: Path) -> None:
    (modules / "torch.py").write_text(
        "from types import SimpleNamespace as N\n"
        "version = N(cuda='12.8', hip=None)\n"
        "cuda = N(is_available=lambda: True, device_count=lambda: 2, get_device_name=lambda i: f'Card {i}')\n"
        "backends = N(mps=N(is_available=lambda: False))\n"
    )
    assert try_modules(["torch"])["torch"].facts == {"build": "CUDA 12.8", "devices": ["Card 0", "Card 1"]}


@pytest.mark.parametrize("program", [None, "", "/nowhere/python"])
def test_a_python_that_cannot_start_another_tries_nothing(program: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", program)
    assert try_modules(["json"]) == {}


def test_errors_are_one_line() -> None:
    assert error_in_a_line(ImportError("")) == "ImportError"
    assert error_in_a_line(ValueError("\n\n  a\nb")) == "ValueError: a"
    assert len(error_in_a_line(ValueError("x" * 10_000))) == 200
