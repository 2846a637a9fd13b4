"""A neural language model as evaluation, sampling and audits know it: any causal network of the `transformers` library."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lmgauge.base.choices import Precision, StoredType
from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.base.files import growing_digest, writing_directory
from lmgauge.models.network.model import NetworkModel
from lmgauge.models.network.options import ScoringOptions, resolve_policy
from lmgauge.models.network.parallel import workers_for
from lmgauge.models.network.tokens import TokenMap, tokens_of
from lmgauge.models.network.torch.checkpoint import (
    SCORING_FILE,
    Checkpoint,
    described,
    load_checkpoint,
    positions_of,
    quiet,
    read_scoring,
    telling,
)
from lmgauge.models.network.torch.engine import Journal, TorchEngine
from lmgauge.models.network.torch.split_network import SplitNetwork
from lmgauge.models.protocol import SPELLING_FOLDER
from lmgauge.scores.distributions.stored_rows import LastLayer
from lmgauge.text.encoding import ReservedPolicy

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# What a configuration tells that changes no probability.
_NO_NUMBERS = {
    *("_name_or_path", "transformers_version", "dtype", "torch_dtype", "architectures", "use_cache", "auto_map", "lmgauge"),
    *("_attn_implementation", "_attn_implementation_internal", "attn_implementation"),
}


class NeuralModel(NetworkModel):
    """A causal network of the `transformers` library with a tokenizer and a policy of what each prediction sees.

    Example:
        >>> import lmgauge
        >>> from tokenizers import Tokenizer, models
        >>> from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
        >>> letters = Tokenizer(models.BPE({letter: i for i, letter in enumerate("#ab ")}, merges=[]))
        >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, bos_token="#", eos_token="#")
        >>> sizes = {"vocab_size": 4, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 1}
        >>> network = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval()
        >>> model = lmgauge.models.NeuralModel.wrap(network, tokenizer)
        >>> model.label, model.score_text("a b").tokens
        ('gpt2', ('a', ' ', 'b'))
    """

    engine: TorchEngine

    def __init__(self, checkpoint: Checkpoint, options: ScoringOptions, label: str) -> None:
        self._checkpoint = checkpoint
        name = str(checkpoint.folder or label)
        with quiet(), telling(name, checkpoint.folder):
            split = SplitNetwork(checkpoint.network, options.kv_cache)
        tokens = checkpoint.tokens.check_head(split.vocabulary_size, name)
        policy = resolve_policy(options, tokens, positions_of(checkpoint.network))
        if policy.end == "newline" and tokens.trained_here:
            raise UsageError(f"end newline: {label} was trained to end lines with </s>; choose eos or none")
        super().__init__(TorchEngine(split, policy, options.batch_tokens, name), tokens, policy, options, label)

    @classmethod
    def wrap(
        cls,
        network: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | TokenMap,
        options: ScoringOptions | None = None,
        *,
        label: str | None = None,
    ) -> NeuralModel:
        """Return a network in memory as a model; it must be in evaluation mode.

        Args:
            network: any causal network of the `transformers` library.
            tokenizer: its tokenizer, or a ready map of its tokens. A network that lmgauge trained is known by its config,
                and its tokens are those of the folder it came from.
            options: how to score; its dtype and device are the network's.
            label: short name for signatures; the kind of network if None.

        Raises:
            ModelFileError: tokenizer and network do not belong together.
            UsageError: what is given is not a network, it is in training mode, or the options do not fit it.
        """
        if not hasattr(network, "training"):
            kind = type(network).__name__
            raise UsageError(
                f"network is {kind}, not a network of the transformers library: lmgauge.load_model opens a path"
            )
        if network.training:
            raise UsageError("the network is in training mode, where dropout makes its numbers random: call network.eval()")
        name = label or described(network)
        tokens = tokenizer if isinstance(tokenizer, TokenMap) else tokens_of(network, tokenizer, name)
        return cls(Checkpoint(network, tokens, None), options or ScoringOptions(), name)

    @property
    def network(self) -> PreTrainedModel:
        """The network."""
        return self._checkpoint.network

    @property
    def reserved(self) -> ReservedPolicy | None:
        """What a reserved token in the text means; None where the tokenizer decides."""
        return self.tokens.reserved if self.tokens.trained_here else None

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over weights as loaded, network, tokens, policy, and what reserved tokens mean if they are not refused."""
        ids = np.ascontiguousarray(self.tokens.network_ids, "<i8").data
        fingerprints = self.vocabulary.ids_fingerprint, self.tokenizer.fingerprint
        reserved = (self.reserved or "").removeprefix("refuse")
        digest = growing_digest([self._settings(), str(self.context_policy)], *fingerprints, ids, reserved)
        for name, weight in sorted(self.network.state_dict().items()):
            for part in _bytes_of(name, weight):
                digest.update(part)
        return digest.hexdigest()

    def _settings(self) -> dict[str, Any]:
        return {name: value for name, value in self.network.config.to_dict().items() if name not in _NO_NUMBERS}

    @property
    def last_layer(self) -> LastLayer | None:
        """The output layer that makes distributions of hidden states; None where it is not one product that is known."""
        layer, predicted = self.engine.split.output, self.tokens.predicted_ids
        if layer is None:
            return None
        digest = growing_digest([self._settings()], np.ascontiguousarray(predicted, "<i8").data)
        for part in _bytes_of("output", [layer.weight, *([] if layer.bias is None else [layer.bias])]):
            digest.update(part)
        rows = torch.from_numpy(predicted).to(layer.weight.device)
        dtype: StoredType = "bfloat16" if layer.weight.dtype == torch.bfloat16 else "float32"
        return LastLayer(layer.weight.shape[1], dtype, digest.hexdigest(), partial(layer.of_states, rows=rows))

    def keep_journal(self, path: Path) -> Journal | None:
        """Write scores into a file as soon as they are known, and take from it what is known already.

        Args:
            path: the file, to which the scores of each job are added in bytes.

        Returns:
            The file; None for a stream that a recurrent state runs through, whose parts cannot be had apart.

        Raises:
            OutputError: the file cannot be written.
        """
        if self.engine.carries_state:
            return None
        self.engine.journal = Journal(path, self.fingerprint)
        return self.engine.journal

    def with_reserved(self, reserved: ReservedPolicy) -> NeuralModel:
        """Return the same model with another meaning of reserved tokens in the text.

        Args:
            reserved: refuse, escape or unk: the meaning of a special token spelled out in the text.
        """
        if not self.tokens.trained_here:
            return self
        tokens = self.tokens.with_reserved(reserved)
        changed = self._another(replace(self._checkpoint, tokens=tokens), self.options)
        return changed.made_from(self, NeuralModel.with_reserved, reserved)

    def with_options(self, options: ScoringOptions) -> NeuralModel:
        """Return the same network, scoring by other options; it shares the weights and the processes.

        Args:
            options: how to score; device and number format stay as they are.

        Raises:
            UsageError: they do not fit the network.
        """
        return self._another(self._checkpoint, options).made_from(self, NeuralModel.with_options, options)

    def _another(self, checkpoint: Checkpoint, options: ScoringOptions) -> NeuralModel:
        model = NeuralModel(checkpoint, options, self.label)
        model.workers = self.workers
        return model

    @property
    def notes(self) -> list[str]:
        """Sentences about the network and the text scored last that its numbers depend on."""
        rounded = (
            f"{self.label}: its layers round activations by one scale for all tokens of a window, so its predictions "
            "depend a little on later tokens: they are not probabilities in the strict sense"
        )
        return [*self._checkpoint.notes, *([rounded] if self.engine.split.rounds_together else []), *super().notes]

    def to_dict(self) -> dict[str, Any]:
        """Return what is in the model."""
        config = self.network.config
        return {
            "model_type": config.model_type,
            "label": self.label,
            "parameters": sum(weight.numel() for weight in self.network.parameters()),
            "dtype": str(self.network.dtype).removeprefix("torch."),
            "device": str(self.network.device),
            **super().to_dict(),
            "training": dict(getattr(config, "lmgauge", None) or {}),
        }

    @staticmethod
    def may_replace(folder: Path) -> bool:
        """Return True if a folder is one that `save` wrote; a checkpoint of someone's own is never replaced.

        Args:
            folder: with files of a checkpoint, or of anything else.

        Raises:
            OSError: it cannot be read, or is not a folder.
        """
        nested = [part.name for part in folder.iterdir() if part.is_dir()]
        return (folder / SCORING_FILE).is_file() and set(nested) <= {SPELLING_FOLDER}

    def save(self, path: str | Path) -> None:
        """Write the model as a folder that `load_model` reads, if it was loaded from one.

        Args:
            path: the new folder.

        Raises:
            UsageError: it was not, or this is the same folder.
            InputError: something else is in the way.
            OutputError: it cannot be written.
        """
        if self._checkpoint.folder is None:
            raise UsageError(f"{self.label}: was not loaded from a folder, so there is none to copy; save it first")
        source = self._checkpoint.folder
        if Path(path).resolve() == source.resolve():
            raise UsageError(f"{path}: is the folder it was loaded from; choose another name")
        with writing_directory(path, is_ours=self.may_replace) as folder:
            for file in source.iterdir():
                if file.is_file():
                    shutil.copyfile(file, folder / file.name)
            dtype = "bfloat16" if self.network.dtype == torch.bfloat16 else "float32"
            chosen = self.options.stored() | {"dtype": dtype}
            (folder / SCORING_FILE).write_text(json.dumps(chosen, indent=2) + "\n", encoding="utf-8", newline="\n")


