"""Scores that another program wrote as a run folder, like any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import visible
from lmgauge.base.files import naming
from lmgauge.base.temporaries import scratch_folder
from lmgauge.evaluation.evaluate import evaluate_scores
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.runs import SCORES_FILE, RunFolders
from lmgauge.scores import EOS_KIND, OOV, SPELLED, ScoreBatch, ScoreWriter, read_metadata, read_scores
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.imports.log import Log
from lmgauge.scores.imports.programs import Logs
from lmgauge.scores.imports.token_alignment import rows, rows_on_text
from lmgauge.text.documents import Corpus


def import_run(logs: Logs, output: str | Path, *, corpus: Corpus | None = None, name: str = "") -> Evaluation:
    """Write a run folder with what another program scored, and return its numbers."""
    if corpus is not None and not logs.output.places:
        raise UsageError(
            f"{logs.program} does not say which part of the text a score is of: leave out --text, or score the text "
            "with lmgauge eval"
        )
    settings: dict[str, Any] = {"text": {} if corpus is None else dict(corpus.settings)}
    corpus = corpus or _own_text(logs)
    with naming(gettempdir()), scratch_folder() as folder, naming(folder.parent, [folder]):
        table, facts = folder / SCORES_FILE, EventSums()
        with ScoreWriter(table, {}) as writer:
            for batch in _batches(logs, corpus):
                facts.add(batch)
                writer.write(batch)
        origin = _origin(logs, facts, name)
        if corpus is not None:
            origin = replace(origin, documents_by=corpus.report.documents_by)
        with RunFolders(output, [origin.model]) as folders:
            result = evaluate_scores(_written(table, folders, output), origin=origin, corpus=corpus)
            result = replace(result, notes=[*_notes(logs), *result.notes], scores=output)
            settings["import"] = {
                "program": logs.program,
                "log_unit": logs.log.unit,
                "files": [str(file.path) for file in logs.files],
            } | ({"logprob": logs.log.column} if logs.log.column else {})
            folders.finish([result], [settings])
    return result


def _own_text(logs: Logs) -> Corpus | None:
    # Text as the log has it; None if it has none.
    if not logs.output.has_text:
        return None
    segments = list(replace(logs, log=Log(logs.log.unit)).segments())  # what is to be said, the rows say
    before = [segment.given or "" for segment in segments]
    return Corpus.from_strings([segment.text or "" for segment in segments], given=before if any(before) else None)


def _batches(logs: Logs, corpus: Corpus | None) -> Iterator[ScoreBatch]:
    if logs.output.parse is None:
        yield from read_scores(logs.files[0].path)
        return
    if corpus is None:
        yield from rows(logs.segments(), logs.log)
        return
    for batch, block in rows_on_text(logs.segments(), corpus, logs.log, words=logs.output.words):
        documents = block.documents
        yield batch if documents is None else batch.with_documents(documents[batch.segments - block.first])


def _written(table: Path, folders: RunFolders, output: str | Path) -> Iterator[ScoreBatch]:
    # Rows of a table of ours, each batch once it is written to the run folder.
    try:
        for batch in read_scores(table):
            folders.write(0, batch)
            yield batch
    except InputError as error:  # nobody knows the table by its name
        raise InputError(str(error).replace(str(table), f"{output}: what is to be written to it")) from error


def _origin(logs: Logs, facts: EventSums, name: str) -> Origin:
    output = logs.output
    stated = read_metadata(logs.files[0].path) if output.parse is None else {}
    if stated:
        return Origin.of_metadata(stated | ({"model": name} if name else {}), logs.files[0].path.stem)
    policy = ContextPolicy(
        unit="sentence" if output.words and facts.events[EOS_KIND] else "unknown",
        first="unscored" if logs.log.unscored else "bos",
        end="eos" if facts.events[EOS_KIND] else "none",
    )
    unseen = (
        "closed" if facts.zeros[OOV] else "unk" if facts.events[OOV] else "spelled" if facts.events[SPELLED] else "unknown"
    )
    return Origin(
        name or logs.log.model or logs.files[0].path.stem,
        unit=output.unit,
        context=str(policy),
        oov_policy=unseen,
        lossy_segments=facts.lossy_segments,
    )


def _notes(logs: Logs) -> list[str]:
    source = f"the column {visible(logs.log.column)!r}" if logs.log.column else logs.program
    return [f"imported from {source}, logarithms in {logs.log.unit}", *logs.log.notes()]
