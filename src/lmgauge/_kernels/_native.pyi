"""Types of the compiled kernels. What each expects and promises is told in `kernels.hpp`; arrays are C-contiguous.

Tables of counting are uint64 [slots, 2] (see `hashing.hpp`), packed ones lines of 64 bytes; ranges `begin, end` are of their
slots or lines, so that threads can share one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_U8 = NDArray[np.uint8]
_U32 = NDArray[np.uint32]
_U64 = NDArray[np.uint64]
_I64 = NDArray[np.int64]
_I32 = NDArray[np.int32]
_F32 = NDArray[np.float32]
_F64 = NDArray[np.float64]
_Table = NDArray[np.uint64]
_Text = tuple[_U8, _I64, _I64]  # data, starts, ends
_Tokens = tuple[NDArray[Any], ...]  # data, starts, ends, counts, span ends
_Vocabulary = tuple[_U64, _I64, _U8]  # slots, offsets, bytes
_Options = tuple[int, int, bool, bool]  # mode, reserved policy, <s>, </s>
_Discounts = tuple[_F64, _U64, int]  # taken from each count, given away for it, added to the total per type
_Suffixes = tuple[_U32, _I32, _I32, _I32, _I32]  # ids, suffixes, ranks, common, minima
_Windows = tuple[int, _U64, _U64]  # n, slots, filter
_Packed = tuple[_U32, int, int, bool]  # lines, bounds of parents and words, whether it is the highest order
_Parts = tuple[_U32, _U64]  # staged n-grams [n, 5], sizes of the parts
_Model = tuple[_F32, list[_Packed], tuple[bool, float]]  # unigrams, tables, mode
# a model, children of each context (offsets, children), unigrams (values, the value of each word), whether </s> comes
_Source = tuple[_Model, list[tuple[_U32, _U64]], tuple[_F64, _U32], bool]

# Text
def intern_segments(
    text: _Text,
    tokens: _Tokens,
    vocabulary: _Vocabulary,
    options: _Options,
    state: _I64,
    ids: _U32,
    span_ends: _I64,
    lossy: _U8,
) -> int: ...
def encode_segments(
    text: _Text,
    tokens: _Tokens,
    vocabulary: _Vocabulary,
    options: _Options,
    state: _I64,
    ids: _U32,
    span_ends: _I64,
    lossy: _U8,
) -> int: ...
def index_vocabulary(vocabulary: _Vocabulary, size: int) -> None: ...
def count_text(data: _U8, starts: _I64, ends: _I64) -> tuple[int, int]: ...  # words, characters
def find_token(vocabulary: _Vocabulary, token: _U8) -> int: ...

# Counting: (added, longest distance, spilled)
def count_level(
    ids: _U32, previous: _U32, following: _U32, table: _Table, share: tuple[int, int, int], spill_limit: int
) -> tuple[int, int, _U64]: ...
def count_spilled(ids: _U32, previous: _U32, following: _U32, table: _Table, positions: _U64) -> tuple[int, int, _U64]: ...
def sketch_distinct(ids: _U32, begin: int, end: int, order: int, registers: _U8, index_bits: int) -> None: ...
def add_continuations(table: _Table, begin: int, end: int, counts: _U32) -> None: ...
def adjust_counts(
    table: _Table, begin: int, end: int, continuations: _U32, cutoff: int, dropped: _U8, histogram_size: int
) -> _U64: ...

# Estimating
def sum_contexts(
    table: _Table, begin: int, end: int, dropped: _U8, discounts: _Discounts, first: int, sums: _U64
) -> None: ...
def estimate_interpolated(
    table: _Table,
    begin: int,
    end: int,
    first: int,
    sums: _U64,
    discounts: _Discounts,
    unigram: _F32,
    lower: list[_Table],
) -> None: ...
def sum_lower(
    table: _Table,
    begin: int,
    end: int,
    dropped: _U8,
    unigram: _F32,
    lower: list[_Table],
    first: int,
    lower_sums: _U64,
    types: _U32,
    lower_contexts: _U32,
) -> None: ...
def balance_mass(sums: _U64, types: _U32, vocabulary_size: int) -> None: ...
def estimate_discounted(
    table: _Table, begin: int, end: int, dropped: _U8, first: int, sums: _U64, discounts: _Discounts, kept_sums: _U64
) -> None: ...
def estimate_additive(
    table: _Table, begin: int, end: int, first: int, sums: _U64, added: float, vocabulary_size: float
) -> None: ...
def store_backoffs(table: _Table, first: int, sums: _U64) -> None: ...
def store_unseen(table: _Table, first: int, sums: _U64, added: float, vocabulary_size: float) -> None: ...

# Packed tables (see `packed.hpp` and `pack.hpp`): staging, sorting, placing, listing, checking
SPARE_LINES: int
LEAST_HOME_BITS: int

def stage_table(
    table: _Table,
    begin: int,
    end: int,
    dropped: _U8,
    parent_slots: _U32,
    bounds: tuple[int, int],
    below: list[_U32],
    parts: _Parts,
) -> None: ...
def stage_columns(
    ngrams: tuple[_U32, _U32, _F32, _F32], begin: int, end: int, bounds: tuple[int, int], below: list[_U32], parts: _Parts
) -> None: ...
def sort_parts(table: _Packed, parts: _Parts, first: int, last: int, frees: _U64) -> None: ...
def place_parts(
    lines: _U32,
    bounds: tuple[int, int],
    highest: bool,
    parts: _Parts,
    first: int,
    last: int,
    starts: _U64,
    marked: bool,
    slots: _U32,
) -> tuple[int, bool]: ...  # n-grams that came twice, whether one is too far from home
def count_entries(table: _Packed, begin: int, end: int) -> tuple[int, int]: ...  # n-grams, blanks among them
def list_entries(table: _Packed, begin: int, end: int, columns: tuple[_U32, _U32, _U32, _F32, _F32]) -> None: ...
def check_lines(table: _Packed, begin: int, end: int) -> tuple[int, int]: ...  # checksum, first bad line or -1
def find_ngrams(table: _Packed, parents: _U32, words: _U32, slots: _U32) -> None: ...
def entry_values(table: _Packed, slots: _U32, probabilities: _F32, weights: _F32) -> None: ...

# Looking up
def score_ids(
    model: _Model,
    ids: _U32,
    skip: int,
    rows: tuple[_F64, _U8, _U32, _U8, _U32],  # logprob, matched order, ids, kind, contexts
) -> int: ...

# Whole distributions: contexts [n, order - 1]; sums [n, 4]
def index_children(table: _Packed, offsets: _U32, children: _U64) -> None: ...
def find_context(model: _Model, context: _U32, slots: _U32) -> None: ...
def fill_distributions(source: _Source, contexts: _U32, logarithms: bool, rows: _F64) -> float: ...
def rank_words(source: _Source, order: tuple[_U32, _I64], contexts: _U32, targets: _U32, ranks: _I64) -> float: ...
def top_words(source: _Source, order: tuple[_U32, _I64], contexts: _U32, k: int, words: _U32, logarithms: _F64) -> float: ...
def sum_distributions(
    source: _Source, contexts: _U32, memo: tuple[list[_U32], _F64], used: int, rows: _F64
) -> tuple[int, int, float]: ...  # rows done, memo used, largest probability looked at
def divergences(a: _Source, contexts_a: _U32, b: _Source, contexts_b: _U32, divergence: _F64) -> None: ...

# Sums: for each kind (high, low, events, zeros); rows by context; first bad row or -1
def sum_events(
    logprob: _F64, kind: _U8, context: _U8, segment_events: _I64, high: _I64, low: _U64, zeros: _I64
) -> tuple[list[tuple[int, int, int, int]], _I64, int]: ...

# Resampling: values [segments, columns] to sums [resamples, columns]; values [segments] to sums [resamples]
def sign_flip_sums(values: _F64, seed: int, first: int, sums: _F64) -> None: ...
def coin_sums(bits: _U64, first: int, values: _I64, sums: _I64) -> None: ...
def draw_counts(state: _U64, counts: _U8) -> None: ...

# Overlap: a suffix array (ids, suffixes, ranks, common prefixes, their minima), an index of its n-grams (n, slots, filter)
def sort_suffixes(ids: _U32, symbols: int) -> _I32: ...
def common_prefixes(ids: _U32, suffixes: _I32, ranks: _I32, common: _I32) -> None: ...
def common_minima(common: _I32) -> _I32: ...
def index_windows(suffixes: _Suffixes, n: int, separator: int, slots: _U64, filter: _U64) -> None: ...
def follow_text(suffixes: _Suffixes, index: _Windows, ids: _U32, skip: int, longest: _I32, state: _I64) -> _I64: ...
def finish_following(suffixes: _Suffixes, index: _Windows, longest: _I32, state: _I64) -> _I64: ...
def spread_runs(suffixes: _Suffixes, shortest: int, longest: _I32, origin: _I32) -> None: ...
def count_shingles(
    suffixes: _Suffixes, index: _Windows, ids: _U32, end_of_segment: int, known: _I32, unknown: _I32, only: _U8, met: _U8
) -> None: ...
def hash_segments(data: _U8, starts: _I64, ends: _I64, hashes: _U64) -> None: ...
def number_ngrams(ids: _U32, shorter: _U32, keys: _U64, numbers: _U32) -> None: ...
def mark_ngrams(ids: _U32, keys: list[_U64], seen: list[_U8]) -> None: ...

# ARPA: lines, bytes consumed, byte of a fault or -1, reason
def parse_arpa_lines(
    data: _U8, order: int, probability: _F64, backoff: _F64, word_starts: _I64, word_ends: _I64
) -> tuple[int, int, int, int]: ...
def format_arpa_lines(probability: _F64, backoff: _F64, words: _U32, order: int, offsets: _I64, data: _U8) -> bytes: ...

# chrF
def chrf_statistics(
    hypotheses: _Text,
    references: _Text,
    offsets: _I64,
    options: tuple[int, int, float, bool, bool],  # character order, word order, beta squared, eps smoothing, white space
    begin: int,
    end: int,
    out: _I64,
) -> None: ...

# BLEU: texts `begin` to `end` as tokens (kind: 0 13a, 1 zh, 2 char, 3 intl, with a class for each code point); a row of
# statistics for each segment (length: 0 closest, 1 shortest, 2 average)
def separate_tokens(texts: _Text, kind: int, classes: _U8, begin: int, end: int) -> _Text: ...
def bleu_statistics(
    hypotheses: _Text, references: _Text, offsets: _I64, order: int, length: int, begin: int, end: int, out: _I64
) -> None: ...

# TER: for each segment the fewest edits and the average reference length times 720720
def ter_statistics(hypotheses: _Text, references: _Text, offsets: _I64, begin: int, end: int, out: _I64) -> None: ...

# Edits: unit 0 words, 1 characters; hits, substitutions, deletions, insertions of each segment; operations (0 equal,
# 1 substitute, 2 delete, 3 insert) and where those of each segment end. Setting the flag `stop` ends a call.
def edit_counts(
    references: _Text, offsets: _I64, hypotheses: _Text, unit: int, begin: int, end: int, out: _I64, stop: _U8
) -> None: ...
def edit_operations(
    references: _Text, hypotheses: _Text, unit: int, begin: int, end: int, stop: _U8
) -> tuple[_U8, _I64]: ...

# Binary files of KenLM: type, counts, whether there are words, whether there are <s> and </s>, bits of probabilities, of
# back-off weights and of arrays, words. ValueError says in words what is wrong with a file.
def kenlm_layout(data: _U8) -> tuple[int, list[int], bool, tuple[bool, bool], int, int, int, int]: ...
def kenlm_words(data: _U8) -> tuple[_I64, _U8, int]: ...
def score_kenlm(data: _U8, ids: _U32, skip: int, rows: tuple[_F64, _U8, _U32, _U8, _U32]) -> int: ...
def fill_kenlm(data: _U8, contexts: _U32, lowest: float, rows: _F64) -> None: ...
def list_kenlm(data: _U8, order: int, words: _U32, probability: _F32, backoff: _F32) -> None: ...
def checksum_bytes(data: _U8) -> int: ...

_KenlmShape = tuple[int, list[int], int, int, int]  # type, counts, bits of probabilities, of back-off weights, of arrays

# Where vocabulary, quantization, unigrams and words begin, and buckets of the vocabulary; of each order from 2, where it
# begins, and its buckets
def plan_kenlm(shape: _KenlmShape) -> tuple[list[int], list[tuple[int, int]]]: ...
def write_kenlm_header(shape: _KenlmShape, header: _U8) -> None: ...
def hash_kenlm_words(offsets: _I64, data: _U8, hashes: _U64) -> None: ...
def log10_of(linear: _F32, log10: _F32) -> None: ...
def combine_kenlm(keys: _U64, words: _U32, longer: _U64) -> None: ...
def fill_probing(table: _U8, keys: _U64, values: _U32) -> None: ...
def sort_extensions(suffixes: _U32, words: _U32, ends: _U64, places: _U32) -> None: ...
def pack_level(shape: _KenlmShape, order: int, words: _U32, values: _U64, following: _U64, part: _U8) -> None: ...
def center_bins(ascending: _F32, centers: _F32) -> None: ...
def encode_bins(values: _F32, centers: _F32, reserved: int, codes: _U32) -> None: ...
