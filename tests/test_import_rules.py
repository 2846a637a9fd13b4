"""Which folder may import what: the arrows of the design, read from the source with `ast`.

    cli -> api -> report -> evaluation, filtering, tasks -> numerics       explore, integrations: beside cli
                            evaluation -> scores <- models -> text -> records -> base        _kernels: leaves

The score table is the waist: nothing right of it knows a model, nothing left of it knows a metric. What is imported by name
(`import_module` of a string) counts like any other import. README has the tree.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "lmgauge"

PUBLIC = ("errors", "results", "settings")
"""Modules beside the folders: lists of public names."""

FOR_ALL = {"lmgauge", "lmgauge.base"}
"""What every room but `_kernels` may import."""

KERNELS = "lmgauge._kernels"
SOURCE_TEXT = {"lmgauge.text.documents", "lmgauge.text.segments", "lmgauge.text.work_units"}
"""Denominators are counted from the source text, also right of the waist."""

ROOMS = ("numerics", "records", "text", "scores", "work", "models", "evaluation", "filtering", "tasks", "report")
EVERY_ROOM = {f"lmgauge.{room}" for room in ROOMS}


def _rooms(*names: str) -> set[str]:
    return FOR_ALL | {f"lmgauge.{name}" for name in names}


ALLOWED: dict[str, set[str]] = {
    "": FOR_ALL,
    "_kernels": set(),
    "base": FOR_ALL,
    "numerics": _rooms("_kernels"),
    "records": FOR_ALL,
    "text": _rooms("_kernels", "numerics", "records"),
    "scores": _rooms("numerics", "records", "text"),
    "work": _rooms("_kernels"),
    "models": _rooms("_kernels", "numerics", "records", "text", "scores", "work"),
    "evaluation": _rooms("_kernels", "numerics", "records", "scores", "work") | SOURCE_TEXT,
    "filtering": _rooms("numerics", "records", "text", "scores", "models", "work"),
    "tasks": _rooms("_kernels", "numerics", "records", "text", "scores"),
    "report": _rooms("numerics", "scores", "evaluation", "tasks", "filtering"),
    "api": FOR_ALL | EVERY_ROOM | {"lmgauge.results", "lmgauge.settings"},
    "explore": FOR_ALL | EVERY_ROOM | {"lmgauge.api"},
    "integrations": FOR_ALL | EVERY_ROOM | {KERNELS, "lmgauge.api"},
    "cli": FOR_ALL | EVERY_ROOM | {"lmgauge.api", "lmgauge.explore"},
    "__main__": {"lmgauge.cli"},
}
"""Room (folder or module right under the package; "" for the other modules there) -> prefixes of what it may import."""

DOOR = {"lmgauge": {"lmgauge.report"}}
"""What the door of the package, which stands above all rooms, names: the renderers, for `display`, which knows none."""

FOR_TYPES: dict[str, set[str]] = {
    "": {"lmgauge"},
    "base": {"lmgauge.report"},
    "evaluation": {"lmgauge.models.protocol", "lmgauge.text.overlap.overlap_results", "lmgauge.text.tokens"},
    "scores": {"lmgauge.models.protocol"},
    "report": SOURCE_TEXT
    | {"lmgauge.text.overlap.overlap_results", "lmgauge.models.scored_text", "lmgauge.models.combined", "lmgauge.text.split"}
    | {"lmgauge.models.ngram.count_files", "lmgauge.models.ngram.pruning", "lmgauge.models.training.run"}
    | {"lmgauge.api.doctor", "lmgauge.api.sharding.evaluation"},
}
"""What a room may name under TYPE_CHECKING besides."""

LIBRARIES: dict[str, set[str]] = {
    "": set(),
    "_kernels": {"numpy"},
    "base": {"fsspec", "msgspec", "numpy", "pandas", "psutil", "pyarrow", "urllib3"},
    "numerics": {"numpy"},
    "records": {"numpy", "pyarrow", "zstandard"},
    "text": {"numpy", "pandas", "icu4py", "tokenizers", "sentencepiece"},
    "scores": {"numpy", "pyarrow", "array_api_compat"},
    "work": {"msgspec", "numpy", "pyarrow"},
    "models": {"numpy", "pandas", "pyarrow", "safetensors"}
    | {"torch", "transformers", "tokenizers", "llama_cpp", "triton", "jinja2"},
    "integrations": {"numpy", "pyarrow", "torch", "transformers", "lightning", "torchmetrics", "datatrove"},
    "evaluation": {"numpy", "pyarrow", "pandas", "zstandard", "constriction"},
    "filtering": {"numpy", "pandas", "pyarrow"},
    "tasks": {"numpy", "pyarrow", "regex", "sacrebleu"},
    "report": {"numpy", "rich", "jinja2", "vl_convert"},
    "explore": {"numpy", "pyarrow", "starlette", "uvicorn"},
    "api": {"numpy", "pandas", "pyarrow"},
    "cli": {"numpy", "click", "rich"},
    "__main__": set(),
}
"""Room -> libraries it may import."""

EXTRAS = {
    *("fsspec", "zstandard", "icu4py", "tokenizers", "sentencepiece", "pandas", "constriction"),
    *("torch", "transformers", "lightning", "torchmetrics", "llama_cpp", "datatrove"),
    *("regex", "sacrebleu"),
    *("jinja2", "vl_convert", "starlette", "uvicorn", "triton"),
}
"""Libraries that may be absent: only ever imported inside the function that needs them."""

LAZY_ROOMS = ("lmgauge.models.network.", "lmgauge.models.training.", "lmgauge.integrations.", "lmgauge.explore.")
"""What is in these folders is only imported inside functions, and may import its libraries at the top."""


@dataclass(frozen=True)
class Import:
    """One import statement's target, as a reader of a failure wants to see it."""

    module: str
    target: str
    line: int
    typing: bool
    """Under `if TYPE_CHECKING`."""
    lazy: bool
    """Inside a function."""
    by_name: bool = False
    """The string that `import_module` is given, or a table that it looks in."""

    def __str__(self) -> str:
        return f"{self.module} (line {self.line}) imports {self.target}"


