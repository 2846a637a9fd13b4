"""The tokens of a neural model in the ids of lmgauge's vocabularies, where `<unk>`, `<s>` and `</s>` are 0, 1 and 2."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import FirstToken, NgramContext
from lmgauge.base.decoding import decode
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.base.files import read_regular
from lmgauge.models.protocol import read_config
from lmgauge.scores.special_tokens import SPECIAL_NAME
from lmgauge.text.encoding import ReservedPolicy
from lmgauge.text.library_tokenizers import HuggingFaceTokenizer, check_largest_id
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import load_tokenizer
from lmgauge.text.tokens import TOKENIZER_FILE, Tokenizer, Tokens, token_bytes
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS, UNK, Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from lmgauge.models.network.chat_template import ChatTemplate
    from lmgauge.models.network.options import ScoringOptions

T = TypeVar("T")
CONFIG_KEY = "lmgauge"
NO_ID = -1
_LARGEST_TEMPLATE = 1 << 20  # bytes: published ones have up to 20 kB


class LineEndTokenizer:
    """A tokenizer that takes the end of a line as the text it is: a newline, with no byte of the segment's own."""

    kernel: int | None = None

    def __init__(self, inner: Tokenizer) -> None:
        self._inner = inner
        self.name, self.unit, self.fingerprint = inner.name, inner.unit, inner.fingerprint

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the tokens of segments, each line with its newline."""
        if not segments.terminator:
            return self._inner.tokenize(segments)
        tokens = self._inner.tokenize(replace(segments, ends=segments.ends + 1, terminator=0))
        lengths = np.repeat(segments.ends - segments.starts, tokens.counts)
        return replace(tokens, span_ends=np.minimum(tokens.span_ends, lengths))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the text that tokens stand for, its line end included."""
        return self._inner.detokenize(tokens)

    def token_bytes(self, tokens: Sequence[str]) -> list[bytes]:
        """Return the bytes that each token stands for."""
        return token_bytes(self._inner, tokens)

    def settings(self) -> dict[str, object]:
        """Return what the tokenizer inside is."""
        return self._inner.settings()

    def files(self) -> dict[str, bytes]:
        """Return the files of the tokenizer inside."""
        return self._inner.files()


@dataclass(frozen=True)
class TokenMap:
    """How text becomes the ids that a network knows."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary  # token strings and lmgauge's ids; closed where the network has no unknown token
    # int64 [vocabulary], the network's own id of each; -1 for `<unk>`, `<s>` or `</s>` where it has none
    network_ids: NDArray[np.int64]
    trained_here: bool = False  # whether lmgauge trained the network, and so `</s>` is what ends its segments
    running: bool = False  # whether its context ran on over the ends of segments in training
    reserved: ReservedPolicy = "refuse"  # what a `<unk>`, `<s>` or `</s>` in the text means
    # the network's ids that its tokenizer sets before a text and behind it; some protocols show them
    around: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    template: str | None = None  # its tokenizer's chat template
    named: Mapping[str, str] = field(default_factory=dict)  # special tokens as templates name them: bos_token, ...
    specials: frozenset[str] = frozenset()  # the strings of all special tokens
    framing: ChatTemplate | None = None  # the template that turns of a conversation are set into, where they are

    @property
    def puts_first(self) -> FirstToken | Literal["other"]:
        """Return what its tokenizer puts before a text: `bos`, `eos`, nothing (`unscored`), or `other`."""
        known: dict[object, FirstToken] = {((self.eos,), ()): "eos", ((self.bos,), ()): "bos", ((), ()): "unscored"}
        return known.get(self.around, "other")

    @property
    def bos(self) -> int:
        """Return the network's id of the token that begins a text; -1 if it has none."""
        return int(self.network_ids[BOS])

    @property
    def eos(self) -> int:
        """Return the network's id of the token that ends a text; -1 if it has none."""
        return int(self.network_ids[EOS])

    @property
    def predicted_ids(self) -> NDArray[np.int64]:
        """Return int64 [vocabulary], `network_ids` with none twice."""
        # What begins texts and ends them is predicted as their end.
        ids = self.network_ids.copy()
        if ids[BOS] == ids[EOS]:
            ids[BOS] = NO_ID
        return ids

    def reading_line_ends(self) -> TokenMap:
        """Return the same with line ends taken as text."""
        return replace(self, tokenizer=LineEndTokenizer(self.tokenizer))

    def framed(self, options: ScoringOptions, name: str) -> TokenMap:
        """Return the same for the turns of conversations; itself where no template is known or named."""
        template = chat_template(options, name, self.template, self.named, self.specials)
        if template is not None and self.trained_here:
            raise UsageError(f"template: {name} was trained here, on text without special tokens: leave the template out")
        return self if template is None else replace(self, framing=template)

    @cached_property
    def own_ids(self) -> NDArray[np.uint32]:
        """lmgauge's id of each of the network's ids, uint32 [largest + 1]."""
        own = np.full(int(self.network_ids.max(initial=0)) + 1, UNK, np.uint32)
        known = np.flatnonzero(self.network_ids != NO_ID)  # where one token begins and ends texts, it is their end
        own[self.network_ids[known]] = known
        return own

    def with_reserved(self, reserved: ReservedPolicy) -> TokenMap:
        """Return the same with another meaning of reserved tokens in the text."""
        return replace(self, reserved=reserved)

    def check_head(self, size: int, name: str) -> TokenMap:
        """Return the map for an output layer of `size` rows."""
        # Those without a token get names, as they too have probability.
        largest = int(self.network_ids.max(initial=NO_ID))
        if largest >= size:
            raise ModelFileError(
                f"{name}: the tokenizer has a token with id {largest}, but the output layer ends at {size - 1}; "
                "the tokenizer does not belong to this model"
            )
        free = np.setdiff1d(np.arange(size), self.network_ids)
        if not len(free):
            return self
        if self.trained_here:
            raise ModelFileError(
                f"{name}: the tokenizer has {len(self.vocabulary):,} tokens and the output layer {size:,} rows; the "
                "tokenizer is not the one this model was trained with"
            )
        names = [f"<row {row}>" for row in free.tolist()]
        vocabulary = Vocabulary.from_tokens([*self.vocabulary.tokens[3:], *names], closed=self.vocabulary.closed)
        return replace(self, vocabulary=vocabulary, network_ids=np.concatenate((self.network_ids, free)))


