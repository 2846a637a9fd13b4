"""What the callbacks share: named texts, and a network in memory evaluated on them without changing its training."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.api.evaluate import evaluate
from lmgauge.api.inputs import PathLike, Text, corpus_of
from lmgauge.base.errors import LmgaugeError, MissingExtraError, UsageError
from lmgauge.base.files import folder_named
from lmgauge.evaluation.results import Evaluation
from lmgauge.models.network.options import ScoringOptions
from lmgauge.numerics.figures import FIGURES

try:
    import torch
    from transformers import PreTrainedModel
except ImportError as error:
    raise MissingExtraError((error.name or "transformers").partition(".")[0], extra="neural") from error

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from lmgauge.models.network.tokens import TokenMap

_logger = logging.getLogger("lmgauge.integrations")
_FIGURES = tuple(figure.name for figure in FIGURES if figure.logged)
# Shown beside the figures where they are not zero, as they say how to read them.
_WARNINGS = ("zero_probability_events", "oov_rate", "lossy_segments")


class NamedTexts:
    """Texts with names, and what a network that is being trained makes of them."""

    def __init__(
        self,
        texts: Mapping[str, Text],
        tokenizer: PreTrainedTokenizerBase | TokenMap,
        options: ScoringOptions | None = None,
        folder: PathLike | None = None,
        *,
        every_n_steps: int | None = None,
        prefix: str = "",
    ) -> None:
        # tokenizer: the network's own; or its `TokenMap`. prefix: of all keys.
        if every_n_steps is not None and every_n_steps < 1:
            raise UsageError(f"every_n_steps is {every_n_steps}: give a number of steps from 1, or None")
        if not isinstance(texts, Mapping) or not texts:
            raise UsageError("texts is a dictionary of names and texts, at least one: {'valid': 'valid.txt'}")
        self.evaluations: dict[str, Evaluation] = {}
        self.every, self._prefix = every_n_steps, prefix
        self._corpora = {name: corpus_of(text) for name, text in texts.items()}
        self._tokenizer = tokenizer
        self._options = options or ScoringOptions()
        self._folder = None if folder is None else Path(folder)
        self._tokens: TokenMap | None = None
        self._fingerprint = ""
        self._logged: set[str] = set()
        for name, corpus in self._corpora.items():
            if not isinstance(name, str) or not name:
                raise UsageError(f"a text has the name {name!r}: give a word, such as 'valid'")
            corpus.refuse_once(f"text {name!r} is read at each evaluation")

    def evaluate(self, network: PreTrainedModel) -> bool:
        """Evaluate a network, as `checked_network` gives it, on all texts; training continues unchanged."""
        from lmgauge.models.network.torch.model import NeuralModel

        with undisturbed(network):
            model = NeuralModel.wrap(network, self._tokens or self._tokenizer, self._options)
            self._tokens = model.tokens
            if model.fingerprint == self._fingerprint:
                return False
            threads = torch.get_num_threads()
            self.evaluations = {
                name: evaluate(model, text, threads=threads, output=self._output(name))
                for name, text in self._corpora.items()
            }
        self._fingerprint = model.fingerprint
        self._tell_notes()
        return True

    def evaluate_on_first(
        self, find: Callable[[], Any], *, is_first: bool, from_first: Callable[[Any], Any]
    ) -> tuple[dict[str, float], bool]:
        """Evaluate what `find` returns on the first process; all get its figures, and whether they are new."""
        # As all processes take the same decisions, they need the same numbers.
        computed: Any = None
        message = ""
        if is_first:
            try:
                computed = self.evaluate(checked_network(find())), self.evaluations
            except LmgaugeError as error:
                from_first((None, str(error)))
                raise
        computed, message = from_first((computed, message))
        if computed is None:
            raise LmgaugeError(f"on the first process: {message}")
        is_new, self.evaluations = computed
        return self.figures(), is_new

    def figures(self) -> dict[str, float]:
        """Return the figures for a log: `{prefix}{name}_perplexity` and so on."""
        # Where an event has probability zero, a word is unknown or text is lost, how many or how much of it comes as well.
        figures: dict[str, float] = {}
        for name, evaluation in self.evaluations.items():
            for figure in (*_FIGURES, *_WARNINGS, "perplexity_without_zeros"):
                value = getattr(evaluation, figure)
                shown = figure in _FIGURES or (
                    bool(value) if figure in _WARNINGS else evaluation.zero_probability_events > 0
                )
                if value is not None and shown:
                    figures[f"{self._prefix}{name}_{figure}"] = value
            if evaluation.interval is not None and not evaluation.zero_probability_events:
                for end in ("low", "high"):
                    figures[f"{self._prefix}{name}_perplexity_{end}"] = getattr(evaluation.interval, end)
        return figures

    def signatures(self) -> dict[str, str]:
        """Return the signature of each evaluation: `{prefix}{name}_signature`."""
        return {f"{self._prefix}{name}_signature": evaluation.signature for name, evaluation in self.evaluations.items()}

    def _output(self, name: str) -> Path | None:
        # Run folder of a text: no name leads out of the folder.
        return None if self._folder is None else self._folder / folder_named(name)

    def _tell_notes(self) -> None:
        for name, evaluation in self.evaluations.items():
            for note in evaluation.notes:
                line = f"{name}: {note}"
                if line not in self._logged:
                    self._logged.add(line)
                    _logger.warning(line)


def checked_network(module: Any) -> PreTrainedModel:
    """Return the network to evaluate, without what frameworks put around it."""
    # Compilation, adapters that sit in its layers.
    network = getattr(module, "_orig_mod", module)
    if hasattr(network, "get_base_model"):
        if getattr(network.active_peft_config, "is_prompt_learning", False):
            raise UsageError("the network's adapter puts learned prompts before the text, which evaluation does not know")
        network = network.get_base_model()
    if not isinstance(network, PreTrainedModel):
        kind = type(network).__name__
        raise UsageError(f"the network is {kind}: a causal network of the transformers library is needed")
    return network


@contextmanager
def undisturbed(network: PreTrainedModel) -> Iterator[None]:
    """Put a network into evaluation mode and full precision; afterwards modes, random numbers and threads are as before."""
    modes = [(module, module.training) for module in network.modules()]
    threads, drawn, drawn_by_numpy = torch.get_num_threads(), random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = sorted({weight.device for weight in network.parameters() if weight.device.type == "cuda"}, key=str)
    network.train(False)
    try:
        with torch.random.fork_rng(devices), torch.autocast(network.device.type, enabled=False), _own_forward(network):
            yield
    finally:
        for module, mode in modes:
            module.training = mode
        torch.set_num_threads(threads)
        random.setstate(drawn)
        np.random.set_state(drawn_by_numpy)  # noqa: NPY002


@contextmanager
def _own_forward(network: PreTrainedModel) -> Iterator[None]:
    # Without the mixed precision that Accelerate puts around `forward`: the weights as they are saved are measured.
    own = vars(network).get("_original_forward")
    if own is None:
        yield
        return
    wrapped = vars(network)["forward"]
    vars(network)["forward"] = own
    try:
        yield
    finally:
        vars(network)["forward"] = wrapped
