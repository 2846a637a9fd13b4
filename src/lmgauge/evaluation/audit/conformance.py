"""A model on a server: what it says of a token must not depend on what else is asked, nor on how many ask at once."""

# Nothing is known of the model itself. But a sound server says the same of a prompt when it is asked again, in another
# order, beside others, or in one request with others; and of a token it says the same when it reads it as when it wrote it.
# So prompts are also cut where servers cut them into chunks; the server goes on, and is asked about its own words.

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np

from lmgauge.base.errors import ModelFileError
from lmgauge.base.progress import say_progress
from lmgauge.base.threads import map_in_order
from lmgauge.evaluation.audit.checks import Check, Compared, Fault, counted, judge
from lmgauge.evaluation.audit.subject import drawn
from lmgauge.evaluation.options import AuditSettings
from lmgauge.scores.imports.log import printable
from lmgauge.scores.imports.replies import Answer

MOST_PROMPTS, AT_ONCE, TOGETHER = 32, (8, 64), 8  # prompts; requests at once; prompts in one request
_SHORT, _LONG, _LONGEST = 400, 12_000, 64_000  # characters of prompts; the last if nothing is to be left out
_EDGES = [64 << i for i in range(10)]  # tokens after which servers may begin another chunk
_BEFORE, _WRITTEN = 4, 8  # tokens before such a place that a prompt is cut, and that the server then writes
_MOST_TOLERANCES, _MOST_MASS = 10, 1.01  # by which repeated requests may differ; to which probabilities may sum


class _Changes(Compared):
    """Answers about the same prompts, compared: how many tokens are apart, and in which places."""

    def __init__(self, tolerance: float) -> None:
        super().__init__(tolerance)
        self._places, self._moved = list[int](), list[int]()

    def compare(self, one: Answer, two: Answer | ModelFileError, how: str = "", begin: int | None = None) -> None:
        """Compare what is said of all tokens of a prompt; or from a place on, as far as the tokens are the same."""
        prompt = f"a prompt of {counted(one.size, 'token')}{how}"
        if isinstance(two, ModelFileError):
            self.apart.note(f"{prompt}: {two}")
            return
        pairs = enumerate(zip(one.tokens.pieces, two.tokens.pieces, strict=False))
        same = next((place for place, (piece, other) in pairs if piece != other), two.size)
        if begin is None and same < one.size:
            self.apart.note(f"{prompt} is answered with others from token {same + 1:,} on")
        part = slice(begin, min(same, one.size if begin is None else two.size))
        a, b = (np.array(answer.tokens.logprob[part], np.float64) for answer in (one, two))  # NaN where there is no score
        scored = ~(np.isnan(a) & np.isnan(b))
        places = (np.flatnonzero(scored) + (begin or 0)).tolist()
        self._places += places
        for j in self.places_apart(a[scored], b[scored]):
            self._moved.append(places[j])
            both = f"{a[scored][j]:.5g} nats, then {b[scored][j]:.5g}"
            self.apart.note(f"token {places[j] + 1:,}{how}, {printable(one.tokens.pieces[places[j]])!r}: {both}")

    def check(self, level: str, name: str, what: str, skipped: str = "") -> Check:
        """Return the verdict on what was done."""
        tokens, allowed = counted(self.events, "token"), f"({self.tolerance:.2g} nats are allowed)"
        good = f"{what}: {tokens} stayed the same, within {self.largest:.2g} nats {allowed}."
        where = f", by up to {self.largest:.3g} nats {allowed}, {self._where()}" if self._moved else ""
        bad = f"{what}: {counted(self.apart.count, 'difference')} in {tokens}{where}; the first: {self.apart.first}."
        skipped = skipped or ("" if self.events else "no answers could be compared")
        return judge(level, name, bad=bad if self.apart.count else "", skipped=skipped, good=good, details=self.details())

    def _where(self) -> str:
        # In words, at which of all places that were compared tokens are apart.
        places, moved = np.array(self._places), np.unique(self._moved)
        if moved[-1] == places.min() <= 1:
            return "at the first token of prompts"
        common = [int(np.gcd.reduce(moved + shift)) for shift in (0, 1, -1)] if len(moved) > 1 else []
        for size in sorted([*_EDGES, *common], reverse=True):
            if _EDGES[0] <= size <= moved[-1] + 1 and (np.minimum(moved % size, -moved % size) <= 1).all():
                return f"at the edges of chunks of {size:,} tokens"
        if len(sound := places[places < moved[0]]) and 2 * len(self._moved) > len(places) - len(sound):
            return f"behind token {sound.max() + 1:,}, up to which all are the same"
        return f"in {counted(len(moved), 'place')} from token {moved[0] + 1:,} to {moved[-1] + 1:,}"


