"""Texts of the task benchmarks, built once into the cache folder: real translations, real transcripts of recognizers."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import harness

WMT, CALLS = "restricted/wmt22", "open/asr-earnings21"
PAIRS = ("en-de", "de-en", "en-cs", "cs-en", "zh-en")
SYSTEMS = ("first", "second", "third")
RECOGNIZERS = ("google", "amazon", "microsoft", "speechmatics", "rev_kaldi", "rev_espnet", "kaldi_librispeech")
UTTERANCES, UTTERANCE_WORDS = 100_000, 11


def task_texts(segments: int) -> dict[str, Path]:
    """Paths of "reference" and the outputs of three systems, of `segments` segments."""
    paths = {name: harness.cache_folder() / f"wmt22.{segments}.{name}.txt" for name in ("reference", *SYSTEMS)}
    if not all(path.exists() for path in paths.values()):
        harness.run_child([sys.executable, __file__, "translations", str(segments), *map(str, paths.values())])
    return paths


def utterances() -> tuple[Path, Path]:
    """Paths of 100,000 pieces of earnings calls, and of what seven recognizers heard."""
    return _call_texts(f"calls.{UTTERANCES}", "calls")


def whole_calls() -> tuple[Path, Path]:
    """Paths of whole earnings calls, a call a line, and of what seven recognizers heard."""
    return _call_texts("calls.whole", "whole-calls")


def _call_texts(name: str, work: str) -> tuple[Path, Path]:
    reference, hypothesis = (harness.cache_folder() / f"{name}.{side}.txt" for side in ("reference", "hypothesis"))
    if not (reference.exists() and hypothesis.exists()):
        harness.run_child([sys.executable, __file__, work, str(reference), str(hypothesis)])
    return reference, hypothesis


def _folder() -> Path:
    folder = Path(os.environ.get("LMGAUGE_DATA") or harness.DATA)
    if not (folder / WMT).is_dir():
        harness.give_up(f"{folder / WMT} is not there: set LMGAUGE_DATA to the folder that holds it")
    return folder


def _members(archive: Path) -> dict[str, list[str]]:
    with tarfile.open(archive) as packed:
        members = {}
        for member in packed.getmembers():
            file = packed.extractfile(member)
            if file is not None:
                text = io.TextIOWrapper(file, encoding="utf-8", newline="\n").read()
                members[Path(member.name).name] = text.removesuffix("\n").split("\n")
    return members


def _translations(segments: int, targets: list[str]) -> None:
    archives = [_members(_folder() / WMT / f"{pair}.tar.gz") for pair in PAIRS]
    columns: list[list[str]] = [[] for _ in targets]
    turn = 0
    while len(columns[0]) < segments:  # other systems, and another reference where there is one, each time round
        for lines in archives:
            references = sorted(name for name in lines if name.startswith("ref."))
            systems = sorted(name for name in lines if name.startswith("hyp."))
            columns[0].extend(lines[references[turn % len(references)]])
            for i, into in enumerate(columns[1:]):
                into.extend(lines[systems[(turn + i) % len(systems)]])
        turn += 1
    for lines, target in zip(columns, targets, strict=True):
        _write(target, lines[:segments])


def _calls(pairs: Iterator[tuple[list[str], list[str]]], reference: str, hypothesis: str) -> None:
    utterance_pairs = [(" ".join(said), " ".join(heard)) for said, heard in itertools.islice(pairs, UTTERANCES)]
    _write(reference, [pair[0] for pair in utterance_pairs])
    _write(hypothesis, [pair[1] for pair in utterance_pairs])


def _transcripts() -> Iterator[tuple[list[str], list[str]]]:
    """The words of each call and what each recognizer made of them."""

    def read(name: str) -> dict[str, list[str]]:
        with gzip.open(_folder() / CALLS / f"{name}.tsv.gz", "rt", encoding="utf-8") as file:
            return {line.split("\t")[0]: line.rstrip("\n").split("\t")[1].split() for line in file}

    truth = read("ref")
    for recognizer in RECOGNIZERS:
        for call, heard in read(recognizer).items():
            yield truth[call], heard


def _pieces() -> Iterator[tuple[list[str], list[str]]]:
    """Calls cut every few words of the reference, and what the recognizer made of those."""
    from rapidfuzz.distance import Levenshtein

    for said, heard in _transcripts():
        where = [0] * (len(said) + 1)  # the first word heard for each word said
        for _, begin, end, at, until in Levenshtein.opcodes(said, heard):
            for i in range(begin, end):
                where[i] = min(at + i - begin, until)
            where[end] = until
        for begin in range(0, len(said), UTTERANCE_WORDS):
            end = min(begin + UTTERANCE_WORDS, len(said))
            yield said[begin:end], heard[where[begin] : where[end]]


def _write(target: str, lines: list[str]) -> None:
    part = Path(target + ".part")
    part.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    part.rename(target)


if __name__ == "__main__":
    if sys.argv[1] == "translations":
        _translations(int(sys.argv[2]), sys.argv[3:])
    else:
        _calls(_pieces() if sys.argv[1] == "calls" else _transcripts(), *sys.argv[2:])
