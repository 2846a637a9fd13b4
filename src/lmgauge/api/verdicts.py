"""What is said of models and runs: `lmgauge.compare`, `lmgauge.diagnose`, `lmgauge.audit`; and the text that was scored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, loaded, opened, refuse_field, text_of, training_text
from lmgauge.base.choices import OverlapUnit
from lmgauge.base.declaration import chosen, settings, verb
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.option_numbers import Count, Natural, Part
from lmgauge.settings import AuditSettings, DiagnosisSettings, ReadingOptions, ScoringOptions

if TYPE_CHECKING:
    from lmgauge import Corpus
    from lmgauge.evaluation.comparison.recipes import RecipeComparisons
    from lmgauge.evaluation.diagnosis.compressors import Baseline
    from lmgauge.evaluation.runs import Run
    from lmgauge.evaluation.slicing.cuts import TrainingWords
    from lmgauge.results import Audit, Comparisons, Diagnosis, Evaluation, Overlap
    from lmgauge.text.segments import Segments

_OF_MODEL = ("contexts", "exhaustive", "sum_tolerance", "compression_bytes")


def refuse_without_model(scoring: ScoringOptions, made: AuditSettings | DiagnosisSettings) -> None:
    """Refuse options that are about the model of a run where there is none.

    Raises:
        UsageError: there is such an option; the message names the first.
    """
    for name in (*chosen(scoring), *(name for name in chosen(made) if name in _OF_MODEL)):
        raise UsageError(f"{name.replace('_', '-')} needs the model: name it (-m)")


@settings
class RunText:
    """The text that runs are about.

    Attributes:
        text: the text that was scored, if it has moved since; may be given several times.
        document: what counts as independent; file, segment, unknown, blank-line, heading, or the name of a field. As in the
            run if not given.
        train: training text; for slices by how often words, and how long n-grams, occur in it; may be given several times.

    Example:
        >>> RunText(text="test.txt", document="blank-line").train
    """

    heading: ClassVar[str] = "Text"
    text: Text | None = None
    document: str | None = None
    train: Text | None = None

    def of(self, runs: Sequence[Run]) -> dict[str, Any]:
        """Return the text, read as it was when it was scored, and whether its documents are said here; None: as runs say.

        Args:
            runs: of that text.
        """
        unsaid = self.text is None and self.document is None
        corpus = None if unsaid else text_of(runs, self.text, self.document)
        said = self.document or getattr(self.text, "settings", {}).get("document")  # then the runs need not be asked
        return {"corpus": corpus, "documents_of_text": said is not None}

    def trained(self, read: Callable[[Corpus, int | None, Any], Any], threads: int | None) -> Callable[[Any], Any] | None:
        """Return the function that reads the training text beside what was scored; None without such a text.

        Args:
            read: called with the training text, `threads`, and what it is given later.
            threads: how many; all cores if None.
        """
        return None if self.train is None else partial(read, corpus_of(self.train), threads)


@verb
def compare(
    runs: Sequence[PathLike | Evaluation] = (),
    *,
    plan: Part | None = None,
    examples: Natural = 5,
    threads: Count | None = None,
    about: RunText = RunText(),
    **fields: Any,
) -> Comparisons:
    """Say whether results may be compared, whether their difference is real, and where it comes from: `lmgauge compare`.

    A verdict is about these two models, on texts like this one, not about the recipes that made them: to compare
    recipes, use several runs of each (`--recipe`, `compare_recipes`).

    Args:
        runs: run folders (of `evaluate(..., output=...)` or `lmgauge eval -o`) or score tables; in Python also what
            `evaluate` returned, which is scored again where it wrote no folder; each is compared with the first.
        plan: how many documents would show a difference of this share of the figure, such as 0.5%?
        examples: tokens and segments to show of each kind.
        threads: threads to use; all cores if not given. Does not change results.
        about: the text that was scored, and the training text.
        fields: those of `about`, by name.

    Raises:
        InputError: a run is damaged or was changed, or the text is not the one it scored.
        UsageError: fewer than two runs.

    Shell:
        lmgauge compare run-kn5/ run-wb5/
        lmgauge compare -m small/ -m large/ texts/*.txt --until decided
        lmgauge compare --recipe small=s1/,s2/,s3/ --recipe large=l1/,l2/,l3/

    Example:
        >>> from lmgauge import Corpus, evaluate, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"] * 2)
        >>> compare(evaluate([train("witten-bell", text, order=order) for order in (1, 2)], text))[0]
        <Comparison: wb2 / wb1: perplexity 1.9085 / 6.6588, p = 0.03125 (whole)>
    """
    from lmgauge.base.temporaries import scratch_folder
    from lmgauge.evaluation.comparison import compare as comparison

    if isinstance(runs, (str, os.PathLike)) or not isinstance(runs, Sequence):
        raise UsageError(f"a comparison needs a list of two runs or more, not {type(runs).__name__}")
    training = about.trained(partial(training_words, max_order=1), threads)
    with scratch_folder() as work:
        whole = [run for run in runs if isinstance(run, PATHS) or getattr(run, "group", None) is None]
        compared = [opened(run, work=work / str(number)) for number, run in enumerate(whole)]
        return comparison.compare(compared, examples=examples, plan=plan, training=training, **about.of(compared))


@verb
def compare_recipes(
    recipes: Mapping[str, Sequence[PathLike]], *, text: Text | None = None, document: str | None = None
) -> RecipeComparisons:
    """Say whether recipes differ, from several runs of each: seeds are a second source of chance beside the text.

    Args:
        recipes: several runs (seeds) of a recipe instead of RUNS; give it twice or more, all runs on one text. Each recipe
            is compared with the first.
        text: the text that was scored, if it is not where the runs remember it.
        document: what is independent, as of `compare`.

    Raises:
        InputError: a run is damaged or was changed, the runs may not be compared, or an event has probability zero.
        UsageError: fewer than two recipes, or a recipe with one run.

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus, evaluate, train
        >>> text, parts = Corpus.from_strings(["a b a", "b a", "a"] * 2), [["a b"], ["a a b"], ["b"], ["b b a"]]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for seed, part in enumerate(parts):
        ...         model = train("laplace", Corpus.from_strings(part), order=1, words=["a", "b"])
        ...         _ = evaluate(model, text, output=f"{folder}/{seed}")
        ...     runs = {"A": [f"{folder}/0", f"{folder}/1"], "B": [f"{folder}/2", f"{folder}/3"]}
        ...     result = compare_recipes(runs, text=text)
        >>> result[0].metric, round(result[0].difference, 3), round(result[0].p_value, 3)
        ('perplexity', 1.13, 0.314)
    """
    from lmgauge.evaluation.comparison import recipes as of_recipes

    if not isinstance(recipes, Mapping) or any(isinstance(runs, (str, os.PathLike)) for runs in recipes.values()):
        raise UsageError(
            'recipes are lists of runs by name: write lmgauge.compare_recipes({"A": ["s1", "s2"], "B": ["t1", "t2"]})'
        )
    grouped = {name: [opened(run) for run in runs] for name, runs in recipes.items()}
    runs = [run for group in grouped.values() for run in group]
    said = RunText(text=text, document=document)
    return of_recipes.compare_recipes(grouped, **(said.of(runs) if runs else {}))


@verb
def diagnose(
    run: PathLike,
    *,
    model: Model | None = None,
    about: RunText = RunText(),
    settings: DiagnosisSettings = DiagnosisSettings(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Diagnosis:
    """Show where a model fails (slices of the text, worst tokens, calibration, memory, baselines): `lmgauge diagnose`.

    Args:
        run: a run folder (of `evaluate(..., output=...)` or `lmgauge eval -o`) or a score table.
        model: the model behind the run; adds calibration.
        about: the text that was scored, and the training text, which also gives n-gram models among the baselines.
        settings: what is worked out, and how much of it.
        scoring: how a model named by its path scores.
        fields: those of `about`, `settings` and `scoring`, by name.

    Raises:
        InputError: the run is damaged or was changed, or text or model are not those behind it.
        UsageError: a section is not known, `train` is given but the text that was scored is not at hand, or an option needs
            the model.

    Shell:
        lmgauge eval -m kn5/ test.txt -o run-kn5/
        lmgauge diagnose run-kn5/ --train train.txt -m kn5/

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus, evaluate, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = evaluate(train("witten-bell", text), text, output=f"{folder}/run")
        ...     result = diagnose(f"{folder}/run", text=text, only=["tokens"])
        >>> [(token.token, token.events) for token in result.costly_tokens[:2]]
        [('the', 2), ('a', 1)]
    """
    from lmgauge.evaluation.diagnosis import diagnose as diagnosis

    examined = opened(run)
    corpus = about.of([examined])["corpus"]
    return diagnosis.diagnose(
        examined, settings, corpus=corpus, **behind(model, about, settings, scoring, corpus or examined.corpus())
    )


def behind(
    model: Model | None, about: RunText, settings: DiagnosisSettings, scoring: ScoringOptions, corpus: Corpus | None
) -> dict[str, Any]:
    """Return what a diagnosis asks besides the run: its model, its training text.

    Raises:
        UsageError: an option is about the model, and there is none.
    """
    if model is None:
        refuse_without_model(scoring, settings)
    return {
        "training": about.trained(training_words, settings.threads),
        "rungs": about.trained(training_rungs, settings.threads),
        "model": None if model is None else loaded(model, scoring, corpus),
    }


def training_words(train: Corpus, threads: int | None, scored: Iterable[Segments], *, max_order: int = 5) -> TrainingWords:
    """Return what of the words of a text was seen in a training text, for slices."""
    from lmgauge.text.training_coverage import find_training_coverage

    seen = find_training_coverage(train, scored, max_order=max_order, threads=threads)
    return lambda block: seen.of(block)[:2]


def training_rungs(train: Corpus, threads: int | None, scored: Corpus) -> list[Baseline]:
    """Return the rungs of n-gram models of a training text, in bits per byte; none if a text can be read only once."""
    from lmgauge.api.baseline import NgramRungs, ngram_rungs
    from lmgauge.base.temporaries import scratch_folder

    if not (train.rereadable and scored.rereadable):
        return []
    with scratch_folder() as work:
        rungs = ngram_rungs(train.without_given("training"), scored, NgramRungs(threads=threads), work)
        return [one.rung for one in rungs]


@verb
def audit(
    model: Model | None = None,
    text: Text | None = None,
    *,
    run: PathLike | None = None,
    train: Text | None = None,
    overlap_unit: OverlapUnit = "word",
    threads: Count | None = None,
    checks: AuditSettings = AuditSettings(),
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Audit:
    """Audit a model on a text: coverage, normalization, causality, contamination and compression.

    With a model and a text (files, globs, or - for standard input, the default), all levels are checked. A run alone (a
    folder of `lmgauge eval -o`, or a score table) is checked as far as that needs no model; a run with its model, also for
    whether the model made it.

    Args:
        model: a folder, ARPA or KenLM file; without it a run is audited. In Python also any object with `vocabulary`,
            `tokenizer`, `score` and `log_distribution`.
        text: the text that a run scored, if it has moved since; in Python also what a model is audited on.
        run: a stored run of this text (of `evaluate(..., output=...)`), or a score table of any origin.
        train: training text; for level 4, may be given several times.
        overlap_unit: runs of 13 words or more, or of 25 characters; level 4; characters for scripts without spaces between
            words.
        threads: threads to use; all cores if not given. Does not change results.
        checks: which levels, and how closely.
        reading: how files of text are read.
        scoring: how a model that is named by its path scores.
        fields: those of `checks`, `reading` and `scoring`, by name.

    Returns:
        The checks with their evidence; `Audit.require` raises `CheckFailedError` where one failed.

    Raises:
        InputError: the text is empty, or cannot be used; the table cannot be read.
        UsageError: a number out of range, an unknown level, no text, or an option that needs the model.

    Shell:
        lmgauge audit -m kn5/ test.txt --train train.txt
        lmgauge audit run-kn5/
        lmgauge audit run-kn5/ -m kn5/

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> audit(train("witten-bell", text), text, levels=["coverage", "causality"]).passed
        True
    """
    from lmgauge.evaluation.audit import audit as audits

    stored = None if run is None else opened(run, check_seal=False)
    if stored is not None:
        corpus = stored.corpus() if text is None else text_of([stored], text)
    else:
        corpus = None if text is None else corpus_of(text, reading, alone=False)
    training = None if train is None else training_text(train, reading)
    refuse_field(reading, training, None if stored is not None else corpus)
    overlap = None if corpus is None else _contamination(training, corpus, checks, overlap_unit, threads)
    if model is None:
        refuse_without_model(scoring, checks)
        if stored is None:
            raise UsageError("an audit needs a model and its text, or a run")
        return audits.audit_run(stored, corpus, checks, overlap=overlap)
    if corpus is None:
        raise UsageError("an audit of a model needs a text" if run is None else f"{run}: the text it scored is not there")
    subject, path = loaded(model, scoring, corpus), os.fspath(model) if isinstance(model, PATHS) else None
    name = None if path is None or subject.served_by else os.path.basename(os.path.normpath(path)) or path
    again = None if path is None else partial(loaded, path, scoring, corpus)
    result = audits.audit(subject, corpus, checks, overlap=overlap, threads=threads, name=name, untouched=again)
    return result if stored is None else audits.with_run(result, stored, corpus, checks, subject, threads)


def audit_run(run: PathLike, **options: Any) -> Audit:
    """Audit what can be seen of a run, or a score table, without its model: seal, coverage, sums and contamination.

    Args:
        run: a run folder (of `evaluate(..., output=...)`) or a score table of any origin.
        options: `text`, `train`, `levels`, `max_overlap`, `overlap_unit` and `threads`, as of `audit`.

    Raises:
        InputError: the table cannot be read.
        UsageError: a number out of range, an unknown level, or an option that needs the model.

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus, evaluate, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = evaluate(train("witten-bell", text), text, output=f"{folder}/run")
        ...     audit_run(f"{folder}/run", text=text, levels=["coverage"]).verdict("coverage")
        'PASS'
    """
    result: Audit = audit(run=run, **options)
    return result


def _contamination(
    train: Corpus | None, test: Corpus, checks: AuditSettings, unit: OverlapUnit, threads: int | None
) -> Callable[[], Overlap] | None:
    """Return the function that compares a text with its training text: the audit calls it late."""
    if train is None or "contamination" not in checks.levels:
        return None
    from lmgauge.evaluation.audit.audit import NothingToCompareError
    from lmgauge.text.overlap.find import find_overlap
    from lmgauge.text.overlap.overlap_settings import OverlapSettings

    test.refuse_once("--train reads the text a second time")

    def compare() -> Overlap:
        try:
            return find_overlap(train, test, OverlapSettings(overlap_unit=unit, passages=0), threads=threads)
        except InputError as error:
            if not train.report.sha256:
                raise
            raise NothingToCompareError(str(error)) from error  # both were read to their end: nothing is wrong with them

    return compare
