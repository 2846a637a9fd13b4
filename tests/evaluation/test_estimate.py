"""A model on a sample of documents: what must come out, what its run folder is good for, and what is refused in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, LmgaugeError, UsageError
from lmgauge.evaluation.runs import open_run
from lmgauge.evaluation.sampled import Sample
from lmgauge.numerics.signature import Signature
from lmgauge.results import Estimate

DOCUMENTS = 40


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty documents of one to nine lines, two n-gram models and one that cannot score all of them."""
    folder = tmp_path_factory.mktemp("sampled")
    generator = np.random.default_rng(5)
    words, lines = ["the", "cat", "dog", "sat", "ran", "on", "mat", "a"], []
    for _ in range(DOCUMENTS):
        shares = generator.dirichlet(np.full(len(words), 0.4))
        for _ in range(generator.integers(1, 10)):
            lines.append(" ".join(generator.choice(words, generator.integers(2, 12), p=shares)))
        lines.append("")
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    for name, kind, order in (("big", "modified-kneser-ney", 3), ("small", "witten-bell", 1), ("other", "witten-bell", 3)):
        lmgauge.train(kind, folder / "text.txt", order=order, output=folder / name)
    lmgauge.train("mle", Corpus.from_strings(["the cat"]), order=2, output=folder / "narrow")
    return folder


@pytest.fixture(scope="module")
def estimate(place: Path) -> Callable[..., Estimate]:
    def made(model: str = "big", **options: Any) -> Estimate:
        proxy = [place / name for name in options.pop("proxy", ("small",))]
        how = {"document": "blank-line", "sample": 15} | options
        return lmgauge.estimate(place / model, place / "text.txt", proxy=proxy, **how)

    return made


def whole(place: Path, model: str = "big", **options: Any) -> Any:
    return lmgauge.evaluate(place / model, place / "text.txt", document="blank-line", **options)


class TestFigures:
    def test_all_documents_give_the_figures_of_the_text(self, place: Path, estimate: Callable[..., Estimate]) -> None:
        result, exact = estimate(sample=DOCUMENTS), whole(place)
        for figure in result.figures:
            assert figure.value + 0.0 == pytest.approx(float(getattr(exact, figure.metric)), rel=1e-12)
            assert figure.interval.low == pytest.approx(figure.interval.high)
        assert len(result.figures) == 7
        assert result.share == 1.0

    def test_a_proxy_that_is_the_model_leaves_no_error(self, place: Path, estimate: Callable[..., Estimate]) -> None:
        model = lmgauge.load_model(place / "big")
        how: dict[str, Any] = {"sample": 36, "document": "blank-line"}
        result = lmgauge.estimate(place / "big", place / "text.txt", proxy=[place / "small", model], **how)
        exact = whole(place)
        for figure in result.figures:
            assert float(figure.value) == pytest.approx(float(getattr(exact, figure.metric)), rel=1e-9)
        assert result.correlation == pytest.approx(1.0)
        assert any("leave no rest" in note for note in result.notes)
        assert result.documents_needed == DOCUMENTS

    def test_it_is_near_the_whole_and_beside_a_plain_sample(self, place: Path, estimate: Callable[..., Estimate]) -> None:
        result, figure = estimate(), estimate().figure("bits_per_byte")
        exact = float(whole(place).bits_per_byte)
        assert figure.interval.low <= exact <= figure.interval.high
        of_sample = result.of_sample
        assert figure.plain == pytest.approx(float(of_sample.bits_per_byte))
        assert figure.interval.high - figure.interval.low < figure.plain_interval.high - figure.plain_interval.low
        assert 15 < result.documents_needed <= DOCUMENTS
        assert result.share == pytest.approx(of_sample.bytes / whole(place).bytes)

    def test_without_proxies_it_is_a_plain_sample(self, estimate: Callable[..., Estimate]) -> None:
        result = estimate(proxy=())
        for figure in result.figures:
            assert (figure.value, figure.interval) == (figure.plain, figure.plain_interval)
        assert (result.correlation, result.documents_needed) == (0.0, 15)
        assert "proxy:none" in result.signature

    def test_the_documents_that_the_error_comes_from(self, estimate: Callable[..., Estimate]) -> None:
        residuals = estimate().residuals
        shares = [one.share for one in residuals]
        assert shares == sorted(shares, reverse=True)
        assert 0 < sum(shares) <= 1
        assert residuals[0].document.startswith("text.txt, line ") or "/text.txt, line " in residuals[0].document
        assert residuals[0].bits_per_byte != residuals[0].expected

    def test_unseen_words_are_marked_as_everywhere(self, place: Path, tmp_path: Path) -> None:
        text = tmp_path / "new.txt"
        text.write_text((place / "text.txt").read_text().replace("mat", "moon"))
        how: dict[str, Any] = {"proxy": place / "small", "sample": 12, "document": "blank-line"}
        result = lmgauge.estimate(place / "big", text, **how)
        assert isinstance(result.figure("bits_per_byte").value, lmgauge.results.LowerBound)

    def test_the_seed_draws_and_the_signature_says_it(self, estimate: Callable[..., Estimate]) -> None:
        one, same, other = estimate(), estimate(), estimate(seed=7)
        assert one == same
        assert one.figures != other.figures
        parts = Signature.parse(one.signature).parts
        assert (parts["sample"], parts["seed"]) == (f"15/{DOCUMENTS}", "12345")
        assert parts["proxy"].startswith("small@") or "@" in parts["proxy"]
        assert parts["text"] != Signature.parse(one.of_sample.signature).parts["text"]

    def test_tokens_that_all_cost_alike_need_no_proxy(self) -> None:
        """Two nats a token, and tokens of any length: per token nothing varies, whatever the bytes."""
        generator = np.random.default_rng(2)
        sizes, events = generator.integers(10, 900, 50).tolist(), generator.integers(5, 99, 50) * 1.0
        proxy = tuple(generator.uniform(1, 90, 50).tolist() for _ in range(3))
        sample = Sample("", 0, list(range(20)), "", 0, [], {"bytes": sizes}, {"small": (proxy[0], proxy[1], proxy[2])})
        spread = sample.spreads(2.0 * events[:20], events[:20])["events"]
        assert (spread.ratio, spread.error) == (pytest.approx(2.0), pytest.approx(0.0, abs=1e-9))

    def test_figures_by_name(self, estimate: Callable[..., Estimate]) -> None:
        with pytest.raises(InputError, match="'bleu' was not estimated; there are perplexity"):
            estimate().figure("bleu")


