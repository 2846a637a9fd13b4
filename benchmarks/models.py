"""Trained models that several benchmarks load: made once, kept in the cache folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import harness


def text_key(text: Path, order: int) -> str:
    """A name for the model of this order trained on this text: changes when the text does."""
    size, time = text.stat().st_size, text.stat().st_mtime_ns
    return f"{order}-{hashlib.sha256(f'{text.resolve()} {size} {time}'.encode()).hexdigest()[:12]}"


def lmgauge_model(
    program: str, text: Path, order: int, folder: Path | None = None, smoothing: str = "modified-kneser-ney"
) -> Path:
    """The folder of a model of `text`, trained now if it is not there yet."""
    name = "lmgauge" if smoothing == "modified-kneser-ney" else f"lmgauge-{smoothing}"
    model = (folder or harness.cache_folder()) / f"{name}-{text_key(text, order)}"
    if not model.exists():
        harness.note(f"training {model.name} with lmgauge")
        kind = [smoothing, "--order", str(order), "--reserved", "escape"]
        harness.run_child([program, "train", *kind, str(text), "-o", str(model)])
    return model


def kenlm_model(programs: dict[str, str], text: Path, order: int, folder: Path | None = None) -> Path:
    """The probing binary of the same model by KenLM, estimated now if it is not there yet."""
    model = (folder or harness.cache_folder()) / f"kenlm-{text_key(text, order)}.binary"
    if not model.exists():
        harness.note(f"training {model.name} with lmplz")
        arpa, part = model.with_suffix(".arpa"), model.with_suffix(".part")
        sorting = ["-S", "4G", "-T", str(model.with_suffix(".sort")), "--discount_fallback"]
        harness.run_child([programs["lmplz"], "-o", str(order), *sorting, "--text", str(text), "--arpa", str(arpa)])
        harness.run_child([programs["build_binary"], "probing", str(arpa), str(part)])
        arpa.unlink()
        part.rename(model)
    return model


def type_counts(model: Path) -> list[int]:
    """How many n-grams of each order a model saved by lmgauge has; the first is the vocabulary."""
    counts: list[int] = json.loads((model / "config.json").read_text(encoding="utf-8"))["types"]
    return counts


def ngram_count(model: Path) -> int:
    """How many n-grams of all orders a model saved by lmgauge has."""
    return sum(type_counts(model))
