"""Shards of evaluations, and folders of filtered files, changed, most sealed anew: merged.

Who makes the seals anew may have other numbers merged; what is wrong in itself, or is of another text, is refused.
"""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path

import zstandard

import lmgauge
from lmgauge import Corpus
from lmgauge.api.sharding.evaluation import PARTS_FILE, RECORD_FILE
from lmgauge.base.files import file_sha256
from lmgauge.work.manifest import content_fingerprint
from tests.fuzz.mutations import changed, changed_value
from tests.fuzz.parsers.command_line import run_quietly
from tests.fuzz.parsers.model_folders import Files, as_json, files_of, put
from tests.fuzz.table import Attempt

TEXTS = ["the cat sat on the mat", "a dog ran", "", "the cat für 東京", "then the dog sat", "it runs"]


def prepare(folder: Path) -> Attempt:
    text, documents = folder / "text.txt", folder / "in.jsonl"
    text.write_text("".join(f"{line}\n" for line in TEXTS))
    documents.write_text("".join(json.dumps({"text": line}) + "\n" for line in TEXTS))
    lmgauge.train("witten-bell", Corpus.from_strings(TEXTS), order=2).save(folder / "model")
    model = ["-m", str(folder / "model")]
    for number in ("1/2", "2/2"):
        line = ["eval", *model, str(text), "--columns", "entropy,rank"]
        run_quietly([*line, "-o", str(folder / "evaluation"), "--shard", number])
    whole: dict[str, Files] = {"evaluation": files_of(folder / "evaluation")}
    run_quietly(["filter", *model, str(documents), "-o", f"{folder / 'filtered'}/", "--max-perplexity", "9"])
    whole["filtered"] = {name: own for name, own in files_of(folder / "filtered").items() if "/" in name}
    target = folder / "changed"

    def attempt(chance: random.Random) -> str:
        kind = chance.choice([*whole])
        files = dict(whole[kind])
        for _ in range(chance.choice([1, 1, 2])):
            name = chance.choice([*files])
            files[name] = _changed(name, files[name], chance)
        put(files, target)
        if chance.random() < 0.9:
            for path in target.rglob("*.json"):
                _seal(path)
        run = folder / "run" if kind == "evaluation" and chance.random() < 0.3 else None
        json.dumps(lmgauge.merge(target, run).to_dict())
        return "read"

    return attempt


def _changed(name: str, content: bytes, chance: random.Random) -> bytes:
    """Return the content of a file of which values, or bytes, packed ones too, are others."""
    if chance.random() < 0.1:
        return changed(content, chance, 2)
    if name.endswith(".json"):
        with suppress(ValueError, RecursionError):  # it is damaged already
            return as_json(changed_value(json.loads(content), chance, 1))
    if name.endswith(".zst"):
        with suppress(zstandard.ZstdError):
            parts = zstandard.ZstdDecompressor().stream_reader(content).read()
            return zstandard.compress(changed(parts, chance, 2))
    return changed(content, chance, 1)


def _seal(path: Path) -> None:
    """Give a manifest the digests of the files beside it and of itself, as far as it has such."""
    with suppress(ValueError, TypeError, OSError, RecursionError, AttributeError):
        content = json.loads(path.read_bytes())
        if path.name == RECORD_FILE:
            content["files"] = {PARTS_FILE: file_sha256(path.with_name(PARTS_FILE))}
        path.write_bytes(as_json(content | {"fingerprint": content_fingerprint(content)}))
