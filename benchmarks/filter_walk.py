"""Documents of any amount filtered on one machine, by two shards and inside datatrove: the same documents stay.

The documents are made of the open corpora: paragraphs in a row from random places of books, novels, reviews and other texts,
as JSONL.zst and Parquet by turns, with an id, a language and nested fields, and one bad record in 500. The percentiles are
learned once, and every way uses them. Files are compared by their bytes; what datatrove writes, which has a form of its own,
by the ids that stay and the digits of their perplexity.

    python benchmarks/filter_walk.py --gigabytes 10 --files 20 --model kn5/
    python benchmarks/filter_walk.py --gigabytes 0.1 --files 4 --model kn5/ --ways "one machine" shards
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import harness
from watch import Watched, run_watched

TEXTS = {
    "en": ["classic-books/train.txt.zst", "wikitext-2/train.txt.gz"],
    "de": ["multilingual/de-novels/train.txt.gz"],
    "cs": ["multilingual/cs-novels/train.txt.gz"],
    "ja": ["multilingual/ja/soseki.txt.gz"],
    "ko": ["multilingual/ko-reviews/train.txt.gz"],
}
SHARES = {"en": 0.7, "de": 0.1, "cs": 0.08, "ja": 0.07, "ko": 0.05}
WAYS = ("one machine", "shards", "datatrove")
# Not a JSON array: at one, datatrove's reader ends with a traceback.
BAD = ('{"id": "bad-%d", "text": null}', '{"id": "bad-%d"', '{"id": "bad-%d", "text": "half a \\ud83d"}')
RESERVED = ["--reserved", "unk"]  # texts of Wikipedia have <unk> for rare words
ONE_BAD_IN = 500
DIFFERENT = 4  # files made of the texts; further ones repeat them under other ids, which takes less time
ROWS = 4096  # of a row group


def documents(amount: int, seed: int) -> Iterator[dict[str, object]]:
    """Documents of `amount` bytes in all."""
    texts = {language: [harness.open_corpus(name).read_bytes() for name in names] for language, names in TEXTS.items()}
    rng = random.Random(seed)
    number = 0
    while amount > 0:
        (language,) = rng.choices(list(SHARES), list(SHARES.values()))
        text = rng.choice(texts[language])
        start = text.find(b"\n", rng.randrange(len(text))) + 1
        end = text.find(b"\n", start + int(rng.lognormvariate(7.5, 0.8)))
        body = text[start : end if end > 0 else len(text)].decode("utf-8", "ignore").strip()
        if not body:
            continue
        words = body.split()
        if rng.random() < 0.1:  # spam: the words of a document in any order
            rng.shuffle(words)
            body = " ".join(words)
        amount -= len(body.encode())
        number += 1
        yield {
            "id": f"{seed}-{number}",
            "lang": language,
            "text": body,
            "meta": {"words": len(words), "tags": ["a", language]},
        }


def make(folder: Path, amount: int, files: int) -> None:
    """Write the documents, JSONL.zst and Parquet by turns."""
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for number in range(files):
        if number < DIFFERENT:
            write = _write_parquet if number % 2 else _write_jsonl
            write(unfinished / f"part-{number:04d}", documents(amount // files, number))
        else:
            _copy(unfinished, number)
    unfinished.rename(folder)


def _copy(folder: Path, number: int) -> None:
    """Write an earlier file once more, under other ids."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import zstandard

    earlier = number % DIFFERENT
    if number % 2:
        with (
            pq.ParquetFile(folder / f"part-{earlier:04d}.parquet") as file,
            pq.ParquetWriter(folder / f"part-{number:04d}.parquet", file.schema_arrow, compression="zstd") as writer,
        ):
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                ids = pc.replace_substring(table["id"], f"{earlier}-", f"{number}-", max_replacements=1)
                writer.write_table(table.set_column(0, "id", ids))
        return
    with (
        open(folder / f"part-{earlier:04d}.jsonl.zst", "rb") as source,
        open(folder / f"part-{number:04d}.jsonl.zst", "wb") as target,
    ):
        unpacked = zstandard.ZstdDecompressor().stream_reader(source)
        with zstandard.ZstdCompressor().stream_writer(target) as packed:
            for line in io.BufferedReader(unpacked):
                packed.write(line.replace(f'{{"id": "{earlier}-'.encode(), f'{{"id": "{number}-'.encode(), 1))


