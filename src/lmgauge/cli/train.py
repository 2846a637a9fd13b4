"""`lmgauge train`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypedDict, cast

import click

from lmgauge.choices import (
    NGRAM_CONTEXTS,
    RESERVED_POLICIES,
    SMOOTHING_KINDS,
    SMOOTHINGS,
    VOCABULARY_KINDS,
    NormalizerName,
)
from lmgauge.cli.command import CommaList, Command, Number, names_of, refuse_given, settings, under, whole_number
from lmgauge.cli.options import KENLM, json_option, normalizer_option, read_texts, reading_settings, threads_option
from lmgauge.cli.say import say
from lmgauge.cli.train_neural import NEURAL_ONLY, RECIPE, RUN, SIZES, TrainingFiles, refuse_other_kinds, train_network
from lmgauge.files import refuse_replacing
from lmgauge.models.ngram.kenlm_form import KenlmForm
from lmgauge.models.training.settings import NEURAL_KINDS, RunSettings, SettingsChanges
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.models.ngram.model import NgramModel


class _Smoothing(TypedDict):
    """What only n-gram models are made of: fields of `NgramTrainingSettings`."""

    normalizer: NormalizerName | None
    eos: bool
    interpolate: bool
    discount: tuple[float, ...] | None
    k: float | None
    cutoffs: tuple[int, ...]
    prune: float | None


class _Resources(TypedDict):
    """What training on a large text may take: keywords of `lmgauge.train`."""

    memory: str | None
    temp: str | None
    workers: int | None
    ray: str | None


class _Kind(click.Choice[str]):
    """A kind of model; an unknown word is answered with the kinds spelled like it."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return what is wrong with `value`, and which kind may be meant."""
        from difflib import get_close_matches

        word = str(value).lower()
        short = [kind for kind, (name, _) in SMOOTHINGS.items() if len(word) > 1 and name.endswith(word)]
        meant = " or ".join(short or get_close_matches(word, self.choices, 2))
        hint = f"; did you mean {meant}?" if meant else ""
        return super().get_invalid_choice_message(value, ctx).rstrip(".") + hint


_KINDS = "\n".join(["\b", "Smoothings:", *(f"  {kind:22}{what}" for kind, (_, what) in SMOOTHINGS.items())])
_OUTPUT = (
    click.option(
        "-o",
        "--output",
        required=True,
        type=click.Path(),
        help="Model folder to write; a name ending in .arpa or .arpa.gz writes that format, one in .binary or .klm KenLM's.",
    ),
    click.option(
        "--resume",
        is_flag=True,
        help="Resume a training that was stopped, or begin one: of a neural model (on a CPU, with the same --threads, the "
        "model is the one of a run that was never stopped), or within --memory, from the last finished stage.",
    ),
    json_option,
)
_BEYOND_MEMORY = (
    click.option(
        "--memory",
        metavar="SIZE",
        help="Stay within this much, such as 500M, 2G (of 1024^3 bytes) or 1.5GB: the same model, made in parts that lie on "
        "disk.  [default: in memory where it fits, else within 80 % of what is free]",
    ),
    click.option(
        "--temp", type=click.Path(), metavar="DIR", help="Existing folder for those parts.  [default: beside the output]"
    ),
    whole_number("--workers", help="Processes that share the work within --memory.  [default: the threads of this one]"),
    click.option("--ray", metavar="ADDRESS", help="Let a Ray cluster do the work; local: one started on this machine."),
)
_VOCABULARY = (
    click.option(
        "--tokenizer",
        default="whitespace",
        show_default=True,
        help="whitespace, treebank, character, byte, icu, icu:<locale>, the path of a tokenizer.json or a SentencePiece "
        ".model, or bpe:N, unigram:N (neural).",
    ),
    normalizer_option,
    click.option(
        "--vocabulary",
        type=click.Choice(VOCABULARY_KINDS),
        default="open",
        show_default=True,
        help="Open: unseen words are <unk>, which has the mass that smoothing leaves. Closed: they are impossible (n-gram "
        "models). Spelled: they are spelled and white space is predicted, so that every text has a probability.",
    ),
    click.option(
        "--min-count",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Words that occur less often become <unk>.",
    ),
    click.option("--vocab-size", type=click.IntRange(min=1), help="Keep only this many of the most frequent words."),
    click.option("--words", type=click.Path(), metavar="FILE", help="File with the vocabulary, one word per line."),
    click.option(
        "--reserved",
        type=click.Choice(RESERVED_POLICIES),
        default="refuse",
        show_default=True,
        help="A <unk>, <s> or </s> in the text: stop, read it as an ordinary word, or read <unk> as the unknown word.",
    ),
    click.option(
        "--eos/--no-eos",
        default=True,
        help="Count and score the end of each line as a token </s>; without it, line ends are not scored.",
    ),
)
_SMOOTHING = (
    click.option(
        "--interpolate/--back-off",
        default=True,
        help="Mix lower orders in everywhere, or only back off to them (good-turing always does).",
    ),
    click.option(
        "--discount",
        type=CommaList(float, "0.5,0.7"),
        help="absolute-discounting: one for all orders, or one for each.  [default: estimated]",
    ),
    click.option("--k", type=Number(), help="lidstone: the amount added to each count."),
)
_SIZE = (
    click.option(
        "--order",
        type=click.IntRange(1, 64),
        default=3,
        show_default=False,
        help="Length of the longest n-grams; ffnn: of the context, plus one.  [default: 3; ffnn: 5]",
    ),
    click.option(
        "--context",
        type=click.Choice(NGRAM_CONTEXTS),
        default="sentence",
        show_default=False,
        help="Each line is a context of its own, or the whole text is one.  [default: sentence; neural: stream]",
    ),
    click.option(
        "--cutoffs",
        type=CommaList(int, "0,0,1"),
        default=(),
        help="Drop n-grams of order 1, 2, ... that occur at most this often, e.g. 0,0,1; the last is for all higher orders.",
    ),
    click.option("--prune", type=Number(), metavar="THRESHOLD", help="Entropy pruning (Stolcke 1998), e.g. 1e-8."),
)


