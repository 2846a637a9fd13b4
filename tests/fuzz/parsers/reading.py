"""What holds for every text that was read, in whatever form it came."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import zstandard

from lmgauge.base.errors import InputError
from lmgauge.text.documents import Corpus
from lmgauge.text.reading_options import ReadingOptions

PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


def check_reading(path: Path, content: bytes, options: ReadingOptions, chance: random.Random, streams: bool = True) -> str:
    """Read a file, hold what comes against the laws, and read it again in other ways, which must all be one.

    Args:
        path: where to write the content; its name gives the format.
        content: of the file.
        options: how to read.
        chance: draws which other ways are tried.
        streams: False for a format that is not read from a stream.

    Raises:
        LmgaugeError: the text is refused, in every way with the same words.
        AssertionError: two ways differ, or a count is wrong.
    """
    path.write_bytes(content)
    first = outcome(str(path), options)
    other = replace(options, block_bytes=chance.choice([1, 7, 64, 1 << 20]))
    second = outcome(str(path), other)
    assert isinstance(second, InputError) == isinstance(first, InputError), (first, second)
    if isinstance(first, tuple) and isinstance(second, tuple):
        # Of several problems, the one that is met first depends on the size of blocks.
        assert_same(first, (second[0], second[1] | {"first_unusable": first[1]["first_unusable"]}), str(path), str(path))
    if streams and chance.random() < 0.3:
        ending = chance.choice(list(PACKERS))
        packed = path.with_name(path.name + ending)
        cut = chance.randint(0, len(content))
        members = [content[:cut], content[cut:]] if chance.random() < 0.5 else [content]
        packed.write_bytes(b"".join(map(PACKERS[ending], members)))
        assert_same(first, outcome(str(packed), options), str(path), str(packed))
    if streams and chance.random() < 0.3:
        with standard_input(content):
            named = replace(options, format=_format_of(path))
            assert_same(first, outcome("-", named), str(path), "<stdin>")
    if isinstance(first, InputError):
        raise first
    return "read"


def outcome(path: str, options: ReadingOptions) -> InputError | tuple[list[bytes], dict[str, object]]:
    """Return the segments of a text and what was counted, its counts checked; or why it is refused."""
    corpus = Corpus.from_files(path, reading=options)
    texts: list[bytes] = []
    size = 0
    try:
        for block in corpus:
            own = [block.text(i) for i in range(len(block))]
            assert block.first == len(texts), "segments are not numbered in a row"
            size += sum(map(len, own)) + block.terminator * len(own)
            assert block.ids is None or len(block.ids) == len(own)
            texts += own
    except InputError as error:
        return error
    report = corpus.report
    assert report.bytes == size, (report.bytes, size)
    assert report.segments == len(texts)
    characters = sum(len(text.decode()) for text in texts) + size - sum(map(len, texts))
    assert report.characters == characters, (report.characters, characters)
    assert options.join or not any(b"\0" in text or b"\r\n" in text for text in texts)
    return texts, {**asdict(report), "groups": corpus.group_names, "documents": corpus.document_names}


def assert_same(one: object, other: object, name: str, other_name: str) -> None:
    """Hold two outcomes against each other: the same text and counts, or a refusal of the same words."""
    if isinstance(one, InputError) and isinstance(other, InputError):
        words, others = str(one).replace(name, "X"), str(other).replace(other_name, "X")
        # A long message is cut by its length, to which the name belongs.
        assert words == others or (words[:1000] == others[:1000] and "..." in words), (words, others)
        return
    assert type(one) is type(other), (one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        assert one[0] == other[0], "the text differs"
        counts, others = one[1], other[1]
        for key in set(counts) | set(others):
            if key != "groups":  # named after the file
                count, other_count = str(counts[key]).replace(name, "X"), str(others[key]).replace(other_name, "X")
                assert count == other_count, (key, count, other_count)


@contextmanager
def standard_input(content: bytes) -> Iterator[None]:
    """Let standard input hold `content`."""
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(content))
    try:
        yield
    finally:
        sys.stdin = before


def _format_of(path: Path) -> str:
    return {".txt": "text"}.get(path.suffix, path.suffix[1:])
