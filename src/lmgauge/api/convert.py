"""`convert` and `lmgauge.prune`: n-gram models in another form of file, or smaller."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, loaded, refuse_output, saved
from lmgauge.base.choices import ARPA_ENDINGS, KENLM_ENDINGS, NormalizerName, ReservedPolicy
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Count, Positive
from lmgauge.settings import KenlmForm, ReadingOptions

if TYPE_CHECKING:
    from lmgauge.results import PrunedModel

_LOGGER = logging.getLogger(__name__)
_FILES = (*ARPA_ENDINGS, *KENLM_ENDINGS)


@verb
def convert(
    source: PathLike,
    target: PathLike,
    *,
    tokenizer: str = "whitespace",
    normalizer: NormalizerName | None = None,
    reserved: ReservedPolicy | None = None,
    form: KenlmForm = KenlmForm(),
    **fields: Any,
) -> None:
    """Convert between ARPA files, binary files of KenLM, and model folders.

    A target that ends in .arpa or .arpa.gz is written as an ARPA file, one that ends in .binary, .bin or .klm as a binary
    file of KenLM, any other as a folder. Of KenLM's own files, only tries can be converted; probing tables can only score.

    Args:
        source: a model of any of these forms.
        target: the file or the folder to write.
        tokenizer: how text was cut into the words of the file: whitespace, treebank, character, byte, icu, a tokenizer.json
            or a .model.
        normalizer: normalization before that; ccnet: lower case, no accents, 0 for digits, ASCII punctuation.
        reserved: what a <unk> in texts scored later means; refuse: stop, escape: an ordinary word, unk: the unknown word,
            as for ARPA files if not given.
        form: how a binary file of KenLM is laid out.
        fields: those of `form`, by name.

    Raises:
        UsageError: the model is not an n-gram model, or the target cannot hold it.

    Shell:
        lmgauge convert kn5/ kn5.arpa.gz
        lmgauge convert theirs.arpa theirs/
        lmgauge convert kn5/ kn5.binary --trie --quantize 8,8
    """
    from pathlib import Path

    from lmgauge.base.files import refuse_replacing
    from lmgauge.base.progress import say_progress
    from lmgauge.models.combined.mixture.model import MixtureModel
    from lmgauge.models.combined.spelling.model import SpelledModel
    from lmgauge.models.ngram.arpa_reader import read_arpa
    from lmgauge.models.ngram.kenlm.reader import is_kenlm, read_kenlm
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.registry import load_model
    from lmgauge.text.tokenizers import make_tokenizer

    path, target, spelled = Path(source), os.fspath(target), None
    refuse_replacing({"TARGET": target}, [source])
    form.check_name(target)
    say_progress(f"reading {source}")
    if path.is_file():
        cut = make_tokenizer(tokenizer, normalizer)
        exact = target.endswith(KENLM_ENDINGS)
        model = read_kenlm(path, tokenizer=cut) if is_kenlm(path) else read_arpa(path, tokenizer=cut, logs=exact)
    else:
        loaded = load_model(path)
        spelled = loaded if isinstance(loaded, SpelledModel) else None
        inside = loaded if spelled is None else spelled.inner
        if not isinstance(inside, NgramModel):
            hint = "; lmgauge mix --static makes one of a mixture" if isinstance(inside, MixtureModel) else ""
            raise UsageError(f"{path}: only n-gram models can be converted{hint}")
        model = inside
        if tokenizer != "whitespace" or normalizer is not None:
            inner = tokenizer if tokenizer != "whitespace" else model.tokenizer
            model = model.with_tokenizer(make_tokenizer(inner, normalizer))
    if reserved is not None:
        model = model.with_reserved(reserved)
    say_progress(f"writing {target}")
    if spelled is not None:
        if model.tokenizer.fingerprint == spelled.tokenizer.fingerprint and not target.endswith(_FILES):
            spelled.around(model).save(target)
            return
        why = "only a folder with the same tokens has room for a speller, and `lmgauge spell` gives it one"
        _LOGGER.warning("%s spells unseen words; %s does not: %s", source, target, why)
    model.listed().save(target, **vars(form))


@verb
def prune(
    model: Model,
    *,
    threshold: Positive | None = None,
    to_size: Count | None = None,
    vocabulary: PathLike | Iterable[str] | None = None,
    renormalize: bool = False,
    text: Text | None = None,
    output: PathLike | None = None,
    threads: Count | None = None,
    reading: ReadingOptions = ReadingOptions(),
    **fields: Any,
) -> PrunedModel:
    """Drop the n-grams of a model that it needs least (entropy pruning, Stolcke 1998), or those of other words.

    By a threshold or to a size, unigrams stay, and so do n-grams that begin a longer one. The back-off weights are
    recomputed, so that every distribution sums to one.

    Of a vocabulary, n-grams with other words go, and those that stay keep their probabilities. The other words are <unk>
    then, which takes the mass that they had in each context; or, renormalized, the words that stay share it, as by SRILM's
    -limit-vocab -renorm.

    Args:
        model: an n-gram model that backs off, or the path of one: a model folder or an ARPA file.
        threshold: drop n-grams that lose less than this; the share by which perplexity rises, such as 1e-8.
        to_size: how many n-grams of all orders to keep; those with the largest losses: 250000, 500k or 1M.
        vocabulary: keep n-grams of these words alone: a file, one word per line, or from Python a list.
        renormalize: with a vocabulary: the words that stay share the mass of the others, which is <unk>'s if not given.
        text: measure perplexity before and after on it; a path, several, or from Python a `Corpus`.
        output: folder, ARPA or KenLM file to write; by its ending: .arpa, .arpa.gz, .binary.
        threads: how many; all cores if not given. Does not change results.
        reading: how the text is read.
        fields: those of `reading`, by name.

    Returns:
        The model in `model`, and what is lost.

    Raises:
        InputError: the text cannot be used.
        ModelFileError: the model cannot be loaded.
        UsageError: the model is not an n-gram model that backs off, not one of threshold, size and vocabulary, one out of
            range, or an output that would replace an input.

    Shell:
        lmgauge prune kn5/ --threshold 1e-8 -o small/
        lmgauge prune theirs.arpa --to-size 1M --text valid.txt -o small.arpa
        lmgauge prune kn5/ --vocabulary words.txt -o small.binary

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("witten-bell", Corpus.from_strings(["a b c", "a b", "b a c"]), order=2)
        >>> pruned = prune(model, to_size=9)
        >>> pruned.model.types, round(pruned.threshold, 4)
        ([5, 4], 0.0573)
    """
    from lmgauge.api.evaluate import evaluate
    from lmgauge.base.progress import say_progress
    from lmgauge.models.combined.spelling.model import parted
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.ngram.pruning import PrunedModel, limit_vocabulary, prune_model
    from lmgauge.models.ngram.settings import read_word_list

    if vocabulary is None and renormalize:
        raise UsageError("renormalize goes with --vocabulary; by a threshold or a size, what stays always sums to one")
    if [threshold, to_size, vocabulary].count(None) != 2:
        raise UsageError("prune by a threshold, such as 1e-8, to a number of n-grams, or to a vocabulary: give one of them")
    if vocabulary is not None and text is not None:
        raise UsageError("perplexities of different vocabularies cannot be compared: leave out text, and see bits per byte")
    corpus = None if text is None else corpus_of(text, reading)
    refuse_output(output, [model, *([vocabulary] if isinstance(vocabulary, PATHS) else [])], corpus)
    whole = loaded(model)
    inner, around = parted(whole)
    if not isinstance(inner, NgramModel):
        raise UsageError(f"{whole.label}: only n-gram models can be pruned")
    say_progress(f"pruning {sum(inner.types):,} n-grams")
    if vocabulary is None:
        pruned = prune_model(inner, threshold, size=to_size)
    else:
        words = read_word_list(os.fspath(vocabulary)) if isinstance(vocabulary, PATHS) else list(vocabulary)
        pruned = limit_vocabulary(inner, words, renormalize=renormalize)
    smaller = saved(around(pruned), output)
    measured: dict[str, Any] = {}
    if corpus is not None:
        before, after = (evaluate(one, corpus, threads=threads) for one in (whole, smaller))
        measured = {"perplexity_before": before.perplexity, "perplexity": after.perplexity, "events": after.events}
    measured |= {"threshold": pruned.settings.prune if vocabulary is None else None, "note": pruned.record.notes[-1]}
    return PrunedModel(smaller, ngrams_before=tuple(inner.types), ngrams=tuple(pruned.types), **measured)
