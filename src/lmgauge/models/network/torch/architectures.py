"""Feed-forward and recurrent language models as `transformers` has them.

The file stands alone (torch and transformers, nothing else): it is copied into every checkpoint, so that
`AutoModelForCausalLM.from_pretrained(path, trust_remote_code=True)` loads one where lmgauge is not installed.

A model is a base, which turns ids into what the output layer takes, and the output layer `lm_head`. Both take and return a
`state`: given the state that came back for one window, the next window is read as if both were one.

Sources:
    Bengio, Ducharme, Vincent and Jauvin 2003, "A neural probabilistic language model", JMLR 3, equation 1.
    Elman 1990, "Finding structure in time"; Mikolov et al. 2010, "Recurrent neural network based language model".
    Hochreiter and Schmidhuber 1997; Zaremba, Sutskever and Vinyals 2014, "Recurrent neural network regularization".
    Cho et al. 2014, "Learning phrase representations using RNN encoder-decoder" (GRU).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.utils.generic import ModelOutput

State = tuple[Tensor, ...]
CELLS = ("rnn", "lstm", "gru")


_SIZES = {"vocab_size": 10_000, "embedding_size": 200, "hidden_size": 200, "dropout": 0.0, "initializer_range": 0.1}
_COMMON: dict[str, Any] = _SIZES | {"bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False, "use_cache": False}


class FeedForwardConfig(PretrainedConfig):
    """Sizes of a feed-forward n-gram model."""

    model_type = "lmgauge_ffnn"
    keys_to_ignore_at_inference = ["state"]  # noqa: RUF012 - as transformers declares it

    def __init__(self, **sizes: Any) -> None:
        super().__init__(**_COMMON | {"order": 5, "direct_connections": False} | sizes)


class RecurrentConfig(PretrainedConfig):
    """Sizes of a recurrent model."""

    # dropout: share of units dropped between embeddings, layers and output, never from one step to the next.

    model_type = "lmgauge_rnn"
    keys_to_ignore_at_inference = ["state"]  # noqa: RUF012 - as transformers declares it

    def __init__(self, **sizes: Any) -> None:
        chosen = _COMMON | {"cell": "lstm", "num_layers": 2, "nonlinearity": "sigmoid"} | sizes
        if chosen["cell"] not in CELLS:
            raise ValueError(f"cell {chosen['cell']!r} is not known: it is one of {', '.join(CELLS)}")
        if chosen["nonlinearity"] not in ("sigmoid", "tanh"):
            raise ValueError(f"nonlinearity {chosen['nonlinearity']!r} is not known: it is sigmoid or tanh")
        super().__init__(**chosen | {"num_hidden_layers": chosen["num_layers"]})


@dataclass
class StatefulOutput(ModelOutput):
    """What a language model returns, or its base: the fields that are not None."""

    loss: Tensor | None = None  # mean cross-entropy in nats of the labels that count, where labels were given
    logits: Tensor | None = None  # of a model: float [batch, time, vocabulary]
    last_hidden_state: Tensor | None = None  # of a base: float [batch, time, width], exactly what `lm_head` takes
    state: State | None = None  # what to hand to the next window; of no use after padding


class _Base(PreTrainedModel):
    base_model_prefix = "model"

    def _init_weights(self, module: nn.Module) -> None:
        for parameter in module.parameters(recurse=False):
            nn.init.uniform_(parameter, -self.config.initializer_range, self.config.initializer_range)

    def get_input_embeddings(self) -> nn.Module:
        base: Any = getattr(self, self.base_model_prefix, self)
        embeddings: nn.Embedding = base.embed_tokens
        return embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        # value: weights [vocabulary, width].
        base: Any = getattr(self, self.base_model_prefix, self)
        base.embed_tokens = value


class FeedForwardModel(_Base):
    """Ids to the vectors the output layer takes: tanh(d + H x), x the vectors of the last `order - 1` words."""

    # Words before the first are `<s>`. The state is the last `order - 1` ids, int64 [batch, order - 1].

    config_class = FeedForwardConfig

    def __init__(self, config: FeedForwardConfig) -> None:
        super().__init__(config)
        self.context_size = config.order - 1
        if self.context_size < 1:
            raise ValueError(f"order {config.order}: a word is predicted from at least one before it; give 2 or more")
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size)
        self.hidden = nn.Linear(self.context_size * config.embedding_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)
        PreTrainedModel.post_init(self)

    def forward(self, input_ids: Tensor, state: State | None = None, **ignored: Any) -> StatefulOutput:
        """Return vectors [batch, time, width] for the ids, and the last ids as state."""
        # input_ids: int64 [batch, time].
        batch, time = input_ids.shape
        if state is None:
            state = (input_ids.new_full((batch, self.context_size), self.config.bos_token_id),)
        known = torch.cat((state[0], input_ids), dim=1)
        vectors = self.dropout(self.embed_tokens(known[:, 1:]))
        windows = vectors.unfold(1, self.context_size, 1).transpose(2, 3).reshape(batch, time, -1)
        output = self.dropout(torch.tanh(self.hidden(windows)))
        if self.config.direct_connections:
            output = torch.cat((output, windows), dim=2)
        return StatefulOutput(last_hidden_state=output, state=(known[:, -self.context_size :],))


class RecurrentModel(_Base):
    """Ids to the vectors the output layer takes, through layers of Elman, LSTM or GRU cells."""

    # Dropout stands where Zaremba et al. put it: before each layer and after the last, on no recurrent connection. The
    # state is (hidden,) or, of an LSTM, (hidden, cell), each float [layers, batch, width].

    config_class = RecurrentConfig

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size)
        self.dropout = nn.Dropout(config.dropout)
        kinds: dict[str, type[nn.RNN | nn.LSTM | nn.GRU]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
        between = config.dropout if config.num_layers > 1 else 0.0  # torch warns of a dropout between no layers
        self.layers = kinds[config.cell](
            config.embedding_size, config.hidden_size, config.num_layers, batch_first=True, dropout=between
        )
        PreTrainedModel.post_init(self)

    def forward(self, input_ids: Tensor, state: State | None = None, **ignored: Any) -> StatefulOutput:
        """Return vectors [batch, time, width] for the ids, and the state after the last of them."""
        # input_ids: int64 [batch, time].
        vectors = self.dropout(self.embed_tokens(input_ids))
        if self.config.cell == "rnn" and self.config.nonlinearity == "sigmoid":
            outputs, final = self._sigmoid_layers(vectors, state)
        elif self.config.cell == "lstm":
            outputs, final = self.layers(vectors, state)
        else:
            outputs, last = self.layers(vectors, None if state is None else state[0])
            final = (last,)
        return StatefulOutput(last_hidden_state=self.dropout(outputs), state=final)

    def _sigmoid_layers(self, inputs: Tensor, state: State | None) -> tuple[Tensor, State]:
        # torch has tanh and ReLU networks only; the parameters are its own, the loop over time is ours.
        last = []
        for layer in range(self.config.num_layers):
            recurrent = getattr(self.layers, f"weight_hh_l{layer}")
            bias = getattr(self.layers, f"bias_ih_l{layer}") + getattr(self.layers, f"bias_hh_l{layer}")
            from_below = functional.linear(inputs, getattr(self.layers, f"weight_ih_l{layer}"), bias)
            hidden = from_below.new_zeros(from_below.shape[0], from_below.shape[2]) if state is None else state[0][layer]
            steps = []
            for before in from_below.unbind(1):
                hidden = torch.sigmoid(before + functional.linear(hidden, recurrent))
                steps.append(hidden)
            last.append(hidden)
            inputs = torch.stack(steps, dim=1)
            if layer + 1 < self.config.num_layers:
                inputs = self.dropout(inputs)
        return inputs, (torch.stack(last),)


class _CausalModel(_Base, GenerationMixin):
    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}  # noqa: RUF012 - as transformers declares it
    _is_stateful = True  # what it remembers cannot be cut back to an earlier word
    takes_state = True  # takes and gives a state that stands for all that was shown before
    base_class: type[_Base]

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # a cache of keys and values, which only attention has

    def __init__(self, config: PretrainedConfig, width: int) -> None:
        super().__init__(config)
        if config.tie_word_embeddings and width != config.embedding_size:
            raise ValueError(
                f"tied embeddings need an output layer as wide as the word vectors: {width} is not {config.embedding_size}"
            )
        self.model = self.base_class(config)
        self.lm_head = nn.Linear(width, config.vocab_size)
        PreTrainedModel.post_init(self)

    def get_output_embeddings(self) -> nn.Module:
        head: nn.Linear = self.lm_head
        return head

    def set_output_embeddings(self, value: nn.Linear) -> None:
        # value: weights [vocabulary, width].
        self.lm_head = value

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        state: State | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **ignored: Any,
    ) -> StatefulOutput:
        # input_ids: int64 [batch, time]; attention_mask: [batch, time], 0 for padding, which may stand at the right only;
        # labels: int64 [batch, time], the ids themselves (position t predicts label t + 1); -100 is not counted.
        if attention_mask is not None and bool((attention_mask[:, 1:] > attention_mask[:, :-1]).any()):
            raise ValueError(
                "padding at the left is read as text by a model that reads from left to right; pad at the right"
            )
        output = self.model(input_ids, state=state)
        logits = self.lm_head(output.last_hidden_state)
        loss = None
        if labels is not None:
            targets = labels[:, 1:]
            if attention_mask is not None:
                targets = targets.masked_fill(attention_mask[:, 1 : labels.shape[1]] == 0, -100)
            rows = logits[:, :-1].reshape(-1, logits.shape[-1]).float()
            total = functional.cross_entropy(rows, targets.reshape(-1), ignore_index=-100, reduction="sum")
            loss = total / (num_items_in_batch if num_items_in_batch is not None else (targets != -100).sum())
        return StatefulOutput(loss=loss, logits=logits, state=output.state)

    def prepare_inputs_for_generation(
        self, input_ids: Tensor, *rest: Any, attention_mask: Tensor | None = None, **options: Any
    ) -> dict[str, Any]:
        # What `forward` needs for the next word: all ids at first, then the last one and the state.
        # input_ids: int64 [batch, time]; attention_mask: [batch, time].
        state = options.get("state")
        inputs = input_ids if state is None else input_ids[:, -1:]
        return {"input_ids": inputs, "attention_mask": attention_mask, "state": state}

    def _update_model_kwargs_for_generation(
        self, outputs: Any, model_kwargs: dict[str, Any], *rest: Any, **options: Any
    ) -> dict[str, Any]:
        return model_kwargs | {"state": outputs.state}


class FeedForwardForCausalLM(_CausalModel):
    """The feed-forward n-gram model of Bengio et al. 2003."""

    config_class = FeedForwardConfig
    base_class = FeedForwardModel

    def __init__(self, config: FeedForwardConfig) -> None:
        direct = (config.order - 1) * config.embedding_size if config.direct_connections else 0
        super().__init__(config, config.hidden_size + direct)


class RecurrentForCausalLM(_CausalModel):
    """A recurrent language model: Elman, LSTM or GRU."""

    config_class = RecurrentConfig
    base_class = RecurrentModel

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config, config.hidden_size)


def register_architectures() -> None:
    """Make the models known to `AutoConfig`, `AutoModel` and `AutoModelForCausalLM`; may be called more than once.

    Example:
        >>> from transformers import AutoConfig
        >>> register_architectures()
        >>> AutoConfig.for_model("lmgauge_rnn", hidden_size=8).cell
        'lstm'
    """
    classes: list[tuple[Any, Any, Any]] = [
        (FeedForwardConfig, FeedForwardModel, FeedForwardForCausalLM),
        (RecurrentConfig, RecurrentModel, RecurrentForCausalLM),
    ]
    for config, base, causal in classes:
        AutoConfig.register(config.model_type, config, exist_ok=True)
        AutoModel.register(config, base, exist_ok=True)
        AutoModelForCausalLM.register(config, causal, exist_ok=True)
        config.register_for_auto_class()
        base.register_for_auto_class("AutoModel")
        causal.register_for_auto_class("AutoModelForCausalLM")
