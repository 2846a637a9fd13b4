"""`lmgauge.train`, `train_neural` and `spell`: models, and how words are spelled, learned from text; and its counts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, overload

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, loaded, refuse_field, refuse_output, saved
from lmgauge.base.choices import NgramContext, SmoothingKind, VocabularyKind
from lmgauge.base.declaration import chosen, verb
from lmgauge.base.errors import MissingExtraError, UsageError
from lmgauge.base.option_numbers import Bounds, Count
from lmgauge.base.progress import listener, listening
from lmgauge.models.model_settings import VocabularySettings
from lmgauge.models.ngram.settings import MAX_ORDER, NgramTrainingSettings
from lmgauge.models.training.settings import NEURAL_KINDS, NeuralKind, NeuralTrainingSettings, RunSettings
from lmgauge.settings import KenlmForm, ReadingOptions, ScoringOptions, SpellerSettings, TrainingResources

if TYPE_CHECKING:
    from lmgauge import NgramModel
    from lmgauge.models.combined.spelling.model import SpelledModel
    from lmgauge.models.ngram.count_files import NgramCounts
    from lmgauge.models.ngram.reading import Progress
    from lmgauge.models.training.loop import Watch
    from lmgauge.models.training.run import NeuralTraining
    from lmgauge.text.tokens import Tokenizer


@overload
def train(
    kind: SmoothingKind, texts: Text | None = None, *, vocabulary: Literal["open", "closed"] = "open", **options: Any
) -> NgramModel: ...
@overload
def train(kind: SmoothingKind, texts: Text, *, vocabulary: Literal["spelled"], **options: Any) -> SpelledModel: ...
@overload
def train(kind: SmoothingKind, texts: Text, *, vocabulary: VocabularyKind, **options: Any) -> NgramModel | SpelledModel: ...
@verb
def train(
    kind: SmoothingKind | NeuralKind,
    texts: Text | None = None,
    *,
    output: PathLike | None = None,
    counts: PathLike | None = None,
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
    which Python has `train_neural`. Texts are files, globs or standard input: one sentence per line, plain or compressed, or
    records.

    Args:
        kind: the smoothing.
        texts: a path, several, or a `Corpus`; each line is a sentence.
        output: folder to write; an ARPA file or one of KenLM by its ending (.arpa, .arpa.gz, .binary, .klm). With
            `memory` or `workers` it must be a folder.
        counts: train from counts of n-grams in place of a text: a file of `lmgauge counts` or SRILM, or a folder in
            Google's form.
        training: all decisions about the model.
        reading: how the texts are read.
        form: how a binary file of KenLM is laid out.
        resources: what training may take, for large texts.
        threads: how many; all cores if not given (one to train narrow recurrent models). Does not change n-gram models.
        progress: called with a few words when a stage begins.
        fields: those of `training`, `reading`, `form` and `resources`, by name: `order=5, min_count=2, memory="2G"`.

    Returns:
        The model, memory-mapped if made in parts; `model.record.notes` says where discounts could not be estimated.

    Raises:
        InputError: the text or the counts cannot be used, or something is in the way of the output.
        UsageError: options are out of range or contradict each other, or memory is too small.

    Shell:
        lmgauge train modified-kneser-ney --order 5 train.txt -o kn5/
        lmgauge train lstm train.txt --valid valid.txt -o lstm/
        zcat big.txt.gz | lmgauge train kneser-ney --order 3 -o kn3.arpa
        lmgauge train modified-kneser-ney huge.txt.zst -o kn/ --memory 2G
        lmgauge train kneser-ney train.txt -o lm.binary --trie --quantize 8,8
        lmgauge train witten-bell --counts counts.tsv.gz -o wb/

    Example:
        >>> import lmgauge
        >>> lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2).types
        [4, 4]
    """
    from lmgauge.models.combined.spelling.learn import train_model
    from lmgauge.models.ngram.count_files import train_from_counts

    if kind in NEURAL_KINDS:
        raise UsageError(f"{kind} is a neural model; train it with train_neural")
    assert training is not None  # it has the kind
    form.check_name("" if output is None else output)
    if counts is not None:
        if texts is not None or chosen(reading) or resources.asked or training.vocabulary == "spelled":
            what = "texts, how they are read, memory, workers and a spelled vocabulary"
            raise UsageError(f"counts are read in place of a text, and in memory: leave out {what}")
        refuse_output(output, [counts])
        with listening(progress or listener()):
            model = train_from_counts(training, os.fspath(counts))
        if output is not None:
            model.save(os.fspath(output), **vars(form))
        return model
    if texts is None:
        raise UsageError("there is nothing to train on: name texts, or counts of n-grams (counts)")
    corpus = corpus_of(texts, reading).without_given("training")
    return train_model(training, corpus, resources, form, threads=threads, progress=progress or listener())


