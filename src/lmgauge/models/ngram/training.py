"""Training an n-gram model: read and encode, count, estimate, prune."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmgauge.choices import NgramContext
from lmgauge.errors import InputError, UsageError
from lmgauge.models.ngram.counting import MAX_ORDER, count_ngrams
from lmgauge.models.ngram.lookup import NgramTables
from lmgauge.models.ngram.model import NgramModel, NgramSettings
from lmgauge.models.ngram.smoothing import ADDITIVE, Smoothing, estimate
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import RESERVED_POLICIES, ReservedPolicy, encode
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import BOS, UNK, Vocabulary, VocabularyBuilder, restrict
from lmgauge.threads import thread_count

Progress = Callable[[str], None]


def train_ngram(
    smoothing: Smoothing,
    corpus: Corpus,
    *,
    order: int = 3,
    tokenizer: str | Tokenizer = "whitespace",
    closed: bool = False,
    min_count: int = 1,
    vocab_size: int | None = None,
    words: Sequence[str] | None = None,
    reserved: ReservedPolicy = "refuse",
    context: NgramContext = "sentence",
    prune: float | None = None,
    threads: int | None = None,
    progress: Progress = lambda stage: None,
) -> NgramModel:
    """Trains a model on a text; see `lmgauge.train` for the parameters.

    Raises:
        InputError: the text is empty or contains a reserved token.
        UsageError: options out of range or contradicting each other.
    """
    _check(smoothing, order, words, min_count, vocab_size, context, reserved, prune)
    count = thread_count(threads)
    chosen = make_tokenizer(tokenizer)
    given = None if words is None else Vocabulary.from_tokens(words, closed=closed)
    ids, vocabulary = _read(corpus, chosen, given, closed, context, reserved, progress)
    if min_count != 1 or vocab_size is not None:
        counts = np.bincount(ids, minlength=len(vocabulary)).astype(np.int64)
        vocabulary, new_ids = restrict(vocabulary, counts, min_count=min_count, size=vocab_size)
        ids = new_ids[ids]
    if closed and bool(np.any(ids == UNK)):
        raise UsageError(
            "a closed vocabulary must hold every word of the training text; use an open one, where the others are <unk>"
        )
    events = int(np.count_nonzero(ids != BOS))
    progress(f"counting n-grams of {events:,} events")
    ngrams = count_ngrams(ids, order, len(vocabulary), threads=count)
    del ids
    progress(f"estimating {sum(ngrams.types):,} n-grams")
    estimates = estimate(ngrams, smoothing, closed=closed, threads=count)
    additive = smoothing.kind in ADDITIVE
    unseen = 1.0 / vocabulary.event_count if additive and smoothing.added > 0 else 0.0
    tables = NgramTables(estimates.unigrams, ngrams.tables, ngrams.longest, full_context=additive, unseen=unseen)
    settings = NgramSettings(
        kind=smoothing.kind,
        interpolate=smoothing.interpolate,
        discount=smoothing.discount,
        k=smoothing.k,
        cutoffs=smoothing.cutoffs,
        context=context,
        reserved=reserved,
        min_count=min_count,
        vocab_size=vocab_size,
        discounts=tuple(d.values for d in estimates.discounts),
        training={
            "sha256": corpus.report.sha256,
            "segments": corpus.report.segments,
            "events": events,
            "bytes": corpus.report.bytes,
        },
        notes=tuple(corpus.report.notes() + estimates.notes),
    )
    model = NgramModel(tables, vocabulary, chosen, settings)
    if prune is not None:
        from lmgauge.models.ngram.pruning import prune_model

        progress("pruning")
        model = prune_model(model, prune)
    return model


def _check(
    smoothing: Smoothing,
    order: int,
    words: Sequence[str] | None,
    min_count: int,
    vocab_size: int | None,
    context: str,
    reserved: str,
    prune: float | None,
) -> None:
    """Refuses options that are out of range or contradict each other, before anything is read."""
    if not isinstance(order, int) or not 1 <= order <= MAX_ORDER:
        raise UsageError(f"order {order!r}: n-grams have between 1 and {MAX_ORDER} tokens")
    if isinstance(words, str):
        raise UsageError("words is a list of words, not one string of them")
    if words is not None and (min_count != 1 or vocab_size is not None):
        raise UsageError("a given list of words already is the vocabulary; leave out min-count and vocab-size")
    if context not in ("sentence", "stream") or reserved not in RESERVED_POLICIES:
        raise UsageError(
            f"context {context!r} or reserved {reserved!r} is not known: context is sentence or stream, reserved is "
            f"{', '.join(RESERVED_POLICIES)}"
        )
    if prune is not None and (not prune > 0 or smoothing.kind in ADDITIVE):
        raise UsageError("prune takes a threshold above 0, and a smoothing that backs off to shorter contexts")


def _read(
    corpus: Corpus,
    tokenizer: Tokenizer,
    given: Vocabulary | None,
    closed: bool,
    context: NgramContext,
    reserved: ReservedPolicy,
    progress: Progress,
) -> tuple[NDArray[np.uint32], Vocabulary]:
    """Ids of the whole text with `<s>` where contexts begin, and the vocabulary they are from."""
    vocabulary: Vocabulary | VocabularyBuilder = given if given is not None else VocabularyBuilder()
    stream = context == "stream"
    blocks = [np.array([BOS], np.uint32)] if stream else []
    read = seen = 0
    for segments in corpus:
        encoded = encode(segments, tokenizer, vocabulary, bos=not stream, reserved=reserved)
        blocks.append(encoded.ids.copy())  # without the room that was left for more
        read += segments.byte_count()
        seen += len(segments)
        progress(f"reading {read / 1e6:,.0f} MB")
    if not seen:
        raise InputError("the training text is empty: there is nothing to count")
    ids = np.concatenate(blocks)
    return ids, vocabulary if isinstance(vocabulary, Vocabulary) else vocabulary.finish(closed=closed)


def read_word_list(path: str | Path) -> list[str]:
    """Words of a file, one a line, for a given vocabulary; blank lines and the special tokens are passed over.

    Raises:
        InputError: the file cannot be read or is no UTF-8.
    """
    try:
        lines = Path(path).read_bytes().decode("utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: byte {error.start} is not valid UTF-8; a word list is UTF-8 text, a word a line"
        ) from error
    words = [line.strip() for line in lines]
    return [word for word in words if word and word not in ("<unk>", "<s>", "</s>")]
