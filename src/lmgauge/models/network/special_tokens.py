"""What a network sees of a text besides its own tokens: special tokens around it, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.base.escaping import visible
from lmgauge.models.network.sequences import block_events
from lmgauge.models.network.tokens import TokenMap
from lmgauge.models.protocol import SpecialTokens
from lmgauge.numerics.units import perplexity_from_nats
from lmgauge.scores.special_tokens import doubled, is_special
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.vocabulary import EOS, UNK

if TYPE_CHECKING:
    from lmgauge.base.choices import FirstToken
    from lmgauge.models.network.model import NetworkModel

_FIRST, _LAST = 4, 3  # tokens that are named of a longer row of them
_SAMPLE, _OF_SEGMENT = 2048, 512  # bytes that are scored in two ways, and of a segment
_LONG_NUMBER = 10**7  # perplexities from here on are printed with an exponent
_NAMES = ("unk_token", "bos_token", "eos_token")


def _name(tokens: TokenMap, token: int) -> str:
    # The network's own string of one of its ids.
    own = int(np.flatnonzero(tokens.network_ids == token)[-1])
    string = tokens.vocabulary.token(own)
    return tokens.named.get(_NAMES[own], string) if own <= EOS else string


def _is_special(tokens: TokenMap, token: int) -> bool:
    name = _name(tokens, token)
    known = name in tokens.specials if tokens.specials else is_special(name)
    return token in (tokens.bos, tokens.eos) or (known and token != tokens.network_ids[UNK])


def _in_words(tokens: TokenMap, ids: Sequence[int]) -> str:
    # _in_words(tokens, [1, 450]) -> "<s> (1) ▁The (450)"
    some = ids if len(ids) <= _FIRST + _LAST else [*ids[:_FIRST], *ids[-_LAST:]]
    names = [f"{visible(_name(tokens, token))} ({token})" for token in some]
    return " ".join([*names[:_FIRST], *["…"] * (len(some) < len(ids)), *names[_FIRST:]]) or "nothing"


def of_tokens(tokens: TokenMap) -> dict[str, Any]:
    """Return what is known of the special tokens of a network, by name: for `lmgauge info`."""
    if tokens.trained_here:
        return {}
    ids = zip(_NAMES, tokens.network_ids[: EOS + 1].tolist(), strict=True)
    special = {name: _in_words(tokens, [token]) for name, token in ids if token >= 0}
    around = (f"{_in_words(tokens, ids)} {where} it" for ids, where in zip(tokens.around, ("before", "behind"), strict=True))
    return {
        "set_around_a_text": ", ".join(around),
        "special_tokens": special | ({"in_all": len(tokens.specials)} if tokens.specials else {}),
        "chat_template": tokens.template is not None,
    }


def look_around(model: NetworkModel, block: Segments) -> SpecialTokens:
    """Return what a network sees of the first segment with text, and what is wrong with what it begins with."""
    place = int((block.ends > block.starts).argmax())
    events = block_events(block.part(place, place + 1), model.tokens, model.context_policy, spans=False)
    ids, scored = model.seen(events)
    shown, rest = (_in_words(model.tokens, part) for part in (ids[:scored], ids[scored:]))
    missing, needless = _first_token(model, block)
    return SpecialTokens(
        f"of the first segment {shown} is shown, {rest} scored", [*_twice(model.tokens, ids), *missing], needless
    )


def _twice(tokens: TokenMap, ids: Sequence[int]) -> Iterator[str]:
    for seen, what in ((ids, "what it sees of a text"), (tokens.around[0], "what its tokenizer sets before a text")):
        if (twice := doubled(seen, lambda token: _is_special(tokens, token))) is not None:
            yield f"{what} begins with {_in_words(tokens, [twice])} twice"


def _first_token(model: NetworkModel, block: Segments) -> tuple[list[str], list[str]]:
    # What is missing before a text, and what is not set there by the network's tokenizer; scored in both ways.
    tokens, policy = model.tokens, model.context_policy
    first = {"bos": tokens.bos, "eos": tokens.eos}.get(policy.first)
    own = next(iter(tokens.around[0]), None)
    if tokens.trained_here or policy.protocol is not None or policy.bos_each or first == own:
        return [], []
    other: dict[int | None, FirstToken] = {None: "uniform", tokens.eos: "eos", tokens.bos: "bos"}
    if own not in other or (own is None and tokens.bos == tokens.eos):  # such a token stands between texts in training
        return [], []
    figures = (_perplexity(model, block, choice) for choice in (policy.first, other[own]))
    so, otherwise = (f"{figure:,.2f}" if figure < _LONG_NUMBER else f"{figure:.3g}" for figure in figures)
    name = _in_words(tokens, [token for token in (own, first) if token is not None][:1])
    said = f"before a text: on its beginning perplexity is {so}"
    if own is not None:
        with_it = f"{said}, with it {otherwise} (--first-token {other[own]})"
        return [f"scored without {name}, which its tokenizer sets {with_it}"], []
    without = f"{said}, without it {otherwise} (--first-token uniform); which it was trained with, its authors know"
    return [], [f"scored after {name}, which its tokenizer does not set {without}"]


def _perplexity(model: NetworkModel, block: Segments, first: FirstToken) -> float:
    texts: list[str] = []
    for i in range(len(block)):
        texts.append((block.given_text(i) + block.text(i))[:_OF_SEGMENT].decode(errors="ignore"))
        if sum(map(len, texts)) >= _SAMPLE:
            break
    scored = model.with_options(replace(model.options, first_token=first)).score(Corpus.from_strings(texts), spans=False)
    logprob = np.concatenate([batch.logprob for batch in scored])
    return perplexity_from_nats(-float(logprob.sum()) / max(1, len(logprob)))
