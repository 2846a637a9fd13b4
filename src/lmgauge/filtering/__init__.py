"""Documents scored and filtered by what language models make of them, at the size of corpora.

    Documents (documents.py)    the texts of a batch, made valid, what is wrong with the others, and what models make of them
    Scorer (scorer.py)          the sums of each document under one or more models; adds columns to a table
    percentiles.py, rules.py    what is frozen from a sample, and what is dropped for it
    filter_file.py              one file: read, scored, judged, written
    filter_files.py             many files, as tasks; what an earlier run finished is left alone
    results.py                  what happened to the documents, in numbers that add up
    selection.py                the documents of a pool that are most like a text

May import `text`, `models`, `scores`, `numerics`, `records`, `work` and the modules beside the rooms.
"""
