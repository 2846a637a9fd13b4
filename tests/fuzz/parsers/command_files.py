"""The other files that commands read: transcripts, n-best lists, pairs, questions, tables, percentiles, audits, shards."""

from __future__ import annotations

import json
import random
from pathlib import Path

import lmgauge
from lmgauge import Corpus
from lmgauge.api.sharding.evaluation import PARTS_FILE, RECORD_FILE
from lmgauge.base.files import file_sha256
from lmgauge.base.json_text import to_json
from lmgauge.work.manifest import content_fingerprint
from tests.fuzz.mutations import PIECES, changed, changed_lines, changed_value, hostile_text
from tests.fuzz.parsers.command_line import check_command, run_quietly, some
from tests.fuzz.table import Attempt

TEXTS = ["the cat sat on the mat", "a dog ran", "", "the cat für 東京", "then the dog sat", "it runs"]
FIELD_PIECES = [
    b"=",
    b"1e999",
    b"nan",
    b"-1",
    b"(cat-1)",
    b"inter_segment_gap",
    b"1 A 0.00 0.25",
    b"NBestList1.0",
    b"0.5",
    b"'",
]
IDS = [f"s_{number}" for number in range(len(TEXTS))]

FILES: dict[str, str] = {
    "ref.txt": "\n".join(TEXTS) + "\n",
    "hyp.txt": "the cat sat at the mat\na dog\nb\nthe cat fur\nthen a dog sat\nit ran\n",
    "ref.jsonl": "".join(
        json.dumps({"id": i, "text": t, "who": i[-1:], "refs": [t, "a"]}) + "\n" for i, t in zip(IDS, TEXTS, strict=True)
    ),
    "hyp.jsonl": "".join(
        json.dumps({"id": i, "text": f"{t} a", "who": "x"}) + "\n" for i, t in zip(IDS[::-1], TEXTS[::-1], strict=True)
    ),
    "ref.tsv": "id\ttext\twho\n" + "".join(f"{i}\t{t}\t{i[-1:]}\n" for i, t in zip(IDS, TEXTS, strict=True)),
    "ref.kaldi": "".join(f"{i} {t}\n" for i, t in zip(IDS, TEXTS, strict=True)),
    "ref.trn": "".join(f"{t} ({i})\n" for i, t in zip(IDS, TEXTS, strict=True)),
    "ref.stm": ";; a comment\n" + "".join(f"f 1 s{n % 2} {n}.00 {n}.90 <o,f0> {t}\n" for n, t in enumerate(TEXTS)),
    "hyp.ctm": "".join(f"f 1 {n}.{k} 0.05 {w} 0.9\n" for n, t in enumerate(TEXTS) for k, w in enumerate(t.split())),
    "subs.tsv": "dog\tcat\nthe mat\ta mat\n",
    "groups.txt": "one\ntwo\none\ntwo\none\ntwo\n",
    "nbest.jsonl": "".join(
        json.dumps(
            {"id": i, "nbest": [{"text": t, "score": -1.5, "am": -20}, {"text": f"{t} a", "score": -1.25, "am": -21}]}
        )
        + "\n"
        for i, t in zip(IDS, TEXTS, strict=True)
    ),
    "lists/s_0": "-100.5 -10.25 4 the cat sat\n-101 -9.5 3 a cat\n",
    "lists/s_1": "NBestList1.0\n(-50) the cat\n",
    "kaldi/text": "s_0-1 the cat\ns_0-2 a cat\ns_1-1 a dog\n",
    "kaldi/scores": "s_0-1 -10.5\ns_0-2 -9\ns_1-1 -3\n",
    "pairs.jsonl": "".join(
        json.dumps({"sentence_good": t or "b", "sentence_bad": f"{t} a", "linguistics_term": i[-1:]}) + "\n"
        for i, t in zip(IDS, TEXTS, strict=True)
    ),
    "pairs.tsv": "".join(f"{t or 'b'}\t{t} a\tsome\n" for t in TEXTS),
    "questions.jsonl": "".join(
        json.dumps({"question": t, "choices": ["a", "b c", " d"], "answer": n % 3, "g": n}) + "\n"
        for n, t in enumerate(TEXTS)
    ),
    "systems.tsv": "system\tperplexity\tscore\na\t10\t1\nb\t20.5\t2\nc\t30\t3\nd\t25\t2.5\n",
    "systems.csv": 'system,perplexity,score\n"a",10,1\nb,20.5,2\n"c, d",30,3\nd,25,2.5\n',
    "systems.jsonl": "".join(
        json.dumps({"system": s, "perplexity": 10 + n, "score": n * n}) + "\n" for n, s in enumerate("abcd")
    ),
    "documents.jsonl": "".join(
        json.dumps({"text": t, "id": i, "lang": "en"}) + "\n" for i, t in zip(IDS, TEXTS, strict=True)
    ),
    "regions.tsv": "text_id\tstart\tend\n0\t0\t3\n0\t4\t7\n1\t0\t5\n",
    "numbers.txt": "0.5 1/4\n25% 0.125\n",
}
COMMANDS: list[tuple[list[str], list[list[str]]]] = [
    (
        ["wer", "ref.txt", "hyp.txt"],
        [["--substitutions", "subs.tsv"], ["--align"], ["--top", "3"], ["--lowercase"], ["--group", "groups.txt"]],
    ),
    (
        ["wer", "ref.jsonl", "hyp.jsonl", "--id", "id"],
        [["--group", "who"], ["--align"], ["--standardize"], ["--document", "who"]],
    ),
    (["cer", "ref.kaldi", "ref.kaldi", "--format", "kaldi"], [["--unicode-form", "NFKC"], ["--remove-punctuation"]]),
    (["wer", "ref.trn", "ref.trn", "--format", "trn"], [["--remove-nonwords"], ["--sentence"]]),
    (["wer", "ref.stm", "hyp.ctm"], [["--group", "speaker"], ["--align"]]),
    (
        ["bleu", "ref.txt", "hyp.txt"],
        [["-r", "groups.txt"], ["--sentence"], ["--tokenizer", "intl"], ["--document", "groups.txt"]],
    ),
    (["chrf", "ref.tsv", "ref.jsonl", "--field", "text", "--id", "id"], [["--group", "who"], ["--sentence"]]),
    (["ter", "ref.jsonl", "hyp.jsonl", "--ref-field", "refs"], [["--sentence"]]),
    (["f1", "groups.txt", "groups.txt"], [["--labels", "one,two"], ["--average", "micro"]]),
    (
        ["rescore", "nbest.jsonl", "--weights", "score=1,words=0.5"],
        [["-m", "model"], ["-o", "best.txt"], ["--test-ref", "ref.kaldi"]],
    ),
    (
        ["rescore", "nbest.jsonl", "--tune", "nbest.jsonl", "--ref", "ref.kaldi", "-m", "model"],
        [["--write-scores", "best.jsonl"], ["--test-ref", "ref.trn"]],
    ),
    (["rescore", "lists", "--weights", "acoustic=1,lm=0.5"], [["-o", "best.jsonl"], ["--format", "srilm"]]),
    (["rescore", "kaldi", "--weights", "score=1"], [["-o", "best.txt"], ["--format", "kaldi"]]),
    (["pairs", "-m", "model", "pairs.jsonl"], [["--by", "none"], ["-o", "rows.tsv"]]),
    (["pairs", "-m", "model", "pairs.tsv"], [["-o", "rows.jsonl"]]),
    (
        ["multiple-choice", "-m", "model", "questions.jsonl"],
        [["--by", "g"], ["--boundary", "apart"], ["-o", "rows.csv"], ["--given", "none"]],
    ),
    (["correlate", "systems.tsv", "-y", "score"], [["--rows", "rows.tsv"], ["--no-log-x"]]),
    (["correlate", "systems.csv"], [["--rows", "rows.jsonl"]]),
    (["correlate", "systems.jsonl", "systems.tsv"], [["-x", "score"]]),
    (["correlate", "bleu.json", "systems.tsv"], []),
    (
        [
            "filter",
            "-m",
            "model",
            "documents.jsonl",
            "-o",
            "out.jsonl",
            "--percentiles",
            "percentiles.json",
            "--keep",
            "p10..p90",
        ],
        [["--rejects", "rejects.jsonl"]],
    ),
    (
        [
            "filter",
            "-m",
            "model",
            "documents.jsonl",
            "-o",
            "out/",
            "--percentiles",
            "percentiles.json",
            "--buckets",
            "p33,p67",
        ],
        [["--min-bytes", "3"]],
    ),
    (["score", "-m", "model", "documents.jsonl", "-o", "out.jsonl"], [["--lines"], ["--by", "lang"], ["--group", "lang"]]),
    (["report", "run", "--audit", "audit.json", "-o", "page.html"], []),
    (["eval", "-m", "model", "ref.txt", "--per-word", "words.tsv", "--regions", "regions.tsv"], []),
    (["calc", "-"], [["--steps"], ["--log-unit", "bits"]]),
    (["merge", "shards", "-o", "merged"], [["--text", "ref.txt"]]),
]
OUTPUTS = [
    "best.txt",
    "best.jsonl",
    "rows.tsv",
    "rows.jsonl",
    "rows.csv",
    "out.jsonl",
    "out",
    "page.html",
    "words.tsv",
    "merged",
]
OUTPUTS += ["rejects.jsonl", ".out.jsonl.lmgauge", "out.jsonl.lmgauge"]


