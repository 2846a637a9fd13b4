"""Scores that another program wrote as a run folder, like any other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import zip_longest
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


def import_runs(each: Sequence[Logs], output: str | Path, corpus: Corpus | None = None, name: str = "") -> list[Evaluation]:
    """Write a run folder with what another program scored, of several models one each in it; return their numbers."""
    # each: of each model what the program wrote; all are read in step, and no run appears unless all do.
    logs, several = each[0], range(len(each))
    if corpus is not None and not logs.output.places:
        raise UsageError(
            f"{logs.program} does not say which part of the text a score is of: leave out --text, or score the text "
            "with lmgauge eval"
        )
    settings: dict[str, Any] = {"text": {} if corpus is None else dict(corpus.settings)}
    corpus = corpus or _own_text(logs)
    with naming(gettempdir()), scratch_folder() as folder, naming(folder.parent, [folder]):
        tables, facts = [folder / f"{i}-{SCORES_FILE}" for i in several], [EventSums() for _ in several]
        with ExitStack() as writing:
            writers = [writing.enter_context(ScoreWriter(table, {})) for table in tables]
            for batches in zip_longest(*(_batches(logs, corpus) for logs in each)):
                for i, batch in enumerate(batches):
                    if batch is not None:
                        facts[i].add(batch)
                        writers[i].write(batch)
        origins = [_origin(logs, sums, name) for logs, sums in zip(each, facts, strict=True)]
        if corpus is not None:
            origins = [replace(origin, documents_by=corpus.report.documents_by) for origin in origins]
        with RunFolders(output, [origin.model for origin in origins]) as folders:
            results = [
                evaluate_scores(_written(tables[i], folders, i, target), origin=origins[i], corpus=corpus)
                for i, target in enumerate(folders.targets)
            ]
            results = [
                replace(result, notes=[*_notes(logs), *result.notes], scores=str(target))
                for logs, result, target in zip(each, results, folders.targets, strict=True)
            ]
            folders.finish(results, [settings | {"import": _settings(logs)} for logs in each])
    return results


def _settings(logs: Logs) -> dict[str, Any]:
    files = [str(file.path) for file in logs.files]
    chosen = {"program": logs.program, "log_unit": logs.log.unit, "files": files}
    return chosen | ({"logprob": logs.log.column} if logs.log.column else {})


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


def _written(table: Path, folders: RunFolders, number: int, output: Path) -> Iterator[ScoreBatch]:
    # Rows of a table of ours, each batch once it is written to the run folder.
    try:
        for batch in read_scores(table):
            folders.write(number, batch)
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
