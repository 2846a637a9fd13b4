"""The table of commands that write, each with what it writes; a new command joins by one entry.

Commands run in a folder with `in/` (what `PREPARED` makes there) and write below `out/`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.faults.machine import Machine


@dataclass(frozen=True)
class Command:
    """A command line that writes.

    Attributes:
        name: in reports.
        line: after `lmgauge`, without blanks in words.
        outputs: paths that it writes; each is whole or as it was, by itself.
        again: added to the line of the run after one that was stopped.
        older: a line that makes other content of the same names, which `line` then replaces; None: there is none before.
        needs: modules it needs.
        resumes: paths that a stopped run may leave for the next one to go on from.
        slow: not in the suite, only in the long run.
    """

    name: str
    line: str
    outputs: tuple[str, ...]
    older: str | None = None
    again: str = ""
    needs: tuple[str, ...] = ()
    resumes: tuple[str, ...] = ()
    slow: bool = False

    @property
    def arguments(self) -> list[str]:
        """The words of the line."""
        return self.line.split()

    @property
    def next_arguments(self) -> list[str]:
        """The words of the line of the next run."""
        return [*self.arguments, *self.again.split()]


_NET = "train gru in/train.txt --valid in/valid.txt -o out/net --epochs 2 --embedding-size 8 --hidden-size 8"
_TORCH = ("torch", "transformers")
COMMANDS: Final = (
    Command("train", "train kneser-ney in/train.txt -o out/new/kn", ("out/new/kn",)),
    Command(
        "train, over another", "train kneser-ney in/train.txt -o out/kn", ("out/kn",), "train laplace in/test.txt -o out/kn"
    ),
    Command("train, spelled", "train kneser-ney in/train.txt -o out/kn --vocabulary spelled", ("out/kn",)),
    Command(
        "train .arpa",
        "train kneser-ney in/train.txt -o out/kn.arpa",
        ("out/kn.arpa",),
        "train witten-bell in/test.txt -o out/kn.arpa",
    ),
    Command("train .arpa.gz", "train kneser-ney in/train.txt -o out/kn.arpa.gz", ("out/kn.arpa.gz",)),
    Command("train .binary", "train kneser-ney in/train.txt -o out/kn.binary --trie", ("out/kn.binary",)),
    Command(
        "train --memory",
        "train kneser-ney in/train.txt -o out/kn --memory 300M",
        ("out/kn",),
        "train mle in/test.txt -o out/kn",
        again="--resume",
        resumes=("out/kn.parts",),
    ),
    Command(
        "train --memory --temp",
        "train kneser-ney in/train.txt -o out/kn --memory 300M --temp tmp --resume",
        ("out/kn",),
        resumes=("tmp/kn.parts",),
    ),
    Command(
        "train a network",
        _NET,
        ("out/net",),
        again="--resume",
        needs=_TORCH,
        resumes=("out/net.training",),
        slow=True,
    ),
    Command(
        "train a network --resume",
        f"{_NET} --resume --checkpoint-every 2",
        ("out/net",),
        needs=_TORCH,
        resumes=("out/net.training",),
        slow=True,
    ),
    Command(
        "mix",
        "mix -m in/kn -m in/wb in/valid.txt -o out/mix",
        ("out/mix",),
        "mix -m in/kn -m in/wb --weights 1,0 -o out/mix",
    ),
    Command("mix --static", "mix -m in/kn -m in/wb in/valid.txt --static -o out/mix.arpa", ("out/mix.arpa",)),
    Command("spell -o", "spell in/kn --train in/train.txt -o out/spelled", ("out/spelled",)),
    Command(
        "spell in place",
        "spell out/kn --train in/train.txt --replace",
        ("out/kn/config.json", "out/kn/model.safetensors", "out/kn/spelling"),
        "convert in/kn.arpa out/kn",
    ),
    Command("prune", "prune in/kn --to-size 200 -o out/small", ("out/small",), "prune in/kn --to-size 250 -o out/small"),
    Command("prune .arpa", "prune in/kn --to-size 200 -o out/small.arpa", ("out/small.arpa",)),
    Command("cache", "cache in/kn in/valid.txt -o out/cache", ("out/cache",), "cache in/kn --weight 0.5 -o out/cache"),
    Command("convert to .arpa", "convert in/kn out/kn.arpa", ("out/kn.arpa",), "convert in/wb out/kn.arpa"),
    Command("convert to .binary", "convert in/kn out/kn.binary", ("out/kn.binary",)),
    Command("convert to a folder", "convert in/kn.arpa out/kn", ("out/kn",), "convert in/wb.arpa out/kn"),
    Command("eval -o", "eval -m in/kn in/test.txt -o out/run", ("out/run",), "eval -m in/wb in/test.txt -o out/run"),
    Command(
        "eval -o, two models",
        "eval -m in/kn -m in/wb in/test.txt -o out/runs --columns entropy,rank",
        ("out/runs/kn", "out/runs/wb"),
    ),
    Command(
        "eval, rows",
        "eval -m in/kn in/test.txt --per-token out/t.tsv --per-segment out/s.jsonl --per-word out/w.parquet",
        ("out/t.tsv", "out/s.jsonl", "out/w.parquet"),
    ),
    Command(
        "eval a network -o",
        "eval -m in/net in/test.txt -o out/run",
        ("out/run",),
        needs=_TORCH,
        resumes=("out/.run.unfinished",),
        slow=True,
    ),
    Command("eval --shard", "eval -m in/kn in/test.txt -o out/shards --shard 1/2", ("out/shards/1-of-2",)),
    Command("merge", "merge in/shards -o out/run", ("out/run",), "eval -m in/wb in/test.txt -o out/run"),
    Command("import", "import in/table.jsonl --program score-table --text in/test.txt -o out/run", ("out/run",)),
    Command("compare --html", "compare in/run-kn in/run-wb --html out/c.html", ("out/c.html",), slow=True),
    Command("diagnose --html", "diagnose in/run-kn --only tokens --html out/d.html", ("out/d.html",), slow=True),
    Command("audit --html", "audit in/run-kn --html out/a.html", ("out/a.html",)),
    Command("report", "report in/run-kn in/run-wb -o out/r.html --vega out/vega", ("out/r.html", "out/vega"), slow=True),
    Command("divergence --save-base", "divergence in/kn in/test.txt --save-base out/base.parquet", ("out/base.parquet",)),
    Command("divergence -o", "divergence in/kn in/wb in/test.txt --exhaustive -o out/run", ("out/run",)),
    Command(
        "overlap --write-clean", "overlap in/train.txt in/test.txt --ngram 3 --write-clean out/clean.txt", ("out/clean.txt",)
    ),
    Command(
        "split", "split in/train.txt -o out/parts", ("out/parts/train.txt", "out/parts/validation.txt", "out/parts/test.txt")
    ),
    Command("percentiles", "percentiles -m in/kn in/a.jsonl -o out/p.json", ("out/p.json",)),
    Command(
        "score", "score -m in/kn in/a.jsonl -o out/a.jsonl.gz --rejects out/bad.jsonl", ("out/a.jsonl.gz", "out/bad.jsonl")
    ),
    Command("score .parquet", "score -m in/kn in/a.parquet -o out/a.parquet", ("out/a.parquet",)),
    Command("filter", "filter -m in/kn in/a.jsonl -o out/a.jsonl --max-perplexity 9", ("out/a.jsonl",)),
    Command(
        "filter, many files",
        "filter -m in/kn in/a.jsonl in/b.jsonl -o out/kept/ --max-perplexity 9 --workers 1",
        ("out/kept/a.jsonl", "out/kept/b.jsonl"),
        resumes=("out/kept",),
    ),
    Command(
        "filter --shard",
        "filter -m in/kn in/a.jsonl in/b.jsonl -o out/kept/ --max-perplexity 9 --shard 1/2",
        ("out/kept/a.jsonl",),
        resumes=("out/kept",),
    ),
    Command("score .csv", "score -m in/kn in/a.csv -o out/a.csv", ("out/a.csv",)),
    Command("select", "select in/a.jsonl --target in/valid.txt --share 20% -o out/s.jsonl", ("out/s.jsonl",)),
    Command(
        "baseline -o",
        "baseline in/train.txt in/test.txt --order 2 --character-order 3 -o out/ladder",
        ("out/ladder",),
        slow=True,
    ),
    Command("pairs", "pairs -m in/kn in/train.txt in/shuffled.txt -o out/rows.tsv", ("out/rows.tsv",)),
    Command("membership", "membership in/kn in/train.txt --control in/test.txt -o out/rows.parquet", ("out/rows.parquet",)),
    Command("bleu --html", "bleu in/train.txt in/shuffled.txt --html out/b.html", ("out/b.html",), slow=True),
    Command("correlate --rows", "correlate in/systems.tsv -x ppl -y bleu --rows out/rows.tsv", ("out/rows.tsv",)),
    Command(
        "rescore",
        "rescore in/nbest.jsonl -m in/kn --weights score=1,kn=0.3 -o out/best.txt --write-scores out/scores.jsonl",
        ("out/best.txt", "out/scores.jsonl"),
    ),
    Command(
        "quickstart",
        "quickstart -o out/quick",
        tuple(f"out/quick/{name}" for name in ("unigram", "bigram", "trigram", "5-gram", "report.html")),
        slow=True,
    ),
)
PREPARED: Final = (
    "train kneser-ney in/train.txt -o in/kn",
    "train witten-bell in/train.txt -o in/wb --order 2",
    "convert in/kn in/kn.arpa",
    "convert in/wb in/wb.arpa",
    "eval -m in/kn in/test.txt -o in/run-kn --per-token in/table.jsonl",
    "eval -m in/wb in/test.txt -o in/run-wb",
    "eval -m in/kn in/test.txt -o in/shards --shard 1/2",
    "eval -m in/kn in/test.txt -o in/shards --shard 2/2",
)
PREPARED_NETWORK: Final = (
    "train gru in/train.txt --valid in/valid.txt -o in/net --epochs 1 --embedding-size 8 --hidden-size 8"
)
_WORDS: Final = "the a cat dog bird sat ran on under near mat tree hill and then it slept"


def prepare(machine: Machine, *, network: bool = False) -> None:
    """Make what commands read, in `in`; the same on every machine.

    Raises:
        RuntimeError: a command failed.
    """
    folder = machine.root / "in"
    draw = random.Random(1)
    for name, count in (("train", 60), ("valid", 20), ("test", 20)):
        lines = [" ".join(draw.choices(_WORDS.split(), k=draw.randint(3, 8))) for _ in range(count)]
        write_lines(folder / f"{name}.txt", lines)
        if name == "train":
            write_lines(
                folder / "shuffled.txt", [" ".join(draw.sample(words, len(words))) for words in map(str.split, lines)]
            )
            for part, own in (("a", lines[:40]), ("b", lines[40:])):
                write_lines(folder / f"{part}.jsonl", [json.dumps({"text": line, "n": n}) for n, line in enumerate(own)])
            write_lines(folder / "a.csv", ["text,n", *(f'"{line}, so",{n}' for n, line in enumerate(lines))])
            write_parquet(folder / "a.parquet", lines)
    write_lines(folder / "systems.tsv", ["system\tppl\tbleu", *(f"s{n}\t{100 - 7 * n}\t{20 + n * n}" for n in range(6))])
    rows = [{"id": f"u{n // 2}", "text": f"the cat {word}", "score": -1.5 * n} for n, word in enumerate(("sat", "ran") * 4)]
    write_lines(folder / "nbest.jsonl", [json.dumps(row) for row in rows])
    for line in [*PREPARED, *([PREPARED_NETWORK] if network else [])]:
        done = machine.run(line.split())
        if done.code:
            raise RuntimeError(f"lmgauge {line}: {done.stderr}")


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write lines of text."""
    path.write_text("".join(f"{line}\n" for line in lines))


def write_parquet(path: Path, lines: Sequence[str]) -> None:
    """Write a table with a column `text`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": list(lines)}), path)
