"""Pages that state what stands elsewhere too: extras, versions, dates, how to cite, what is trusted."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lmgauge.api.doctor import EVERYTHING, PURPOSES
from lmgauge.base.version import NUMBERS_VERSION, __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_extra_says_what_it_is_for_here_and_on_the_page() -> None:
    """The words stand once, in the table of the package; the page shows them."""
    assert set(PURPOSES) == set(PROJECT["optional-dependencies"]) - {EVERYTHING}
    lines = [line.replace("`", "").split("|") for line in page("docs/how-to/install.md").splitlines() if "|" in line]
    rows = {(cells[1].strip(), cells[2].strip()) for cells in lines}
    assert set(PURPOSES.items()) - rows == set()


def test_the_page_has_each_version_of_the_numbers() -> None:
    versions = re.findall(r"^\| (\d+\.\d+\.\d+) \|", page("docs/reference/number-policy.md"), re.MULTILINE)
    assert versions[0] == NUMBERS_VERSION
    headings = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", page("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == __version__
    assert set(versions) <= set(headings)
    assert "### Numbers that moved" in page("CHANGELOG.md").partition("## [0.1.0]")[0]


@pytest.fixture
def citation() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    content: dict[str, Any] = yaml.safe_load(page("CITATION.cff"))
    return content


def test_the_citation_is_of_this_release(citation: dict[str, Any]) -> None:
    """The keys that version 1.2.0 of the format asks for, and what this release is."""
    assert citation["cff-version"] == "1.2.0"
    assert citation["message"]
    assert citation["authors"] == [{"name": author["name"]} for author in PROJECT["authors"]]
    assert (citation["version"], citation["license"]) == (__version__, PROJECT["license"])
    assert f"## [{__version__}] - {citation['date-released'].isoformat()}" in page("CHANGELOG.md")
    known = {"cff-version", "message", "title", "abstract", "type", "authors", "version", "date-released", "license"}
    assert set(citation) <= known | {"repository-code", "keywords"}


def test_the_action_of_the_pages_is_this_release() -> None:
    text = page("docs/how-to/check-in-a-pull-request.md")
    assert set(re.findall(r"lmgauge/lmgauge@v([\d.]+)", text)) == {__version__}
    assert set(re.findall(r"(?:version: |==)(\d+\.\d+\.\d+)", text)) == {__version__}


def test_the_workflows_of_the_page_are_sound() -> None:
    """They are YAML, name inputs that the action has, and no foreign word is part of a script."""
    yaml = pytest.importorskip("yaml")
    inputs = yaml.safe_load(page("action.yml"))["inputs"]
    blocks = re.findall(r"^```yaml\n(.*?)^```", page("docs/how-to/check-in-a-pull-request.md"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        workflow = yaml.safe_load(block)
        assert workflow["permissions"] == {"contents": "read"}
        steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
        assert all("${{" not in step.get("run", "") for step in steps)
        (action,) = [step for step in steps if str(step.get("uses")).startswith("lmgauge/")]
        assert set(action["with"]) <= set(inputs)
        assert {name for name, each in inputs.items() if each.get("required")} <= set(action["with"])


def test_what_is_promised_of_security_names_what_is_there() -> None:
    text = page("SECURITY.md")
    for name in re.findall(r"`((?:tests|\.github)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), name
    assert f"| {__version__.rpartition('.')[0]} | yes |" in text