def _write_jsonl(path: Path, records: Iterator[dict[str, object]]) -> None:
    import zstandard

    with open(f"{path}.jsonl.zst", "wb") as file, zstandard.ZstdCompressor().stream_writer(file) as packed:
        for number, record in enumerate(records):
            if number % ONE_BAD_IN == 7:
                packed.write((BAD[number // ONE_BAD_IN % len(BAD)] % number + "\n").encode())
            packed.write((json.dumps(record, ensure_ascii=False) + "\n").encode())


def _write_parquet(path: Path, records: Iterator[dict[str, object]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def group(rows: list[dict[str, object]]) -> pa.Table:
        table = pa.Table.from_pylist(rows)
        meta = pa.struct([("words", pa.int64()), ("tags", pa.list_(pa.string()))])
        return table.cast(pa.schema([("id", pa.string()), ("lang", pa.string()), ("text", pa.string()), ("meta", meta)]))

    rows: list[dict[str, object]] = []
    writer = None
    for number, record in enumerate(records):
        if number % ONE_BAD_IN == 7:
            rows.append(record | {"id": f"bad-{number}", "text": None})
        rows.append(record)
        if len(rows) >= ROWS:
            table, rows = group(rows), []
            writer = writer or pq.ParquetWriter(f"{path}.parquet", table.schema, compression="zstd")
            writer.write_table(table)
    if rows:
        table = group(rows)
        writer = writer or pq.ParquetWriter(f"{path}.parquet", table.schema, compression="zstd")
        writer.write_table(table)
    if writer is not None:
        writer.close()


def digest_of_files(folder: Path) -> str:
    """A digest of the names and bytes of all files but what is remembered of them."""
    whole = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "_lmgauge" not in path.parts):
        whole.update(str(path.relative_to(folder)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:16]


def digest_of_documents(folder: Path, perplexity: str) -> tuple[str, int]:
    """A digest of the ids that stay, in any order, with their perplexity; and how many there are."""
    lines = sorted(f"{one}\t{value!r}" for one, value in _documents_of(folder, perplexity))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16], len(lines)


def _documents_of(folder: Path, perplexity: str) -> Iterator[tuple[str, float]]:
    import pyarrow.parquet as pq
    import zstandard

    for path in sorted(folder.rglob("*")):
        if "_lmgauge" in path.parts:
            continue
        if path.suffix == ".parquet":
            table = pq.read_table(path, columns=["id", perplexity])
            yield from zip(table["id"].to_pylist(), table[perplexity].to_pylist(), strict=True)
        elif ".jsonl" in path.name:
            with open(path, "rb") as file:
                raw = zstandard.ZstdDecompressor().stream_reader(file) if path.suffix == ".zst" else file
                for line in io.TextIOWrapper(raw, encoding="utf-8"):
                    record = json.loads(line)
                    yield record["id"], (record.get("metadata") or record)[perplexity]


def main() -> None:
    """Make the documents, filter them each way, print what it cost, and compare."""
    options = harness.parser(__doc__, runs=1)
    options.add_argument("--gigabytes", type=float, default=10, help="of text, before it is packed (10)")
    options.add_argument("--files", type=int, default=20, help="how many files (20)")
    options.add_argument("--model", type=Path, required=True, help="an n-gram model")
    options.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="which ways (all)")
    arguments = options.parse_args()
    program = harness.lmgauge_program(arguments.lmgauge)
    work = arguments.work or harness.cache_folder()
    source = work / f"documents-{arguments.gigabytes:g}-{arguments.files}"
    if not source.exists():
        # In a child: what this program holds would be charged to the children that it measures.
        harness.run_child(
            [sys.executable, __file__, "make", str(source), str(int(arguments.gigabytes * 1e9)), str(arguments.files)]
        )
    packed = sum(path.stat().st_size for path in source.iterdir())
    harness.print_machine(program)
    print(f"{arguments.gigabytes:g} GB of text in {arguments.files} files of {packed / 1e9:.2f} GB")
    inputs, name = str(source / "part-*"), arguments.model.name.rstrip("/")
    percentiles = work / "percentiles.json"
    percentiles.unlink(missing_ok=True)
    learn = [program, "percentiles", "-m", f"{name}={arguments.model}", inputs, "-o", str(percentiles), "--group", "lang"]
    learn += RESERVED
    _show("percentiles", run_watched(learn, work), arguments.gigabytes)
    base = [program, "filter", "-m", f"{name}={arguments.model}", inputs, "--keep", "p10..p70", "--group", "lang"]
    base += RESERVED
    base += ["--percentiles", str(percentiles), "--min-bytes", "200", "--json"]
    for way in arguments.ways:
        out = work / f"filtered-{way.replace(' ', '-')}"
        shutil.rmtree(out, ignore_errors=True)
        commands = {
            "one machine": [[*base, "-o", f"{out}/", "--rejects", str(work / "rejects.jsonl")]],
            "shards": [[*base, "-o", f"{out}/", "--shard", f"{shard}/2", "--threads", "1"] for shard in (1, 2)],
            "datatrove": [
                [sys.executable, __file__, "datatrove", str(source), str(out), str(arguments.model), str(percentiles)]
            ],
        }[way]
        for command in commands:
            _show(way, run_watched(command, work), arguments.gigabytes)
        digests = harness.run_child([sys.executable, __file__, "digest", str(out), f"{name}_perplexity"]).out.strip()
        print(f"{way:12} {digests}", flush=True)


def _show(what: str, watched: Watched, gigabytes: float) -> None:
    measured = watched.measured
    cpu, wall = measured.cpu, measured.wall
    print(
        f"{what:12} {wall:8.1f} s wall {cpu:8.1f} s CPU {gigabytes * 1e3 / cpu:6.1f} MB/s of CPU "
        f"peak {watched.peak / 1e6:,.0f} MB, load {watched.load:.1f}",
        flush=True,
    )


def run_datatrove(source: Path, out: Path, model: str, percentiles: str) -> None:
    """Filter inside datatrove's local executor."""
    from datatrove.executor.local import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader, ParquetReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter

    import lmgauge
    from lmgauge.integrations.datatrove import PerplexityFilter

    scorer = lmgauge.Scorer({Path(model).name: model}, scoring=lmgauge.settings.ScoringOptions(reserved="unk"))
    for reader, pattern in ((JsonlReader, "*.jsonl.zst"), (ParquetReader, "*.parquet")):
        steps = [
            reader(str(source), glob_pattern=pattern, text_key="text", id_key="id"),
            PerplexityFilter(scorer, percentiles, keep="p10..p70", min_bytes=200),
            JsonlWriter(str(out / reader.__name__), compression=None),
        ]
        LocalPipelineExecutor(pipeline=steps, tasks=2, workers=2, logging_dir=str(out / f"_lmgauge-{reader.__name__}")).run()


if __name__ == "__main__":
    match sys.argv[1:2]:
        case ["make"]:
            make(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
        case ["datatrove"]:
            run_datatrove(Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:6])
        case ["digest"]:
            digest, count = digest_of_documents(Path(sys.argv[2]), sys.argv[3])
            print(f"{count:,} documents stay: {digest}; files: {digest_of_files(Path(sys.argv[2]))}")
        case _:
            main()
