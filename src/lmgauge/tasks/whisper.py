"""The text normalizers of Whisper, through the packages that bring them; imported only where they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from lmgauge.base.choices import WhisperNormalizer
from lmgauge.base.errors import MissingExtraError

_CLASSES: dict[WhisperNormalizer, str] = {"english": "EnglishTextNormalizer", "basic": "BasicTextNormalizer"}
# The package for this alone, then Whisper itself.
_PACKAGES = {"whisper_normalizer": "whisper-normalizer", "whisper.normalizers": "openai-whisper"}


@cache
def whisper_normalizer(name: WhisperNormalizer) -> tuple[Callable[[str], str], str]:
    """Return one of Whisper's normalizers, and what the signature says of it."""
    for module, package in _PACKAGES.items():
        try:
            normalizer = getattr(import_module(f"{module}.{name}"), _CLASSES[name])()
            return normalizer, f"{name}-{package}-{version(package)}"
        except (ImportError, PackageNotFoundError):
            continue
    raise MissingExtraError("whisper-normalizer", extra="whisper")
