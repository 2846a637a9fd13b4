"""The functions of `import lmgauge`: the same words and defaults as the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from lmgauge.choices import DEFAULT_SEED
from lmgauge.errors import UsageError
from lmgauge.evaluation.evaluate import evaluate as _evaluate
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.results import Evaluation, Evaluations
from lmgauge.evaluation.run_folder import RunFolders, run_settings
from lmgauge.evaluation.tables import evaluate_scores as _evaluate_scores
from lmgauge.models.distribution_columns import DistributionColumns
from lmgauge.models.mixture.model import with_reserved
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel
from lmgauge.models.registry import load_model, model_names
from lmgauge.models.sampling import sample as _sample
from lmgauge.scores import ScoreBatch, read_metadata, read_scores
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import ReservedPolicy

PathLike = str | os.PathLike[str]
Text = PathLike | Sequence[PathLike] | Corpus
Model = LanguageModel | PathLike


@overload
def evaluate(  # type: ignore[overload-overlap]  # a str is a Sequence, but of no models
    model: Model,
    text: Text,
    *,
    by_group: Literal[False] = False,
    document: str | None = ...,
    threads: int | None = ...,
    output: PathLike | None = ...,
    columns: Sequence[str] = ...,
    reserved: ReservedPolicy | None = ...,
    scoring: ScoringOptions | None = ...,
) -> Evaluation: ...
@overload
def evaluate(
    model: Model,
    text: Text,
    *,
    by_group: Literal[True],
    document: str | None = ...,
    threads: int | None = ...,
    output: PathLike | None = ...,
    columns: Sequence[str] = ...,
    reserved: ReservedPolicy | None = ...,
    scoring: ScoringOptions | None = ...,
) -> Evaluations: ...
@overload
def evaluate(
    model: Sequence[Model],
    text: Text,
    *,
    by_group: bool = ...,
    document: str | None = ...,
    threads: int | None = ...,
    output: PathLike | None = ...,
    columns: Sequence[str] = ...,
    reserved: ReservedPolicy | None = ...,
    scoring: ScoringOptions | None = ...,
) -> Evaluations: ...
def evaluate(
    model: Model | Sequence[Model],
    text: Text,
    *,
    by_group: bool = False,
    document: str | None = None,
    threads: int | None = None,
    output: PathLike | None = None,
    columns: Sequence[str] = (),
    reserved: ReservedPolicy | None = None,
    scoring: ScoringOptions | None = None,
) -> Evaluation | Evaluations:
    """Evaluates a model, or several, on a text.

    Args:
        model: a model, the path of one, or a list of either.
        text: a path, several, or a `Corpus`.
        by_group: also evaluate each group: each file, or each value of the field the corpus was told.
        document: what is independent, behind the 95 % interval: see `Corpus.from_files`; a `Corpus` says so itself.
        threads: how many; no number depends on it.
        output: folder for evaluation.json and scores.parquet (a folder a model, if several), for `compare`, `diagnose` and
            `audit` to read.
        columns: entropy, rank or both: also fill them in scores.parquet; slow.
        reserved: a `<unk>`, `<s>` or `</s>` in the text is refused, escaped (an ordinary word), or unk (`<unk>` alone);
            None leaves it to the model.
        scoring: how models that are named by a path are to score; one that is loaded has its own options.

    Returns:
        One `Evaluation` for one model without groups, otherwise `Evaluations`.

    Raises:
        InputError: the text is empty or cannot be used.
        ModelFileError: a model cannot be loaded.
        UsageError: `columns` without `output`, or unknown ones.
    """
    several = isinstance(model, Sequence) and not isinstance(model, str)
    given: list[Model] = list(model) if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    models = [loaded(m, scoring) for m in given]
    if reserved is not None:
        models = with_reserved(models, reserved)
    corpus = corpus_of(text, document=document)
    if columns and output is None:
        raise UsageError("columns fill rows of scores.parquet: name the folder it goes to with output")
    if output is None:
        results = _evaluate(models, corpus, by_group=by_group, threads=threads)
    else:
        names = model_names(given, models)
        filled = [DistributionColumns(m, columns) for m in models] if columns else []
        with RunFolders(Path(output), names) as folders:
            folders.keep_journal(models)
            results = _evaluate(
                models,
                corpus,
                names=names,
                by_group=by_group,
                threads=threads,
                spans=True,
                watch=lambda i, block, batch: folders.write(i, filled[i](batch) if filled else batch, block.ids),
            )
            chosen: dict[str, Any] = {"by_group": by_group, "reserved": reserved, "columns": columns}
            chosen["scoring"] = scoring or ScoringOptions()
            folders.finish(results, [run_settings(m, corpus.settings, **chosen) for m in models])
    return results if several or by_group else results.items[0]


def evaluate_scores(table: PathLike | Iterable[ScoreBatch], text: Text | None = None, *, name: str = "scores") -> Evaluation:
    """Evaluates a score table from anywhere; the text it is about gives bits per word, character and byte.

    Args:
        table: path of a Parquet or JSON lines file (columns `segment`, `logprob`, ...), or batches.
        text: what was scored; optional.
        name: what to call the model behind it.

    Raises:
        InputError: the table breaks its rules or is not about this text.
    """
    batches = read_scores(Path(table)) if isinstance(table, (str, os.PathLike)) else table
    origin = Origin.of_metadata(read_metadata(Path(table)) if isinstance(table, (str, os.PathLike)) else {}, name)
    return _evaluate_scores(batches, origin=origin, corpus=None if text is None else corpus_of(text))


def sample(
    model: Model,
    count: int = 1,
    *,
    seed: int = DEFAULT_SEED,
    temperature: float = 1.0,
    top_k: int | None = None,
    max_tokens: int = 200,
    prompt: str = "",
) -> Iterator[str]:
    """Draws text from a model: `count` segments, each to `</s>` or `max_tokens`; see `lmgauge.models.sampling`."""
    return _sample(
        loaded(model), count, seed=seed, temperature=temperature, top_k=top_k, max_tokens=max_tokens, prompt=prompt
    )


def loaded(model: Model, scoring: ScoringOptions | None = None) -> LanguageModel:
    """The model itself, or the one at a path, loaded with these options.

    Raises:
        UsageError: it is neither.
    """
    if not isinstance(model, (str, os.PathLike)) and not hasattr(model, "score"):
        raise UsageError(f"a model is an object with score and log_distribution, or a path, not {type(model).__name__}")
    return load_model(os.fspath(model), scoring) if isinstance(model, (str, os.PathLike)) else model


def corpus_of(text: Text, *, document: str | None = None) -> Corpus:
    """Return the corpus that a path, several, or a `Corpus` stand for; `document` says what its documents are."""
    if isinstance(text, Corpus):
        if document is not None:
            raise UsageError("document: a Corpus says itself what its documents are; give it there, or give paths")
        return text
    if not isinstance(text, (str, os.PathLike, Sequence)) or isinstance(text, bytes):
        raise UsageError(f"a text is a path, a list of paths or a Corpus, not {type(text).__name__}")
    return Corpus.from_files([text] if isinstance(text, (str, os.PathLike)) else list(text), document=document)
