"""KenLM's binary files: what they are asked for (`form`), read (`reader`, `tables`) and written (`writer`).

May import what `models.ngram` may.
"""
