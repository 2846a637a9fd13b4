"""Files of records, read and written with every field that they have: a row of `FORMS` for each form.

A reader yields raw blocks, which costs little, and parses one when it is asked to, which several threads may do at a time; a
writer takes records with the columns of their scores, and writes them as they were read.

May import what `filtering` may.
"""
