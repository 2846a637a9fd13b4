"""Audits: whether a number is what it claims to be, level by level.

The package knows models only as objects that are handed in: it may import what `evaluation` may, and no model.

1. *coverage*: every byte is scored once; numbers are divided by what the text holds.
2. *normalization*: after any context the probabilities of all tokens sum to one, and `score` agrees with them; so do those
   of letters and white space inside of events, where a model spells what it does not know.
3. *causality*: rows depend neither on later text, nor on the token they predict, nor on the batch, nor on earlier calls.
4. *contamination*: the text is not in the training text.
5. *compression*: the text is compressed to the size that the number claims, and decoded again.
"""
