"""Results as the Hugging Face Hub keeps them: a YAML file in the model's repository (docs/hub/eval-results)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from lmgauge.base.errors import UsageError
from lmgauge.base.files import folder_named
from lmgauge.base.json_text import to_json
from lmgauge.report.exports import ExportedRun


def hub(runs: Sequence[ExportedRun], *, dataset: str, task: str, source: str = "") -> Iterator[tuple[str, str]]:
    """A file for the model's repository on the Hugging Face Hub (.eval_results/*.yaml)."""
    (run, *others), (figure, *more) = runs, runs[0].figures
    if others or more:
        raise UsageError("a file for the Hub has one figure of one model: name one run, and what is ranked with --figures")
    if figure.is_lower_bound or not math.isfinite(figure.value):
        what = "infinite" if math.isinf(figure.value) else "a lower bound"
        raise UsageError(f"{figure.title} of {run.model} is {what}, which a leaderboard would rank as if it were the figure")
    if not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", dataset, re.ASCII):
        raise UsageError(f"dataset {dataset!r} is not a name of the Hub: write NAME or ORGANIZATION/NAME, such as cais/hle")
    if not re.match("https?://.|$", source):
        raise UsageError(f"source {source!r} is not an address: the Hub makes it a link, which begins with https://")
    own, value = figure.interval, repr(figure.value)
    between = f", {own.level:.0%} interval {own.low!r} to {own.high!r}" if own else ""
    lines = [
        "- dataset:",
        f"    id: {_quoted(dataset)}",
        f"    task_id: {_quoted(task)}",
        f"  value: {value if '.' in value else value.replace('e', '.0e')}",  # a number of YAML 1.1 has a point
        f"  date: {_quoted(run.moment.isoformat())}",
        f"  source: {{url: {_quoted(source)}}}" if source else "",
        f"  notes: {_quoted(f'{figure.title}{between}; {run.signature}; rows sha256:{run.rows_sha256}')}",
    ]
    yield f".eval_results/{folder_named(f'{dataset}-{task}')}.yaml", "".join(f"{line}\n" for line in lines if line)


def _quoted(text: str) -> str:
    # A string of JSON is one of YAML.
    return to_json(text, indent=None)
