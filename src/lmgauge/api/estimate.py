"""`lmgauge.estimate`: a model on a sample of a text's documents, all of which cheaper models score."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

from lmgauge.api.inputs import PATHS, Model, Models, PathLike, Text, corpus_of, listed, named_models, opened
from lmgauge.base.declaration import verb
from lmgauge.base.option_numbers import Count
from lmgauge.evaluation.options import SampleSettings
from lmgauge.settings import Outputs, ReadingOptions, ScoringOptions

if TYPE_CHECKING:
    from lmgauge.results import Estimate


@verb
def estimate(
    model: Model,
    text: Text,
    *,
    proxy: Models = (),
    by_group: bool = False,
    threads: Count | None = None,
    sampling: SampleSettings = SampleSettings(),
    outputs: Outputs = Outputs(),
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Estimate:
    """Estimate the figures of a text from a sample of its documents: `lmgauge eval --sample`.

    The model scores documents drawn by chance. Cheaper models, its proxies, score all of them: what they say of the others
    makes the estimate as sure as a plain sample of several times the size. The interval is where the figure of the whole
    text is.

    Args:
        model: the model, or its path.
        text: files: a path, several, or a `Corpus` that can be read again. Its documents must be known (`document`).
        proxy: with `sample`, `until` or `budget`: a cheaper model; it scores all documents. An n-gram model, or the run
            folder of a model that did, such as an earlier checkpoint; may be given several times.
        by_group: also estimate each group; each file, or each value of the field that `group` names.
        threads: how many; does not change results, except by rounding.
        sampling: how many documents the model scores.
        outputs: what to write: a run folder, rows of segments, tokens and words; of the sample.
        reading: how files are read; `document` says what documents are.
        scoring: how models score.
        fields: those of `sampling`, `outputs`, `reading` and `scoring` by name, as in `sample=200, document="heading"`.

    Raises:
        InputError: the text cannot be used, a proxy is a run of another text, or a probability is zero.
        ModelFileError: a model cannot be loaded.
        UsageError: documents are not known, or fewer than asked for; nothing says how many to draw.

    Shell:
        lmgauge eval -m big/ --proxy kn5/ --sample 200 corpus.jsonl.gz
        lmgauge eval -m step-9000/ --proxy kn5/ --proxy run-step-8000/ --until 0.5% corpus.jsonl.gz
        lmgauge eval -m big/ --proxy kn5/ --sample 200 --by-group --group domain corpus.jsonl.gz

    Example:
        >>> from lmgauge import Corpus, train
        >>> lines = "the cat sat on the mat the dog sat on the log the cat ran and a dog ran after the cat".split()
        >>> text = Corpus.from_strings(lines, documents=[str(number // 2) for number in range(len(lines))])
        >>> big, small = train("laplace", text, order=2), train("laplace", text, order=1)
        >>> estimate(big, text, proxy=small, sample=10)
        <Estimate: laplace2: perplexity 6.5729 (6.5668 to 6.5790), 10 of 11 documents>
    """
    from lmgauge.evaluation.estimate import estimate as estimated
    from lmgauge.evaluation.origin import Origin
    from lmgauge.evaluation.runs import about

    each, corpus = listed(proxy), corpus_of(text, reading)
    paths = [os.fspath(path) for path in (model, *each) if isinstance(path, PATHS)]
    outputs.refuse_replacing([*paths, *(source.path for source in corpus.sources)], 1)
    runs = [opened(one) for one in each if _is_run(one)]
    (loaded, *models), (name, *names) = named_models([model, *(one for one in each if not _is_run(one))], scoring, corpus)
    proxies: dict[str, Any] = {}
    for one, its_name in zip(models, names, strict=True):
        rows = partial(one.score, corpus.in_blocks(corpus.block_bytes), spans=False, threads=threads)
        proxies[Origin.of_model(one, its_name).fingerprints["label"]] = rows
    proxies |= {str(run.path): about(run, corpus).batches for run in runs}
    how: dict[str, Any] = {"by_group": by_group, "scoring": scoring, "threads": threads}
    return estimated(loaded, name, proxies, corpus, sampling, outputs, **how)


def _is_run(proxy: Model) -> TypeGuard[PathLike]:
    return isinstance(proxy, PATHS) and os.path.exists(os.path.join(proxy, "evaluation.json"))
