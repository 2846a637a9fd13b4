"""Loading models: options by name, plugins, and what is not a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.models.registry import load_model
from lmgauge.settings import ScoringOptions


def ngram(folder: Path) -> Path:
    lmgauge.train("witten-bell", Corpus.from_strings(["a b", "b a"]), order=2).save(folder / "wb")
    return folder / "wb"


def test_an_option_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"load_model has no option 'contxt'; did you mean context"):
        load_model(ngram(tmp_path), contxt=3)


@pytest.mark.parametrize("options", [{"context": 3}, {"stream": True}, {"dtype": "float32"}, {"bos": "<s>"}])
def test_an_ngram_model_takes_no_scoring_options(options: Any, tmp_path: Path) -> None:
    name = next(iter(options)).replace("stream", "context")
    with pytest.raises(UsageError, match=rf"^{name} is for neural models, and .*wb \(wb2\) does not take it"):
        load_model(ngram(tmp_path), **options)
    with pytest.raises(UsageError, match="does not take it"):
        load_model(ngram(tmp_path), ScoringOptions(**options))
    assert load_model(ngram(tmp_path), context=None).label == "wb2"


def test_keywords_win_over_the_object() -> None:
    with pytest.raises(UsageError, match="context must be a whole number, 1 or more; got 0"):
        load_model("anything", ScoringOptions(context=3), context=0)


@pytest.mark.parametrize("value", [3, None, ["model"], b"model", object()])
def test_what_is_not_a_model(value: Any) -> None:
    for call in (load_model, lambda model: lmgauge.evaluate(model, Corpus.from_strings(["a"]))):
        if isinstance(value, list) and call is not load_model:
            continue
        with pytest.raises(UsageError, match=r"a model is an object with score and log_distribution, or a path, not "):
            call(value)


def test_a_model_that_is_loaded(tmp_path: Path) -> None:
    model = load_model(ngram(tmp_path))
    with pytest.raises(UsageError, match="this NgramModel is a model already"):
        load_model(model)  # type: ignore[arg-type]


def test_a_string_that_is_not_a_path() -> None:
    with pytest.raises(ModelFileError, match=r"the cat sat: no such model; a model is .* or a name on a hub"):
        load_model("the cat sat")


class _EntryPoint:
    def __init__(self, name: str, load: Callable[..., Any]) -> None:
        self.name, self.value, self._load = name, "my_package:load", load

    def load(self) -> Callable[..., Any]:
        return self._load


def plugin(folder: Path, monkeypatch: pytest.MonkeyPatch, *, keeps: bool) -> tuple[Path, list[Any]]:
    """A folder of a kind that a plugin loads, and what its function was called with."""
    calls: list[Any] = []

    def load(path: Path, options: ScoringOptions) -> Any:
        calls.append((path, options))
        model = lmgauge.train("laplace", Corpus.from_strings(["a b"]), order=1)
        if keeps:
            model.options = options  # type: ignore[attr-defined]
        return model

    monkeypatch.setattr(
        metadata, "entry_points", lambda group: [_EntryPoint("mine", load)] if group == "lmgauge.models" else []
    )
    (folder / "own").mkdir()
    (folder / "own" / "config.json").write_text(json.dumps({"model_type": "mine"}), encoding="utf-8")
    return folder / "own", calls


def test_plugins_get_the_scoring_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, calls = plugin(tmp_path, monkeypatch, keeps=True)
    load_model(path, context=7, dtype="bfloat16")
    assert calls == [(path, ScoringOptions(context=7, dtype="bfloat16"))]
    text = tmp_path / "t.txt"
    text.write_text("a b\n", encoding="utf-8")
    lmgauge.evaluate(path, text, scoring=ScoringOptions(context=9), output=tmp_path / "run")
    assert calls[-1] == (path, ScoringOptions(context=9))
    assert json.loads((tmp_path / "run" / "evaluation.json").read_text())["settings"]["context"] == 9


def test_a_plugin_that_keeps_no_options_takes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = plugin(tmp_path, monkeypatch, keeps=False)
    assert load_model(path).label == "laplace1"
    with pytest.raises(UsageError, match="context is for neural models"):
        load_model(path, context=7)


def test_a_kind_of_ours_that_is_not_known_asks_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "lmgauge-later"}', encoding="utf-8")
    monkeypatch.setattr("lmgauge.models.registry._load_network", None)
    with pytest.raises(ModelFileError, match="model_type 'lmgauge-later' is not known here; known are lmgauge-cache"):
        load_model(tmp_path)
