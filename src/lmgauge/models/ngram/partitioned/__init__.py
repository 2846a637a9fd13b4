"""Training that holds a part of the n-grams at a time. May import what `models.ngram` may."""
