"""`lmgauge.evaluate` and its kin: how well models predict a text, or a sentence, by our rules or by those of others."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import tee
from typing import TYPE_CHECKING, Any, Literal, overload

from lmgauge.api import inputs
from lmgauge.api.inputs import PATHS, Model, Models, PathLike, Text
from lmgauge.base.choices import WORD_UNITS, Tracker
from lmgauge.base.declaration import chosen, verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Count
from lmgauge.base.progress import say_progress
from lmgauge.settings import Outputs, ReadingOptions, ScoringOptions

if TYPE_CHECKING:
    from pandas import DataFrame

    from lmgauge import Corpus, LanguageModel, ScoreBatch
    from lmgauge.evaluation.runs import Run
    from lmgauge.evaluation.words.rows import WordSettings
    from lmgauge.results import Evaluation, Evaluations, ScoredText, ScoredTexts, WordSurprisals

RegionRows = PathLike | Iterable[Mapping[str, Any]]


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
    also_raw: bool = False,
    track: Tracker | None = None,
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
        also_raw: conversations: also score the contents alone, as text, by each model with a chat template.
        track: log the run folders with Trackio or wandb: figures, ends of the interval, signature, digest of the rows.
        threads: threads to use; all cores if not given. Does not change results (networks: last digits only).
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
    from lmgauge.api.export import log_runs, tracker_named
    from lmgauge.evaluation.output_files import evaluated
    from lmgauge.evaluation.results import Evaluations
    from lmgauge.evaluation.runs import run_targets

    if isinstance(outputs.output, Outputs):
        outputs = outputs.output
    if reading.keep and not outputs.wanted:
        raise UsageError("keep is for rows: name where they go (--per-word, --per-segment, --per-token or -o)")
    if track is not None and outputs.output is None:
        raise UsageError("track logs what a run folder holds: name one (-o)")
    tracker = None if track is None else tracker_named(track)
    corpus = inputs.one_text(text, texts, reading)
    models_named = inputs.listed(model)
    paths = [os.fspath(path) for path in models_named if isinstance(path, PATHS)]
    outputs.refuse_replacing([*paths, *(source.path for source in corpus.sources)], len(models_named))
    models, names = inputs.named_models(model, scoring, corpus)
    corpus = inputs.followed(models, corpus, scoring, by_group=by_group)
    if also_raw:
        if corpus.roles is None:
            raise UsageError("also-raw is about turns of conversations: name their field (--chat), or --as-turn")
        each = zip(models_named, models, names, strict=True)
        rows = [
            row
            for given, one, name in each
            for row in ((given, one, name), *([] if one.raw is None else [(one.raw, one.raw, f"{name} (raw)")]))
        ]
        models_named, models, names = (list(column) for column in zip(*rows, strict=True))
    asked = outputs.words, outputs.regions, outputs.train or None
    words = None if outputs.per_word is None else word_settings(*asked, corpus.kept)
    results = evaluated(models, names, corpus, outputs, words, by_group=by_group, threads=threads, scoring=scoring)
    if corpus.rereadable or outputs.output is not None:
        folders = [None] * len(names) if outputs.output is None else run_targets(os.fspath(outputs.output), names)
        scores = {
            name: folder or _scoring_again(given, one, name, corpus, scoring)
            for given, one, name, folder in zip(models_named, models, names, folders, strict=True)
        }
        results = Evaluations(tuple(replace(one, scores=scores[one.model]) for one in results))
        if tracker is not None:
            log_runs(tracker, list(filter(None, folders)))
    several = isinstance(model, (Sequence, Mapping)) and not isinstance(model, str)
    return results if several or by_group or also_raw else results.items[0]


def _scoring_again(
    given: Model, model: LanguageModel, name: str, corpus: Corpus, scoring: ScoringOptions
) -> Callable[[PathLike], Run]:
    # What writes the run folder of an evaluation that wrote none.
    # A network goes from memory when the program lets go of it, whoever keeps the figures.
    held: Any = weakref.ref(given) if model.tokens is not None and not isinstance(given, PATHS) else lambda: given

    framed = None if model.raw is None else corpus

    def scored_again(folder: PathLike) -> Run:
        if (again := held()) is None:
            raise UsageError(f"the network of {name} is not in memory any more: {inputs.KEEP_SCORES}")
        return inputs.scored(inputs.loaded(again, scoring, framed), name, corpus, folder, scoring)

    return scored_again


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
        scores: score table instead of models; with columns segment, logprob, ..., in any format of records; or a run
            folder. The text, if named, is what it scored.
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
    from lmgauge.evaluation.evaluate import evaluate_scores as run_scores
    from lmgauge.evaluation.origin import Origin
    from lmgauge.evaluation.runs import remembered

    for field in chosen(reading) if text is not None else ():
        if field in ("group", "id"):
            raise UsageError(f"{field} is for models; a score table gives a row for the whole text only")
    corpus = inputs.text_read(text, reading)
    if not isinstance(scores, PATHS):
        if not isinstance(scores, Iterable):
            raise UsageError(f"a score table is a path or batches of scores, not {type(scores).__name__}")
        return run_scores(scores, origin=Origin.of_metadata({}, name or "scores"), corpus=corpus)
    run = inputs.opened(scores)
    if corpus is None and run.evaluation is not None:
        corpus = remembered(run)
    origin = run.origin if run.evaluation is not None or not name else Origin.of_metadata({}, name)
    return run_scores(run.batches(), origin=origin, corpus=corpus)


def perplexity(model: Model, texts: Iterable[str] | str) -> float:
    """Return the perplexity of strings: exp of the mean cross-entropy over all events of all strings together.

    This is the corpus figure, not the mean over strings. Every token is an event, and so is the end of each string (`</s>`)
    where the model predicts ends; an unknown word counts as `<unk>`. `evaluate(model, texts=...)` has the other figures:
    without ends, without unknown words, the mean over strings, bits per byte. Source: Jelinek, Mercer, Bahl & Baker (1977),
    "Perplexity: a measure of the difficulty of speech recognition tasks".

    Args:
        model: a model, or the path of one.
        texts: strings: one, a list, a generator, a column of a data frame; each is a segment of its own.

    Returns:
        The perplexity; inf where an event has probability zero.

    Raises:
        InputError: there is nothing to score, or a string cannot be used as text.
        ModelFileError: the model cannot be loaded.
        UsageError: something else than a model or strings, or strings that are the names of files.

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("laplace", Corpus.from_strings(["a b", "a"]), order=2)
        >>> round(perplexity(model, ["a b", "b"]), 4)
        2.9542
    """
    return evaluate(model, texts=texts).perplexity


@overload
def score_text(model: Model, text: str) -> ScoredText: ...  # type: ignore[overload-overlap]  # a str is an Iterable
@overload
def score_text(model: Model, text: Iterable[str]) -> ScoredTexts: ...
@overload
def score_text(model: Model, *, messages: Sequence[Mapping[str, Any]], roles: str | Sequence[str] = ...) -> ScoredTexts: ...
def score_text(
    model: Model,
    text: str | Iterable[str] | None = None,
    *,
    messages: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
    roles: str | Sequence[str] = ("assistant",),
) -> ScoredText | ScoredTexts:
    """Score one string or several, or the turns of a conversation, token by token; see `ScoredText`.

    Each string is one segment; a newline within it is a character like any other. So is the content of each turn.

    Args:
        model: a model, or the path of one.
        text: a string, or strings: a list, a generator, a column of a data frame.
        messages: a conversation in place of strings, as in `[{"role": "user", "content": "Hi"}, ...]`; or a record of
            "messages" and "tools".
        roles: whose turns of it are scored.

    Returns:
        Tokens with natural logs, byte spans and totals; for several strings a list that becomes a data frame.

    Raises:
        InputError: a string or a message cannot be used as text.
        ModelFileError: the model cannot be loaded.
        UsageError: something else than a model or strings, or strings that are the names of files; or text and messages.

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("laplace", Corpus.from_strings(["a b", "a"]), order=2)
        >>> [round(item.perplexity, 4) for item in score_text(model, ["a b", "b"])]
        [2.4662, 3.873]
    """
    from lmgauge.models.scored_text import ScoredTexts, score_segments
    from lmgauge.models.scored_text import score_text as _score_text
    from lmgauge.text.documents import Corpus

    if messages is not None and text is None:
        turns = Corpus.from_conversations([messages], roles=roles)
        return ScoredTexts(tuple(score_segments(inputs.loaded(model, None, turns), turns)))
    if text is None or messages is not None:
        raise UsageError('give text or messages, as in score_text(model, "the cat sat")')
    inputs.strings(text)  # refuses what is not text, in words
    return _score_text(inputs.loaded(model), text)


def word_settings(
    words: str, regions: RegionRows | DataFrame | None, train: Text | None, carried: tuple[str, ...] = ()
) -> WordSettings:
    """Return what is to be measured: words, of which some are counted in a training text, or regions."""
    # carried: names of the fields of the text that are carried along.
    from lmgauge.evaluation.words.merging import Regions, WordFrequencies
    from lmgauge.evaluation.words.rows import WordSettings
    from lmgauge.text.tokenizers import make_tokenizer

    kind = words.partition(":")[0]
    if kind not in WORD_UNITS or (words != kind and kind != "icu"):
        raise UsageError(f"words {words!r}: choose {', '.join(WORD_UNITS)}, or icu:<locale> (such as icu:ja)")
    if regions is not None and (words != WORD_UNITS[0] or train is not None):
        what = "words" if train is None else "train"
        raise UsageError(f"{what} is for words; regions are what their file says: leave one of them out")
    tokenizer = make_tokenizer(words)
    frequencies = None if train is None else WordFrequencies(inputs.corpus_of(train), tokenizer)
    return WordSettings(tokenizer, None if regions is None else Regions.of(regions), frequencies, carried)


@verb
def word_surprisal(
    model: Model,
    text: Text | None = None,
    *,
    texts: Iterable[str] | str | None = None,
    words: str = "whitespace",
    regions: RegionRows | DataFrame | None = None,
    train: Text | None = None,
    threads: int | None = None,
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> WordSurprisals:
    """Return the surprisal of each word, or region, of texts: `lmgauge eval --per-word`.

    The corrected figure is that of Pimentel & Meister (2024) and Oh & Schuler (2024).

    Args:
        model: a model, or the path of one.
        text: files: a path, several, or a `Corpus`; each segment (line, record) is a text.
        texts: strings in place of files, each a text.
        words: what words are: "whitespace" (ASCII), "treebank" ("do n't"), "icu" (Unicode's word boundaries), or "icu:ja"
            (any locale).
        regions: measured in place of words: .tsv, .csv, .jsonl or .parquet, rows, or a data frame, with `text_id`, and
            `start` and `end` (bytes) or `text`, and a name in `region`.
        train: a text to count words in, for the columns `log_frequency` and `unseen`.
        threads: how many; does not change results, except by rounding.
        reading: how files are read.
        scoring: how the model scores; a network in memory takes what needs no loading.
        fields: those of both by name, as in `field="sentence", keep="condition", end="eos"`.

    Returns:
        A row a word: `surprisal`, `surprisal_corrected` and `entropy_before` in bits, and where the word is; `segment` is
        the number of its text, also where several have one id.

    Raises:
        InputError: a text or a region cannot be used, or a region cuts a token.
        MissingExtraError: icu4py is not installed.
        ModelFileError: the model cannot be loaded.
        UsageError: neither or both of `text` and `texts`; words of an unknown kind; regions with `words` or `train`.

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("witten-bell", Corpus.from_strings(["the cat sat", "the dog sat"]), order=2, tokenizer="character")
        >>> for row in word_surprisal(model, texts="the dog sat").to_rows():
        ...     print(row["word"], round(row["surprisal"], 3), round(row["surprisal_corrected"], 3))
        the 2.824 3.187
        dog 4.921 5.198
        sat 3.29 3.705
    """
    from lmgauge.evaluation.origin import Origin
    from lmgauge.evaluation.words.rows import WordRows

    corpus = inputs.one_text(text, texts, reading)
    settings = word_settings(words, regions, train, corpus.kept)
    (loaded,), (name,) = inputs.named_models(model, scoring, corpus)
    corpus = inputs.followed([loaded], corpus, scoring, by_group=False)
    measured, rows = WordRows.of_model(loaded, settings, Origin.of_model(loaded, name))
    say_progress("scoring")
    blocks, scored = tee(corpus)
    return rows.result(zip(blocks, measured.score(scored, spans=True, threads=threads), strict=True), corpus, loaded)
