"""The commands: a row of each. `lmgauge.cli.derive` makes options, help and call of the verb that a row names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from lmgauge.choices import ALL_PROTOCOLS, FORMATS, PROTOCOL_NAMES


@dataclass(frozen=True)
class Row:
    """A command: what of it is not derived.

    Attributes:
        summary: one line for `lmgauge --help`, and the first of the command's own page.
        verbs: `module:function`, the verb; further ones and classes of settings, whose keywords are options too. Required is
            what all require.
        run: `module:function` that takes a `Call`, where running the verb and showing its result is not all.
        arguments: keywords that are arguments, in their order; if None the positional ones but models and outputs.
        stdin: the argument that is standard input where it is not named.
        show: fields of settings that stand on the first page of help; the others are on --help-all.
        hide: the verb's own keywords that do not.
        without: keywords that are not offered; "json" where a command prints nothing.
        choices: keyword -> the words that are offered, where these are not all of its own, or more.
        metavars: what the help calls values, by keyword.
        negative: arguments may begin with -, as negative numbers do.
        required: keywords that only programs may leave out, or only some of the verbs.
        html: True if the result makes a page.
    """

    summary: str
    verbs: str | tuple[str, ...]
    run: str = ""
    arguments: tuple[str, ...] | None = None
    stdin: str = ""
    show: Collection[str] = ()
    hide: Collection[str] = ()
    without: Collection[str] = ()
    choices: Mapping[str, Collection[str]] = field(default_factory=dict)
    metavars: Mapping[str, str] = field(default_factory=dict)
    negative: bool = False
    required: Collection[str] = ()
    html: bool = False


def imported(path: str) -> Any:
    """Return what a row names as `module:name`, imported now."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


OF_SEGMENTS = ("group", "document", "id", "given", "boundary", "keep")
"""Ways to read that say nothing where only the words of a text are wanted."""
OF_EVALUATION = ("protocol", "devices", "processes")
"""Ways to score that only evaluations know."""


def _scores(summary: str, verb: str, *, show: Collection[str], without: Collection[str] = (), **more: Any) -> Row:
    """Return the row of a metric: its verb, how systems in files are scored, and what is printed."""
    text = {"reference", "field", "id", "group", "document"}
    return Row(
        summary,
        (f"lmgauge.api.{verb}", "lmgauge.api.task_scores:score_files", "lmgauge.cli.tasks:Printing"),
        arguments=("files",),
        show={*show, *text, "significance", "width", "score_only"},
        hide={"threads"},
        without={*without, "hypotheses", "references", "sources", "gold", "predicted", "given", "keep", "boundary"},
        metavars={"files": "REFERENCE HYPOTHESES...", "ref_field": "NAME", "labels": "A,B,..."},
        html=True,
        **({"run": "lmgauge.cli.tasks:score"} | more),
    )


_TEXTS = {"format": FORMATS}
_ERRORS = ("lowercase", "remove_punctuation", "expand_contractions", "standardize", "substitutions", "whisper")

