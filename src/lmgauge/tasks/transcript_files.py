"""References and outputs of systems in the formats of speech tools, joined by the ids of utterances, or by time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from lmgauge.base.choices import TRANSCRIPT_FORMATS, TranscriptFormat
from lmgauge.base.errors import InputError, UsageError
from lmgauge.records.sources import find_sources
from lmgauge.tasks.metrics.error_rates import EditRate
from lmgauge.tasks.metrics.protocol import TaskMetric
from lmgauge.tasks.nbest.reading import by_id, speakers_of
from lmgauge.tasks.parallel import ParallelFiles, Path, check_once, find_outputs, merged, paths_of, places, whole
from lmgauge.tasks.scoring import check_sources
from lmgauge.tasks.settings import Reading
from lmgauge.tasks.texts import Block, ParallelSegments, References, Texts
from lmgauge.tasks.transcripts import (
    Segment,
    Utterance,
    Word,
    format_of,
    formats_of,
    is_ctm,
    lines_of,
    marks_notes,
    nearest_readings,
    of_tokens,
    read_ctm,
    read_kaldi,
    read_stm,
    read_trn,
)
from lmgauge.text.documents import Corpus
from lmgauge.text.segment_metadata import BY_NAMES, SEGMENT, UNKNOWN, DocumentNumbers, Names

LABELS = ("speaker", "file", "channel", "label")
"""What segments can be grouped by; all but the speaker are of stm files."""


def files_to_score(
    metric: TaskMetric,
    references: Path | Iterable[Path],
    hypotheses: Path | Iterable[Path],
    reading: Reading,
    sources: Path | None = None,
) -> ParallelSegments:
    """Return the files in the reader for their formats: those of speech tools are joined by ids or by time."""
    check_sources(metric, sources is not None)
    references, hypotheses = paths_of(references), paths_of(hypotheses)
    formats = formats_of([*references, *hypotheses], reading) if isinstance(metric, EditRate) else {}
    if isinstance(metric, EditRate) and any(formats.values()):
        return TranscriptFiles(metric, references, hypotheses, reading, formats)
    return ParallelFiles(references, hypotheses, reading, sources)


@dataclass(frozen=True)
class _Transcript:
    """A file that was read."""

    name: str
    utterances: tuple[Utterance, ...]  # in its order
    segments: tuple[Segment, ...] = ()  # of an stm file, with those that are ignored


class TranscriptFiles:
    """References and hypotheses of one or more systems in files of speech tools; attributes as in `ParallelSegments`."""

    def __init__(
        self,
        metric: EditRate,
        references: Path | Iterable[Path],
        hypotheses: Path | Iterable[Path],
        reading: Reading,
        formats: Mapping[str, TranscriptFormat | None],
    ) -> None:
        # Look for the files; they are read when it is iterated over.
        self._metric, self._reading, self._formats = metric, reading, formats
        self._references, listed = paths_of(references), paths_of(hypotheses)
        folder = next((path for path in (*self._references, *listed) if os.path.isdir(path)), None)
        if folder is not None:
            raise UsageError(f"{folder} is a folder: name the file in it, such as {os.path.join(folder, 'text')}")
        if reading.unit != "line" or reading.ref_field:
            raise UsageError(
                "transcripts with ids have utterances for segments, and no fields: leave out unit and ref-field"
            )
        sources = find_outputs(listed, [*self._references, reading.group, reading.document], _plain(reading).format)
        self._hypotheses = [source.path for source in sources]
        self.names = _names([source.label for source in sources])
        self.group_names: list[str] = []
        self.notes: list[str] = []
        rule = reading.document or UNKNOWN
        self.documents_by = DocumentNumbers(rule if rule in (UNKNOWN, SEGMENT) else BY_NAMES, Names(), rule).source

    def __iter__(self) -> Iterator[Block]:
        self.notes.clear()
        self.group_names.clear()
        first = self._read(self._references[0])
        ignored = sum(one.is_ignored for one in first.segments)
        if ignored:
            self.notes.append(f"{first.name}: {_segments(ignored)} not scored, nor what was recognized in that time")
        if not first.utterances:
            raise InputError(f"{first.name}: the file holds no utterance")
        references = [first, *(_in_order(first, self._read(path)) for path in self._references[1:])]
        hypotheses = [self._hypothesis(path, first) for path in self._hypotheses]
        groups = self._labels(first, self._reading.group, "--group")
        documents = self._labels(first, self._reading.document, "--document")
        outputs, chosen = self._chosen(references, hypotheses)
        yield Block(
            _side_by_side([_texts(file) for file in references]),
            tuple(map(Texts.of_strings, outputs)),
            groups=None if groups is None else Names(self.group_names).numbers(groups),
            documents=None if documents is None else Names().numbers(documents),
            chosen=chosen,
        )

    def _lines(self, path: str) -> Iterator[tuple[str, str]]:
        return lines_of(path, self._reading, self.notes.append)

    def _read(self, path: str) -> _Transcript:
        known, by_name = self._formats[path], format_of(path, self._reading.format)
        if by_name is None and known is not None:
            where = "Kaldi's text, whose lines begin" if known == "kaldi" else "sclite's trn, whose lines end"
            self.notes.append(f"{path}: read as {where} with ids, as the same ids are in all files (else --format text)")
        elif known == "kaldi" and self._reading.format is None:
            self.notes.append(
                f"{path}: read as Kaldi's text by its name: the first word of each line is its id (else --format text)"
            )
        utterances: Iterable[Utterance]
        if known in ("kaldi", "trn"):
            utterances = (read_kaldi if known == "kaldi" else read_trn)(self._lines(path))
        elif known == "stm" and not is_ctm(path, otherwise=path != self._references[0]):
            segments = tuple(read_stm(self._lines(path)))
            own = self._transcript(path, (one.utterance for one in segments if not one.is_ignored))
            return replace(own, segments=segments)
        elif known == "stm":
            raise UsageError(f"{path}: the words of a ctm file have times and no segments: give an stm file as reference")
        else:
            utterances = self._records(path)
        return self._transcript(path, utterances)

    def _transcript(self, path: str, utterances: Iterable[Utterance]) -> _Transcript:
        # File that was read, each id once; note what of its words is not scored.
        read = tuple(utterances)
        try:
            check_once([one.id for one in read], path)
        except InputError as error:
            if self._reading.format is None:
                raise
            hint = f"--format {self._reading.format} is for all files; without it, each is read by its name and its ids"
            raise InputError(f"{error}; {hint}") from error
        self.notes.extend(marks_notes(path, read))
        return _Transcript(path, read)

    def _records(self, path: str) -> tuple[Utterance, ...]:
        reading = _plain(self._reading)
        if reading.id is None or find_sources(path, reading.format)[0].format == "text":
            raise UsageError(
                f"{path}: has no ids, and other files have: name its format (--format kaldi, trn) "
                "or the field with ids (--id)"
            )
        corpus = Corpus.from_files(path, reading=replace(reading, group=None, document=None))
        records, ids = whole(corpus, (Names(), Names()))
        texts = records.references.texts.strings()
        return tuple(Utterance(name, text, {}) for name, text in zip(ids, texts, strict=True))

    def _hypothesis(self, path: str, first: _Transcript) -> _Transcript:
        # Words of a ctm file as utterances, one for each segment that is scored, in their order; other files as they are.
        if self._formats[path] != "stm" or not is_ctm(path):
            return _in_order(first, self._read(path))
        segments = sorted(first.segments, key=lambda one: (one.channel, one.begin))
        if not segments:
            raise UsageError(f"{path}: the words of a ctm file are placed by time: give an stm file as reference")
        words: dict[tuple[str, str], list[Word]] = {}
        for channel, word in read_ctm(self._lines(path)):
            words.setdefault(channel, []).append(word)
        known = {segment.channel for segment in segments}
        extra = sorted(words.keys() - known)
        if extra:
            raise InputError(
                f"{path}: has words of recording {extra[0][0]}, channel {extra[0][1]}, of which {first.name} has no segment"
            )
        for missing in sorted(known - words.keys()):
            self.notes.append(f"{path}: has no word of recording {missing[0]}, channel {missing[1]}: all count as deleted")
        spoken = placed(segments, words)
        return self._transcript(path, (spoken[one.id] for one in first.utterances))

    def _chosen(
        self, references: Sequence[_Transcript], hypotheses: Sequence[_Transcript]
    ) -> tuple[list[list[str]], tuple[References, ...]]:
        # Of each system its texts and the references, of alternatives the nearest readings; no references without any.
        files = [*references, *hypotheses]
        outputs = [_texts(file) for file in hypotheses]
        several = sorted({i for file in files for i, one in enumerate(file.utterances) if one.readings})
        if not several:
            return outputs, ()
        self.notes.append(
            f"{_segments(len(several))} with alternatives: for each system the reading with the fewest word errors counts"
        )
        spoken = [file.utterances[i] for file in files for i in several]
        ways = (way for one in spoken for of_place in one.readings or () for way in of_place)
        words = sorted({*(word for _, word in ways if word), *(word for one in spoken for word in one.text.split())})
        unit_of = dict(zip(words, self._metric.prepared(Texts.of_strings(words)).strings(), strict=True))
        chosen: list[References] = []
        for output, hypothesis in zip(outputs, hypotheses, strict=True):
            own = [_texts(file) for file in references]
            for i in several:
                said, heard = [file.utterances[i] for file in references], hypothesis.utterances[i]
                if heard.readings:  # as it is nearest to any of the references, and then these as they are nearest to it
                    _, _, output[i] = min((nearest_readings(one, heard, unit_of) for one in said), key=itemgetter(0))
                    heard = replace(heard, text=output[i], readings=None)
                for texts, one in zip(own, said, strict=True):
                    texts[i] = nearest_readings(one, heard, unit_of)[1] if one.readings else one.text
            chosen.append(_side_by_side(own))
        return outputs, tuple(chosen)

    def _labels(self, first: _Transcript, name: str | None, option: str) -> list[str] | None:
        # Group (document) of each segment: a label of the references, or what a file says.
        if name in (None, UNKNOWN):
            return None
        if name == SEGMENT and option == "--document":
            return [str(i) for i in range(len(first.utterances))]
        if name == "-" or os.path.isfile(name):
            return self._named(first, name)
        if name in LABELS and all(name in one.labels for one in first.utterances):
            return [one.labels[name] for one in first.utterances]
        known = [label for label in LABELS if all(label in one.labels for one in first.utterances)]
        more = f", or {', '.join(known)}" if known else " (ids without - or _ name no speaker)"
        raise UsageError(f"{option} {name}: {first.name} has no such label: name a file with a name on each line{more}")

    def _named(self, first: _Transcript, path: str) -> list[str]:
        # What a file says of each segment: a name on each line, or an id and a name, as in Kaldi's utt2spk.
        lines = [" ".join(line.split()) for line, _ in self._lines(path)]
        ids, parts = [one.id for one in first.utterances], [line.partition(" ") for line in lines]
        if {*ids} <= {key for key, _, _ in parts}:
            known = by_id(((i, key, name) for i, (key, _, name) in enumerate(parts, 1) if key), path)
            return speakers_of(ids, {key: name for key, (_, name) in known.items()})
        if len(lines) != len(first.utterances):
            raise InputError(
                f"{path}: {len(lines):,} lines for the {len(first.utterances):,} segments of {first.name}: give a name for "
                "each, in its order, or each id with its name"
            )
        return lines


def placed(segments: Sequence[Segment], words: Mapping[tuple[str, str], Sequence[Word]]) -> dict[str, Utterance]:
    """Return the words of each segment as an utterance, by the segment's id."""
    # In each channel a segment takes the words whose middle is before its end and that no earlier segment has; the last one
    # takes the rest. So does sclite: no word is left out, and one between two segments belongs to the later.
    spoken: dict[str, Utterance] = {}
    at: dict[tuple[str, str], int] = {}
    ordered = {channel: sorted(own, key=lambda word: word.begin) for channel, own in words.items()}
    last = {segment.channel: i for i, segment in enumerate(segments)}
    for i, segment in enumerate(segments):
        own, begin = ordered.get(segment.channel, []), at.get(segment.channel, 0)
        end = begin
        while end < len(own) and (own[end].middle < segment.end or i == last[segment.channel]):
            end += 1
        at[segment.channel] = end
        name, part = segment.utterance.id, own[begin:end]
        read = of_tokens(name, (token for word in part for token in word.tokens), {}, part[0].place if part else name)
        spoken[name] = replace(read, marked=tuple(mark for word in part for mark in word.marked))
    return spoken


