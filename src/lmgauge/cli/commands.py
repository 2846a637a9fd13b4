"""The commands: a row of each. `lmgauge.cli.derive` makes options, help and call of the verb that a row names.

Below a heading of `lmgauge --help` stands each command with its line there: NAME = VERB [RUN], the verb by its place below
`lmgauge` where its name is another, and what runs it below `lmgauge.cli`. Then what else is not derived, by the fields of
`Row`: words, or NAME=VALUE with commas between. What stands twice is added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Row(NamedTuple):
    """A command: what of it is not derived.

    Attributes:
        summary: one line for `lmgauge --help`, and the first of the command's own page.
        guesses: words of the field that people try in place of the command's name.
        verbs: the verb, and in a line of their own further ones and classes of settings, whose keywords are options too.
            Required is what all verbs require.
        run: what takes a `Call`, where running the verb and showing its result is not all.
        arguments: keywords that are arguments, in their order; if None the verb's positional ones but models and outputs.
        stdin: the argument that is standard input where it is not named.
        show: fields of settings that stand on the first page of help; the others are on --help-all.
        hide: the verb's own keywords that do not.
        without: keywords that are not offered; "json" where a command prints nothing, "tables" where it prints none, "html"
            where its result makes no page.
        choices: keyword -> place below `lmgauge` of the words that are offered, where these are not all of its own, or more.
        metavars: what the help calls values, by keyword.
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
    choices: Mapping[str, str] = {}
    metavars: Mapping[str, str] = {}
    required: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()


def imported(path: str) -> Any:
    """Return what a row names by its place below `lmgauge`, such as `tasks.bleu`, imported now."""
    module, _, name = f"lmgauge.{path}".rpartition(".")
    return getattr(import_module(module), name)


OF_SEGMENTS = "group document id given boundary keep"
"""Ways to read that say nothing where only the words of a text are wanted."""
OF_TURNS = "chat roles as_turn"
"""Ways to read conversations, for commands that would take their turns apart."""
OF_EVALUATION = "protocol devices processes"
"""Ways to score that only evaluations know."""
_ERRORS = "lowercase remove_punctuation expand_contractions substitutions whisper format align top"
_SYSTEMS = f"""verbs: tasks.score_files cli.tasks.Printing
    arguments: files
    show: reference field id group document significance width score_only
    hide: threads
    without: hypotheses references sources gold predicted given keep boundary {OF_TURNS}
    metavars: files=REFERENCE HYPOTHESES...
    required: files"""
_TRANSLATIONS = f"""without: align top
    show: also
    choices: format=base.choices.FORMATS
    {_SYSTEMS}"""
