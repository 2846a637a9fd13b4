"""An audit as people read it: level by level, each check with its verdict and evidence."""

from __future__ import annotations

from lmgauge.evaluation.audit.results import FAIL, LEVELS, NOT_CHECKED, PASS, WHOLE_LEVEL, Audit
from lmgauge.report.terminal import console

_STYLES = {PASS: "green", FAIL: "bold red", NOT_CHECKED: "yellow"}


def print_audit(audit: Audit) -> None:
    """A row a check, under the verdict of its level; then what it all comes to."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, title=audit.model, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for number, level in enumerate(LEVELS, 1):
        verdict = audit.verdict(level)
        checks = [check for check in audit.checks if check.level == level]
        whole = checks[0].evidence if [check.name for check in checks] == [WHOLE_LEVEL] else ""
        table.add_row(Text(f"{number} {level}", style="bold"), Text(verdict, style=_STYLES[verdict]), Text(whole))
        for check in checks:
            if not whole:
                mark = Text(check.verdict, style=_STYLES[check.verdict])
                table.add_row(Text(f"  {check.name}"), mark, Text(check.evidence))
    out = console()
    out.print(table)
    out.print(Text(conclusion(audit), style=_STYLES[PASS if audit.passed else FAIL]))


def conclusion(audit: Audit) -> str:
    """One sentence: what failed, or that nothing did and what was not checked."""
    unchecked = [level for level in LEVELS if audit.verdict(level) == NOT_CHECKED]
    if not audit.passed:
        levels = [level for level in LEVELS if audit.verdict(level) == FAIL]
        what = "the text is no test of this model" if levels == ["leak"] else "the numbers are not what they claim to be"
        return f"FAIL at {_listed(levels)}: {what}."
    if len(unchecked) == len(LEVELS):
        return "Nothing was checked."
    left = f"; {_listed(unchecked)} not checked" if unchecked else ""
    return f"PASS: nothing found to be wrong{left}."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
