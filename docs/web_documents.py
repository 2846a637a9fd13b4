"""Documents as a crawl brings them, made of the texts of the book, for the pages on filtering."""

from __future__ import annotations

import json
import random
from pathlib import Path

_JUNK = (
    "We use cookies. Accept all cookies. Reject all cookies. Manage cookies. Read our cookie policy.",
    "Home | Products | News | Contact | Log in | Register | Cart (0) | Checkout | Sitemap | Terms | Privacy",
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore",
    "0001 0.25 kg 3.99 EUR 0002 0.50 kg 7.49 EUR 0003 1.00 kg 12.99 EUR 0004 2.50 kg 29.99 EUR",
)


def write(path: str | Path, documents: int = 600, seed: int = 7) -> None:
    """Write documents as JSONL: prose, other languages, junk, words in no order, and a few records without a usable text.

    Args:
        path: of the file.
        documents: how many.
        seed: of what is drawn.
    """
    rng = random.Random(seed)
    prose = [line for line in Path("train.txt").read_text(encoding="utf-8").split("\n") if len(line) > 200]
    others = {name: Path(f"{name}.txt").read_text(encoding="utf-8").split("\n")[:45] for name in ("de", "tr")}
    lines = []
    for number in range(documents):
        kind = rng.random()
        if kind < 0.62:
            start = rng.randrange(len(prose) - 3)
            language, text = "en", "\n".join(prose[start : start + rng.randint(1, 3)])
        elif kind < 0.84:
            language = "de" if kind < 0.74 else "tr"
            text = " ".join(rng.sample(others[language], 4))
        elif kind < 0.92:
            language, text = "en", " ".join(rng.choices(_JUNK, k=rng.randint(1, 4)))
        else:
            words = rng.choice(prose).split()
            rng.shuffle(words)
            language, text = "en", " ".join(words)
        record = {"id": f"doc-{number:03d}", "url": f"https://example.org/{number}", "lang": language, "text": text}
        lines.append(json.dumps(record, ensure_ascii=False))
    lines[40] = '{"id": "doc-040", "url": "https://example.org/40", "lang": "en", "text": null}'
    lines[80] = lines[80][: len(lines[80]) // 2]
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
