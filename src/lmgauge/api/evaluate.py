"""`lmgauge.evaluate` and `lmgauge.evaluate_scores`: how well models predict a text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, overload

from lmgauge.api.inputs import (
    PATHS,
    Model,
    Models,
    PathLike,
    Text,
    corpus_of,
    followed,
    listed,
    named_models,
    one_text,
    opened,
)
from lmgauge.api.output_files import OutputFiles
from lmgauge.api.outputs import Outputs
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.evaluation.evaluate import Watch
from lmgauge.evaluation.evaluate import evaluate as _evaluate
from lmgauge.evaluation.evaluate import evaluate_scores as _evaluate_scores
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.results import Evaluation, Evaluations
from lmgauge.evaluation.runs import remembered
from lmgauge.evaluation.tally import Tally
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel
from lmgauge.progress import say_progress
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.reading_options import ReadingOptions
from lmgauge.text.segments import Segments


@overload
def evaluate(model: Model, text: Text | None = ..., *, by_group: Literal[False] = False, **options: Any) -> Evaluation: ...
@overload
def evaluate(model: Model, text: Text | None = ..., *, by_group: Literal[True], **options: Any) -> Evaluations: ...
@overload
def evaluate(
    model: Sequence[Model] | Mapping[str, Model],
    text: Text | None = ...,
    *,
    by_group: bool = ...,
    **options: Any,
) -> Evaluations: ...
@verb
def evaluate(
    model: Models,
    text: Text | None = None,
    *,
    texts: Iterable[str] | str | None = None,
    by_group: bool = False,
    threads: int | None = None,
    output: PathLike | Outputs | None = None,
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Evaluation | Evaluations:
    """Evaluate a model, or several, on a text: `lmgauge eval`.

    Args:
        model: a model, the path of one, a list of either, or a dict that names them.
        text: files: a path, several, or a `Corpus`.
        texts: strings in place of files, each a segment: one, a list, a generator, a column of a data frame.
        by_group: also evaluate each group: each file, or each value of the field named as group in the `Corpus`.
        threads: how many; no number depends on it.
        output: a folder for evaluation.json and scores.parquet, which `compare`, `diagnose` and `audit` read; or `Outputs`
            for rows of segments, tokens and words, and columns such as entropy, rank and the most probable tokens.
        reading: how files are read; a `Corpus` says so itself.
        scoring: how models score (context, device, reserved tokens ...); a network in memory takes what needs no loading.
        fields: those of both by name, as in `field="sentence"` or `end="eos"`.

    Returns:
        One `Evaluation` for one model without groups, otherwise `Evaluations`: for each model the whole text, then its
        groups. Cross-entropy is in nats per event, the other figures carry their unit in their name.

    Raises:
        InputError: the text is empty or cannot be used.
        ModelFileError: a model cannot be loaded.
        UsageError: neither or both of `text` and `texts`; an output that would replace an input; unknown columns.

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("laplace", Corpus.from_strings(["a b", "a"]), order=2)
        >>> round(evaluate(model, texts=["a b", "b"]).perplexity, 4)
        2.9542
    """
    outputs = output if isinstance(output, Outputs) else Outputs(output)
    corpus = one_text(text, texts, reading)
    models_named = listed(model)
    paths = [os.fspath(path) for path in models_named if isinstance(path, PATHS)]
    outputs.refuse_replacing([*paths, *(source.path for source in corpus.sources)], len(models_named))
    models, names = named_models(model, scoring)
    corpus = followed(models, corpus, scoring, by_group=by_group)
    results = evaluated(models, names, corpus, outputs, by_group=by_group, threads=threads, scoring=scoring)
    several = isinstance(model, (Sequence, Mapping)) and not isinstance(model, str)
    return results if several or by_group else results.items[0]


def evaluated(
    models: Sequence[LanguageModel],
    names: Sequence[str],
    corpus: Corpus,
    outputs: Outputs,
    *,
    by_group: bool = False,
    threads: int | None = None,
    scoring: ScoringOptions | None = None,
    watch: Watch | None = None,
) -> Evaluations:
    """Return the evaluations of loaded models, and write the files asked for.

    Args:
        models: loaded.
        names: what to call them.
        corpus: the text, as their protocol scores it.
        outputs: what to write.
        by_group: also evaluate each group.
        threads: how many.
        scoring: how models were loaded.
        watch: called with the model's index, each block of the text, its rows and their sums.

    Raises:
        InputError: the text is empty or cannot be used.
        OutputError: a file cannot be written.
    """
    with OutputFiles(outputs, models, names, corpus) as files:
        watches = [*([files.write] if outputs.wanted else []), *([watch] if watch is not None else [])]

        def watched(index: int, block: Segments, batch: ScoreBatch, tally: Tally) -> None:
            for one in watches:
                one(index, block, batch, tally)

        results = _evaluate(
            files.scored_models,
            corpus,
            origins=[Origin.of_model(one, name) for one, name in zip(models, names, strict=True)],
            by_group=by_group,
            threads=threads,
            spans=outputs.wanted,
            watch=watched if watches else None,
            progress=lambda done: say_progress(f"scored {done / 1e6:,.0f} MB"),
        )
        return files.finish(results, by_group=by_group, scoring=scoring or ScoringOptions())


def evaluate_scores(table: PathLike | Iterable[ScoreBatch], text: Text | None = None, *, name: str = "") -> Evaluation:
    """Evaluate a score table from anywhere: `lmgauge eval --scores`.

    Args:
        table: a Parquet or JSON lines file (columns `segment`, `logprob`, ...), a run folder, or batches.
        text: what was scored: gives bits per word, character and byte; of a run folder, where it remembers it.
        name: what to call the model behind it; the table's own name if empty.

    Raises:
        InputError: the table breaks its rules or is not about this text; a run folder was changed.
        UsageError: `table` is neither a path nor batches.

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["a b", "a"])
        >>> evaluate_scores(train("laplace", text, order=2).score(text), text, name="mine")
        <Evaluation: mine: perplexity 2.4595, 1.6230 bits per byte>
    """
    corpus = None if text is None else corpus_of(text)
    if not isinstance(table, PATHS):
        if not isinstance(table, Iterable):
            raise UsageError(f"a score table is a path or batches of scores, not {type(table).__name__}")
        return _evaluate_scores(table, origin=Origin.of_metadata({}, name or "scores"), corpus=corpus)
    run = opened(table)
    if corpus is None and run.evaluation is not None:
        corpus = remembered(run)
    origin = run.origin if run.evaluation is not None or not name else Origin.of_metadata({}, name)
    return _evaluate_scores(run.batches(), origin=origin, corpus=corpus)
