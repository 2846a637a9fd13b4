"""Results whose names and texts try to drive a terminal, one of each kind, and the documents made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.api.checkups import checkup
from tests.tasks.items.scored import scored
from tests.tasks.share import Share, compared, grouped

import lmgauge
from lmgauge.api.info import Info
from lmgauge.base.display import Displayable
from lmgauge.evaluation.agreement.results import PairFigures, PairSlice, PairSlices, WorstEvent
from lmgauge.evaluation.baselines import Ladder
from lmgauge.evaluation.context_curve.curve import ContextCurve, ContextPoint, ContextStep
from lmgauge.evaluation.divergence.divergence_result import Figure
from lmgauge.evaluation.evaluate import SplitEvaluation
from lmgauge.evaluation.passages import Passage, Spans
from lmgauge.filtering.documents import DocumentScores, DocumentSums, Groups
from lmgauge.filtering.options import FilterRules
from lmgauge.filtering.percentile_sample import PercentileSample, SampleSettings, document_keys
from lmgauge.filtering.results import Bins, Drawn, Example, PlanSummary, Problem, Tally
from lmgauge.filtering.rules import Reason, judge
from lmgauge.filtering.selection import SelectedShare, Selection, SelectionExample
from lmgauge.models.combined.mixture.mixing import fit_weights
from lmgauge.models.ngram.pruning import PrunedModel
from lmgauge.models.scored_text import ScoredTexts
from lmgauge.numerics.intervals import Interval
from lmgauge.report import agreement as agreement_report
from lmgauge.report import (
    audit,
    calc,
    choices,
    comparison,
    context_curve,
    diagnosis,
    divergence,
    evaluations,
    filtering,
    info,
    membership,
    models,
    overlap,
    surprisal,
    tasks,
)
from lmgauge.report import blocks as doc
from lmgauge.report import estimate as estimate_report
from lmgauge.report import items as items_report
from lmgauge.report.blocks import Document
from lmgauge.tasks.alignment import AlignedSegment, align, errors_by_system
from lmgauge.tasks.correlation import correlate
from lmgauge.tasks.items.table import ItemScores, ItemsOrigin
from lmgauge.tasks.segment_examples import Output, ShownSegment
from lmgauge.text.split import SplitText, WrittenPart

HOSTILE = "x\x1b[31m\x07\x9b1m\u202e\n\t[bold]y[/bold] »z«"
LONG = HOSTILE + "long" * 30
LINES = [f"{a} {b} \x1b[2Jc »{d} \u202e{a}{b} [bold]" for a in "abc" for b in "cde" for d in "fgh"]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Run folders of several models on the same text; the models and the training text stand beside them."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "train.txt").write_text("\n".join(LINES[::2]) + "\n", encoding="utf-8")
    (folder / "te\x1b[1mst.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    runs = []
    for kind, order in (("modified-kneser-ney", 2), ("witten-bell", 2), ("mle", 2), ("laplace", 2), ("laplace", 1)):
        model = lmgauge.train(kind, folder / "train.txt", order=order)  # type: ignore[arg-type]
        model.save(folder / f"{kind}{order}")
        runs.append(folder / f"run-{kind}{order}")
        lmgauge.evaluate(model, folder / "te\x1b[1mst.txt", output=runs[-1])
    return runs


@pytest.fixture(scope="session")
def results(runs: list[Path]) -> dict[str, Any]:
    """A result of each kind."""
    folder = runs[0].parent
    test, train = folder / "te\x1b[1mst.txt", folder / "train.txt"
    models = [folder / "modified-kneser-ney2", folder / "witten-bell2"]
    pairs = lmgauge.compare(runs[:3], train=train)
    items = tuple(replace(item, first=HOSTILE, second=LONG) for item in pairs)
    diagnosed = lmgauge.diagnose(runs[0], train=train, model=models[0])
    estimated = lmgauge.estimate(models[0], test, proxy=models[1], sample=12, document="segment", by_group=True)
    of_groups = (replace(estimated.groups[0], group=HOSTILE), replace(estimated.groups[0], group=LONG, figures=()))
    counts = np.array([(8, 10), (9, 10), (7, 9)] * 20, dtype=np.int64)
    groups = grouped(np.arange(60) % 2, [HOSTILE, LONG], [counts, counts - 1])
    alignment = align("a\x1b[1m b \u202ec", "a x \u202ec d")
    points: Any = [[10.0, 20.0, 40.0, 80.0], [4.0, 3.0, 2.5, 1.0]]
    return {
        "overview": lmgauge.report(runs[:3], text=test).document,
        "evaluations": lmgauge.evaluate(models, [test, train], by_group=True),
        "comparison": replace(pairs, runs=(HOSTILE, LONG, LONG), items=items),
        "recipes": lmgauge.compare_recipes({HOSTILE: runs[:2], LONG: runs[3:]}),
        "decision": replace(lmgauge.decide(models, test, document="segment"), first=HOSTILE, second=LONG, base=HOSTILE),
        "estimate": replace(estimated, model=HOSTILE, proxies=(LONG,), notes=(HOSTILE, LONG), groups=of_groups),
        "ladder": climbed(lmgauge.baseline(train, test, models=models, order=2, character_order=2)),
        "diagnosis": replace(diagnosed, evaluation=replace(diagnosed.evaluation, model=LONG)),
        "divergence": replace(lmgauge.divergence(*models, test), a=HOSTILE, b=LONG),
        "candidates": _candidates(
            models[0], {HOSTILE: models[1], LONG: folder / "laplace2", "c": folder / "laplace1"}, test
        ),
        "stored_base": replace(
            lmgauge.save_base(models[0], test, folder / "stored.base"), path=Path(HOSTILE), model=LONG, notes=(HOSTILE,)
        ),
        "overlap": lmgauge.overlap(train, [test, train], n=2, passages=100),
        "choices": replace(
            lmgauge.pairs(models, [("a c d", f"{HOSTILE} c", HOSTILE), ("b c", LONG, LONG)]), notes=(HOSTILE,)
        ),
        "membership": replace(lmgauge.membership(models[0], train, test), model=HOSTILE, reference=LONG),
        "audit": replace(lmgauge.audit(models[0], test), model=LONG),
        "tasks": compared(Share(), [HOSTILE, LONG], [counts, counts - 1], groups=groups, test="sacrebleu-bootstrap"),
        "rescored": rescored(models[0]),
        "alignments": [AlignedSegment(0, HOSTILE, alignment), AlignedSegment(1, LONG, align("a", "a"))],
        "mixture": lmgauge.mix([*models], test),
        "spelled": lmgauge.train("witten-bell", train, order=2, min_count=2, reserved="escape", vocabulary="spelled"),
        "static": lmgauge.mix([*models], test, static=True),
        "checkup": checkup(HOSTILE, LONG),
        "pruned": PrunedModel(lmgauge.load_model(models[0]), 1e-9, (9, 7), (9, 3), 12.5, float("inf"), 70),  # type: ignore[arg-type]
        "cut": PrunedModel(lmgauge.load_model(models[0]), None, (9, 7), (9, 3), note=HOSTILE),  # type: ignore[arg-type]
        "counts": lmgauge.results.NgramCounts(HOSTILE, (3, 5), 12, 4, (LONG,)),
        "training": training(),
        "selection": selection(),
        "split": split_text(),
        "shard": lmgauge.results.FinishedShard(HOSTILE, 2, 8, LONG, 12, False),
        "agreement": agreement(),
        "agreement_series": lmgauge.results.AgreementSeries(
            (replace(agreement(), label=HOSTILE), replace(agreement(), label=LONG))
        ),
        "context_curve": curve(),
        "scored_text": lmgauge.load_model(models[0]).score_text(LINES[0] + " [bold]"),
        "words": replace(lmgauge.word_surprisal(models[0], test, train=train), model=HOSTILE, notes=(HOSTILE, LONG)),
        "percentiles": learned_percentiles(),
        "filtering": filtered(),
        "compared_items": compared_items(),
        "correlation": correlate([HOSTILE, LONG, "c", "d"], *points, x_name=HOSTILE, y_name=LONG),
        "items": ItemScores(
            ItemsOrigin(HOSTILE, LONG, "columns", (HOSTILE,), notes=(HOSTILE, LONG)),
            *([HOSTILE, LONG], np.ones(2), np.zeros(2, np.int64), [LONG, HOSTILE], [HOSTILE, ""], ["", ""]),
        ),
    }


def filtered(groups: int = 2, models: int = 1) -> lmgauge.results.FilteredDocuments:
    """Documents that were filtered, with names and texts that try to drive a terminal."""
    names = tuple([HOSTILE, LONG, *(f"m{i}" for i in range(models))][:models])
    group_names = [HOSTILE, LONG, *(f"g{i}" for i in range(groups))][:groups]
    groups_of_all = Groups.of([*group_names, None] * 4)
    size = len(groups_of_all)
    perplexity = np.repeat(np.geomspace(2.0, 1e6, size)[:, None], models, axis=1)
    perplexity[-1] = np.inf
    totals = DocumentSums(-9 * np.log(np.minimum(perplexity[:, 0], 1e9)), *(np.full(size, n) for n in (9, 0, 1, 1)))
    vars(totals)["perplexity"] = perplexity[:, 0]
    scores = DocumentScores(np.full(size, 50), dict.fromkeys(names, totals), {})
    texts = (HOSTILE, LONG, "", "\u05d0\u202e\u05d1 <script>alert(1)</script>", "x" * 400)
    reasons: tuple[Reason, ...] = ("stays", "perplexity above")
    drawn = {
        reason: Drawn([Example(key, HOSTILE * 30, text, dict.fromkeys(names, 9.5)) for text in texts])
        for key, reason in enumerate(reasons)
    }
    judgement = judge(FilterRules(max_perplexity=100, min_bytes=10), scores)
    problems = {"no text": Problem(1, f"{HOSTILE}: {LONG}")}
    tally = replace(Tally.of(scores, judgement, groups_of_all, problems, drawn), stand_in=4)
    signatures = dict.fromkeys(names, "doc|v:1")
    summary = PlanSummary(names, signatures, (HOSTILE, LONG), HOSTILE, None)
    return lmgauge.results.FilteredDocuments.of(summary, [tally], HOSTILE, before=1)


def compared_items() -> lmgauge.results.ItemComparisons:
    """Two runs of scores of items, whose ids, subsets and notes have hostile names."""
    names = {"items": [HOSTILE, *"bcdefghi", LONG] * 2, "subsets": [HOSTILE] * 10 + [LONG] * 10, "notes": (HOSTILE,)}
    clusters = [f"{HOSTILE}{i % 7}" for i in range(20)]
    scores = np.random.Generator(np.random.PCG64(1)).integers(2, size=(2, 20, 3))
    runs = [
        scored(name, own, score=HOSTILE, clusters=clusters, **names)
        for name, own in zip((HOSTILE, LONG), scores, strict=True)
    ]
    result = lmgauge.tasks.compare_items([*runs, scored("c", scores[0, ::-1], score=HOSTILE, **names)], examples=2)
    return replace(result, signature="items|v:1")


def learned_percentiles() -> lmgauge.results.Percentiles:
    """Percentiles of two models, with impossible events, a small group, and documents without a group or a perplexity."""
    groups = Groups.of([(HOSTILE, LONG, "a", None)[min(k % 9, 3)] for k in range(450)])
    sample = PercentileSample(2, SampleSettings(40, 1, HOSTILE))
    values = np.arange(1.0, 901.0).reshape(450, 2)
    values[::40, 0], values[::50, 1] = np.inf, np.nan
    keys = document_keys("x", np.arange(1, 451), 1)
    mask = sample.wanted(keys, groups)
    sample.add(keys[mask], groups.where(mask), values[mask])
    sample.bad_records = 3
    return lmgauge.results.Percentiles.learn(sample, {HOSTILE: f"doc|model:{HOSTILE}", LONG: "doc|model:x"}, least=40)


def _candidates(base: Path, candidates: dict[str, Path], test: Path) -> Any:
    found = lmgauge.divergence(base, candidates, test)
    return replace(found, items=tuple(replace(item, a=HOSTILE) for item in found))


def rescored(model: Path) -> lmgauge.results.Rescored:
    """N-best lists whose ids, texts and scores have hostile names."""
    lists = {HOSTILE: [("a c", {HOSTILE: -1.0}), (HOSTILE, {HOSTILE: -1.5})], LONG: [("a d", {HOSTILE: -1.0})]}
    references = {HOSTILE: HOSTILE, LONG: LONG}
    result = lmgauge.rescore(lists, {LONG: model}, tune=lists, ref=references, test_ref=references)
    return replace(result, notes=(*result.notes, HOSTILE), signature="rescore|v:1")


def training() -> Any:
    """What came of a training, without the libraries that train."""
    history = tuple(
        {"epoch": i, "perplexity": 90.0 / i, "valid_perplexity": 80.0 / i, "learning_rate": 0.1} for i in (1, 2, 3)
    )
    settings = SimpleNamespace(kind="lstm", preset=HOSTILE)

    class NeuralTraining(SimpleNamespace, Displayable):
        __module__ = "lmgauge.models.training.run"
        __str__, __repr__ = Displayable.__str__, Displayable.__repr__

    return NeuralTraining(
        path=Path(LONG), settings=settings, parameters=9, vocabulary_size=5, events=7, epochs=3, history=history,
        valid_perplexity=26.7, seconds=1.5, notes=(HOSTILE,),
    )  # fmt: skip


def agreement() -> lmgauge.results.EngineAgreement:
    """Two engines whose names and tokens try to drive a terminal."""
    interval = Interval(0.01, 0.02, 0.95, "jackknife", "documents", 9)
    cut = PairSlices("position in the segment (events)", tuple(PairSlice(x, 5, 0.01, 0.0, 0.1) for x in (HOSTILE, LONG)))
    values = [Figure(0.015, interval)] * 11
    figures = PairFigures(10, *values, {"0": -0.1, "100": 0.1}, (0, 0), ((0.0, 2), (0.0625, 8)), (cut,))
    worst = WorstEvent(3, 4, -1.0, -1.1, -0.1, HOSTILE, LONG, HOSTILE)
    of = {"segments": 2, "missing": ((0, 0),), "independence": LONG, "signature": HOSTILE}
    return lmgauge.results.EngineAgreement(
        HOSTILE, LONG, (0.9, 1.1), figures=figures, floor=figures, floor_from=HOSTILE, p_values={"rms": 0.01}, beyond=True,
        worst_tokens=(worst,), notes=(HOSTILE, LONG), **of,
    )  # fmt: skip


def curve() -> ContextCurve:
    """A context curve, without the libraries of networks."""
    between = Interval(4.5, 5.5, 0.95, "jackknife", "documents", 3)
    points = tuple(ContextPoint(n, -700.0, 32.0, 5.0, between, 2.5, between, 0) for n in (512, 1024))
    step = ContextStep(512, 1024, -0.25, between.mapped(lambda bits: bits - 5), None, None, 0.01, 0.01)
    return ContextCurve(
        model=HOSTILE, stride=128, events=200, bytes=400, segments=3, documents=3, events_in_all=900, segments_in_all=9,
        points=points, steps=(step,), bits_per_byte_is_bound=True, bound_reasons=(HOSTILE,), independence="3 documents",
        documents_by=HOSTILE, fingerprints={"label": LONG}, signature="contexts|n:200", notes=(HOSTILE, LONG),
    )  # fmt: skip


def selection() -> Selection:
    """A selection of half of a pool."""
    return Selection(
        chosen=SelectedShare(0.5, 400, 12_345_678, 0.25), documents=4001, bytes=24_691_357, without_words=1,
        in_domain_bytes=900, vocabulary=400, outputs=(HOSTILE, LONG), histogram=Bins((-2.0, 0.0, 2.0), (3000, 1000)),
        examples={"most alike": (SelectionExample(HOSTILE, -1.5, HOSTILE), SelectionExample(LONG, 0.25, LONG))},
        notes=(HOSTILE, LONG), signature="select|v:1",
    )  # fmt: skip


def split_text() -> SplitText:
    """A text in two parts."""
    parts = (WrittenPart("train", Path(HOSTILE), 3, 90), WrittenPart("test", Path(f"[bold]{LONG}"), 1, 30))
    return SplitText(1, (0.75, 0.25), sum(part.segments for part in parts), "ab" * 32, parts)


def passage(words: str = HOSTILE) -> Passage:
    """A segment of three events: hostile words, a number, and the line end."""
    text = f"{words} 1"
    first = len(words.encode())
    ends = np.array([first, first + 2, first + 2], np.int64)
    kinds, codes = np.array([1, 0, 2], np.uint8), np.array([0, 1, 1], np.uint8)
    spans = Spans(ends, np.array([9.5, np.inf, 0.25]), kinds, {"rank": np.array([7, 90, 1])}, {"class": codes, words: codes})
    return Passage(3, words, words, ("worst",), text, (np.inf,), (3,), first + 3, (spans,))


def climbed(ladder: Ladder) -> Ladder:
    """The ladder with hostile names of models."""
    names = iter([HOSTILE, LONG])
    rungs = tuple(replace(rung, name=next(names), what=LONG) if rung.own else rung for rung in ladder.rungs)
    return replace(ladder, rungs=rungs, notes=(*ladder.notes, HOSTILE))


def output() -> ShownSegment:
    """A segment that one system got wrong, its words hostile."""
    return ShownSegment(0, HOSTILE, (LONG,), (HOSTILE,), (Output(HOSTILE, 0.5, align("a\x1b[1m b", f"a {LONG}")),))


def relabeled(model: Any) -> Any:
    """A spelled model, and the one inside, with hostile labels."""
    inner = SimpleNamespace(label=LONG)
    return SimpleNamespace(
        label=HOSTILE, inner=inner, known_count=model.known_count, tokenizer=model.tokenizer, learned=model.learned
    )


BUILDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "evaluations": lambda it: evaluations.blocks(it["evaluations"], HOSTILE),
    "overview": lambda it: it["overview"],
    "comparison": lambda it: comparison.blocks(it["comparison"]),
    "recipes": lambda it: comparison.recipe_blocks(it["recipes"]),
    "decision": lambda it: tuple(comparison.decision_blocks([it["decision"]])),
    "estimate": lambda it: estimate_report.blocks(it["estimate"]),
    "agreement": lambda it: agreement_report.blocks(it["agreement"]),
    "agreement_series": lambda it: agreement_report.series_blocks(it["agreement_series"]),
    "context_curve": lambda it: context_curve.blocks(it["context_curve"]),
    "diagnosis": lambda it: diagnosis.blocks(it["diagnosis"]),
    "ladder": lambda it: diagnosis.ladder_blocks(it["ladder"]),
    "divergence": lambda it: divergence.blocks(it["divergence"]),
    "candidates": lambda it: divergence.candidate_blocks(it["candidates"], details=True),
    "stored_base": lambda it: divergence.base_blocks(it["stored_base"]),
    "overlap": lambda it: overlap.blocks(it["overlap"]),
    "choices": lambda it: choices.blocks(it["choices"]),
    "membership": lambda it: membership.blocks(it["membership"]),
    "audit": lambda it: audit.blocks(it["audit"]),
    "mixture": lambda it: models.mixture_blocks(it["mixture"], name=HOSTILE, paths=[HOSTILE, LONG]),
    "spelled": lambda it: models.model_blocks(relabeled(it["spelled"])),
    "tasks": lambda it: tasks.blocks(it["tasks"]),
    "alignments": lambda it: tasks.aligned_blocks(it["alignments"]),
    "errors": lambda it: tasks.error_blocks(errors_by_system(it["alignments"]), 3),
    "correlation": lambda it: tasks.correlation_blocks(it["correlation"]),
    "items": lambda it: items_report.blocks(it["compared_items"]),
    "tokens": lambda _: (doc.Heading(HOSTILE), doc.Tokens((HOSTILE, "b", LONG), 1), doc.Text(HOSTILE), doc.Text(LONG)),
    "page only": lambda _: (
        doc.Ladder((doc.Rung(HOSTILE, doc.Mark("PASS", "good"), LONG),)),
        doc.Passages((passage(),), (HOSTILE,), {"class": (HOSTILE, "number")}),
        doc.Outputs((output(),), HOSTILE, aligned=True, percent=True),
        *map(doc.Text, (HOSTILE, LONG, "page")),
    ),
    "calc": lambda _: calc.blocks(lmgauge.calc([0.5, 0.25], tokens=[HOSTILE, LONG]), steps=True),
    "training": lambda it: models.training_blocks(it["training"]),
    "selection": lambda it: filtering.selection_blocks(it["selection"]),
    "split": lambda it: info.split_blocks(it["split"]),
    "shards": lambda it: info.shard_blocks(it["shard"]),
    "static": lambda it: models.static_blocks(it["static"], name=HOSTILE, paths=[HOSTILE, LONG]),
    "rescore": lambda it: tasks.rescored_blocks(it["rescored"]),
    "pruning": lambda it: [block for name in (HOSTILE, LONG) for block in models.pruned_blocks(it["pruned"], name=name)],
    "scored_text": lambda it: surprisal.text_blocks(it["scored_text"]),
    "words": lambda it: surprisal.word_blocks(it["words"]),
    "percentiles": lambda it: filtering.percentile_blocks(it["percentiles"]),
    "filtering": lambda it: filtering.blocks(it["filtering"]),
    "doctor": lambda it: info.checkup_blocks(it["checkup"]),
    "info": lambda _: info.blocks(
        {"path": HOSTILE, "label": LONG, "tokenizer": {"name": HOSTILE}, "notes": [HOSTILE, LONG]}
    ),
}
"""A document of each builder in `lmgauge.report`, by what it is of."""


@pytest.fixture(scope="session")
def documents(results: dict[str, Any]) -> dict[str, Document]:
    """The document of each result."""
    return {name: tuple(build(results)) for name, build in BUILDERS.items()}


@pytest.fixture(scope="session")
def every(results: dict[str, Any]) -> dict[str, Any]:
    """A result of each class that can be shown, by the name of the class."""
    it = results
    scored = it["scored_text"]
    metrics = lmgauge.tasks
    texts = {"hypotheses": [HOSTILE, "a b"], "references": [LONG, "a c"]}
    rate = metrics.wer(**texts)
    labels = metrics.label_scores([HOSTILE, LONG, "a"], [HOSTILE, "a", "a"])
    systems = metrics.score_labels(gold=[HOSTILE, LONG, "a"], predicted=[HOSTILE, "a", "a"])
    parts = it["evaluations"]
    shown = [
        *(parts, parts[0], it["comparison"], it["comparison"][0], it["recipes"], it["recipes"][0], it["diagnosis"]),
        *(it["agreement"], it["agreement_series"], it["decision"], it["estimate"]),
        *(it["ladder"], it["compared_items"]),
        *(
            it["divergence"],
            it["candidates"],
            it["stored_base"],
            it["context_curve"],
            it["overlap"],
            it["choices"],
            it["counts"],
            it["membership"],
            SplitEvaluation(parts[0], parts[1], None),
            it["audit"],
            it["tasks"],
            it["rescored"],
        ),
        *(metrics.bleu(**texts), metrics.chrf(**texts), metrics.ter(**texts), rate, labels, systems[0].score),
        *(it["alignments"][0], it["alignments"][0].alignment, errors_by_system(it["alignments"])[HOSTILE]),
        *(it["correlation"], lmgauge.calc([0.5, 0.25], tokens=[HOSTILE, LONG]), it["split"], it["mixture"], it["training"]),
        it["spelled"],
        it["shard"],
        it["selection"],
        *(scored, ScoredTexts((scored, scored)), Info("run", {"path": HOSTILE, "label": LONG, "notes": ["[bold]"]})),
        it["words"],
        it["percentiles"],
        it["filtering"],
        it["items"],
        it["pruned"],
        it["static"],
        it["checkup"],
        fit_weights(np.log([[0.8, 0.1, 0.8], [0.2, 0.9, 0.2]])),
    ]
    return {type(one).__name__: one for one in shown}
