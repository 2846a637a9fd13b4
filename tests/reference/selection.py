"""Cross-entropy difference selection in the slow and obvious way, over lists of sentences.

Moore & Lewis 2010, "Intelligent Selection of Language Model Training Data" (ACL 2010 short papers, pages 220-224):
documents in the order of H_I - H_N, the cross-entropies per token under a model of in-domain text and one of a sample of the
pool, both over the words that are in the in-domain text at least twice.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from tests.reference.ngram import ReferenceNgram

Sentence = Sequence[str]


def in_domain_words(in_domain: Iterable[Sentence], min_count: int) -> list[str]:
    """Return the words that occur at least so often, in the order in which they first do."""
    counts = Counter(word for sentence in in_domain for word in sentence)
    return [word for word, count in counts.items() if count >= min_count]


def cross_entropy(model: ReferenceNgram, sentence: Sentence) -> float:
    """Return the bits per token of a sentence, `</s>` included."""
    logprobs = model.score([sentence])
    return -sum(logprobs) / math.log(2) / len(logprobs)


def differences(
    kind: str,
    order: int,
    in_domain: Sequence[Sentence],
    pool: Sequence[Sentence],
    samples: Sequence[int],
    *,
    min_count: int = 2,
) -> list[float]:
    """Return H_I - H_N of each document of the pool, in bits per token; NaN for one without words.

    Args:
        kind, order: of the models.
        in_domain: text to be like.
        pool: the documents.
        samples: 1 and 2 for documents in the first and the second sample, 0 for all others. Those in the first are scored by
            the model of the second.
        min_count: of the words that models know.
    """
    words = in_domain_words(in_domain, min_count)
    inside = ReferenceNgram(kind, order, in_domain, words=words)
    outside = {
        part: ReferenceNgram(
            kind, order, [text for text, sample in zip(pool, samples, strict=True) if sample == part], words=words
        )
        for part in (1, 2)
    }
    return [
        cross_entropy(inside, text) - cross_entropy(outside[2 if sample == 1 else 1], text) if text else math.nan
        for text, sample in zip(pool, samples, strict=True)
    ]