class Conformance:
    """Asks a server about prompts in many ways."""

    def __init__(self, ask: Callable[..., list[Answer | ModelFileError]], settings: AuditSettings, tolerance: float) -> None:
        # ask: one request, about texts.
        self._request, self._settings, self._tolerance = ask, settings, tolerance
        self._limit, self._requests, self._wrong = _MOST_TOLERANCES * tolerance, 0, Fault()

    def checks(self, segments: Sequence[bytes]) -> list[Check]:
        """Ask, compare, and return the verdicts."""
        texts = [segment.decode() for segment in segments]
        exhaustive, most = self._settings.exhaustive, self._settings.contexts
        few = drawn([*filter(None, texts)], most if exhaustive else min(most, MOST_PROMPTS), self._settings.seed)
        short, long = self._sound([text[:_SHORT] for text in few]), "\n".join(texts)[: _LONGEST if exhaustive else _LONG]
        while not (longest := self._sound([long] if long else [])) and len(long) > _SHORT:
            long = long[: len(long) // 2]
        prompts = short + longest
        repeats = self._again(prompts)
        self._limit = min(max(self._tolerance, 2 * repeats.largest), self._limit)
        order = self._again(prompts[::-1])
        load = self._again(prompts, [min(number, most) for number in AT_ONCE])
        tried = self._ask([prompt.text for prompt in prompts[:2]], together=2)
        refused = next((f"not taken: {answer}" for answer in tried if getattr(answer, "status", 0)), "")
        groups = self._again([] if refused else prompts, together=TOGETHER)
        agreement, later = self._its_own_words(short if exhaustive else short[:TOGETHER], longest)
        return [
            self._replies(prompts),
            agreement.check("normalization", "agreement", "Its own words, read again"),
            later.check("causality", "later text", "Prompts cut off"),
            repeats.check("causality", "repeats", "Prompts asked about again, alone (the floor)"),
            order.check("causality", "order", "Prompts asked about in reverse order"),
            load.check("causality", "load", f"Prompts asked about by up to {min(most, AT_ONCE[-1])} at once"),
            groups.check("causality", "groups", f"Prompts asked about in requests of {TOGETHER}", refused),
        ]

    def _replies(self, prompts: Sequence[Answer]) -> Check:
        wrong, longest = self._wrong, counted(max((prompt.size for prompt in prompts), default=0), "token")
        firsts = {prompt.laid.pieces[0]: prompt.laid.logprob[0] for prompt in prompts}
        total = np.exp([value for value in firsts.values() if value is not None]).sum()
        if total > _MOST_MASS:
            wrong.note(f"the probabilities of different first tokens sum to {total:.3g}")
        asked = f"; {counted(self._requests, 'request')} for levels 2 and 3, about prompts of up to {longest}."
        good = f"{counted(len(prompts), 'prompt')} came back, each token with its score{asked}"
        bad = f"{counted(wrong.count, 'fault')} in what came back, the first: {wrong.first}{asked}" if wrong.count else ""
        skipped = "" if prompts else "the text has nothing to ask about"
        return judge("coverage", "replies", bad=bad, skipped=skipped, good=good, details={"requests": self._requests})

    def _ask(
        self, texts: Sequence[str], at_once: int = 1, together: int = 1, **request: Any
    ) -> list[Answer | ModelFileError]:
        say_progress(f"asking about {counted(len(texts), 'prompt')}, {at_once} at once")
        parts = [texts[begin : begin + together] for begin in range(0, len(texts), together)]
        self._requests += len(parts)
        several = map_in_order(lambda part: self._request(part, **request), parts, at_once)
        return [answer for answers in several for answer in answers]

    def _sound(self, texts: Sequence[str]) -> list[Answer]:
        # Texts that are answered as they should be; what is wrong with the others is noted.
        answers = self._ask(texts)
        for text, answer in zip(texts, answers, strict=True):
            if isinstance(answer, ModelFileError) and getattr(answer, "status", 0) not in (400, 413):  # too long
                self._wrong.note(f"a prompt of {counted(len(text), 'character')}: {answer}")
        return [answer for answer in answers if isinstance(answer, Answer)]

    def _again(self, prompts: Sequence[Answer], at_once: Sequence[int] = (1,), together: int = 1) -> _Changes:
        changes = _Changes(self._limit)
        for number in dict.fromkeys(at_once):
            asked = [*islice(cycle(prompts), max(number, len(prompts)))]
            for prompt, answer in zip(asked, self._ask([one.text for one in asked], number, together), strict=True):
                changes.compare(prompt, answer, f" with {number} at once" if number > 1 else "")
        return changes

    def _its_own_words(self, short: Sequence[Answer], long: Sequence[Answer]) -> tuple[_Changes, _Changes]:
        # Cut prompts off, let the server go on, and let it read all that.
        agreement, later = _Changes(self._limit), _Changes(self._limit)
        cuts = [(prompt, place) for prompt in short for place in (1, len(prompt.laid.ends) // 2)]
        cuts += [(prompt, place - _BEFORE) for prompt in long for place in [*_EDGES, len(prompt.laid.ends)]]
        cuts = [(prompt, prompt.laid.ends[place - 1]) for prompt, place in cuts if 0 < place < len(prompt.laid.ends)]
        heads = [(prompt, text) for prompt, end in cuts if (text := prompt.text.encode()[:end].decode(errors="ignore"))]
        answers = self._ask([text for _, text in heads], max_tokens=_WRITTEN, temperature=1, seed=self._settings.seed)
        for (prompt, _), answer in zip(heads, answers, strict=True):
            later.compare(prompt, answer, begin=0)
        own = [answer for answer in answers if isinstance(answer, Answer) and answer.tokens.echoes]
        read = self._ask([one.text + one.tokens.text.partition(one.text)[2] for one in own])
        for one, again in zip(own, read, strict=True):
            # Where not all tokens come back, those that do may be others that show alike.
            if not isinstance(again, Answer) or again.tokens.pieces[: len(one.tokens.pieces)] == one.tokens.pieces:
                agreement.compare(one, again, begin=one.size)
        return agreement, later
