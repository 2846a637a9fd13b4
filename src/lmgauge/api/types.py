"""What verbs take: models and texts, as objects or by path; light, as signatures are read before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Union

from lmgauge.files import PATHS as PATHS
from lmgauge.files import PathLike as PathLike

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus

# Unions with names in quotes, which only type checkers import.
Text = Union[PathLike, Sequence[PathLike], "Corpus"]
Model = Union["LanguageModel", PathLike]
Models = Union[Model, Sequence[Model], Mapping[str, Model]]  # noqa: UP007
