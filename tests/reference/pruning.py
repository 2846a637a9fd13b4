"""Entropy pruning after Stolcke 1998, "Entropy-based pruning of backoff language models", n-gram by n-gram.

Equation (11) with p(h) by the chain rule over the unpruned model; longest n-grams first; an n-gram that begins a longer
one stays; the back-off weights of all contexts are made anew from what is left, shortest first (as in SRILM).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

Gram = tuple[str, ...]


class BackOffModel:
    """Probabilities and back-off weights by n-gram, linear; `words` is what can be predicted."""

    def __init__(self, probability: Mapping[Gram, float], weight: Mapping[Gram, float]) -> None:
        self.probability, self.weight = dict(probability), dict(weight)
        self.words = [gram[0] for gram in self.probability if len(gram) == 1 and gram[0] != "<s>"]
        self.order = max(map(len, self.probability))

    def p(self, word: str, context: Gram) -> float:
        gram = (*context, word)
        if gram in self.probability:
            return self.probability[gram]
        return self.weight.get(context, 1.0) * self.p(word, context[1:]) if context else 0.0

    def history(self, context: Gram) -> float:
        product = 1.0
        for i, word in enumerate(context):
            product *= 1.0 if word == "<s>" else self.p(word, context[:i])
        return product

    def followers(self, context: Gram) -> list[str]:
        return [gram[-1] for gram in self.probability if gram[:-1] == context and len(gram) > 1]

    def loss(self, gram: Gram) -> float | None:
        """exp(D) - 1, the relative rise of the perplexity; None where there is nothing to share out after the context."""
        context, word = gram[:-1], gram[-1]
        followers = self.followers(context)
        left = 1 - math.fsum(self.probability[(*context, w)] for w in followers)
        lower_left = 1 - math.fsum(self.p(w, context[1:]) for w in followers)
        if left <= 1e-7 or lower_left <= 1e-7:
            return None
        p, q = self.probability[gram], self.p(word, context[1:])
        old, new = left / lower_left, (left + p) / (lower_left + q)
        change = p * (math.log(q) + math.log(new) - math.log(p)) + left * (math.log(new) - math.log(old))
        return math.expm1(-self.history(context) * change)

    def pruned(self, threshold: float) -> tuple[BackOffModel, dict[Gram, float]]:
        """The pruned model, and the loss of every n-gram that was looked at."""
        kept, losses = dict(self.probability), {}
        for order in range(self.order, 1, -1):
            begins = {gram[:-1] for gram in kept}
            for gram in [g for g in kept if len(g) == order and g not in begins]:
                loss = self.loss(gram)
                if loss is not None:
                    losses[gram] = loss
                    if loss < threshold:
                        del kept[gram]
        return BackOffModel(kept, {}).weighted(), losses

    def weighted(self) -> BackOffModel:
        """The same n-grams with the weights that make every distribution sum to one."""
        contexts = {gram[:-1] for gram in self.probability if len(gram) > 1}
        for context in sorted(contexts, key=len):
            followers = self.followers(context)
            left = 1 - math.fsum(self.probability[(*context, w)] for w in followers)
            lower_left = 1 - math.fsum(self.p(w, context[1:]) for w in followers)
            self.weight[context] = left / lower_left if lower_left > 1e-12 else 0.0
        return self
