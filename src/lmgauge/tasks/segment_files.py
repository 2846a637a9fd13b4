"""Scores of single segments, a row each: TSV with a column a system, or JSON lines with the parts."""

from __future__ import annotations

import json
import sys

from lmgauge.json_text import plain
from lmgauge.readable import for_output
from lmgauge.tasks.metrics.protocol import TaskMetric
from lmgauge.tasks.scoring import SegmentScores


class SegmentPrinter:
    """Writes blocks of segment scores to standard output."""

    def __init__(self, metric: TaskMetric, *, as_json: bool, width: int) -> None:
        """Begin.

        Args:
            metric: that gave the scores.
            as_json: a JSON object for each segment and system, in full precision, instead of TSV.
            width: decimals of TSV.
        """
        self._metric, self._json, self._width = metric, as_json, width
        self._begun = False

    def write(self, block: SegmentScores) -> None:
        """Write the rows of a block.

        Args:
            block: scores of consecutive segments.
        """
        lines = self._objects(block) if self._json else self._rows(block)
        sys.stdout.write(for_output("".join(line + "\n" for line in lines)))

    def _rows(self, block: SegmentScores) -> list[str]:
        columns = [[str(i) for i in range(block.first + 1, block.first + 1 + len(block.references))]]
        if block.groups is not None:
            columns.append([name.replace("\t", " ") for name in block.groups])
        scale = 100.0 if self._metric.percent else 1.0
        columns.extend([f"{scale * value:.{self._width}f}" for value in scores.tolist()] for scores in block.scores)
        rows = ["\t".join(row) for row in zip(*columns, strict=True)]
        if not self._begun:
            self._begun = True
            head = ["segment", *(["group"] if block.groups is not None else []), *block.names]
            rows.insert(0, "\t".join(head))
        return rows

    def _objects(self, block: SegmentScores) -> list[str]:
        lines = []
        for i in range(len(block.references)):
            group = {} if block.groups is None else {"group": block.groups[i]}
            for name, rows in zip(block.names, block.statistics, strict=True):
                score = self._metric.score(rows[i], int(block.references[i])).to_dict()
                lines.append(
                    json.dumps(plain({"segment": block.first + i + 1, **group, "system": name, **score}), ensure_ascii=False)
                )
        return lines
