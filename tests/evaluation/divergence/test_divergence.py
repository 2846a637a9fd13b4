"""Two models over the contexts of a text: every figure against a slow twin, and what must be said beside them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.json_text import to_json
from lmgauge.base.progress import listening
from lmgauge.evaluation.divergence.bases import AskedBase
from lmgauge.evaluation.divergence.divergence import divergence
from lmgauge.evaluation.options import DivergenceSettings
from lmgauge.models.combined.mixture.compatibility import aligned
from lmgauge.models.combined.mixture.model import MixtureModel
from lmgauge.models.protocol import LanguageModel, completed
from lmgauge.numerics.information import jensen_shannon_divergence, kl_divergence
from lmgauge.results import Divergence
from lmgauge.text.vocabulary import BOS, EOS

LINES = ["a b c", "b c a", "a b", "c c c c", "", "a a b d"]
TEST = ["a b c x", "c", "", "b b a", "c c d a b"] * 3
WORDS = ["a", "b", "c", "d"]


def train(kind: str, words: Sequence[str] = WORDS, **options: Any) -> NgramModel:
    return lmgauge.train(kind, Corpus.from_strings(LINES), words=list(words), **options)  # type: ignore[arg-type]


def compare(
    a: LanguageModel, b: LanguageModel, lines: Sequence[str] = TEST, block_bytes: int = 1 << 20, **options: Any
) -> Divergence:
    chosen = {name: options.pop(name) for name in ("events", "top_k", "seed", "threads") if name in options}
    settings = DivergenceSettings(**{"events": None, **chosen})
    corpus = Corpus.from_strings(lines, block_bytes=block_bytes)
    base, name = options.pop("names", (a.label, b.label))
    return divergence(AskedBase(completed(a), base), [completed(b)], corpus, settings, names=[name], **options)[0]


def histories(model: LanguageModel, lines: Sequence[str]) -> list[tuple[list[int], int]]:
    """Context and true token of each event, as the model's policy has it."""
    found, history = [], [BOS]
    for batch in model.score(Corpus.from_strings(lines)):
        for token in batch.token_ids.tolist():
            found.append((list(history), token))
            history.append(token)
            if token == EOS and not model.context_policy.runs_on:
                history = [BOS]
    return found


def twin(a: LanguageModel, b: LanguageModel, lines: Sequence[str] = TEST) -> dict[str, Any]:
    """The slow and obvious way, over one pair of distributions after another."""
    rows: list[tuple[float, ...]] = []
    accepted = []
    for (context_a, token), (context_b, _) in zip(histories(a, lines), histories(b, lines), strict=True):
        p, q = (np.exp(m.log_distribution(np.array(c, np.uint32))) for m, c in ((a, context_a), (b, context_b)))
        true = p[token], q[token]
        p, q = p / p.sum(), q / q.sum()
        # A token drawn from q is accepted with probability min(1, p / q): Leviathan et al. (2023), theorem 3.5.
        accepted.append(sum(float(q[i]) * min(1.0, float(p[i] / q[i])) for i in range(len(q)) if q[i]))
        tops = [sorted(range(len(d)), key=lambda i, d=d: (-d[i], i))[:3] for d in (p, q)]  # type: ignore[misc]
        rows.append(
            (
                kl_divergence(p, q, unit="nats"),
                kl_divergence(q, p, unit="nats"),
                jensen_shannon_divergence(p, q, unit="bits"),
                0.5 * float(np.abs(p - q).sum()),
                float(tops[0][0] == tops[1][0]),
                len(set(tops[0]) & set(tops[1])) / 3,
                math.log(true[1]) - math.log(true[0]),
                (true[1] - true[0]) ** 2,
                true[1] - true[0],
            )
        )
    columns = list(zip(*rows, strict=True))
    means = [math.fsum(column) / len(rows) for column in columns]
    return {"rows": columns, "means": means, "events": len(rows), "accepted": math.fsum(accepted) / len(rows)}


