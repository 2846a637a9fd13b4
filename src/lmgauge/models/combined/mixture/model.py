"""Linear interpolation of models: p(w | h) = sum_k weight_k p_k(w | h) (Jelinek & Mercer 1980).

The components may be of any kind, also mixtures; `union.py` has what holds for words that only some of them know. Weights
come from `weights.py`.
Source: Jelinek, F. & Mercer, R. L. (1980), "Interpolated estimation of Markov source parameters from sparse data", in
"Pattern Recognition in Practice", pp. 381-397.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.display import Displayable
from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.base.files import digest, writing_directory
from lmgauge.models.combined.mixture.compatibility import agreeing, beside, known_to_some
from lmgauge.models.protocol import (
    MIXTURE_MODEL_TYPE,
    OF_MACHINE,
    SPELLING_FOLDER,
    LanguageModel,
    check_context,
    checked,
    completed,
    describing,
    inside,
    is_folder_of,
    read_own_config,
    refuse_templates,
    write_config,
)
from lmgauge.models.scored_text import ScoresStrings
from lmgauge.scores import ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy, last_sentence, shared_policy
from lmgauge.scores.distributions.blocks import BlockDistributions, Events, distributions_of
from lmgauge.scores.distributions.reduce import together
from lmgauge.scores.distributions.tile import Tile, as_numpy, possible
from lmgauge.scores.scoring import score_together
from lmgauge.text.encoding import ReservedPolicy
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS

if TYPE_CHECKING:
    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.text.segments import Segments
    from lmgauge.text.tokens import Tokenizer
    from lmgauge.text.vocabulary import Vocabulary

Floats = NDArray[np.float64]
FORMAT_VERSION = 1
WEIGHT_TOLERANCE = 1e-9
_CONFIG = "config.json"


class MixtureModel(Displayable, ScoresStrings):
    """A weighted mean of models, itself a language model.

    Its context policy is `stream` if that of any component is; one that scores each sentence on its own then sees what
    follows the last `</s>`. Source: Jelinek & Mercer (1980), "Interpolated estimation of Markov source parameters".

    Attributes:
        components: the models, each with its own ids.
        weights: one each, not negative, summing to one.
        estimation: how the weights were found, e.g. `MixtureFit.to_dict()`; empty if they were given.
        tolerance: nats by which rows may differ when they are scored again; the components' largest.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> model = lmgauge.mix([lmgauge.train("laplace", text, order=n) for n in (1, 2)], weights=[0.5, 0.5])
        >>> model.label, round(lmgauge.perplexity(model, "the cat sat"), 4)
        ('mix(laplace1+laplace2)', 3.9135)
    """

    tolerance: float

    def __init__(
        self,
        components: Sequence[LanguageModel],
        weights: Sequence[float],
        *,
        estimation: Mapping[str, Any] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.components = tuple(map(completed, components))
        self._aligned = agreeing(self.components, names)
        self._beside = beside(self._aligned)
        self.weights = check_weights(weights, len(self.components))
        self.estimation = dict(estimation or {})
        with np.errstate(divide="ignore"):
            self._log_weights = np.log(np.array(self.weights))
        self.tolerance = max(component.tolerance for component in self.components)

    @property
    def label(self) -> str:
        """Short name for signatures, e.g. `mix(mkn3+wb2)`; `mix(mkn3+wb2,union)` over different words."""
        how = ",union" if known_to_some(self._aligned) else ""
        return f"mix({'+'.join(component.label for component in self.components)}{how})"

    @property
    def vocabulary(self) -> Vocabulary:
        """Tokens, in the order of the first component."""
        return self._aligned[0].vocabulary

    @property
    def tokenizer(self) -> Tokenizer:
        """The one all components have."""
        return self._aligned[0].tokenizer

    def framed(self) -> MixtureModel:
        refuse_templates(self.components)
        return self

    @property
    def context_policy(self) -> ContextPolicy:
        """`sentence` or, if that of any component runs on, `stream`; with what else they have in common."""
        return shared_policy([component.context_policy for component in self.components])

    @property
    def reserved(self) -> ReservedPolicy | None:
        """What a reserved token in the text means; None if no component is an n-gram model."""
        return next((component.reserved for component in self.components if component.reserved), None)

    def takes(self, option: str) -> bool:
        """Return True for how networks among the components compute; all else they keep as they were mixed.

        Args:
            option: the name of one of `ScoringOptions`.
        """
        return option in OF_MACHINE and any(component.takes(option) for component in self.components)

    @property
    def notes(self) -> list[str]:
        """What the components met in the latest scoring that numbers depend on, and how many words not all know."""
        notes = [note for component in self.components for note in component.notes]
        some = known_to_some(self._aligned)
        if some:
            notes.append(
                f"{self.label}: {some:,} of {len(self.vocabulary) - len(SPECIAL_TOKENS):,} words are known to some of its "
                "models only; the others give them probability zero, and their <unk> is for words that no model knows"
            )
        return notes

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the components' fingerprints and the weights."""
        parts = [(c.fingerprint, w.hex()) for c, w in zip(self.components, self.weights, strict=True)]
        return digest([MIXTURE_MODEL_TYPE, parts])

    @property
    def blocks_are_independent(self) -> bool:
        """Whether those of all components are."""
        return all(component.blocks_are_independent for component in self.components)

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield one batch of the score table for each block of segments, in order.

        Args:
            segments: blocks of text, e.g. a `Corpus`.
            spans: whether to fill the column `ends`, in bytes.
            threads: how many; does not change scores.

        Raises:
            InputError: the components cut the text into different events.
        """
        yield from score_together(self._aligned, segments, self._combined, spans=spans, threads=threads)

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block whose segments are contexts of their own.

        Args:
            block: the segments.
            spans: whether to fill the column `ends`, in bytes.

        Raises:
            InputError: the components cut the text into different events.
        """
        return self._combined(block, [model.score_block(block, spans=spans) for model in self._aligned])

    def _combined(self, block: Segments, batches: list[ScoreBatch]) -> ScoreBatch:
        _, batches = self._beside(block, batches)
        logprob = mixed([batch.logprob for batch in batches], self._log_weights)
        orders = [batch.extra["context"] for batch in batches if "context" in batch.extra]
        # The longest context that any component used; unknown if one does not tell.
        extra = {"context": np.maximum.reduce(orders)} if len(orders) == len(batches) else {}
        return replace(batches[0], logprob=logprob, extra=extra)

    def distributions(
        self, segments: Iterable[Segments], *, events: Events | None = None, spans: bool = True, threads: int | None = None
    ) -> Iterator[BlockDistributions]:
        """Yield the distributions at the events of each block; see `lmgauge.scores.distributions.reduce`.

        Args:
            segments: blocks of text, e.g. a `Corpus`.
            events: int64 [events], numbers of those to look at, ascending; all if None.
            spans: whether the rows get byte spans.
            threads: how many to compute with.

        Raises:
            InputError: a text that the components cannot score.
        """
        copies = tee(segments, len(self._aligned) + 1)
        chosen = {"events": events, "spans": spans, "threads": threads}
        parts = [distributions_of(c, t, **chosen) for c, t in zip(self._aligned, copies[1:], strict=True)]  # type: ignore[arg-type]
        for block, *blocks in zip(copies[0], *parts, strict=True):
            yield MixedDistributions(block, blocks, self._log_weights, self._combined)

    def log_distribution(self, context_ids: NDArray[np.uint32] | Sequence[int]) -> NDArray[np.float64]:
        """Return natural log-probabilities of all tokens after a context.

        Args:
            context_ids: ids before the event, `<s>` at their beginning; under the policy `stream`, all of the text.

        Returns:
            float64 [vocabulary]; -inf for what no component of positive weight thinks possible.

        Raises:
            UsageError: an id is outside the vocabulary.
        """
        context = check_context(context_ids, len(self.vocabulary))
        sentence = last_sentence(context, BOS, EOS) if self.context_policy.runs_on else context
        parts = [c.log_distribution(context if c.context_policy.runs_on else sentence) for c in self._aligned]
        return mixed(parts, self._log_weights)

    def with_reserved(self, reserved: ReservedPolicy) -> MixtureModel:
        """Return the same mixture with another meaning of reserved tokens in the text.

        Args:
            reserved: refuse, escape or unk: the meaning of a special token spelled out in the text.
        """
        components = [component.with_reserved(reserved) for component in self.components]
        return MixtureModel(components, self.weights, estimation=self.estimation)

    def to_dict(self) -> dict[str, Any]:
        """Return what is in the model, as config.json tells it."""
        components = [
            {"folder": f"component-{i}", "label": c.label, "weight": w, "fingerprint": c.fingerprint}
            for i, (c, w) in enumerate(zip(self.components, self.weights, strict=True), 1)
        ]
        return {
            "model_type": MIXTURE_MODEL_TYPE,
            "components": components,
            "estimation": self.estimation,
            "context": str(self.context_policy),
            "vocabulary": "closed" if self.vocabulary.closed else "open",
            "vocabulary_size": len(self.vocabulary),
            "vocabulary_fingerprint": self.vocabulary.ids_fingerprint,
            "tokenizer": self.tokenizer.settings(),
        }

    may_replace = staticmethod(is_folder_of(MIXTURE_MODEL_TYPE, _CONFIG, "component-*", SPELLING_FOLDER))
    """Tells whether `save` may put the folder of a model in the place of another folder."""

    def save(self, path: str | Path) -> None:
        """Write the mixture as a folder: config.json, and a folder for each component.

        Args:
            path: the new folder, into which the bytes of all components are copied.

        Raises:
            UsageError: a component cannot be saved.
            InputError: something else is in the way.
            OutputError: it cannot be written; nothing is left behind.
        """
        config = self.to_dict() | {"fingerprint": self.fingerprint, "format_version": FORMAT_VERSION}
        with writing_directory(path, is_ours=self.may_replace) as folder:
            for part, component in zip(config["components"], self.components, strict=True):
                component.save(folder / part["folder"])
            write_config(folder, config, sealed=True)

    def _in_brief(self) -> str:
        return self.label

    def __repr__(self) -> str:
        parts = [f"{w:.4f} {c.label}" for c, w in zip(self.components, self.weights, strict=True)]
        return f"MixtureModel({' + '.join(parts)})"