def prepare(folder: Path) -> Attempt:
    contents = {name: text.encode() for name, text in FILES.items()}
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    model = lmgauge.train("witten-bell", Corpus.from_strings(TEXTS), order=2)
    model.save(folder / "model")
    lmgauge.evaluate(model, folder / "ref.txt", output=folder / "run")
    (folder / "audit.json").write_text(to_json(lmgauge.audit_run(folder / "run").to_dict()))
    (folder / "bleu.json").write_text(
        run_quietly(["bleu", *(str(folder / name) for name in ("ref.txt", "hyp.txt", "groups.txt")), "--json"])
    )
    run_quietly(
        ["percentiles", "-m", str(folder / "model"), str(folder / "documents.jsonl"), "-o", str(folder / "percentiles.json")]
    )
    for shard in ("1/2", "2/2"):
        run_quietly(
            ["eval", "-m", str(folder / "model"), str(folder / "ref.txt"), "-o", str(folder / "shards"), "--shard", shard]
        )
    contents |= {name: (folder / name).read_bytes() for name in ("audit.json", "bleu.json", "percentiles.json")}
    contents |= {
        str(path.relative_to(folder)): path.read_bytes() for path in (folder / "shards").rglob("*") if path.is_file()
    }

    def attempt(chance: random.Random) -> str:
        words, options = chance.choice(COMMANDS)
        command = [*words, *some(chance, *options, ["--json"], rate=0.3)]
        read = [name for name in contents if name in command or name.partition("/")[0] in command]
        damaged = chance.choice(read or ["numbers.txt"])
        (folder / damaged).write_bytes(_changed(damaged, contents[damaged], chance))
        if damaged.startswith("shards/"):
            _sealed((folder / damaged).parent, chance)
        named = {*contents, *OUTPUTS, "model", "run", "shards", "lists", "kaldi", "out/"}
        arguments = [str(folder / word) + "/" * word.endswith("/") if word in named else word for word in command]
        try:
            return check_command(folder, arguments, OUTPUTS, (folder / "numbers.txt").read_bytes())
        finally:
            for name in [
                damaged,
                *(name for name in contents if damaged.startswith("shards/") and name.startswith("shards/")),
            ]:
                (folder / name).write_bytes(contents[name])

    return attempt


