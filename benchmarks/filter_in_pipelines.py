"""Documents scored inside pipelines: datatrove's step of CCNet perplexities beside lmgauge's, and what Ray Data adds.

datatrove's reader of JSONL alone, then followed by its own step of statistics, then by lmgauge's, chained in one process as
its executors chain them. Both steps hold the same model, made as CCNet makes them: CCNet's normalizer, pieces of
SentencePiece, a 5-gram in a KenLM binary. Documents are 3,000 characters of novels that the model has not seen, without
numbers, which datatrove normalizes otherwise. Perplexities must agree to the one decimal that datatrove has, or nothing is
printed. lmgauge's filter, and the filter with a 5-gram of words, which needs neither normalizer nor pieces, are measured as
well. CPU seconds of the process, by turns; the reader's are taken off those of the steps.

With --ray: the CPU seconds of the driver, of Ray and of all its processes for five times the documents, from tables in
memory and back, with one actor: of a step that does nothing, of lmgauge's, and of `Scorer.score_batch` on the same tables.

    python benchmarks/filter_in_pipelines.py --runs 3 --ray
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
from harness import median

LENGTH = 3000
REPEATS = 10  # of the documents, for Ray Data
READER, THEIRS = "reader alone", "datatrove's CCNetPerplexityStats"
FILTER, WORDS = "lmgauge's PerplexityFilter", "PerplexityFilter, words"
PIECES = 16_000
PIECE_LINES = 20_000


def _write_documents(target: Path, held_out: Path, count: int) -> None:
    """Documents of whole lines, about as long as a web page, as JSONL; the text is used again where it ends."""
    text = re.sub(r"\d+", "", held_out.read_text(encoding="utf-8"))
    with target.open("w", encoding="utf-8") as out:
        for number in range(count):
            start = number * LENGTH % (len(text) - LENGTH)
            record = {"id": f"doc-{number:08d}", "text": text[start : start + LENGTH].strip()}
            out.write(json.dumps(record, ensure_ascii=False) + "\n")


def _make_models(program: str, folder: Path) -> tuple[Path, Path, Path]:
    """SentencePiece's model, a KenLM binary over its pieces, and a folder over words, of the same text."""
    text = harness.cache_folder() / "train-5-million-words.txt"
    if not text.exists():
        with harness.open_corpus("classic-books/train.txt.zst").open("rb") as source:
            text.write_bytes(source.read(28_000_000).rpartition(b"\n")[0] + b"\n")
    pieces, binary, words = folder / "pipelines.sp.model", folder / "pipelines.binary", folder / "pipelines-words"
    if not pieces.exists():
        import sentencepiece

        lines = text.read_text(encoding="utf-8").splitlines()[:PIECE_LINES]
        options = {"vocab_size": PIECES, "minloglevel": 2}
        with pieces.open("wb") as out:
            sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, **options)
    train = [program, "train", "modified-kneser-ney", "--order", "5", str(text)]
    if not binary.exists():
        harness.run_child([*train, "--tokenizer", str(pieces), "--normalizer", "ccnet", "-o", str(binary)])
    if not words.exists():
        harness.run_child([*train, "-o", str(words)])
    return pieces, binary, words


# --- what runs in a child ---------------------------------------------------------------------------------


def _steps(pieces: str, binary: str, words: str, place: Path) -> dict[str, Callable[[], list[Any]]]:
    """What stands behind the reader, made anew for each run."""
    import kenlm
    import sentencepiece
    from datatrove.pipeline.stats.perplexity_stats import CCNetPerplexityStats

    import lmgauge
    from lmgauge.integrations.datatrove import PerplexityFilter

    loaded = kenlm.Model(binary), sentencepiece.SentencePieceProcessor(model_file=pieces)
    cut = lmgauge.settings.ScoringOptions(tokenizer=pieces, normalizer="ccnet")
    scorer = lmgauge.Scorer({"ccnet": binary}, scoring=cut)
    groups: list[Any] = ["summary"]

    def theirs() -> list[Any]:
        step = CCNetPerplexityStats(str(place / "theirs"), "books", "en", groups_to_compute=groups)
        step.model._model, step.model.tokenizer._model = loaded
        return [step]

    return {
        READER: list,
        THEIRS: theirs,
        FILTER: lambda: [PerplexityFilter(scorer, max_perplexity=1e9)],
        WORDS: lambda: [PerplexityFilter(words, max_perplexity=1e9)],
    }


def _agree(steps: dict[str, Callable[[], list[Any]]], records: list[dict[str, str]]) -> bool:
    """Whether both steps give the same perplexities, to the decimal that datatrove has."""
    from datatrove.data import Document

    documents = [Document(record["text"], id=record["id"]) for record in records]
    for step in (*steps[THEIRS](), *steps[FILTER]()):
        documents = list(step(documents))
    pairs = [(doc.metadata["ccnet_perplexity_books_en"], doc.metadata["ccnet_perplexity"]) for doc in documents]
    return all(math.isclose(theirs, ours, rel_tol=1e-4, abs_tol=0.06) for theirs, ours in pairs)