def check_weights(weights: Sequence[float], count: int) -> tuple[float, ...]:
    """Return the weights of a mixture, once they are known to be some."""
    if len(weights) != count:
        raise UsageError(f"{len(weights)} weights for {count} models; give one each")
    try:
        values = tuple(float(weight) for weight in weights if not isinstance(weight, str))
        if len(values) < count:
            raise TypeError("a string is none")
    except (TypeError, ValueError) as error:
        raise UsageError(f"weights must be numbers, such as [0.7, 0.3]: {error}") from error
    for value in values:
        if not (math.isfinite(value) and value >= 0):
            raise UsageError(f"weight {value!r}: a weight is a share, from 0 to 1")
    total = sum(values)  # not math.fsum, which large numbers overflow
    if abs(total - 1.0) > WEIGHT_TOLERANCE:
        raise UsageError(f"the weights sum to {total:.12g}; they must sum to 1")
    return values


@dataclass
class _Component:
    folder: str
    weight: float
    fingerprint: str


@dataclass
class _Config:
    components: list[_Component]
    estimation: dict[str, Any]
    fingerprint: str
    read_as: str = "tokens"  # `bytes` in folders of earlier versions


def load_mixture(path: str | Path, options: ScoringOptions) -> MixtureModel:
    """Load the folder of a mixture."""
    from lmgauge.models.registry import open_model

    path = Path(path)
    config = read_own_config(path, _Config, MIXTURE_MODEL_TYPE, FORMAT_VERSION, "mix or copy it again")
    if config.read_as != "tokens":
        raise ModelFileError(
            f"{path}: is a mixture of models that cut text differently, as earlier versions made them; mix models with the "
            "same --tokenizer, and compare these in bits per byte (lmgauge compare)"
        )
    with describing(path, "a mixture"):
        components = [open_model(inside(path, part.folder), options.of_machine()) for part in config.components]
        for part, component in zip(config.components, components, strict=True):
            if component.fingerprint != part.fingerprint:
                raise ModelFileError(f"{path / part.folder}: is not the model that was mixed; a folder was exchanged")
        weights = [part.weight for part in config.components]
        model = MixtureModel(components, weights, estimation=config.estimation)
    return checked(model, path, config.fingerprint)


