"""What the house may weigh: code lines of each room, who may use what there is one of, and what has a single user.

    python -m tests.budgets            # the table: room, lines, budget, target
    python -m tests.budgets --lower    # bring `budgets.toml` down to what there is now; nothing is ever raised by it

A budget of lines or files has a hundredth to spare, so that who mends a fault need not raise it.

Code lines are lines that are not blank, a comment or part of a docstring. Who raises a budget lowers another, or says in the
changelog why not.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.trees import tree

TABLE = Path(__file__).with_suffix(".toml")
PACKAGE = Path(__file__).resolve().parent.parent / "src" / "lmgauge"
BUDGETS: dict[str, Any] = tomllib.loads(TABLE.read_text(encoding="utf-8"))
SOURCES = sorted(PACKAGE.rglob("*.py"))

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


# -- lines --------------------------------------------------------------------------------------------------------------
def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that docstrings take."""
    starts = [node.body[0] for node in ast.walk(tree) if isinstance(node, ast.Module | Definition) and node.body]
    strings = [node for node in starts if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    spans = [range(n.lineno, (n.end_lineno or n.lineno) + 1) for n in strings if isinstance(n.value.value, str)]  # type: ignore[attr-defined]
    return {line for span in spans for line in span}


def code_lines(path: Path, comment: str = "#") -> int:
    """Count the lines of a file that are code."""
    left_out = docstring_lines(tree(path)) if path.suffix == ".py" else set()
    lines = enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
    return sum(bool(line.strip()) and not line.strip().startswith(comment) and n not in left_out for n, line in lines)


ROOM_OF = {path: (target, row) for target, rows in BUDGETS["rooms"].items() for row in rows for path in row.split()}
"""Each path of the table, a folder or a module -> the room of the design, and its row."""


def row_of(path: Path) -> tuple[str, str] | None:
    """Return the row that a module counts for, that of the innermost folder which the table names."""
    inside = path.relative_to(PACKAGE)
    names = [inside.as_posix(), *(parent.as_posix() for parent in inside.parents)]
    return next((ROOM_OF[name] for name in names if name in ROOM_OF), None)


def weigh() -> tuple[dict[tuple[str, str], int], dict[str, int]]:
    """Return the code lines of each row, and the figures of the whole house."""
    lines = {path: code_lines(path) for path in SOURCES}
    rooms = dict.fromkeys(ROOM_OF.values(), 0)
    for path, count in lines.items():
        if (row := row_of(path)) is not None:
            rooms[row] += count
    cpp = {path: code_lines(path, "//") for path in (PACKAGE / "_kernels").glob("*.?pp")}
    return rooms, {
        "code lines": sum(lines.values()),
        "files": len(SOURCES),
        "docstring lines": sum(len(docstring_lines(tree(path))) for path in SOURCES),
        "C++ lines": sum(cpp.values()),
        "C++ lines of bindings": sum(n for path, n in cpp.items() if path.stem.startswith(("bindings", "arguments"))),
    }


def table() -> str:
    """Return what there is beside its budget and its target; what is above its budget is marked."""
    rooms, whole = weigh()
    lines = [f"{'room':<74} {'lines':>7} {'budget':>7} {'target':>7}"]

    def add(name: str, now: int, budget: int, target: object = "") -> None:
        over = f"  {now - budget} too many" if now > budget else ""
        shown = f"{target:,}" if isinstance(target, int) else ""
        lines.append(f"{name if len(name) <= 74 else name[:71] + '...':<74} {now:7,} {budget:7,} {shown:>7}{over}")

    for target, rows in BUDGETS["rooms"].items():
        own = {row: rooms[target, row] for row in rows}
        add(target, sum(own.values()), sum(rows.values()), BUDGETS["targets"].get(target))
        for row, now in own.items():
            add(f"    {row}", now, rows[row])
    for name, now in whole.items():
        add(name, now, BUDGETS["whole"][name], BUDGETS["whole_targets"].get(name))
    share = 100 * whole["C++ lines of bindings"] / whole["C++ lines"]
    return "\n".join([*lines, f"bindings: {share:.1f} % of the C++ (target: 10 %)"])


# -- one of each --------------------------------------------------------------------------------------------------------
_OF_A_MODEL = re.compile(r"(^|[._])(model|loaded|inner|component|mixture|engine|adapting)$")


def module_name(path: Path) -> str:
    """`src/lmgauge/text/__init__.py` -> `text`."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def full_names(tree: ast.Module) -> Iterator[str]:
    """Yield each name that is used, in full whatever it was imported as, and what is asked of models by strings.

    An annotation says what a value is, and uses nothing.
    """
    known: dict[str, str] = {}
    types = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
    said = {id(part) for kind in types if isinstance(kind, ast.AST) for part in ast.walk(kind)}
    kinds = (ast.Name, ast.Attribute, ast.Call, ast.Import, ast.ImportFrom)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    for node in nodes:
        if isinstance(node, ast.Import):
            known |= {a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            known |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
            yield from [str(node.module)] * len(node.names)
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in said:
            first, dot, rest = _dotted(node).partition(".")
            yield known.get(first, first) + dot + rest
        elif isinstance(node, ast.Call) and (asks := _dotted(node.func)) in ("getattr", "hasattr"):
            yield f"{asks}({'model' if _OF_A_MODEL.search(_dotted(node.args[0])) else ''}, ...)"


def _dotted(node: ast.AST) -> str:
    """Return `a.b.c` of a name or an attribute, "" of anything else; what `a` is stays open, as in `f().b`."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def users_of_each() -> dict[str, dict[str, int]]:
    """Return for each name of the table the modules that use it, and how often."""
    found: dict[str, dict[str, int]] = {name: {} for name in BUDGETS["one_of_each"]}
    for path in SOURCES:
        for name, count in Counter(full_names(tree(path))).items():
            if name in found:
                found[name][module_name(path)] = count
    return found


# -- two users ----------------------------------------------------------------------------------------------------------
def needs_two_users(node: ast.ClassDef) -> bool:
    """Return True for a protocol, an engine, or a dataclass of settings."""
    bases = {ast.unparse(base).split("[")[0] for base in node.bases}
    is_settings = any("dataclass" in ast.unparse(one) for one in node.decorator_list) and bool(
        re.search(r"(Settings|Options|Choices|Resources|Limits|Files|Output|Outputs|Shown)$", node.name)
    )
    return "Protocol" in bases or is_settings or node.name.endswith("Engine")


def users() -> dict[str, int]:
    """Return for each class that needs two users how many definitions name it, in annotations, calls or as a base.

    Names are compared without their modules, so that two classes of one name count each other's users.
    """
    classes = {
        f"{module_name(path)}:{node.name}"
        for path in SOURCES
        for node in tree(path).body
        if isinstance(node, ast.ClassDef) and needs_two_users(node)
    }
    wanted = {name.partition(":")[2] for name in classes}
    counts: Counter[str] = Counter()
    for path in SOURCES:
        for statement in tree(path).body:
            own = statement.name if isinstance(statement, Definition) else ""
            named = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            named |= {node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
            counts.update((named & wanted) - {own})
    return {name: counts[name.partition(":")[2]] for name in sorted(classes)}


def single_users() -> list[str]:
    """Return the classes that need two users and have fewer."""
    return [name for name, count in users().items() if count < 2]


# -- the table is brought down ------------------------------------------------------------------------------------------
def _lowered(now: Mapping[str, int], budget: Mapping[str, int]) -> dict[str, int]:
    return {name: min(most, now.get(name, 0)) for name, most in budget.items()}


def _spared(now: Mapping[str, int]) -> dict[str, int]:
    return {name: count + count // 100 for name, count in now.items()}


def lower() -> None:
    """Write the table anew, each figure the smaller one of budget and present, and what is gone left out."""
    rooms, whole = weigh()
    uses, single = users_of_each(), single_users()
    sections: dict[str, Mapping[str, object]] = {"targets": BUDGETS["targets"]}
    for target, rows in BUDGETS["rooms"].items():
        there = {row: most for row, most in rows.items() if all((PACKAGE / path).exists() for path in row.split())}
        sections[f'rooms."{target}"'] = _lowered(_spared({row: rooms[target, row] for row in there}), there)
    enough = {name: max(now, BUDGETS["whole_targets"].get(name, 0)) for name, now in _spared(whole).items()}
    sections["whole"] = _lowered(enough, BUDGETS["whole"])
    sections["whole_targets"] = BUDGETS["whole_targets"]
    for name, modules in BUDGETS["one_of_each"].items():
        sections[f'one_of_each."{name}"'] = {m: n for m, n in _lowered(uses[name], modules).items() if n}
    comment = "".join(line for line in TABLE.read_text(encoding="utf-8").splitlines(True) if line.startswith("#"))
    left = [name for name in BUDGETS["one_user"] if name in single]
    text = f"{comment}one_user = [\n" + "".join(f'    "{name}",\n' for name in left) + "]\n"
    for section, rows in sections.items():
        text += f"\n[{section}]\n" + "".join(f'"{name}" = {value}\n' for name, value in rows.items())
    TABLE.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    do: Callable[[], object] = lower if sys.argv[1:] == ["--lower"] else lambda: print(table())
    do()
