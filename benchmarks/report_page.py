"""What a report costs: the whole command, its memory, the size of the page, and how soon a browser shows it.

Runs of growing texts, one model and two, written to files and opened from there in Chromium, if that is installed.

    python benchmarks/report_page.py --words 100000 1000000 10000000 --runs 3
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import harness
import models
from harness import Goal, Measurement, median

SIZE_GOAL, PAINT_GOAL = 2.0, 1.0  # MB; seconds
ORDERS = (5, 2)
TRAIN_BYTES = 20_000_000
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def _beginning(text: Path, words: int, size: int, name: str) -> Path:
    """The first lines of a text, at most `words` words and `size` bytes, kept in the cache folder."""
    target = harness.cache_folder() / name
    if not target.exists():
        harness.run_child([sys.executable, __file__, "head", str(text), str(words), str(size), str(target)])
    return target


def _write_beginning(text: str, words: str, size: str, target: str) -> None:
    left, bytes_left = int(words), int(size)
    with open(text, "rb") as source, open(target, "wb") as out:
        for line in source:
            left -= len(line.split())
            bytes_left -= len(line)
            if left < 0 or bytes_left < 0:
                break
            out.write(line)


def _first_paint(page: Path) -> float | None:
    """Seconds from opening a page to what is first seen of it, the best of three; None without a browser."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        return None
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(3):
            tab = browser.new_page()
            tab.goto(page.as_uri())
            while (seen := tab.evaluate(PAINT)) is None:  # the page's policy allows no script that waits within it
                tab.wait_for_timeout(20)
            times.append(seen / 1000)
            tab.close()
        browser.close()
    return min(times)


def main() -> int:
    options = harness.parser(__doc__ or "", runs=3)
    options.add_argument("--words", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000], metavar="N")
    arguments = options.parse_args()

    lmgauge = harness.lmgauge_program(arguments.lmgauge)
    source = harness.book_text("train.txt")
    train = _beginning(harness.book_text("test.txt"), 1 << 60, TRAIN_BYTES, "train-page.txt")
    harness.print_machine(lmgauge)
    folders = {f"kn{order}": models.lmgauge_model(lmgauge, train, order, arguments.work) for order in ORDERS}
    rows, sizes, paints = [], [], []
    with harness.work_folder(arguments.work) as work:
        for words in arguments.words:
            text = _beginning(source, words, 1 << 60, f"page-{words}.txt")
            for name, model in folders.items():
                harness.run_child([lmgauge, "eval", "-m", str(model), str(text), "-o", str(work / f"{name}-{words}")])
            for count in (1, 2):
                runs = [str(work / f"{name}-{words}") for name in list(folders)[:count]]
                page = work / f"{count}-{words}.html"
                command = [lmgauge, "report", *runs, "-o", str(page)]
                measured: list[Measurement] = [harness.run_child(command) for _ in range(arguments.runs)]
                size, paint = page.stat().st_size / harness.MB, _first_paint(page)
                sizes.append(size)
                paints += [] if paint is None else [paint]
                rows.append(
                    [
                        f"{words:,}",
                        str(count),
                        harness.seconds([one.wall for one in measured]),
                        harness.seconds([one.cpu for one in measured]),
                        harness.megabytes(median([one.peak for one in measured])),
                        f"{size:.2f}",
                        "-" if paint is None else f"{paint:.2f}",
                    ]
                )
    head = ["words", "models", "wall, s", "CPU, s", "memory, MB", "page, MB", "first paint, s"]
    harness.print_table(head, rows)
    goals = [Goal("largest page, MB", max(sizes), SIZE_GOAL, at_least=False, unit="")]
    if paints:
        goals.append(Goal("slowest first paint, s", max(paints), PAINT_GOAL, at_least=False, unit=""))
    return harness.report_goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["head"]:
        _write_beginning(*sys.argv[2:])
    else:
        sys.exit(main())
