"""Words of the field that people try in place of a command's name."""

from __future__ import annotations

GUESSES = {
    "train": ("build", "count", "estimate", "fit", "learn", "lm", "lmplz", "ngram", "ngram-count"),
    "mix": ("ensemble", "interpolate"),
    "cache": ("adapt", "dynamic"),
    "spell": ("characters", "oov", "open-vocabulary", "speller", "spelling", "unk"),
    "prune": ("compress", "shrink", "trim"),
    "sample": ("gen", "generate", "generation"),
    "eval": ("bpb", "evaluate", "evaluation", "measure", "perplexity", "ppl", "query", "test"),
    "baseline": ("baselines", "compressors", "gzip", "ladder", "xz", "zstd"),
    "merge": ("combine", "gather", "join", "reduce", "shard", "shards"),
    "diagnose": ("analyze", "errors"),
    "report": ("dashboard", "html", "page", "plot", "view", "visualize"),
    "explore": ("browse", "serve", "server", "ui", "viewer", "watch"),
    "filter": ("ccnet", "drop", "keep", "prefilter"),
    "percentiles": ("cutoffs", "quantiles", "thresholds"),
    "audit": ("check", "prove", "validate", "verify"),
    "overlap": ("contamination", "decontaminate", "dedup", "leak"),
    "membership": ("extraction", "memorization", "mia", "min-k", "mink", "seen"),
    "pairs": ("blimp", "minimal-pairs", "syntaxgym"),
    "multiple-choice": ("choices", "questions", "arc", "hellaswag", "mmlu"),
    "compare": ("bootstrap", "diff", "paired", "significance"),
    "divergence": ("js", "jsd", "kl", "kl-divergence", "kld"),
    "correlate": ("correlation", "pearson", "spearman"),
    "bleu": ("sacrebleu",),
    "wer": ("jiwer",),
    "rescore": ("mert", "n-best", "nbest", "rerank", "rescoring"),
    "f1": ("accuracy", "classification", "precision", "recall"),
    "doctor": ("diagnostics", "env", "environment", "install", "selfcheck", "version", "versions"),
    "info": ("describe", "inspect", "show"),
    "convert": ("arpa", "export"),
    "select": ("moore-lewis", "xenc", "choose", "data-selection"),
    "calc": ("bits", "entropy", "calculate"),
}
"""Command -> words of the field that people try in its place."""