def _changed(name: str, content: bytes, chance: random.Random) -> bytes:
    """Change a file as its format allows, or its bytes."""
    draw = chance.random()
    if draw < 0.1:
        return changed(content, chance, 3, [*PIECES, *FIELD_PIECES])
    if name.endswith((".parquet", ".zst")):
        return changed(content, chance, 1)
    if name.endswith(".json"):
        return json.dumps(changed_value(json.loads(content), chance)).encode("utf-8", "surrogatepass")
    if name.endswith(".jsonl") and draw < 0.7:
        lines = content.splitlines()
        at = chance.randrange(len(lines))
        lines[at] = json.dumps(changed_value(json.loads(lines[at]), chance, 2)).encode()
        return b"\n".join(lines)
    if draw < 0.3:
        return changed(content, chance, 1, [*FIELD_PIECES, hostile_text(chance, 3).encode()])
    return changed_lines(content, chance, 2)


def _sealed(folder: Path, chance: random.Random) -> None:
    """Make the seals of a shard anew, so that what is in it is looked at."""
    record = folder / RECORD_FILE
    try:
        content = json.loads(record.read_bytes())
        content |= {"files": {PARTS_FILE: file_sha256(folder / PARTS_FILE)}} if chance.random() < 0.9 else {}
        record.write_text(json.dumps(content | {"fingerprint": content_fingerprint(content)}))
    except (ValueError, TypeError, OSError, RecursionError):
        return
