"""The explorer and the clients of servers under load, on this machine's loopback address only.

python -m tests.load --minutes 5 [--json FILE]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.load.explorer import load_explorer
from tests.load.figures import save
from tests.load.servers import load_clients

_MOST_MINUTES = 60


def main() -> None:
    """Put both under load, half of the time each; exit with 1 if an answer was wrong."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=5.0, help=f"of both together, {_MOST_MINUTES} at most (5)")
    options.add_argument("--clients", type=int, default=4, help="how many ask at once (4)")
    options.add_argument("--seed", type=int, default=1, help="of what they ask (1)")
    options.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    chosen = options.parse_args()
    seconds = 30.0 * min(chosen.minutes, _MOST_MINUTES)
    loads = []
    for put in (load_explorer, load_clients):
        with tempfile.TemporaryDirectory() as folder:
            loads.append(put(Path(folder), seconds=seconds, clients=chosen.clients, seed=chosen.seed))
        print(loads[-1], flush=True)
    if chosen.json is not None:
        save(loads, chosen.json)
    sys.exit(any(load.wrong for load in loads))


if __name__ == "__main__":
    main()
