"""`lmgauge.agree` and `lmgauge.agree_series`: do engines give the same tokens the same log-probabilities?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from lmgauge.api import inputs
from lmgauge.api.inputs import PATHS, Model, Text
from lmgauge.base.declaration import chosen, verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Count, Natural
from lmgauge.settings import ReadingOptions, ScoringOptions

if TYPE_CHECKING:
    from lmgauge.results import AgreementSeries, EngineAgreement, Evaluation

Operand = Union[Model, "Evaluation"]


@verb
def agree(
    a: Operand,
    b: Operand,
    *,
    text: Text | None = None,
    floor: Operand | None = None,
    band: tuple[float, float] = (0.9, 1.1),
    examples: Natural = 5,
    threads: Count | None = None,
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> EngineAgreement:
    """Measure how far apart two engines are on the same tokens, and whether A is as far from itself: `lmgauge agree`.

    For engines that should give the same log-probabilities: the one that generates and the one that trains, a server and the
    checkpoint behind it, a format before and after. Each is a run folder, a score table, a log with a row a sequence (lists
    of token ids and log-probabilities; a colon and a column choose one), or a model or server, which scores the text first.

    Sources: Schulman (2020) for the estimates k1 and k3 of KL; Kish (1965) for the effective sample size.

    Args:
        a: the reference, such as the engine that generated the tokens.
        b: the engine that is compared with it.
        text: what models and servers score, and runs scored, if it has moved since; may be given several times.
        floor: A's engine again on the same tokens, in other batches: the noise floor. A model or a server A is scored again
            for it.
        band: the ratios of probabilities that count as near: LOW..HIGH, 0.9..1.1 if not given.
        examples: tokens to show, the furthest apart.
        threads: threads to score with; all cores if not given.
        reading: how the text is read.
        scoring: how models named by a path score.
        fields: those of `reading` and `scoring`, by name.

    Returns:
        The figures with their intervals, beside those of the floor, and the verdict.

    Raises:
        InputError: the tokens differ; the message names the first that does. Or a table cannot be read.
        ModelFileError: a model cannot be loaded.
        UsageError: a model, and no text; an impossible band.

    Shell:
        lmgauge agree rollout.parquet:rollout_log_probs rollout.parquet:old_log_probs
        lmgauge agree run-hf/ run-vllm/ --floor run-hf-again/
        lmgauge agree model/ http://localhost:8000/v1 --text test.txt --html agree.html
        lmgauge agree --pair 100=a100.parquet,b100.parquet --pair 200=a200.parquet,b200.parquet

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"] * 3)
        >>> first, second = (train("witten-bell", text, order=order) for order in (2, 3))
        >>> agree(first, second, text=text)
        <EngineAgreement: wb3 / wb2: mean |Δ| 0.209 nats, floor 0>
    """
    from lmgauge.base.temporaries import scratch_folder
    from lmgauge.evaluation.agreement.agree import agree as _agree
    from lmgauge.evaluation.other_batches import score_again
    from lmgauge.evaluation.runs import open_run

    if not (isinstance(band, tuple) and len(band) == 2 and 0 < band[0] <= 1 <= band[1]):
        raise UsageError(f"band must be two ratios around 1, as in (0.9, 1.1) or --band 0.9..1.1; got {band!r}")
    operands: dict[str, Any] = {"a": a, "b": b} | ({} if floor is None else {"floor": floor})
    with scratch_folder() as work:
        runs = {name: inputs.opened(one, work=work / name) for name, one in operands.items() if not inputs.is_model(one)}
        known = list(runs.values())
        for name in chosen(replace(reading, document=None)) if runs else ():
            raise UsageError(f"{name}: the text is read as the runs read it; leave it out")
        corpus, made = None, ""
        if text is not None or reading.document is not None:
            corpus = inputs.text_of(known, text, reading.document) if runs else inputs.corpus_of(text or (), reading)
        for name, operand in operands.items():
            if name in runs:
                continue
            called = os.fspath(operand) if isinstance(operand, PATHS) else operand.label
            corpus = corpus or next((one for run in known if (one := run.corpus()) is not None), None)
            if corpus is None:
                raise UsageError(f"{called} is a model, and needs a text to score: name it (--text)")
            (model,), (label,) = inputs.named_models(operand, scoring, corpus)
            corpus = inputs.followed([model], corpus, scoring, by_group=False)
            runs[name] = inputs.scored(model, label, corpus, work / name, scoring, threads)
            if isinstance(operand, PATHS):
                runs[name] = replace(runs[name], path=Path(called), name=called)
            if name == "a" and floor is None:
                made = f"{label} again, {score_again(model, corpus, work / 'floor.parquet', threads)}"
                runs["floor"] = replace(open_run(work / "floor.parquet"), name=f"{label} again")
        return _agree(
            runs["a"], runs["b"], runs.get("floor"), corpus, band=band, examples=examples, floor_from=made,
            documents_of_text=reading.document is not None,
        )  # fmt: skip


def agree_series(pairs: Mapping[str, Sequence[Operand]], **options: Any) -> AgreementSeries:
    """Measure how far apart engines are for several pairs, such as the checkpoints of a training: `lmgauge agree --pair`.

    Args:
        pairs: A and B by the name of each pair, in order; or A, B and the noise floor.
        options: keywords of `agree`, for all pairs.

    Returns:
        The pairs in order, which make a curve.

    Raises:
        InputError: as `agree`.
        ModelFileError: as `agree`.
        UsageError: there is no pair, or one does not have two or three members.

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"] * 3)
        >>> one, two, three = (train("witten-bell", text, order=order) for order in (1, 2, 3))
        >>> [pair.label for pair in agree_series({"1": (one, two), "2": (two, three)}, text=text)]
        ['1', '2']
    """
    from lmgauge.evaluation.agreement.results import AgreementSeries

    if not isinstance(pairs, Mapping) or not pairs:
        raise UsageError('pairs are given by name: lmgauge.agree_series({"100": ("a100", "b100"), ...})')
    for name, pair in pairs.items():
        if isinstance(pair, PATHS) or len(pair) not in (2, 3):
            raise UsageError(f"pair {name}: give two runs, or three with the noise floor: {name}=A,B or {name}=A,B,FLOOR")
    made = (agree(pair[0], pair[1], floor=pair[2] if len(pair) > 2 else None, **options) for pair in pairs.values())
    return AgreementSeries(tuple(replace(one, label=str(name)) for name, one in zip(pairs, made, strict=True)))
