"""The numbers of `lmgauge eval` in the log of a `lightning.pytorch.Trainer`."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import Text
from lmgauge.base.errors import MissingExtraError, UsageError
from lmgauge.evaluation.results import Evaluation
from lmgauge.integrations.in_memory import NamedTexts, checked_network
from lmgauge.models.network.options import ScoringOptions

try:
    import torch
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.strategies import DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy
except ImportError as error:
    raise MissingExtraError("lightning", extra="lightning") from error

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from lmgauge.models.network.tokens import TokenMap

__all__ = ["LightningPerplexityCallback"]


class LightningPerplexityCallback(Callback):
    """Evaluate a module's network on named texts at each validation, every N steps, and at the end of training.

    The log gets `{name}_perplexity`, `_bits_per_byte`, `_bits_per_token`, `_word_perplexity`, `_cross_entropy`, and the
    ends of the interval (`_perplexity_low`, `_high`). They are
    what `lmgauge eval` prints for the network as its `save_pretrained` would save it: whole texts, each token once, no
    padding, no mixed precision. `ModelCheckpoint(monitor="{name}_perplexity")` and `EarlyStopping` work.

    Training is not changed: modes, random numbers and gradients are left alone. With several processes the first evaluates
    and the others wait for its numbers; networks in shards are refused.

    Attributes:
        evaluations: the latest `Evaluation` of each text, by name.
        signatures: `{name}_signature` -> the signature, as loggers take no text.

    Example:
        >>> import torch
        >>> from lightning.pytorch import LightningModule, Trainer
        >>> from tokenizers import Tokenizer, models
        >>> from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
        >>> from lmgauge import Corpus
        >>> letters = Tokenizer(models.BPE({letter: i for i, letter in enumerate("#ab\\n")}, merges=[]))
        >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, bos_token="#", eos_token="#")
        >>> sizes = {"vocab_size": 4, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 1}
        >>> class Module(LightningModule):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
        ...     def training_step(self, ids):
        ...         return self.model(ids, labels=ids).loss
        ...     def configure_optimizers(self):
        ...         return torch.optim.SGD(self.parameters(), lr=0.1)
        >>> callback = LightningPerplexityCallback({"valid": Corpus.from_strings(["ab", "ba"])}, tokenizer, network="model")
        >>> quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
        >>> trainer = Trainer(max_steps=1, callbacks=[callback], enable_model_summary=False, **quiet)
        >>> trainer.fit(Module(), torch.tensor([[[0, 1, 2]]]))
        >>> callback.evaluations["valid"].events  # two letters, twice
        4
    """

    def __init__(
        self,
        texts: Mapping[str, Text],
        tokenizer: PreTrainedTokenizerBase | TokenMap,
        *,
        network: str = "model",
        options: ScoringOptions | None = None,
        every_n_steps: int | None = None,
        at_end: bool = True,
        prefix: str = "",
    ) -> None:
        """Find the texts.

        Args:
            texts: name -> a path, several, or a `Corpus`.
            tokenizer: the network's.
            network: the attribute of the module that is a causal network of the `transformers` library, dots allowed.
            options: how to score, as the options of `lmgauge eval` do; dtype and device are the network's.
            every_n_steps: evaluate also after each N optimizer steps.
            at_end: evaluate also the weights that training ends with, if they were not.
            prefix: of all keys.

        Raises:
            InputError: a file is missing.
            UsageError: no texts, or options out of range.
        """
        self.evaluations: dict[str, Evaluation] = {}
        self._texts = NamedTexts(texts, tokenizer, options, every_n_steps=every_n_steps, prefix=prefix)
        self._network, self._at_end = network, at_end
        self._last_step = 0

    @property
    def signatures(self) -> dict[str, str]:
        """The signature of each text's latest evaluation, by key."""
        return self._texts.signatures()

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Look for the network, so that no training runs in vain.

        Args:
            trainer: says how the network is spread.
            pl_module: has the network.

        Raises:
            UsageError: it is not there, or is cut into shards.
        """
        if isinstance(trainer.strategy, (DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy)):
            raise UsageError("the strategy cuts the network into shards: evaluate its checkpoints instead")
        self._find(pl_module)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Evaluate, and log as the module itself would.

        Args:
            trainer: whose log gets bits per byte and the other figures.
            pl_module: has the network.

        Raises:
            InputError: a text cannot be used.
            ModelFileError: the tokenizer does not belong to the network, or the network gives NaN.
            UsageError: the network cannot be evaluated.
        """
        if trainer.sanity_checking:
            return
        figures, _ = self._evaluate(trainer, pl_module)
        values = {key: _tensor(value, pl_module.device) for key, value in figures.items()}
        pl_module.log_dict(values, batch_size=1, sync_dist=trainer.world_size > 1)

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *args: Any, **kwargs: Any) -> None:
        """Evaluate where a multiple of `every_n_steps` is reached.

        Args:
            trainer: whose log gets bits per byte and the other figures.
            pl_module: has the network.
            args: not used.
            kwargs: not used.

        Raises:
            InputError: a text cannot be used.
            ModelFileError: the tokenizer does not belong to the network, or the network gives NaN.
            UsageError: the network cannot be evaluated.
        """
        step = trainer.global_step
        # With accumulated gradients several batches end at one step.
        if self._texts.every is not None and step % self._texts.every == 0 and step != self._last_step:
            self._last_step = step
            self._log_now(trainer, pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Evaluate the last weights.

        Args:
            trainer: whose log gets bits per byte and the other figures.
            pl_module: has the network.

        Raises:
            InputError: a text cannot be used.
            ModelFileError: the tokenizer does not belong to the network, or the network gives NaN.
            UsageError: the network cannot be evaluated.
        """
        if self._at_end:
            self._log_now(trainer, pl_module)

    def _log_now(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # Log at once: what a module logs in a training step comes to the loggers only now and then.
        figures, is_new = self._evaluate(trainer, pl_module)
        trainer.callback_metrics.update({key: _tensor(value, pl_module.device) for key, value in figures.items()})
        for logger in trainer.loggers if is_new else ():
            logger.log_metrics(figures, step=trainer.global_step)

    def _evaluate(self, trainer: Trainer, pl_module: LightningModule) -> tuple[dict[str, float], bool]:
        result = self._texts.evaluate_on_first(
            lambda: self._find(pl_module), is_first=trainer.is_global_zero, from_first=trainer.strategy.broadcast
        )
        self.evaluations = self._texts.evaluations
        return result

    def _find(self, pl_module: LightningModule) -> PreTrainedModel:
        try:
            network = attrgetter(self._network)(pl_module)
        except AttributeError as error:
            names = ", ".join(name for name, _ in pl_module.named_children())
            raise UsageError(
                f"{type(pl_module).__name__} has no attribute {self._network!r}: name the network among {names or 'none'}"
            ) from error
        return checked_network(network)


def _tensor(value: float, device: torch.device) -> torch.Tensor:
    # float64 where the device has it, so that no digit is lost on the way to the log.
    return torch.tensor(value, dtype=torch.float32 if device.type == "mps" else torch.float64, device=device)
