"""Models in GGUF files, quantized or not, scored by llama.cpp on this machine; and their tokens, by its own tokenizer."""

from __future__ import annotations

import itertools
import mmap
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.base.files import digest, file_sha256
from lmgauge.base.threads import thread_count
from lmgauge.models.network.engine import Job, Progress, unheard
from lmgauge.models.network.gguf.network import GgufNetwork, log_sum_exp, of_targets
from lmgauge.models.network.model import NetworkModel
from lmgauge.models.network.options import ScoringOptions, resolve_policy
from lmgauge.models.network.parallel import workers_for
from lmgauge.models.network.tokens import NO_ID, TokenMap
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.spans import approximate, place
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Cut, TokenizerBase, Tokens, TokenUnit
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS, UNK, Vocabulary

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_HEAD = struct.Struct("<4sIQQ")
_LENGTH = struct.Struct("<Q")
_KIND = struct.Struct("<I")
_STRING, _LIST = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a number of each kind
_MOST_SETTINGS = 1 << 16


class GgufTokenizer(TokenizerBase):
    """The tokenizer of a GGUF file; no special token is added to a text, and none is read into one."""

    # Spans are the bytes that a token stands for. A segment is given back exactly if what its tokens stand for is its text,
    # but for the space that some tokenizers set before the first word. It has no files: it is a part of the model's own.

    PREFIX = "gguf@"
    unit: TokenUnit = "subword"
    kernel: int | None = None

    def __init__(self, network: GgufNetwork, names: Sequence[str], sha256: str) -> None:
        self._network, self._sha256 = network, sha256
        self.name = self.PREFIX + sha256[:6]
        encoded = [name.encode() for name in names]
        self._bounds = np.concatenate(([0], np.cumsum([len(name) for name in encoded]))).astype(np.int64)
        self._strings = np.frombuffer(b"".join(encoded), np.uint8)
        self._ids = {name: token for token, name in enumerate(names)}
        self._pieces: dict[int, bytes] = {}
        self._adds_space = self._spelled(network.tokenize(b"a")) == b" a"

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the tokens of `segments`."""
        ids, counts, span_ends, lossy = self.cut(segments)
        return Tokens(self._strings, self._bounds[ids], self._bounds[ids + 1], counts, span_ends, lossy)

    def cut(self, segments: Segments, *, special: bool = False) -> Cut:
        """Return the ids of `segments`, with byte spans; `special`: what is spelled like a special token is that token."""
        by_segment: list[list[int]] = []
        spans: list[int] = []
        lossy = np.zeros(len(segments), bool)
        for i in range(len(segments)):
            text = segments.text(i)
            tokens = self._network.tokenize(text, special=special) if text else []
            pieces = list(map(self._piece, tokens))
            if special:  # the space before the first word is set behind special tokens, too
                opens = [self._adds_space, *(self._adds_space and not piece for piece in pieces)]
                whole = [
                    piece or self._network.piece(token, special=True) for piece, token in zip(pieces, tokens, strict=True)
                ]
                pieces = [piece.removeprefix(b" ") if first else piece for first, piece in zip(opens, whole, strict=False)]
            ends = place(pieces, text)
            lossy[i] = ends is None
            spans += approximate(pieces, text) if ends is None else ends
            by_segment.append(tokens)
        ids = np.array([token for tokens in by_segment for token in tokens], np.int64)
        counts = np.array([len(tokens) for tokens in by_segment], np.int64)
        return Cut(ids, counts, np.array(spans, np.int64), lossy)

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the text that tokens stand for, without the space set before it; unknown strings stand as they are."""
        whole = b"".join(self.token_bytes(tokens))
        return (whole.removeprefix(b" ") if self._adds_space else whole).decode("utf-8", "replace")

    def token_bytes(self, tokens: Sequence[str]) -> list[bytes]:
        """Return the bytes that each token stands for; a string that is not in the vocabulary stands for itself."""
        known = [self._ids.get(token, NO_ID) for token in tokens]
        return [token.encode() if i == NO_ID else self._piece(i) for token, i in zip(tokens, known, strict=True)]

    def settings(self) -> dict[str, object]:
        """Return the name, and the SHA-256 of what the file says of it."""
        return {"name": self.name, "sha256": self._sha256}

    @property
    def fingerprint(self) -> str:
        """Return six hexadecimal digits of the SHA-256."""
        return self._sha256[:6]

    def _spelled(self, tokens: Sequence[int]) -> bytes:
        return b"".join(map(self._piece, tokens))

    def _piece(self, token: int) -> bytes:
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = self._network.piece(token)
        return piece