@pytest.mark.parametrize("policies", [("sentence", "sentence"), ("stream", "stream"), ("sentence", "stream")])
def test_every_figure_is_the_twin_s(policies: tuple[str, str]) -> None:
    a, b = train("witten-bell", order=3, context=policies[0]), train("kneser-ney", order=2, context=policies[1])
    result, expected = compare(a, b, top_k=(3,)), twin(a, b)
    kl_ab, kl_ba, js, tv, top_1, top_3, change, squares, _ = expected["means"]
    near = {"rel": 1e-7, "abs": 1e-12}  # by as much probabilities of n-gram models may miss one
    assert result.events == result.total_events == expected["events"] == 54
    assert result.kl_ab_nats.value == pytest.approx(kl_ab, **near)
    assert result.kl_ab_bits.value == pytest.approx(kl_ab / math.log(2), **near)
    assert result.acceptance_rate.value == pytest.approx(expected["accepted"], **near)
    assert result.kl_ba_nats.value == pytest.approx(kl_ba, **near)
    assert result.kl_ba_bits.value == pytest.approx(kl_ba / math.log(2), **near)
    assert result.jensen_shannon_bits.value == pytest.approx(js, **near)
    assert result.total_variation.value == pytest.approx(tv, **near)
    assert result.top_1_agreement.value == pytest.approx(top_1)
    assert result.top_k_overlap.keys() == {3}
    assert result.top_k_overlap[3].value == pytest.approx(top_3)
    assert result.log_probability_change_nats.value == pytest.approx(change, **near)
    assert result.probability_change_rms.value == pytest.approx(math.sqrt(squares), **near)
    assert result.perplexity_ratio.value == pytest.approx(math.exp(-change), **near)
    percents = [0, 0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100]
    for quantiles, column in ((result.kl_ab_quantiles_nats, 0), (result.probability_change_quantiles, 8)):
        assert list(quantiles) == [f"{percent:g}" for percent in percents]
        twins = np.percentile(expected["rows"][column], percents)
        assert list(quantiles.values()) == pytest.approx(twins.tolist(), **near)
    assert result.probability_change.value == pytest.approx(expected["means"][8], **near)
    worst = result.worst_tokens[0]
    assert worst.kl_nats == result.kl_ab_quantiles_nats["100"]
    assert worst.kl_nats == pytest.approx(max(expected["rows"][0]), **near)
    lost = result.lost_tokens[0]
    assert lost.p_b - lost.p_a == pytest.approx(result.probability_change_quantiles["0"], **near)


def test_all_events_give_the_perplexities_of_an_evaluation() -> None:
    a, b = train("witten-bell", order=3), train("kneser-ney", order=2)
    result = compare(a, b)
    evaluations = lmgauge.evaluate([a, b], Corpus.from_strings(TEST))
    assert [result.perplexity_a.value, result.perplexity_b.value] == [e.perplexity for e in evaluations]
    assert [result.perplexity_a.interval, result.perplexity_b.interval] == [e.interval for e in evaluations]
    assert result.perplexity_ratio.value == pytest.approx(evaluations[1].perplexity / evaluations[0].perplexity)
    assert result.fingerprints["text"] == evaluations[0].fingerprints["text"]
    assert result.signature.startswith(
        f"div|a:wb3@{a.fingerprint[:6]}|b:kn2@{b.fingerprint[:6]}|n:54/54|segments:15/15|seed:12345"
    )


def test_a_model_is_nowhere_from_itself() -> None:
    model = train("witten-bell", order=3)
    result = compare(model, model)
    zeros = [result.kl_ab_nats, result.kl_ba_nats, result.jensen_shannon_bits, result.total_variation]
    zeros += [result.log_probability_change_nats, result.probability_change_rms]
    assert [figure.value for figure in zeros] == [0.0] * 6
    assert all(f.interval is not None and (f.interval.low, f.interval.high) == (0.0, 0.0) for f in zeros)
    assert result.top_1_agreement.value == 1.0
    assert [figure.value for figure in result.top_k_overlap.values()] == [1.0] * 3
    assert result.perplexity_ratio.value == 1.0
    assert set(result.kl_ab_quantiles_nats.values()) == {0.0}


def test_exchanged_models_exchange_the_figures() -> None:
    a, b = train("witten-bell", order=3), train("laplace", order=2)
    there, back = compare(a, b), compare(b, a)
    assert there.kl_ab_nats.value == pytest.approx(back.kl_ba_nats.value, rel=1e-12)
    assert there.perplexity_a == back.perplexity_b
    assert there.jensen_shannon_bits.value == pytest.approx(back.jensen_shannon_bits.value, rel=1e-12)
    assert there.top_k_overlap == back.top_k_overlap
    assert there.perplexity_ratio.value == pytest.approx(1 / back.perplexity_ratio.value)  # type: ignore[operator]


def test_another_order_of_ids_changes_nothing() -> None:
    a, b, shuffled = train("witten-bell"), train("laplace"), train("laplace", ["d", "b", "a", "c"])
    with pytest.raises(InputError, match="over_common_tokens"):
        compare(a, shuffled)
    straight, through = compare(a, b), compare(a, aligned(shuffled, a))
    assert straight.kl_ab_nats.value == pytest.approx(through.kl_ab_nats.value, rel=1e-12)
    assert straight.top_1_agreement == through.top_1_agreement
    assert straight.perplexity_b == through.perplexity_b


