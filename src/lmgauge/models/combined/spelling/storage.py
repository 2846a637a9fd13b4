"""The folder `spelling` inside the folder of a model: the model of characters, and config.json with the separators."""

# The rest of the folder is the model as it was: other programs read it as before.

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.base.choices import ARPA_ENDINGS, KENLM_ENDINGS
from lmgauge.base.errors import UsageError
from lmgauge.base.files import writing_directory
from lmgauge.models.combined.spelling.speller import Spelling
from lmgauge.models.combined.spelling.whitespace_model import SeparatorModel
from lmgauge.models.protocol import SPELLING_FOLDER, write_config
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from lmgauge.models.combined.spelling.model import SpelledModel

FORMAT_VERSION = 1
KIND = "lmgauge-spelling"
CONFIG, CHARACTERS = "config.json", "characters"


def save_spelled(model: SpelledModel, path: str | Path) -> None:
    """Write the folder of a spelled model; see `SpelledModel.save`."""
    # Raises OutputError: it cannot be written; nothing is left behind.
    refuse_file(path)
    with writing_around(Path(path), is_ours=model.inner.may_replace) as (folder, inside):
        model.inner.save(inside)
        add_spelling(model, folder)


@contextmanager
def writing_around(path: Path, *, is_ours: Callable[[Path], bool]) -> Iterator[tuple[Path, Path]]:
    """Make the folder of a spelled model, which appears under `path`, whole, when the block ends well."""
    # Raises OutputError: the folder cannot be written; nothing is left behind.
    with writing_directory(path, is_ours=is_ours) as folder:
        inside = folder / "inner"
        yield folder, inside
        for file in list(inside.iterdir()):
            file.rename(folder / file.name)
        inside.rmdir()


def is_spelling_folder(path: Path) -> bool:
    """Return True if a folder has the files of a speller, sound or not, and nothing else: a new one may replace it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(is_spelling_folder(Path(folder)))
    True
    """
    return {file.name for file in path.iterdir()} <= {CONFIG, CHARACTERS}


def refuse_file(path: str | os.PathLike[str]) -> None:
    """Refuse the name of an ARPA or KenLM file as that of a spelled model."""
    if os.fspath(path).endswith((*ARPA_ENDINGS, *KENLM_ENDINGS)):
        raise UsageError(
            f"{os.fspath(path)}: a spelled model is a folder; a file of this form has no room for its speller. "
            "Name a folder, or leave out the spelling"
        )


def add_spelling(model: SpelledModel, folder: str | Path) -> None:
    """Write what makes a model spelled into the folder of the model inside."""
    # Raises OutputError: it cannot be written; nothing is left behind.
    spelling = None if model.speller is None else model.spelling
    write_spelling(folder, model.tokenizer, model.vocabulary, spelling, model.separators)


def write_spelling(
    folder: str | Path,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    spelling: Spelling | None,
    separators: SeparatorModel | None,
) -> None:
    """Write the folder `spelling` into the folder of a model; one that is there is replaced when the new one is whole."""
    # Raises OutputError: it cannot be written; nothing is left behind.
    config: dict[str, Any] = {
        "model_type": KIND,
        "format_version": FORMAT_VERSION,
        "tokenizer": tokenizer.fingerprint,
        "vocabulary_fingerprint": vocabulary.ids_fingerprint,
        "separators": None if separators is None else separators.to_dict(),
        "known_mass": None if spelling is None else spelling.known_mass.hex(),
        "characters": None if spelling is None else spelling.speller.fingerprint,
    }
    with writing_directory(Path(folder) / SPELLING_FOLDER, is_ours=is_spelling_folder) as inside:
        if spelling is not None:
            spelling.speller.characters.save(inside / CHARACTERS)
        write_config(inside, config, sealed=True)
