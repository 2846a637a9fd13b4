"""The lists that options are chosen from: each stands here once, for the library and for the command line."""

# Nothing of ours is imported, so that the help page of a command needs no more than this.

from __future__ import annotations

import os
from typing import Any, Literal, get_args

DEFAULT_SEED = 12345
"""Of everything that is drawn."""

DEFAULT_BASE_TOP, DEFAULT_BASE_SAMPLES = 64, 256
"""Of a stored base: how many of the most probable tokens, and draws from the rest for each unit of its probability."""

StoredType = Literal["float32", "bfloat16"]
BaseType = Literal[StoredType, "states"]
"""As what whole distributions can be stored: of a network also as the hidden states that its output layer makes them of."""

Tracker = Literal["trackio", "wandb"]

SAMPLE_SIZE = 20_000
"""Of a group of documents, for percentiles."""

# -- text ---------------------------------------------------------------------------------------------------------------
Unit = Literal["line", "document"]
UNITS: tuple[Unit, ...] = get_args(Unit)
RecordFormat = Literal["jsonl", "csv", "tsv", "parquet"]
"""Those with fields; `lmgauge.records.formats` has a row of each."""
Format = Literal["text", RecordFormat]
FORMATS: tuple[Format, ...] = get_args(Format)
TranscriptFormat = Literal["kaldi", "trn", "stm"]
TRANSCRIPT_FORMATS: tuple[TranscriptFormat, ...] = get_args(TranscriptFormat)
"""Of speech tools, read by `wer` and `cer`; with stm go outputs as ctm."""
ErrorPolicy = Literal["fail", "replace", "skip"]
BadRecordPolicy = Literal["reject", "fail"]
ReservedPolicy = Literal["refuse", "escape", "unk"]
RESERVED_POLICIES: tuple[ReservedPolicy, ...] = get_args(ReservedPolicy)
Boundary = Literal["joint", "apart"]
"""How given text and its target are cut into tokens: as one text, or each on its own."""
Role = Literal["system", "developer", "user", "assistant", "tool", "function", "ipython", "environment"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Whose the messages of a conversation can be."""
DEFAULT_FRACTIONS = (0.8, 0.1, 0.1)
SplitBy = Literal["group", "document"]
SPLIT_BY: tuple[SplitBy, ...] = get_args(SplitBy)
OverlapUnit = Literal["word", "character"]

# -- n-gram models ------------------------------------------------------------------------------------------------------
ProperSmoothing = Literal[
    "laplace", "witten-bell", "absolute-discounting", "kneser-ney", "modified-kneser-ney", "good-turing"
]
"""Those that need no number, and leave nothing impossible."""
SmoothingKind = Literal["mle", "lidstone", ProperSmoothing]
SMOOTHINGS: dict[SmoothingKind, tuple[str, str]] = {
    "modified-kneser-ney": ("mkn", "three discounts for each order; the best general choice"),
    "kneser-ney": ("kn", "one discount; lower orders count contexts"),
    "absolute-discounting": ("ad", "one discount; all orders count occurrences"),
    "witten-bell": ("wb", "no parameters; for small or artificial texts"),
    "good-turing": ("gt", "Katz back-off with Good-Turing discounts"),
    "laplace": ("laplace", "add one"),
    "lidstone": ("lidstone", "add k, see --k"),
    "mle": ("mle", "relative frequencies; unseen events are impossible"),
}
"""For each smoothing the short name in signatures, and a line for the help page."""
SMOOTHING_KINDS: tuple[SmoothingKind, ...] = get_args(SmoothingKind)
VocabularyKind = Literal["open", "closed", "spelled"]
NgramContext = Literal["sentence", "stream"]

# -- text to tokens -----------------------------------------------------------------------------------------------------
NormalizerName = Literal["ccnet"]
NORMALIZERS: tuple[NormalizerName, ...] = get_args(NormalizerName)
"""What may be done to a text before it is cut into tokens; `lmgauge.text.normalizers` has the rules."""

# -- networks -----------------------------------------------------------------------------------------------------------
FirstToken = Literal["bos", "eos", "uniform", "unscored"]
SegmentEnd = Literal["eos", "newline", "none"]
Precision = Literal["auto", "float32", "bfloat16"]
CacheFormat = Literal["float32", "bfloat16", "float16", "fp8_e4m3", "fp8_e5m2", "q8_0", "q4_0"]
"""Of keys and values; the last two are those of ggml, blocks of 32 numbers."""
_BEHIND = {"": ("dtype", get_args(Precision)), "kv": ("kv_cache", get_args(CacheFormat))}


def path_and_formats(name: str) -> tuple[str, dict[str, Any]]:
    """Return the path of a model and the options behind it, as one model is named in several number formats.

    >>> path_and_formats("model/:bfloat16:kv=q8_0"), path_and_formats("C:/model")
    (('model/', {'dtype': 'bfloat16', 'kv_cache': 'q8_0'}), ('C:/model', {}))
    """
    path, _, last = name.rpartition(":")
    kind, _, value = last.rpartition("=")
    option, known = _BEHIND.get(kind, ("", ()))
    if not path or value not in known or os.path.lexists(name):
        return name, {}
    path, others = path_and_formats(path)
    return path, others | {option: value}


ProtocolName = Literal["hf-guide", "harness", "llama.cpp", "gptq"]
PROTOCOL_NAMES: tuple[ProtocolName, ...] = get_args(ProtocolName)
"""Whose rules of what is scored can be followed; `lmgauge.scores.context_policy` has the rules."""

ARPA_ENDINGS = (".arpa", ".arpa.gz", ".lm", ".lm.gz")
"""A model written under such a name is an ARPA file."""
KENLM_ENDINGS = (".binary", ".bin", ".klm")
"""A model written under such a name is a binary file of KenLM; read, these are known by how they begin."""
KENLM_MAGIC = b"mmap lm http://kheafield.com/code"

Program = Literal["lm-evaluation-harness", "vllm", "openai", "llama.cpp", "srilm", "kenlm", "minicons", "score-table"]
PROGRAMS: tuple[Program, ...] = get_args(Program)
"""Whose output `lmgauge import` reads; the last is any that writes a table of lmgauge's form."""
LogUnit = Literal["nats", "bits", "log10"]

DISTRIBUTION_COLUMNS = ("entropy", "rank", "topN", "moments", "mass")
"""Columns of the score table that look at the whole distribution of each event."""

WORD_UNITS = ("whitespace", "treebank", "icu")
"""What words are; icu:<locale> is known besides, as in `--tokenizer`."""

# -- verdicts -----------------------------------------------------------------------------------------------------------
ComparedMetric = Literal["perplexity", "bits_per_byte", "bits_per_character", "bits_per_word"]
DiagnosisSection = Literal["baselines", "slices", "tokens", "segments", "unseen", "calibration"]
DIAGNOSIS_SECTIONS: tuple[DiagnosisSection, ...] = get_args(DiagnosisSection)
MOST_PASSAGES = 60
"""Of each kind, on a page; so the slices of their events are numbered by a byte, see `evaluation.passages`."""
AUDIT_LEVELS = ("coverage", "normalization", "causality", "contamination", "compression")

# -- scores of tasks ----------------------------------------------------------------------------------------------------
TaskErrorPolicy = Literal["fail", "replace"]
SignificanceTest = Literal["student", "sacrebleu", "sacrebleu-bootstrap", "none"]
NbestFormat = Literal[RecordFormat, "kaldi", "espnet"]
ErrorRateName = Literal["wer", "cer"]
Average = Literal["macro", "micro", "weighted"]
UnicodeForm = Literal["NFC", "NFKC"]
WhisperNormalizer = Literal["english", "basic"]
BleuSmoothing = Literal["exp", "floor", "add-k", "none"]
BLEU_SMOOTHING_VALUES: dict[BleuSmoothing, float | None] = {"exp": None, "floor": 0.1, "add-k": 1.0, "none": None}
"""The value each takes where none is given; None: it takes none."""
BleuTokenizer = Literal[
    "13a", "none", "intl", "char", "zh", "ja-mecab", "ko-mecab", "flores200", "flores101", "spm", "spBLEU-1K"
]
ReferenceLength = Literal["closest", "shortest", "average"]