def _in_order(first: _Transcript, other: _Transcript) -> _Transcript:
    wanted, present = [one.id for one in first.utterances], [one.id for one in other.utterances]
    if {*wanted} != {*present}:  # sclite does not tell upper from lower case in ids
        lower = [name.lower() for name in wanted], [name.lower() for name in present]
        wanted, present = lower if {*lower[0]} == {*lower[1]} else (wanted, present)
    check_once(wanted, first.name)
    check_once(present, other.name)
    where = places(wanted, present, first.name, other.name)
    return other if where is None else _Transcript(other.name, tuple(other.utterances[i] for i in where.tolist()))


def _texts(file: _Transcript) -> list[str]:
    return [one.text for one in file.utterances]


def _segments(count: int) -> str:
    return f"{count:,} segment{'s' * (count != 1)}"


def _side_by_side(files: Sequence[list[str]]) -> References:
    return merged([References.single(Texts.of_strings(texts)) for texts in files])


def _plain(reading: Reading) -> Reading:
    return replace(reading, format=None) if reading.format in TRANSCRIPT_FORMATS else reading


def _names(labels: list[str]) -> list[str]:
    short = [label.removesuffix(".trn").removesuffix(".ctm").removesuffix(".stm") for label in labels]
    return short if len({*short}) == len(labels) else labels
