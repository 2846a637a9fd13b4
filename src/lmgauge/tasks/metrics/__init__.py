"""The task metrics, a file each with its formula on top: BLEU, chrF, TER, WER and CER, precision and recall of labels.

`protocol.py` says what a metric is, `compiled.py` how statistics are counted by compiled code and threads.
May import what `tasks` may.
"""
