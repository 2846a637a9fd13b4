"""What a network sees of a text besides its own tokens: special tokens around it, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.base.errors import InputError
from lmgauge.base.escaping import visible
from lmgauge.models.network.sequences import block_events
from lmgauge.models.network.tokens import TokenMap
from lmgauge.numerics.units import perplexity_from_nats
from lmgauge.scores.special_tokens import doubled, is_special
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.vocabulary import EOS, UNK

if TYPE_CHECKING:
    from lmgauge.base.choices import FirstToken
    from lmgauge.models.network.model import NetworkModel

_FIRST, _LAST = 4, 3  # tokens that are named of a longer row of them
_SAMPLE = 2048  # bytes that are scored in two ways
_NAMES = ("unk_token", "bos_token", "eos_token")


def _name(tokens: TokenMap, token: int) -> str:
    # The network's own string of one of its ids.
    own = int(np.flatnonzero(tokens.network_ids == token)[-1])
    string = tokens.vocabulary.token(own)
    return tokens.named.get(_NAMES[own], string) if own <= EOS else string


def _is_special(tokens: TokenMap, token: int) -> bool:
    name = _name(tokens, token)
    return token != tokens.network_ids[UNK] and (name in tokens.specials if tokens.specials else is_special(name))


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
    before, behind = (_in_words(tokens, ids) for ids in tokens.around)
    return {
        "set_around_a_text": f"{before} before it, {behind} behind it",
        "special_tokens": {name: _in_words(tokens, [token]) for name, token in ids if token >= 0},
        "chat_template": "yes" if tokens.template else "none",
    }


def look_around(model: NetworkModel, block: Segments) -> tuple[str, list[str], list[str]]:
    """Return what a network sees of the first segment with text, what is wrong with the tokens around it, and what may be.

    Args:
        block: of the text; its beginning is scored in another way, too, where the first token is in doubt.
    """
    tokens, policy, place = model.tokens, model.context_policy, int((block.ends > block.starts).argmax())
    first = None if tokens.framing is not None else {"bos": tokens.bos, "eos": tokens.eos}.get(policy.first)
    events = block_events(block.part(place, place + 1), tokens, policy, spans=False)
    own = tokens.network_ids[np.concatenate((*events.given_ids(None, model.label), events.ids))]
    ids = [*([] if first is None else [first]), *np.maximum(own, 0).tolist()]
    scored = max(len(ids) - len(events.ids), int(policy.first == "unscored"))
    missing, needless = _first_token(model, block, first if tokens.framing is None else next(iter(ids), None))
    faults = [*missing, *_of_turns(model, block)]
    for row, what in ((ids, "what it sees of a text"), (tokens.around[0], "what its tokenizer sets before a text")):
        if (twice := doubled(row, partial(_is_special, tokens))) is not None:
            faults.append(f"{what} begins with {_in_words(tokens, [twice])} twice")
    seen = f"of the first segment {_in_words(tokens, ids[:scored])} is shown, {_in_words(tokens, ids[scored:])} scored"
    return seen, faults, needless


def _of_turns(model: NetworkModel, block: Segments) -> Iterator[str]:
    # What a chat template leaves out or adds between what a model is asked for and what is scored.
    template, turns = model.tokens.framing, block.turns
    if template is None or not turns:
        return
    turn = next((turn for turn in turns if turn.conversation.messages[turn.at]["role"] == "assistant"), turns[0])
    framed, whole = template.frame(turn), template.render(turn.conversation, turn.at + 1)
    if framed.preamble.strip() and not framed.has_prompt:
        yield f"its chat template has no generation prompt: who asks it for a turn does not show it {framed.preamble!r}"
    elif framed.preamble.strip():
        yield f"its chat template sets {framed.preamble!r} before a turn, its generation prompt does not (--template-args)"
    same = next((i for i, (a, b) in enumerate(zip(framed.before, whole, strict=False)) if a != b), len(framed.before))
    if own := framed.before[same:].strip():
        yield f"its generation prompt ends with {own!r}, and the turns that its chat template renders do not begin with that"
    if not framed.end:
        yield "its chat template ends a turn without a special token, so that its end is not scored"
    elif model.context_policy.end == "none":
        yield f"the token that ends a turn, {framed.end.strip()}, is not scored (--no-end-of-turn)"


def _first_token(model: NetworkModel, block: Segments, first: int | None) -> tuple[list[str], list[str]]:
    # What is missing before a text, and what the network's tokenizer does not set there; each scored in both ways.
    # first: what the network is shown first.
    tokens, policy, raw = model.tokens, model.context_policy, model.raw
    own = next(iter(tokens.around[0]), None)
    count = 1 + int(np.searchsorted((block.ends - block.starts).cumsum()[:-1], _SAMPLE))
    if tokens.framing is not None and raw is not None:
        if own in (None, first):
            return [], []
        ways, how, sample = [raw.framed(), raw.framed()], "--template", [block.part(0, count)]
        ways[1].tokens = replace(tokens, framing=tokens.framing.behind(_name(tokens, own)))
    else:
        other: dict[int | None, FirstToken] = {None: "uniform", tokens.eos: "eos", tokens.bos: "bos"}
        between_texts = own is None and tokens.bos == tokens.eos  # in training
        if first == own or own not in other or between_texts or tokens.trained_here or policy.protocol or policy.bos_each:
            return [], []
        ways = [model.with_options(replace(model.options, first_token=way)) for way in (policy.first, other[own])]
        how, texts = f"--first-token {other[own]}", (block.text(i)[:_SAMPLE] for i in range(count))
        sample = [*Corpus.from_strings([text.decode(errors="ignore") for text in texts])]
    so, otherwise = (_perplexity(way, sample) for way in ways)
    after, sets, without = ("without", "sets", "with") if own is not None else ("after", "does not set", "without")
    name = _in_words(tokens, [token for token in (own, first) if token is not None][:1])
    figures = f"before a text: on its beginning perplexity is {so}, {without} it {otherwise} ({how})"
    said = f"scored {after} {name}, which its tokenizer {sets} {figures}"
    return ([], [said]) if own is None else ([said], [])


def _perplexity(model: NetworkModel, blocks: Iterable[Segments]) -> str:
    try:
        logprob = np.concatenate([batch.logprob for batch in model.score(blocks, spans=False)])
    except InputError:  # with one token more a turn may be longer than a window
        return "not known"
    return f"{perplexity_from_nats(-float(logprob.sum()) / max(1, len(logprob))):,.6g}"
