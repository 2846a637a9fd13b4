"""`lmgauge.evaluate` and `lmgauge.evaluate_scores`: how well models predict a text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from lmgauge.api.types import PATHS, Model, Models, PathLike, Text
from lmgauge.declaration import chosen, verb
from lmgauge.errors import UsageError
from lmgauge.evaluation.options import Outputs
from lmgauge.models.network.options import ScoringOptions
from lmgauge.option_numbers import Count
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.evaluation.results import Evaluation, Evaluations
    from lmgauge.scores import ScoreBatch


@overload
def evaluate(model: Model, text: Text | None = ..., *, by_group: Literal[False] = False, **options: Any) -> Evaluation: ...
@overload
def evaluate(model: Model, text: Text | None = ..., *, by_group: Literal[True], **options: Any) -> Evaluations: ...
@overload
def evaluate(
    model: Sequence[Model] | Mapping[str, Model], text: Text | None = ..., *, by_group: bool = ..., **options: Any
) -> Evaluations: ...
@verb
def evaluate(
    model: Models,
    text: Text | None = None,
    *,
    texts: Iterable[str] | str | None = None,
    by_group: bool = False,
    threads: Count | None = None,
    outputs: Outputs = Outputs(),
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Evaluation | Evaluations:
    """Evaluate a model, or several, on a text: `lmgauge eval`.

    One table holds all models. A model is a folder, an ARPA, KenLM or GGUF file, a name on a hub, or the address of a
    server.

    Args:
        model: a model or its path; several share one table, in Python as a list, or a dict that names them.
        text: files, globs, or a `Corpus`; - is standard input.
        texts: strings in place of files, each a segment: one, a list, a generator, a column of a data frame.
        by_group: also evaluate each group; each file, or each value of the field that `group` names.
        threads: threads to use; all cores if not given. No number depends on it but for the last bits of networks.
        outputs: what to write: a run folder, rows of segments, tokens and words, columns such as entropy and rank.
        reading: how files are read; a `Corpus` says so itself.
        scoring: how models score (context, device, reserved tokens ...); a network in memory takes what needs no loading.
        fields: those of `outputs`, `reading` and `scoring` by name, as in `output="run"`, `field="sentence"`, `end="eos"`.

    Returns:
        One `Evaluation` for one model without groups, otherwise `Evaluations`: for each model the whole text, then its
        groups. Cross-entropy is in nats per event, the other figures carry their unit in their name.

    Raises:
        InputError: the text is empty or cannot be used.
        ModelFileError: a model cannot be loaded.
        UsageError: neither or both of `text` and `texts`; an output that would replace an input; unknown columns.

    Shell:
        lmgauge eval -m kn5/ -m laplace2/ test.txt
        lmgauge eval -m kn5/ test.txt --json | jq '.[0].perplexity'
        lmgauge eval -m kn5/ a.txt b.txt --by-group -o run/

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("laplace", Corpus.from_strings(["a b", "a"]), order=2)
        >>> round(evaluate(model, texts=["a b", "b"]).perplexity, 4)
        2.9542
    """
    from lmgauge.api.inputs import followed, listed, named_models, one_text
    from lmgauge.evaluation.output_files import evaluated

    if isinstance(outputs.output, Outputs):
        outputs = outputs.output
    if reading.keep and not outputs.wanted:
        raise UsageError("keep is for rows: name where they go (--per-word, --per-segment, --per-token or -o)")
    corpus = one_text(text, texts, reading)
    models_named = listed(model)
    paths = [os.fspath(path) for path in models_named if isinstance(path, PATHS)]
    outputs.refuse_replacing([*paths, *(source.path for source in corpus.sources)], len(models_named))
    models, names = named_models(model, scoring)
    corpus = followed(models, corpus, scoring, by_group=by_group)
    words = None
    if outputs.per_word is not None:
        from lmgauge.api.words import word_settings

        words = word_settings(outputs.words, outputs.regions, outputs.train or None, corpus.kept)
    results = evaluated(models, names, corpus, outputs, words, by_group=by_group, threads=threads, scoring=scoring)
    several = isinstance(model, (Sequence, Mapping)) and not isinstance(model, str)
    return results if several or by_group else results.items[0]


@verb
def evaluate_scores(
    scores: PathLike | Iterable[ScoreBatch],
    text: Text | None = None,
    *,
    name: str = "",
    reading: ReadingOptions = ReadingOptions(),
    **fields: Any,
) -> Evaluation:
    """Evaluate a score table from anywhere: `lmgauge eval --scores`.

    Args:
        scores: score table in place of models; Parquet or JSONL with columns segment, logprob, ..., or a run folder. The
            text, if named, is what it scored.
        text: what was scored: gives bits per word, character and byte; of a run folder, where it remembers it.
        name: what to call the model behind it; the table's own name if empty.
        reading: how the text is read.
        fields: those of `reading`, by name.

    Raises:
        InputError: the table breaks its rules or is not about this text; a run folder was changed.
        UsageError: `scores` is neither a path nor batches; how to read a text is said, and no text is given.

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["a b", "a"])
        >>> evaluate_scores(train("laplace", text, order=2).score(text), text, name="mine")
        <Evaluation: mine: perplexity 2.4595, 1.6230 bits per byte>
    """
    from lmgauge.api.inputs import opened, text_read
    from lmgauge.evaluation.evaluate import evaluate_scores as run_scores
    from lmgauge.evaluation.origin import Origin
    from lmgauge.evaluation.runs import remembered

    for field in chosen(reading) if text is not None else ():
        if field in ("group", "id"):
            raise UsageError(f"{field} is for models; a score table gives a row for the whole text only")
    corpus = text_read(text, reading)
    if not isinstance(scores, PATHS):
        if not isinstance(scores, Iterable):
            raise UsageError(f"a score table is a path or batches of scores, not {type(scores).__name__}")
        return run_scores(scores, origin=Origin.of_metadata({}, name or "scores"), corpus=corpus)
    run = opened(scores)
    if corpus is None and run.evaluation is not None:
        corpus = remembered(run)
    origin = run.origin if run.evaluation is not None or not name else Origin.of_metadata({}, name)
    return run_scores(run.batches(), origin=origin, corpus=corpus)
