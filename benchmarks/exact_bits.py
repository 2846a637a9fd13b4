"""Exact bits per byte of n-gram models of words, characters and bytes, on texts of many kinds.

    python benchmarks/exact_bits.py                       # all texts, about 10 minutes of CPU
    python benchmarks/exact_bits.py --quick               # small parts of two of them, half a minute
    python benchmarks/exact_bits.py --text PTB "PUD th"   # some of them

Every model gives every text a probability: unseen words are spelled, white space is predicted, unseen characters are shared
out, and bytes are all known. So the figures of one row can be compared. `words, 2` knows the words that occur twice or more
in the training text, and spells more; the columns on spelling and white space are of these. `<unk>` in a published text
is a word like others, but in `WikiText-2, all words`, where it is the unknown word of the training text, and
the test articles have the words themselves. All models are modified Kneser-Ney: words of order 5, the others of 12.
Texts come from the folder LMGAUGE_DATA.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator

import exact_models
import harness
import lmgauge
from exact_models import Texts

COLUMNS = (("words", "word", 1), ("words, 2", "word", 2), ("characters", "character", 1), ("bytes", "byte", 1))
AUDITED_BYTES = 1500
UNITS = tuple(name for name, *_ in COLUMNS)
HEAD = ("text", "train, MB", "test, MB", "unseen", *UNITS, "spelling", "white space", "audit")


def cells(texts: Texts, *, audit: bool) -> Iterator[str]:
    """Yield the cells of a text's row, as they are measured."""
    corpus = texts.corpus()
    size = texts.test.stat().st_size
    yield texts.name
    yield f"{texts.train.stat().st_size / harness.MB:.1f}"
    yield f"{size / harness.MB:.2f}"
    models: dict[str, lmgauge.LanguageModel] = {}
    figures: list[str] = []
    unseen = ""
    for name, unit, min_count in COLUMNS:
        training = exact_models.trained(texts, unit, min_count=min_count)
        models[name] = exact_models.loaded(texts, training.path)
        result = _measured(
            texts, name, models[name], "" if training.cpu is None else f"trained in {training.cpu:.1f} s of CPU"
        )
        figures.append(_bits(result))
        unseen = unseen or f"{result.oov_rate:.2%}"
    yield unseen
    yield from figures
    yield from _parts(models["words, 2"], corpus, size)
    yield _audits(texts, models) if audit else ""


def _measured(texts: Texts, name: str, model: lmgauge.LanguageModel, how: str = "") -> lmgauge.results.Evaluation:
    began = time.process_time()
    result = lmgauge.evaluate(model, texts.corpus())
    seconds = time.process_time() - began
    harness.note(f"{texts.name}, {name}: {_bits(result)} bits per byte, scored in {seconds:.1f} s of CPU{how}")
    return result


def _bits(result: lmgauge.results.Evaluation) -> str:
    return f"{'>= ' if result.bits_per_byte_is_bound else ''}{result.bits_per_byte:.4f}"


def _parts(model: lmgauge.LanguageModel, corpus: lmgauge.Corpus, size: int) -> tuple[str, str]:
    """Return the bits per byte that letters of unseen words, and white space, cost a model of words."""
    spelling = separators = 0.0
    for batch in model.score(corpus):
        spelling -= math.fsum(batch.extra["spelling"])
        separators -= math.fsum(batch.extra["separator"])
    return f"{spelling / math.log(2) / size:.4f}", f"{separators / math.log(2) / size:.5f}"


def _audits(texts: Texts, models: dict[str, lmgauge.LanguageModel]) -> str:
    """Return whether all models of the row, and the decoder with each, give back a sample of the text."""
    failed = []
    for name, model in models.items():
        audit = lmgauge.audit(model, texts.corpus(), compression_bytes=AUDITED_BYTES, contexts=20)
        wrong = [f"{check.name}: {check.evidence}" for check in audit.checks if check.verdict == "FAIL"]
        harness.note(f"{texts.name}, {name}: audit {'; '.join(wrong) or 'passed'}")
        failed += [] if audit.passed else [name]
    return f"failed: {', '.join(failed)}" if failed else "passed"


def all_texts(*, quick: bool, megabytes: float) -> dict[str, Texts]:
    """Return the texts of a run, by name."""
    if quick:
        chosen = [exact_models.books(1.0, 0.1), exact_models.language("th")]
    else:
        chosen = [exact_models.treebank(), exact_models.wikitext(), exact_models.wikitext_with_all_words()]
        for code in exact_models.LANGUAGES:
            chosen.append(exact_models.language(code))
            if code == "en":
                chosen.append(exact_models.language(code, "treebank"))
        chosen.append(exact_models.books(megabytes))
    return {texts.name: texts for texts in chosen}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="small parts of two texts")
    options.add_argument("--text", nargs="+", metavar="NAME", help="only these texts")
    options.add_argument("--megabytes", type=float, default=10.0, help="of the books to learn from (10)")
    options.add_argument("--no-audit", action="store_true", help="leave audits out")
    arguments = options.parse_args()
    texts = all_texts(quick=arguments.quick, megabytes=arguments.megabytes)
    missing = sorted(set(arguments.text or ()) - set(texts))
    if missing:
        harness.give_up(f"no such text: {', '.join(missing)}; there are {', '.join(texts)}")
    harness.print_machine(harness.lmgauge_program(None))
    chosen = [one for name, one in texts.items() if name in (arguments.text or texts)]
    rows = [list(cells(one, audit=not arguments.no_audit)) for one in chosen]
    harness.print_table(HEAD, rows)
    return 0 if not any("failed" in row[-1] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
