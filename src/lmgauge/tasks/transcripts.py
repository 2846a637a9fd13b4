"""Transcripts as speech tools write them: Kaldi's `text`, and NIST's trn, stm and ctm (the formats of sclite).

kaldi   utt-1 the cat sat                       an id, then words
trn     the { cat / cats } sat; (utt-1)         words, then an id in round brackets; alternatives; word;tag; ;; comments
stm     rec-1 A anna 0.00 4.20 <O,F> the cat    recording, channel, speaker, begin, end, label (may be missing), words
ctm     rec-1 A 0.35 0.20 the 0.98              recording, channel, begin, duration, word, confidence (may be missing)
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from lmgauge.choices import TRANSCRIPT_FORMATS, TranscriptFormat
from lmgauge.errors import InputError, UsageError
from lmgauge.readable import first_few
from lmgauge.records.formats import COMPRESSIONS
from lmgauge.tasks.alternatives import Lattice, Mark, Token
from lmgauge.text.documents import Corpus
from lmgauge.text.reading_options import ReadingOptions

IGNORED = "IGNORE_TIME_SEGMENT_IN_SCORING"
"""The words of an stm segment that is not scored, nor what was recognized in its time; also without the underscores."""

_COMMENT = ";;"
_ID_AT_END = re.compile(r"(.*)\(([^()\s]+)\)\s*", re.DOTALL)
_BRACES = re.compile(r"[{}]|[^\s{}]+")
_SPEAKER = re.compile(r"[^-_]+(?=[-_])")
_TAGGED = re.compile(r"((?:[^\\;]|\\.)+);+[^;]")
_MARKS = {mark.value: mark for mark in Mark}
_ALT_MARKS = {"<ALT_BEGIN>": Mark.BEGIN, "<ALT>": Mark.NEXT, "<ALT_END>": Mark.END}


@dataclass(frozen=True, slots=True)
class Utterance:
    """A segment of a transcript."""

    id: str  # what other files call it by
    text: str  # its words; the first of all alternatives
    lattice: Lattice | None  # all readings, where there are alternatives
    labels: Mapping[str, str]  # "speaker", and of stm segments "file", "channel" and "label"
    marked: tuple[str, ...] = ()  # words as the file has them of which a part is not in the text: said;tag, @


class Segment(NamedTuple):
    """A segment of an stm file, with its times in seconds."""

    utterance: Utterance
    channel: tuple[str, str]
    begin: float
    end: float
    is_ignored: bool


class Word(NamedTuple):
    """What a ctm file has between two segments: a word, or alternatives of several, which belong together."""

    begin: float
    middle: float  # of its time in seconds; of alternatives the latest
    tokens: tuple[Token, ...]  # the word, or words and marks
    place: str
    marked: tuple[str, ...] = ()


def format_of(path: str, given: str | None) -> TranscriptFormat | None:
    """Return which of the formats a file of references has, by the option or by its name; None: none of them."""
    base = os.path.basename(path).lower()
    bare, suffix = os.path.splitext(base)
    base = bare if suffix in COMPRESSIONS else base
    if given is not None:
        return next((known for known in TRANSCRIPT_FORMATS if known == given), None)
    by_suffix: dict[str, TranscriptFormat] = {".trn": "trn", ".stm": "stm", ".ctm": "stm"}
    return "kaldi" if base == "text" else by_suffix.get(os.path.splitext(base)[1])


def is_ctm(path: str, otherwise: bool = True) -> bool:
    """Return whether a file has words with times rather than segments, where the format is stm."""
    match = re.search(r"\.(stm|ctm)(\.\w+)?\Z", os.path.basename(path).lower())
    return otherwise if match is None else match[1] == "ctm"


def read_kaldi(lines: Iterator[tuple[str, str]]) -> Iterator[Utterance]:
    """Yield the utterances of Kaldi's `text`."""
    # [utterance.labels for utterance in read_kaldi(iter([("anna-1 good morning", "text:1")]))] -> [{'speaker': 'anna'}]
    for line, place in lines:
        parts = line.split(maxsplit=1)
        if not parts:
            raise InputError(f"{place}: the line is blank, and in Kaldi's text each begins with the id of an utterance")
        text = parts[1].rstrip() if len(parts) > 1 else ""
        yield Utterance(parts[0], text, None, _speaker(parts[0]))


def read_trn(lines: Iterator[tuple[str, str]]) -> Iterator[Utterance]:
    """Yield the utterances of a trn file."""
    for line, place in lines:
        if not line.strip() or line.lstrip().startswith(_COMMENT):
            continue
        match = _ID_AT_END.fullmatch(line)
        if match is None:
            raise InputError(f"{place}: no id in round brackets at the end, as in trn files: the cat sat (utt-1)")
        yield _utterance(match[2], match[1].strip(), _speaker(match[2]), place)


def read_stm(lines: Iterator[tuple[str, str]]) -> Iterator[Segment]:
    """Yield the segments of an stm file."""
    for line, place in lines:
        if not line.strip() or line.lstrip().startswith(_COMMENT):
            continue
        fields = line.split(maxsplit=5)
        if len(fields) < 5:
            raise InputError(f"{place}: {len(fields)} fields, but stm has recording, channel, speaker, begin, end, words")
        recording, channel, speaker = fields[:3]
        begin, end = _seconds(fields[3], place), _seconds(fields[4], place)
        if end < begin:
            raise InputError(f"{place}: the segment ends ({fields[4]} s) before it begins ({fields[3]} s)")
        text = fields[5].strip() if len(fields) > 5 else ""
        label = re.match(r"<([^<>\s]*)>(?=\s|\Z)", text)
        words = text[label.end() :].strip() if label else text
        labels = {"speaker": speaker, "file": recording, "channel": channel, "label": label[1] if label else ""}
        utterance = _utterance(" ".join(fields[:2] + fields[3:5]), words, labels, place)
        yield Segment(utterance, (recording.lower(), channel.lower()), begin, end, _is_ignored(words))


