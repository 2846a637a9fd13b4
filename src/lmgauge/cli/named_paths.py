"""Which of the paths that a user names are models, where models and texts stand side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmgauge.choices import ARPA_ENDINGS, KENLM_ENDINGS


def model_among(texts: Sequence[str]) -> str | None:
    """Return the first path that is a model where texts are named; None if there is none."""
    return next((text for text in texts if _is_model(text)), None)


def models_and_texts(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the paths before the first that is not a model, and those from there on."""
    first = next((i for i, path in enumerate(paths) if not _is_model(path)), len(paths))
    return list(paths[:first]), list(paths[first:])


def _is_model(path: str) -> bool:
    # a model's folder, a file called as GGUF, ARPA and KenLM files are, or the address of a server
    named = path.endswith((".gguf", *ARPA_ENDINGS, *KENLM_ENDINGS)) or path.startswith(("http://", "https://"))
    return named or Path(path, "config.json").is_file()
