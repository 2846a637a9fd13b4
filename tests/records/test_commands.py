"""Commands and formats: the tables in the documentation say what reads what, and each of their cells is tried."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.commands import ok, refused, run

from lmgauge.base.choices import FORMATS
from lmgauge.cli.commands import COMMANDS
from lmgauge.cli.derive import declared_options
from lmgauge.cli.main import cli
from lmgauge.records.formats import COMPRESSIONS, FORMATS_OF_RECORDS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "files.md"
LINES = ["the cat sat", "the dog sat", "a cat ran", "the dog ran on", "a dog sat on the cat", "the cat ran", "a dog ran"]
IDS = [f"u{number}" for number in range(len(LINES))]
WORDS = sorted({word for line in LINES for word in line.split()})
Rows = Sequence[Mapping[str, object]]


def texts(lines: Sequence[str]) -> Rows:
    return [{"id": name, "text": line} for name, line in zip(IDS, lines, strict=False)]


DATA: dict[str, Rows] = {
    "text": texts(LINES),
    "hyp": texts([line.replace("dog", "cow") for line in LINES]),
    "control": texts([line[::-1] for line in LINES]),
    "words": [{"text": word} for word in WORDS],
    "names": [{"text": f"g{number % 2}"} for number in range(len(LINES))],
    "ref": texts(LINES),
    "speakers": [{"id": name, "speaker": f"s{number % 3}"} for number, name in enumerate(IDS)],
    "pairs": [{"sentence_good": line, "sentence_bad": line[::-1], "linguistics_term": "order"} for line in LINES],
    "questions": [{"question": "the cat", "choices": [" sat", " ran"], "answer": number % 2} for number in range(6)],
    "lists": [
        {"id": name, "text": text, "score": -1.5} for name, line in zip(IDS, LINES, strict=True) for text in (line, "a cat")
    ],
    "tokens": [{"item": n, "token": w, "logprob_nats": -0.5 * len(w)} for n, line in enumerate(LINES) for w in line.split()],
    "scores": [{"segment": n, "token": w, "logprob": -0.5 * len(w)} for n, line in enumerate(LINES) for w in line.split()],
    "items": [{"item": name, "acc": number % 2} for number, name in enumerate(IDS)],
    "regions": [{"text_id": number, "region": "first", "text": line.split()[0]} for number, line in enumerate(LINES, 1)],
    "systems": [
        {"system": name, "score": 20 + n * n, "perplexity": 90 - 3 * n} for n, name in enumerate(["text", "hyp", "control"])
    ],
}
"""The records of each file that the command lines name, in every format."""

SYSTEMS = ("bleu", "chrf", "ter", "wer", "cer")
CASES: dict[str, dict[str, str]] = {
    "texts": {
        "train texts": "train witten-bell text{ending} --order 2 -o {out} --json",
        "train words": "train witten-bell text{ending} --words words{ending} --order 2 -o {out} --json",
        "train valid": "train lstm text{ending} --valid text{ending} --steps 1 --hidden-size 4 -o {out} --json",
        "counts texts": "counts text{ending} -o {out} --json",
        "mix held_out": "mix -m m -m n text{ending} -o {out} --json",
        "spell train": "spell m --train text{ending} -o {out} --json",
        "prune vocabulary": "prune m --vocabulary words{ending} -o {out} --json",
        "prune text": "prune m --threshold 0.1 --text text{ending} -o {out} --json",
        "cache held_out": "cache m text{ending} -o {out} --json",
        "eval text": "eval -m m text{ending} --json",
        "eval text by words": "eval -m m text{ending} --per-word -",
        "eval train": "eval -m m text.txt --per-word - --train text{ending}",
        "baseline train": "baseline text{ending} control{ending} --order 2 --character-order 2 --json",
        "baseline test": "baseline control{ending} text{ending} --order 2 --character-order 2 --json",
        "merge text": "merge shards-{of} --text text{ending} --json",
        "import text": "import tokens.jsonl --text text{ending} -o {out} --json",
        "report text": "report run-{of} --text text{ending} -o {out}.html",
        "report train": "report run-{of} --train text{ending} -o {out}.html",
        "diagnose text": "diagnose run-{of} --text text{ending} --json",
        "diagnose train": "diagnose run-{of} --train text{ending} --json",
        "compare text": "compare run-{of} other-{of} --text text{ending} --json",
        "agree text": "agree run-{of} other-{of} --text text{ending} --json",
        "compare train": "compare run-{of} other-{of} --train text{ending} --json",
        "audit what": "audit -m m text{ending} --json",
        "audit text": "audit run-{of} --text text{ending} --json",
        "audit train": "audit run-{of} --train control{ending} --json",
        "overlap train": "overlap text{ending} control{ending} --ngram 2 --json",
        "overlap test": "overlap control{ending} --test text{ending} --ngram 2 --json",
        "pairs texts": "pairs -m m text{ending} control{ending} --json",
        "pairs bad_texts": "pairs -m m control{ending} text{ending} --json",
        "membership texts": "membership m text{ending} --control control{ending} --json",
        "membership control": "membership m control{ending} --control text{ending} --json",
        "filter inputs": "filter -m m text{ending} -o {out}{ending} --json",
        "score inputs": "score -m m text{ending} -o {scored} --json",
        "percentiles inputs": "percentiles -m m text{ending} -o {out}.json --json",
        "select pool": "select text{ending} --target text.txt --order 2 --share 50% --json",
        "select target": "select text.txt --target text{ending} --order 2 --share 50% --json",
        "divergence candidate": "divergence m n text{ending} --json",
        "divergence train": "divergence m n text{ending} --train text{ending} --json",
        "correlate outputs": "correlate systems.jsonl -m m "
        "--outputs text{ending} --outputs hyp{ending} --outputs control{ending} --json",
        **{f"{name} files": f"{name} text{{ending}} hyp{{ending}} --json" for name in (*SYSTEMS, "f1")},
        **{f"{name} reference": f"{name} control{{ending}} hyp{{ending}} -r text{{ending}} --json" for name in SYSTEMS},
        **{
            f"{name} {option}": f"{name} text.txt hyp.txt --{option} names{{ending}} --json"
            for name in SYSTEMS
            for option in ("group", "document")
        },
        "f1 document": "f1 text.txt hyp.txt --document names{ending} --json",
        "split text": "split text{ending} -o {out}/ --json",
    },
    "pairs": {"pairs texts": "pairs -m m pairs{ending} --json"},
    "questions": {"multiple-choice text": "multiple-choice -m m questions{ending} --json"},
    "n-best lists": {
        "rescore nbest": "rescore lists{ending} -m m --weights score=1,m=1 -o -",
        "rescore tune": "rescore lists.jsonl -m m --tune lists{ending} --ref ref.txt --json",
    },
    "references": {
        "rescore ref": "rescore lists.jsonl -m m --tune lists.jsonl --ref ref{ending} --json",
        "rescore test_ref": "rescore lists.jsonl -m m --weights score=1,m=1 --test-ref ref{ending} --json",
    },
    "speakers": {
        "rescore document": "rescore lists.jsonl -m m --weights m=1 --test-ref ref.txt --document speakers{ending} --json"
    },
    "regions": {"eval regions": "eval -m m text.txt --regions regions{ending} --per-word -"},
    "tables of tokens": {"import files": "import tokens{ending} -o {out} --json"},
    "score tables": {
        "eval scores": "eval --scores scores{ending} --json",
        "import files": "import scores{ending} -o {out} --json",
    },
    "scores of items": {"import files": "import items{ending} --score acc -o {out} --json"},
    "tables of systems": {
        "correlate scores": "correlate systems{ending} --json",
        "correlate perplexities": "correlate systems.jsonl systems{ending} --json",
    },
}
"""By what is read, and then by the command and what it calls it, a command line that reads it."""

LINES_ALONE = {"train counts", "wer substitutions", "cer substitutions", "rescore substitutions"}
"""Files of lines in a form of their own."""
WAITS = {"explore text", "explore train"}
"""Texts of a server, which reads them as `diagnose` does."""
NO_RECORDS = {
    *(
        "engines",
        "floor",
        "output",
        "temp",
        "rejects",
        "per_segment",
        "per_token",
        "per_word",
        "per_context",
        "proxy",
        "rows",
        "write_clean",
        "write_scores",
    ),
    *(
        "vega",
        "figures",
        "model",
        "models",
        "reference",
        "tokenizer",
        "template",
        "percentiles",
        "audit",
        "base",
        "base_file",
    ),
    *("run", "runs", "shards", "what", "source", "target"),
}
"""What names outputs, models, runs, and files that lmgauge writes for itself."""
VARIES = {"seconds", "line", "place", "path", "output", "examples"}
"""What the same records have otherwise in another file; examples are drawn by lines."""
SHARED = "perplexity|events|segments|documents|score|mean|words|vocabulary_size|accuracy|status|pearson|median"
WITHOUT_LINE_ENDS = re.compile(rf'"(?:{SHARED})": [^\n,]*|^(?:m\t|u\d)[^\n]*', re.MULTILINE)
"""What lines, whose ends count as bytes, have in common with records."""


def tables() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The tables of the page, by their first column: what is read, and commands."""
    page = PAGE.read_text(encoding="utf-8").split("\n\n")
    found = (next(part for part in page if part.startswith(f"| {head} |")).splitlines() for head in ("what", "command"))
    cells = (
        [[cell.strip(" `") if i == 0 else cell.strip() for i, cell in enumerate(line[1:-1].split("|"))] for line in lines]
        for lines in found
    )
    kinds, commands = ({row[0]: row[1:] for row in rows if not row[0].startswith("-")} for rows in cells)
    return kinds, commands


