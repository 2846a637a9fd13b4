"""`lmgauge convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lmgauge.choices import ARPA_ENDINGS, KENLM_ENDINGS, RESERVED_POLICIES, NormalizerName
from lmgauge.cli.command import Command, settings
from lmgauge.cli.options import KENLM, normalizer_option
from lmgauge.cli.say import say
from lmgauge.files import refuse_replacing
from lmgauge.models.ngram.kenlm_form import KenlmForm

if TYPE_CHECKING:
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.protocol import LanguageModel


_FILES = (*ARPA_ENDINGS, *KENLM_ENDINGS)
_WHY = "only a folder with the same tokens has room for a speller, and `lmgauge spell` gives it one"


@click.command(cls=Command)
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
@click.option(
    "--tokenizer",
    default="whitespace",
    show_default=True,
    help="How text was cut into the words of the file: whitespace, treebank, character, byte, icu, a tokenizer.json or a "
    ".model.",
)
@normalizer_option
@click.option(
    "--reserved",
    type=click.Choice(RESERVED_POLICIES),
    help="A <unk> in texts scored later: stop, an ordinary word, or the unknown word.  [default for ARPA files: unk]",
)
@click.option(
    "--classes",
    type=click.Path(),
    help="A class-based model of SRILM: the file with the words of the classes; TARGET is a folder.",
)
@settings("form", KenlmForm, "KenLM files", *KENLM)
def convert(
    source: str,
    target: str,
    tokenizer: str,
    normalizer: NormalizerName | None,
    reserved: str | None,
    classes: str | None,
    form: KenlmForm,
) -> None:
    """Convert between ARPA files, binary files of KenLM, and model folders.

    A TARGET that ends in .arpa or .arpa.gz is written as an ARPA file, one that ends in .binary, .bin or .klm as a binary
    file of KenLM, any other as a folder. Of KenLM's own files, tries can be converted; probing tables only score.

    \b
    lmgauge convert kn5/ kn5.arpa.gz
    lmgauge convert theirs.arpa theirs/
    lmgauge convert class.arpa class/ --classes class.txt
    lmgauge convert kn5/ kn5.binary --trie --quantize 8,8 --array 22
    """
    from lmgauge.models.ngram.arpa_reader import read_arpa
    from lmgauge.models.ngram.kenlm_reader import is_kenlm, read_kenlm
    from lmgauge.models.registry import load_model
    from lmgauge.models.spelling.model import SpelledModel
    from lmgauge.report.progress import progress
    from lmgauge.text.tokenizers import make_tokenizer

    refuse_replacing({"TARGET": target}, [source] if classes is None else [source, classes])
    form.check_name(target)
    with progress() as listener:
        listener(f"reading {source}")
        path, loaded = Path(source), None
        if path.is_file():
            cut = make_tokenizer(tokenizer, normalizer)
            exact = target.endswith(KENLM_ENDINGS)
            model = read_kenlm(path, tokenizer=cut) if is_kenlm(path) else read_arpa(path, tokenizer=cut, logs=exact)
        else:
            loaded = load_model(path)
            model = _ngrams_of(loaded, source)
            if tokenizer != "whitespace" or normalizer is not None:
                inner = tokenizer if tokenizer != "whitespace" else model.tokenizer
                model = model.with_tokenizer(make_tokenizer(inner, normalizer))
        if reserved is not None:
            model = model.with_reserved(reserved)  # type: ignore[arg-type]
        listener(f"writing {target}")
        if classes is not None:
            _save_with_classes(model, classes, target, form)
            return
        if isinstance(loaded, SpelledModel):
            if model.tokenizer.fingerprint == loaded.tokenizer.fingerprint and not target.endswith(_FILES):
                loaded.around(model).save(target)
                return
            say(f"note: {source} spells unseen words; {target} does not: {_WHY}", err=True)
        model.listed().save(target, trie=form.trie, quantize=form.quantize, array=form.array)


def _ngrams_of(loaded: LanguageModel, source: str) -> NgramModel:
    """Return an n-gram model that was loaded from a folder, without its speller.

    Raises:
        UsageError: it is not an n-gram model.
    """
    from lmgauge.errors import UsageError
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.spelling.model import SpelledModel

    inner = loaded.inner if isinstance(loaded, SpelledModel) else loaded
    if not isinstance(inner, NgramModel):
        hint = "; lmgauge mix --static makes one of a mixture" if hasattr(inner, "components") else ""
        raise UsageError(f"{source}: only n-gram models can be converted{hint}")
    return inner


def _save_with_classes(model: NgramModel, classes: str, target: str, form: KenlmForm) -> None:
    """Write a class-based model.

    Raises:
        UsageError: the target is a file, which cannot hold the classes.
    """
    from lmgauge.errors import UsageError
    from lmgauge.models.classes.model import read_class_model

    if form != KenlmForm() or target.endswith(_FILES):
        raise UsageError(f"{target}: a class-based model is a folder, which holds the n-grams and the classes")
    read_class_model(model, classes).save(target)
