"""`lmgauge.train` and `lmgauge.train_neural`: `lmgauge train` with a smoothing, and with a neural kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from lmgauge.api.types import PathLike, Text
from lmgauge.choices import SmoothingKind, VocabularyKind
from lmgauge.declaration import verb
from lmgauge.errors import MissingExtraError, UsageError
from lmgauge.models.ngram.kenlm_form import KenlmForm
from lmgauge.models.ngram.partitioned.limits import TrainingResources
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.training.settings import NEURAL_KINDS, NeuralKind, NeuralTrainingSettings, RunSettings
from lmgauge.option_numbers import Count
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.ngram.reading import Progress
    from lmgauge.models.spelling.model import SpelledModel
    from lmgauge.models.training.loop import Watch
    from lmgauge.models.training.run import NeuralTraining


@overload
def train(
    kind: SmoothingKind, texts: Text, *, vocabulary: Literal["open", "closed"] = "open", **options: Any
) -> NgramModel: ...
@overload
def train(kind: SmoothingKind, texts: Text, *, vocabulary: Literal["spelled"], **options: Any) -> SpelledModel: ...
@overload
def train(kind: SmoothingKind, texts: Text, *, vocabulary: VocabularyKind, **options: Any) -> NgramModel | SpelledModel: ...
@verb
def train(
    kind: SmoothingKind | NeuralKind,
    texts: Text,
    *,
    output: PathLike | None = None,
    training: NgramTrainingSettings | None = None,
    reading: ReadingOptions = ReadingOptions(),
    form: KenlmForm = KenlmForm(),
    resources: TrainingResources = TrainingResources(),
    threads: Count | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> NgramModel | SpelledModel:
    """Train an n-gram model.

    The kind is the smoothing of an n-gram model: mle, laplace, lidstone, witten-bell, absolute-discounting, kneser-ney,
    modified-kneser-ney (the best general choice) or good-turing; or a neural model: ffnn, rnn, lstm, gru or transformer, for
    which `train_neural` is in Python. Texts are files, globs or standard input: one sentence per line, plain or compressed,
    or records.

    Args:
        kind: the smoothing.
        texts: a path, several, or a `Corpus`; each line is a sentence.
        output: folder to write; or by its ending (.arpa, .arpa.gz, .binary, .klm) an ARPA file or one of KenLM. With
            `memory`, `workers` or `ray` a folder, and needed.
        training: all decisions about the model.
        reading: how the texts are read.
        form: how a binary file of KenLM is laid out.
        resources: what training may take, for large texts.
        threads: how many; all cores if not given (one to train narrow recurrent models). No n-gram model depends on it.
        progress: called with a few words when a stage begins.
        fields: those of `training`, `reading`, `form` and `resources`, by name: `order=5, min_count=2, memory="2G"`.

    Returns:
        The model, memory-mapped if made in parts; `model.record.notes` says where discounts could not be estimated.

    Raises:
        InputError: the text cannot be used, or something is in the way of the output.
        UsageError: options are out of range or contradict each other, or memory is too small.

    Shell:
        lmgauge train modified-kneser-ney --order 5 train.txt -o kn5/
        lmgauge train lstm train.txt --valid valid.txt -o lstm/
        zcat big.txt.gz | lmgauge train kneser-ney --order 3 -o kn3.arpa
        lmgauge train modified-kneser-ney huge.txt.zst -o kn/ --memory 2G
        lmgauge train kneser-ney train.txt -o lm.binary --trie --quantize 8,8

    Example:
        >>> import lmgauge
        >>> lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2).types
        [4, 4]
    """
    from lmgauge.api.inputs import corpus_of
    from lmgauge.models.spelling.learn import train_model
    from lmgauge.progress import listener

    if kind in NEURAL_KINDS:
        raise UsageError(f"{kind} is a neural model; train it with train_neural")
    assert training is not None  # it has the kind
    form.check_name("" if output is None else output)
    corpus = corpus_of(texts, reading).without_given("training")
    return train_model(training, corpus, resources, form, threads=threads, progress=progress or listener())


@verb
def train_neural(
    kind: NeuralKind,
    texts: Text,
    *,
    output: PathLike,
    valid: Text | None = None,
    network: NeuralTrainingSettings | None = None,
    run: RunSettings = RunSettings(),
    reading: ReadingOptions = ReadingOptions(),
    progress: Progress = lambda stage: None,
    watch: Watch = lambda event: None,
    **fields: Any,
) -> NeuralTraining:
    """Train a neural model and write it as an ordinary checkpoint, which `load_model` and others read.

    Args:
        kind: ffnn, rnn, lstm, gru or transformer.
        texts: a path, several, or a `Corpus`; each line is a sentence.
        output: the model's folder.
        valid: validation text; the epoch that predicts it best is kept.
        network: size and recipe, by default of a preset.
        run: how the run goes.
        reading: how the texts are read.
        progress: is called with a few words when a stage begins.
        watch: is called with where the run is, every few updates and after each epoch.
        fields: those of `network`, `run` and `reading`, by name: `hidden_size=400, epochs=20`; what is None or left out is
            that of the preset.

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
    from lmgauge.api.inputs import corpus_of, refuse_field, refuse_output

    corpus = corpus_of(texts, reading, alone=False)
    held_out = None if valid is None else corpus_of(valid, reading, alone=False)
    refuse_field(reading, corpus, held_out)
    refuse_output(output, (), corpus, held_out, folder="a neural model")
    try:
        from lmgauge.models.training.run import run_training
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), extra="neural") from error
    assert network is not None  # it has the kind
    held_out = None if held_out is None else held_out.without_given("training")
    corpus = corpus.without_given("training")
    return run_training(network, run, corpus, valid=held_out, output=output, progress=progress, watch=watch)
