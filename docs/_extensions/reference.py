"""The reference as readers need it: commands as their `--help` has them, signatures without what only type checkers need."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import PyObject
from sphinx.ext.napoleon import GoogleDocstring
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docfields import GroupedField
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from lmgauge import Corpus, NgramModel, Vocabulary
from lmgauge.base.display import Displayable
from lmgauge.models import NeuralModel
from lmgauge.results import RunRows

_OPTION = re.compile(r"(?<![\w`-])(--?[a-zA-Z][\w-]*)")
_MADE_BY_FUNCTIONS = (Corpus, NgramModel, NeuralModel, RunRows, Vocabulary)
"""Classes whose objects a function or a class method makes."""
_CODE = re.compile(r"`([^`]+)`")


def _marked(text: str) -> str:
    """Return words of a help page as reStructuredText: options and commands as code, nothing else as markup.

    >>> _marked("Two at a time (as `wc -l`); see --json, a*b.")
    'Two at a time (as ``wc -l``); see ``--json``, a\\\\*b.'
    """
    parts = []
    for i, part in enumerate(_CODE.split(text)):
        escaped = re.sub(r"([*|_\\])", r"\\\1", part)
        parts.append(f"``{part}``" if i % 2 else _OPTION.sub(lambda found: f"``{found[1]}``".replace("\\", ""), escaped))
    return "".join(parts)


def _describe(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """Write what a command does: paragraphs, and its examples (after \\b in the help) as code that can be copied."""
    help_page = inspect.cleandoc(context.command.help or "")
    lines[:] = [line for paragraph in help_page.split("\n\n") for line in _paragraph(paragraph)]


def _paragraph(text: str) -> Iterator[str]:
    code = text.startswith("\b")
    yield from [".. code-block:: sh", "   :class: usage", ""] if code else []
    for line in text.removeprefix("\b\n").splitlines():
        if line.strip() != "Examples:":
            yield f"   {line.strip()}" if code else _marked(line)
    yield ""


def _list_options(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """Write the options under the headings of `--help`."""
    sections: dict[str, list[click.Option]] = {"Options": []}
    for option in context.command.params:
        if isinstance(option, click.Option) and not option.hidden:
            sections.setdefault(vars(option).get("heading", "Options"), []).append(option)
    lines.clear()
    context.show_default = True  # as the group that the command belongs to says
    for heading, options in sections.items():
        if options and heading != "Options":  # that one is there already
            lines += [f".. rubric:: {heading}", ""]
        for option in options:
            lines += _option(option, context)


def _option(option: click.Option, context: click.Context) -> list[str]:
    names, words = option.get_help_record(context) or ("", "")
    words = _marked((option.help or "").strip())
    extra = option.get_help_extra(context)
    facts = ["Required"] if option.required else []
    facts += [f"Default: ``{extra['default']}``"] if "default" in extra else []
    facts += [f"``{extra['range']}``"] if "range" in extra else []
    words = " ".join([words, *(f"{fact}." for fact in facts)])
    return [f".. option:: {names.replace(' / ', ', ')}", "", f"   {words}", ""]


def _no_arguments(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """Leave out the list of arguments: the help page says in words what they are."""
    lines.clear()


def _plain_signature(
    app: Sphinx, what: str, name: str, value: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    """Write types as the source does: without modules, aliases by their names. What only we make has no signature."""
    if signature is None:
        return None
    if isinstance(value, type) and (
        issubclass(value, Displayable) or value in _MADE_BY_FUNCTIONS or getattr(value, "_is_protocol", False)
    ):
        return "", None
    return _short(signature), None if returns is None else _short(returns)


def _short(types: str) -> str:
    """Return types as the source writes them, `...` for a default that is a function; without fields of settings and bounds.

    >>> _short("(x: numpy.ndarray[tuple[Any, ...], numpy.dtype[numpy.uint32]], y: ~os.PathLike, z: F = <function f at 0x1>)")
    '(x: NDArray[uint32], y: PathLike, z: F = ...)'
    >>> _short("(reading: ReadingOptions = ReadingOptions(unit='line', keep=()), k: Annotated[int, Bounds(least=1)] = 3)")
    '(reading: ReadingOptions = ReadingOptions(), k: int = 3)'
    """
    types = re.sub(r"<[^<>]*(?:<\w+>[^<>]*)*>", "...", types)
    types = re.sub(r"Annotated\[([^,\[\]]+), \w+\((?:[^()]|\([^()]*\))*\)\]", r"\1", types)
    types = re.sub(r"(= [A-Z]\w+)\((?:[^()]|\([^()]*\))*\)", r"\1()", types)
    types = re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", types).replace("~", "")
    types = re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", types)
    return re.sub(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]", r"NDArray[\1]", types)


def _drop_empty_headings(app: Sphinx, doctree: nodes.document) -> None:
    """Remove a heading that another follows at once: where all options of a command stand under headings of ours."""
    for heading in list(doctree.findall(nodes.rubric)):
        if isinstance(heading.next_node(descend=False, siblings=True), nodes.rubric):
            heading.parent.remove(heading)


class Returned(SphinxDirective):
    """Describe classes without a public name, which functions return, by their docstrings: `module:Class`, one a line."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the descriptions."""
        lines = [".. py:currentmodule:: None", ""]
        for where in self.content:
            module, _, name = where.strip().partition(":")
            described = inspect.getdoc(getattr(import_module(f"lmgauge.{module}"), name)) or ""
            text = str(GoogleDocstring(described, self.config, self.env.app, "class", name))
            lines += [f".. py:class:: {name}", "", *(f"   {line}" for line in text.splitlines()), ""]
        return self.parse_text_to_nodes("\n".join(lines))


