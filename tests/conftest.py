"""Where tests find their texts, and how Hypothesis runs."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.browser import browser as browser
from tests.browser import opens as opens
from tests.remote_servers import bucket as bucket
from tests.remote_servers import s3_server as s3_server
from tests.remote_servers import web as web
from tests.remote_servers import web_server as web_server

gc.disable()  # until all tests are collected, which makes much and drops little
ROOT = Path(__file__).resolve().parent.parent

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin are slow where another program has a core
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported: a worker for each core has one core
os.environ["HF_HUB_OFFLINE"] = "1"  # read when the library is imported: no test waits for a network

settings.register_profile(
    "ci",
    max_examples=40,  # of 480 laws, so that the suite ends within its ten minutes
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", deadline=None, max_examples=1000)  # pytest --hypothesis-profile=thorough
settings.load_profile("ci")
# Hypothesis also draws constants out of the modules that are loaded so far, which is another set in each worker and run.
providers._get_local_constants = providers.Constants


SLOWEST = (
    *("book/test_site.py", "book/test_examples.py", "test_house_rules.py", "integrations/test_transformers_callback.py"),
    *("faults/test_faults.py", "golden/test_ngram_golden.py", "evaluation/audit/test_gallery.py", "test_docstrings.py"),
    *("report/test_page_in_browser.py", "integrations/test_ray_data.py", "test_action.py"),
    *("integrations/test_metric.py", "integrations/test_lightning_callback.py", "laws/test_honest_uncertainty.py"),
    *("laws/test_honest_task_scores.py", "models/training/test_run.py", "evaluation/audit/test_sound.py"),
)
"""Files of tests that begin before all others, so that both workers end at about the same time."""


@cache
def _has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


@pytest.fixture(autouse=True)
def float32_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of tests compute in float32 where there is a GPU, too: its default, bfloat16, has few digits to compare."""
    if "torch" in sys.modules and _has_gpu():
        from lmgauge.models.network.torch import checkpoint

        chosen = checkpoint.choose_dtype
        monkeypatch.setattr(checkpoint, "choose_dtype", lambda name, device: chosen(name.replace("auto", "float32"), device))


def pytest_xdist_auto_num_workers() -> int:
    """One more than cores: a worker that waits for a server, a browser or a program leaves its core to another."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each worker begin with other files of a folder: what it has compiled by then the others find, and read."""
    report = yield
    if isinstance(collector, pytest.Directory):
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        first = len(report.result) * worker // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        report.result = [*report.result[first:], *report.result[:first]]
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {ROOT / "tests" / name: place for place, name in enumerate(SLOWEST)}
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: item.path)  # all workers have the same tests in the same order
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_collection_finish() -> None:
    """Look for garbage from here on, and not among what is loaded by now: some million objects, each time anew."""
    gc.enable()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def garbage_is_looked_for() -> Iterator[None]:
    """A command that ends freezes what its process has; Hypothesis, which counts references, then warned in a later test."""
    with mock.patch.object(gc, "freeze"):
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which files took longest, after a run of the whole suite."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.location[0]] += report.duration
    if len(seconds) > 100:
        terminalreporter.section("files that took longest (their list in tests/conftest.py: SLOWEST)")
        for name, duration in seconds.most_common(10):
            terminalreporter.write_line(f"{duration:7.1f} s  {name}")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of small, openly licensed texts that come with the tests."""
    return ROOT / "tests" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of whole corpora: LMGAUGE_DATA, else `shared/data` beside the repository. Without it, a skip."""
    named = os.environ.get("LMGAUGE_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        where = f"LMGAUGE_DATA={named}" if named else "../shared/data, and LMGAUGE_DATA is not set"
        pytest.skip(f"needs the shared corpora: no folder at {where}")
    return folder


@pytest.fixture
def bfloat16_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor that says it has bfloat16 products; without them the tiny networks of tests take no noticeable time."""
    from lmgauge.models.network.torch import runtime

    monkeypatch.setattr(runtime, "has_bfloat16_products", lambda: True)


@pytest.fixture(scope="session")
def shared_file(shared_data: Path) -> Callable[..., Path]:
    """The path of a file of the shared corpora, by its folders and name; a skip where the file is not there."""

    def found(*parts: str) -> Path:
        path = shared_data.joinpath(*parts)
        if not path.is_file():
            pytest.skip(f"needs {path} of the shared corpora")
        return path

    return found
