"""Documents scored and filtered by what language models make of them, at the size of corpora.

    Documents (documents.py)    the texts of a batch, made valid, and what is wrong with the others
    Scorer (scorer.py)          the sums of each document under one or more models; adds columns to a table
    records/                    files of records, read and written with every field they have
    percentiles.py, rules.py    what is frozen from a sample, and what is dropped for it
    filter_file.py              one file: read, scored, judged, written
    filter_files.py             many files, as tasks of an engine; what an earlier run finished is left alone

May import `text`, `models`, `scores`, `evaluation`, `numerics`, `stages` and the modules beside the rooms.
"""
