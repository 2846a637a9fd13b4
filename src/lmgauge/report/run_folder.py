"""An evaluation is a folder (DESIGN.md, section 6): `evaluation.json` and `scores.parquet`."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmgauge.evaluation.results import Evaluation
from lmgauge.report.json_text import to_json
from lmgauge.version import __version__

EVALUATION_FILE = "evaluation.json"
SCORES_FILE = "scores.parquet"


def environment() -> dict[str, str]:
    """What the numbers were made with."""
    import numpy

    return {
        "lmgauge": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "platform": platform.platform(),
        "byte_order": sys.byteorder,
    }


def is_run_folder(path: Path) -> bool:
    """Whether a folder is an evaluation, and may be replaced by one."""
    return {file.name for file in path.iterdir()} == {EVALUATION_FILE, SCORES_FILE}


def write_evaluation(folder: Path, results: Sequence[Evaluation], settings: Mapping[str, Any]) -> None:
    """Writes `evaluation.json`: the whole first, then groups."""
    whole, *groups = results
    content = {
        "evaluation": whole.to_dict(),
        "groups": [group.to_dict() for group in groups],
        "settings": dict(settings),
        "environment": environment(),
    }
    (folder / EVALUATION_FILE).write_text(to_json(content) + "\n", encoding="utf-8")
