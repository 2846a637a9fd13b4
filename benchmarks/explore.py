"""How long `lmgauge explore` takes to answer on a run of ten million rows, and what memory it needs.

    python benchmarks/explore.py [--rows 10000000]

Builds a synthetic run (lines of 5 to 45 words, an n-gram model's look: word, log-probability, matched order), starts the
server in a process of its own and asks it over HTTP, as the page does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np

from lmgauge import Corpus, evaluate_scores
from lmgauge.evaluation.runs import SCORES_FILE, write_evaluation
from lmgauge.scores import EOS_KIND, ScoreBatch, ScoreWriter, Strings

WORDS = [f"word{number}" for number in range(20_000)]
_LINES = 10_000  # a group of rows


def batches(rows: int, text: Path) -> Iterator[ScoreBatch]:
    """Yield the score table of a text that is written as it goes."""
    random = np.random.default_rng(1)
    strings, sizes = Strings([*WORDS, "</s>"]), np.array([len(word) for word in WORDS])
    done, first = 0, 0
    with text.open("w") as file:
        while done < rows:
            events = random.integers(5, 46, _LINES)
            count = int(events.sum())
            words = (len(WORDS) * random.random(count) ** 3).astype(np.int64)
            last = np.cumsum(events) - 1
            lengths = sizes[words] + 1  # and the space before it
            lengths[last] = 0
            ends = np.cumsum(lengths)
            before = np.concatenate(([0], ends[last][:-1]))
            ends = ends - np.repeat(before, events) - 1
            ends[last] = ends[last - 1]
            words[last] = len(WORDS)
            kind = np.zeros(count, np.uint8)
            kind[last] = EOS_KIND
            written, begin = [], 0
            for end in last.tolist():
                written.append(" ".join([WORDS[word] for word in words[begin:end].tolist()]))
                begin = end + 1
            file.write("\n".join(written) + "\n")
            logprob = -random.gamma(2.0, 2.5, count)
            extra = {"context": random.integers(1, 6, count).astype(np.uint8)}
            segments = np.arange(first, first + _LINES, dtype=np.int64)
            yield ScoreBatch(segments, events, words.astype(np.uint32), strings, logprob, kind, ends, extra)
            done, first = done + count, first + _LINES


def build(folder: Path, rows: int) -> Path:
    """Write a run."""
    run, text = folder / "run", folder / "text.txt"
    run.mkdir()
    with ScoreWriter(run / SCORES_FILE, {"model": "synthetic"}) as writer:
        for batch in batches(rows, text):
            writer.write(batch)
    corpus = Corpus.from_files(text)
    evaluation = evaluate_scores(run / SCORES_FILE, corpus, name="synthetic")
    write_evaluation(run, [evaluation], {"text": corpus.settings})
    return run


class Server:
    """The explorer in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self.began = time.perf_counter()
        command = [sys.executable, "-m", "lmgauge", "explore", *arguments, "--no-browser"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        address = urlsplit(self.process.stdout.readline().strip())
        self.base = f"http://{address.netloc}"
        self.token = parse_qs(address.query)["token"][0]

    def ask(self, path: str, **asked: object) -> tuple[dict[str, object], float]:
        """Return an answer and the milliseconds it took."""
        address = f"{self.base}{path}?{urlencode({'token': self.token})}"
        body = json.dumps(asked).encode() if path.startswith("/api") else None
        began = time.perf_counter()
        with urllib.request.urlopen(urllib.request.Request(address, body, {"content-type": "application/json"})) as response:
            body = response.read()
        taken = 1000 * (time.perf_counter() - began)
        return (json.loads(body) if path.startswith("/api") else {}), taken

    def memory(self) -> tuple[float, float]:
        """Return megabytes of the process's own memory (without mapped files) now, and of all at its highest."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        lines = dict(line.split(":", 1) for line in status.splitlines())
        return tuple(int(lines[name].split()[0]) / 1024 for name in ("RssAnon", "VmHWM"))  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="keep the run there, or use the one that is there")
    chosen = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        run = folder / "run"
        if not run.exists():
            folder.mkdir(parents=True, exist_ok=True)
            began = time.perf_counter()
            run = build(folder, chosen.rows)
            print(f"built the run in {time.perf_counter() - began:.0f} s")
        size = sum(file.stat().st_size for file in run.iterdir()) / 1e6
        print(f"{size:,.0f} MB of run, {(folder / 'text.txt').stat().st_size / 1e6:,.0f} MB of text")
        server = Server(str(run))
        try:
            measure(server)
        finally:
            server.process.terminate()
            server.process.wait()


def measure(server: Server) -> None:
    """Ask, and print a line for each answer."""

    def show(what: str, taken: float, more: str = "") -> None:
        print(f"{what:58} {taken:9,.0f} ms  {more}", flush=True)

    show("start of the process to its address", 1000 * (time.perf_counter() - server.began))
    show("the page", server.ask("/")[1])
    show("numbers of the whole", server.ask("/api/state")[1])
    first, taken = server.ask("/api/segments")
    show("first 20 segments, while the index is made", taken, f"{float(str(first['share'])):.0%} read")
    while not (state := server.ask("/api/state")[0])["is_complete"]:
        time.sleep(0.1)
    show("start to all indexed", 1000 * (time.perf_counter() - server.began), f"{state['segments']:,} segments")
    print(f"{'memory: own now, highest with mapped files':58} {server.memory()[0]:9,.0f} MB, {server.memory()[1]:,.0f} MB")
    segments = int(str(state["segments"]))
    for what, parameters in (
        ("first page", {}),
        ("a page in the middle", {"page": segments // 40}),
        ("jump to a segment", {"at": segments - 12}),
        ("sort by bits per byte, first time", {"sort": "bits_per_byte", "falling": True}),
        ("sorted, next page", {"sort": "bits_per_byte", "falling": True, "page": 1}),
        ("sorted, a page in the middle", {"sort": "bits_per_byte", "falling": True, "page": segments // 40}),
        ("filter: bits of 100 to 120", {"column": "bits", "min": 100, "max": 120}),
        ("text 'word77 word7' in all of it", {"q": "word77 word7"}),
        ("the same, next page", {"q": "word77 word7", "page": 1}),
        ("expression '^word1\\d* .*word19999$'", {"q": r"^word1\d* .*word19999$", "regex": True}),
    ):
        answer, taken = server.ask("/api/segments", **parameters)
        show(what, taken, f"{answer['total']:,} segments" + ("" if answer["is_complete"] else ", not all searched"))
    show("numbers of what was found, with intervals", server.ask("/api/numbers", column="bits", min=100, max=120)[1])
    show("numbers of all, with intervals", server.ask("/api/numbers")[1])
    print(f"{'memory: own now, highest with mapped files':58} {server.memory()[0]:9,.0f} MB, {server.memory()[1]:,.0f} MB")


if __name__ == "__main__":
    main()
