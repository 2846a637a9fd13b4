"""Counts of n-grams as files: written of a text, and read to train from.

A line has the words of an n-gram, a blank between two, then a tab and how often it occurs, as `ngram-count -write` of SRILM
has it. For the text `a b a`, order 2:

    <s>  1      </s> 1      a    2      b    1        tabs, in place of blanks here
    <s> a  1    a </s>  1   a b  1      b a  1

Order comes after order, and within it n-grams as their words first occur in the text, so that a model of the file numbers
its words as one of the text does. In Google's form (Brants & Franz 2006, "Web 1T 5-gram") each order is a folder, sorted.

What is read is a partition whose n-grams know their suffixes: the stages of `training` do the rest. All orders must be there
with all their n-grams, as an n-gram of the text has a token before each of its occurrences but those where a context begins:

    c(w) = sum of c(v w) over v, if w does not begin with `<s>`
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from glob import escape
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.base.files import writing_directory
from lmgauge.base.progress import say_progress
from lmgauge.base.result_list import Result
from lmgauge.models.ngram.arpa_writer import ESCAPED, printable
from lmgauge.models.ngram.counting import Counted, Counts, count_text
from lmgauge.models.ngram.links import Links, Shape
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.ngram_arrays import find_rows, make_keys
from lmgauge.models.ngram.packing import ALL_MEMORY
from lmgauge.models.ngram.reading import FittedVocabulary, ReadText, fit_vocabulary
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.training import train_partitions
from lmgauge.records.compression import writing_packed
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import encode
from lmgauge.text.reading_options import ReadingOptions
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.vocabulary import BOS, EOS, Vocabulary, VocabularyBuilder
from lmgauge.work.engine import Engine

Ids = NDArray[np.uint32]
_LINE = r"^(?P<words>[^ \t-\r]+(?: [^ \t-\r]+)*)\t(?P<count>[1-9][0-9]{0,17})\n?$"
_NAMES = {"character": ".", "byte": "<0x[0-9A-F]{2}>"}  # of tokens, by their unit
_LARGEST = 2**32  # what the kernels count up to, but for words
_LINES = 1 << 18  # written at a time
_NOTHING = np.zeros(0, np.uint32), np.zeros(0, np.int64), np.zeros(0, np.int64)
_BYTES_SORTED = 40  # of an n-gram that is sorted, besides 12 for each word: measured


# -- writing ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, repr=False)
class NgramCounts(Result):
    """What was counted and written.

    Attributes:
        output: the file, or the folder.
        ngrams: different n-grams of order 1, 2, ...
        events: tokens that were counted, without `<s>`.
        segments: of the text.
        notes: what was changed while the text was read.

    Example:
        >>> import tempfile, lmgauge
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = lmgauge.Corpus.from_strings(["a b a"])
        ...     lmgauge.models.count_ngrams(text, output=f"{folder}/counts", order=2).ngrams
        (4, 4)
    """

    output: str
    ngrams: tuple[int, ...]
    events: int
    segments: int
    notes: tuple[str, ...] = ()


def write_counts(
    engine: Engine, settings: NgramTrainingSettings, text: ReadText, output: Path, google: bool, partitions: int, memory: int
) -> NgramCounts:
    """Count the n-grams of a text that was read, and write them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fitted, report, orders = text.fitted, text.report, range(1, settings.order + 1)
    shape = Shape(settings.order, partitions, len(text.ids), len(fitted.vocabulary), linked=False)
    counted, _ = count_text(engine, shape, text.types, text.ids)
    buffers = map(pa.py_buffer, printable(fitted.vocabulary, make_tokenizer(settings.tokenizer), "a file of counts"))
    strings = pa.Array.from_buffers(pa.large_string(), shape.vocabulary, [None, *buffers]).cast(pa.string())
    ranks = np.arange(shape.vocabulary, dtype=np.uint32)
    if google:
        ranks[pc.array_sort_indices(strings).to_numpy()] = np.arange(shape.vocabulary)
    # What is sorted at a time begins with some of the words: tokens are shared out, in the order of the ranks.
    parts = 1 + max([shape.vocabulary, *text.types]) * (_BYTES_SORTED + 12 * settings.order) // memory
    tokens = np.cumsum(fitted.counts[np.argsort(ranks)])
    part_of, sizes = (parts * tokens // (tokens[-1] + 1))[ranks], dict.fromkeys(orders, 0)

    def lines(k: int) -> Iterator[memoryview]:
        for part in range(parts):
            chosen = []
            for words, counts in _ngrams(engine, counted, fitted.counts, k):
                here = (part_of[words[:, 0]] == part) & (counts > 0)
                chosen.append((words[here], counts[here]))
            words, counts = map(np.concatenate, zip(*chosen, strict=True))
            places = np.lexsort(ranks[words].T[::-1])
            sizes[k] += len(places)
            for some in (places[i : i + _LINES] for i in range(0, len(places), _LINES)):
                ngrams = pc.binary_join_element_wise(*(strings.take(pa.array(column)) for column in words[some].T), " ")
                rows = pc.binary_join_element_wise(ngrams, pa.array(counts[some]).cast(pa.string()), "\t")
                _, offsets, data = pc.binary_join_element_wise(rows, "", "\n").buffers()
                yield memoryview(data)[: np.frombuffer(offsets, np.int32)[len(rows)]]

    if google:
        with writing_directory(output, is_ours=lambda folder: (folder / "1gms").is_dir()) as folder:
            for k in orders:
                _write_google(folder / f"{k}gms", k, lines(k))
    else:
        _write(output, chain.from_iterable(map(lines, orders)))
    return NgramCounts(os.fspath(output), (*sizes.values(),), fitted.number_of_events, report.segments, (*report.notes(),))


def _ngrams(engine: Engine, counted: list[Counted], occurrences: NDArray[Any], k: int) -> Iterator[tuple[Ids, NDArray[Any]]]:
    # The words of the n-grams of one order in each partition, [n, k], and their counts.
    every = np.arange(len(occurrences), dtype=np.uint32)[:, None]
    if k == 1:
        yield every, occurrences
    for own in counted if k > 1 else ():
        words = every
        for level in (own.orders[j] for j in range(2, k + 1)):
            words = np.column_stack((words[engine.read(level.parents)], engine.read(level.words)))
        yield words, engine.read(own.orders[k].counts)


def _write(path: Path, blocks: Iterable[memoryview]) -> None:
    with writing_packed(path) as file:
        for block in blocks:
            file.write(block)


def _write_google(folder: Path, k: int, blocks: Iterator[memoryview]) -> None:
    # One file of an order, and for SRILM its first n-gram.
    name, first = "vocab.gz" if k == 1 else f"{k}gm-0000.gz", next(blocks, memoryview(b""))
    folder.mkdir()
    _write(folder / name, chain([first], blocks))
    if k > 1:
        (folder / f"{k}gm.idx").write_bytes(b"%s\t%s\n" % (name.encode(), bytes(first).partition(b"\t")[0]))


# -- reading ------------------------------------------------------------------------------------------------------------
def train_from_counts(settings: NgramTrainingSettings, path: str) -> NgramModel:
    """Train a model on the counts of a file or a folder: the model of the text that they are of, to the bit."""
    say_progress(f"reading {path}")
    orders, linked, builder = range(2, settings.order + 1), settings.order > 2 and not settings.additive, VocabularyBuilder()
    files = [path]
    if os.path.isdir(path):  # in Google's form
        files = [f"{escape(path)}/{k}gms/{'vocab.*' if k == 1 else f'{k}gm-*'}" for k in (1, *orders)]
    corpus = Corpus.from_files(files, reading=ReadingOptions(format="text", group=None))
    parsed = (_parsed(block, builder, settings.order) for block in corpus)
    ids, lengths, counts = map(np.concatenate, zip(_NOTHING, *parsed, strict=True))
    fitted, new_ids = _fitted(settings, path, builder, ids[np.repeat(lengths == 1, lengths)], counts[lengths == 1])
    report, begins, rows = corpus.report, np.cumsum(lengths) - lengths, ((k, np.flatnonzero(lengths == k)) for k in orders)
    ngrams = ((new_ids[ids[begins[of, None] + np.arange(k)]], counts[of]) for k, of in rows)
    engine, columns, requests = Engine(), {}, {}
    for k, (suffixes, *own) in enumerate(_joined(path, fitted, ngrams), 2):
        columns[k] = Counts(*(engine.write(f"column-{k}/{i}", column) for i, column in enumerate(own)))
        if linked and k > 2:
            requests[k - 1] = [[engine.write(f"suffixes-{k}", suffixes)]]
    links = Links(Shape(settings.order, 1, 1, len(fitted.counts), linked), [], [], requests)
    text = ReadText(fitted, report, [], [], 1, ([Counted([], columns)] if columns else [], links))
    model = train_partitions(engine, settings, text, None, partitions=1, memory=ALL_MEMORY)
    said = {"counts_sha256": report.sha256, "segments": int(fitted.counts[BOS]), "events": fitted.number_of_events}
    model.record = replace(model.record, training=said)
    return model


def _parsed(block: Segments, builder: VocabularyBuilder, order: int) -> tuple[Ids, NDArray[np.int64], NDArray[np.int64]]:
    # All words of some lines, how many each line has, and its count: `the cat<tab>12` -> [3, 4], [2], [12].
    # A line of a higher order is read as one without words: these are not counted here, so the vocabulary lacks them.
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = np.append(block.starts, block.ends[-1:] + 1)
    lines = pa.Array.from_buffers(pa.large_string(), len(block), [None, pa.py_buffer(offsets), pa.py_buffer(block.data)])
    parts = pc.extract_regex(lines, _LINE)
    if parts.null_count:
        first = parts.is_null().index(True).as_py()
        raise InputError(
            f"{block.place(first)}: a line has words with one blank between two, a tab and a whole number above 0, as in "
            f"'the cat<tab>12'; got {block.text(first)[:80].decode(errors='replace')!r}"
        )
    words, counts = parts.flatten()
    lengths = pc.count_substring(words, " ").to_numpy() + 1
    lengths[lengths > order] = 0
    segments = replace(block, ends=block.starts + np.where(lengths, pc.binary_length(words).to_numpy(), 0))
    ids = encode(segments, make_tokenizer("whitespace"), builder, bos=False, eos=False, reserved="marks").ids
    return ids, lengths, counts.cast(pa.int64()).to_numpy()


def _fitted(
    settings: NgramTrainingSettings, path: str, builder: VocabularyBuilder, ids: Ids, counts: NDArray[np.int64]
) -> tuple[FittedVocabulary, Ids]:
    # The vocabulary of counted words, and the new id of each that was read.
    unit = make_tokenizer(settings.tokenizer).unit
    characters = {escaped: c for c, escaped in ESCAPED.items() if unit == "character"}
    names = [characters.get(name, name) for name in builder.finish().tokens]
    other = next((name for name in names[EOS + 1 :] if not re.fullmatch(_NAMES.get(unit, ".*"), name, re.DOTALL)), None)
    if not len(ids):
        raise InputError(f"{path}: has no counts of single words, such as 'the<tab>12'")
    if other is not None:
        raise InputError(f"{path}: {other!r} is not a {unit}: leave out --tokenizer {settings.tokenizer}")
    words: Any = names[EOS + 1 :] if settings.words is None else settings.words  # read, if it was a file
    vocabulary = Vocabulary.from_tokens(words, closed=settings.vocabulary == "closed")
    new_ids, occurrences = vocabulary.ids(names), np.zeros(len(vocabulary), np.int64)
    np.add.at(occurrences, new_ids[ids], counts)
    begins, ends = occurrences[[BOS, EOS]].tolist()
    as_one = begins == 1 if settings.context == "stream" else not ends or begins == ends
    if not begins or not as_one or settings.eos != (ends > 0):
        raise InputError(
            f"{path}: the counts of <s> and </s> are {begins:,} and {ends:,}, which does not go with --context "
            f"{settings.context} and --{'' if settings.eos else 'no-'}eos"
        )
    fitted = fit_vocabulary(settings, vocabulary, occurrences)
    return fitted, new_ids if fitted.new_ids is None else fitted.new_ids[new_ids]


def _joined(
    path: str, fitted: FittedVocabulary, ngrams: Iterable[tuple[Ids, NDArray[np.int64]]]
) -> Iterator[tuple[Ids, Ids, Ids, Ids]]:
    # Of the n-grams of each order from 2 the suffixes, parents, last words and counts; rows are sorted by parent and word.
    # ngrams: of each order their words, [n, order], and counts.

    def fault(words: Ids, problem: str) -> InputError:
        return InputError(f"{path}: {' '.join(fitted.vocabulary.token(int(i)) for i in words)!r} {problem}")

    def find(words: Ids, contexts: Ids) -> Ids:
        # Rows of n-grams, from their words and the rows of their contexts.
        rows = find_rows(keys[words.shape[1] - 2], contexts, words[:, -1])
        if (rows < 0).any():
            raise fault(words[rows.argmin()], "is part of longer n-grams, but is not counted; all orders are needed")
        return rows.astype(np.uint32)

    keys, below = list[NDArray[np.uint64]](), np.arange(len(fitted.counts), dtype=np.uint32)[:, None]
    sums, suffixes = fitted.counts, below[:, 0]
    for words, counts in ngrams:
        parents, k = words[:, 0], words.shape[1]
        for j in range(2, k):
            parents = find(words[:, :j], parents)
        # Lines of one n-gram add up: keys [5, 5, 8] with counts [2, 1, 4] -> [5, 8] with [3, 4].
        own_keys, firsts, same = np.unique(make_keys(parents, words[:, -1]), return_index=True, return_inverse=True)
        keys.append(own_keys)
        words, parents, own = words[firsts], parents[firsts], np.zeros(len(firsts), np.int64)
        np.add.at(own, same, counts)
        if (own >= _LARGEST).any():
            raise fault(words[own.argmax()], f"has the count {own.max():,}; those of two words and more end at 2^32")
        suffixes = words[:, 1] if k == 2 else find(words[:, 1:], suffixes[parents])
        before = np.zeros(len(below), np.int64)
        np.add.at(before, suffixes, own)
        if len(wrong := np.flatnonzero(before != np.where(below[:, 0] == BOS, 0, sums))):
            at, hint = wrong[0], "a cut-off, or a repeated line, spoiled the counts"
            problem = f"has the count {sums[at]:,}, but the {k}-grams that end in it have {before[at]:,} in all: "
            raise fault(below[at], problem + (hint if len(own) else "a lower --order goes without"))
        yield suffixes, parents, words[:, -1], own.astype(np.uint32)
        below, sums = words, own
