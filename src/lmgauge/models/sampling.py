"""Text drawn from a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import DEFAULT_SEED
from lmgauge.base.errors import UsageError
from lmgauge.base.paths import refuse_file_names
from lmgauge.models.protocol import LanguageModel
from lmgauge.scores.context_policy import GrowingContext
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import encode
from lmgauge.text.vocabulary import BOS, EOS, UNK

if TYPE_CHECKING:
    from lmgauge.models.combined.spelling.incremental_decoding import EventWriter, Step

_LONGEST_WORD = 1000  # letters that are drawn before a word ends at the next place where it can


def sample(
    model: LanguageModel,
    count: int = 1,
    *,
    seed: int = DEFAULT_SEED,
    temperature: float = 1.0,
    top_k: int | None = None,
    max_tokens: int = 200,
    prompt: str = "",
    allow_unk: bool = False,
) -> Iterator[str]:
    """Draw segments from a model, each until `</s>` or `max_tokens`."""
    # A model that spells what it does not know also draws the letters of new words and the white space before each word, so
    # that what comes is a text as the training text has it. Words of other models are joined by single spaces.
    if (
        count < 0
        or max_tokens < 1
        or not temperature >= 0
        or not np.isfinite(temperature)
        or (top_k is not None and top_k < 1)
        or seed < 0
    ):
        raise UsageError("sampling needs count >= 0, max-tokens >= 1, temperature >= 0, top-k >= 1 and a seed >= 0")
    refuse_file_names(prompt)
    generator = np.random.default_rng(seed)
    start, begin = _prompt_ids(model, prompt)
    spells = model.is_spelled
    for _ in range(count):
        context = GrowingContext(BOS, runs_on=True)
        for token in start:
            context.add(token)
        written = _Spelled(model, prompt, begin, generator, temperature) if spells else _Joined(model, prompt)
        for _ in range(max_tokens):
            logprob = model.log_distribution(context.ids())
            if not (allow_unk or spells):
                logprob[UNK] = -np.inf
            following = _draw(logprob, generator, temperature, top_k)
            written.add(following)
            if following == EOS:
                break
            context.add(following)
        yield written.text()


class _Joined:
    """Text of tokens as the tokenizer joins them."""

    def __init__(self, model: LanguageModel, prompt: str) -> None:
        self._model, self._prompt = model, prompt
        self._tokens: list[str] = []

    def add(self, token: int) -> None:
        if token != EOS:
            self._tokens.append(self._model.vocabulary.token(token))

    def text(self) -> str:
        tokenizer = self._model.tokenizer
        text = tokenizer.detokenize(self._tokens)
        return self._prompt + (" " if self._prompt and text and tokenizer.unit == "word" else "") + text


class _Spelled:
    """Text of events whose letters and white space are drawn, too."""

    def __init__(
        self, model: Any, prompt: str, begin: int | None, generator: np.random.Generator, temperature: float
    ) -> None:
        self._writer: EventWriter = model.writer(prompt.encode(), begin)
        self._generator, self._temperature = generator, temperature
        self._steps = 0

    def add(self, token: int) -> None:
        self._steps = 0
        self._writer.write(token, self._choose)

    def _choose(self, step: Step) -> int:
        self._steps += 1
        if self._steps > _LONGEST_WORD and step.end >= 0 and step.logprob[step.end] > -np.inf:
            return step.end  # where only the most probable letters are drawn, they may repeat without end
        return _draw(step.logprob, self._generator, self._temperature, None)

    def text(self) -> str:
        return self._writer.text.decode()


def _prompt_ids(model: LanguageModel, prompt: str) -> tuple[list[int], int | None]:
    # Ids of a prompt, and where the span of the last one begins, bytes; None if there is none.
    ids: list[int] = []
    begins = [0]
    for block in Corpus.from_strings([prompt]) if prompt else ():
        encoded = encode(block, model.tokenizer, model.vocabulary, bos=False, reserved="escape", spans=True)
        ids.extend(encoded.ids[:-1].tolist())
        begins.extend(encoded.span_ends[:-1].tolist())
    return ids, begins[-2] if ids else None


def _draw(logprob: NDArray[np.float64], generator: np.random.Generator, temperature: float, top_k: int | None) -> int:
    best = float(np.max(logprob))
    if best == -np.inf:
        raise UsageError("no token has a probability above zero after this context; use a smoothed model")
    if temperature == 0:
        return int(np.argmax(logprob))
    weights = np.exp((logprob - best) / temperature)
    if top_k is not None and top_k < len(weights):
        likeliest = np.argsort(-weights, kind="stable")[:top_k]
        chosen = np.zeros_like(weights)
        chosen[likeliest] = weights[likeliest]
        weights = chosen
    cumulative = np.cumsum(weights)
    return int(np.searchsorted(cumulative, generator.random() * cumulative[-1], side="right"))
