"""The notebooks of docs/: each runs as written, in a folder of its own, and shows its results and charts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
VEGA_LITE = "application/vnd.vegalite.v5+json"
_FOR_ALL = ("nbclient", "ipykernel", "jinja2", "vl_convert", "pandas", "constriction", "datasketch")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One kernel for all, so that libraries are imported once; it writes nothing outside its own folder."""
    for name in _FOR_ALL:
        pytest.importorskip(name, reason=f"notebooks need {name}")
    from jupyter_client.manager import KernelManager

    home = tmp_path_factory.mktemp("jupyter")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(home / name.lower()))
        manager = KernelManager(kernel_name="python3")
        manager.start_kernel()
        yield manager
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, kernel: Any, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    folder = tmp_path / "docs" / "notebooks"
    folder.mkdir(parents=True)
    shutil.copytree(ROOT / "tests" / "data", tmp_path / "tests" / "data")
    notebook = nbformat.read(path, as_version=4)
    begin = nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {folder}")
    again = nbformat.v4.new_notebook(cells=[begin, *notebook.cells], metadata=notebook.metadata)
    client = NotebookClient(again, km=kernel, timeout=120)
    try:
        client.execute()
    finally:
        if client.kc is not None:
            client.kc.stop_channels()
    outputs = [output for cell in again.cells if cell.cell_type == "code" for output in cell.outputs]
    shown = [output.data for output in outputs if output.output_type in ("execute_result", "display_data")]
    assert any("lmgauge" in data.get("text/html", "") for data in shown)
    charts = [data for data in shown if VEGA_LITE in data]
    assert charts
    assert all(data["image/svg+xml"].startswith("<svg") for data in charts)
    assert [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"] == []
    assert list(folder.glob("*.html"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_small_and_has_no_outputs(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert path.stat().st_size < 20_000
    assert 8 <= len(notebook["cells"]) <= 18
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in notebook["cells"] if "outputs" in cell)
    assert f"({path.name})" in (path.parent / "README.md").read_text(encoding="utf-8")
