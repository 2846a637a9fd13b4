"""The digits of a reference set: `digits.json` has them, every run of the tests compares, and one command records them anew.

    python -m tests.golden.digits                 # compare; prints what differs
    python -m tests.golden.digits --record        # write digits.json anew

A change of any digit is a change of the signature's version: digits that changed are only recorded when `NUMBERS_VERSION`
has been raised since they were recorded. `--unreleased` records more changes of numbers that no release has.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.golden.digit_jobs import JOBS, Bench, Job, Value, Values

from lmgauge.base.version import NUMBERS_VERSION

HERE = Path(__file__).resolve().parent
DIGITS = HERE / "digits.json"
POLICY = (
    "A change of any digit is a change of the signature's version (docs/reference/number-policy.md). If the change is "
    "meant: set NUMBERS_VERSION in src/lmgauge/base/version.py to the version in the making, say in CHANGELOG.md which "
    "numbers moved and why, and run `python -m tests.golden.digits --record`. If it is not meant, something broke. "
    "Values that are only new (recorded None) need no new version, but the same command."
)


@dataclass(frozen=True)
class Difference:
    """A value that is not the recorded one; None: not there.

    Attributes:
        name: job and value.
        recorded: what digits.json has.
        measured: what this machine has.
    """

    name: str
    recorded: Value | None
    measured: Value | None

    def __str__(self) -> str:
        shown = f"{self.name}: recorded {self.recorded!r}, here {self.measured!r}"
        if isinstance(self.recorded, float) and isinstance(self.measured, float):
            shown += f" ({relative_distance(self.recorded, self.measured):.1e} of it)"
        return shown


def relative_distance(left: float, right: float) -> float:
    """Return how far two numbers are apart, in units of the larger; 0 for the same, also for the same infinity."""
    if left == right or (math.isnan(left) and math.isnan(right)):
        return 0.0
    largest = max(abs(left), abs(right))
    return abs(left - right) / largest if math.isfinite(largest) else math.inf


def agree(recorded: Value, measured: Value, tolerance: float) -> bool:
    """Whether a value is the recorded one: the same bits, or two numbers with a fraction within a relative tolerance."""
    if type(recorded) is not type(measured):
        return False
    if isinstance(recorded, float) and isinstance(measured, float):
        return relative_distance(recorded, measured) <= tolerance
    return recorded == measured


def differences(
    name: str, recorded: Mapping[str, Value], measured: Mapping[str, Value], tolerance: float
) -> Iterator[Difference]:
    """Yield the values of a job that differ by more than the tolerance, and those that only one side has."""
    for key in dict.fromkeys((*recorded, *measured)):
        before, now = recorded.get(key), measured.get(key)
        if before is None or now is None or not agree(before, now, tolerance):
            yield Difference(f"{name}: {key}", before, now)


def measured(job: Job) -> Values:
    """Return the values of a job on this machine, with a bench of its own."""
    with tempfile.TemporaryDirectory(prefix="digits-") as folder:
        return job.run(Bench(Path(folder)))


def missing(job: Job) -> bool:
    """Whether a job needs a library that is not installed."""
    return job.needs is not None and find_spec(job.needs) is None


def read_record(path: Path = DIGITS) -> tuple[str, dict[str, Values]]:
    """Return the version of the numbers that were recorded, and the values of each job."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    values = {name: {key: _from_json(value) for key, value in entry.items()} for name, entry in stored["jobs"].items()}
    return stored["version"], values


def write_record(version: str, values: Mapping[str, Values], path: Path = DIGITS) -> None:
    """Write the values of all jobs, numbers with a fraction to the last bit (`float.hex`)."""
    jobs = {name: {key: _to_json(value) for key, value in values[name].items()} for name in sorted(values)}
    text = json.dumps({"version": version, "jobs": jobs}, indent=0, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def _to_json(value: Value) -> int | str | list[str]:
    return [value.hex()] if isinstance(value, float) else value


def _from_json(stored: int | str | list[str]) -> Value:
    return float.fromhex(stored[0]) if isinstance(stored, list) else stored


def main() -> int:
    """Compare or record; the exit code is 1 where digits differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.digits", description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write digits.json anew")
    parser.add_argument("--unreleased", action="store_true", help="these numbers are in no release: they may still change")
    parser.add_argument(
        "--write", type=Path, help="write this machine's values into a file of the same form, to compare machines"
    )
    parser.add_argument("--against", type=Path, default=DIGITS, help="the file to compare with (default: digits.json)")
    parser.add_argument(
        "--bits", action="store_true", help="show every value that has other bits, also those within the tolerance"
    )
    chosen = parser.parse_args()
    recorded_at, recorded = read_record(chosen.against) if chosen.against.exists() else ("", {})
    now = {name: measured(job) for name, job in JOBS.items() if not missing(job)}
    changes = [
        difference
        for name, values in now.items()
        for difference in differences(name, recorded.get(name, {}), values, 0.0 if chosen.bits else JOBS[name].tolerance)
    ]
    if chosen.write:
        write_record(NUMBERS_VERSION, now, chosen.write)
    print("\n".join(map(str, changes)) or f"all digits of {len(now)} jobs are as recorded")
    if not chosen.record:
        return int(bool(changes))
    changed = [change for change in changes if change.recorded is not None]
    if changed and recorded_at == NUMBERS_VERSION and not chosen.unreleased:
        print(
            f"\nnot recorded: {len(changed)} digits changed and NUMBERS_VERSION is still {NUMBERS_VERSION}. {POLICY}",
            file=sys.stderr,
        )
        return 1
    write_record(NUMBERS_VERSION, {name: _renewed(name, recorded.get(name, {}), now.get(name)) for name in JOBS})
    return 0


def _renewed(name: str, before: Values, now: Values | None) -> Values:
    # What is written for a job: values that agree stay as they were, as another machine has other last bits.
    if now is None:
        return before
    tolerance = JOBS[name].tolerance
    return {
        key: before[key] if key in before and agree(before[key], value, tolerance) else value for key, value in now.items()
    }


if __name__ == "__main__":
    sys.exit(main())
