"""Transcripts as speech tools write them: Kaldi's `text`, and NIST's trn, stm and ctm (the formats of sclite).

kaldi   utt-1 the cat sat                       an id, then words
trn     the { cat / cats } sat; (utt-1)         words, then an id in round brackets; alternatives; word;tag; ;; comments
stm     rec-1 A anna 0.00 4.20 <O,F> the cat    recording, channel, speaker, begin, end, label (may be missing), words
ctm     rec-1 A 0.35 0.20 the 0.98              recording, channel, begin, duration, word, confidence (may be missing)

Alternatives may hold alternatives, @ is nothing, and (uh) may be missing. Of references and hypotheses the two readings
count that are nearest to each other.

Files are known by their names, by an option, or by the ids in their lines; ids that would be scored as words are noticed.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from lmgauge.base.choices import TRANSCRIPT_FORMATS, TranscriptFormat
from lmgauge.base.errors import InputError
from lmgauge.base.escaping import first_few
from lmgauge.records.formats import COMPRESSIONS
from lmgauge.records.sources import find_sources
from lmgauge.tasks.settings import Reading
from lmgauge.tasks.texts import References, Texts
from lmgauge.text.documents import Corpus
from lmgauge.text.reading_options import ReadingOptions

IGNORED = "IGNORE_TIME_SEGMENT_IN_SCORING"
"""The words of an stm segment that is not scored, nor what was recognized in its time; also without the underscores."""

_COMMENT = ";;"
_ID_AT_END = re.compile(r"(.*)\(([^()\s]+)\)\s*", re.DOTALL)
_BRACES = re.compile(r"[{}]|[^\s{}]+")
_SPEAKER = re.compile(r"[^-_]+(?=[-_])")
_TAGGED = re.compile(r"((?:[^\\;]|\\.)+);+[^;]")
MOST_CELLS = 1 << 25
"""Of the table of two transcripts, one of them with alternatives: some 5,000 words each; 256 MB."""

Readings = tuple[tuple[tuple[int, str | None], ...], ...]
"""All readings of a segment, paths from place 0 to the last: of each place those before it, and the word if any."""

_ALT_MARKS = {"<ALT_BEGIN>": "{", "<ALT>": "/", "<ALT_END>": "}"}


@dataclass(frozen=True, slots=True)
class Utterance:
    """A segment of a transcript."""

    id: str  # what other files call it by
    text: str  # its words; of alternatives the first
    labels: Mapping[str, str]  # "speaker", and of stm segments "file", "channel" and "label"
    marked: tuple[str, ...] = ()  # words as the file has them of which a part is not in the text: said;tag, @
    readings: Readings | None = None  # all of them, where there are alternatives


class Segment(NamedTuple):
    """A segment of an stm file, with its times in seconds."""

    utterance: Utterance
    channel: tuple[str, str]
    begin: float
    end: float
    is_ignored: bool


class Word(NamedTuple):
    """A word of a ctm file, or alternatives, which belong together; with times in seconds."""

    begin: float
    middle: float  # of alternatives the latest
    tokens: tuple[str, ...]  # the word, or words and the marks { / }
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
        yield Utterance(parts[0], text, _speaker(parts[0]))


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
    opened, tokens, marked, times = "", list[str](), list[str](), list[tuple[float, float]]()
    for line, place in lines:
        fields = line.split()
        if not fields or line.lstrip().startswith(_COMMENT):
            continue
        if len(fields) < 5:
            raise InputError(f"{place}: {len(fields)} fields, but ctm has recording, channel, begin, duration, word")
        word = fields[4]
        mark = _ALT_MARKS.get(word.upper())
        if mark is not None and (mark == "{") == bool(opened):
            raise InputError(f"{place}: {word} where alternatives are {'' if opened else 'not '}open already")
        tokens.append(mark or _without_tags(word))
        if mark is None and (_TAGGED.match(word) or (word == "@" and not opened)):
            marked.append(word)
        if mark is None and not (opened and "*" in fields[2:4]):
            begin, duration = _seconds(fields[2], place), _seconds(fields[3], place)
            times.append((begin, begin + duration / 2))
        opened = "" if mark == "}" else place if mark else opened
        if not opened:
            if not times:
                raise InputError(f"{place}: alternatives without a word that has times")
            word_or_words = Word(min(times)[0], max(middle for _, middle in times), tuple(tokens), place, tuple(marked))
            yield (fields[0].lower(), fields[1].lower()), word_or_words
            tokens, marked, times = [], [], []
    if opened:
        raise InputError(f"{opened}: <ALT_BEGIN> without <ALT_END>")


def marks_notes(name: str, utterances: Iterable[Utterance]) -> Iterator[str]:
    """Yield a note on words of which a part is not scored, if there are any."""
    marked = [word for one in utterances for word in one.marked]
    if marked:
        words = "1 word has" if len(marked) == 1 else f"{len(marked):,} words have"
        yield (
            f"{name}: {words} marks of sclite, such as {first_few(list(dict.fromkeys(marked)), 2)}: "
            "what follows a semicolon is a tag, and @ is nothing, so neither is scored (write \\; for a semicolon)"
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
        return Utterance(name, text, labels)
    one, written = of_tokens(name, _tokens(text), labels, place), text.split()
    marked = tuple(word for word in written if _TAGGED.match(word) or (one.readings is None and word == "@"))
    return replace(one, text=text if one.text.split() == written else one.text, marked=marked)


def of_tokens(name: str, tokens: Iterable[str], labels: dict[str, str], place: str) -> Utterance:
    """Return words and the marks { / } as an utterance."""
    readings = _readings(tokens, place)
    words, at = list[str](), len(readings) - 1
    while at:
        at, word = readings[at][0]
        words += [] if word is None else [word]
    plain = all(len(ways) == 1 for ways in readings[1:])
    return Utterance(name, " ".join(reversed(words)), labels, readings=None if plain else readings)


def _readings(tokens: Iterable[str], place: str) -> Readings:
    # a { b / @ } c: places 0 to 4 with the ways (), (0, a), (1, b), (2, None) or (1, None), (3, c)
    ways: list[tuple[tuple[int, str | None], ...]] = [()]
    at, opened = 0, list[tuple[int, list[int]]]()  # of each brace the place before it, and the ends of alternatives
    for token in tokens:
        if token == "{":
            opened.append((at, []))
        elif token == "}" and not opened:
            raise InputError(f"{place}: }} without a {{ before it: alternatives are written {{ a / b }}")
        elif token == "/" and opened:
            begin, ends = opened[-1]
            ends.append(at)
            at = begin
        elif token != "@":
            optional = len(token) > 2 and token[0] == "(" and token[-1] == ")"
            word = token[1:-1] if optional else token
            new = ((at, word), (at, None)) if optional else ((at, word),)
            ways.append(tuple((end, None) for end in (*opened.pop()[1], at)) if token == "}" else new)
            at = len(ways) - 1
    if opened:
        raise InputError(f"{place}: {{ is not closed: alternatives are written {{ a / b }}")
    return tuple(ways)


def nearest_readings(said: Utterance, heard: Utterance, unit_of: Mapping[str, str]) -> tuple[int, str, str]:
    """Return in how many words two utterances differ at least, and their readings that do; of equals those named first."""
    # unit_of: of each word what it is compared by; "" is nothing.
    ours, theirs = (
        [
            [(before, word, unit_of[word] if word else "") for before, word in ways]
            for ways in one.readings or _chain(one.text)
        ]
        for one in (said, heard)
    )
    if len(ours) * len(theirs) > MOST_CELLS:
        raise InputError(
            f"a segment of {len(ours):,} by {len(theirs):,} words is too long to choose among its alternatives: cut it, "
            "or write down one of each"
        )
    # Levenshtein's table of places, a row for each of ours: fewest edits up to both, int64 [ours, theirs].
    steps = [(before, j, unit) for j, ways in enumerate(theirs) for before, _, unit in ways]
    begins, units = np.array([step[0] for step in steps], int), np.array([step[2] for step in steps], object)
    firsts = np.cumsum([len(ways) for ways in theirs])[:-1]  # of each place but 0 its first step
    costs = np.full((len(ours), len(theirs)), MOST_CELLS, dtype=np.int64)
    costs[0, 0] = 0
    for i, ways in enumerate(ours):
        for before, _, unit in ways:
            both = np.minimum.reduceat(costs[before, begins] + (units != unit), firsts)
            costs[i] = np.minimum(costs[i], costs[before] + bool(unit))
            costs[i, 1:] = np.minimum(costs[i, 1:], both)
        row = costs[i].tolist()
        for before, j, unit in steps:
            row[j] = min(row[j], row[before] + bool(unit))
        costs[i] = row
    read, recognized, i, j = list[str](), list[str](), len(ours) - 1, len(theirs) - 1
    while i or j:
        pairs = [(mine, other) for mine in ours[i] for other in theirs[j] if mine[2] and other[2]]
        moves = [(costs[p, q] + (unit != heard_as), p, q, word, other) for (p, word, unit), (q, other, heard_as) in pairs]
        moves += [(costs[p, j] + bool(unit), p, j, word, None) for p, word, unit in ours[i]]
        moves += [(costs[i, q] + bool(unit), i, q, None, word) for q, word, unit in theirs[j]]
        _, i, j, mine, other = min(moves, key=lambda move: int(move[0]))
        read += [mine] if mine else []
        recognized += [other] if other else []
    return int(costs[-1, -1]), " ".join(reversed(read)), " ".join(reversed(recognized))


def _chain(text: str) -> Readings:
    return (), *(((k, word),) for k, word in enumerate(text.split()))


def _tokens(text: str) -> Iterator[str]:
    # Words and the marks { / }; a slash is one within braces only.
    depth = 0
    for piece in _BRACES.findall(text):
        depth += (piece == "{") - (piece == "}")
        if piece in ("{", "}"):
            yield piece
        elif depth <= 0:
            yield _without_tags(piece)
        else:
            yield from (part if part == "/" else _without_tags(part) for part in re.split("(/)", piece) if part)


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


_LOOKED_AT = 1000
_LEAST = 20
_READERS: Mapping[TranscriptFormat, Callable[[Iterator[tuple[str, str]]], Iterator[Utterance]]] = {
    "kaldi": read_kaldi,
    "trn": read_trn,
}
_ID = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z_-])\w(?:[\w.:/-]*\w)?", re.ASCII)
"""What is taken for an id where no other file says what ids look like: anna-1, test001, but neither 12 nor anna."""


def formats_of(paths: Sequence[str], reading: Reading) -> dict[str, TranscriptFormat | None]:
    """Return the format of each file: by the option, by its name, or by its ids; None for texts and records."""
    # A text has ids if each of its lines has one of its own. Beside a file whose name says that it has ids, some of them
    # must be the same. Where no name says so, all files must have the same ids, which look like ids, and words beside them.
    if not paths or any(map(os.path.isdir, paths)):
        return {path: format_of(path, reading.format) for path in paths}
    sources = find_sources(paths, None if reading.format in TRANSCRIPT_FORMATS else reading.format)
    formats = {source.path: format_of(source.path, reading.format) for source in sources}
    unnamed = [source for source in sources if formats[source.path] is None]
    is_told = reading.format or reading.id or reading.ref_field or reading.unit != "line" or "stm" in formats.values()
    readable = not any(source.one_shot for source in sources) and all(source.format == "text" for source in unnamed)
    if is_told or not unnamed or not readable:
        return formats
    named = [(path, form) for path, form in formats.items() if form is not None]
    for path, form in named[:1] or [(unnamed[0].path, form) for form in _READERS]:
        wanted = _ids(path, form, reading, by_look=not named)
        for source in unnamed if wanted else []:
            read = ((own, _ids(source.path, own, reading, by_look=not named)) for own in _READERS)
            formats[source.path] = next((own for own, ids in read if ids & wanted and (named or ids == wanted)), None)
        if all(formats.values()):
            return formats
    return formats if named else dict.fromkeys(formats)


def _ids(path: str, form: TranscriptFormat, reading: Reading, by_look: bool) -> set[str]:
    # Ids of a file in this format; none if it is not, or if they do not look like ids.
    ids: set[str] = set()
    spoken = 0
    with suppress(InputError):
        for one in _READERS[form](lines_of(path, reading, lambda _: None)):
            if one.id in ids or (by_look and not _ID.fullmatch(one.id)):
                return set()
            ids.add(one.id)
            spoken += bool(one.text)
        if not by_look or 2 * spoken >= len(ids) > 1:
            return {name.lower() for name in ids}
    return set()


class _Format(NamedTuple):
    """A format of transcripts: how the id in a line is found, and the option that reads it."""

    name: str
    id: re.Pattern[str]  # the first group is the id
    where: str
    option: str


_NUMBER = r"[0-9]+(?:\.[0-9]*)?"
_FORMATS = (
    _Format("stm", re.compile(rf"(\S+\s+\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER})(?:\s|\Z)"), "begins", "stm"),
    _Format("ctm", re.compile(rf"(\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER}\s+\S+)(?:\s+{_NUMBER})?\s*\Z"), "begins", "stm"),
    # 1089-134686-0000, spk1_utt2
    _Format("Kaldi text", re.compile(r"\s*(?=\S*[0-9_])([!-~]+)(?:\s|\Z)"), "begins", "kaldi"),
    _Format("sclite trn", re.compile(r".*\((?=[^()\s]*[0-9_-])([^()\s]+)\)\s*\Z", re.DOTALL), "ends", "trn"),
    _Format("Kaldi text", re.compile(r"\s*(\S+)\s+\S"), "begins", "kaldi"),
)
_TIMED = 2
"""The first two have times: references in the one go with outputs in either."""
_DOUBTFUL = 4
"""The last takes any word for an id: many lines must have one of their own, and all files the same ones."""


def _ids_in(lines: Sequence[str], form: _Format) -> set[str]:
    # Ids of lines; none if a line has none of its own, or there is but one line.
    ids = {match[1] for line in lines if (match := form.id.match(line)) is not None}
    return ids if len(ids) == len(lines) > 1 else set()


class UtteranceIds:
    """Look at the first thousand lines of the references and of each system for ids."""

    # Ids are there if every line has one of its own, and some are the same in the references and in the system's output.

    def __init__(self, systems: int) -> None:
        # Begin before the first segment of the references and of the systems, whose number is given.
        self._lines: list[list[str]] = [[] for _ in range(1 + systems)]

    def add(self, references: References, hypotheses: Sequence[Texts]) -> None:
        """Look at further segments, in order; of several references at the first."""
        for lines, texts in zip(self._lines, (references.texts.picked(references.offsets[:-1]), *hypotheses), strict=True):
            first = texts.part(0, min(_LOOKED_AT - len(lines), len(texts))).strings()
            # without comments, and marks between the words of ctm
            lines += [line for line in first if not line.startswith(";;") and "<ALT" not in line]

    def note(self, names: Sequence[str]) -> str | None:
        """Return a sentence that says which files hold ids, and what to do; None if there are none."""
        for k, known in enumerate(_FORMATS):
            ids, *outputs = (_ids_in(lines, known) for lines in self._lines)
            of_systems = zip(names[1:], outputs, strict=True)
            if k < _TIMED and ids:
                timed = zip(names[1:], self._lines[1:], strict=True)
                with_ids = [name for name, lines in timed if any(_ids_in(lines, form) for form in _FORMATS[:_TIMED])]
                what = "every line has a recording, a channel and times"
            elif k == _DOUBTFUL:
                with_ids = [name for name, own in of_systems if len(ids) >= _LEAST and ids == own]
                what = f"every line begins with a word of its own ({min(ids, default='')}), the same ones: perhaps ids"
            else:
                with_ids = [name for name, own in of_systems if ids & own]
                what = f"every line {known.where} with an id ({min(ids, default='')})"
            if with_ids:
                files = " and ".join([names[0], *with_ids])
                way_out = f"take it out, or, for wer and cer, give --format {known.option}"
                return f"{files}: {what}, as in {known.name}, and it is scored as words: {way_out}"
        return None