def _datatrove_child(pieces: str, binary: str, words: str, documents: str, runs: str) -> None:
    from datatrove.pipeline.readers import JsonlReader

    source = Path(documents)
    records = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as place:
        steps = _steps(pieces, binary, words, Path(place))
        agree = _agree(steps, records[:500])
        seconds: dict[str, list[float]] = {name: [] for name in steps}
        for turn in range(-1, int(runs)):  # at first, pages of the models are touched
            for name in list(steps) if turn % 2 == 0 else reversed(list(steps)):
                stream: Any = JsonlReader(str(source.parent), glob_pattern=source.name)()
                for step in steps[name]():
                    stream = step(stream)
                start = time.process_time()
                count = sum(1 for _ in stream)
                if turn >= 0:
                    seconds[name].append(time.process_time() - start)
                if count != len(records):
                    harness.give_up(f"{name}: {count:,} of {len(records):,} documents came out")
    harness.print_json({"seconds": seconds, "agree": agree})


class _Tree:
    """CPU seconds of this process and of all that it started, looked at every tenth of a second, as actors come and go."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.look()
            time.sleep(0.1)

    def look(self) -> float:
        """CPU seconds so far."""
        import psutil

        own = psutil.Process()
        for process in [own, *own.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                self._seconds[process.pid] = times.user + times.system
        return sum(self._seconds.values())


def _ray_child(words: str, documents: str, runs: str) -> None:
    import pyarrow as pa

    import lmgauge

    records = [json.loads(line) for line in Path(documents).read_text(encoding="utf-8").splitlines()]
    tables = [pa.Table.from_pylist(records[row : row + 1024]) for row in range(0, len(records), 1024)] * REPEATS
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=400_000_000)
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    actor = {"batch_format": "pyarrow", "compute": ray.data.ActorPoolStrategy(size=1)}
    seconds: dict[str, list[float]] = {"nothing": [], "step": [], "alone": []}
    tree = _Tree()

    class Nothing:
        def __call__(self, table: pa.Table) -> pa.Table:
            return table

    for turn in range(-1, int(runs)):  # at first, Ray starts processes that it uses again
        for name, step, arguments in (("nothing", Nothing, []), ("step", lmgauge.Scorer, [words])):
            start = tree.look()
            scored = ray.data.from_arrow(tables).map_batches(step, fn_constructor_args=arguments, **actor).materialize()
            count = scored.count()
            if turn >= 0:
                seconds[name].append(tree.look() - start)
            if count != len(records) * REPEATS:
                harness.give_up(f"Ray: {count:,} of {len(records):,} documents came out")
        scorer = lmgauge.Scorer(words, threads=1)
        start = time.process_time()
        for table in tables:
            scorer.score_batch(table)
        if turn >= 0:
            seconds["alone"].append(time.process_time() - start)
    ray.shutdown()
    harness.print_json(seconds)


# --- the benchmark ----------------------------------------------------------------------------------------


def main() -> int:
    options = harness.parser(__doc__ or "", runs=3)
    options.add_argument("--documents", type=int, default=4000, help="how many, of 3 kB each (4000)")
    options.add_argument("--ray", action="store_true", help="measure Ray Data as well")
    arguments = options.parse_args()
    program = harness.lmgauge_program(arguments.lmgauge)
    harness.print_machine(program)
    pieces, binary, words = _make_models(program, arguments.work or harness.cache_folder())
    with tempfile.TemporaryDirectory() as place:
        documents = Path(place) / "documents.jsonl"
        _write_documents(documents, harness.open_corpus("classic-books/test.txt.gz"), arguments.documents)
        size, runs = documents.stat().st_size, str(arguments.runs)
        fixed = [str(pieces), str(binary), str(words), str(documents), runs]
        measured = json.loads(harness.run_child([sys.executable, __file__, "datatrove", *fixed]).out)
        if not measured["agree"]:
            harness.give_up("the perplexities of both steps differ")
        seconds = measured["seconds"]
        reading = median(seconds[READER])
        rows = []
        for name, values in seconds.items():
            own = median(values) - (0.0 if name == READER else reading)
            rate, speed = f"{arguments.documents / own:,.0f}", f"{size / harness.MB / own:.1f}"
            ratio = (median(seconds[THEIRS]) - reading) / own
            rows.append([name, harness.seconds(values), rate, speed, "" if name == READER else f"{ratio:.1f}"])
        harness.print_table(["step", "CPU s", "documents/s", "MB/s", "over datatrove's"], rows)
        if arguments.ray:
            both = json.loads(harness.run_child([sys.executable, __file__, "ray", str(words), str(documents), runs]).out)
            harness.print_table(
                ["Ray Data, one actor", "CPU s"],
                [
                    ["map_batches, nothing done", harness.seconds(both["nothing"])],
                    ["map_batches, lmgauge.Scorer", harness.seconds(both["step"])],
                    ["Scorer.score_batch alone", harness.seconds(both["alone"])],
                ],
            )
    return 0


if __name__ == "__main__":
    match sys.argv[1:2]:
        case ["datatrove"]:
            _datatrove_child(*sys.argv[2:])
        case ["ray"]:
            _ray_child(*sys.argv[2:])
        case _:
            sys.exit(main())
