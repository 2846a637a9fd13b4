"""The metrics of the tasks a better language model should help: BLEU, chrF, TER, WER, CER, precision and recall.

Each metric is integer sufficient statistics per segment and one function from their sum to a number; so corpus scores,
groups, intervals and tests of significance are one mechanism. May import `metrics` (the formulas), `text`, `_kernels`,
`evaluation.statistics` and `evaluation.paired`; never a model, `report` or `cli`.
"""
