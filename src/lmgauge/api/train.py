"""`lmgauge.train` and `lmgauge.train_neural`: the same words and defaults as `lmgauge train`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, overload

from lmgauge.api.inputs import PathLike, Text, corpus_of
from lmgauge.api.train_within import train_or_within, train_spelled
from lmgauge.choices import NgramContext, NormalizerName, ReservedPolicy, SmoothingKind, VocabularyKind
from lmgauge.errors import MissingExtraError, UsageError
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.partitioned.limits import TrainingResources
from lmgauge.models.ngram.reading import Progress
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.training.presets import preset_settings
from lmgauge.models.training.settings import NEURAL_KINDS, NeuralKind, RunSettings, SettingsChanges
from lmgauge.text.tokenizers import with_normalizer
from lmgauge.text.tokens import Tokenizer

if TYPE_CHECKING:
    from lmgauge.models.spelling.model import SpelledModel
    from lmgauge.models.training.loop import Watch
    from lmgauge.models.training.run import NeuralTraining


def _refuse_neural(kind: str) -> None:
    if str(kind) in NEURAL_KINDS:
        raise UsageError(f"{kind} is a neural model; train it with train_neural")


def _numbers(discount: float | Sequence[float] | None) -> float | tuple[float, ...] | None:
    return tuple(discount) if isinstance(discount, Sequence) else discount


class NgramKeywords(TypedDict, total=False):
    """What `train` takes by name, besides the kind of vocabulary."""

    order: int
    tokenizer: str | Tokenizer
    normalizer: NormalizerName | None
    min_count: int
    vocab_size: int | None
    words: Sequence[str] | None
    reserved: ReservedPolicy
    context: NgramContext
    eos: bool
    interpolate: bool
    discount: float | Sequence[float] | None
    k: float | None
    cutoffs: Sequence[int]
    prune: float | None
    output: PathLike | None
    memory: str | int | None
    temp: PathLike | None
    resume: bool
    workers: int | None
    ray: str | None
    threads: int | None
    progress: Progress


@overload
def train(
    kind: SmoothingKind, texts: Text, *, vocabulary: Literal["open", "closed"] = "open", **others: Unpack[NgramKeywords]
) -> NgramModel: ...
@overload
def train(
    kind: SmoothingKind, texts: Text, *, vocabulary: Literal["spelled"], **others: Unpack[NgramKeywords]
) -> SpelledModel: ...
@overload
def train(
    kind: SmoothingKind, texts: Text, *, vocabulary: VocabularyKind, **others: Unpack[NgramKeywords]
) -> NgramModel | SpelledModel: ...
def train(
    kind: SmoothingKind,
    texts: Text,
    *,
    order: int = 3,
    tokenizer: str | Tokenizer = "whitespace",
    normalizer: NormalizerName | None = None,
    vocabulary: VocabularyKind = "open",
    min_count: int = 1,
    vocab_size: int | None = None,
    words: Sequence[str] | None = None,
    reserved: ReservedPolicy = "refuse",
    context: NgramContext = "sentence",
    eos: bool = True,
    interpolate: bool = True,
    discount: float | Sequence[float] | None = None,
    k: float | None = None,
    cutoffs: Sequence[int] = (),
    prune: float | None = None,
    output: PathLike | None = None,
    memory: str | int | None = None,
    temp: PathLike | None = None,
    resume: bool = False,
    workers: int | None = None,
    ray: str | None = None,
    threads: int | None = None,
    progress: Progress = lambda stage: None,
) -> NgramModel | SpelledModel:
    """Train an n-gram model.

    Args:
        kind: the smoothing: mle, laplace, lidstone, witten-bell, absolute-discounting, kneser-ney, modified-kneser-ney or
            good-turing.
        texts: a path, several, or a `Corpus`; each line is a sentence.
        order: length of the longest n-grams, in tokens, from 1.
        tokenizer: whitespace, treebank, character, byte, icu, icu:<locale>, or a path: tokenizer.json or .model file.
        normalizer: what is done to the text before that: ccnet; None: nothing.
        vocabulary: of unseen words. open: they are `<unk>`; closed: impossible; spelled: as in `lmgauge.SpelledModel`.
        min_count: words that occur less often become `<unk>`.
        vocab_size: only this many of the most frequent words stay.
        words: the vocabulary, as a list of words.
        reserved: a `<unk>`, `<s>` or `</s>` in the text is refused, escaped (an ordinary word), or unk (`<unk>` alone).
        context: sentence: each line starts anew; stream: one running context.
        eos: False leaves `</s>` out: the ends of lines are neither counted nor scored, as in the examples of textbooks.
        interpolate: False backs off to lower orders instead of mixing them in (good-turing always backs off).
        discount: absolute-discounting: one for all orders, or one for each, between 0 and 1; None: estimated.
        k: lidstone: the amount added to each count.
        cutoffs: n-grams of order i that occur at most cutoffs[i - 1] times are dropped; the last is for all higher orders.
        prune: threshold of entropy pruning (relative change of perplexity).
        output: where to save the model, as `NgramModel.save` does; with `memory`, `workers` or `ray` a folder, and needed.
        memory: stay within this much, as "2G" (of 1024^3 bytes) or a number of bytes: the same model, made in parts on disk.
            None: in memory where it fits; else, given an `output`, within 80 % of what is free, as "lmgauge" logs.
        temp: existing folder for those parts, in `OUTPUT.parts`; None: beside the output.
        resume: continue from the last finished stage of this training, if it was stopped.
        workers: how many processes share the work within memory; None: the threads of this one.
        ray: address of a Ray cluster that does the work, or "local".
        threads: how many threads share the work; the model does not depend on it.
        progress: called with a few words when a stage begins.

    Returns:
        The model, memory-mapped if made in parts; `model.record.notes` says where discounts could not be estimated.

    Raises:
        InputError: the text cannot be used, or something is in the way of the output.
        UsageError: options are out of range or contradict each other, or memory is too small.

    Example:
        >>> import lmgauge
        >>> lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2).types
        [4, 4]
    """
    _refuse_neural(kind)
    settings = NgramTrainingSettings(
        kind, order=order, tokenizer=with_normalizer(tokenizer, normalizer), words=words, reserved=reserved, eos=eos, k=k,
        vocabulary="open" if vocabulary == "spelled" else vocabulary, min_count=min_count, vocab_size=vocab_size,
        context=context, interpolate=interpolate, cutoffs=tuple(cutoffs), prune=prune, discount=_numbers(discount),
    )  # fmt: skip
    corpus, resources = corpus_of(texts), TrainingResources(output, memory, temp, resume, workers, ray)
    how = train_spelled if vocabulary == "spelled" else train_or_within
    return how(settings, corpus.without_given("training"), resources, threads=threads, progress=progress)


def train_neural(
    kind: NeuralKind,
    texts: Text,
    *,
    output: PathLike,
    valid: Text | None = None,
    preset: str = "small",
    tokenizer: str | Tokenizer = "whitespace",
    vocabulary: Literal["open", "spelled"] = "open",
    min_count: int = 1,
    vocab_size: int | None = None,
    reserved: ReservedPolicy = "refuse",
    resume: bool = False,
    checkpoint_every: int = 500,
    device: str | None = None,
    threads: int | None = None,
    tensorboard: PathLike | None = None,
    progress: Progress = lambda stage: None,
    watch: Watch = lambda event: None,
    **changes: Unpack[SettingsChanges],
) -> NeuralTraining:
    """Train a neural model and write it as an ordinary checkpoint, which `load_model` and others read.

    Args:
        kind: ffnn, rnn, lstm, gru or transformer.
        texts: a path, several, or a `Corpus`; each line is a sentence.
        output: the model's folder.
        valid: the validation text; the epoch that predicts it best is kept.
        preset: small, medium or large: sizes and recipe of a paper.
        tokenizer: as `lmgauge.train`, or bpe:N or unigram:N to train N subwords on the text.
        vocabulary: open: unseen words are `<unk>`, whose probability the network learns from those that `min_count` leaves
            out; spelled: they are spelled then, and white space is predicted, so that every text has a probability. Not for
            subwords and bytes, which give every text one as they are.
        min_count: tokens that occur less often become `<unk>`.
        vocab_size: only this number of the most frequent tokens stays.
        reserved: a `<unk>`, `<s>` or `</s>` in the text is refused, escaped (an ordinary word), or unk (`<unk>` alone).
        resume: resume a run that was stopped; begin where there is none.
        checkpoint_every: updates from one checkpoint to the next, besides those after each epoch; 0 for none.
        device: such as cpu or cuda; a GPU where there is one. Of several processes each has its own GPU.
        threads: of the processor; if None all cores, but one for a recurrent model that is narrow.
        tensorboard: folder to write figures for TensorBoard to.
        progress: is called with a few words when a stage begins.
        watch: is called with where the run is, every few updates and after each epoch.
        changes: what is to differ from the preset, such as `hidden_size=400, epochs=20`: the fields of
            `NeuralTrainingSettings`; None leaves the preset's value.

    Returns:
        What came of the run: its folder, settings, perplexity by epoch, notes.

    Raises:
        InputError: a text cannot be used, or something is in the way of the output.
        MissingExtraError: the libraries are not installed.
        UsageError: options out of range or contradicting each other.

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus
        >>> text = Corpus.from_strings(["a b a", "b a b"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trained = train_neural("lstm", text, output=f"{folder}/lstm", hidden_size=8, epochs=2, batch_size=1)
        >>> trained.path.name, trained.epochs, trained.vocabulary_size
        ('lstm', 2, 5)
    """
    settings = preset_settings(kind, preset, **changes)
    run = RunSettings(
        tokenizer=tokenizer, vocabulary=vocabulary, min_count=min_count, vocab_size=vocab_size, reserved=reserved,
        resume=resume, checkpoint_every=checkpoint_every, device=device, threads=threads, tensorboard=tensorboard,
    )  # fmt: skip
    try:
        from lmgauge.models.training.run import run_training
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), extra="neural") from error
    held_out = None if valid is None else corpus_of(valid).without_given("training")
    corpus = corpus_of(texts).without_given("training")
    return run_training(settings, run, corpus, valid=held_out, output=output, progress=progress, watch=watch)
