"""`lmgauge.word_surprisal`: what each word of a text costs a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import tee
from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import Model, PathLike, Text, corpus_of, followed, named_models, one_text
from lmgauge.choices import WORD_UNITS
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.words.frequency import WordFrequencies
from lmgauge.evaluation.words.regions import Regions
from lmgauge.evaluation.words.results import WordSurprisals
from lmgauge.evaluation.words.rows import WordRows, WordSettings
from lmgauge.models.network.options import ScoringOptions
from lmgauge.progress import say_progress
from lmgauge.text.reading_options import ReadingOptions
from lmgauge.text.tokenizers import make_tokenizer

if TYPE_CHECKING:
    from pandas import DataFrame

RegionRows = PathLike | Iterable[Mapping[str, Any]]


def word_settings(
    words: str, regions: RegionRows | DataFrame | None, train: Text | None, carried: tuple[str, ...] = ()
) -> WordSettings:
    """Return what is to be measured: words, of which some are counted in a training text, or regions."""
    # carried: names of the fields of the text that are carried along.
    kind = words.partition(":")[0]
    if kind not in WORD_UNITS or (words != kind and kind != "icu"):
        raise UsageError(f"words {words!r}: choose {', '.join(WORD_UNITS)}, or icu:<locale> (such as icu:ja)")
    if regions is not None and (words != WORD_UNITS[0] or train is not None):
        what = "words" if train is None else "train"
        raise UsageError(f"{what} is for words; regions are what their file says: leave one of them out")
    tokenizer = make_tokenizer(words)
    frequencies = None if train is None else WordFrequencies(corpus_of(train), tokenizer)
    return WordSettings(tokenizer, None if regions is None else Regions.of(regions), frequencies, carried)


@verb
def word_surprisal(
    model: Model,
    text: Text | None = None,
    *,
    texts: Iterable[str] | str | None = None,
    words: str = "whitespace",
    regions: RegionRows | DataFrame | None = None,
    train: Text | None = None,
    threads: int | None = None,
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> WordSurprisals:
    """Return the surprisal of each word, or region, of texts: `lmgauge eval --per-word`.

    The corrected figure is that of Pimentel & Meister (2024) and Oh & Schuler (2024).

    Args:
        model: a model, or the path of one.
        text: files: a path, several, or a `Corpus`; each segment (line, record) is a text.
        texts: strings in place of files, each a text.
        words: what words are: "whitespace" (ASCII), "treebank" ("do n't"), "icu" (Unicode's word boundaries), or "icu:ja"
            (any locale).
        regions: measure these in place of words: a .tsv, .csv or .jsonl file, rows, or a data frame, with `text_id`, and
            `start` and `end` (bytes) or `text`, and a name in `region`.
        train: a text to count words in, for the columns `log_frequency` and `unseen`.
        threads: how many; no number depends on it but for rounding.
        reading: how files are read.
        scoring: how the model scores; a network in memory takes what needs no loading.
        fields: those of both by name, as in `field="sentence", keep="condition", end="eos"`.

    Returns:
        A row a word: `surprisal`, `surprisal_corrected` and `entropy_before` in bits, and where the word is; `segment` is
        the number of its text, also where several have one id.

    Raises:
        InputError: a text or a region cannot be used, or a region cuts a token.
        MissingExtraError: icu4py is not installed.
        ModelFileError: the model cannot be loaded.
        UsageError: neither or both of `text` and `texts`; words of an unknown kind; regions with `words` or `train`.

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("witten-bell", Corpus.from_strings(["the cat sat", "the dog sat"]), order=2, tokenizer="character")
        >>> for row in word_surprisal(model, texts="the dog sat").to_rows():
        ...     print(row["word"], round(row["surprisal"], 3), round(row["surprisal_corrected"], 3))
        the 2.824 3.187
        dog 4.921 5.198
        sat 3.29 3.705
    """
    corpus = one_text(text, texts, reading)
    settings = word_settings(words, regions, train, corpus.kept)
    (loaded,), (name,) = named_models(model, scoring)
    corpus = followed([loaded], corpus, scoring, by_group=False)
    measured, rows = WordRows.of_model(loaded, settings, Origin.of_model(loaded, name))
    say_progress("scoring")
    blocks, scored = tee(corpus)
    return rows.result(zip(blocks, measured.score(scored, spans=True, threads=threads), strict=True), corpus, loaded)
