"""`lmgauge.spell`: a model whose unseen words are spelled, so that every text has a probability."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, loaded
from lmgauge.errors import UsageError
from lmgauge.files import refuse_replacing
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.protocol import SPELLING_FOLDER, LanguageModel
from lmgauge.models.registry import open_unspelled
from lmgauge.models.spelling.learn import MAX_COUNT, ORDER, SpellerSettings, learn_spelling
from lmgauge.models.spelling.model import SpelledModel
from lmgauge.models.spelling.storage import add_spelling, refuse_file
from lmgauge.progress import say_progress
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.text.tokens import Tokenizer


def spell(
    model: Model,
    train: Text,
    *,
    output: PathLike | None = None,
    order: int = ORDER,
    max_count: int | None = MAX_COUNT,
    replace: bool = False,
    tokenizer: str | Tokenizer | None = None,
    threads: int | None = None,
) -> SpelledModel:
    """Give a model a speller, so that it gives every text a probability: `lmgauge spell`.

    What a model of words calls `<unk>` keeps its probability, and the word is then spelled, character by character; the
    white space before each word is predicted too. Bits per byte are exact then. The model itself stays as it is. Source:
    Mielke & Eisner (2019), "Spell once, summon anywhere".

    Args:
        model: of words or characters that predicts the ends of lines and has an `<unk>`, or its path: an n-gram model, one
            of classes, a network, a mixture of such, an ARPA file or a binary of KenLM.
        train: the text to learn from, best that which the model was trained on: a path, several, or a `Corpus`. Only
            its words and its white space count.
        output: the folder to write; that of the model itself adds the speller to it. None writes nothing.
        order: characters of the speller's longest n-grams, 1 or more.
        max_count: it learns only from the words that occur at most this often in the text, 1 or more; None: from all.
        replace: whether a speller that the model has already is replaced.
        tokenizer: of an ARPA file or a binary of KenLM, which do not say it: as `lmgauge.train` takes it.
        threads: how many; nothing depends on it.

    Returns:
        The spelled model.

    Raises:
        InputError: the text cannot be used, or something is in the way of the output.
        ModelFileError: the model cannot be loaded.
        OutputError: the folder cannot be written; nothing is left behind.
        UsageError: the model cannot be spelled, or is spelled already; an option is out of range.

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
    settings, corpus = SpellerSettings(order, max_count), corpus_of(train).without_given("training")
    in_place = _in_place(model, output)
    if output is not None:
        _refuse_output(model, output, corpus, in_place=in_place)
    base = _unspelled(model, None if tokenizer is None else ScoringOptions(tokenizer=tokenizer), replace=replace)
    if output is not None and not in_place and isinstance(base, NgramModel):
        base = base.listed()  # a probing file of KenLM cannot be: it says what to do
    spelled = learn_spelling(base, corpus, settings, threads=threads, progress=say_progress)
    if output is not None:
        say_progress(f"saving {os.fspath(output)}")
        if in_place:
            add_spelling(spelled, Path(output))
        else:
            spelled.save(Path(output))
    return spelled


def _unspelled(model: Model, options: ScoringOptions | None, *, replace: bool) -> LanguageModel:
    """Return the model without the speller it may have.

    Raises:
        UsageError: it has one, which is not to be replaced.
    """
    if replace and isinstance(model, PATHS) and os.path.lexists(Path(model) / SPELLING_FOLDER):
        model = open_unspelled(model)  # whatever state the speller is in
    base = loaded(model, options if isinstance(model, PATHS) else None)
    if not isinstance(base, SpelledModel):
        return base
    if not replace:
        raise UsageError(f"{base.label}: its unseen words are spelled already; --replace learns their spelling anew")
    return base.inner


def _in_place(model: Model, output: PathLike | None) -> bool:
    """Return True if the output is the folder of the model."""
    if output is None or not isinstance(model, PATHS):
        return False
    return os.path.realpath(os.fspath(model)) == os.path.realpath(os.fspath(output))


def _refuse_output(model: Model, output: PathLike, corpus: Corpus, *, in_place: bool) -> None:
    """Refuse, before anything is read, an output that cannot be.

    Raises:
        UsageError: a file of another program, which has no room for a speller; a model that is not a folder,
            in place; or what would replace what is read.
    """
    read = [source.path for source in corpus.sources]
    if not in_place:
        refuse_file(output)
        refuse_replacing({"-o": output}, [*read, *([os.fspath(model)] if isinstance(model, PATHS) else [])])
    elif Path(output).is_dir():
        refuse_replacing({"-o": Path(output) / SPELLING_FOLDER}, read)
    elif Path(output).exists():
        raise UsageError(f"{os.fspath(output)}: is a file, which has no room for a speller; name a folder to write with -o")
