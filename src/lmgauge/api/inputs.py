"""What the functions of `import lmgauge` take: models, texts, strings and runs, as objects or by path.

Light, as signatures are read before anything runs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, Union, cast

from lmgauge.base.choices import ARPA_ENDINGS, KENLM_ENDINGS, Role, path_and_formats
from lmgauge.base.declaration import chosen
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.remote.addresses import PATHS as PATHS
from lmgauge.base.remote.addresses import PathLike as PathLike
from lmgauge.settings import Outputs, ReadingOptions, ScoringOptions

if TYPE_CHECKING:
    from lmgauge import Corpus, LanguageModel
    from lmgauge.evaluation.runs import Run
    from lmgauge.models.network.model import NetworkModel
    from lmgauge.models.protocol import Backend
    from lmgauge.results import Choices, ContextCurve, Evaluation, Membership

# Unions with names in quotes, which only type checkers import.
Text = Union[PathLike, Sequence[PathLike], "Corpus"]
Model = Union["Backend", PathLike]
Models = Union[Model, Sequence[Model], Mapping[str, Model]]  # noqa: UP007
WithRows = TypeVar("WithRows", "Choices", "ContextCurve", "Membership")

OF_CONVERSATIONS = {"template", "template_args", "end_of_turn", "framing"}
_RULES = {"context", "stride", "stream", "first_token", "end", "protocol", "bos_each_window", *OF_CONVERSATIONS}
"""What a network in memory can be told; the rest is chosen when a model is loaded."""

_SAME = 1e-6  # relative: log-probabilities of networks differ in last bits

_CALLS = 'lmgauge.evaluate(model, "test.txt"), or lmgauge.evaluate(model, texts=["the cat sat"])'
_TEXTS = '"test.txt", or lmgauge.Corpus.from_strings(["the cat sat"])'


# -- models -------------------------------------------------------------------------------------------------------------
def loaded(model: Model, scoring: ScoringOptions | None = None, corpus: Corpus | None = None) -> LanguageModel:
    """Return the model itself, or the one at a path, loaded with these options."""
    return load_models([model], scoring, corpus)[0]


def load_models(
    models: Sequence[Model], scoring: ScoringOptions | None = None, corpus: Corpus | None = None
) -> list[LanguageModel]:
    """Return models, those named by a path loaded with these options; none that was chosen is ignored in silence."""
    # corpus: what they will score, in their chat templates if it is conversations.
    from lmgauge.base.progress import say_progress, show_speed
    from lmgauge.models import registry
    from lmgauge.models.protocol import completed

    named = [model if isinstance(model, PATHS) else completed(model) for model in models]
    options, paths = scoring or ScoringOptions(), any(isinstance(model, PATHS) for model in models)
    asked = set(chosen(options))
    if asked and not paths and not (asked <= _RULES and any(map(_follows_rules, named))):
        raise UsageError(
            "scoring is for models named by their path: a model in memory scores as it was loaded, "
            'for example by load_model("model/", context=1024)'
        )
    if paths:
        say_progress("loading")
    rules = {name: getattr(options, name) for name in asked & _RULES}

    def ready(model: PathLike | LanguageModel) -> LanguageModel:
        if isinstance(model, PATHS):
            return registry.open_model(model, options)
        return model.with_options(replace(model.options, **rules)) if rules and _follows_rules(model) else model

    loaded = list(map(ready, named))
    if unused := registry.unused_option(options, loaded):
        takers = registry.takers(unused)
        raise UsageError(f"--{unused.replace('_', '-')} is for {takers}, and no model named here takes it")
    if corpus is not None and corpus.roles is not None:
        loaded = [model.framed() for model in loaded]
    elif corpus is not None and (odd := sorted(asked & OF_CONVERSATIONS)):
        raise UsageError(
            f"{odd[0].replace('_', '-')} is about turns of conversations: name their field (--chat), or --as-turn"
        )
    show_speed(loaded)
    return loaded


def refuse_framed(models: Iterable[LanguageModel], corpus: Corpus | None) -> None:
    """Refuse conversations where a network would score their contents alone, out of its chat template."""
    from lmgauge.models.protocol import refuse_templates

    if corpus is not None and corpus.roles is not None:
        refuse_templates(models)


def _follows_rules(model: object) -> TypeGuard[NetworkModel]:
    """Return True for a network that is in memory, which can be told other rules."""
    return not isinstance(model, PATHS) and cast("LanguageModel", model).tokens is not None


def named_models(
    models: Models, scoring: ScoringOptions | None = None, corpus: Corpus | None = None
) -> tuple[list[LanguageModel], list[str]]:
    """Return one or more models, and the name of each: its key in a mapping, the end of its path, or its label."""
    from lmgauge.models.registry import model_names

    each = listed(models)
    if not each:
        raise UsageError(f"there is no model in the list: {_CALLS}")
    if not isinstance(models, Mapping):
        refuse_twice(each)
    opened = load_models(each, scoring, corpus)
    return opened, [str(name) for name in models] if isinstance(models, Mapping) else model_names(each, opened)


def is_model(operand: object) -> bool:
    """Return True for a model, or the path of one: a folder, a file called as GGUF, ARPA and KenLM files are, a server."""
    if not isinstance(operand, PATHS):
        return hasattr(operand, "score")
    path, _ = path_and_formats(os.fspath(operand))
    named = path.endswith((".gguf", *ARPA_ENDINGS, *KENLM_ENDINGS)) or path.startswith(("http://", "https://"))
    return named or os.path.isfile(os.path.join(path, "config.json"))


def refuse_twice(models: Sequence[Model]) -> list[str]:
    """Return the paths among models, each once."""
    paths = [os.fspath(model) for model in models if isinstance(model, PATHS)]
    if len(set(paths)) < len(paths):
        raise UsageError("the same model is named twice")
    return paths


def listed(models: Models) -> list[Model]:
    """Return one model, or several, as a list."""
    if isinstance(models, Mapping):
        return list(models.values())
    return list(models) if isinstance(models, Sequence) and not isinstance(models, str) else [models]


def followed(models: Sequence[LanguageModel], corpus: Corpus, scoring: ScoringOptions | None, *, by_group: bool) -> Corpus:
    """Return the text as the protocol of the models scores it: its segments joined into one, if need be."""
    # scoring: what was chosen for the models, which are loaded.
    from lmgauge.scores.context_policy import PROTOCOLS

    protocols = {model.context_policy.protocol: model for model in models}
    known = [name for name in (scoring.protocol if scoring is not None else None, *protocols) if name is not None]
    if None in protocols and known:
        raise UsageError(
            f"protocol {known[0]}: {protocols[None].label} cannot follow it, as it is not a network that shows windows of "
            "tokens; evaluate it without"
        )
    if len(protocols) > 1:
        raise UsageError(f"models follow different protocols ({', '.join(map(str, protocols))}); evaluate each on its own")
    separator = PROTOCOLS[known[-1]].separator if known else None
    if separator is None:
        return corpus
    if by_group:
        raise UsageError(f"protocol {known[-1]}: joins all segments into one text, which has no groups; leave out by-group")
    return corpus.joined(separator)


def refuse_output(
    output: PathLike | None,
    models: Iterable[Model],
    *texts: Corpus | PathLike | None,
    option: str = "-o",
    folder: str = "",
    rows: bool = False,
) -> None:
    """Refuse an output that would replace a model or a text that is read, or whose name is not one for what it holds."""
    # folder: what it is, if it is a folder; rows: whether it is a file of rows.
    from lmgauge.base.files import refuse_replacing
    from lmgauge.base.result_list import check_row_file
    from lmgauge.text.documents import Corpus

    if rows and output is not None:
        check_row_file(os.fspath(output))
    if folder and output is not None and os.fspath(output).endswith((*ARPA_ENDINGS, *KENLM_ENDINGS)):
        raise UsageError(f"-o {output}: only n-gram models have an ARPA or KenLM form; {folder} is a folder")
    read = [*models, *texts, *(source.path for text in texts if isinstance(text, Corpus) for source in text.sources)]
    refuse_replacing({option: output}, [os.fspath(one) for one in read if isinstance(one, PATHS)])


def saved(model: Any, output: PathLike | None) -> Any:
    """Save a model where an output is named, and return it."""
    if output is not None:
        from lmgauge.base.progress import say_progress

        say_progress(f"saving {output}")
        model.save(os.fspath(output))
    return model


def written(result: WithRows, output: PathLike | None) -> WithRows:
    """Write the rows of a result where a file is named, and return it."""
    if output is not None:
        result.write_rows(output)
    return result


# -- texts --------------------------------------------------------------------------------------------------------------
def corpus_of(text: Text, reading: ReadingOptions = ReadingOptions(), *, alone: bool = True) -> Corpus:
    """Return the corpus that a path, several, or a `Corpus` stand for."""
    # alone: False where several texts are read alike; then call `refuse_field` with all of them.
    from lmgauge.text.documents import Corpus

    if isinstance(text, Corpus):
        for name in chosen(reading):
            raise UsageError(f"{name}: a Corpus is read with its own options; set it there, or give paths")
        return text
    if not isinstance(text, (str, os.PathLike, Sequence)) or isinstance(text, bytes):
        raise UsageError(f"a text is a path, a list of paths or a Corpus, not {type(text).__name__}: {_TEXTS}")
    paths = [text] if isinstance(text, PATHS) else list(text)
    try:
        corpus = Corpus.from_files(paths, reading=reading)
    except InputError as error:
        # A missing file that looks like a sentence is one; a message is cut where it is very long.
        spaced = [path for path in paths if isinstance(path, str) and len(path.split()) > 1]
        if not any(repr(path)[:200] in str(error) for path in spaced):
            raise
        raise InputError(f"{error}; to pass strings: lmgauge.Corpus.from_strings([...])") from error
    if alone:
        refuse_field(reading, corpus)
    return corpus


def training_text(train: Text, reading: ReadingOptions) -> Corpus:
    """Return the training text beside a test that is read alike; plain text may stand beside conversations."""
    corpus = corpus_of(train, replace(reading, chat=None, roles=ReadingOptions.roles), alone=False)
    is_plain = all(source.format == "text" for source in corpus.sources)
    return corpus if reading.chat is None or is_plain else corpus_of(train, reading, alone=False)


def text_read(text: Text | None, reading: ReadingOptions) -> Corpus | None:
    """Return the text that was scored, if it is given."""
    for name in chosen(reading) if text is None else ():
        raise UsageError(f"{name} is about the text that was scored, and no text is named")
    return None if text is None else corpus_of(text, reading)


def refuse_field(reading: ReadingOptions, *corpora: Corpus | None) -> None:
    """Refuse the name of a field where no text that was read by it has fields."""
    formats = {source.format for corpus in corpora if corpus is not None for source in corpus.sources}
    if reading.field != ReadingOptions.field and formats <= {"text"}:
        raise UsageError("field names a field of records, and the text is plain; leave it out, or say the format")


def strings(texts: Iterable[str] | str, as_turn: Role | None = None) -> Corpus:
    """Return strings as a corpus, each a segment: one string, a list, a generator, a column of a data frame."""
    from lmgauge.base.paths import refuse_file_names
    from lmgauge.text.documents import Corpus

    refuse_file_names(texts, "lmgauge.evaluate(model, {})", one_in_list=True)
    if hasattr(texts, "columns") and hasattr(texts, "iloc"):
        raise UsageError('texts is a whole data frame: give the column that holds the text, as in frame["text"]')
    if isinstance(texts, (bytes, Mapping, Corpus)) or not isinstance(texts, Iterable):
        raise UsageError(
            f'texts are strings, not {type(texts).__name__}: give a string or several, as in ["the cat sat", "the dog sat"]'
        )
    return Corpus.from_strings([texts] if isinstance(texts, str) else texts, as_turn=as_turn)


def one_text(text: Text | None, texts: Iterable[str] | str | None, reading: ReadingOptions = ReadingOptions()) -> Corpus:
    """Return the corpus of files or of strings, whichever was given."""
    if texts is None and text is not None:
        return corpus_of(text, reading)
    if texts is None or text is not None:
        which = "neither text nor texts is" if text is None else "both text (files) and texts (strings) are"
        raise UsageError(f"{which} given: write {_CALLS}")
    for name in chosen(replace(reading, as_turn=None)):
        raise UsageError(f"{name} is for files: for strings write Corpus.from_strings(texts, documents=[...])")
    return strings(texts, reading.as_turn)


# -- runs ---------------------------------------------------------------------------------------------------------------
KEEP_SCORES = (
    'this Evaluation has figures only: keep the scores with evaluate(..., output="runs"), and give the folders, as in '
    'compare(["runs/a", "runs/b"])'
)


def opened(run: PathLike | Evaluation, *, check_seal: bool = True, work: PathLike | None = None) -> Run:
    """Return the run at a path, or of an evaluation, which is scored again into the folder `work` if it wrote none."""
    from lmgauge.evaluation.results import Evaluation
    from lmgauge.evaluation.runs import open_run

    if isinstance(run, Evaluation):
        if run.scores is None or (work is None and not isinstance(run.scores, PATHS)):
            raise UsageError(KEEP_SCORES)
        again = open_run(os.fspath(run.scores)) if isinstance(run.scores, PATHS) else run.scores(cast("PathLike", work))
        if not math.isclose((again.evaluation or {})["log_probability"], run.log_probability, rel_tol=_SAME):
            raise InputError(f"{run.model} or its text has changed since it was evaluated: {KEEP_SCORES}")
        return again
    if not isinstance(run, PATHS):
        cure = ': make it one with import_scores(frame, "runs", logprob=["a", "b"])' if hasattr(run, "columns") else ""
        raise UsageError(f"a run is the path of a folder or a score table, not {type(run).__name__}{cure}")
    return open_run(os.fspath(run), check_seal=check_seal)


def scored(
    model: LanguageModel, name: str, corpus: Corpus, folder: PathLike, scoring: ScoringOptions, threads: int | None = None
) -> Run:
    """Return the run of a loaded model on a text, written into a folder."""
    from lmgauge.evaluation.output_files import evaluated
    from lmgauge.evaluation.runs import open_run

    evaluated([model], [name], corpus, Outputs(output=folder), scoring=scoring, threads=threads)
    return replace(open_run(os.fspath(folder)), text=corpus)


def text_of(runs: Sequence[Run], text: Text | None, document: str | None = None) -> Corpus:
    """Return the text of runs, read as it was when it was scored (unit, field, groups), with documents as asked."""
    # runs: one or more, of the same text; text: where it is now, None for where the runs remember it.
    from lmgauge.text.documents import Corpus

    if isinstance(text, Corpus):
        return corpus_of(text, ReadingOptions(document=document))
    if text is None:
        remembered = next((corpus for run in runs if (corpus := run.corpus(document=document)) is not None), None)
        if remembered is None:
            raise UsageError("--document needs the text that was scored: name it (--text)")
        return remembered
    plain = corpus_of(text)  # refuses what is not a text, in words
    paths = [os.fspath(path) for path in ([text] if isinstance(text, PATHS) else text)]
    run = next((run for run in runs if run.settings), runs[0])
    return run.corpus(paths, document=document) or plain