SECTIONS: dict[str, dict[str, Row]] = {
    "Train": {
        "train": Row(
            "Train a language model on text.",
            ("lmgauge.api.train:train", "lmgauge.api.train:train_neural"),
            run="lmgauge.cli.training:run",
            stdin="texts",
            without=(*OF_SEGMENTS, "paper", "initializer_range", "sum_over_steps"),
            required=("output",),
            show=(
                *("order", "tokenizer", "vocabulary", "min_count", "interpolate"),
                *("memory", "resume", "preset", "epochs"),
            ),
            metavars={"kind": "KIND", "texts": "[TEXTS]...", "memory": "SIZE", "temp": "DIR", "ray": "ADDRESS"},
        ),
        "mix": Row(
            "Mix models, with weights estimated on held-out text.",
            "lmgauge.api.mix:mix",
            run="lmgauge.cli.models:mix",
            without=(*OF_SEGMENTS, *OF_EVALUATION),
            show=("field", "format", "reserved", "device"),
            required=("output",),
            metavars={"held_out": "[TEXTS]...", "models": "MODEL", "weights": "W,W..."},
        ),
        "spell": Row(
            "Give a model a speller for unseen words, so that bits are exact.",
            "lmgauge.api.spell:spell",
            run="lmgauge.cli.models:spell",
            without=OF_SEGMENTS,
            arguments=("model",),
            show=("order", "max_count", "field", "format"),
        ),
        "prune": Row(
            "Drop the n-grams that a model needs least.",
            "lmgauge.api.prune:prune",
            run="lmgauge.cli.models:prune",
            without=OF_SEGMENTS,
            arguments=("model",),
            show=("field", "format"),
            required=("output",),
        ),
        "cache": Row(
            "Make a model adapt to the text it scores.",
            "lmgauge.api.cache:cache",
            run="lmgauge.cli.models:cache",
            without=(*OF_SEGMENTS, *OF_EVALUATION),
            arguments=("model", "held_out"),
            show=("order", "window", "decay", "field", "format", "reserved"),
            required=("output",),
            metavars={"held_out": "[TEXTS]...", "weight": "SHARE"},
        ),
        "sample": Row(
            "Draw text from a model.",
            "lmgauge.api.sample:sample",
            run="lmgauge.cli.models:sample",
            without=OF_EVALUATION,
            show=("device",),
        ),
    },
    "Measure": {
        "eval": Row(
            "Measure how well models predict a text.",
            (
                "lmgauge.api.evaluate:evaluate",
                "lmgauge.api.evaluate:evaluate_scores",
                "lmgauge.api.context_curve:context_curve",
                "lmgauge.api.protocols:evaluate_protocols",
                "lmgauge.cli.shards:run_in_shards",
            ),
            run="lmgauge.cli.evaluate:evaluate",
            arguments=("text",),
            stdin="text",
            show=(
                *("output", "per_segment", "per_token", "per_word", "columns"),
                *("unit", "field", "group", "document", "given", "context", "device"),
            ),
            hide=("per_context",),
            without=("texts", "name"),
            choices={"protocol": (*PROTOCOL_NAMES, ALL_PROTOCOLS)},
            metavars={"model": "MODEL", "contexts": "N,N..."},
            html=True,
        ),
        "baseline": Row(
            "Say what a network must beat: compressors and n-grams.",
            "lmgauge.api.baseline:baseline",
            show=("order", "character_order", "memory", "threads", "field"),
            without=("group", "id", "given", "boundary", "keep"),
            metavars={"models": "RUN|MODEL", "memory": "SIZE", "output": "DIR"},
            html=True,
        ),
        "merge": Row(
            "Put the shards of a job together to the result of the whole.",
            "lmgauge.cluster.merging:merge",
            html=True,
        ),
        "import": Row(
            "Make a run of what another program scored.",
            "lmgauge.api.import_scores:import_scores",
            show=("unit", "field", "document", "given"),
            without=("group", "id", "keep"),
            metavars={"logprob": "COLUMN", "files": "FILE...", "program": "NAME"},
        ),
        "report": Row(
            "Make one page to look at: the answer, charts, tables, and the text in color.",
            "lmgauge.api.report:report",
            run="lmgauge.cli.report:report",
            arguments=("runs",),
            show=("text", "train", "document", "seed", "threads"),
            metavars={"vega": "DIR", "figures": "DIR"},
        ),
        "diagnose": Row(
            "Show where a model fails.",
            "lmgauge.api.diagnose:diagnose",
            run="lmgauge.cli.report:diagnose",
            show=("text", "train", "only", "examples", "contexts", "seed", "threads", "context", "device"),
            without=(*OF_EVALUATION, "reserved"),
            html=True,
        ),
        "explore": Row(
            "Look at all of a run, or two of one text, in the browser.",
            "lmgauge.explore.door:explore",
            run="lmgauge.cli.report:explore",
            show=("text", "train", "context", "device"),
            without=("json",),
            metavars={"runs": "[RUN] [RUN]", "host": "NAME"},
        ),
        "audit": Row(
            "Check a result, or show what is wrong with it.",
            ("lmgauge.api.audit:audit", "lmgauge.cli.audit:subject"),
            run="lmgauge.cli.audit:audit",
            arguments=("what",),
            show=("levels", "contexts", "max_overlap", "exhaustive", "seed", "field", "context", "device"),
            without=("run", *OF_SEGMENTS, *OF_EVALUATION),
            metavars={"what": "TEXT...|RUN", "levels": "NAMES"},
            html=True,
        ),
        "overlap": Row(
            "Find test text inside training text.",
            ("lmgauge.api.overlap:overlap", "lmgauge.cli.shards:run_in_shards"),
            run="lmgauge.cli.overlap:overlap",
            arguments=("train",),
            required=("train",),
            show=("overlap_unit", "n", "near", "fold", "passages", "field"),
            without=("job", "ray", "document", "id", "given", "boundary", "keep"),
            metavars={"train": "TRAIN... TEST", "run": "RUN", "near": "J", "output": "DIR"},
            html=True,
        ),
        "pairs": Row(
            "Say how often models prefer the good text of minimal pairs.",
            "lmgauge.api.choices:pairs",
            show=("good", "bad", "by", "context", "device"),
            without=OF_EVALUATION,
            html=True,
        ),
        "multiple-choice": Row(
            "Say how often models prefer the right answer of questions.",
            "lmgauge.api.choices:multiple_choice",
            show=("given", "choices", "answer", "by", "boundary", "context", "device"),
            without=OF_EVALUATION,
            html=True,
        ),
        "membership": Row(
            "Ask whether a model has seen texts in training.",
            ("lmgauge.api.membership:membership", "lmgauge.cli.membership:shown"),
            run="lmgauge.cli.membership:membership",
            arguments=("model", "texts"),
            required=("model",),
            stdin="texts",
            show=("k", "fpr", "threads", "field"),
            without=("group", "given", "boundary", "keep", *OF_EVALUATION),
            metavars={"texts": "[TEXTS]...", "label": "FIELD", "reference": "MODEL", "k": "SHARE", "fpr": "RATE"},
            html=True,
        ),
    },
    "Corpora": {
        "filter": Row(
            "Keep the documents that models find likely, with a column for each figure.",
            "lmgauge.api.filter:filter_documents",
            run="lmgauge.cli.filter:filter_documents",
            show=(
                "field",
                "lines",
                "by",
                "max_perplexity",
                "min_perplexity",
                "keep",
                "buckets",
                "min_bytes",
                "workers",
                "threads",
            ),
            metavars={"model": "[NAME=]MODEL", "inputs": "IN...", "keep": "pA..pB", "buckets": "pA,pB"},
            html=True,
        ),
        "score": Row(
            "Give each document columns with what models make of it.",
            "lmgauge.api.filter:score_documents",
            run="lmgauge.cli.filter:filter_documents",
            show=("field", "lines", "by", "workers", "threads"),
            metavars={"model": "[NAME=]MODEL", "inputs": "IN..."},
            html=True,
        ),
        "percentiles": Row(
            "Learn the percentiles of perplexity that a filter keeps by.",
            "lmgauge.api.percentiles:learn_percentiles",
            run="lmgauge.cli.filter:percentiles",
            show=("field", "lines", "by", "group", "workers", "threads"),
            without=("shard",),
            metavars={"model": "[NAME=]MODEL", "inputs": "IN...", "sample": "N|all"},
            html=True,
        ),
        "select": Row(
            "Select the documents of a pool that are most like a target.",
            "lmgauge.api.select:select_documents",
            arguments=("pool",),
            show=("cuts", "tolerance", "share", "max_difference", "order", "field"),
            without=("group", "id", "given", "boundary", "keep"),
            metavars={"pool": "POOL...", "cuts": "SHARE[,SHARE...]", "max_difference": "BITS", "temp": "DIR"}
            | dict.fromkeys(("tolerance", "held_out_share", "share"), "SHARE"),
            html=True,
        ),
    },
    "Compare": {
        "compare": Row(
            "Say whether results may be compared, and whether their difference is real.",
            (
                "lmgauge.api.compare:compare",
                "lmgauge.api.compare:compare_recipes",
                "lmgauge.cli.compare:check",
                "lmgauge.cli.compare:shown",
            ),
            run="lmgauge.cli.compare:compare",
            arguments=("runs",),
            show=("text", "train"),
            metavars={"recipes": "NAME=RUN,RUN"},
            html=True,
        ),
        "divergence": Row(
            "Measure how far models' predictions are from those of a base.",
            ("lmgauge.api.divergence:divergence", "lmgauge.api.stored_base:save_base", "lmgauge.cli.divergence:shown"),
            run="lmgauge.cli.divergence:divergence",
            arguments=("base", "candidate"),
            required=("base",),
            stdin="candidate",
            show=("events", "exhaustive", "top_k", "examples", "seed", "threads", "field", "group"),
            without=("text", "id", "keep", *OF_EVALUATION),
            metavars={"candidate": "CANDIDATE... [TEXT]...", "top_k": "K[,K...]", "output": "DIR"},
            html=True,
        ),
        "correlate": Row(
            "Say whether better language models go with better task scores.",
            "lmgauge.api.task_correlation:correlate_tables",
            show=("x", "y", "system", "log_x"),
            html=True,
        ),
    },
    "Tasks": {
        "bleu": _scores(
            "Score translations with BLEU, as sacreBLEU does.",
            "task_metrics:bleu",
            show=("order", "smoothing", "lowercase", "tokenizer", "test_set", "language_pair", "sentence"),
            without=("align", "top"),
            choices=_TEXTS,
        ),
        "chrf": _scores(
            "Score translations with chrF or chrF++, as sacreBLEU does.",
            "task_metrics:chrf",
            show=("char_order", "word_order", "plus_plus", "beta", "lowercase", "test_set", "language_pair", "sentence"),
            without=("align", "top"),
            choices=_TEXTS,
        ),
        "ter": _scores(
            "Measure the translation edit rate, as sacreBLEU does.",
            "task_metrics:ter",
            show=("normalized", "no_punct", "case_sensitive", "test_set", "language_pair", "sentence"),
            without=("align", "top"),
            choices=_TEXTS,
        ),
        "wer": _scores(
            "Measure the word error rate of transcripts, as jiwer does.",
            "task_metrics:wer",
            show=(*_ERRORS, "format", "align", "top"),
            without=("collapse_spaces",),
        ),
        "cer": _scores(
            "Measure the character error rate of transcripts, as jiwer does.",
            "task_metrics:cer",
            show=(*_ERRORS, "format", "align", "top"),
            without=("jiwer_words",),
        ),
        "rescore": Row(
            "Choose the best of n-best lists by a recognizer's scores and language models.",
            ("lmgauge.api.rescore:rescore", "lmgauge.cli.rescore:Written"),
            run="lmgauge.cli.rescore:rescore",
            arguments=("nbest",),
            show=(
                *("weights", "metric", "lower_for_models", "document", "lowercase", "remove_punctuation"),
                *("format", "id", "field", "score", "output", "write_scores", "significance"),
            ),
            without=("collapse_spaces", "jiwer_words", *OF_EVALUATION),
            metavars={"nbest": "NBEST...", "tune": "DEV", "document": "FILE", "hypotheses": "NAME", "score": "NAME"},
            html=True,
        ),
        "f1": _scores(
            "Measure precision, recall and F1 of labeled outputs.",
            "task_labels:score_label_files",
            run="lmgauge.cli.tasks:score_labels",
            show=(),
            without=("reference", "sentence", "align", "top", "segments", "group", "shard", "output"),
            choices=_TEXTS,
        ),
    },
    "Tools": {
        "quickstart": Row(
            "Train and evaluate four models on bundled text.",
            "lmgauge.cli.quickstart:quickstart",
            run="lmgauge.cli.quickstart:show",
        ),
        "doctor": Row(
            "Look whether this install works, and what is missing for what.",
            "lmgauge.api.doctor:doctor",
            run="lmgauge.cli.doctor:doctor",
        ),
        "info": Row(
            "Show what is in a model, or in a run.",
            "lmgauge.api.info:info",
            show=("context", "device"),
            metavars={"what": "MODEL|RUN"},
        ),
        "convert": Row(
            "Convert between ARPA files, binary files of KenLM, and model folders.",
            "lmgauge.api.convert:convert",
            run="lmgauge.cli.models:convert",
            show=("trie", "quantize", "array"),
            without=("json",),
        ),
        "calc": Row(
            "Compute perplexity, cross-entropy and bits from the probabilities of events.",
            ("lmgauge.api.calc:calc", "lmgauge.cli.calc:shown"),
            run="lmgauge.cli.calc:calc",
            negative=True,
            metavars=dict.fromkeys("pq", "LIST") | {"cross_entropy": "NATS", "bits_per_event": "BITS"},
        ),
        "split": Row(
            "Split text into train, validation and test, the same for the same seed on every machine.",
            "lmgauge.api.split:split",
            show=("unit", "field", "group", "document"),
            without=("id", "given", "keep", "boundary"),
            metavars={"text": "TEXT...", "fractions": "A,B,C", "by": "[group|document]"},
        ),
    },
}
"""Heading of `--help` -> name -> (where, one line for --help; a test holds it against the command's own)."""
COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}
