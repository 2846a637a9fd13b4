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
        arguments: keywords that are arguments, in their order; if None the verb's positional ones but models and outputs.
        stdin: the argument that is standard input where it is not named.
        show: fields of settings that stand on the first page of help; the others are on --help-all.
        hide: the verb's own keywords that do not.
        without: keywords that are not offered; "json" where a command prints nothing, "html" where its result makes no page.
        choices: keyword -> the words that are offered, where these are not all of its own, or more.
        metavars: what the help calls values, by keyword.
        negative: arguments may begin with -, as negative numbers do.
        required: keywords that only programs may leave out, or only some of the verbs.
    """

    summary: str
    verbs: tuple[str, ...]
    run: str = ""
    arguments: tuple[str, ...] | None = None
    stdin: str = ""
    show: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    choices: Mapping[str, Collection[str]] = field(default_factory=dict)
    metavars: Mapping[str, str] = field(default_factory=dict)
    negative: bool = False
    required: tuple[str, ...] = ()


def imported(path: str) -> Any:
    """Return what a row names as `module:name`, imported now."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _row(summary: str, *verbs: str, **more: Any) -> Row:
    """Return a row; its keywords are written as words, with spaces between them."""
    for name in more.keys() & {"arguments", "show", "hide", "without", "required"}:
        more[name] = tuple(more[name].split())
    return Row(summary, verbs, **more)


OF_SEGMENTS = "group document id given boundary keep"
"""Ways to read that say nothing where only the words of a text are wanted."""
OF_EVALUATION = "protocol devices processes"
"""Ways to score that only evaluations know."""


def _scores(summary: str, verb: str, *, without: str, show: str = "", **more: Any) -> Row:
    """Return the row of a metric: its verb, how systems in files are scored, and what is printed."""
    return _row(
        summary,
        f"lmgauge.api.{verb}",
        "lmgauge.api.task_scores:score_files",
        "lmgauge.cli.tasks:Printing",
        arguments="files",
        show=f"{show} reference field id group document significance width score_only",
        hide="threads",
        without=f"{without} hypotheses references sources gold predicted given keep boundary",
        metavars={"files": "REFERENCE HYPOTHESES..."},
        **({"run": "lmgauge.cli.tasks:score"} | more),
    )


_TEXTS = {"format": FORMATS}
_ERRORS = "lowercase remove_punctuation expand_contractions standardize substitutions whisper format align top"