_TABLE = f"""
Train
  train [training.train]: Train a language model on text.
    guesses: build estimate fit learn lm lmplz ngram
    verbs: train_neural
    stdin: texts
    show: order tokenizer vocabulary min_count interpolate memory resume preset epochs
    without: {OF_SEGMENTS} as_turn paper initializer_range sum_over_steps html tables
    metavars: kind=KIND, context=[sentence|stream]
    required: output
  counts = models.count_ngrams: Count the n-grams of a text, to train from or for other programs.
    guesses: count frequencies ngram-count
    stdin: texts
    show: output memory min_count tokenizer field format
    without: {OF_SEGMENTS} as_turn vocabulary html
    metavars: context=[sentence|stream]
    required: output
  mix [models.mix]: Mix models, with weights estimated on held-out text.
    guesses: ensemble interpolate
    show: field format reserved device
    without: {OF_SEGMENTS} {OF_EVALUATION} html
    metavars: held_out=[TEXTS]..., weights=W,W...
    required: output
  spell [models.spell]: Give a model a speller for unseen words, so that bits are exact.
    guesses: characters oov open-vocabulary speller spelling unk
    arguments: model
    show: order max_count field format
    without: {OF_SEGMENTS} as_turn html tables
  prune [models.prune]: Drop the n-grams that matter least to a model, or those of other words.
    guesses: compress limit-vocab shrink trim
    arguments: model
    show: field format
    without: {OF_SEGMENTS} as_turn html
    required: output
  cache [models.cache]: Make a model adapt to the text it scores.
    guesses: adapt dynamic
    arguments: model held_out
    show: order window decay field format reserved
    without: {OF_SEGMENTS} {OF_EVALUATION} html
    metavars: held_out=[TEXTS]...
    required: output
  sample [models.sample]: Draw text from a model.
    guesses: gen generate generation
    show: device
    without: {OF_EVALUATION} html tables

Measure
  eval = evaluate [evaluate.evaluate]: Measure how well models predict a text.
    guesses: bpb evaluate evaluation measure perplexity ppl query test
    verbs: estimate evaluate_scores context_curve work.shard.Sharing
    stdin: text
    show: output per_segment per_token per_word unit field chat group document given context device
    hide: also_raw track
    without: texts name
    metavars: contexts=N,N..., proxy=RUN|MODEL, sample=N, until=SHARE, budget=TIME
  baseline: Show what a network must beat: compressors and n-grams.
    guesses: baselines compressors gzip ladder xz zstd
    show: order character_order memory threads field
    without: group id given boundary keep as_turn
    metavars: models=RUN|MODEL, output=DIR
  merge: Merge shards into one result.
    guesses: combine gather join reduce shard shards
  import = import_scores [runs.import_logs]: Import scores from another program.
    verbs: tasks.import_items
    show: unit field document given
    hide: scale lower_is_better
    without: keep html
    metavars: scale=LOW,HIGH
  report [runs.report]: Make one page: the answer, charts, tables, and the text in color.
    guesses: dashboard html page plot view visualize
    show: text train document seed threads
    without: html tables
  export [runs.export]: Write results in the forms of papers, the Hub and other programs.
    guesses: hub latex publish share
    without: json html
    metavars: to=FORM, figures=NAME,NAME, names=NAME,NAME
  diagnose [runs.diagnose]: Show where a model fails.
    guesses: analyze errors
    show: text train only examples contexts seed threads context device
    without: {OF_EVALUATION} reserved
  explore [runs.explore]: Browse one run, or two runs of the same text.
    guesses: browse serve server ui viewer watch
    show: text train context device
    without: json html
    metavars: runs=[RUN] [RUN]
  audit [runs.audit]: Check a result, or show what is wrong with it.
    guesses: check prove validate verify
    verbs: cli.runs.subject
    arguments: what
    show: levels contexts max_overlap exhaustive seed field context device
    without: {OF_SEGMENTS} {OF_EVALUATION} run
    metavars: what=TEXT...|RUN
  overlap [corpora.overlap]: Find test text inside training text.
    guesses: contamination decontaminate dedup leak
    arguments: train
    show: overlap_unit n fold passages field
    without: document id given boundary keep as_turn
    metavars: train=TRAIN... TEST
  pairs: Measure how often models prefer the good text of minimal pairs.
    guesses: blimp minimal-pairs syntaxgym
    show: good bad by context device
    without: {OF_EVALUATION}
  multiple-choice: Measure how often models choose the right answer to a question.
    guesses: choices questions arc hellaswag mmlu
    show: given choices answer by boundary context device
    without: {OF_EVALUATION}
  membership [models_and_texts.membership]: Ask whether a model has seen texts in training.
    guesses: extraction memorization mia min-k mink seen
    verbs: cli.models_and_texts.suspects
    stdin: texts
    arguments: model texts
    show: k fpr threads field
    without: {OF_EVALUATION} group given boundary keep
    metavars: reference=MODEL

Corpora
  filter = filter_documents [corpora.documents]: Keep the documents that models find likely, and add score columns.
    guesses: ccnet drop keep prefilter
    show: field lines by max_perplexity min_perplexity keep buckets min_bytes workers threads
    metavars: model=[NAME=]MODEL, keep=pA..pB
  score = score_documents [corpora.documents]: Add score columns to each document.
    show: field lines by workers threads
    metavars: model=[NAME=]MODEL
  percentiles = learn_percentiles [corpora.percentiles]: Learn the percentiles of perplexity for a filter.
    guesses: cutoffs quantiles thresholds
    show: field lines by group workers threads
    without: shard
    metavars: model=[NAME=]MODEL
  select = select_documents: Select the documents of a pool that are most like a target.
    guesses: moore-lewis xenc choose data-selection
    arguments: pool
    show: share max_difference order field
    without: {OF_SEGMENTS} {OF_TURNS}

Compare
  compare [runs.compare]: Check whether results may be compared and whether their difference is real.
    guesses: bootstrap diff paired significance
    verbs: compare_recipes decide tasks.compare_items cli.runs.check cli.runs.compared
    show: text train field document context device
    hide: seed metric
    without: {OF_EVALUATION} id group given boundary keep
    metavars: runs=RUN...|TEXT..., output=FILE
  divergence [models_and_texts.divergence]: Measure how far models' predictions are from those of a base.
    guesses: js jsd kl kl-divergence kld
    verbs: save_base cli.models_and_texts.diverged
    stdin: candidate
    arguments: base candidate
    show: events exhaustive top_k examples seed threads field group
    without: {OF_EVALUATION} text id keep
    metavars: candidate=CANDIDATE... [TEXT]..., top_k=K[,K...], output=DIR
  agree [runs.agree]: Check whether two engines give the same tokens the same log-probabilities.
    guesses: engines mismatch logprobs parity rollout
    verbs: cli.runs.engines
    arguments: engines
    show: document device
    without: {OF_EVALUATION} a b group id keep
    metavars: engines=A B, pairs=NAME=A,B[,FLOOR]
  correlate = tasks.correlate_tables: Check whether better language models get better task scores.
    guesses: correlation pearson spearman
    show: x y system log_x

Tasks
  bleu = tasks.bleu [tasks.score]: Score translations with BLEU, as sacreBLEU does.
    guesses: sacrebleu
    show: order smoothing lowercase tokenizer test_set language_pair sentence
    {_TRANSLATIONS}
  chrf = tasks.chrf [tasks.score]: Score translations with chrF or chrF++, as sacreBLEU does.
    show: char_order word_order plus_plus beta lowercase test_set language_pair sentence
    {_TRANSLATIONS}
  ter = tasks.ter [tasks.score]: Measure the translation edit rate, as sacreBLEU does.
    show: normalized no_punct case_sensitive test_set language_pair sentence
    {_TRANSLATIONS}
  wer = tasks.wer [tasks.score]: Measure the word error rate of transcripts, as jiwer does.
    guesses: jiwer
    show: {_ERRORS}
    without: collapse_spaces
    {_SYSTEMS}
  cer = tasks.cer [tasks.score]: Measure the character error rate of transcripts, as jiwer does.
    show: {_ERRORS}
    without: jiwer_words
    {_SYSTEMS}
  rescore: Choose the best of n-best lists by a recognizer's scores and language models.
    guesses: mert n-best nbest rerank rescoring
    show: weights metric document lowercase remove_punctuation format id field score output
    show: write_scores significance
    without: {OF_EVALUATION} collapse_spaces jiwer_words
    metavars: document=FILE
  f1 = tasks.score_label_files [tasks.score_labels]: Measure precision, recall and F1 of labeled outputs.
    guesses: accuracy classification precision recall
    without: reference sentence align also top segments group shard output
    choices: format=base.choices.FORMATS
    {_SYSTEMS}

Tools
  quickstart = cli.tools.quickstart [tools.show]: Train and evaluate four models on bundled text.
    without: html
  doctor [tools.doctor]: Check the installation and show what is missing.
    guesses: diagnostics env environment install selfcheck version versions
    without: html
  info: Show what is in a model, or in a run; list plug-ins.
    guesses: describe inspect plugins show
    show: context device
    without: html
    metavars: what=MODEL|RUN
  convert = api.convert.convert: Convert between ARPA files, binary files of KenLM, and model folders.
    guesses: arpa
    show: trie quantize
    without: json html
  calc [tools.calc]: Compute perplexity, cross-entropy and bits from the probabilities of events.
    guesses: bits entropy calculate
    verbs: report.calc.blocks
    without: html
  split: Split text into train, validation and test; a seed gives the same split on every machine.
    show: unit field group document
    without: id given keep boundary {OF_TURNS} html
    metavars: text=TEXT..., by=[group|document]
"""


def _row(command: str) -> tuple[str, Row]:
    """Return the name and the row of a command."""
    (head, summary), *lines = (line.strip().split(": ", 1) for line in command.split("\n"))
    declared, _, run = head.rstrip("]").partition(" [")
    name, _, verb = declared.partition(" = ")
    said: dict[str, Any] = {"run": run and f"cli.{run}", "verbs": (verb or name.replace("-", "_"),)}
    for key, words in lines:
        if key in ("choices", "metavars"):
            said[key] = dict(word.split("=", 1) for word in words.split(", "))
        elif key == "stdin":
            said[key] = words
        else:
            said[key] = (*said.get(key, ()), *words.split())
    return name, Row(summary, **said)


_PARTS = [re.split(r"\n  (?=\S)", section) for section in _TABLE.strip().split("\n\n")]
SECTIONS = {heading: dict(map(_row, commands)) for heading, *commands in _PARTS}
"""Heading of `--help` -> name -> row."""
COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}
