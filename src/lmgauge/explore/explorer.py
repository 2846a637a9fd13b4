"""What is looked at: one or two runs, a model for what is typed, a training that is under way; any of the three."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.run_folder import EVALUATION_FILE
from lmgauge.evaluation.runs import Run, open_run, with_distinct_names
from lmgauge.explore.index import Index
from lmgauge.explore.live import Follower, epochs_of, progress_file_of, runs_of
from lmgauge.explore.search import Searches
from lmgauge.explore.selection import Selections, column_names
from lmgauge.readable import visible_on_page
from lmgauge.temporaries import scratch_folder
from lmgauge.version import __version__

if TYPE_CHECKING:
    from lmgauge.explore.typed import Typed
    from lmgauge.text.documents import Corpus

CorpusOf = Callable[[Sequence[Run]], "Corpus | None"]
ReportOf = Callable[[Sequence[Run]], str]
_MOST_RUNS = 2
_FIGURES = (
    *("perplexity", "interval", "bits_per_byte", "bits_per_byte_is_bound", "events", "segments", "bytes", "oov"),
    *("oov_policy", "zero_probability_events", "independence", "unit", "context"),
)


class Explorer:
    """What a server shows; close it in the end."""

    def __init__(
        self, paths: Sequence[Path], corpus_of: CorpusOf, typed: Typed | None = None, report_of: ReportOf | None = None
    ) -> None:
        if not paths and typed is None:
            raise UsageError("there is nothing to look at: name a run (lmgauge eval ... -o RUN), or a model with -m")
        if len(paths) > _MOST_RUNS:
            raise UsageError(f"{len(paths)} runs are named; one or two can be looked at side by side")
        self.typed, self._corpus_of, self._report_of = typed, corpus_of, report_of
        self._report: tuple[int, str] | None = None
        self._report_lock = threading.Lock()
        self.follower: Follower | None = None
        self.history: list[dict[str, int | float]] = []
        self._followed: Path | None = None
        self._stamp: list[tuple[str, int]] = []
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._folder = self._stack.enter_context(scratch_folder())
        self._opened = 0
        self.index: Index | None = None
        self.selections: Selections | None = None
        try:
            self._find(paths)
        except BaseException:
            self._stack.close()
            raise

    def _find(self, paths: Sequence[Path]) -> None:
        runs = [path for path in paths if not path.is_dir() or (path / EVALUATION_FILE).exists()]
        others = [path for path in paths if path not in runs]
        if others and len(paths) > 1:
            raise UsageError(f"{others[0]}: is not a run; a training is looked at alone")
        for path in others:
            progress = progress_file_of(path)
            self.history = [] if progress else epochs_of(path)
            if progress is None and not self.history:
                raise InputError(
                    f"{path}: is neither a run (lmgauge eval ... -o RUN) nor the folder of a training that is under way"
                )
            self._followed = path
            self.follower = None if progress is None else Follower(progress)
            runs = self._kept_runs()
        if not runs and paths and not others:  # a path that is not there, unless a training has begun to write there
            raise InputError(f"{paths[0]}: no such run")
        waiting = [path for path in runs if not path.exists() and progress_file_of(path) is not None]
        if waiting and len(paths) == 1:
            self._followed, self.follower, runs = waiting[0], Follower(progress_file_of(waiting[0]) or Path()), []
        if runs:
            self._open(runs)

    def _kept_runs(self) -> list[Path]:
        kept_runs = [] if self._followed is None else runs_of(self._followed)[:1]
        try:
            self._stamp = [(str(run), (run / EVALUATION_FILE).stat().st_mtime_ns) for run in kept_runs]
        except OSError:  # just being replaced
            return []
        return kept_runs

    def _open(self, paths: Sequence[Path]) -> None:
        runs = [open_run(path, hash_scores=False) for path in paths]
        texts = {run.text_sha256 for run in runs if run.text_sha256}
        if len(texts) > 1:
            raise InputError(
                f"{runs[0].path} and {runs[1].path} scored different texts; only runs of one text are laid side by side"
            )
        if len(runs) > 1:
            runs = with_distinct_names(runs)
        folder = self._folder / f"index-{self._opened}"
        folder.mkdir()
        self._opened += 1
        index = Index(runs, self._corpus_of(runs), folder)
        self.index, self.selections = index, Selections(index, Searches(index, folder))
        index.start()

    def refresh(self) -> None:
        """Open again the run of a training that is followed, where a later evaluation has taken its place."""
        if self._followed is None:
            return
        with self._lock:
            before = self._stamp
            paths = self._kept_runs()
            if not paths or self._stamp == before:
                return
            old = self.index, self.selections
            try:
                self._open(paths)
            except InputError:  # being replaced right now: the next time
                self._stamp = before
                return
            for part in old:
                if part is not None:
                    part.close()

    def answering(self) -> AbstractContextManager[None]:
        """Hold the reading of the runs back while the block answers a request."""
        return nullcontext() if self.index is None else self.index.answering()

    def report(self) -> str:
        """Return the report page of the runs: every slice of the text with its numbers; made when first asked for."""
        with self._report_lock:
            if self.index is None or self._report_of is None:
                raise InputError("there is no run to report on yet")
            if self._report is None or self._report[0] != self._opened:
                self._report = self._opened, self._report_of(self.index.runs)
            return self._report[1]

    def close(self) -> None:
        """Stop reading, and remove the index."""
        for part in (self.index, self.selections):
            if part is not None:
                part.close()
        self._stack.close()

    def state(self) -> dict[str, Any]:
        """Return what there is to look at, as plain values whose strings are safe to show."""
        self.refresh()
        index = self.index
        state: dict[str, Any] = {
            "version": __version__,
            "runs": [],
            "live": self.follower is not None or bool(self.history),
            "typed": None,
            "opened": self._opened,
        }
        if self.typed is not None:
            state["typed"] = {"name": visible_on_page(self.typed.name), "no_tops": visible_on_page(self.typed.no_tops)}
        if index is None:
            return state
        return state | {
            "runs": [_of_run(run, reader.columns) for run, reader in zip(index.runs, index.readers, strict=True)],
            "columns": column_names(len(index.runs)),
            "groups": [visible_on_page(name) for name in index.groups] if len(index.groups) > 1 else [],
            "has_text": index.has_text,
            "has_ids": index.has_ids,
            "index": {
                "segments": index.size,
                "share": index.share,
                "is_complete": index.is_complete,
                "problem": visible_on_page(index.problem),
                "seal": visible_on_page(index.seal),
            },
        }

    @property
    def title(self) -> str:
        """Return what the page is called."""
        if self.index is not None:
            return " and ".join(visible_on_page(run.name) for run in self.index.runs)
        if self._followed is not None:
            return visible_on_page(self._followed.name)
        return "" if self.typed is None else visible_on_page(self.typed.name)

    def live(self) -> dict[str, Any]:
        """Return the curves of the training that is followed, or of one that is finished."""
        if self.follower is not None:
            return self.follower.answer()
        curves: dict[str, dict[str, list[float]]] = {}
        for entry in self.history:
            for name, value in entry.items():
                if name != "epoch":
                    curve = curves.setdefault(name, {"x": [], "y": []})
                    curve["x"].append(entry["epoch"])
                    curve["y"].append(value)
        return {"curves": curves, "updated": 0.0, "is_gone": False}


def _of_run(run: Run, columns: list[str]) -> dict[str, Any]:
    figures = {} if run.evaluation is None else {name: run.evaluation.get(name) for name in _FIGURES}
    signature = "" if run.evaluation is None else str(run.evaluation.get("signature", ""))
    named = {"name": visible_on_page(run.name), "path": visible_on_page(str(run.path))}
    return named | {"signature": visible_on_page(signature), "figures": figures, "has_kl": "kl" in columns}