SECTIONS: dict[str, dict[str, Row]] = {
    "Train": {
        "train": _row(
            "Train a language model on text.",
            "lmgauge.api.train:train",
            "lmgauge.api.train:train_neural",
            run="lmgauge.cli.training:run",
            stdin="texts",
            show="order tokenizer vocabulary min_count interpolate memory resume preset epochs",
            without=f"{OF_SEGMENTS} paper initializer_range sum_over_steps html",
            metavars={"kind": "KIND", "texts": "[TEXTS]..."},
            required="output",
        ),
        "mix": _row(
            "Mix models, with weights estimated on held-out text.",
            "lmgauge.api.mix:mix",
            run="lmgauge.cli.models:mix",
            show="field format reserved device",
            without=f"{OF_SEGMENTS} {OF_EVALUATION} html",
            metavars={"held_out": "[TEXTS]...", "weights": "W,W..."},
            required="output",
        ),
        "spell": _row(
            "Give a model a speller for unseen words, so that bits are exact.",
            "lmgauge.api.spell:spell",
            run="lmgauge.cli.models:spell",
            arguments="model",
            show="order max_count field format",
            without=f"{OF_SEGMENTS} html",
        ),
        "prune": _row(
            "Drop the n-grams that a model needs least.",
            "lmgauge.api.prune:prune",
            run="lmgauge.cli.models:prune",
            arguments="model",
            show="field format",
            without=f"{OF_SEGMENTS} html",
            required="output",
        ),
        "cache": _row(
            "Make a model adapt to the text it scores.",
            "lmgauge.api.cache:cache",
            run="lmgauge.cli.models:cache",
            arguments="model held_out",
            show="order window decay field format reserved",
            without=f"{OF_SEGMENTS} {OF_EVALUATION} html",
            metavars={"held_out": "[TEXTS]..."},
            required="output",
        ),
        "sample": _row(
            "Draw text from a model.",
            "lmgauge.api.sample:sample",
            run="lmgauge.cli.models:sample",
            show="device",
            without=f"{OF_EVALUATION} html",
        ),
    },
    "Measure": {
        "eval": _row(
            "Measure how well models predict a text.",
            "lmgauge.api.evaluate:evaluate",
            "lmgauge.api.evaluate:evaluate_scores",
            "lmgauge.api.context_curve:context_curve",
            "lmgauge.api.protocols:evaluate_protocols",
            "lmgauge.cli.shards:run_in_shards",
            run="lmgauge.cli.evaluate:evaluate",
            stdin="text",
            show="output per_segment per_token per_word columns unit field group document given context device",
            hide="per_context",
            without="texts name",
            choices={"protocol": (*PROTOCOL_NAMES, ALL_PROTOCOLS)},
            metavars={"contexts": "N,N..."},
        ),
        "baseline": _row(
            "Say what a network must beat: compressors and n-grams.",
            "lmgauge.api.baseline:baseline",
            show="order character_order memory threads field",
            without="group id given boundary keep",
            metavars={"models": "RUN|MODEL", "output": "DIR"},
        ),
        "merge": _row("Put the shards of a job together to the result of the whole.", "lmgauge.cluster.merging:merge"),
        "import": _row(
            "Make a run of what another program scored.",
            "lmgauge.api.import_scores:import_scores",
            show="unit field document given",
            without="group id keep html",
            metavars={"files": "FILE..."},
        ),
        "report": _row(
            "Make one page to look at: the answer, charts, tables, and the text in color.",
            "lmgauge.api.report:report",
            run="lmgauge.cli.runs:report",
            show="text train document seed threads",
            without="html",
        ),
        "diagnose": _row(
            "Show where a model fails.",
            "lmgauge.api.diagnose:diagnose",
            run="lmgauge.cli.runs:diagnose",
            show="text train only examples contexts seed threads context device",
            without=f"{OF_EVALUATION} reserved",
        ),
        "explore": _row(
            "Look at all of a run, or two of one text, in the browser.",
            "lmgauge.explore.door:explore",
            run="lmgauge.cli.runs:explore",
            show="text train context device",
            without="json html",
            metavars={"runs": "[RUN] [RUN]"},
        ),
        "audit": _row(
            "Check a result, or show what is wrong with it.",
            "lmgauge.api.audit:audit",
            "lmgauge.cli.runs:subject",
            run="lmgauge.cli.runs:audit",
            arguments="what",
            show="levels contexts max_overlap exhaustive seed field context device",
            without=f"{OF_SEGMENTS} {OF_EVALUATION} run",
            metavars={"what": "TEXT...|RUN"},
        ),
        "overlap": _row(
            "Find test text inside training text.",
            "lmgauge.api.overlap:overlap",
            "lmgauge.cli.shards:run_in_shards",
            run="lmgauge.cli.overlap:overlap",
            arguments="train",
            show="overlap_unit n near fold passages field",
            without="job ray document id given boundary keep",
            metavars={"train": "TRAIN... TEST", "output": "DIR"},
            required="train",
        ),
        "pairs": _row(
            "Say how often models prefer the good text of minimal pairs.",
            "lmgauge.api.choices:pairs",
            show="good bad by context device",
            without=OF_EVALUATION,
        ),
        "multiple-choice": _row(
            "Say how often models prefer the right answer of questions.",
            "lmgauge.api.choices:multiple_choice",
            show="given choices answer by boundary context device",
            without=OF_EVALUATION,
        ),
        "membership": _row(
            "Ask whether a model has seen texts in training.",
            "lmgauge.api.membership:membership",
            "lmgauge.cli.models_and_texts:suspects",
            run="lmgauge.cli.models_and_texts:membership",
            arguments="model texts",
            stdin="texts",
            show="k fpr threads field",
            without=f"{OF_EVALUATION} group given boundary keep",
            metavars={"texts": "[TEXTS]...", "reference": "MODEL", "k": "SHARE"},
            required="model",
        ),
    },
    "Corpora": {
        "filter": _row(
            "Keep the documents that models find likely, with a column for each figure.",
            "lmgauge.api.filter:filter_documents",
            run="lmgauge.cli.filter:filter_documents",
            show="field lines by max_perplexity min_perplexity keep buckets min_bytes workers threads",
            metavars={"model": "[NAME=]MODEL", "inputs": "IN...", "keep": "pA..pB"},
        ),
        "score": _row(
            "Give each document columns with what models make of it.",
            "lmgauge.api.filter:score_documents",
            run="lmgauge.cli.filter:filter_documents",
            show="field lines by workers threads",
            metavars={"model": "[NAME=]MODEL", "inputs": "IN..."},
        ),
        "percentiles": _row(
            "Learn the percentiles of perplexity that a filter keeps by.",
            "lmgauge.api.percentiles:learn_percentiles",
            run="lmgauge.cli.filter:percentiles",
            show="field lines by group workers threads",
            without="shard",
            metavars={"model": "[NAME=]MODEL", "inputs": "IN..."},
        ),
        "select": _row(
            "Select the documents of a pool that are most like a target.",
            "lmgauge.api.select:select_documents",
            arguments="pool",
            show="cuts tolerance share max_difference order field",
            without="group id given boundary keep",
            metavars={"pool": "POOL..."},
        ),
    },
    "Compare": {
        "compare": _row(
            "Say whether results may be compared, and whether their difference is real.",
            "lmgauge.api.compare:compare",
            "lmgauge.api.compare:compare_recipes",
            "lmgauge.cli.runs:check",
            "lmgauge.cli.runs:compared",
            run="lmgauge.cli.runs:compare",
            show="text train",
        ),
        "divergence": _row(
            "Measure how far models' predictions are from those of a base.",
            "lmgauge.api.divergence:divergence",
            "lmgauge.api.stored_base:save_base",
            "lmgauge.cli.models_and_texts:diverged",
            run="lmgauge.cli.models_and_texts:divergence",
            arguments="base candidate",
            stdin="candidate",
            show="events exhaustive top_k examples seed threads field group",
            without=f"{OF_EVALUATION} text id keep",
            metavars={"candidate": "CANDIDATE... [TEXT]...", "top_k": "K[,K...]", "output": "DIR"},
            required="base",
        ),
        "correlate": _row(
            "Say whether better language models go with better task scores.",
            "lmgauge.api.task_correlation:correlate_tables",
            show="x y system log_x",
        ),
    },
    "Tasks": {
        "bleu": _scores(
            "Score translations with BLEU, as sacreBLEU does.",
            "task_metrics:bleu",
            show="order smoothing lowercase tokenizer test_set language_pair sentence",
            without="align top",
            choices=_TEXTS,
        ),
        "chrf": _scores(
            "Score translations with chrF or chrF++, as sacreBLEU does.",
            "task_metrics:chrf",
            show="char_order word_order plus_plus beta lowercase test_set language_pair sentence",
            without="align top",
            choices=_TEXTS,
        ),
        "ter": _scores(
            "Measure the translation edit rate, as sacreBLEU does.",
            "task_metrics:ter",
            show="normalized no_punct case_sensitive test_set language_pair sentence",
            without="align top",
            choices=_TEXTS,
        ),
        "wer": _scores(
            "Measure the word error rate of transcripts, as jiwer does.",
            "task_metrics:wer",
            show=_ERRORS,
            without="collapse_spaces",
        ),
        "cer": _scores(
            "Measure the character error rate of transcripts, as jiwer does.",
            "task_metrics:cer",
            show=_ERRORS,
            without="jiwer_words",
        ),
        "rescore": _row(
            "Choose the best of n-best lists by a recognizer's scores and language models.",
            "lmgauge.api.rescore:rescore",
            "lmgauge.cli.rescore:Written",
            run="lmgauge.cli.rescore:rescore",
            show="weights metric lower_for_models document lowercase remove_punctuation format id field score output "
            "write_scores significance",
            without=f"{OF_EVALUATION} collapse_spaces jiwer_words",
            metavars={"nbest": "NBEST...", "document": "FILE"},
        ),
        "f1": _scores(
            "Measure precision, recall and F1 of labeled outputs.",
            "task_labels:score_label_files",
            run="lmgauge.cli.tasks:score_labels",
            without="reference sentence align top segments group shard output",
            choices=_TEXTS,
        ),
    },
    "Tools": {
        "quickstart": _row(
            "Train and evaluate four models on bundled text.",
            "lmgauge.cli.quickstart:quickstart",
            run="lmgauge.cli.quickstart:show",
            without="html",
        ),
        "doctor": _row(
            "Look whether this install works, and what is missing for what.",
            "lmgauge.api.doctor:doctor",
            run="lmgauge.cli.doctor:doctor",
            without="html",
        ),
        "info": _row(
            "Show what is in a model, or in a run.",
            "lmgauge.api.info:info",
            show="context device",
            without="html",
            metavars={"what": "MODEL|RUN"},
        ),
        "convert": _row(
            "Convert between ARPA files, binary files of KenLM, and model folders.",
            "lmgauge.api.convert:convert",
            show="trie quantize array",
            without="json html",
        ),
        "calc": _row(
            "Compute perplexity, cross-entropy and bits from the probabilities of events.",
            "lmgauge.api.calc:calc",
            "lmgauge.cli.calc:shown",
            run="lmgauge.cli.calc:calc",
            without="html",
            negative=True,
        ),
        "split": _row(
            "Split text into train, validation and test, the same for the same seed on every machine.",
            "lmgauge.api.split:split",
            show="unit field group document",
            without="id given keep boundary html",
            metavars={"text": "TEXT...", "by": "[group|document]"},
        ),
    },
}
"""Heading of `--help` -> name -> row."""
COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}