def _command_lines(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Show the section `Shell:` of a verb, from which its command has its examples, as it is typed."""
    if "Shell:" in lines:
        at = lines.index("Shell:")
        lines[at : at + 1] = ["On the command line:", "", ".. code-block:: sh", ""]


def _example_first(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Put the example of a docstring behind its first paragraph.

    >>> lines = ["Add.", "", "More words.", "", "Example:", "    >>> 1 + 1", "    2", ""]
    >>> _example_first(None, "function", "add", None, None, lines)
    >>> lines
    ['Add.', '', '>>> 1 + 1', '2', '', 'More words.', '']
    """
    if "Example:" in lines and "" in lines:
        at, end = lines.index("Example:"), len(lines)
        end = next((i for i in range(at + 1, end) if lines[i] and not lines[i].startswith(" ")), end)
        example = [line.removeprefix("    ") for line in lines[at + 1 : end]]
        del lines[at:end]
        after = lines.index("") + 1
        lines[after:after] = example if example[-1] == "" else [*example, ""]


def _open_with_example(app: Sphinx, document: nodes.document) -> None:
    """Let a page of the API begin with its first example, before any signature."""
    described = next(document.findall(addnodes.desc), None)
    if not app.env.docname.startswith("reference/api/") or described is None:
        return
    example = next(described.findall(nodes.doctest_block), None)
    code = (nodes.doctest_block, nodes.literal_block, addnodes.desc)
    first = next(node for node in document.findall() if isinstance(node, code))
    if example is not None and first is described:
        place = described.parent.index(described)
        example.parent.remove(example)
        described.parent.insert(place - isinstance(described.parent[place - 1], addnodes.index), example)


def _link_names_of_types(app: Sphinx, document: nodes.document) -> None:
    """Let names of types in signatures lead to the table that explains them."""
    if app.env.docname != "reference/api/index":
        return
    for row in [row for table in document.findall(nodes.table) for row in table.findall(nodes.row)]:
        names = [name.astext() for name in row[0].findall(nodes.literal)]
        for name in names if "words-in-signatures" in row.parent.parent.parent.parent["ids"] else ():
            if name.isidentifier():
                row["ids"].append(f"type-{name}")
                app.env.domains.python_domain.note_object(name, "type", f"type-{name}")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect to what reads commands and docstrings."""
    app.add_directive("returned", Returned)
    app.connect("sphinx-click-process-description", _describe)
    app.connect("sphinx-click-process-options", _list_options)
    app.connect("sphinx-click-process-arguments", _no_arguments)
    app.connect("autodoc-process-signature", _plain_signature)
    app.connect("autodoc-process-docstring", _command_lines, priority=400)  # before Google's form is read
    app.connect("autodoc-process-docstring", _example_first, priority=300)
    app.connect("doctree-read", _open_with_example)
    app.connect("doctree-read", _link_names_of_types)
    app.connect("doctree-read", _drop_empty_headings)
    find_overloads = ModuleAnalyzer.analyze

    def analyze(analyzer: ModuleAnalyzer) -> None:
        find_overloads(analyzer)
        analyzer.overloads = {}  # they tell a type checker what the one signature and its text tell a reader

    ModuleAnalyzer.analyze = analyze  # type: ignore[method-assign]
    parse = GoogleDocstring._parse

    def parse_whole(docstring: GoogleDocstring) -> None:
        if docstring._what == "property":  # else "Return the sum: of all" would be a type, then what the property is
            docstring._what = "method"
        parse(docstring)

    GoogleDocstring._parse = parse_whole  # type: ignore[method-assign]
    labels = {"parameter": "Arguments", "variable": "Attributes"}
    PyObject.doc_field_types = [  # "a, b: the two" is two names with one text, not a type and a name
        GroupedField(field.name, field.names, labels[field.name], can_collapse=True) if field.name in labels else field
        for field in PyObject.doc_field_types
    ]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
