"""Documents of plain text the slow and obvious way: one line after another, with no blocks."""

from __future__ import annotations


def document_numbers(files: list[list[str]], rule: str) -> list[int]:
    """Return the number of the document of every line of some files."""
    numbers: list[int] = []
    current = -1
    for lines in files:
        for i, line in enumerate(lines):
            if i == 0 or (_has_text(lines[:i]) and _begins(line, lines[i - 1], rule)):
                current += 1
            numbers.append(current)
    return numbers


def _has_text(lines: list[str]) -> bool:
    return any(not _is_blank(line) for line in lines)


def _is_blank(line: str) -> bool:
    return line.strip(" \t\n\v\f\r") == ""


def _begins(line: str, before: str, rule: str) -> bool:
    if rule == "file":
        return False
    if rule == "blank-line":
        return _is_blank(before) and not _is_blank(line)
    return is_markdown_heading(line) or (_is_blank(before) and is_wikitext_heading(line))


def is_markdown_heading(line: str) -> bool:
    """Return True for `# Title`."""
    return line.startswith("# ") and len(line) > 2


def is_wikitext_heading(line: str) -> bool:
    """Return True for ` = Title = `, not for ` = = Section = = `."""
    bare = line.removeprefix(" ").removesuffix(" ")
    if len(bare.encode()) < 5 or not (bare.startswith("= ") and bare.endswith(" =")):
        return False
    return bare[2] != "=" and bare[-3] != "="
