"""The bad inputs of `bad_inputs.py`: what is wrong with each, and the files."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

Files = dict[str, bytes]
TRAIN = b"the cat sat on the mat\nthe dog sat on a mat\na cat saw the dog\n"
TEXT = b"the cat sat on the mat\nthe zebra sat on a mat\na cat saw the dog\n"
REFERENCES = b"the cat sat on the mat today\na dog was seen on the mat\nthey saw the dog run home\n"
HYPOTHESES = b"the cat sat on a mat today\na dog was seen near the mat\nthey saw a dog run home\n"
LOGPROBS = {0: [-1.5, -2.0, -0.5], 1: [-2.5, -1.0, -0.75]}
"""Nats of the words and the sentence end of two segments, `the cat` and `a dog`."""


@dataclass(frozen=True)
class Case:
    """A bad input.

    Attributes:
        kind: decides which programs get it: "arpa", "binary", "text", "bleu", "wer", "scores".
        wrong: what is wrong with it.
        files: by name; what is not among them is as in the sound input of this kind.
        peer: for "scores", what the model of the harness returns.
    """

    kind: str
    wrong: str
    files: Files
    peer: str = ""


def cases(arpa: bytes, binary: bytes) -> Iterator[Case]:
    """Yield all cases.

    Args:
        arpa: a sound file of bigrams.
        binary: the same model as KenLM stores it.
    """
    yield from _arpa(arpa)
    yield from _binary(binary)
    yield from _text()
    yield from _tasks()
    yield from _scores()


def _arpa(arpa: bytes) -> Iterator[Case]:
    lines = arpa.split(b"\n")
    bigrams = lines.index(b"\\2-grams:") + 1
    count = next(line for line in lines if line.startswith(b"ngram 2="))
    number = int(count.partition(b"=")[2])

    def with_lines(changed: dict[int, bytes]) -> bytes:
        return b"\n".join(changed.get(place, line) for place, line in enumerate(lines))

    first, unigram = (
        lines[bigrams].split(b"\t"),
        next(i for i, line in enumerate(lines) if line.endswith(b"\tcat") or b"\tcat\t" in line),
    )
    word = lines[unigram].split(b"\t")
    changed = {
        "cut within the bigrams": b"\n".join(lines[: bigrams + 3]),
        r"no \end\ line": arpa.replace(b"\\end\\", b""),
        "fewer bigrams are announced than there are": arpa.replace(count, b"ngram 2=%d" % (number - 2)),
        "more bigrams are announced than there are": arpa.replace(count, b"ngram 2=%d" % (number + 2)),
        "10^12 bigrams are announced": arpa.replace(count, b"ngram 2=1000000000000"),
        "order 100 is announced": arpa.replace(count, count + b"".join(b"\nngram %d=1" % order for order in range(3, 101))),
        "a log-probability is nan": with_lines({bigrams: b"\t".join([b"nan", *first[1:]])}),
        "a log-probability is above 0": with_lines({unigram: b"\t".join([b"0.5", *word[1:]])}),
        "a log-probability is abc": with_lines({bigrams: b"\t".join([b"abc", *first[1:]])}),
        "decimal commas": with_lines({bigrams: b"\t".join([first[0].replace(b".", b","), *first[1:]])}),
        "a bigram stands there twice, with other numbers": arpa.replace(count, b"ngram 2=%d" % (number + 1)).replace(
            lines[bigrams], lines[bigrams] + b"\n" + b"\t".join([b"-2.5", *first[1:]])
        ),
        "a bigram has a word that is not a unigram": with_lines({bigrams: first[0] + b"\t<s> zebra"}),
        "the unknown word is written <UNK>": arpa.replace(b"<unk>", b"<UNK>"),
        "no unknown word": arpa.replace(b"ngram 1=%d" % _count(lines, 1), b"ngram 1=%d" % (_count(lines, 1) - 1)).replace(
            next(line for line in lines if b"<unk>" in line) + b"\n", b""
        ),
        "a byte order mark": b"\xef\xbb\xbf" + arpa,
        "CRLF line ends": arpa.replace(b"\n", b"\r\n"),
        "a NUL byte in a word": arpa.replace(b"cat", b"c\x00t"),
        "random bytes": random.Random(1).randbytes(5000),
        "an empty file": b"",
    }
    for wrong, content in changed.items():
        yield Case("arpa", wrong, {"model.arpa": content})


def _count(lines: list[bytes], order: int) -> int:
    return next(int(line.partition(b"=")[2]) for line in lines if line.startswith(b"ngram %d=" % order))


def _binary(binary: bytes) -> Iterator[Case]:
    def flipped(place: int) -> bytes:
        return binary[:place] + bytes([binary[place] ^ 0x40]) + binary[place + 1 :]

    changed = {
        "the last 100 bytes are missing": binary[:-100],
        "the head alone": binary[:120],
        "a flipped bit in the head": flipped(100),
        "a flipped bit in the counts": flipped(112),
        "a flipped bit in the tables": flipped(len(binary) * 2 // 3),
        "a flipped bit in the words": flipped(len(binary) - 12),
        "numbers of the tables overwritten by random bytes": binary[:300]
        + random.Random(2).randbytes(len(binary) - 600)
        + binary[-300:],
    }
    for wrong, content in changed.items():
        yield Case("binary", wrong, {"model.bin": content})


def _text() -> Iterator[Case]:
    changed = {
        "an empty text": b"",
        "a NUL byte in a word": TEXT.replace(b"cat", b"c\x00t"),
        "invalid UTF-8 in a word": TEXT.replace(b"cat", b"c\xfft"),
        "no final line end": TEXT[:-1],
        "CRLF line ends": TEXT.replace(b"\n", b"\r\n"),
        "the sentence end </s> written in the text": TEXT.replace(b"cat", b"</s>"),
    }
    for wrong, content in changed.items():
        yield Case("text", wrong, {"text.txt": content})


def _tasks() -> Iterator[Case]:
    changed: dict[str, Files] = {
        "a hypothesis is missing": {"hypotheses": HYPOTHESES[: HYPOTHESES[:-1].rindex(b"\n") + 1]},
        "no hypotheses at all": {"hypotheses": b""},
        "all references are empty": {"references": b"\n\n\n"},
        "invalid UTF-8 in a hypothesis": {"hypotheses": HYPOTHESES.replace(b"cat", b"c\xfft")},
        "a line separator (U+2028) within a hypothesis": {
            "hypotheses": HYPOTHESES.replace(b"on a mat", b"on\xe2\x80\xa8a mat")
        },
        "a line of one character": {"references": b"I\n" + REFERENCES, "hypotheses": b"X\n" + HYPOTHESES},
    }
    for kind in ("bleu", "wer"):
        for wrong, files in changed.items():
            yield Case(kind, wrong, files)


def table(rows: dict[int, list[float]]) -> bytes:
    """Return a score table as JSON lines."""
    lines = [json.dumps({"segment": segment, "logprob": value}) for segment, values in rows.items() for value in values]
    return "\n".join(lines).encode() + b"\n"


def _scores() -> Iterator[Case]:
    nan, above = {**LOGPROBS, 1: [-2.5, float("nan"), -0.75]}, {**LOGPROBS, 1: [-2.5, 50.0, -0.75]}
    yield Case("scores", "a log-probability is NaN", {"scores.jsonl": table(nan)}, "nan")
    yield Case("scores", "a log-probability is 50", {"scores.jsonl": table(above)}, "above")
    yield Case("scores", "scores of the last segment are missing", {"scores.jsonl": table({0: LOGPROBS[0]})}, "short")
    yield Case("scores", "scores of a segment that is not there", {"scores.jsonl": table({**LOGPROBS, 2: [-1.0]})}, "long")
    minus = {**LOGPROBS, 1: [-2.5, -float("inf"), -0.75]}
    yield Case("scores", "a log-probability is minus infinity", {"scores.jsonl": table(minus)}, "minus")
    tenth = {segment: [value / 2.302585092994046 for value in values] for segment, values in LOGPROBS.items()}
    yield Case("scores", "log10 in place of natural logarithms", {"scores.jsonl": table(tenth)}, "log10")
    cut = table(LOGPROBS)[:-20]
    yield Case("scores", "the file of scores ends within a line", {"scores.jsonl": cut})