class TestGroups:
    """Forty documents of forty lines in groups of 24, 14 and 2."""

    def estimated(self, **options: Any) -> tuple[Estimate, dict[str, Any]]:
        generator = np.random.default_rng(5)
        words = ["the", "cat", "dog", "sat", "ran", "on", "mat", "a"]
        lines = [" ".join(generator.choice(words, 9, p=generator.dirichlet(np.full(8, 0.4)))) for _ in range(40)]
        groups = [*["news"] * 24, *["law"] * 14, *["rare"] * 2]
        text = Corpus.from_strings(lines, documents=[str(i) for i in range(40)], groups=groups)
        big, small = (lmgauge.train("witten-bell", text, order=order) for order in (3, 1))
        exact = {one.group: one for one in lmgauge.evaluate(big, text, by_group=True)}
        return lmgauge.estimate(big, text, proxy=small, by_group=True, **options), exact

    def test_each_is_estimated_where_enough_were_drawn(self) -> None:
        result, exact = self.estimated(sample=24)
        assert [(group.group, group.all_documents) for group in result.groups] == [("news", 24), ("law", 14), ("rare", 2)]
        assert sum(group.documents for group in result.groups) == 24
        for group in result.groups[:2]:
            for figure in group.figures:
                truth = float(getattr(exact[group.group], figure.metric))
                assert figure.interval.low <= truth <= figure.interval.high
                assert figure.interval.units == group.documents
        assert result.groups[2].figures == ()
        assert "fewer than 6 documents were drawn has no figures: too few" in " ".join(result.notes)
        assert "too few" in str(result)
        rows = result.to_rows()
        assert [row["group"] for row in rows] == [""] * 7 + ["news"] * 7 + ["law"] * 7
        assert (rows[12]["metric"], rows[12]["interval_low"]) == ("bits_per_byte", result.groups[0].figures[5].interval.low)

    def test_with_all_documents_drawn_they_are_exact(self) -> None:
        result, exact = self.estimated(sample=40)
        for group in result.groups[:2]:
            for figure in group.figures:
                assert float(figure.value) == pytest.approx(float(getattr(exact[group.group], figure.metric)), rel=1e-9)
                assert figure.interval.high == pytest.approx(figure.interval.low)

    def test_a_document_in_several_groups(self) -> None:
        text = Corpus.from_strings(["a b"] * 9, documents=[*"abcdefgh", "h"], groups=[*"xxxxxxxxy"])
        with pytest.raises(InputError, match="record 8: the document that begins here is in several groups"):
            lmgauge.estimate(lmgauge.train("laplace", text, order=1), text, sample=6, by_group=True)


