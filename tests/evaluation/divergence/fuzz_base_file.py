"""Read base files whose bytes were changed, as many as asked for: none may end in a traceback or a great allocation.

    python tests/evaluation/divergence/fuzz_base_file.py --inputs 100000 --seed 0

A part of the inputs is sealed again, so that what is behind the seal meets them. The process may have 1 GB of memory more
than it began with.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.evaluation.divergence import bases


def outcomes(inputs: int, seed: int, folder: Path) -> Counter[str]:
    """Return how often reading ended in which way."""
    chance = random.Random(seed)
    whole = [bases.write(folder / f"{stored}.base", stored).read_bytes() for stored in ("top", "float32", "bfloat16")]
    ends: Counter[str] = Counter()
    for _ in range(inputs):
        end = bases.attempt(folder / "changed.base", bases.changed(chance.choice(whole), chance))
        if "\n" in end:
            raise SystemExit(f"more than one line: {end}")
        ends[re.sub(r"[0-9]+|'[^']*'|\(.*", "N", end)[:80]] += 1
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcomes(10, 1, Path(folder))  # what is loaded once
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))
        for end, count in outcomes(asked.inputs, asked.seed, Path(folder)).most_common():
            print(f"{count:>8,}  {end}")


if __name__ == "__main__":
    main()
