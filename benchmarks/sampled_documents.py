"""A sample of documents and a cheap model of all of them: how near the estimate comes, and how often its interval misses.

On each collection a Kneser-Ney 5-gram (words, unseen ones spelled) is the proxy; an LSTM and a Transformer (subwords), all
trained here, are the models that cost. Each scores every document once, so the truth is known; the totals are kept in a
cache. Each draw then makes the estimates of `lmgauge eval --proxy --sample` from them.

* **times**: mean square error of a plain sample (documents drawn at random, total nats over total bytes, or tokens), divided
  by that of the estimate; of bits per byte, and per token.
* **cover**: 95 % intervals that hold the figure of the whole collection: of bits per byte, per token, and of a plain sample.
* **half**: the first two of a group, half of the documents, where six of it are drawn.
* **noise**: times and cover with random numbers for a proxy, and with three such proxies beside the 5-gram.
* **alarms**: tests at 5 % of two models that do not differ on texts of these documents, drawn with replacement; each scores
  the same sample of such a text; of bits per byte, and per token.

With `--until` the sample is as large as `lmgauge eval --until` makes it, by a first one of 20 documents: how often its
intervals hold, of how many draws half an interval is as narrow as asked, and the documents drawn.

    python benchmarks/sampled_documents.py --cache /tmp/totals
    python benchmarks/sampled_documents.py --cache /tmp/totals --until 0.005 0.01 0.02

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
from typing import Any

import numpy as np

import lmgauge
from lmgauge.evaluation.estimate import PILOT
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.evaluation.sampled import Sample
from lmgauge.numerics.intervals import Spread
from lmgauge.numerics.sampling import documents_until, draw
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


def reviews(data: Path) -> tuple[list[str], Documents]:
    """Film reviews that people wrote on a site, in Korean, each a line: the texts of the web that there are here."""
    valid, test = (unpacked(data / "multilingual" / "ko-reviews" / f"{part}.txt.gz") for part in ("valid", "test"))
    return valid[:8000], [[line] for line in test[:2000] if line.strip()]


COLLECTIONS: dict[str, Callable[[Path], tuple[list[str], Documents]]]
COLLECTIONS = {"books": books, "calls": calls, "wiki": wiki, "reviews": reviews}


def totals(name: str, data: Path, cache: Path) -> dict[str, Floats]:
    """Return what each model gave each document: nats, unseen and all events; and the bytes of each; cached."""
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
            tally, unseen = EventSums(), np.zeros(len(documents))
            for batch in model.score(lmgauge.Corpus.from_strings(lines)):
                tally.add(batch)
                unseen += np.bincount(of_line[batch.row_segments()[batch.unseen()]], minlength=len(documents))
            sums = tally.per_segment()
            columns[label] = np.bincount(of_line, -sums.nats)
            columns[f"{label} unseen"] = unseen
            columns[f"{label} events"] = np.bincount(of_line, sums.events)
        np.savez(file, **columns)
    return dict(np.load(file))


def of_proxy(columns: dict[str, Floats], label: str) -> list[Floats]:
    return [columns[f"{label}{column}"] for column in ("", " unseen", " events")]


def spreads(sizes: Floats, proxies: list[list[Floats]], drawn: Ints, values: list[Floats], **how: Any) -> dict[str, Spread]:
    """Return nats per byte and per event, as `lmgauge eval --sample` has them, of nats and events of each document."""
    said = {str(i): tuple(column.tolist() for column in proxy) for i, proxy in enumerate(proxies)}
    sample = Sample("", 0, drawn.tolist(), "", 0, [], {"bytes": sizes.tolist()}, said)
    return sample.spreads(*(column[drawn] for column in values), **how)


def holds(spread: Spread, truth: float) -> bool:
    interval = spread.interval()
    return interval.low <= truth <= interval.high


def simulate(columns: dict[str, Floats], label: str, count: int, draws: int) -> str:
    """Return a row of the table."""
    sizes, values = columns["bytes"], [columns[label], columns[f"{label} events"]]
    truth = {"bytes": values[0].sum() / sizes.sum(), "events": values[0].sum() / values[1].sum()}
    own, noise = of_proxy(columns, "kn5"), noises(len(sizes), count, sizes.mean())
    rates = {
        "kn5": own[0] / sizes,
        "several": own[0] / sizes,
    }
    half = np.random.default_rng(count).uniform(size=len(sizes)) < 0.5
    truth["half"] = values[0][half].sum() / sizes[half].sum()
    helpers = {"plain": [], "kn5": [own], "noise": noise[:1]}
    if count >= 40:  # ten documents a proxy
        helpers["several"] = [own, *noise]
    errors: dict[tuple[str, str], list[float]] = {}
    hits: dict[tuple[str, str], list[bool]] = {}
    for number in range(draws):
        for name, proxies in helpers.items():
            drawn = draw(rates.get(name, np.zeros(len(sizes))), count, number)
            estimates = spreads(sizes, proxies, drawn, values)
            if half[drawn].sum() >= 6:
                estimates["half"] = spreads(sizes, proxies, drawn, values, part=half)["bytes"]
            for per, spread in estimates.items():
                errors.setdefault((name, per), []).append((spread.ratio - truth[per]) ** 2)
                hits.setdefault((name, per), []).append(holds(spread, truth[per]))
    times = {key: float(np.mean(errors["plain", key[1]]) / np.mean(squares)) for key, squares in errors.items()}
    shown = {key: f"{times[key]:6.2f} {100 * np.mean(held):5.1f}" for key, held in hits.items()}
    alarms = 100 * np.mean([false_alarms(columns, label, count, number) for number in range(draws)], axis=0)
    return (
        f"{label:12} {count:4} {shown['kn5', 'bytes']}   {shown['kn5', 'events']}   {shown['plain', 'bytes'][7:]}   "
        f"{shown.get(('kn5', 'half'), '     -     -')}   "
        f"{shown['noise', 'bytes']}   {shown.get(('several', 'bytes'), '     -     -')}   {alarms[0]:.1f} {alarms[1]:.1f}"
    )


def until(columns: dict[str, Floats], label: str, share: float, draws: int) -> str:
    """Return a row of the table of samples that are as large as asked."""
    sizes, values, own = columns["bytes"], [columns[label], columns[f"{label} events"]], of_proxy(columns, "kn5")
    truth, ways = values[0].sum() / sizes.sum(), {"proxy": [own], "plain": []}
    shown = []
    for proxies in ways.values():
        rates, rows = own[0] / sizes * bool(proxies), []
        for number in range(draws):
            pilot = spreads(sizes, proxies, draw(rates, PILOT, number), values)["bytes"]
            count = min(len(sizes), max(PILOT, math.ceil(documents_until(share, pilot, len(sizes)))))
            spread = spreads(sizes, proxies, draw(rates, count, number), values)["bytes"]
            ends = spread.interval()
            rows.append((holds(spread, truth), (ends.high - ends.low) / 2 <= share * spread.ratio, count))
        held, kept, counts = np.array(rows, float).T
        shown.append(f"{100 * held.mean():6.1f} {100 * kept.mean():6.1f} {np.median(counts):6.0f}")
    return f"{label:12} {100 * share:4.1f} % {'   '.join(shown)}"


def noises(documents: int, seed: int, size: float) -> list[list[Floats]]:
    """Return three proxies that know nothing."""
    return list(np.random.default_rng(seed).uniform(size=(3, 3, documents)) * size)


def false_alarms(columns: dict[str, Floats], label: str, count: int, number: int) -> list[bool]:
    """Return whether tests find a difference of two models that have none, on a text drawn from these documents."""
    text = np.random.default_rng(number).integers(0, len(columns["bytes"]), len(columns["bytes"]))
    of_text = {name: column[text] for name, column in columns.items()}
    rival = next(one for one in MODELS if one != label)
    drawn = draw(of_text["kn5"] / of_text["bytes"], count, number)
    alarms = []
    for per in ("bytes", "events"):
        size = f"{label} events" if per == "events" else per
        shift = (columns[label] - columns[rival]).sum() / columns[size].sum()
        difference = of_text[label] - of_text[rival] - shift * of_text[size]
        values = [difference, of_text[f"{label} events"]]
        tested = spreads(of_text["bytes"], [of_proxy(of_text, "kn5")], drawn, values, like_texts=True)
        alarms.append(tested[per].p_value < 0.05)
    return alarms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("totals"))
    parser.add_argument("--only", nargs="*", choices=COLLECTIONS, default=list(COLLECTIONS))
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--until", nargs="*", type=float, help="shares of the figure that half an interval is to be")
    options = parser.parse_args()
    options.cache.mkdir(exist_ok=True)
    for name in options.only:
        columns = totals(name, Path(os.environ["LMGAUGE_DATA"]), options.cache)
        sizes, others = columns["bytes"], ("kn5", *MODELS)
        bits = ", ".join(f"{label} {columns[label].sum() / sizes.sum() / math.log(2):.3f}" for label in others)
        spread = sizes.std() / sizes.mean()
        print(f"\n{name}: {len(sizes)} documents, sizes vary by {100 * spread:.0f} %, bits per byte: {bits}")
        if options.until:
            print("model        asked     cover   kept  drawn   without proxy", flush=True)
            for label in MODELS:
                for share in options.until:
                    print(until(columns, label, share, options.draws), flush=True)
            continue
        print("model        drawn times cover   per token     plain   half       noise      several     alarms", flush=True)
        for label in MODELS:
            for count in (size for size in SIZES if size < len(sizes)):
                print(simulate(columns, label, count, options.draws), flush=True)


if __name__ == "__main__":
    main()