@verb
def count_ngrams(
    texts: Text,
    *,
    output: PathLike,
    order: Annotated[int, Bounds(1, MAX_ORDER)] = 3,
    google: bool = False,
    context: NgramContext = "sentence",
    eos: bool = True,
    tokens: VocabularySettings = VocabularySettings(),
    reading: ReadingOptions = ReadingOptions(),
    resources: TrainingResources = TrainingResources(),
    threads: Count | None = None,
    **fields: Any,
) -> NgramCounts:
    """Count the n-grams of a text, as training does: `lmgauge counts`.

    A line has the words of an n-gram, a tab and its count, as `ngram-count -write` of SRILM has it: n-grams of all orders,
    with <s> and </s>, words in the order in which they first occur. `LC_ALL=C sort` makes of it SRILM's -sort, and
    `lmgauge train --counts` the model of the text. Words that are left out (min-count, vocab-size) are counted as <unk>.

    Args:
        texts: a path, several, or a `Corpus`; each line is a sentence.
        output: file to write, packed by its ending (.gz, .zst, .xz, .bz2); - is standard output.
        order: length of the longest n-grams.
        google: write a folder in Google's form: 1gms/vocab.gz, 2gms/2gm-0000.gz, ..., sorted.
        context: each line is its own context (sentence), or the whole text is one (stream).
        eos: count the end of each line as </s>.
        tokens: what the words are.
        reading: how the texts are read.
        resources: what counting may take, for large texts.
        threads: how many; all cores if not given. Does not change results.
        fields: those of `tokens`, `reading` and `resources`, by name: `min_count=2, memory="2G"`.

    Returns:
        How many n-grams there are of each order.

    Raises:
        InputError: the text cannot be used, or something is in the way of the output.
        UsageError: options are out of range or contradict each other, or memory is too small.

    Shell:
        lmgauge counts train.txt --order 5 -o counts.tsv.zst
        zcat big.txt.gz | lmgauge counts --google -o counts/

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from lmgauge import Corpus
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     counts = count_ngrams(Corpus.from_strings(["a b a"]), order=2, output=f"{folder}/counts.tsv")
        ...     print(Path(folder, "counts.tsv").read_text().splitlines()[4:6], counts.ngrams)
        ['<s> a\\t1', 'a </s>\\t1'] (4, 4)
    """
    from pathlib import Path

    from lmgauge.models.ngram.count_files import write_counts
    from lmgauge.models.ngram.training import train_ngram, train_within

    corpus = corpus_of(texts, reading).without_given("counting")
    if tokens.vocabulary != "open" or (google and str(output) == "-"):
        raise UsageError("counts know no other vocabulary than an open one, and Google's form is a folder: name it with -o")
    if os.fspath(output).lower().endswith((".zip", ".7z")):
        raise UsageError(f"-o {output}: counts are packed as .gz, .zst, .xz or .bz2: name the file so")
    refuse_output(output, [], corpus)
    settings = NgramTrainingSettings("mle", order=order, context=context, eos=eos, **vars(tokens))
    how: dict[str, Any] = {"threads": threads, "progress": listener()}
    how["finish"] = lambda engine, settings, text, _, **plan: write_counts(
        engine, settings, text, Path(output), google, **plan
    )
    if not resources.asked:
        return cast("NgramCounts", train_ngram(settings, corpus, **how))
    return cast("NgramCounts", train_within(settings, corpus, Path(output), resources.limits(threads=threads), **how))


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
    progress: Progress | None = None,
    watch: Watch | None = None,
    **fields: Any,
) -> NeuralTraining:
    """Train a neural model and write it as an ordinary checkpoint, which `load_model` and others read.

    Args:
        kind: ffnn, rnn, lstm, gru or transformer.
        texts: a path, several, or a `Corpus`; each line is a sentence.
        output: the model's folder.
        valid: validation text; the best epoch on it is kept.
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
    progress, watch = progress or listener(), watch or (lambda event: None)
    return run_training(network, run, corpus, valid=held_out, output=output, progress=progress, watch=watch)


@verb
def spell(
    model: Model,
    train: Text,
    *,
    output: PathLike | None = None,
    replace: bool = False,
    tokenizer: str | Tokenizer | None = None,
    threads: Count | None = None,
    speller: SpellerSettings = SpellerSettings(),
    reading: ReadingOptions = ReadingOptions(),
    **fields: Any,
) -> SpelledModel:
    """Give a model a speller, so that it gives every text a probability: `lmgauge spell`.

    `<unk>` keeps its probability, and each unseen word is then spelled, character by character; the white space before
    each word is predicted too. Bits per byte are then exact. The model itself does not change. Source: Mielke & Eisner
    (2019), "Spell once, summon anywhere".

    Args:
        model: a model of words or characters that predicts the ends of lines and has an `<unk>`, or its path: an n-gram
            model, a network, a mixture of such, an ARPA file or a binary of KenLM.
        train: text to learn from, preferably the training text of the model; a path, several, or from Python a
            `Corpus`. Only its words and its white space count.
        output: folder to write; the model's own folder gets the speller added (the command's default).
        replace: replace the model's own speller.
        tokenizer: how text is cut into words; of an ARPA or KenLM file, as in training, whitespace if not given.
        threads: how many; all cores if not given. Does not change results.
        speller: how the spelling is learned.
        reading: how the text is read.
        fields: those of `speller` and `reading`, by name.

    Returns:
        The spelled model.

    Raises:
        InputError: the text cannot be used, or something is in the way of the output.
        ModelFileError: the model cannot be loaded.
        OutputError: the folder cannot be written; nothing is left behind.
        UsageError: the model cannot be spelled, or is spelled already; an option is out of range.

    Shell:
        lmgauge spell kn5/ --train train.txt
        lmgauge spell theirs.arpa --train train.txt -o theirs/

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a cat ran"])
        >>> model = lmgauge.train("witten-bell", text, order=2)
        >>> spelled = lmgauge.spell(model, text)
        >>> lmgauge.evaluate(model, texts=["the bird  sat"]).bits_per_byte_is_bound
        True
        >>> lmgauge.evaluate(spelled, texts=["the bird  sat"]).bits_per_byte_is_bound
        False
    """
    from pathlib import Path

    from lmgauge.base.files import refuse_replacing
    from lmgauge.base.progress import say_progress
    from lmgauge.models.combined.spelling.learn import learn_spelling
    from lmgauge.models.combined.spelling.model import SpelledModel
    from lmgauge.models.combined.spelling.storage import add_spelling, refuse_file
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.protocol import SPELLING_FOLDER
    from lmgauge.models.registry import open_unspelled

    corpus = corpus_of(train, reading).without_given("training")
    here = output is not None and isinstance(model, PATHS) and os.path.realpath(model) == os.path.realpath(output)
    if output is not None and not here:
        refuse_file(output)
        refuse_output(output, [model], corpus)
    elif output is not None and os.path.isdir(output):
        refuse_replacing({"-o": Path(output, SPELLING_FOLDER)}, [source.path for source in corpus.sources])
    elif output is not None and os.path.exists(output):
        raise UsageError(f"{output}: is a file, which has no room for a speller; name a folder to write with -o")
    if replace and isinstance(model, PATHS) and os.path.lexists(Path(model, SPELLING_FOLDER)):
        model = open_unspelled(model)  # whatever state the speller is in
    base = loaded(model, ScoringOptions(tokenizer=tokenizer))
    if isinstance(base, SpelledModel):
        if not replace:
            raise UsageError(f"{base.label}: its unseen words are spelled already; --replace learns a new speller")
        base = base.inner
    if output is not None and not here and isinstance(base, NgramModel):
        base = base.listed()  # a probing file of KenLM cannot be: it says what to do
    spelled = learn_spelling(base, corpus, speller, threads=threads, progress=say_progress)
    if output is None or not here:
        return saved(spelled, output)  # type: ignore[no-any-return]
    say_progress(f"saving {os.fspath(output)}")
    add_spelling(spelled, Path(output))
    return spelled
