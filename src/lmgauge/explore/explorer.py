"""What is looked at: one or two runs, a model for what is typed, or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import visible_on_page
from lmgauge.base.temporaries import scratch_folder
from lmgauge.evaluation.runs import Run, open_run, with_distinct_names
from lmgauge.explore.index import Index
from lmgauge.explore.requests import Selections, column_names

if TYPE_CHECKING:
    from lmgauge.explore.passages import Playground
    from lmgauge.text.documents import Corpus

_FIGURES = (
    *("perplexity", "interval", "bits_per_byte", "bits_per_byte_is_bound", "events", "segments", "bytes", "oov"),
    *("oov_policy", "zero_probability_events", "independence"),
)


def open_runs(paths: Sequence[Path]) -> list[Run]:
    """Open runs to be laid side by side."""
    if len(paths) > 2:
        raise UsageError(f"{len(paths)} runs are named; one or two can be looked at side by side")
    runs = [open_run(path, hash_scores=False) for path in paths]
    if len({run.text_sha256 for run in runs if run.text_sha256}) > 1:
        raise InputError(
            f"{runs[0].path} and {runs[1].path} scored different texts; only runs of one text are laid side by side"
        )
    return with_distinct_names(runs)


class Explorer:
    """What a server shows; close it in the end."""

    def __init__(
        self, runs: Sequence[Run], corpus: Corpus | None, playground: Playground | None, make_report: Callable[[], str]
    ) -> None:
        if not runs and playground is None:
            raise UsageError("there is nothing to look at: name a run (lmgauge eval ... -o RUN), or a model with -m")
        self.playground = playground
        # Of every slice of the text, with its numbers; made when first asked for.
        self.report: Callable[[], str] = cache(make_report)
        parts: Sequence[Run | Playground | None] = runs or [playground]
        self.title = " and ".join(visible_on_page(part.name) for part in parts if part is not None)
        self.index: Index | None = None
        with ExitStack() as stack:
            if runs:
                self.index = Index(runs, corpus, stack.enter_context(scratch_folder()))
                self.selections = Selections(self.index)
                self.index.start()
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Stop reading, and remove the index."""
        if self.index is not None:
            self.index.close()
        self._stack.close()

    def state(self) -> dict[str, Any]:
        """Return what there is to look at, as plain values whose strings are safe to show."""
        typed = None if self.playground is None else visible_on_page(self.playground.name)
        if (index := self.index) is None:
            return {"runs": [], "typed": typed}
        return {
            "runs": [_of_run(run, reader.columns) for run, reader in zip(index.runs, index.readers, strict=True)],
            "typed": typed,
            "columns": column_names(len(index.runs)),
            "groups": [visible_on_page(name) for name in index.groups] if len(index.groups) > 1 else [],
            "has_text": index.corpus is not None,
            "has_ids": len(index.ids) > 0,
            "segments": index.size,
            "is_complete": index.is_complete,
            "problem": visible_on_page(index.problem or index.seal),
        }


def _of_run(run: Run, columns: list[str]) -> dict[str, Any]:
    known = run.evaluation or {}
    return {
        "name": visible_on_page(run.name),
        "signature": visible_on_page(str(known.get("signature", ""))),
        "figures": {name: known.get(name) for name in _FIGURES},
        "has_kl": "kl" in columns,
    }