def module_name(path: Path) -> str:
    """`src/lmgauge/text/__init__.py` -> `lmgauge.text`."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room(module: str) -> str:
    """The room a module belongs to: `lmgauge.models.ngram.arpa_reader` -> `models`."""
    first = module.split(".")[1] if "." in module else ""
    return first if first in ALLOWED else ""


def is_typing_block(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def targets(node: ast.AST, module: str) -> list[str]:
    """Full names of the modules that an import statement loads."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
        anchor = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*anchor, *([node.module] if node.module else [])])
    submodules = [f"{base}.{alias.name}" for alias in node.names if f"{base}.{alias.name}" in MODULES]
    return submodules if len(submodules) == len(node.names) else [base, *submodules]


def names_of_modules(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of our modules in strings: "module", the begin of an f-string, or words "module:function" of a table."""
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if found := re.fullmatch(r"(lmgauge(?:\.\w+)*)\.?", text):
            yield node.lineno, found[1]
        for found in re.finditer(r"(?<!\S)(lmgauge(?:\.\w+)*):\w+(?!\S)", text):
            yield node.lineno + text[: found.start()].count("\n"), found[1]


def find_imports(module: str) -> list[Import]:
    """All imports of a module, also those inside functions, and by name."""
    found: list[Import] = []

    def visit(node: ast.AST, typing: bool, lazy: bool) -> None:
        found.extend(Import(module, target, node.lineno, typing, lazy) for target in targets(node, module))  # type: ignore[attr-defined]
        for child in ast.iter_child_nodes(node):
            in_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            inside = is_typing_block(node) and child in getattr(node, "body", [])
            visit(child, typing or inside, lazy or in_function)

    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    visit(tree, False, False)
    if any(one.target in ("importlib", "lmgauge.plugins") for one in found):
        found.extend(Import(module, name, line, False, True, by_name=True) for line, name in names_of_modules(tree))
    return found


@cache
def imports() -> list[Import]:
    """All imports of the package; read when the first test asks, as each worker of the suite imports this file."""
    return [found for module in MODULES for found in find_imports(module)]


def own() -> list[Import]:
    """Imports of our own modules."""
    return [found for found in imports() if found.target.split(".")[0] == "lmgauge"]


def of_libraries() -> list[Import]:
    """Imports of what is neither ours nor of the standard library."""
    standard = sys.stdlib_module_names | {"lmgauge", "__future__"}
    return [found for found in imports() if found.target.split(".")[0] not in standard]


def within(target: str, prefixes: set[str]) -> bool:
    """Whether `target` is one of the modules `prefixes` or below one; the package itself stands only for itself."""
    return any(target == prefix or (prefix != "lmgauge" and target.startswith(f"{prefix}.")) for prefix in prefixes)


def breaks_the_map(found: Import) -> bool:
    """Whether an import of one of our own modules goes against the arrows."""
    home = room(found.module)
    if home and within(found.target, {f"lmgauge.{home}"}):
        return False
    allowed = ALLOWED[home] | (FOR_TYPES.get(home, set()) if found.typing else set())
    if home == "" and found.typing:
        return False
    return not within(found.target, allowed)


def test_every_folder_has_its_rule() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= set(ALLOWED), "a new folder: say in this file what it may import"
    assert set(LIBRARIES) == set(ALLOWED)


def test_imports_follow_the_map() -> None:
    assert [str(found) for found in own() if breaks_the_map(found) and not found.by_name] == []


def test_what_is_imported_by_name_follows_the_map() -> None:
    climbing: dict[str, set[str]] = {}
    for found in own():
        if found.by_name and breaks_the_map(found):
            climbing.setdefault(found.module, set()).add(found.target)
    assert climbing == DOOR


def test_readme_has_the_tree() -> None:
    """A line for each room, those first that others stand on."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^  (\w+)/ +\S", page, re.MULTILINE)
    assert sorted(named) == sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__")
    place = {f"lmgauge.{name}": n for n, name in enumerate(named)}
    down = [(room, to) for room in named for to in ALLOWED.get(room, ()) if place.get(to, -1) > place[f"lmgauge.{room}"]]
    assert [pair for pair in down if KERNELS not in pair] == []
    assert set(PUBLIC) == {path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}