@dataclass
class TrainedHere:
    """What the config.json of a network that lmgauge trained says of its tokens."""

    tokenizer: dict[str, Any]
    vocabulary: Literal["open", "closed"]
    context: NgramContext
    reserved: ReservedPolicy
    vocabulary_fingerprint: str | None = None


@dataclass
class _Training:
    history: list[dict[str, int | float]]

    def __post_init__(self) -> None:
        if not all({"epoch", "learning_rate"} <= epoch.keys() for epoch in self.history):
            raise ValueError("an epoch has no number, or no learning rate")


@dataclass
class _Curves:
    training: _Training


def trained_tokens(path: Path, settings: TrainedHere) -> TokenMap:
    """Return the tokens of a network that lmgauge trained: its ids are the vocabulary's."""
    if not (path / TOKENIZER_FILE).is_file():
        raise ModelFileError(f"{path}: has no {TOKENIZER_FILE}; copy the whole folder")
    try:
        tokens = HuggingFaceTokenizer.from_file(path / TOKENIZER_FILE).strings
        vocabulary = Vocabulary.from_tokens(tokens[3:], closed=settings.vocabulary == "closed")
    except InputError as error:
        raise ModelFileError(f"{path}: {TOKENIZER_FILE} is damaged: {error}") from error
    if tuple(tokens[:3]) != SPECIAL_TOKENS:
        raise ModelFileError(
            f"{path}: {TOKENIZER_FILE} does not begin with {', '.join(SPECIAL_TOKENS)}; it is another model's"
        )
    if settings.vocabulary_fingerprint not in (None, vocabulary.ids_fingerprint):
        raise ModelFileError(
            f"{path}: {TOKENIZER_FILE} is not the one this model was trained with; copy the whole folder again"
        )
    tokenizer, ids = load_tokenizer(settings.tokenizer, path), np.arange(len(vocabulary), dtype=np.int64)
    running = settings.context == "stream"
    return TokenMap(tokenizer, vocabulary, ids, trained_here=True, running=running, reserved=settings.reserved)


