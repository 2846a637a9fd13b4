"""Scores that other programs wrote, made into rows of the score table: `lmgauge import`.

`programs.py` is the table of programs, each with how its output is recognized and the parser that reads it; a parser yields
`LoggedSegment`s (`log.py`). `token_alignment.py` lays their tokens on the text and makes batches of rows.
May import what `scores` may.
"""