def read_ctm(lines: Iterator[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], Word]]:
    """Yield recording and channel, lower case, and what was recognized there, a word or alternatives at a time."""
    # [word.middle for _, word in read_ctm(iter([("rec-1 A 0.5 0.2 the 0.98", "hyp.ctm:1")]))] -> [0.6]
    group: list[Token] = []
    marked: list[str] = []
    times: list[tuple[float, float]] = []
    opened = ""
    for line, place in lines:
        fields = line.split()
        if not fields or line.lstrip().startswith(_COMMENT):
            continue
        if len(fields) < 5:
            raise InputError(f"{place}: {len(fields)} fields, but ctm has recording, channel, begin, duration, word")
        channel = fields[0].lower(), fields[1].lower()
        mark = _ALT_MARKS.get(fields[4].upper())
        if mark is not None and (mark is Mark.BEGIN) == bool(opened):
            raise InputError(f"{place}: {fields[4]} where alternatives are {'' if opened else 'not '}open already")
        if mark is None and not (group and "*" in fields[2:4]):
            begin, duration = _seconds(fields[2], place), _seconds(fields[3], place)
            times.append((begin, begin + duration / 2))
        group.append(_without_tags(fields[4]) if mark is None else mark)
        if mark is None and (_TAGGED.match(fields[4]) or (fields[4] == "@" and not opened)):
            marked.append(fields[4])
        opened = (opened or place) if mark in (Mark.BEGIN, Mark.NEXT) else "" if mark is Mark.END else opened
        if not opened:
            if not times:
                raise InputError(f"{place}: alternatives without a word that has times")
            yield channel, Word(min(times)[0], max(middle for _, middle in times), tuple(group), place, tuple(marked))
            group, marked, times = [], [], []
    if opened:
        raise InputError(f"{opened}: <ALT_BEGIN> without <ALT_END>")


def marks_notes(name: str, utterances: Iterable[Utterance]) -> list[str]:
    """Return a note on words of which a part is not scored, if there are any."""
    marked = [word for one in utterances for word in one.marked]
    if not marked:
        return []
    words = "1 word has" if len(marked) == 1 else f"{len(marked):,} words have"
    return [
        f"{name}: {words} marks of sclite, such as {first_few(list(dict.fromkeys(marked)), 2)}: what follows a semicolon is "
        "a tag, and @ is nothing, so neither is scored (write \\; for a semicolon)"
    ]


def trn_line(utterance: str, text: str) -> str:
    r"""Return an utterance as a line of a trn file that is read as these very words."""
    words = text.split()
    line = " ".join(
        word if _without_tags(word) == word else word.replace("\\", "\\\\").replace(";", "\\;") for word in words
    )
    line = f"{line} ({utterance})".lstrip()
    with suppress(InputError):
        if [(one.id, one.text, one.lattice) for one in read_trn(iter([(line, "")]))] == [(utterance, " ".join(words), None)]:
            return line
    raise UsageError(
        f"utterance {utterance!r} cannot be written as trn, where braces, @, a word in round brackets and ;; at the "
        "beginning are marks, and ids have neither white space nor brackets: write .txt or .jsonl"
    )


def lines_of(path: str, options: ReadingOptions, notes: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file with their places."""
    corpus = Corpus.from_files(path, group=None, format="text", errors=options.errors, block_bytes=options.block_bytes)
    name = corpus.sources[0].name
    for segments in corpus:
        for i in range(len(segments)):
            yield segments.text(i).decode(), f"{name}:{segments.line(i)}"
    for note in corpus.report.notes():
        if "final newline" not in note:
            notes(f"{name}: {note}")


def _is_ignored(words: str) -> bool:
    return IGNORED.replace("_", "") in words.upper().replace("_", "")


def _speaker(utterance: str) -> dict[str, str]:
    # Speaker in an id, what stands before the first - or _ (sclite's `spu_id`); none if there is none.
    match = _SPEAKER.match(utterance)
    return {"speaker": match[0]} if match else {}


def _utterance(name: str, text: str, labels: dict[str, str], place: str) -> Utterance:
    # Utterance with NIST's marks read: alternatives, words that may be left out, tags behind words.
    if not re.search(r"[{};@]|\\|\(\S+\)", text):
        return Utterance(name, text, None, labels)
    lattice = Lattice.of_tokens(_tokens(text), place)
    plain = all(len(arcs) == 1 for arcs in lattice.arcs[1:])
    words, written = lattice.first_reading(), text.split()
    marked = tuple(word for word in written if _TAGGED.match(word) or (plain and word == "@"))
    return Utterance(name, text if words == written else " ".join(words), None if plain else lattice, labels, marked)


def _tokens(text: str) -> Iterator[Token]:
    # Words and marks; a slash is one within braces only.
    depth = 0
    for piece in _BRACES.findall(text):
        depth += (piece == "{") - (piece == "}")
        if piece in ("{", "}"):
            yield _MARKS[piece]
        elif depth <= 0:
            yield _without_tags(piece)
        else:
            yield from (Mark.NEXT if part == "/" else _without_tags(part) for part in re.split("(/)", piece) if part)


def _without_tags(word: str) -> str:
    # Word without its tags: a semicolon and what follows it. One at the end, or `\;`, belongs to the word.
    match = _TAGGED.match(word)
    return re.sub(r"\\([\\;])", r"\1", match[1] if match else word) if ";" in word else word


def _seconds(text: str, place: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds < 0:
        raise InputError(f"{place}: {text[:40]!r} is not a time in seconds")
    return seconds
