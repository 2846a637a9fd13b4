"""Audits: what it all comes to; then level by level, each check with its verdict and evidence."""

from __future__ import annotations

from lmgauge.evaluation.audit.checks import FAIL, LEVELS, NOT_ASKED_FOR, NOT_CHECKED, PASS, WHOLE_LEVEL, Audit
from lmgauge.report import blocks as doc
from lmgauge.report.formats import listed

_LEVELS: dict[str, doc.Level] = {PASS: "good", FAIL: "bad", NOT_CHECKED: "unknown"}


def blocks(audit: Audit) -> doc.Document:
    """Return the conclusion, and a row for each check under the verdict of its level."""
    rows: list[tuple[str, str, str]] = []
    levels: list[int] = []
    for i, level in enumerate(LEVELS, 1):
        checks = [check for check in audit.checks if check.level == level]
        whole = [check.name for check in checks] == [WHOLE_LEVEL]
        levels.append(len(rows))
        rows.append((f"{i} {level}", audit.verdict(level), checks[0].evidence if whole else ""))
        rows += [(f"  {check.name}", check.verdict, check.evidence) for check in checks if not whole]
    names, verdicts, evidence = zip(*rows, strict=True)
    marks = [doc.Mark(verdict, _LEVELS[verdict]) for verdict in verdicts]
    verdict = doc.Column("verdict", marks, align="left")
    columns = (doc.labels("check", names), verdict, doc.labels("evidence", evidence, wraps=True))
    headline = audit.headline().replace(">=", "≥")
    return (
        doc.Heading(audit.model),
        doc.Verdict("good" if audit.passed else "bad", conclusion(audit)),
        *([doc.Text(headline)] if headline else []),
        ladder(audit),
        doc.Table(columns, bold=tuple(levels)),
    )


def ladder(audit: Audit) -> doc.Ladder:
    """Return the levels as steps that stand on each other, each with its verdict and why."""
    steps = []
    for level in LEVELS:
        verdict = audit.verdict(level)
        checks = [check for check in audit.checks if check.level == level]
        reasons = [check.evidence for check in checks if check.verdict == verdict and check.evidence]
        text = next(iter(reasons), "") if verdict != PASS or len(checks) == 1 else _passed(audit, level)
        steps.append(doc.Rung(level, doc.Mark(verdict, _LEVELS[verdict]), text))
    return doc.Ladder(tuple(steps))


def _passed(audit: Audit, level: str) -> str:
    names = [check.name for check in audit.checks if check.level == level and check.verdict == PASS]
    left = _unchecked(audit, level).removeprefix(level).strip()
    return f"{listed(names)} checked" + (f"; not checked: {left[1:-1]}" if left else "")


def conclusion(audit: Audit) -> str:
    """Return one sentence: what failed, or how much of the text was verified by compression, and what was not checked."""
    if not audit.passed:
        levels = [level for level in LEVELS if audit.verdict(level) == FAIL]
        what = (
            "the test text overlaps the training text"
            if levels == ["contamination"]
            else "the numbers are not what they claim to be"
        )
        return f"FAIL at {listed(levels)}: {what}."
    if all(audit.verdict(level) == NOT_CHECKED for level in LEVELS):
        reasons = dict.fromkeys(check.evidence for check in audit.checks if check.evidence != NOT_ASKED_FOR)
        why = "; ".join(reasons) or "no level was asked for"
        return f"Nothing was checked: {why}{'' if why[-1] in '.?' else '.'}"
    unchecked = [name for level in LEVELS if (name := _unchecked(audit, level))]
    left = f"; {listed(unchecked)} not checked" if unchecked else ""
    return f"PASS: no problem found{_verified(audit)}{left}."


def _unchecked(audit: Audit, level: str) -> str:
    # Level of which nothing was checked, or only a part, with what was not; empty if all was.
    names = [check.name for check in audit.checks if check.level == level and check.verdict == NOT_CHECKED]
    if audit.verdict(level) == NOT_CHECKED:
        return level
    return f"{level} ({', '.join(names)})" if names else ""


def _verified(audit: Audit) -> str:
    # On how much of the text compression verified the number, and whether bytes or only events came back.
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