def _bytes_of(name: str, weight: Any) -> Iterator[Any]:
    # What is to be digested of an entry of a network's state: a tensor, or what a quantized layer packs into one.
    if isinstance(weight, tuple | list):
        for i, part in enumerate(weight):
            yield from _bytes_of(f"{name}.{i}", part)
    elif not isinstance(weight, torch.Tensor):
        yield f"{name} {weight}".encode()
    elif hasattr(weight, "__tensor_flatten__"):  # made of other tensors
        parts, settings = weight.__tensor_flatten__()
        yield f"{name} {type(weight).__name__} {settings}".encode()
        for part in parts:
            yield from _bytes_of(f"{name}.{part}", getattr(weight, part))
    elif weight.is_quantized:
        yield f"{name} {weight.dtype} {weight.qscheme()}".encode()
        yield from _bytes_of(f"{name}.values", weight.dequantize())
    else:
        yield f"{name} {weight.dtype} {tuple(weight.shape)}".encode()
        yield weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data


def load_neural(source: str | Path, options: ScoringOptions | None = None) -> NeuralModel:
    """Load any causal network of the `transformers` library, from a folder or by its name on a hub."""
    asked = options or ScoringOptions()
    options = asked.over(read_scoring(Path(source)))
    checkpoint = load_checkpoint(str(source), options.at(options.places[0]))
    if checkpoint.notes and asked.dtype == "auto":  # a part of a mixture is what was mixed, or nothing
        raise ModelFileError(
            f"{source}: was copied as a bfloat16 model, which this processor cannot compute; load it with dtype float32, or "
            "mix the models again here"
        )
    narrow = {torch.bfloat16: "-bf16", torch.float16: "-fp16"}.get(checkpoint.network.dtype, "")
    model = NeuralModel(checkpoint, options, described(checkpoint.network) + narrow)
    dtypes: dict[torch.dtype, Precision] = {torch.bfloat16: "bfloat16", torch.float32: "float32"}
    dtype = dtypes.get(checkpoint.network.dtype, options.dtype)
    exact = replace(options, dtype=dtype, batch_tokens=model.engine.batch_tokens)
    model.workers = workers_for(model, partial(load_neural, str(source)), exact)
    return model
