"""How a neural model is to score text: what the user may choose, and what it comes to for one model."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lmgauge.base.choices import CacheFormat, FirstToken, NormalizerName, Precision, ProtocolName, ReservedPolicy, SegmentEnd
from lmgauge.base.declaration import settings
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Count, check_whole

if TYPE_CHECKING:
    from lmgauge.models.network.tokens import TokenMap
    from lmgauge.scores.context_policy import ContextPolicy, ContextUnit, ScoringProtocol
    from lmgauge.text.tokens import Tokenizer

STORED = ("context", "stride", "stream", "first_token", "end", "dtype", "kv_cache", "protocol", "bos_each_window")
DECIDED = ("stride", "stream", "first_token", "end")
"""What a protocol decides, so that it cannot be chosen."""
_MOST_DIGITS = 18
OwnFirst = FirstToken | Literal["other"]
_LENGTH = re.compile(r"([0-9]{1,12})([kK]?)")


@settings
class ScoringOptions:
    """What may be chosen; None leaves it to the model.

    Attributes:
        context: most tokens a prediction sees; stream continues across segments, sentence does not (stream,1024: both); the
            most that the model takes if not given.
        stride: tokens from one window to the next; the context if not given, so that each token is computed once.
        stream: True lets the context continue across segments.
        first_token: what the first token is predicted from: the model's bos or eos token, nothing (uniform over the
            vocabulary), or not at all (unscored); bos where the model has it, else uniform.
        end: what ends a segment: the model's eos token, the line's own newline as text, or nothing; eos for models trained
            here, for others their own newline.
        dtype: number format of weights and products; auto is bfloat16 on a GPU. Log-softmax is float32 and sums are float64
            in either case.
        kv_cache: networks: number format of keys and values, rounded before anything attends to them, as engines do whose
            cache has that format; the computing format if not given. GGUF: not fp8; float32 if not given.
        device: where to compute; such as cpu, cuda or cuda:1; a GPU if there is one.
        devices: networks: several devices of one kind, each with a process and a share of the text (cuda:0,cuda:1).
        processes: networks: how many share the text; each has its share of the threads.
        batch_tokens: tokens to compute at a time; chosen by free memory if not given. Changes rounding only.
        trust_remote_code: let code that comes with a model run.
        bos: servers: text to put before each segment, so that its first token has a score, such as '<s>'.
        reserved: what <unk>, <s> and </s> in a text do; stop (refuse), read them as an ordinary word (escape), or read <unk>
            as the unknown word (unk); if not given, as in training.
        protocol: follow another program's rules (hf-guide, harness, llama.cpp, gptq), to get its figures: how lines
            are joined, what windows show, what is left out; see `scores.context_policy`. It decides all of the above
            except `context`, the length of its windows, and for hf-guide `stride`: 512 or, where windows are no longer
            than that, half a window.
        bos_each_window: begin every window with the BOS token, in the place of its first token.
        template: conversations: file with a chat template (Jinja) to use in place of the model's own.
        template_args: conversations: what the template is told, such as enable_thinking=false.
        end_of_turn: conversations: score the token that ends a turn, too.
        framing: conversations: score what the template puts before a turn, too, from the end of the turn before.
        tokenizer: how text was cut into the words of an ARPA file or a KenLM binary: whitespace, treebank, character, byte,
            icu, a tokenizer.json or a SentencePiece .model; whitespace if not given.
        normalizer: normalization before that; ccnet: lower case, no accents, 0 for digits, ASCII
            punctuation, no control characters.

    Example:
        >>> ScoringOptions(context=1024, stride=512, dtype="float32").context
        1024
    """

    heading: ClassVar[str] = "Models"
    context: Count | None = None  # or words, which become numbers: "stream,1024"
    stride: Count | None = None
    stream: bool | None = None
    first_token: FirstToken | None = None
    end: SegmentEnd | None = None
    dtype: Precision = "auto"
    kv_cache: CacheFormat | None = None
    device: str | None = None
    devices: Sequence[str] | None = None
    processes: Count | None = None
    batch_tokens: Count | None = None
    trust_remote_code: bool = False
    bos: str | None = None
    reserved: ReservedPolicy | None = None
    protocol: ProtocolName | None = None
    bos_each_window: bool | None = None
    template: str | os.PathLike[str] | None = None
    template_args: Sequence[str] | Mapping[str, Any] = ()
    end_of_turn: bool = True
    framing: bool = False
    tokenizer: str | os.PathLike[str] | Tokenizer | None = None
    normalizer: NormalizerName | None = None

    def over(self, stored: Mapping[str, Any]) -> ScoringOptions:
        """Return these options, and those stored with a model where nothing was chosen.

        Args:
            stored: as `stored` gave it: values by name.

        Raises:
            UsageError: a stored value, such as a number of tokens, is out of range.

        Example:
            >>> ScoringOptions(context=64).over({"context": 128, "end": "none"}).stored()
            {'context': 64, 'end': 'none'}
        """
        names = ("dtype", "kv_cache") if self.protocol is not None else STORED
        own = {name: stored[name] for name in names if getattr(self, name) in (None, "auto") and name in stored}
        return replace(self, **own)

    def of_machine(self) -> ScoringOptions:
        """Return only those that say what computes, not what: for the parts of a mixture, which keep their own."""
        return ScoringOptions(device=self.device, batch_tokens=self.batch_tokens, trust_remote_code=self.trust_remote_code)

    @property
    def places(self) -> tuple[str | None, ...]:
        """The device of each process that computes.

        >>> ScoringOptions(device="cpu", processes=2).places, ScoringOptions().places
        (('cpu', 'cpu'), (None,))
        """
        return tuple(self.devices) if self.devices else (self.device,) * (self.processes or 1)

    def at(self, place: str | None) -> ScoringOptions:
        """Return the options of one process, which computes at one of the places."""
        return replace(self, device=place, devices=None, processes=None)

    def stored(self) -> dict[str, Any]:
        """Return what is kept with a model that is copied: what its numbers depend on and was chosen."""
        return {name: getattr(self, name) for name in STORED if getattr(self, name) not in (None, "auto")}

    def __post_init__(self) -> None:
        if isinstance(self.context, str):
            context, stream = parse_context(self.context)
            object.__setattr__(self, "context", context)
            object.__setattr__(self, "stream", stream)
        if isinstance(self.template_args, Mapping):
            written = (f"{name}={json.dumps(value)}" for name, value in self.template_args.items())
            object.__setattr__(self, "template_args", tuple(written))
        if self.template_args:
            _ = self.template_arguments
        for name in DECIDED if self.protocol is not None else ():
            if getattr(self, name) is not None and (name, self.protocol) != ("stride", "hf-guide"):
                option = "context stream or sentence" if name == "stream" else name.replace("_", "-")
                raise UsageError(f"{option}: protocol {self.protocol} decides that; leave one of the two out")
        self._check_places()

    @property
    def template_arguments(self) -> dict[str, Any]:
        """What a chat template is told, by name: `enable_thinking=false` is False; what JSON does not know is a string."""
        from lmgauge.base.json_text import from_json

        arguments: dict[str, Any] = {}
        for one in (self.template_args,) if isinstance(self.template_args, str) else self.template_args:
            name, equals, value = one.partition("=")
            if not (equals and name.isidentifier()):
                raise UsageError(f"template-args {one!r}: write name=value, as in enable_thinking=false")
            try:
                arguments[name] = from_json(value)
            except ValueError:
                arguments[name] = value
        return arguments

    def _check_places(self) -> None:
        if self.processes is not None:
            check_whole("processes", self.processes, 1)
        if self.devices is None:
            return
        names = [] if isinstance(self.devices, str) else list(self.devices)
        if not names or not all(isinstance(name, str) and name for name in names):
            raise UsageError(f'devices {self.devices!r}: name each, as in devices=("cuda:0", "cuda:1")')
        for name, other in (("device", self.device), ("processes", self.processes)):
            if other is not None:
                raise UsageError(f"devices and {name} both say where to compute: leave one of them out")
        kinds = sorted({name.partition(":")[0] for name in names})
        if len(kinds) > 1:
            raise UsageError(
                f"devices of different kinds ({', '.join(kinds)}) round differently, so numbers would depend on which "
                "part of the text each had: name devices of one kind"
            )
        object.__setattr__(self, "devices", tuple(names))


def parse_context(text: str) -> tuple[int | None, bool | None]:
    """Return what `--context` says: a number of tokens, `sentence` or `stream`, or both as in `stream,1024`."""
    context: int | None = None
    stream: bool | None = None
    for part in text.split(","):
        if part.isascii() and part.isdecimal() and len(part) <= _MOST_DIGITS and context is None:
            context = int(part)
        elif part in ("stream", "sentence") and stream is None:
            stream = part == "stream"
        else:
            raise UsageError(f"context {text!r}: give a number of tokens, sentence or stream, or both, as in stream,1024")
    return context, stream


def parse_lengths(lengths: str | Sequence[int | str]) -> tuple[int, ...]:
    """Return the lengths of contexts to be compared, the shortest first."""
    # parse_lengths("2k,512"), parse_lengths([64, "1k"]) -> ((512, 2048), (64, 1024))
    parts = lengths.split(",") if isinstance(lengths, str) else list(lengths)
    tokens = sorted(map(_length, parts))
    if len(tokens) < 2:
        raise UsageError("contexts: name two lengths or more to compare, as in 512,1k,2k")
    twice = next((number for number, following in pairwise(tokens) if number == following), None)
    if twice is not None:
        raise UsageError(f"contexts: {twice:,} is named twice")
    return tuple(tokens)


def _length(part: object) -> int:
    text = str(part) if isinstance(part, int) and not isinstance(part, bool) else part
    match = _LENGTH.fullmatch(text) if isinstance(text, str) else None
    if match is None or not int(match[1]):
        raise UsageError(f"contexts: {part!r} is not a number of tokens; write 512 or 1k (1,024)")
    return int(match[1]) * (1024 if match[2] else 1)


def resolve_policy(options: ScoringOptions, tokens: TokenMap, positions: int | None) -> ContextPolicy:
    """Return the policy that options come to for a model with these tokens."""
    # positions: how many tokens the model has positions for; None if it has no limit.
    from lmgauge.scores.context_policy import PROTOCOLS, ContextPolicy

    has_bos, has_eos = tokens.bos >= 0, tokens.eos >= 0
    if options.bos_each_window and not has_bos:
        raise UsageError("bos-each-window: this model has no BOS token; leave it out")
    if options.protocol is not None:
        first = (
            ("bos" if has_bos else "eos" if has_eos else "other")
            if PROTOCOLS[options.protocol].begins == "bos"
            else tokens.puts_first
        )
        return _policy_of_protocol(PROTOCOLS[options.protocol], options, positions, first)
    first = options.first_token or ("bos" if has_bos else "uniform")
    end = options.end or ("eos" if tokens.trained_here else "newline")
    if first == "bos" and not has_bos:
        raise UsageError("first-token bos: this model has no BOS token; choose eos, uniform or unscored")
    if not has_eos and "eos" in (first, end):
        name = "first-token" if first == "eos" else "end"
        raise UsageError(f"{name} eos: this model has no EOS token; choose another")
    context = options.context if options.context is not None else positions
    _check_positions(context, positions)
    stride = options.stride if options.stride is not None else context
    if stride is not None and (context is None or stride > context):
        raise UsageError(
            f"stride {stride}: longer than the context ({context}), tokens in between would not be scored; choose no more"
            if context is not None
            else f"stride {stride}: means nothing without --context, as this model sees the whole text"
        )
    running = options.stream if options.stream is not None else tokens.running
    unit: ContextUnit = "stream" if running else "sentence"
    bos_each = bool(options.bos_each_window)
    kv = options.kv_cache
    return ContextPolicy(unit=unit, length=context, stride=stride, first=first, end=end, bos_each=bos_each, kv_cache=kv)


_NOT_OF_TURNS = ("bos", "protocol", "bos_each_window", "first_token", "end", "stride")


def policy_of_turns(policy: ContextPolicy, options: ScoringOptions, template: str) -> ContextPolicy:
    """Return the policy of a network for turns that a chat template frames, from its own."""
    # template: the digest of it.
    odd = next((name for name in _NOT_OF_TURNS if getattr(options, name) is not None), None)
    if odd is not None or policy.runs_on:
        name = "context stream" if odd is None else odd.replace("_", "-")
        raise UsageError(f"{name}: a turn is shown after what its template makes of the conversation; leave it out")
    end: SegmentEnd = "eos" if options.end_of_turn else "none"
    shown = (one for one in options.template_args if re.fullmatch(r"[\w=.+-]+", one))  # others are in the digest
    policy = replace(policy, unit="conversation", first="bos", end=end)
    return replace(policy, template=";".join((template, *shown)), framing=options.framing)


def _check_positions(context: int | None, positions: int | None) -> None:
    if context is not None and positions is not None and context > positions:
        raise UsageError(f"context {context}: this model has positions for {positions} tokens; choose no more")


def _policy_of_protocol(
    protocol: ScoringProtocol, options: ScoringOptions, positions: int | None, first: OwnFirst
) -> ContextPolicy:
    from lmgauge.scores.context_policy import ContextPolicy

    name = protocol.name
    if first == "other":
        what = (
            "this model has neither BOS nor EOS"
            if protocol.begins == "bos"
            else ("its tokenizer sets something else than BOS or EOS around a text")
        )
        raise UsageError(f"protocol {name}: {what}, so it is not known what a text begins with")
    _check_positions(options.context, positions)
    window = options.context or protocol.window or positions
    if window is None:
        raise UsageError(f"protocol {name}: this model has no longest context; choose the length of windows (--context)")
    if options.context is None and positions is not None and window > positions:
        if not protocol.shrinks:
            raise UsageError(
                f"protocol {name}: has windows of {window:,} tokens, and this model positions for {positions:,}; choose "
                "shorter ones (--context)"
            )
        window = positions
    stride = window
    if protocol.stride is not None:
        stride = options.stride or (protocol.stride if protocol.stride < window else max(1, window // 2))
    least = (protocol.first_scored(window) if protocol.stride is None else stride) + 1
    if protocol.layout != "filled" and window < least:
        raise UsageError(
            f"protocol {name}: needs windows of {least:,} tokens or more, and "
            + (f"this model has positions for {positions:,}" if options.context is None else f"context is {window:,}")
        )
    return ContextPolicy(
        length=window if protocol.layout == "filled" else window - 1,
        stride=stride,
        first=first,
        end="none",
        protocol=name,
        bos_each=bool(options.bos_each_window) or (protocol.bos_each and first == "bos"),
        kv_cache=options.kv_cache,
    )
