"""Models in GGUF files, quantized or not, scored by llama.cpp on this machine."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from lmgauge.context_policy import ContextPolicy
from lmgauge.digests import file_sha256
from lmgauge.errors import UsageError
from lmgauge.models.network.gguf.engine import GgufEngine
from lmgauge.models.network.gguf.network import GgufNetwork
from lmgauge.models.network.gguf.tokens import gguf_tokens
from lmgauge.models.network.model import NetworkModel
from lmgauge.models.network.options import ScoringOptions, resolve_policy
from lmgauge.models.network.parallel import workers_for
from lmgauge.models.network.tokens import NO_ID, TokenMap
from lmgauge.threads import thread_count


class GgufModel(NetworkModel):
    """A GGUF file and a policy of what each prediction sees."""

    def __init__(self, network: GgufNetwork, tokens: TokenMap, policy: ContextPolicy, options: ScoringOptions) -> None:
        super().__init__(GgufEngine(network, policy), tokens, policy, options, network.path.stem)
        self.network = network

    @cached_property
    def fingerprint(self) -> str:
        return file_sha256(self.network.path, str(self.context_policy))

    def with_options(self, options: ScoringOptions) -> GgufModel:
        tokens = gguf_tokens(self.network)
        model = GgufModel(self.network, tokens, _policy(self.network, tokens, options), options)
        model.workers = self.workers
        return model.made_from(self, GgufModel.with_options, options)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model_type": "gguf",
            "label": self.label,
            "architecture": self.network.architecture,
            "name": self.network.setting("general.name"),
            "positions": self.network.positions,
            **super().to_dict(),
        }


def load_gguf(path: Path, options: ScoringOptions) -> GgufModel:
    """Load a GGUF file."""
    if any(place != "cpu" for place in options.devices or ()):
        raise UsageError(f"{path}: llama.cpp chooses among GPUs itself: --devices is for torch; --processes is for both")
    network = GgufNetwork(path, options.places[0])
    network.set_threads(thread_count())
    tokens = gguf_tokens(network)
    model = GgufModel(network, tokens, _policy(network, tokens, options), options)
    model.workers = workers_for(model, partial(load_gguf, path), options)
    return model


def _policy(network: GgufNetwork, tokens: TokenMap, options: ScoringOptions) -> ContextPolicy:
    if options.first_token is None and options.protocol is None:
        options = replace(options, first_token="bos" if tokens.bos != NO_ID and network.adds_bos else "uniform")
    return resolve_policy(options, tokens, network.positions)
