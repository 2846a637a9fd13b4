"""Learns from a training text how unseen words are spelled and what stands between words.

A speller learns from all words of the text, each once. That rare words alone are the better guess (Good 1953) did not hold:
on ten pairs of texts in seven languages, those that occur once cost 0.1 to 2.5 bits more per unseen word, and words as often
as they occur up to 1.8 bits more. Order 8 is within 0.12 bits of the best order everywhere, and modified Kneser-Ney is the
best smoothing everywhere. Bytes in place of characters differ by 0.1 bits in alphabets; they are 0.5 to 0.8 bits better in
Chinese and Japanese and 0.3 bits worse in Korean. `benchmarks/speller_choice.py` prints the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import SmoothingKind
from lmgauge.base.errors import InputError
from lmgauge.base.files import refuse_replacing
from lmgauge.models.combined.spelling.speller import Speller, Spelling, words_of
from lmgauge.models.combined.spelling.storage import add_spelling, refuse_file, writing_around
from lmgauge.models.combined.spelling.whitespace_model import SeparatorCounts, SeparatorModel, divided_by_white_space
from lmgauge.models.custom import rows_of_block
from lmgauge.models.model_settings import SpellerSettings
from lmgauge.models.ngram.kenlm.form import KenlmForm
from lmgauge.models.ngram.limits import TrainingResources
from lmgauge.models.ngram.model import NgramModel, load_ngram_model
from lmgauge.models.ngram.reading import Progress
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.storage import is_ngram_folder
from lmgauge.models.ngram.training import train_ngram, train_or_within
from lmgauge.models.protocol import LanguageModel
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import encode
from lmgauge.text.reading_options import ReadingOptions
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, SPECIAL_TOKENS, Vocabulary, VocabularyBuilder

if TYPE_CHECKING:
    from lmgauge.models.combined.spelling.model import SpelledModel

_WORDS_AT_A_TIME = 1 << 16
_SMOOTHING: SmoothingKind = "modified-kneser-ney"
_NO_WORDS = Vocabulary.from_tokens(())


def train_model(
    settings: NgramTrainingSettings,
    corpus: Corpus,
    resources: TrainingResources,
    form: KenlmForm | None = None,
    *,
    threads: int | None = None,
    progress: Progress = lambda stage: None,
    scratch: bool = False,
) -> NgramModel | SpelledModel:
    """Train as `train_or_within` does, and for a spelled vocabulary read the text once more, for how words are spelled."""
    how: dict[str, Any] = {"threads": threads, "progress": progress}
    if settings.vocabulary != "spelled":
        return train_or_within(settings, corpus, resources, form, scratch=scratch, **how)
    refuse_once(corpus)
    settings, output = replace(settings, vocabulary="open"), None if resources.output is None else Path(resources.output)
    if output is None or scratch:
        return learn_spelling(train_or_within(settings, corpus, resources, scratch=scratch, **how), corpus, **how)
    refuse_file(output)
    refuse_replacing({"-o": output}, [source.path for source in corpus.sources])
    with writing_around(output, is_ours=is_ngram_folder) as (folder, inside):
        inner = train_or_within(settings, corpus, resources, form, written=inside, **how)
        model = learn_spelling(inner, corpus, **how)
        add_spelling(model, folder)
    if inner.tables.mapped is None:
        return model
    return model.around(load_ngram_model(output, just_written=True))  # the mapped file has moved


def learn_spelling(
    model: LanguageModel,
    corpus: Corpus,
    settings: SpellerSettings = SpellerSettings(),
    *,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> SpelledModel:
    """Return a model around which unseen words are spelled, as a text has them."""
    # corpus: the text, best that which the model was trained on; it is read once more.
    from lmgauge.models.combined.spelling.model import SpelledModel, refuse_unspellable  # a plain training does without

    refuse_unspellable(model)
    spelling, separators = learn_parts(
        model.tokenizer, model.vocabulary, corpus, settings, threads=threads, progress=progress
    )
    if spelling is None:
        return SpelledModel(model, None, None)
    return SpelledModel(model, spelling.speller, separators, known_mass=spelling.known_mass)


def refuse_once(corpus: Corpus) -> None:
    """Refuse a text that cannot be read a second time, for its spelling."""
    corpus.refuse_once("a model whose unseen words are spelled reads its text twice")


def learn_parts(
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    corpus: Corpus,
    settings: SpellerSettings = SpellerSettings(),
    *,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> tuple[Spelling | None, SeparatorModel | None]:
    """Return what makes a model with this tokenizer and vocabulary spelled; neither for one of characters."""
    # corpus: the text; it is read once more.
    if tokenizer.unit == "character":
        return None, None
    progress("reading words and white space")
    words, counts, separators = _read(corpus, tokenizer)
    chosen = np.ones(len(words), bool) if settings.max_count is None else counts <= settings.max_count
    chosen_words = words.where(chosen if chosen.any() else ~chosen)
    characters = sorted(_characters(words) | _characters(words_of(vocabulary)))
    progress(f"learning to spell from {len(chosen_words):,} words")
    wanted = NgramTrainingSettings(
        _SMOOTHING, order=settings.order, tokenizer="character", words=characters, reserved="escape"
    )
    speller = Speller(train_ngram(wanted, _as_lines(chosen_words), threads=threads))
    return Spelling(speller, vocabulary), separators.finish()


def _characters(words: Segments) -> set[str]:
    return set(words.data[words.starts[0] : words.ends[-1]].tobytes().decode()) if len(words) else set()


def _as_lines(words: Segments) -> Corpus:
    ends = words.ends - words.starts[0]
    data = np.insert(words.data[words.starts[0] : words.ends[-1]], ends, ord("\n"))
    breaks = ends + np.arange(len(ends))
    lines = Segments(data, np.append(0, breaks[:-1] + 1), breaks, "the words", terminator=1)
    bounds = range(0, len(lines), _WORDS_AT_A_TIME)
    return Corpus([lambda _: (lines.part(i, min(i + _WORDS_AT_A_TIME, len(lines))) for i in bounds)], ReadingOptions())


def _read(corpus: Corpus, tokenizer: Tokenizer) -> tuple[Segments, NDArray[np.int64], SeparatorCounts]:
    # Distinct words of a text, how often each occurs, int64 [words], and its separators.
    builder = VocabularyBuilder()
    separators = SeparatorCounts(divided=divided_by_white_space(tokenizer))
    counts = np.zeros(0, np.int64)
    for block in corpus.without_given("training"):
        encoded = encode(block, tokenizer, builder, bos=True, reserved="escape", spans=True)
        here = np.bincount(encoded.ids, minlength=builder.size)
        here[: len(counts)] += counts
        counts = here
        events = int(np.count_nonzero(encoded.ids != BOS))
        separators.add(block, rows_of_block(block, encoded, _NO_WORDS, np.zeros(events)))
    vocabulary = builder.finish()
    words = words_of(vocabulary)
    if not len(words):
        raise InputError("the training text has no word: there is nothing to learn spelling from")
    return words, counts[len(SPECIAL_TOKENS) :], separators