# -- zero probability ---------------------------------------------------------------------------------------------------


def test_infinite_divergence_is_counted_and_said() -> None:
    smooth, sharp = train("witten-bell", order=2), train("mle", order=2)
    result = compare(smooth, sharp)
    rows = [(np.exp(smooth.log_distribution(c)), np.exp(sharp.log_distribution(c)), t) for c, t in histories(smooth, TEST)]
    defined = [(p, q / q.sum()) for p, q, _ in rows if q.any()]
    infinite = sum(bool(((p > 0) & (q == 0)).any()) for p, q in defined)
    assert result.undefined_events == len(rows) - len(defined) > 0
    assert result.infinite_kl_ab == infinite > 0
    assert result.infinite_kl_ba == 0
    assert result.kl_ab_nats.value == math.inf
    assert result.kl_ab_quantiles_nats["100"] == math.inf
    assert result.kl_ba_nats.value == pytest.approx(
        np.mean([kl_divergence(q, p / p.sum(), unit="nats") for p, q in defined]), rel=1e-9
    )
    assert result.zero_probability_a == 0
    assert result.zero_probability_b == sum(q[t] == 0 for _, q, t in rows) > 0
    assert (result.perplexity_b.value, result.perplexity_ratio.value) == (math.inf, math.inf)
    assert result.log_probability_change_nats.value == -math.inf
    assert (
        f"the KL divergence of {result.b} from {result.a} is infinite at {infinite:,} events: {result.b} rules out what "
        f"{result.a} holds possible"
    ) in result.notes
    assert any("left out of the divergences" in note for note in result.notes)
    assert json.loads(to_json(result.to_dict()))["kl_ab_nats"]["value"] == "inf"


def test_both_impossible_is_no_change() -> None:
    a, b = train("mle", order=2), train("mle", order=3)
    result = compare(a, b)
    assert result.zero_probability_a > 0
    assert (result.perplexity_a.value, result.perplexity_b.value, result.perplexity_ratio.value) == (
        math.inf,
        math.inf,
        None,
    )
    assert result.perplexity_ratio.interval is None
    same = compare(a, a)
    assert (same.log_probability_change_nats.value, same.probability_change_rms.value) == (0.0, 0.0)


def test_part_of_the_infinite_events_is_finite() -> None:
    half = MixtureModel([train("mle", order=1), train("laplace", order=1)], [1.0, 0.0])
    result = compare(train("laplace", order=1), half, ["a"])
    assert result.kl_ab_without_infinite_nats is None
    only = compare(half, train("laplace", order=1), ["a"])
    assert only.kl_ab_without_infinite_nats == only.kl_ab_nats.value


# -- the sample ---------------------------------------------------------------------------------------------------------


def test_a_sample_is_whole_segments_up_to_so_many_events() -> None:
    a, b = train("witten-bell", order=3), train("laplace", order=2)
    lines = TEST * 10
    result = compare(a, b, lines, events=60)
    assert 60 <= result.events < 60 + 6
    assert (result.total_events, result.total_segments) == (540, 150)
    assert 10 < result.segments < 40
    again = compare(a, b, lines, block_bytes=11, events=60, threads=3)
    assert again == result
    most = compare(a, b, lines, events=500)
    assert 500 <= most.events < 540
    assert compare(a, b, lines, block_bytes=1, events=500) == most
    other = compare(a, b, lines, events=60, seed=1)
    assert other.kl_ab_nats.value != result.kl_ab_nats.value
    everything = compare(a, b, lines, events=10**6)
    assert everything == compare(a, b, lines)


@pytest.mark.parametrize("context", ["sentence", "stream"])
def test_sampled_events_are_those_of_the_whole(context: str) -> None:
    a, b = train("witten-bell", order=4, context=context), train("laplace", order=3, context=context)
    lines = [" ".join(WORDS[(i * j) % 4] for j in range(1, 2 + i % 5)) for i in range(60)]
    expected = [
        kl_divergence(*(d / d.sum() for d in (np.exp(m.log_distribution(c)) for m in (a, b))), unit="nats")
        for c, _ in histories(a, lines)
    ]
    result = compare(a, b, lines, events=40, seed=3)
    assert result.worst_tokens
    ends = np.cumsum([len(line.split()) + 1 for line in lines])
    worst = result.worst_tokens[0]
    event = int(ends[worst.segment]) - len(lines[worst.segment].split()) - 1 + worst.position
    assert expected[event] == pytest.approx(worst.kl_nats, rel=1e-7)
    assert worst.context == " ".join(lines[worst.segment].split()[: worst.position])
    # Segments are drawn with equal chance: the mean over seeds is near that of the text.
    means = [compare(a, b, lines, events=40, seed=s).kl_ab_nats.value for s in range(30)]
    assert np.mean(np.array(means, np.float64)) == pytest.approx(np.mean(expected), rel=0.1)