def gguf_tokens(network: GgufNetwork) -> TokenMap:
    """Return tokens and ids of a GGUF file."""
    strings = network.strings()
    ids = [network.unknown_id(), network.token_id("bos"), network.token_id("eos")]
    if ids[UNK] in (ids[BOS], ids[EOS]):
        ids[UNK] = NO_ID
    names = distinct_names(strings)
    for token, name in zip(ids, SPECIAL_TOKENS, strict=True):
        if token != NO_ID:
            names[token] = name
    others = [token for token in range(network.size) if token not in ids]
    try:
        tokenizer = GgufTokenizer(network, names, tokenizer_digest(network.path))
        vocabulary = Vocabulary.from_tokens([names[token] for token in others], closed=ids[UNK] == NO_ID)
    except InputError as error:
        raise ModelFileError(f"{network.path}: its vocabulary cannot be used: {error}") from error
    before = (ids[BOS],) if network.adds_bos else ()
    of_templates = zip(("unk_token", "bos_token", "eos_token"), ids, strict=True)
    return TokenMap(
        *(tokenizer, vocabulary, np.array([*ids, *others], np.int64)),
        around=(before, ()),
        template=chat_template(network.path),
        named={name: strings[token] for name, token in of_templates if token != NO_ID},
        # Added tokens that are not names, such as two line ends, end no turn.
        specials=frozenset(s for token, s in enumerate(strings) if s.strip("▁ \t\n") and network.is_special(token)),
    )


def distinct_names(strings: Sequence[str]) -> list[str]:
    """Return a name for each token."""
    # Its string, unless that is empty, taken, or one of ours for `<unk>`, `<s>` and `</s>`.
    # distinct_names(["a", "a", "", "<s>"]) -> ['a', 'a (id 1)', '<row 2>', '<s> (text)']
    taken = set(SPECIAL_TOKENS)
    names = []
    for token, string in enumerate(strings):
        name = string or f"<row {token}>"
        if name in SPECIAL_TOKENS:
            name = f"{name} (text)"
        if name in taken:
            name = f"{name} (id {token})"
        taken.add(name)
        names.append(name)
    return names


def chat_template(path: Path) -> str | None:
    """Return the chat template in a GGUF file's header, the default one if it has several; None if it has none."""
    value = dict(_settings(path)).get(b"tokenizer.chat_template", b"")
    return (
        value[_KIND.size + _LENGTH.size :].decode("utf-8", "replace") if value[: _KIND.size] == _KIND.pack(_STRING) else None
    )


def tokenizer_digest(path: Path) -> str:
    """Return SHA-256 over all settings of a GGUF file's header that its tokenizer depends on, as hexadecimal digits."""
    # path: the file, of which only the bytes of the header are read.
    own = [setting for setting in sorted(_settings(path)) if setting[0].startswith(b"tokenizer.ggml.")]
    return digest(*(part for setting in own for text in setting for part in (_LENGTH.pack(len(text)), text)))


def _settings(path: Path) -> Iterator[tuple[bytes, bytes]]:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            magic, version, _, count = _HEAD.unpack_from(data, 0)
            if magic != MAGIC or version not in _VERSIONS or count > _MOST_SETTINGS:
                raise ValueError("not a GGUF file of version 2 or 3, or damaged")
            at = _HEAD.size
            for _ in range(count):
                end = _after_string(data, at)
                name = data[at + _LENGTH.size : end]
                at = _after_value(data, end)
                yield name, data[end:at]
    except (OSError, ValueError, struct.error, KeyError) as error:
        raise ModelFileError(f"{path}: its header is damaged: {error}") from error


def _after_string(data: mmap.mmap, at: int) -> int:
    (length,) = _LENGTH.unpack_from(data, at)
    end: int = at + _LENGTH.size + length
    if end > len(data):
        raise ValueError("a string reaches beyond its end")
    return end


