"""A string that is the name of a file is not taken for a text: no public function that takes strings scores a name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge import Corpus, tasks
from lmgauge.base.errors import UsageError
from lmgauge.base.paths import refuse_file_names

MODEL = lmgauge.train("witten-bell", Corpus.from_strings(["the cat sat", "the dog sat"]), order=2)
NAME = "test.txt"
_OF_STRINGS = ("Iterable[str]", "Sequence[str]", "Sequence[str | bytes | None]", "GivenReferences", "list[str]")
_NAMES = ("text", "texts", "prompt", "hypotheses", "references", "hypothesis", "reference", "gold", "predicted", "sentence")
_TAKEN_AT_THEIR_WORD = {"NgramModel.score_short", "NgramModel.score_many"}
"""What `score_text` calls, once for each of very many strings."""

_MODELS = (
    lmgauge.CustomModel,
    lmgauge.models.MixtureModel,
    lmgauge.models.NeuralModel,
    lmgauge.NgramModel,
    lmgauge.models.SpelledModel,
)
CALLS: dict[str, Callable[[], Any]] = {
    "perplexity": lambda: lmgauge.perplexity(MODEL, NAME),
    "score_text": lambda: lmgauge.score_text(MODEL, NAME),
    "evaluate": lambda: lmgauge.evaluate(MODEL, texts=NAME),
    "word_surprisal": lambda: lmgauge.word_surprisal(MODEL, texts=NAME),
    "pairs": lambda: lmgauge.pairs(MODEL, [(NAME, NAME)]),
    "sample": lambda: list(lmgauge.sample(MODEL, prompt=NAME)),
    "Corpus.from_strings": lambda: Corpus.from_strings(NAME),
    "Scorer.score_texts": lambda: lmgauge.Scorer(MODEL).score_texts(NAME),
    "tasks.align": lambda: tasks.align(NAME, NAME),
    "tasks.label_scores": lambda: tasks.label_scores([NAME], [NAME]),
    "tasks.score_labels": lambda: tasks.score_labels(gold=[NAME], predicted={"a": [NAME]}),
    "tasks.score_systems": lambda: tasks.score_systems(tasks.WER(), hypotheses={"a": [NAME]}, references=[[NAME]]),
    **{
        f"{kind.__name__}.score_text": lambda: MODEL.score_text(NAME)  # one function, of all models
        for kind in _MODELS
    },
    **{
        f"tasks.{metric.__name__}": lambda metric=metric: metric(hypotheses=[NAME], references=[NAME])
        for metric in (tasks.bleu, tasks.chrf, tasks.ter, tasks.wer, tasks.cer)
    },
}


@pytest.fixture(autouse=True)
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(NAME).write_text("the cat sat\n", encoding="utf-8", newline="\n")


def _functions(space: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in space.__all__:
        value = getattr(space, name)
        yield prefix + name, value
        if inspect.isclass(value):
            yield from ((f"{prefix}{name}.{member}", getattr(value, member)) for member in vars(value) if member[0] != "_")
            yield from ((f"{prefix}{name}.{one}", getattr(value, one)) for one in ("score_text",) if hasattr(value, one))


def _takes_strings(function: Any) -> bool:
    if inspect.isclass(function) or not callable(function):
        return False
    parameters = inspect.signature(function).parameters
    annotations = [str(one.annotation) for name, one in parameters.items() if name in _NAMES]
    return any(words == "str" or any(one in words for one in (*_OF_STRINGS, "[str]]")) for words in annotations)


def test_each_public_function_that_takes_strings_is_tried() -> None:
    public = dict((*_functions(lmgauge), *_functions(lmgauge.models), *_functions(tasks, "tasks.")))
    assert {name for name, function in public.items() if _takes_strings(function)} - _TAKEN_AT_THEIR_WORD == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_name_of_a_file_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"name of a file, not its text: write .*open\('test.txt'\)|one string"):
        CALLS[name]()


def test_message_has_both_cures_and_a_list_of_one_is_a_text() -> None:
    with pytest.raises(UsageError, match=r"evaluate\(model, 'test.txt'\), or open.*; for the name itself .*\['test.txt'\]"):
        lmgauge.perplexity(MODEL, NAME)
    with pytest.raises(UsageError, match=r"write lmgauge.evaluate\(model, \['test.txt', 'test.txt'\]\)"):
        lmgauge.perplexity(MODEL, [NAME, NAME])
    assert lmgauge.perplexity(MODEL, [NAME]) == lmgauge.perplexity(MODEL, "test.tx")
    with pytest.raises(UsageError, match=r"score_files"):
        tasks.wer(hypotheses=NAME, references=["a"])  # type: ignore[arg-type]


def test_what_is_no_path_is_a_text() -> None:
    Path("folder").mkdir()
    Path("words").write_text("", encoding="utf-8")
    for text in ("", "the cat sat", "no.txt", "folder", "a" * 100_000, "/" * 3000, "a\0.txt", "\ud800.txt", f"{NAME} sat"):
        refuse_file_names(text)
    refuse_file_names([NAME, "the cat"])
    refuse_file_names(["words", "words"])  # texts of a word each: without an ending they are no paths
    refuse_file_names([])
    with pytest.raises(UsageError, match="name of a file"):
        refuse_file_names("words")