def test_intervals_hold_the_figure_of_the_whole() -> None:
    a, b = train("witten-bell", order=3), train("laplace", order=2)
    lines = [" ".join(WORDS[(i * j) % 4] for j in range(1, 2 + i % 7)) for i in range(300)]
    whole, part = compare(a, b, lines), compare(a, b, lines, events=400)
    names = ("kl_ab_nats", "kl_ba_bits", "jensen_shannon_bits", "top_1_agreement", "perplexity_ratio", "perplexity_a")
    for name in (*names, "acceptance_rate"):
        interval = getattr(part, name).interval
        assert interval.low <= getattr(whole, name).value <= interval.high, name
        assert interval.low < interval.high
    apart, accepted = part.total_variation.interval, part.acceptance_rate.interval
    assert apart is not None
    assert accepted is not None
    assert (accepted.low, accepted.high) == pytest.approx((1 - apart.high, 1 - apart.low))


def test_one_segment_has_no_interval() -> None:
    result = compare(train("witten-bell"), train("laplace"), ["a b c a b"])
    assert result.kl_ab_nats.value is not None
    assert result.kl_ab_nats.interval is None
    assert result.perplexity_ratio.interval is None
    assert result.notes[0].startswith("no interval and no test: these need 6")


# -- what is told -------------------------------------------------------------------------------------------------------


class Unnormalised:
    """A model whose probabilities do not sum to one."""

    def __init__(self, model: NgramModel) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        return self._model.log_distribution(context_ids) + math.log(1.25)


def test_distributions_that_do_not_sum_to_one_are_told() -> None:
    model = train("witten-bell")
    result = compare(model, Unnormalised(model), names=("good", "bad"))
    assert result.kl_ab_nats.value == pytest.approx(0, abs=1e-12)
    note = result.notes[0]
    assert note.startswith("bad: its probabilities do not sum to one at 54 events (on average to 1.25, at worst to 1.25)")


def test_the_worst_context() -> None:
    a, b = train("witten-bell", order=3), train("laplace", order=2)
    result = compare(a, b, ["d d d d d d d d d d d d d d d d a b c"], names=("one", "two"))
    assert result.worst_tokens
    assert len(result.worst_tokens[0].context.split()) <= 12
    context = [BOS, *a.vocabulary.ids(("d " * 16 + "a b c").split()[: result.worst_tokens[0].position]).tolist()]
    p = np.exp(a.log_distribution(context))
    assert result.worst_tokens[0].top_a == a.vocabulary.token(int(p.argmax()))
    assert result.worst_tokens[0].top_a_probability == pytest.approx(float(p.max()))
    assert repr(result).startswith("<Divergence: two compared with one: KL 0.287583 nats")


def test_progress_and_numbers_out_of_range() -> None:
    a, b = train("witten-bell"), train("laplace")
    told: list[str] = []
    with listening(told.append):
        compare(a, b)
        compare(a, b, events=6)
    assert told == ["compared 54 events", "compared 10 of 10 events"]  # whole segments: 6 or more
    for options, message in [
        ({"events": 0}, "events must be"),
        ({"top_k": ()}, "top-k must be .* got none"),
        ({"top_k": (5, 0)}, "top-k must be .* got 5, 0"),
        ({"seed": -1}, "seed must be a whole number, 0 or more; got -1"),
    ]:
        with pytest.raises(UsageError, match=message):
            compare(a, b, **options)
    with pytest.raises(InputError, match="no event"):
        compare(a, b, [])


def test_different_events_are_caught() -> None:
    lines = ["a b", "a <unk> b"]
    strict, escaped = train("witten-bell"), train("laplace", [*WORDS], reserved="escape")
    with pytest.raises(InputError, match="reserved"):
        compare(strict, escaped, lines)

    class Other(Unnormalised):
        def score(self, *arguments: Any, **options: Any) -> Any:
            from dataclasses import replace

            for batch in self._model.score(*arguments, **options):
                ids = batch.token_ids.copy()
                ids[4] = 0
                yield replace(batch, token_ids=ids)

    with pytest.raises(InputError, match="different events, near segment 2"):
        compare(strict, Other(strict), ["a b", "a c b"])
