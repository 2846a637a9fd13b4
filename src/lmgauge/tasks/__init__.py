"""Scores of tasks that a better language model should help: translation, speech recognition, labels.

    >>> import lmgauge
    >>> score = lmgauge.tasks.bleu(hypotheses=["The cat sat on the mat"], references=["The cat sits on the mat"], order=3)
    >>> score.score  # the cube root of 5/6 x 3/5 x 1/4, in per cent
    50.0
    >>> lmgauge.tasks.wer(hypotheses=["This test"], references=["This is a test"]).score
    0.5

BLEU, chrF and TER are percent, as in sacreBLEU; WER, CER and their like are ratios, as in jiwer: 0.5 is 50 %.

Hypotheses and references are named, as exchanged they would give a plausible wrong number. Several systems are scored on the
same segments, with intervals and a test of each against the first:

    >>> outputs = {"a": ["a dog barks", "it rains"], "b": ["the dog barks", "it rains"]}
    >>> systems = lmgauge.tasks.score_systems(
    ...     lmgauge.tasks.WER(), hypotheses=outputs, references=["the dog barks", "it is raining"]
    ... )
    >>> [(item.system, item.score.errors) for item in systems]
    [('a', 3), ('b', 2)]

The names are imported on first use; `__init__.pyi` lists them. Inside: `metrics/` has a file for each metric, its formula on
top; a metric is statistics per segment and one function of their sum, so corpus scores, groups, intervals and tests of
significance are one mechanism. May import `text`, `numerics` and `_kernels`; never a model, `report` or `cli`.
"""

from lmgauge.base.public_names import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