def _after_value(data: mmap.mmap, at: int) -> int:
    (kind,) = _KIND.unpack_from(data, at)
    at += _KIND.size
    if kind == _STRING:
        return _after_string(data, at)
    if kind != _LIST:
        return at + _SIZES[kind]
    (kind,) = _KIND.unpack_from(data, at)
    (count,) = _LENGTH.unpack_from(data, at + _KIND.size)
    at += _KIND.size + _LENGTH.size
    if kind == _STRING:
        for _ in range(count):
            at = _after_string(data, at)
        return at
    end: int = at + count * _SIZES[kind]
    if end > len(data):
        raise ValueError("a list reaches beyond its end")
    return end


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
    if options.kv_cache is not None:
        network.check_cache(options.kv_cache)
    if options.first_token is None and options.protocol is None:
        options = replace(options, first_token="bos" if tokens.bos != NO_ID and network.adds_bos else "uniform")
    return resolve_policy(options, tokens, network.positions)


# -- llama.cpp as an engine: short segments beside each other, and what is kept of a context used again ---------------

# Tokens of a context that are shown together where whole distributions are asked for. A context is cut into such parts from
# its beginning, so that what is computed depends on nothing but the context, and its full parts can be kept.
_PART = 32
_ROWS = 8  # distributions at a time
# Tokens of short contexts that are shown together. Each is compared with all places in use, which the library counts in
# steps of 256: more of them would cost more than they gain.
_TOGETHER = 256


