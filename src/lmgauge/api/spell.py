"""`lmgauge.spell`: a model whose unseen words are spelled, so that every text has a probability."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.api.types import PATHS, Model, PathLike, Text
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.spelling.settings import SpellerSettings
from lmgauge.option_numbers import Count
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.models.spelling.model import SpelledModel
    from lmgauge.text.tokens import Tokenizer


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

    What a model of words calls `<unk>` keeps its probability, and the word is then spelled, character by character; the
    white space before each word is predicted too. Bits per byte are exact then. The model itself stays as it is. Source:
    Mielke & Eisner (2019), "Spell once, summon anywhere".

    Args:
        model: of words or characters that predicts the ends of lines and has an `<unk>`, or its path: an n-gram model, one
            of classes, a network, a mixture of such, an ARPA file or a binary of KenLM.
        train: text to learn from, best that of the model; a path, several, or from Python a `Corpus`. Only its words and
            its white space count.
        output: folder to write; that of the model adds the speller to it, which the command does if none is given.
        replace: replace the model's own speller.
        tokenizer: how text is cut into words; of an ARPA or KenLM file, as in training, whitespace if not given.
        threads: how many; all cores if not given. Nothing depends on it.
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
    from lmgauge.api.inputs import corpus_of, loaded, refuse_output, saved
    from lmgauge.files import refuse_replacing
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.protocol import SPELLING_FOLDER
    from lmgauge.models.registry import open_unspelled
    from lmgauge.models.spelling.learn import learn_spelling
    from lmgauge.models.spelling.model import SpelledModel
    from lmgauge.models.spelling.storage import add_spelling, refuse_file
    from lmgauge.progress import say_progress

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
            raise UsageError(f"{base.label}: its unseen words are spelled already; --replace learns their spelling anew")
        base = base.inner
    if output is not None and not here and isinstance(base, NgramModel):
        base = base.listed()  # a probing file of KenLM cannot be: it says what to do
    spelled = learn_spelling(base, corpus, speller, threads=threads, progress=say_progress)
    if output is None or not here:
        return saved(spelled, output)  # type: ignore[no-any-return]
    say_progress(f"saving {os.fspath(output)}")
    add_spelling(spelled, Path(output))
    return spelled