def test_libraries_stay_in_their_rooms() -> None:
    wrong = [str(found) for found in of_libraries() if found.target.split(".")[0] not in LIBRARIES[room(found.module)]]
    assert wrong == []


def test_extras_are_imported_where_they_are_needed() -> None:
    eager = [f for f in of_libraries() if f.target.split(".")[0] in EXTRAS and not f.lazy and not f.typing]
    assert [str(found) for found in eager if not found.module.startswith(LAZY_ROOMS)] == []


def test_libraries_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def names(lines: list[str]) -> set[str]:
        return {re.split(r"[^A-Za-z0-9_-]", line)[0].lower() for line in lines}

    core = names(project["dependencies"])
    optional = set[str]().union(*(names(lines) for lines in project["optional-dependencies"].values()))
    known_as = {"llama_cpp": "llama-cpp-python", "vl_convert": "vl-convert-python"}
    known_as["array_api_compat"] = "array-api-compat"
    imported = {known_as.get(name, name) for name in (f.target.split(".")[0] for f in of_libraries())}
    assert imported - core - set(known_as.values()) <= EXTRAS
    assert imported - core - {"triton"} <= optional - core  # which torch brings where it can use it


def test_no_import_cycles() -> None:
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for found in own():
        if not found.typing and not found.by_name and found.target in MODULES and found.target != found.module:
            graph[found.module].add(found.target)
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail("import cycle: " + " <- ".join(error.args[1]))
    assert len(order) == len(MODULES)


def test_every_folder_says_what_it_may_import() -> None:
    silent = [
        module
        for module, path in MODULES.items()
        if path.name == "__init__.py" and "import" not in (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "")
    ]
    assert silent == []


@pytest.mark.parametrize(
    ("module", "target", "typing", "wrong"),
    [
        ("lmgauge.numerics.perplexity", "lmgauge.models.protocol", False, True),
        ("lmgauge.numerics.perplexity", "lmgauge.text.documents", False, True),
        ("lmgauge.evaluation.evaluate", "lmgauge.models.protocol", False, True),
        ("lmgauge.evaluation.evaluate", "lmgauge.models.protocol", True, False),
        ("lmgauge.evaluation.evaluate", "lmgauge.models.ngram.model", True, True),
        ("lmgauge.evaluation.evaluate", "lmgauge.text.tokenizers", False, True),
        ("lmgauge.evaluation.evaluate", "lmgauge.text.segments", False, False),
        ("lmgauge.models.ngram.model", "lmgauge.evaluation.event_sums", False, True),
        ("lmgauge.models.ngram.model", "lmgauge.text.vocabulary", False, False),
        ("lmgauge.report.terminal", "lmgauge.models.protocol", False, True),
        ("lmgauge.evaluation.evaluate", "lmgauge.report.terminal", False, True),
        ("lmgauge.text.documents", "lmgauge.scores", False, True),
        ("lmgauge.scores.table", "lmgauge.models.protocol", False, True),
        ("lmgauge._kernels.any", "lmgauge.base.errors", False, True),
        ("lmgauge.cli.main", "lmgauge.report.terminal", False, False),
        ("lmgauge.cli.main", "lmgauge._kernels", False, True),
        ("lmgauge.api.evaluate", "lmgauge.cli.main", False, True),
        ("lmgauge.base.errors", "lmgauge.text.documents", False, True),
        ("lmgauge.integrations.metric", "lmgauge.api.evaluate", False, False),
        ("lmgauge.integrations.metric", "lmgauge.cli.main", False, True),
        ("lmgauge.models.protocol", "lmgauge.integrations.metric", False, True),
        ("lmgauge.integrations.kenlm", "lmgauge.models.registry", False, False),
        ("lmgauge.models.registry", "lmgauge.integrations.kenlm", False, True),
        ("lmgauge.tasks.metrics.bleu", "lmgauge.models.protocol", False, True),
        ("lmgauge.tasks.metrics.bleu", "lmgauge.text.segment_metadata", False, False),
        ("lmgauge.evaluation.evaluate", "lmgauge.tasks.metrics.bleu", False, True),
    ],
)
def test_the_rules_see_what_they_forbid(module: str, target: str, typing: bool, wrong: bool) -> None:
    assert breaks_the_map(Import(module, target, 1, typing, False)) is wrong