@click.command(cls=Command, epilog=_KINDS)
@click.argument("kind", type=_Kind([*SMOOTHING_KINDS, *NEURAL_KINDS]), metavar="KIND")
@click.argument("texts", nargs=-1, type=click.Path(allow_dash=True))
@settings("files", TrainingFiles, "Output", *_OUTPUT)
@reading_settings()
@settings("shared", RunSettings, "Vocabulary", *_VOCABULARY)
@settings("smoothing", _Smoothing, "Smoothing", *_SMOOTHING)
@settings("changes", SettingsChanges, "Size", *_SIZE)
@settings("form", KenlmForm, "KenLM files", *KENLM)
@settings("resources", _Resources, "Training beyond memory", *_BEYOND_MEMORY)
@under("Neural models", *RUN)
@under("Training of neural models", *RECIPE)
@under("Size of neural models", *SIZES)
@threads_option
def train(
    kind: str,
    files: TrainingFiles,
    reading: ReadingOptions,
    shared: RunSettings,
    smoothing: _Smoothing,
    changes: SettingsChanges,
    form: KenlmForm,
    resources: _Resources,
) -> None:
    """Train a language model on text.

    KIND is the smoothing of an n-gram model, or a neural model: ffnn, rnn, lstm, gru or transformer. TEXTS are files, globs
    or - (standard input, also without TEXTS): one sentence per line, plain or compressed, or records (--format).

    \b
    lmgauge train modified-kneser-ney --order 5 train.txt -o kn5/
    zcat big.txt.gz | lmgauge train kneser-ney --order 3 -o kn3.arpa
    lmgauge train modified-kneser-ney --order 5 huge.txt.zst -o kn5/ --memory 2G
    lmgauge train modified-kneser-ney train.txt -o lm.binary --trie --quantize 8,8
    lmgauge train lstm train.txt --valid valid.txt -o lstm/
    """
    if kind in NEURAL_KINDS:
        refuse_other_kinds(
            kind, ngram_only=(*_Smoothing.__annotations__, *names_of(KenlmForm), *names_of(_Resources), "words")
        )
        train_network(kind, files, reading, shared, changes)
        return
    refuse_given(NEURAL_ONLY, f"is for neural models; {kind} does not take it")
    from lmgauge.api.train import train as run
    from lmgauge.models.ngram.partitioned.limits import TrainingResources
    from lmgauge.models.ngram.settings import ADDITIVE, NgramTrainingSettings
    from lmgauge.models.ngram.training import read_word_list
    from lmgauge.models.spelling.storage import refuse_file
    from lmgauge.report.progress import progress

    if kind in ADDITIVE:
        refuse_given(("interpolate",), f"is for smoothings that use lower orders; {kind} does not")
    if kind == "good-turing" and smoothing["interpolate"]:
        refuse_given(("interpolate",), "cannot be combined with good-turing, which always backs off")
    spelled = shared.vocabulary == "spelled"
    if spelled:
        refuse_file(files.output)
    form.check_name(files.output)
    whole = TrainingResources(files.output, **resources, resume=shared.resume)
    output = vars(whole) if form == KenlmForm() else {}
    corpus = read_texts(files.texts, reading)
    refuse_replacing({"-o": files.output}, [*(source.path for source in corpus.sources), *filter(None, [files.words])])
    with progress() as listener:
        model = run(  # type: ignore[call-overload,misc]  # click has checked the choices
            kind,
            corpus,
            words=None if files.words is None else read_word_list(files.words),
            tokenizer=shared.tokenizer,
            vocabulary=shared.vocabulary,
            min_count=shared.min_count,
            vocab_size=shared.vocab_size,
            reserved=shared.reserved,
            threads=shared.threads,
            progress=listener,
            order=changes["order"] or NgramTrainingSettings.order,
            context=changes["context"] or NgramTrainingSettings.context,
            **smoothing,
            **output,
        )
        if not output:
            listener(f"saving {files.output}")
            cast("NgramModel", model).save(files.output, trie=form.trie, quantize=form.quantize, array=form.array)
    _print_result(kind, files, model, spelled=spelled)


def _print_result(kind: str, files: TrainingFiles, model: Any, *, spelled: bool) -> None:
    """Print what was trained: an n-gram model, spelled or not."""
    from lmgauge.json_text import to_json
    from lmgauge.report.spelling import learned

    if files.as_json:
        click.echo(to_json(model.to_dict() | {"path": files.output, "fingerprint": model.fingerprint}))
        return
    inner: NgramModel = model.inner if spelled else model
    types = ", ".join(f"{n:,}" for n in inner.types)
    events = inner.record.training["events"]
    say(
        f"{files.output}: {kind}, order {inner.order}, trained on {events:,} events; n-grams of order 1, 2, ...: {types}",
        err=True,
    )
    for line in learned(model.learned()) if spelled else ():
        say(line, err=True)
    for note in inner.record.notes:
        say(f"note: {note}", err=True)
    sys.stderr.flush()
