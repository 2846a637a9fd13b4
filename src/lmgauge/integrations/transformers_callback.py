"""The numbers of `lmgauge eval` in the log of a `transformers.Trainer`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import PathLike, Text
from lmgauge.base.errors import MissingExtraError, UsageError
from lmgauge.evaluation.results import Evaluation
from lmgauge.integrations.in_memory import NamedTexts
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.training.progress_file import ProgressFile
from lmgauge.numerics.units import perplexity_from_nats

try:
    import torch
    from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
except ImportError as error:
    raise MissingExtraError("transformers", extra="neural") from error

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from lmgauge.models.network.tokens import TokenMap

_LARGEST_LOSS = 700.0  # nats; exp of more is beyond a float

__all__ = ["TransformersPerplexityCallback"]


class TransformersPerplexityCallback(TrainerCallback):
    """Evaluate the network on named texts at each evaluation, every N steps, and at the end of training.

    The log gets `eval_{name}_perplexity`, `_bits_per_byte`, `_bits_per_token`, `_word_perplexity` and `_cross_entropy`, the
    ends of the interval (`_perplexity_low`, `_high`), and the first time `_signature`. They are what `lmgauge eval` prints
    for the network as `save_model` would save it: whole texts, each token once, no padding, no mixed precision.
    `metric_for_best_model="eval_{name}_perplexity"` works.

    Training is not changed: modes, random numbers and gradients are left alone. With several processes the first evaluates
    and the others wait for its numbers (raise `ddp_timeout` for long texts); networks in shards are refused.

    Attributes:
        evaluations: the latest `Evaluation` of each text, by name.

    Example:
        >>> import tempfile
        >>> from tokenizers import Tokenizer, models
        >>> from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, PrinterCallback
        >>> from transformers import Trainer, TrainingArguments
        >>> from lmgauge import Corpus
        >>> letters = Tokenizer(models.BPE({letter: i for i, letter in enumerate("#ab\\n")}, merges=[]))
        >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, bos_token="#", eos_token="#", pad_token="#")
        >>> sizes = {"vocab_size": 4, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 1}
        >>> network = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
        >>> rows = [{"input_ids": [0, 1, 2], "labels": [0, 1, 2]}] * 8
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     arguments = TrainingArguments(folder, max_steps=1, report_to="none", disable_tqdm=True, use_cpu=True)
        ...     trainer = Trainer(network, arguments, train_dataset=rows, processing_class=tokenizer)
        ...     callback = TransformersPerplexityCallback(trainer, {"valid": Corpus.from_strings(["ab", "ba"])})
        ...     trainer.add_callback(callback)
        ...     trainer.remove_callback(PrinterCallback)
        ...     trained = trainer.train()
        >>> callback.evaluations["valid"].events  # two letters, twice
        4
    """

    def __init__(
        self,
        trainer: Trainer,
        texts: Mapping[str, Text],
        *,
        tokenizer: PreTrainedTokenizerBase | TokenMap | None = None,
        options: ScoringOptions | None = None,
        every_n_steps: int | None = None,
        at_end: bool = True,
        prefix: str = "eval_",
        folder: PathLike | None = None,
    ) -> None:
        """Find the texts; `trainer.add_callback` takes the result.

        Args:
            trainer: whose log gets the numbers.
            texts: name -> a path, several, or a `Corpus`.
            tokenizer: the network's; the trainer's `processing_class` if None.
            options: how to score, as the options of `lmgauge eval` do; dtype and device are the network's.
            every_n_steps: evaluate also after each N optimizer steps, whatever the trainer's own evaluations.
            at_end: evaluate also the weights that training ends with, if they were not.
            prefix: of all keys. The trainer looks for `metric_for_best_model` among those that begin with `eval_`.
            folder: gets `progress.jsonl`, whatever the trainer logs, and for each text a run folder, which each evaluation
                replaces.

        Raises:
            InputError: a file is missing.
            UsageError: no texts, no tokenizer, or options out of range.
        """
        tokenizer = tokenizer if tokenizer is not None else getattr(trainer, "processing_class", None)
        if tokenizer is None:
            raise UsageError("the trainer has no processing_class: give the network's tokenizer here, as tokenizer")
        if getattr(trainer, "is_fsdp_enabled", False) or getattr(trainer, "is_deepspeed_enabled", False):
            raise UsageError("the trainer cuts the network into shards (FSDP, DeepSpeed): evaluate its checkpoints instead")
        self.evaluations: dict[str, Evaluation] = {}
        self._trainer = trainer
        self._texts = NamedTexts(texts, tokenizer, options, folder, every_n_steps=every_n_steps, prefix=prefix)
        self._progress = None if folder is None else ProgressFile(folder)
        self._tokens_seen = 0.0, 0  # when a loss was logged last, and how many tokens the trainer had seen
        self._at_end = at_end

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Begin the file of figures, or go on in it where the training is resumed.

        Args:
            args: not used.
            state: how many steps are done; only the first process writes.
            control: is left as it is.
            kwargs: not used; figures are those logged, of any unit.

        Raises:
            OSError: never; a training goes on where the file cannot be written.
        """
        if self._progress is not None and state.is_world_process_zero:
            self._progress.open(resumed=state.global_step > 0)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Close the file of figures.

        Args:
            args: not used.
            state: not used.
            control: is left as it is.
            kwargs: not used; figures of any unit were logged.

        Raises:
            OSError: the disk is full.
        """
        if self._progress is not None:
            self._progress.close()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Evaluate where a multiple of `every_n_steps` is reached.

        Args:
            args: not used.
            state: how many steps are done.
            control: is left as it is.
            kwargs: `model`, and what the event is about; bits per byte and the other figures are logged.

        Raises:
            InputError: a text cannot be used.
            ModelFileError: the tokenizer does not belong to the network, or the network gives NaN.
            UsageError: the network cannot be evaluated.
        """
        if self._texts.every is not None and state.global_step % self._texts.every == 0:
            self._evaluate(state, control, kwargs["model"])

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Evaluate, and add the figures to the trainer's own, among which it looks for the best model.

        Args:
            args: not used.
            state: how many steps are done.
            control: is left as it is.
            kwargs: `model`, and what the event is about; bits per byte and the other figures are logged.

        Raises:
            InputError: a text cannot be used.
            ModelFileError: the tokenizer does not belong to the network, or the network gives NaN.
            UsageError: the network cannot be evaluated.
        """
        kwargs["metrics"].update(self._evaluate(state, control, kwargs["model"]))

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Evaluate the last weights, when the trainer logs the loss of the whole training.

        Not on_train_end: loggers close their files there, and the best weights may be back in the place of the last.

        Args:
            args: not used.
            state: how many steps are done.
            control: is left as it is.
            kwargs: `model`, and what the event is about; bits per byte and the other figures are logged.

        Raises:
            InputError: a text cannot be used.
            ModelFileError: the tokenizer does not belong to the network, or the network gives NaN.
            UsageError: the network cannot be evaluated.
        """
        logs = kwargs["logs"]
        if self._progress is not None and "train_loss" not in logs:  # the mean of all steps is not a point
            self._progress.write(state.global_step, self._numbers(logs, state.num_input_tokens_seen))
        if self._at_end and "train_loss" in logs:
            self._evaluate(state, control, kwargs["model"])

    def _numbers(self, logs: Mapping[str, Any], tokens: int) -> dict[str, float]:
        # Numbers of a log, with the perplexity of the loss and, where the trainer counts tokens, their speed.
        numbers = {name: float(value) for name, value in logs.items() if isinstance(value, (int, float))}
        now, (then, before) = time.monotonic(), self._tokens_seen
        if "loss" in numbers:
            if 0.0 <= numbers["loss"] < _LARGEST_LOSS:  # one that has diverged is the trainer's to speak of
                numbers["perplexity"] = perplexity_from_nats(numbers["loss"])
            if tokens > before and then:
                numbers["tokens_per_second"] = (tokens - before) / max(now - then, 1e-9)
            self._tokens_seen = now, tokens
        return numbers

    def _evaluate(self, state: TrainerState, control: TrainerControl, network: Any) -> dict[str, float]:
        figures, is_new = self._texts.evaluate_on_first(
            lambda: network, is_first=state.is_world_process_zero, from_first=_from_first
        )
        is_first_time = not self.evaluations
        self.evaluations = self._texts.evaluations
        if is_new:
            entry: dict[str, Any] = dict(figures)
            if is_first_time:
                entry |= self._texts.signatures()
            # Logging takes back the wish to log, which may be for the training loss of this very step.
            wanted = control.should_log
            self._trainer.log(entry)
            control.should_log = wanted
        return figures


def _from_first(value: Any) -> Any:
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return value
    box = [value]
    torch.distributed.broadcast_object_list(box, src=0)
    return box[0]