class TestHowMany:
    def test_until_the_interval_is_narrow(self, estimate: Callable[..., Estimate]) -> None:
        for until in (0.05, 0.01):
            result = estimate(sample=None, until=until)
            figure = result.figure("bits_per_byte")
            reached = (figure.interval.high - figure.interval.low) / 2 / figure.value
            assert result.documents == 20 or reached < 1.5 * until
        assert estimate(sample=None, until=1e-6).documents == DOCUMENTS

    def test_a_budget_of_time(self, estimate: Callable[..., Estimate]) -> None:
        assert estimate(sample=None, budget="1h").documents == DOCUMENTS
        assert estimate(sample=None, budget="0.000001s").documents == 20

    @pytest.mark.parametrize("budget", ["2", "h", "0s", "2 h", "-1h", "1d"])
    def test_what_is_no_time(self, estimate: Callable[..., Estimate], budget: str) -> None:
        with pytest.raises(UsageError, match="is not a time: write it as in 90s, 30m or 2h"):
            estimate(sample=None, budget=budget)


class TestRuns:
    def test_the_run_is_of_the_sample_and_remembers_it(
        self, place: Path, tmp_path: Path, estimate: Callable[..., Estimate]
    ) -> None:
        result = estimate(output=tmp_path / "run")
        run = open_run(tmp_path / "run")
        assert run.sample is not None
        assert run.sample.part == f"15/{DOCUMENTS}"
        assert list(run.sample.proxies) == list(result.proxies)
        assert run.evaluation is not None
        assert f"sample:15/{DOCUMENTS}" in run.evaluation["signature"]
        assert any("of the sample alone" in note for note in run.evaluation["notes"])
        corpus = run.corpus()
        assert corpus is not None
        assert sum(len(block) for block in corpus) == result.of_sample.segments
        assert corpus.report.sha256 == run.text_sha256
        assert lmgauge.audit(place / "big", run=tmp_path / "run", levels=["coverage"]).passed
        again = lmgauge.evaluate_scores(tmp_path / "run")
        assert again.perplexity == result.of_sample.perplexity

    def test_two_runs_of_one_sample_are_compared_on_all_documents(
        self, place: Path, tmp_path: Path, estimate: Callable[..., Estimate]
    ) -> None:
        for model in ("other", "big"):
            alone = estimate(model, proxy=["small"], output=tmp_path / model)
            whole(place, model, output=tmp_path / f"whole-{model}")
        (sampled,) = lmgauge.compare([tmp_path / "big", tmp_path / "other"])
        (exact,) = lmgauge.compare([tmp_path / "whole-big", tmp_path / "whole-other"])
        assert (sampled.unit, sampled.units) == ("documents", 15)
        assert any(f"of all {DOCUMENTS} documents, estimated from 15" in note for note in sampled.notes)
        for one, two in zip(sampled.differences, exact.differences, strict=True):
            assert one.metric == two.metric
            assert one.interval is not None
            assert two.interval is not None
            assert one.interval.low <= two.difference <= one.interval.high
            assert one.interval.high - one.interval.low > two.interval.high - two.interval.low
            assert float(one.first) == pytest.approx(float(alone.figure(one.metric).value))
            assert one.difference == pytest.approx((one.interval.high + one.interval.low) / 2, rel=1e-3)
        with pytest.raises(InputError, match="leave --document out"):
            lmgauge.compare([tmp_path / "big", tmp_path / "other"], document="segment")

    def test_with_all_documents_drawn_it_is_the_comparison_of_whole_runs(
        self, place: Path, tmp_path: Path, estimate: Callable[..., Estimate]
    ) -> None:
        for model in ("big", "other"):
            estimate(model, sample=DOCUMENTS, output=tmp_path / model)
            whole(place, model, output=tmp_path / f"whole-{model}")
        (sampled,) = lmgauge.compare([tmp_path / "big", tmp_path / "other"])
        (exact,) = lmgauge.compare([tmp_path / "whole-big", tmp_path / "whole-other"])
        for one, two in zip(sampled.differences, exact.differences, strict=True):
            assert one.difference == pytest.approx(two.difference, rel=1e-9)
            assert (float(one.first), float(one.second)) == pytest.approx((float(two.first), float(two.second)), rel=1e-9)

    def test_other_samples_are_not_compared_as_one(self, tmp_path: Path, estimate: Callable[..., Estimate]) -> None:
        estimate("big", output=tmp_path / "one")
        estimate("other", seed=3, output=tmp_path / "two")
        assert not lmgauge.compare([tmp_path / "one", tmp_path / "two"])[0].verdict("bits_per_byte").comparable

    def test_a_proxy_may_be_a_run(self, place: Path, tmp_path: Path, estimate: Callable[..., Estimate]) -> None:
        whole(place, "small", output=tmp_path / "run")
        result = lmgauge.estimate(
            place / "big", place / "text.txt", proxy=tmp_path / "run", sample=15, document="blank-line"
        )
        assert [one.value for one in result.figures] == [one.value for one in estimate().figures]

    def test_a_changed_sample_is_refused(self, tmp_path: Path, estimate: Callable[..., Estimate]) -> None:
        estimate(output=tmp_path / "run")
        file = tmp_path / "run" / "evaluation.json"
        content = json.loads(file.read_text())
        content["settings"]["text"]["sample"]["drawn"] = ["all"]
        file.write_text(json.dumps(content))
        with pytest.raises(InputError, match="changed after it was written"):
            open_run(tmp_path / "run")
        with pytest.raises(InputError, match="not a sample of documents"):
            _ = open_run(tmp_path / "run", check_seal=False).sample


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"sample": 41}, "a sample of 41: give 10 documents or more, 10 for each proxy; the text has 40"),
            ({"sample": 5, "proxy": ()}, "a sample of 5: give 6 documents or more; the text has 40"),
            ({"sample": 19, "proxy": ["small", "other"]}, "a sample of 19: give 20 documents or more, 10 for each proxy"),
            ({"document": None}, "say what they are with --document"),
            ({"document": "file"}, "a sample of 15: give 10 documents or more, 10 for each proxy; the text has 1"),
            ({"sample": None}, "how many documents.* to score all, leave --sample and --proxy out"),
            ({"until": 0.01}, "each say how many documents are scored: give one of them"),
            ({"sample": None, "until": 1.5}, "until must be a number"),
            ({"proxy": ["narrow"]}, "gives probability zero to some of the text"),
            ({"model": "narrow"}, "all figures of the text are infinite"),
            ({"proxy": ["nothing"]}, "nothing"),
        ],
    )
    def test_in_words(self, estimate: Callable[..., Estimate], options: dict[str, Any], words: str) -> None:
        with pytest.raises(LmgaugeError, match=words):
            estimate(**options)

    def test_a_run_of_another_text(self, place: Path, tmp_path: Path) -> None:
        lmgauge.evaluate(place / "small", Corpus.from_strings(["the cat"] * 9), output=tmp_path / "run")
        with pytest.raises(InputError, match="scored another text"):
            lmgauge.estimate(place / "big", place / "text.txt", proxy=tmp_path / "run", sample=9, document="segment")

    def test_what_can_be_read_only_once(self, place: Path) -> None:
        once = Corpus.from_strings(iter(["the cat"] * 9), documents=[str(i) for i in range(9)])
        with pytest.raises(UsageError, match="can be read only once"):
            lmgauge.estimate(place / "big", once, sample=6)


def test_a_context_that_runs_on_is_noted(place: Path, tmp_path: Path) -> None:
    lmgauge.train("witten-bell", place / "text.txt", context="stream", output=tmp_path / "stream")
    result = lmgauge.estimate(tmp_path / "stream", place / "text.txt", sample=9, document="blank-line")
    assert any("runs on over documents" in note for note in result.notes)
