"""Four kinds of models in one column of bits per byte, on four texts, with tests of their differences.

    python benchmarks/one_column.py             # about 15 minutes of CPU, nearly all of it to train the Transformers
    python benchmarks/one_column.py --text PTB
    python benchmarks/one_column.py --quick     # a small part of one text and a tiny network

A 5-gram of words that spells unseen ones, a 12-gram of characters, a 12-gram of bytes, and a small Transformer over 2,000
subwords: 2 layers, 128 wide, 0.7 million parameters; ten passes over Shakespeare, one over the others, two to five minutes
of a core. All four learn from the same text, at most 5 MB of it, and give every text a probability; `lmgauge.compare` holds
each against the words, and p-values are adjusted for the three comparisons (Holm). n-gram models are modified Kneser-Ney;
words that occur once are spelled. Texts come from the folder LMGAUGE_DATA. All that is trained stays in the cache folder.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import exact_models
import harness
import lmgauge
from exact_models import Texts

SUBWORDS = "bpe:2000"
NETWORK: dict[str, Any] = {
    "embedding_size": 128, "hidden_size": 512, "num_layers": 2, "dropout": 0.1, "learning_rate": 2e-3, "warmup": 200,
    "batch_size": 8, "steps": 128,
}  # fmt: skip
SMALL_MB = 2.0  # a text below it is read ten times by the network, larger ones once
LARGEST_MB = 5.0
AUDITED_BYTES = 600
HEAD = ("model", "bits per byte", "over words", "95 % interval", "p", "audit")


def all_texts(*, quick: bool) -> dict[str, Texts]:
    """Return the texts, none with more than 5 MB to learn from."""
    if quick:
        return {"books": exact_models.books(0.3, 0.03)}
    wikitext = exact_models.wikitext()
    small = replace(wikitext, train=exact_models.beginning(wikitext.train, LARGEST_MB))
    texts = (exact_models.shakespeare(), exact_models.treebank(), small, exact_models.books(LARGEST_MB, 0.5))
    return {one.name: one for one in texts}


def transformer(texts: Texts, *, quick: bool) -> Path:
    """Return the folder of a Transformer that learned from a text."""
    path = exact_models.models_folder(texts) / f"transformer{'-quick' if quick else ''}"
    if not (path / "config.json").exists():
        megabytes = texts.train.stat().st_size / harness.MB
        epochs = 10 if megabytes < SMALL_MB and not quick else 1
        harness.note(f"{texts.name}: training a Transformer, {epochs} epochs")
        began = time.process_time()
        lmgauge.train_neural(
            "transformer", texts.train, output=path, valid=texts.held_out, tokenizer=SUBWORDS, reserved="escape",
            epochs=epochs, threads=1, checkpoint_every=0, **NETWORK,
        )  # fmt: skip
        harness.note(f"{texts.name}: {time.process_time() - began:.0f} s of CPU")
    return path


def measure(texts: Texts, *, quick: bool, audited: bool) -> bool:
    """Print the table of a text, and return whether all audits passed."""
    paths = {
        "words, 5-gram": exact_models.trained(texts, "word", min_count=2).path,
        "characters, 12-gram": exact_models.trained(texts, "character").path,
        "bytes, 12-gram": exact_models.trained(texts, "byte").path,
        "Transformer, 2,000 subwords": transformer(texts, quick=quick),
    }
    runs = exact_models.models_folder(texts) / "runs"
    corpus = texts.corpus()
    models = {name: exact_models.loaded(texts, path) for name, path in paths.items()}
    results, folders = [], []
    for i, (name, model) in enumerate(models.items()):
        harness.note(f"{texts.name}: scoring with {name}")
        folders.append(runs / str(i))
        results.append(lmgauge.evaluate(model, corpus, output=folders[-1], threads=1))
    comparisons = [None, *lmgauge.compare(folders, text=corpus)]
    rows, passed = [], True
    for (name, model), result, comparison in zip(models.items(), results, comparisons, strict=True):
        audit = lmgauge.audit(model, corpus, compression_bytes=AUDITED_BYTES, contexts=20) if audited else None
        passed = passed and (audit is None or audit.passed)
        verdict = "" if audit is None else "passed" if audit.passed else "FAILED"
        bound = ">= " if result.bits_per_byte_is_bound else ""
        rows.append([name, f"{bound}{result.bits_per_byte:.4f}", *_difference(comparison), verdict])
    print(f"\n{texts.name}: {texts.train.stat().st_size:,} bytes to learn from, {results[0].bytes:,} measured\n")
    harness.print_table(HEAD, rows)
    return passed


def _difference(comparison: lmgauge.results.Comparison | None) -> tuple[str, str, str]:
    """Return the difference in bits per byte, its interval and the p-value, as cells."""
    if comparison is None:
        return "", "", ""
    if not comparison.verdict("bits_per_byte").comparable or comparison.part != "whole":
        return "not comparable", "", ""
    one = next(one for one in comparison.differences if one.metric == "bits_per_byte")
    interval = "" if one.interval is None else f"{one.interval.low:+.4f} to {one.interval.high:+.4f}"
    p = comparison.p_value_holm
    return f"{one.difference:+.4f}", interval, "" if p is None else "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="a small part of one text, a network of one pass")
    options.add_argument("--text", nargs="+", metavar="NAME", help="only these texts")
    options.add_argument("--no-audit", action="store_true", help="leave audits out")
    options.add_argument("--train-only", action="store_true", help="train the networks and print nothing")
    arguments = options.parse_args()
    texts = all_texts(quick=arguments.quick)
    missing = sorted(set(arguments.text or ()) - set(texts))
    if missing:
        harness.give_up(f"no such text: {', '.join(missing)}; there are {', '.join(texts)}")
    chosen = [one for name, one in texts.items() if name in (arguments.text or texts)]
    if arguments.train_only:
        for one in chosen:
            transformer(one, quick=arguments.quick)
        return 0
    harness.print_machine(harness.lmgauge_program(None))
    passed = [measure(one, quick=arguments.quick, audited=not arguments.no_audit) for one in chosen]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
