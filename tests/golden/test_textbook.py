"""The worked examples of the textbooks on perplexity, to twelve digits.

Each figure stands beside its arithmetic, and beside what the book printed where that differs. A second route
to each figure (decimal arithmetic with forty digits) shares no code with the package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.numerics.information import cross_entropy, entropy, kl_divergence
from lmgauge.numerics.perplexity import mean_segment_perplexity, score_sequence
from lmgauge.numerics.units import bits_from_perplexity, nats_from_perplexity, perplexity_from_bits, perplexity_from_nats

# Half a unit in the twelfth decimal, the last one of the table.
LAST_DIGIT = 0.5e-12


@dataclass(frozen=True)
class Example:
    """A row of the table: the probabilities as fractions, and the figures as they should be."""

    name: str
    probabilities: tuple[Fraction, ...]
    joint: Fraction
    nats: float
    perplexity: float
    bits: float


def fractions(*texts: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(text) for text in texts)


EXAMPLES = [
    # 1/2 * 4/5 * 9/10 = 9/25. ln: -0.693147 - 0.223144 - 0.105361 = -1.021651; / 3 = -0.340550.
    # Printed 0.340, 1.405, 0.491: it summed -0.693 - 0.223 - 0.105 = -1.021 and went on from -0.340.
    Example(
        "three words",
        fractions("0.5", "0.8", "0.9"),
        Fraction(9, 25),
        0.340550415844,
        1.405721108836,
        0.491310396111,
    ),
    # 5/100 * 90/100 * 80/100 * 95/100 = 3420000/10^8 = 0.0342. 0.0342^(-1/4) = 2.325378.
    # Printed 2.326: exp(0.844), the cross-entropy rounded to three digits first. The project's own list of
    # golden numbers had ...729 for the cross-entropy: it is 0.84388240872839..., and the twelfth digit an 8.
    Example(
        "four words",
        fractions("0.05", "0.90", "0.80", "0.95"),
        Fraction(342, 10_000),
        0.843882408728,
        2.325377540177,
        1.217464966166,
    ),
    # (10 * 5 * 2 * 7 * 10 * 8) / 100^6 = 56000 / 10^12 = 5.6e-8. (5.6e-8)^(-1/6) = 16.167219.
    # Printed 16.16: cut off, not rounded (16.17).
    Example(
        "six words",
        fractions("0.1", "0.05", "0.02", "0.07", "0.1", "0.08"),
        Fraction(56, 10**9),
        2.782985691035,
        16.167219281229,
        4.014999655321,
    ),
    # (10 * 20 * 15 * 30) / 100^4 = 90000 / 10^8 = 0.0009. 0.0009^(-1/4) = 1 / sqrt(0.03) = 10 / sqrt(3).
    Example(
        "ten over the root of three",
        fractions("0.1", "0.2", "0.15", "0.3"),
        Fraction(9, 10_000),
        1.753278948660,
        5.773502691896,
        2.529446844527,
    ),
    # "red red red red blue", uniform over three colours: (1/3)^5 = 1/243; perplexity 3 for any words.
    Example(
        "uniform colours",
        (Fraction(1, 3),) * 5,
        Fraction(1, 243),
        1.098612288668,
        3.0,
        1.584962500721,
    ),
    # The same words, red known to be likely: 0.8^4 * 0.1 = 0.4096 * 0.1 = 0.04096. 0.04096^(-1/5) = 1.894646.
    Example(
        "skewed colours",
        fractions("0.8", "0.8", "0.8", "0.8", "0.1"),
        Fraction(4096, 100_000),
        0.639031859650,
        1.894645708138,
        0.921928094887,
    ),
]


@pytest.fixture(params=EXAMPLES, ids=lambda example: example.name)
def example(request: pytest.FixtureRequest) -> Example:
    found: Example = request.param
    return found


def test_the_figures_of_the_table(example: Example) -> None:
    given = [float(p) for p in example.probabilities]
    score = score_sequence(given, unit="probability")
    assert score.events == len(given)
    assert score.cross_entropy == pytest.approx(example.nats, abs=LAST_DIGIT, rel=0)
    assert score.perplexity == pytest.approx(example.perplexity, abs=LAST_DIGIT, rel=0)
    assert score.bits_per_event == pytest.approx(example.bits, abs=LAST_DIGIT, rel=0)
    assert score.joint_probability == pytest.approx(float(example.joint), rel=1e-14)


def test_the_joint_probability_is_the_product(example: Example) -> None:
    assert math.prod(example.probabilities) == example.joint


def test_the_table_by_decimal_arithmetic(example: Example) -> None:
    """The figures themselves, by forty-digit arithmetic: ln, exp and a division."""
    with localcontext(prec=40):
        joint = Decimal(example.joint.numerator) / Decimal(example.joint.denominator)
        nats = -joint.ln() / len(example.probabilities)
        assert abs(nats - Decimal(repr(example.nats))) <= Decimal("0.5e-12")
        assert abs(nats.exp() - Decimal(repr(example.perplexity))) <= Decimal("0.5e-12")
        assert abs(nats / Decimal(2).ln() - Decimal(repr(example.bits))) <= Decimal("0.5e-12")


@pytest.mark.parametrize(("unit", "log"), [("nats", math.log), ("bits", math.log2), ("log10", math.log10)])
def test_the_same_figures_from_log_probabilities(example: Example, unit: str, log: object) -> None:
    assert callable(log)
    logs = [log(float(p)) for p in example.probabilities]
    assert score_sequence(logs, unit=unit).perplexity == pytest.approx(example.perplexity, abs=1e-12, rel=0)  # type: ignore[arg-type]


def test_joint_probability_of_the_colours_as_printed() -> None:
    # 1/243 = 0.004115226337...
    assert round(score_sequence([1 / 3] * 5, unit="probability").joint_probability, 12) == 0.004115226337


def test_perplexity_64_is_six_bits() -> None:
    # 2^6 = 64, exactly; 6 ln 2 = 4.158883083360 nats.
    assert bits_from_perplexity(64.0) == 6.0
    assert perplexity_from_bits(6.0) == 64.0
    assert nats_from_perplexity(64.0) == pytest.approx(6 * math.log(2), rel=1e-15)


class TestSlipsInPrint:
    """What the books print instead, and the arithmetic that gives it."""

    def test_rounding_between_steps(self) -> None:
        # Three words: logs rounded to three digits.
        total = round(math.log(0.5), 3) + round(math.log(0.8), 3) + round(math.log(0.9), 3)
        assert round(total, 3) == -1.021
        assert round(-total / 3, 3) == 0.340  # the book's cross-entropy; unrounded logs give 0.341
        assert round(math.exp(-total / 3), 3) == 1.405  # unrounded 1.406
        # Four words: the cross-entropy rounded to three digits.
        assert round(math.exp(0.844), 3) == 2.326  # unrounded 2.325

    def test_the_check_by_powers_of_two(self) -> None:
        # Printed as 2^0.491 = 1.401; 0.491 * ln 2 = 0.340335, and exp(0.340335) = 1.405419.
        assert round(2**0.491, 4) == 1.4054
        assert round(lmgauge.calc(bits_per_event="0.491").perplexity, 3) == 1.405

    def test_truncation(self) -> None:
        figure = score_sequence([0.1, 0.05, 0.02, 0.07, 0.1, 0.08], unit="probability").perplexity
        assert math.floor(figure * 100) / 100 == 16.16
        assert round(figure, 2) == 16.17

    @pytest.mark.parametrize(
        ("probabilities", "printed"),
        [([0.1, 0.2, 0.15, 0.3], 5.77), ([0.8] * 4 + [0.1], 1.89), ([1 / 3] * 5, 3.00)],
    )
    def test_printed_right(self, probabilities: list[float], printed: float) -> None:
        assert round(score_sequence(probabilities, unit="probability").perplexity, 2) == printed


def test_cross_entropy_is_entropy_plus_divergence() -> None:
    # p = (1/2, 1/4, 1/4), q = (1/4, 1/4, 1/2), in bits:
    # H(p) = 1/2 * 1 + 1/4 * 2 + 1/4 * 2 = 1.5
    # H(p, q) = 1/2 * 2 + 1/4 * 2 + 1/4 * 1 = 1.75
    # KL = 1/2 * log2(2) + 1/4 * log2(1) + 1/4 * log2(1/2) = 0.5 - 0.25 = 0.25
    p, q = [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]
    assert entropy(p) == pytest.approx(1.5, rel=1e-15)
    assert cross_entropy(p, q) == pytest.approx(1.75, rel=1e-15)
    assert kl_divergence(p, q) == pytest.approx(0.25, rel=1e-14)


def test_losses_and_distributions_by_the_calculator(example: Example) -> None:
    """The same figures through `lmgauge.calc`, from fractions, from the loss and from the perplexity."""
    given = [f"{p.numerator}/{p.denominator}" for p in example.probabilities]
    for result in (
        lmgauge.calc(given),
        lmgauge.calc(cross_entropy=repr(example.nats)),
        lmgauge.calc(perplexity=repr(example.perplexity)),
    ):
        assert result.cross_entropy == pytest.approx(example.nats, abs=2 * LAST_DIGIT, rel=0)
        assert result.perplexity == pytest.approx(example.perplexity, abs=20 * LAST_DIGIT, rel=0)
        assert result.bits_per_event == pytest.approx(example.bits, abs=2 * LAST_DIGIT, rel=0)


def test_cross_entropy_against_the_uniform() -> None:
    # p = (1/2, 1/4, 1/4), q uniform over three: H(p, q) = log2 3 = 1.584962500721, whatever p is;
    # KL = log2 3 - H(p) = 1.584962500721 - 1.5 = 0.084962500721. Perplexity 2^log2(3) = 3.
    result = lmgauge.calc(p=["1/2", "1/4", "1/4"], q=["1/3"] * 3)
    assert result.distributions is not None
    assert result.distributions.entropy_p == 1.5
    assert result.distributions.cross_entropy == pytest.approx(1.584962500721, abs=LAST_DIGIT, rel=0)
    assert result.distributions.kl_divergence == pytest.approx(0.084962500721, abs=LAST_DIGIT, rel=0)
    assert result.perplexity == pytest.approx(3.0, rel=1e-14)


def test_the_mean_of_sentence_perplexities_is_another_number() -> None:
    # Two sentences: 2 nats over 1 event, 300 nats over 100 events.
    # Mean of perplexities: (e^2 + e^3) / 2 = (7.389056 + 20.085537) / 2 = 13.737296.
    # Perplexity of the corpus: e^(302 / 101) = e^2.990099 = 19.887648.
    nats, events = [2.0, 300.0], [1, 100]
    assert mean_segment_perplexity(nats, events) == pytest.approx((math.e**2 + math.e**3) / 2, rel=1e-14)
    assert perplexity_from_nats(sum(nats) / sum(events)) == pytest.approx(math.exp(302 / 101), rel=1e-14)
    assert round(mean_segment_perplexity(nats, events), 1) == 13.7
    assert round(perplexity_from_nats(sum(nats) / sum(events)), 1) == 19.9


def test_the_colours_split_into_two_sentences() -> None:
    # "red red red red" and "blue" with 0.8 and 0.1: perplexities 1.25 and 10, mean 5.625;
    # as one text of five words 1.894646. One textbook calls the former the perplexity of the test set.
    nats = [
        -score_sequence([0.8] * 4, unit="probability").log_probability,
        -score_sequence([0.1], unit="probability").log_probability,
    ]
    assert mean_segment_perplexity(nats, [4, 1]) == pytest.approx(5.625, rel=1e-14)
    assert perplexity_from_nats(sum(nats) / 5) == pytest.approx(1.894645708138, abs=LAST_DIGIT, rel=0)


class TestTrainedWithoutLineEnds:
    """The colours again, as models trained here: `eos=False` leaves out `</s>`, which the textbooks do not count."""

    TEST = ("red red red red blue",)

    @pytest.mark.parametrize(
        ("train", "expected"),
        [
            ("red green blue", 3.0),  # 1/3 each: (1/3)^(-5/5)
            ("red red red red red red red red green blue", 1.894645708138),  # 8/10 and 1/10: 0.04096^(-1/5)
        ],
    )
    def test_perplexities_of_the_book(self, train: str, expected: float) -> None:
        corpus = Corpus.from_strings([train])
        model = lmgauge.train("mle", corpus, order=1, vocabulary="closed", eos=False)
        evaluation = lmgauge.evaluate(model, Corpus.from_strings(self.TEST))
        assert evaluation.events == 5
        assert evaluation.perplexity == pytest.approx(expected, rel=1e-7)  # single-precision probabilities
        assert "|eos:no|" in str(evaluation.signature)

    def test_line_ends_change_the_figure(self) -> None:
        # Six events of eleven: 0.8, 0.1 and 0.1 become 8/11, 1/11, 1/11, and </s> has 1/11.
        corpus = Corpus.from_strings(["red red red red red red red red green blue"])
        model = lmgauge.train("mle", corpus, order=1, vocabulary="closed")
        expected = ((8 / 11) ** 4 * (1 / 11) ** 2) ** (-1 / 6)
        assert lmgauge.evaluate(model, Corpus.from_strings(self.TEST)).perplexity == pytest.approx(expected, rel=1e-7)
        assert round(expected, 2) == 2.75