def write(path: Path, rows: Rows) -> None:
    """Write rows in the format that a name ends in; as lines what has a text or a name, with ids where looked for."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
        return
    cells = [list(rows[0]), *(list(map(str, row.values())) for row in rows)]
    with_ids = path.stem in ("ref", "speakers")
    lines: dict[str, Callable[[], list[str]]] = {
        ".jsonl": lambda: [json.dumps(row) for row in rows],
        ".csv": lambda: [",".join(f'"{cell}"' if "," in cell else cell for cell in row) for row in cells],
        ".tsv": lambda: ["\t".join(row) for row in cells],
        ".txt": lambda: [" ".join(row) if with_ids else row[-1] if row[0] in IDS else row[0] for row in cells[1:]],
    }
    path.write_text("\n".join(lines[path.suffix]()) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All records in all formats, two models, and runs of lines and of records."""
    folder = tmp_path_factory.mktemp("commands")
    for name, rows in DATA.items():
        for form in FORMATS:
            write(folder / f"{name}{ending_of(form)}", rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, smoothing in {"m": "witten-bell", "n": "laplace"}.items():
            ok("train", smoothing, "text.txt", "--order", "2", "-o", name)
        for of, text in {"lines": "text.txt", "records": "text.jsonl"}.items():
            ok("eval", "-m", "m", text, "-o", f"run-{of}")
            ok("eval", "-m", "n", text, "-o", f"other-{of}")
            ok("eval", "-m", "m", text, "--shard", "1/1", "-o", f"shards-{of}")
    return folder


def ending_of(form: str) -> str:
    return ".txt" if form == "text" else f".{form}"


def arguments(line: str, out: Path, form: str) -> list[str]:
    """A command line with all its files in a format."""
    if "--valid" in line:
        pytest.importorskip("torch")
    ending = ending_of(form)
    scored = out.with_name("scored.jsonl" if form == "text" else f"scored{ending}")
    of = "lines" if form == "text" else "records"
    return line.format(ending=ending, out=out, scored=scored, of=of).split()


def answer(line: str, out: Path, form: str, *options: str, stdin: bytes | None = None) -> str:
    """What a command prints, without what is of the files and not of their records."""
    result = run(*arguments(line, out, form), *options, stdin=stdin)
    assert result.exit_code == 0 or (line.startswith("audit") and result.exit_code == 1), result.output
    said = result.stdout
    if said.startswith("{"):
        said = json.dumps(
            json.loads(said, object_hook=lambda one: {key: one[key] for key in one if key not in VARIES}), indent=1
        )
    said = re.sub(r"\.(?:txt|jsonl|csv|tsv|parquet)\b", "", said.replace(str(out.parent), ""))
    return re.sub(r"(\w):\d+\b", r"\1:N", re.sub(r"<stdin>|\bstdin\b", "text", said))


def cells() -> Iterator[tuple[str, str, str]]:
    for kind, lines in CASES.items():
        yield from ((kind, name, form) for name in lines for form in FORMATS if form != "jsonl")


KNOWN: dict[tuple[str, str], str] = {}
"""Answers for JSON lines, by kind and name."""


@pytest.mark.parametrize(("kind", "name", "form"), list(cells()))
def test_a_command_reads_what_the_tables_say(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str, form: str
) -> None:
    """The same records in another format give the same answer; what has no tick is refused in words."""
    monkeypatch.chdir(folder)
    line = CASES[kind][name]
    reads = tables()[0]
    places = [{"lines": "text"}.get(cell.lower(), cell.lower()) for cell in reads["what"]]
    if reads[kind][places.index(form)] != "yes":
        assert refused(*arguments(line, tmp_path / "out", form))
        return
    if (kind, name) not in KNOWN:
        (tmp_path / "first").mkdir()
        KNOWN[kind, name] = answer(line, tmp_path / "first" / "out", "jsonl")
    expected, own = KNOWN[kind, name], answer(line, tmp_path / "out", form)
    if form == "text":
        expected, own = ("\n".join(WITHOUT_LINE_ENDS.findall(one)) for one in (expected, own))
    assert own == expected
    assert own or line.startswith("report")


def declared() -> Iterator[tuple[str, str, bool]]:
    """Each command with what it calls a file, and whether that is declared as a text."""
    for command, row in COMMANDS.items():
        for option in declared_options(row.verbs).values():
            if option.is_path and option.name not in row.without:
                texts = (part for kind in option.kinds for part in (kind, *get_args(kind)))
                yield command, option.name, any("Corpus" in str(part) for part in texts)


def read_by(command: str) -> list[str]:
    """The cells of a command's row: its texts, and its other records."""
    parameters = cli.get_command(click.Context(cli), command).params  # type: ignore[union-attr]
    spelled = {
        str(one.name): one.opts[-1].upper() if isinstance(one, click.Argument) else f"`{one.opts[-1]}`" for one in parameters
    }
    named = {kind: [name.split()[:2] for name in lines] for kind, lines in CASES.items()}
    named["texts"] += [name.split() for name in sorted(WAITS)]
    of = {kind: [name for whose, name in names if whose == command] for kind, names in named.items()}
    others = [(name, kind) for kind, names in of.items() if kind != "texts" for name in names]
    texts = [spelled[name] for name in spelled if name in of["texts"]]
    return [", ".join(texts), ", ".join(f"{spelled[name]}: {kind}" for name, kind in others)]


def test_every_file_that_a_command_reads_is_in_the_tables() -> None:
    """What is declared as a text is tried as one; any other file is tried, or known not to be of records."""
    tried = {name for lines in CASES.values() for name in lines}
    files = {f"{command} {name}": is_text for command, name, is_text in declared()}
    assert [name for name, is_text in files.items() if is_text and name not in CASES["texts"].keys() | WAITS] == []
    rest = files.keys() - tried - WAITS - LINES_ALONE
    assert {name for name in rest if name.split()[1] not in NO_RECORDS} == set()


def test_the_tables_have_every_command_and_format() -> None:
    kinds, commands = tables()
    assert list(kinds) == ["what", *CASES]
    assert commands.pop("command") == ["texts", "other records"]
    assert [{"lines": "text"}.get(name.lower(), name.lower()) for name in kinds["what"]] == [*FORMATS[1:], FORMATS[0]]
    wanted = {name: cells for name in COMMANDS if any(cells := read_by(name))}
    assert "\n".join(f"| `{name}` | {' | '.join(cells)} |" for name, cells in commands.items()) == "\n".join(
        f"| `{name}` | {' | '.join(cells)} |" for name, cells in wanted.items()
    )


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": None}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_packed_files_are_read_as_they_are_without(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, compression: str
) -> None:
    monkeypatch.chdir(folder)
    file = f"text{ending_of(form)}"
    pack = PACKERS[compression] or pytest.importorskip("zstandard").ZstdCompressor().compress
    (tmp_path / f"{file}{compression}").write_bytes(pack(Path(file).read_bytes()))
    line = f"eval -m m {tmp_path}/{file}{compression} --json"
    if not FORMATS_OF_RECORDS[form].streams:  # type: ignore[index]
        assert "save it as a plain file first" in refused(*line.split())
        return
    assert answer(line, tmp_path / "out", form) == answer(f"eval -m m {file} --json", tmp_path / "out", form)


def with_format() -> list[str]:
    """The texts of commands with a --format; those of runs are read as the run was, and others may be of one format only."""
    own = ((name, line) for name, line in CASES["texts"].items() if ".txt" not in line and "run-" not in line)
    names = {command: {one.name for one in declared_options(row.verbs).values()} for command, row in COMMANDS.items()}
    return [name for name, line in own if "format" in names[name.split()[0]]]


@pytest.mark.parametrize("name", with_format())
def test_a_text_comes_from_a_pipe(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Records come from standard input as from a file; what reads them twice says so."""
    monkeypatch.chdir(folder)
    line, content = CASES["texts"][name], Path("text.jsonl").read_bytes()
    (tmp_path / "piped").mkdir()
    piped = line.replace("text{ending}", "-", 1), tmp_path / "piped" / "out", "jsonl", "--format", "jsonl"
    result = run(*arguments(*piped[:3]), *piped[3:], stdin=content)
    if result.exit_code:
        assert re.search("only once|can be read once|save it", result.stderr), result.stderr
        return
    assert answer(*piped, stdin=content) == answer(line, tmp_path / "out", "jsonl")
