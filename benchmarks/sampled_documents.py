"""A sample of documents and a cheap model of all of them: how near the estimate comes, and how often its interval misses.

On each collection a Kneser-Ney 5-gram (words, unseen ones spelled) is the proxy; an LSTM and a Transformer (subwords), all
trained here, are the models that cost. Each scores every document once, so the truth is known; the totals are kept in a
cache. Each draw then takes documents at random and makes the estimates of `lmgauge eval --proxy --sample` from them.

* **times**: mean square error of a plain sample (total nats over total bytes), divided by that of the estimate.
* **cover**: 95 % intervals that hold the figure of the whole collection: of bits per byte, per token, and of a plain sample.
* **useless**: the first two with random numbers for a proxy, and with three of them beside the 5-gram.
* **alarms**: tests at 5 % of two models that do not differ on texts of these documents, drawn with replacement; each scores
  the same sample of such a text.

    python benchmarks/sampled_documents.py --cache /tmp/totals

Texts come from the folder of LMGAUGE_DATA. The models take half an hour once; 1,000 draws a few minutes.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

import lmgauge
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.numerics.intervals import Spread
from lmgauge.numerics.sampling import draw, estimated, known, ratio_of
from simulate_verdicts import Documents, Floats, Ints, articles, shuffled, unpacked

SIZES = (10, 20, 50, 100, 200)
MODELS = ("lstm", "transformer")


# --- collections: training lines, documents ----------------------------------------------------------------------------


def books(data: Path) -> tuple[list[str], Documents]:
    """Chapters of novels, and other parts that begin with a heading."""
    with (data / "classic-books" / "index.tsv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["split"] == "test"]
    lines = unpacked(data / "classic-books" / "test.txt.gz")
    chapters: Documents = []
    for row in rows:
        begin = int(row["first_line"]) - 1
        chapters.append([])
        for line in lines[begin : begin + int(row["lines"])]:
            if re.match(r"(CHAPTER|Chapter|BOOK|PART|Part|[IVXLC]+\.?$|[A-Z][A-Z .,'-]{3,60}$)", line) and chapters[-1]:
                chapters.append([])
            chapters[-1].append(line)
    valid = unpacked(data / "classic-books" / "valid.txt.gz")
    return valid[:4500], [chapter for chapter in chapters if 500 < sum(map(len, chapter)) < 100_000][:600]


def calls(data: Path) -> tuple[list[str], Documents]:
    """Stretches of earnings calls, of 20 to 1,000 words; a line is 25 words, as there is no punctuation."""
    rows = [line.split("\t")[1].split() for line in unpacked(data / "asr-earnings21" / "ref.tsv.gz")]
    texts = [[" ".join(words[i : i + 25]) for i in range(0, len(words), 25)] for words in rows]
    generator, parts = np.random.default_rng(0), []
    for lines in texts[6:]:
        begin = 0
        while begin < len(lines):
            length = int(np.clip(generator.lognormal(2.0, 0.8), 1, 40))
            parts.append(lines[begin : begin + length])
            begin += length
    return [line for lines in texts[:6] for line in lines] + unpacked(data / "wikitext-2" / "valid.txt.gz")[:2000], parts


def wiki(data: Path) -> tuple[list[str], Documents]:
    """Articles of Wikipedia, whole."""
    documents = shuffled(articles(data))
    return [line for text in documents[:100] for line in text], documents[200:500]


COLLECTIONS: dict[str, Callable[[Path], tuple[list[str], Documents]]] = {"books": books, "calls": calls, "wiki": wiki}


def totals(name: str, data: Path, cache: Path) -> dict[str, Floats]:
    """Return what each model gave each document: nats and events, and the bytes of each; read from the cache if there."""
    file = cache / f"{name}.npz"
    if not file.exists():
        train, documents = COLLECTIONS[name](data)
        lines = [line for text in documents for line in text]
        of_line = np.repeat(np.arange(len(documents)), [len(text) for text in documents])
        columns = {"bytes": np.bincount(of_line, [len(line.encode()) + 1 for line in lines])}
        corpus = lmgauge.Corpus.from_strings(train)
        models = {"kn5": lmgauge.train("modified-kneser-ney", corpus, order=5, vocabulary="spelled", reserved="unk")}
        recipe = {"tokenizer": "bpe:4000", "optimizer": "adamw", "schedule": "cosine", "epochs": 2, "threads": 1}
        recipe |= {"sum_over_steps": False, "learning_rate": 0.003, "warmup": 50, "steps": 64, "batch_size": 32}
        for kind in MODELS:
            folder = cache / f"{name}-{kind}"
            if not folder.exists():
                lmgauge.train_neural(kind, corpus, output=folder, **recipe)
            models[kind] = lmgauge.load_model(folder, device="cpu")
        for label, model in models.items():
            tally = EventSums()
            for batch in model.score(lmgauge.Corpus.from_strings(lines)):
                tally.add(batch)
            sums = tally.per_segment()
            columns[label] = np.bincount(of_line, -sums.nats)
            columns[f"{label} events"] = np.bincount(of_line, sums.events)
        np.savez(file, **columns)
    return dict(np.load(file))


def estimate(columns: dict[str, Floats], label: str, proxies: Floats, events: Floats, drawn: Ints) -> tuple[Spread, Spread]:
    """Return nats per byte and per event, as `lmgauge eval --sample` has them."""
    sizes = columns["bytes"]
    upper = estimated(columns[label][drawn], sizes, proxies, drawn)
    lower = estimated(columns[f"{label} events"][drawn], sizes, events, drawn)
    return ratio_of(upper, known(sizes, drawn), sizes, drawn), ratio_of(upper, lower, sizes, drawn)


def holds(spread: Spread, truth: float) -> bool:
    interval = spread.interval()
    return interval.low <= truth <= interval.high


def simulate(columns: dict[str, Floats], label: str, count: int, draws: int) -> str:
    """Return a row of the table."""
    sizes, nats = columns["bytes"], columns[label]
    documents = len(sizes)
    per_byte, per_event = nats.sum() / sizes.sum(), nats.sum() / columns[f"{label} events"].sum()
    generator = np.random.default_rng(count)
    none, own = np.zeros((documents, 0)), columns["kn5"][:, None]
    noise = generator.uniform(size=(documents, 3)) * sizes.mean()
    helpers = {"plain": (none, none), "kn5": (own, columns["kn5 events"][:, None]), "noise": (noise[:, :1], noise[:, :1])}
    if count >= 50:  # ten documents a proxy
        helpers["kn5 and noise"] = np.column_stack((own, noise)), none
    errors: dict[str, list[float]] = {name: [] for name in helpers}
    hits: dict[str, list[bool]] = {}
    for number in range(draws):
        drawn = draw(documents, count, number)
        for name, (proxies, events) in helpers.items():
            of_bytes, of_events = estimate(columns, label, proxies, events, drawn)
            errors[name].append((of_bytes.ratio - per_byte) ** 2)
            hits.setdefault(name, []).append(holds(of_bytes, per_byte))
            hits.setdefault(f"{name} events", []).append(holds(of_events, per_event))
    times = {name: float(np.mean(errors["plain"]) / np.mean(values)) for name, values in errors.items()}
    cover = {name: f"{100 * np.mean(values):.1f}" for name, values in hits.items()}
    alarms = 100 * np.mean([false_alarm(columns, label, count, number) for number in range(draws)])
    several = f"{times['kn5 and noise']:.2f} {cover['kn5 and noise']}" if count >= 50 else "-"
    return (
        f"{label:12} {count:4} {times['kn5']:6.2f}   {cover['kn5']} {cover['kn5 events']} {cover['plain']}   "
        f"{times['noise']:.3f} {cover['noise']}   {several}   {alarms:.1f}"
    )


def false_alarm(columns: dict[str, Floats], label: str, count: int, number: int) -> bool:
    """Return whether the test finds a difference of two models that have none, on a text drawn from these documents."""
    sizes = columns["bytes"]
    rival = columns[next(one for one in MODELS if one != label)]
    difference = columns[label] - rival
    centered = difference - difference.sum() / sizes.sum() * sizes
    text = np.random.default_rng(number).integers(0, len(sizes), len(sizes))
    drawn = draw(len(sizes), count, number)
    upper = estimated(centered[text][drawn], sizes[text], columns["kn5"][text][:, None], drawn)
    return ratio_of(upper, known(sizes[text], drawn), sizes[text], drawn, like_texts=True).p_value < 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("totals"))
    parser.add_argument("--only", nargs="*", choices=COLLECTIONS, default=list(COLLECTIONS))
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    options.cache.mkdir(exist_ok=True)
    for name in options.only:
        columns = totals(name, Path(os.environ["LMGAUGE_DATA"]), options.cache)
        sizes, others = columns["bytes"], ("kn5", *MODELS)
        bits = ", ".join(f"{label} {columns[label].sum() / sizes.sum() / math.log(2):.3f}" for label in others)
        spread = sizes.std() / sizes.mean()
        print(f"\n{name}: {len(sizes)} documents, sizes vary by {100 * spread:.0f} %, bits per byte: {bits}")
        print("model        drawn  times   cover events plain   noise cover   with noise   alarms", flush=True)
        for label in MODELS:
            for count in (size for size in SIZES if size < len(sizes)):
                print(simulate(columns, label, count, options.draws), flush=True)


if __name__ == "__main__":
    main()
