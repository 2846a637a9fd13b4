"""The parsers that are tried: a row each."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Attempt = Callable[[random.Random], str]
"""Draws one input, gives it to the parser, and returns in a word or two how that ended: "read", "refused", "same" ...

It may let a `LmgaugeError` through, which counts as "refused". Whatever else it raises is a fault.
Where it holds something open, it has a function `close`.
"""


@dataclass(frozen=True)
class Parser:
    """What is tried.

    Attributes:
        name: As it stands in the table of counts.
        module: Where its function `prepare(folder) -> Attempt` stands; it makes in `folder` what all inputs begin with.
        reads: What the parser reads, for people.
        budget: How many inputs the suite tries.
        needs: Packages without which it is left out.
        bounded: Whether long runs limit its memory; False where a library reserves far more addresses than it uses.
    """

    name: str
    module: str
    reads: str
    budget: int = 200
    needs: tuple[str, ...] = ()
    bounded: bool = True

    def missing(self) -> list[str]:
        """Return the packages it needs that are not installed."""
        return [package for package in self.needs if importlib.util.find_spec(package) is None]

    def prepare(self, folder: Path) -> Attempt:
        """Make what all its inputs begin with in `folder`."""
        attempt: Attempt = importlib.import_module(self.module).prepare(folder)
        return attempt


PARSERS = [
    Parser("kernels", "tests.fuzz.kernels.attempts", "the compiled functions, called by hand", budget=600),
    Parser("arpa", "tests.fuzz.parsers.arpa", "ARPA files"),
    Parser("counts", "tests.fuzz.parsers.counts", "counts of n-grams", budget=100),
    Parser("kenlm", "tests.fuzz.parsers.kenlm", "binary files of KenLM: probing, tries, quantized, with arrays"),
    Parser("bases", "tests.fuzz.parsers.bases", "stored bases of divergences, a part of them sealed anew", budget=100),
    Parser("folders", "tests.fuzz.parsers.folders", "model folders damaged: refused, or the same numbers", budget=60),
    Parser("resealed", "tests.fuzz.parsers.resealed", "model folders changed, all digests made anew", budget=80),
    Parser(
        "tokenizer.json", "tests.fuzz.parsers.tokenizer_json", "tokenizers of the tokenizers library", needs=("tokenizers",)
    ),
    Parser("sentencepiece", "tests.fuzz.parsers.sentencepiece_model", "SentencePiece models", needs=("sentencepiece",)),
    Parser("word lists", "tests.fuzz.parsers.word_lists", "lists of words, and vocabularies made of them"),
    Parser("networks", "tests.fuzz.parsers.networks", "folders of networks", 8, ("torch", "transformers", "safetensors")),
    Parser(
        "checkpoints", "tests.fuzz.parsers.checkpoints", "trainings of networks that were stopped, resumed", 4, ("torch",)
    ),
    Parser("work folders", "tests.fuzz.parsers.work_folders", "work of trainings that were stopped, resumed", budget=12),
    Parser("text", "tests.fuzz.parsers.text_lines", "texts of lines, plain, packed and from a stream", needs=("zstandard",)),
    Parser("jsonl", "tests.fuzz.parsers.jsonl", "records as lines of JSON", needs=("zstandard",)),
    Parser("tsv", "tests.fuzz.parsers.tsv", "tab-separated tables", needs=("zstandard",)),
    Parser("csv", "tests.fuzz.parsers.csv_tables", "tables with commas", needs=("zstandard",)),
    Parser("parquet", "tests.fuzz.parsers.parquet", "Parquet files as texts", needs=("zstandard",)),
    Parser("percentiles", "tests.fuzz.parsers.percentile_files", "files of percentiles"),
    Parser("shards", "tests.fuzz.parsers.shards", "shards and filtered folders, sealed anew, merged", 40, ("zstandard",)),
    Parser("journals", "tests.fuzz.parsers.journals", "scores that a stopped run of a network kept", 100, ("torch",)),
    Parser("documents", "tests.fuzz.parsers.documents", "documents to filter, JSONL and Parquet", 150),
    Parser("score table", "tests.fuzz.parsers.score_table", "score tables of other programs, JSON lines and Parquet"),
    Parser("logs", "tests.fuzz.parsers.logs", "logs of other programs"),
    Parser("web", "tests.fuzz.parsers.web", "replies of web servers that have a text"),
    Parser("replies", "tests.fuzz.parsers.replies", "replies of completions servers"),
    Parser(
        "explorer",
        "tests.fuzz.parsers.explorer_requests",
        "requests to the explorer",
        budget=100,
        needs=("starlette", "uvicorn", "jinja2"),
        bounded=False,  # V8, in which charts are drawn
    ),
    Parser(
        "command files", "tests.fuzz.parsers.command_files", "the other files that commands read", 100, ("jinja2",), False
    ),
    Parser("command lines", "tests.fuzz.parsers.command_lines", "options of all commands", 40, ("jinja2",), False),
    Parser(
        "run folders",
        "tests.fuzz.parsers.run_folders",
        "run folders, through every command",
        budget=40,
        needs=("starlette", "jinja2"),
        bounded=False,  # pages draw charts
    ),
]


def named(name: str) -> Parser:
    """Return the parser of this name."""
    return next(parser for parser in PARSERS if parser.name == name)