class GgufEngine:
    """Scores jobs in order, several that are short at a time, showing no token twice that the network still holds."""

    carries_state = False
    journal = log_distributions = None
    # What is shown of a running context at a time, and so the rounding, depends on nothing but the text.
    segment_by_segment, computes_elsewhere = True, False
    # Products of other shapes round in another order, and the activations of quantized layers are rounded to eight bits.
    tolerance = 2e-2

    def __init__(self, network: GgufNetwork, policy: ContextPolicy) -> None:
        self._network, self._policy = network, policy
        self.progress: Progress = unheard
        self._held = np.zeros(0, np.int32)  # full parts of the context that the network holds, for log_distribution

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Compute with this number of threads from now on."""
        # count: threads of the processor.
        self._network.set_threads(count)
        yield

    def score(self, jobs: Sequence[Job]) -> list[NDArray[np.float64]]:
        """Return the log-probabilities of each job's targets, nats, float64 [predicted] each."""
        return [logprob for pack in self._packs(jobs) for logprob in self._scored(pack)]

    def _packs(self, jobs: Iterable[Job]) -> Iterator[list[Job]]:
        # Jobs to be shown together: those that fit into one batch, and alone what is longer or goes on.
        most, tokens = self._network.most_contexts, min(_TOGETHER, self._network.at_a_time)
        pack: list[Job] = []
        for job in jobs:
            full = len(pack) == most or sum(len(one.ids) for one in (*pack, job)) > tokens
            if pack and (full or pack[0].stream is not None or job.stream is not None):
                yield pack
                pack = []
            pack.append(job)
        if pack:
            yield pack

    def _scored(self, pack: Sequence[Job]) -> list[NDArray[np.float64]]:
        targets = np.concatenate([job.targets for job in pack]).astype(np.int32)
        logprob = of_targets(self._logits(pack, np.ones(len(targets), bool)), targets)
        if np.isnan(logprob).any():
            self._blame(pack)
        self.progress(len(logprob))
        return np.split(logprob, np.cumsum([len(job.targets) for job in pack])[:-1])

    def _logits(self, pack: Sequence[Job], wanted: NDArray[np.bool_]) -> Iterator[NDArray[np.float32]]:
        # Show jobs and yield the logits, float32 [n, size], of those targets of all of them that are wanted.
        network = self._network
        shown = [self._new(pack[0])] if len(pack) == 1 else [job.ids.astype(np.int32) for job in pack]
        asked = _at_the_ends(shown, pack, wanted)
        if len(pack) == 1:
            yield from network.logits(shown[0], asked)
        else:
            network.begin(sum(map(len, shown)), self._policy.kv_cache)
            network.holder = None
            yield network.logits_of_many(shown, asked)

    def _new(self, job: Job) -> NDArray[np.int32]:
        # Make the network ready for a job, and return what it has not been shown yet, int32 [n].
        network, known = self._network, job.known
        if not known or network.holder is not job.stream:
            known = 0
            length = self._policy.length or len(job.ids) if job.stream is not None else len(job.ids)
            network.begin(length, self._policy.kv_cache)
            network.holder = job.stream
        return job.ids[known:].astype(np.int32)

    def distributions(
        self, jobs: Sequence[Job], rows: NDArray[np.int64], wanted: NDArray[np.bool_]
    ) -> Iterator[tuple[NDArray[np.float32], None, None]]:
        """Yield natural log-probabilities of all tokens at the targets of jobs, a part at a time; see `Engine`."""
        # jobs: in the order of the events; rows: int64 [vocabulary], the network's id of each token; -1 for none; wanted:
        # bool [targets of all jobs], which of them to look at.
        masks = np.split(wanted, np.cumsum([len(job.targets) for job in jobs])[:-1])
        # A running context needs to be shown all; of others only what is asked about.
        looked_at = [job.stream is not None or bool(mask.any()) for job, mask in zip(jobs, masks, strict=True)]
        asked = itertools.compress(masks, looked_at)
        for pack in self._packs(itertools.compress(jobs, looked_at)):
            of_pack = np.concatenate(list(itertools.islice(asked, len(pack))))
            for logits in self._logits(pack, of_pack):
                for at in range(0, len(logits), _ROWS):
                    some = logits[at : at + _ROWS]
                    logprob = (some - log_sum_exp(some)[:, None].astype(np.float32))[:, np.maximum(rows, 0)]
                    logprob[:, rows < 0] = -np.inf
                    if np.isnan(logprob).any():
                        self._blame(pack)
                    yield logprob, None, None
            self.progress(len(of_pack))

    def log_distribution(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the log-probabilities of all that may follow, nats, float64 [rows of the output layer]."""
        # ids: int64 [n], n > 0, what the network is shown.
        logprob = self._after(ids.astype(np.int32))
        if np.isnan(logprob).any():
            raise self._gives_nan("after some context")
        return logprob

    def _after(self, sequence: NDArray[np.int32]) -> NDArray[np.float64]:
        # Log-probabilities of what follows a context, float64 [rows of the output layer].
        network, full = self._network, (len(sequence) - 1) // _PART * _PART
        held = self._held if network.holder is self else self._held[:0]
        shared = min(len(held), full)
        same = np.flatnonzero(held[:shared] != sequence[:shared])
        shared = (int(same[0]) if len(same) else shared) // _PART * _PART
        if network.holder is not self or len(sequence) > network.room or not network.rewind(shared):
            shared = 0
            network.begin(len(sequence), self._policy.kv_cache)
            network.holder = self
        for at in range(shared, full, _PART):
            network.logprob(sequence[at : at + _PART], sequence[:0])
        self._held = sequence[:full].copy()
        return network.log_distribution(sequence[full:])

    def _blame(self, pack: Sequence[Job]) -> NoReturn:
        # Say which of some jobs gives NaN: that of one may have spread to those beside it.
        for job in pack if len(pack) > 1 else ():
            self._network.wipe()
            if np.isnan(
                of_targets(self._logits([job], np.ones(len(job.targets), bool)), job.targets.astype(np.int32))
            ).any():
                raise self._gives_nan(f"in segment {job.segment + 1}")
        raise self._gives_nan(f"in segment {pack[0].segment + 1}")

    def _gives_nan(self, where: str) -> ModelFileError:
        self._network.wipe()
        return ModelFileError(
            f"{self._network.path}: gives NaN {where}; the file is damaged, or was quantized from weights that were"
        )


def _at_the_ends(shown: Sequence[NDArray[np.int32]], pack: Sequence[Job], wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    # Which of the tokens shown have a target after them that is wanted, bool [tokens of all].
    asked = [np.arange(len(ids)) >= len(ids) - len(job.targets) for ids, job in zip(shown, pack, strict=True)]
    places = np.concatenate(asked)
    places[places] = wanted
    return places
