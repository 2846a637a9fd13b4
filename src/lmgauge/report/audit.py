"""An audit as people read it: level by level, each check with its verdict and evidence."""

from __future__ import annotations

from lmgauge.evaluation.audit.results import FAIL, LEVELS, NOT_ASKED_FOR, NOT_CHECKED, PASS, WHOLE_LEVEL, Audit
from lmgauge.report.terminal import console, readable, sign

_STYLES = {PASS: "green", FAIL: "bold red", NOT_CHECKED: "yellow"}


def print_audit(audit: Audit) -> None:
    """A row a check, under the verdict of its level; then what it all comes to."""
    from rich.table import Table
    from rich.text import Text

    title = Text(readable(audit.model))
    if str(audit.headline):
        title.append("\n" + str(audit.headline).replace(">=", sign("≥", ">=")), style="not bold")
    table = Table(box=None, show_header=False, title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for number, level in enumerate(LEVELS, 1):
        verdict = audit.verdict(level)
        checks = [check for check in audit.checks if check.level == level]
        whole = checks[0].evidence if [check.name for check in checks] == [WHOLE_LEVEL] else ""
        table.add_row(Text(f"{number} {level}", style="bold"), Text(verdict, style=_STYLES[verdict]), Text(readable(whole)))
        for check in checks:
            if not whole:
                mark = Text(check.verdict, style=_STYLES[check.verdict])
                table.add_row(Text(f"  {check.name}"), mark, Text(readable(check.evidence)))
    out = console()
    out.print(table)
    out.print(Text(conclusion(audit), style=_STYLES[PASS if audit.passed else FAIL]))


def conclusion(audit: Audit) -> str:
    """Return one sentence: what failed, or how much of the text was verified by compression, and what was not checked."""
    if not audit.passed:
        levels = [level for level in LEVELS if audit.verdict(level) == FAIL]
        what = (
            "the test text overlaps the training text"
            if levels == ["contamination"]
            else "the numbers are not what they claim to be"
        )
        return f"FAIL at {_listed(levels)}: {what}."
    if all(audit.verdict(level) == NOT_CHECKED for level in LEVELS):
        reasons = dict.fromkeys(check.evidence for check in audit.checks if check.evidence != NOT_ASKED_FOR)
        why = "; ".join(reasons) or "no level was asked for"
        return f"Nothing was checked: {why}{'' if why[-1] in '.?' else '.'}"
    unchecked = [name for level in LEVELS if (name := _unchecked(audit, level))]
    left = f"; {_listed(unchecked)} not checked" if unchecked else ""
    return f"PASS: nothing found to be wrong{_verified(audit)}{left}."


def _unchecked(audit: Audit, level: str) -> str:
    """A level of which nothing was checked, or only a part, with what was not; empty if all was."""
    names = [check.name for check in audit.checks if check.level == level and check.verdict == NOT_CHECKED]
    if audit.verdict(level) == NOT_CHECKED:
        return level
    return f"{level} ({', '.join(names)})" if names else ""


def _verified(audit: Audit) -> str:
    """Return on how much of the text compression verified the number, and whether bytes or only events came back."""
    details = {check.name: check.details for check in audit.checks if check.level == "compression" and check.verdict == PASS}
    if "decoding" not in details or not details.get("code length", {}).get("text_bytes"):
        return ""
    coded, text = (details["code length"][name] for name in ("source_bytes", "text_bytes"))
    how = " " if details["decoding"]["exact_bytes"] == coded else ", event by event, "
    return f"; verified by compression{how}on {_percent(coded, text)} of the bytes"


def _percent(part: int, whole: int) -> str:
    if part == whole:
        return "100 %"
    share = 100 * part / whole
    return f"{min(share, 99.9):.1f} %" if share >= 99.5 or 0 < share < 1 else f"{share:.0f} %"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
