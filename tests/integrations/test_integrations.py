"""The package is light, says what is missing, and its page says what runs."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.tiny import ROOT, make_lines, make_network, run_python
from transformers import PreTrainedTokenizerFast

import lmgauge.integrations
from lmgauge.errors import MissingExtraError


def output_of(program: str) -> str:
    with run_python(program) as worker:
        output, errors = worker.communicate(timeout=300)
    assert worker.returncode == 0, errors
    return output


def test_the_package_alone_loads_nothing() -> None:
    program = """
import sys
import lmgauge.integrations
print(sorted({"torch", "transformers", "lightning", "torchmetrics", "lmgauge.integrations.metric"} & set(sys.modules)))
print(dir(lmgauge.integrations), hasattr(lmgauge.integrations, "nothing"))
"""
    assert output_of(program).splitlines() == ["[]", f"{lmgauge.integrations.__all__} False"]


def test_what_is_missing_is_told() -> None:
    """As if none of the libraries were installed: an entry None in sys.modules makes an import fail."""
    program = """
import sys
for library in ("torch", "transformers", "lightning", "torchmetrics"):
    sys.modules[library] = None
import lmgauge.integrations
from lmgauge.errors import MissingExtraError
for name in lmgauge.integrations.__all__:
    try:
        getattr(lmgauge.integrations, name)
    except MissingExtraError as error:
        print(name)
"""
    assert output_of(program).splitlines() == lmgauge.integrations.__all__


@pytest.mark.parametrize(
    ("library", "extra", "module"),
    [
        ("torchmetrics", "torchmetrics", "metric"),
        ("transformers", "neural", "transformers_callback"),
        ("lightning.pytorch", "lightning", "lightning_callback"),
    ],
)
def test_the_missing_library_is_named(library: str, extra: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    for ours in ("in_memory", module):
        monkeypatch.delitem(sys.modules, f"lmgauge.integrations.{ours}", raising=False)
    expected = rf"this needs {library.partition('.')[0]}, which is not installed: pip install 'lmgauge\[{extra}\]'"
    with pytest.raises(MissingExtraError, match=expected):
        import_module(f"lmgauge.integrations.{module}")


# Of Lightning itself, as in its own tests; and of a loader with batches of one.
@pytest.mark.filterwarnings(
    "ignore:`isinstance.treespec, LeafSpec.` is deprecated:FutureWarning",
    "ignore:The '.*_dataloader' does not have many workers",
    "ignore:The number of training batches",
)
def test_the_page_runs(
    tmp_path: Path,
    tokenizer: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The blocks of docs/integrations.md, one after the other in a folder with a tiny network and texts of these names."""
    page = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    lines = make_lines()
    Path("valid.txt").write_text("".join(f"{line[:40]}\n" for line in lines[:9]), encoding="utf-8")
    Path("train.txt").write_text("".join(f"{line}\n" for line in lines[:30]), encoding="utf-8")
    make_network().save_pretrained("start")
    tokenizer.pad_token = None  # as GPT-2's
    tokenizer.save_pretrained("start")
    for block in blocks:
        exec(block, {"__name__": "page"})
        assert "same: True\n" in capsys.readouterr().out


def test_the_trainer_of_the_page_trains_on_what_is_scored(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both figures fall: a network that learns lines without their newlines is ever more surprised by them."""
    page = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
    block = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
    longer = block.replace("max_steps=4, ", "max_steps=40, learning_rate=0.01, ").replace("eval_steps=2", "eval_steps=10")
    assert longer.count("0.01") == longer.count("eval_steps=10") == 1
    monkeypatch.chdir(tmp_path)
    lines = [line[:40] for line in make_lines()]
    Path("train.txt").write_text("".join(f"{line}\n" for line in lines[:-10]), encoding="utf-8")
    Path("valid.txt").write_text("".join(f"{line}\n" for line in lines[-10:]), encoding="utf-8")
    make_network().save_pretrained("start")
    tokenizer.pad_token = None
    tokenizer.save_pretrained("start")
    names: dict[str, Any] = {"__name__": "page"}
    exec(longer, names)
    log = names["trainer"].state.log_history
    for figure in ("eval_loss", "eval_valid_perplexity"):
        found = list(dict.fromkeys(entry[figure] for entry in log if figure in entry))
        assert len(found) == 4
        assert found == sorted(found, reverse=True), figure