def foreign_tokens(tokenizer: PreTrainedTokenizerBase, name: str) -> TokenMap:
    """Return the tokens of any tokenizer of the `transformers` library that has a fast form."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelFileError(
            f"{name}: its tokenizer ({type(tokenizer).__name__}) has no {TOKENIZER_FILE} form, so no span "
            f"can be checked; convert it and save {TOKENIZER_FILE} beside the model"
        )
    try:
        by_string: dict[str, int] = {token: int(number) for token, number in backend.get_vocab(True).items() if token}
        check_largest_id(by_string)
        ours = HuggingFaceTokenizer(backend.to_str().encode(), name)
        special = (tokenizer.unk_token, tokenizer.bos_token, tokenizer.eos_token)
        ids = [NO_ID if token is None else by_string.get(str(token), NO_ID) for token in special]
        if ids[UNK] in (ids[BOS], ids[EOS]):
            ids[UNK] = NO_ID  # some tokenizers name their end of text here, but no text ever becomes it
        skipped = {token for token in by_string if by_string[token] in ids and by_string[token] != NO_ID}
        ordered = sorted((number, token) for token, number in by_string.items() if token not in skipped)
        vocabulary = Vocabulary.from_tokens((_distinct(token) for _, token in ordered), closed=ids[UNK] == NO_ID)
    except InputError as error:
        raise ModelFileError(f"{name}: its tokenizer cannot be used: {error}") from error
    # What a text spells like a special token is a word that the tokenizer does not know: it is not a special token of ours.
    numbers = np.array([*ids, *(number for number, _ in ordered)], np.int64)
    around, templates = _set_around(tokenizer), tokenizer.chat_template
    return TokenMap(
        *(ours, vocabulary, numbers),
        reserved="escape",
        around=around,
        template=templates.get("default") if isinstance(templates, dict) else templates,
        named={name: str(token) for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)},
        specials=frozenset(tokenizer.all_special_tokens)
        | {token.content for token in backend.get_added_tokens_decoder().values() if token.special},
    )


def _set_around(tokenizer: PreTrainedTokenizerBase) -> tuple[tuple[int, ...], tuple[int, ...]]:
    # Ids that a tokenizer sets before a text and behind it, as it is called without further options.
    whole, own = (tuple(tokenizer("a", add_special_tokens=special)["input_ids"]) for special in (True, False))
    before = next((i for i in range(len(whole) - len(own) + 1) if whole[i : i + len(own)] == own), 0)
    return whole[:before], whole[before + len(own) :]


def tokens_of(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str) -> TokenMap:
    """Return the tokens of a network in memory: those of its folder if lmgauge trained it, else those of the tokenizer."""
    # tokenizer: its own.
    settings = trained_here(getattr(network.config, CONFIG_KEY, None), name, TrainedHere)
    if settings is None:
        return foreign_tokens(tokenizer, name)
    for folder in (network.config.name_or_path, getattr(tokenizer, "name_or_path", "")):
        if folder and (Path(folder) / TOKENIZER_FILE).is_file():
            return trained_tokens(Path(folder), settings)
    raise UsageError(
        f"{name}: was trained by lmgauge, and the folder with its tokens is not to be found: load it with load_model"
    )


def chat_template(
    options: ScoringOptions, name: str, own: str | None, named: Mapping[str, str], specials: Collection[str] | None
) -> ChatTemplate | None:
    """Return the chat template that options name, or a model's own; None where there is none."""
    # own: its source; specials: None where nobody tells them, and then what looks like them in the source is taken for them.
    from lmgauge.models.network.chat_template import ChatTemplate

    source = own if options.template is None else _read_template(Path(options.template))
    if source is None:
        return None
    arguments = options.template_arguments
    if specials is None:
        known = {*named, *arguments}
        if untold := [token for token in ("bos_token", "eos_token") if token not in known and token in source]:
            raise UsageError(f"{name}: does not tell the {untold[0]} of its chat template: --template-args {untold[0]}=...")
        specials = {*named.values(), *map(str, arguments.values()), *SPECIAL_NAME.findall(source)}
    where = name if options.template is None else os.fspath(options.template)
    return ChatTemplate(source, name=where, tokens=named, arguments=arguments, specials=specials)


def _read_template(path: Path) -> str:
    try:
        return read_regular(path, _LARGEST_TEMPLATE).decode()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a chat template: {getattr(error, 'strerror', None) or error}") from error


def _distinct(token: str) -> str:
    return f"{token} (text)" if token in SPECIAL_TOKENS else token


def trained_here(settings: object, where: object, kind: type[T]) -> T | None:
    """Return what a configuration says under "lmgauge"; None for a network from elsewhere."""
    if not isinstance(settings, dict):
        return None
    return decode(settings, kind, where, "what a trained network says of itself", "copy the model again", ModelFileError)


def history_of(path: Path) -> list[dict[str, int | float]]:
    """Return the figures of each epoch of the training of a network, from its folder; empty if it was not trained here."""
    curves = trained_here(read_config(path).get(CONFIG_KEY), path / "config.json", _Curves)
    return [] if curves is None else curves.training.history
