"""What each extra is for: the one table of it. Which libraries an extra installs is read from the package's metadata."""

from __future__ import annotations

from collections.abc import Mapping

PURPOSES: Mapping[str, str] = {
    "report": "pages and charts",
    "explore": "the explorer in the browser",
    "pandas": "to_pandas() of results",
    "neural": "networks of torch and transformers",
    "gguf": "GGUF files, with llama-cpp-python",
    "lightning": "numbers during a training with Lightning",
    "torchmetrics": "numbers during a training, as a metric",
    "tensorboard": "numbers during a training, in TensorBoard",
    "audit": "the compression check of an audit (level 5)",
    "overlap": "near duplicates",
    "icu": "words of languages without spaces",
    "tokenizers": "a tokenizer.json for n-gram models",
    "sentencepiece": "a SentencePiece .model for n-gram models, CCNet's among them",
    "zstd": "files ending in .zst",
    "remote": "texts at s3:// addresses",
    "translation": "sacreBLEU's tokenizers and test sets",
    "ja": "BLEU's tokenizer for Japanese",
    "ko": "BLEU's tokenizer for Korean",
    "spm": "BLEU's tokenizers of SentencePiece (FLORES)",
    "labels": "F1, with scikit-learn",
    "ray": "training and evaluation on the machines of a Ray cluster",
    "datatrove": "steps for datatrove's pipelines",
    "whisper": "Whisper's normalizer of transcripts",
    "docs": "building the book",
    "test": "running the tests",
}
"""Extra -> what it is for, as `lmgauge doctor` and the page on installing say it."""

FOR_CONTRIBUTORS = frozenset({"docs", "test"})
"""Extras that nobody needs who uses lmgauge: libraries of theirs that are too old are not a problem of the install."""

EVERYTHING = "all"
"""The extra that only names others."""
