"""`lmgauge.info`: what a model or a run is made of."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lmgauge.api.inputs import PATHS, Model, loaded, opened
from lmgauge.base.declaration import chosen, verb
from lmgauge.base.display import Displayable
from lmgauge.base.errors import UsageError
from lmgauge.settings import ScoringOptions

if TYPE_CHECKING:
    from lmgauge import LanguageModel
    from lmgauge.evaluation.runs import Run


@dataclass(frozen=True, repr=False)
class Info(Displayable, Mapping[str, Any]):
    """What is in a model or a run, or which plug-ins there are: a mapping, from names to plain values.

    Attributes:
        kind: "model", "run" or "plugins".
        content: the values by name: of a model its label, fingerprint, bytes on disk, how many of them were in memory when
            it was opened (where the system says so), and all that its folder says of it; of a run its numbers, signature,
            settings, and which file was changed since; `plugins`, a row each.

    Example:
        >>> import lmgauge
        >>> content = lmgauge.info(lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2))
        >>> content.kind, content["label"], content["vocabulary_size"]
        ('model', 'laplace2', 5)
    """

    kind: Literal["model", "run", "plugins"]
    content: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.content[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.content)

    def __len__(self) -> int:
        return len(self.content)

    def to_dict(self) -> dict[str, Any]:
        """Return the values by name."""
        return dict(self.content)

    def _in_brief(self) -> str:
        name = self.content.get("path", self.content.get("label", ""))
        return f"{self.kind} {name}, {len(self)} values"


@verb
def info(
    what: Model | None = None, *, plugins: bool = False, scoring: ScoringOptions = ScoringOptions(), **fields: Any
) -> Info:
    """Return what is in a model or in a run, or which plug-ins there are: `lmgauge info`.

    A model is a folder, an ARPA or GGUF file, a hub name, or the address of a server; a run is a folder that
    `lmgauge eval -o` or `lmgauge import -o` wrote.

    Args:
        what: a model, or the path of a model or of a run folder.
        plugins: list kinds of models, importers, exporters and metrics instead, with where they are from; ours, too.
        scoring: how a model named by its path scores.
        fields: those of `scoring`, by name.

    Raises:
        InputError: a run folder cannot be read.
        ModelFileError: a model cannot be loaded.
        UsageError: it is neither, or a run, and an option of models was chosen; or there is no model and no run.

    Shell:
        lmgauge info kn5/
        lmgauge info run-kn5/ --json | jq .perplexity
        lmgauge info --plugins

    Example:
        >>> from lmgauge import Corpus, train
        >>> info(train("laplace", Corpus.from_strings(["a b", "a"]), order=2))["types"]
        [4, 4]
    """
    from lmgauge.base.files import local_path
    from lmgauge.evaluation.runs import EVALUATION_FILE
    from lmgauge.tasks.items.table import is_items_folder, read_items

    if plugins != (what is None):
        raise UsageError("name a model or a run, or ask for --plugins: one of the three")
    if what is None:
        return Info("plugins", {"plugins": _plugins()})
    of_items = isinstance(what, PATHS) and is_items_folder(local_path(what))
    if isinstance(what, PATHS) and (of_items or (local_path(what) / EVALUATION_FILE).exists()):
        if chosen(scoring):
            raise UsageError(f"{os.fspath(what)} is a run; {chosen(scoring)[0].replace('_', '-')} is an option of models")
        content = read_items(what).to_dict() if of_items else _of_run(opened(what, check_seal=False))
        return Info("run", {"path": os.fspath(what)} | content)
    return Info("model", _of_model(what, loaded(what, scoring)))


def _plugins() -> list[dict[str, str]]:
    from lmgauge.models.ngram.model import EXPORTERS as MODEL_EXPORTERS
    from lmgauge.models.registry import MODELS
    from lmgauge.report.exports import EXPORTERS as RESULT_EXPORTERS
    from lmgauge.scores.imports.programs import IMPORTERS
    from lmgauge.tasks.items.logs import ITEM_IMPORTERS
    from lmgauge.tasks.metrics.protocol import METRICS

    groups = (MODELS, MODEL_EXPORTERS, IMPORTERS, ITEM_IMPORTERS, RESULT_EXPORTERS, METRICS)
    return [row for group in groups for row in group.described()]


def _of_model(what: Model, model: LanguageModel) -> dict[str, Any]:
    content: dict[str, Any] = {"label": model.label, "fingerprint": model.fingerprint}
    if isinstance(what, PATHS):
        content = {"path": os.fspath(what)} | content | {"bytes": _size(Path(what))}
    from lmgauge.models.combined.spelling.model import parted
    from lmgauge.models.ngram.model import NgramModel

    content |= model.to_dict()
    inside = parted(model)[0]
    return content | {"unk_probability": inside.unk_probability} if isinstance(inside, NgramModel) else content


def _of_run(run: Run) -> dict[str, Any]:
    numbers, settings = dict(run.evaluation or {}), dict(run.settings)
    if run.sample is not None:  # what is known of all documents is long
        settings["text"] = {**settings["text"], "sample": run.sample.part}
    return {
        "changed_since": run.broken_seal,
        **{name: value for name, value in numbers.items() if name != "group"},
        "settings": settings,
    }


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.exists())
