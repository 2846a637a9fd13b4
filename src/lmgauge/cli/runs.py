"""What `lmgauge report`, `export`, `diagnose`, `explore`, `compare` and `audit` do besides calling their verbs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from lmgauge.api.inputs import PathLike
from lmgauge.base.choices import ComparedMetric
from lmgauge.cli.derive import Call, fields_of
from lmgauge.cli.say import say, say_where

if TYPE_CHECKING:
    from lmgauge.evaluation.comparison.results import Comparisons
    from lmgauge.evaluation.overview import Overview
    from lmgauge.report.blocks import Document


_OF_ITEMS = ("scale", "lower_is_better", "id", "group")


def report(call: Call) -> None:
    """Write the page, print the answers on it, and say where it lies."""
    output = call["output"] or (None if call.as_json else "report.html")
    made = call(output=output)
    call.answer(made, lambda: made.verdicts)
    if output is not None:
        from pathlib import Path

        say_where(Path(output), err=call.as_json)


def import_logs(call: Call) -> None:
    """Import log-probabilities or, where a score is named, scores of items."""
    from lmgauge.api.import_scores import import_scores
    from lmgauge.api.items import import_items

    if call["score"]:
        call.refuse(fields_of(import_scores) - fields_of(import_items), "is of log-probabilities: leave it or --score out")
        call.answer(call(import_items))
    else:
        call.refuse({*_OF_ITEMS}, "is about scores of items: name one with --score")
        call.answer(call(import_scores))


def export(call: Call) -> None:
    """Print the file, or say where the files lie."""
    from lmgauge.base.escaping import for_output

    files = call()
    if call["output"] not in (None, "-"):
        for path in files:
            say(path, err=True)
    elif len(files) > 1:
        raise click.UsageError(f"--to {call['to']} makes {len(files)} files: name a folder for them (-o)")
    else:
        click.echo(for_output("".join(files.values())), nl=False)


def diagnose(call: Call) -> None:
    """Print a diagnosis; a page of it is that of `report`."""
    if call.html is None:
        call.answer(call())
        return
    overview, page = _with_page(call, [call["run"]])
    (diagnosis,) = overview.diagnoses
    call.answer(replace(diagnosis, worst_segments=diagnosis.worst_segments[: call["examples"]]), page=page)


def explore(call: Call) -> None:
    """Serve a page until interrupted."""
    from lmgauge.explore.launch import explore as serve

    serve(**call.values, say=say)


def _with_page(call: Call, runs: Sequence[str]) -> tuple[Overview, tuple[str, Document]]:
    """Return all that is to say of runs, and the page that `report` makes of it."""
    from lmgauge.api.report import overview_of
    from lmgauge.report.documents import page_of

    overview = call(overview_of, runs=runs, examples=call["examples"])
    made = page_of(overview)
    return overview, (made.title, made.document)


def compare(call: Call) -> None:
    """Print the comparisons of runs, of models or of recipes, and fail where they may not be made."""
    from lmgauge.api.decide import decide
    from lmgauge.api.evaluate import evaluate
    from lmgauge.api.verdicts import compare as verb
    from lmgauge.api.verdicts import compare_recipes
    from lmgauge.base.temporaries import scratch_folder
    from lmgauge.tasks.items.table import is_items_folder

    if call["target"] is not None:
        call.refuse(call.values.keys() - {"recipes", "target", "threads"}, "does not go with --target")
        recipes = _by_name("--recipe", call["recipes"] or (), "A=run1,run2,run3")
        if len(recipes) != 1:
            raise click.UsageError("--target is about the runs of one recipe: --recipe mine=run1,run2,run3 --target 3.28")
        call.answer(call(decide, models=next(iter(recipes.values()))))
        return
    if call["recipes"] and "until" in call.values:
        call.refuse(call.values.keys() - {"recipes", "until", "threads"}, "does not go with --recipe and --until")
        call.answer(call(decide, models=_by_name("--recipe", call["recipes"], "A=run1,run2,run3")))
        return
    if call["recipes"]:
        call.refuse(call.values.keys() - {"recipes", "text", "document", "threads"}, "does not go with --recipe")
        call.answer(call(compare_recipes, recipes=_by_name("--recipe", call["recipes"], "A=run1,run2,run3")))
        return
    others = [run for run in call["runs"] if not is_items_folder(run)]
    if len(others) < len(call["runs"]):
        _compare_items(call, others)
        return
    call.refuse({"common"}, "is for runs of scores of items")
    if not call["models"]:
        call.refuse(fields_of(decide) - fields_of(verb) - {"document"}, "is for models: name two (-m) and their TEXT")
        _compare_runs(call, call["runs"])
        return
    text = call["runs"] or call.piped_text()
    if "until" in call.values:
        of_runs = fields_of(verb, check, compared) - fields_of(decide) - {"runs"} | {"text"}
        call.refuse(of_runs, "is for a whole text, or RUNS: leave out --until")
        call.answer(call(decide, text=text))
        return
    call.refuse({"text"}, "is for RUNS, not for models: TEXT stands alone")
    call.refuse({"margin", "seed", "output"}, "needs --until decided: without it, all of the text is scored")
    with scratch_folder() as work:
        scored = call(evaluate, model=call["models"], text=text, output=work / "runs", train=())
        call.values.pop("document", None)  # the runs know it
        _compare_runs(call, [str(one.scores) for one in scored])


def _compare_runs(call: Call, runs: Sequence[str]) -> None:
    from lmgauge.api.verdicts import compare as verb

    page = None
    if call.html is None or len(runs) < 2:
        comparisons = call(verb, runs=runs)
    else:
        overview, page = _with_page(call, runs)
        two = overview.comparisons if len(runs) == 2 else None  # of more the page compares each with the best
        comparisons = call(verb, runs=runs) if two is None else two.with_examples(call["examples"])
    call.answer(comparisons, lambda: call(compared, comparisons=comparisons), page)
    call(check, comparisons=comparisons)


def _compare_items(call: Call, others: Sequence[str]) -> None:
    """Print the comparison of runs of scores of items; with --strict exit with 1 unless they are of the same items."""
    from lmgauge.api.items import compare_items
    from lmgauge.report.items import blocks

    if others and not any(map(os.path.exists, (others[0], others[0].rpartition(":")[0]))):
        raise click.UsageError(f"{others[0]}: no such run; `lmgauge import LOG --score NAME -o RUN` makes one")
    if others:
        raise click.UsageError(f"{others[0]} holds no scores of items, as other runs do: compare runs of one kind")
    call.refuse(call.values.keys() - fields_of(compare_items) - {"strict", "details"}, "is not for runs of scores of items")
    result = call(compare_items, common=call["common"] or call["strict"])
    if call["strict"]:
        result.require()
    title = f"{result.score}: {', '.join(run.system for run in result.systems)}"
    call.answer(result, lambda: blocks(result, details=call["details"]), (title, None))


def compared(*, comparisons: Comparisons, details: bool | None = None) -> Document:
    """Return what is printed.

    Args:
        details: slices of the text and examples; if not given, only for a single comparison.
    """
    from lmgauge.report.comparison import blocks

    return blocks(comparisons, details=len(comparisons) == 1 if details is None else details)


def check(*, comparisons: Comparisons, strict: bool = False, metric: ComparedMetric = "perplexity") -> None:
    """Fail where runs may not be compared.

    Args:
        strict: exit with 1 if the metric may not be compared.
        metric: the metric that --strict checks.
    """
    if strict:
        comparisons.require(metric)
    comparisons.require()


def _by_name(option: str, groups: Iterable[str], example: str) -> dict[str, list[str]]:
    """Return the runs of each group, of NAME=RUN,RUN."""
    runs: dict[str, list[str]] = {}
    for group in groups:
        name, equals, listed = group.partition("=")
        if not (name and equals and listed):
            raise click.UsageError(f"{option} {group}: write a name, =, and the runs with commas between: {example}")
        if name in runs:
            raise click.UsageError(f"{option} {name}: named twice; put all its runs into one {option}")
        runs[name] = [run for run in listed.split(",") if run]
    return runs


def agree(call: Call) -> None:
    """Print how far two engines are apart, or several pairs; fail where asked."""
    from lmgauge.api.agree import agree as verb
    from lmgauge.api.agree import agree_series

    if call["pairs"]:
        call.refuse(("engines", "floor"), "does not go with --pair, which names all of a pair: NAME=A,B,FLOOR")
        chosen = {name: value for name, value in call.values.items() if name in fields_of(verb)}
        result: Any = agree_series(_by_name("--pair", call["pairs"], "100=a100.parquet,b100.parquet"), **chosen)
    elif len(call["engines"]) != 2:
        raise click.UsageError("name two engines, A and B: runs, score tables, models or servers; a text goes after --text")
    else:
        result = call(**dict(zip(("a", "b"), call["engines"], strict=True)))
    call.answer(result, page=("Do the engines agree?", None))
    for pair in (result if call["pairs"] else [result]) if call["strict"] else ():
        pair.require()


def engines(engines: Sequence[PathLike] = (), *, pairs: Sequence[str] = (), strict: bool = False) -> None:
    """Hold what only the command has.

    Args:
        engines: A and B.
        pairs: a pair instead of A and B: NAME=A,B or NAME=A,B,FLOOR; several, in order, make a curve.
        strict: exit with 1 unless the engines agree within the noise floor.
    """


def audit(call: Call) -> None:
    """Print the checks; exit with 1 where one failed."""
    from lmgauge.report.documents import document_of

    result = call(**call(subject))
    call.answer(result, page=(f"Audit of {result.model}", document_of(result)[1:]))


def subject(
    what: Sequence[PathLike] = (), *, model: PathLike | None = None, text: Sequence[PathLike] = ()
) -> dict[str, Any]:
    """Return the run, or the text, that a user named.

    Args:
        what: TEXT of a model, or a RUN.
    """
    from lmgauge.evaluation.runs import EVALUATION_FILE
    from lmgauge.records.formats import FORMATS_OF_RECORDS

    only = str(what[0]) if len(what) == 1 else "-"
    if model is None and (only == "-" or os.path.splitext(only)[1] in FORMATS_OF_RECORDS["text"].suffixes):
        raise click.UsageError("name a model with -m and its TEXT, or one RUN")
    if model is None or os.path.exists(os.path.join(only, EVALUATION_FILE)):
        return {"run": only}
    if text:
        raise click.UsageError("--text belongs to a RUN; with -m the texts stand alone: lmgauge audit -m MODEL TEXT")
    return {"text": list(what) or ["-"]}