# -- distributions ------------------------------------------------------------------------------------------------------
def mixed(logprobs: Sequence[Floats], log_weights: Floats) -> Floats:
    """Return ln sum_k weight_k p_k; the largest term is taken out first, so that nothing underflows."""
    # logprobs: of each component float64 of one shape, nats; -inf allowed; log_weights: float64 [components].
    # np.exp(mixed([np.log([0.2]), np.log([0.6])], np.log([0.5, 0.5]))).round(6) -> [0.4]
    terms = [logprob + weight for logprob, weight in zip(logprobs, log_weights, strict=True)]
    shift = np.maximum.reduce(terms)
    shift[shift == -np.inf] = 0.0
    # One after another: np.sum may add in an order that depends on the length, and so on the batch.
    total = np.zeros_like(shift)
    for term in terms:
        total += np.exp(term - shift)
    with np.errstate(divide="ignore"):
        logprob: Floats = shift + np.log(total)
    return np.minimum(logprob, 0.0)  # a certain event is not more than certain by rounding


class MixedDistributions(BlockDistributions):
    """The distributions of a mixture at events of one block."""

    # log_weights: float64 [components]; combine: makes one batch of the components' own.

    def __init__(
        self,
        block: Segments,
        parts: Sequence[BlockDistributions],
        log_weights: Floats,
        combine: Callable[[Segments, list[ScoreBatch]], ScoreBatch],
    ) -> None:
        self._block, self._parts, self._log_weights, self._combine = block, parts, log_weights, combine
        self._own: list[list[Floats]] = [[] for _ in parts]
        self.vocabulary_size = parts[0].vocabulary_size

    def __len__(self) -> int:
        return len(self._parts[0])

    def tiles(self) -> Iterator[Tile]:
        for tiles in together(*(part.tiles() for part in self._parts)):
            for own, tile in zip(self._own, tiles, strict=True):
                own.append(tile.of_targets())
            arrays = [possible(as_numpy(tile.logprob)) for tile in tiles]
            # Over a union of words, a component that does not know the word has <unk>, id 0.
            targets = np.maximum.reduce([tile.targets for tile in tiles])
            yield Tile(lambda arrays=arrays: mixed(arrays, self._log_weights), targets)  # type: ignore[misc]

    def finish(self, logprob: Floats | None) -> ScoreBatch:
        own = [np.concatenate([np.zeros(0), *values]) for values in self._own]
        return self._combine(self._block, [part.finish(values) for part, values in zip(self._parts, own, strict=True)])
