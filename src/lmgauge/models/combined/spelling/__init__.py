"""Word models that give every text a probability: unseen words are spelled, and white space is predicted.

A model of words knows some of them; all others are one event `<unk>`. Here the event keeps the mass that the model's
smoothing gives it, and the word is then spelled, character by character:

    p(w | h) = p(<unk> | h) q(w) / (1 - q(known words))        for a word w that the model does not know

q is a model of characters with an end-of-word event, learned from words; known words, and the empty one, are taken
out of it, as they are never spelled. A character that q has not met is one event of its own, shared out among all other
characters of Unicode. White space before each word and at the end of a line is an event after the word that follows it.

`learn.py` makes all this of a training text, `model.py` puts it around a model and reads its folder, which `storage.py`
writes.
Sources: Brown et al. (1992), "An estimate of an upper bound for the entropy of English", which spells unseen words by a
model of characters; Mielke & Eisner (2019), "Spell once, summon anywhere", for open vocabularies; Good (1953), "The
population frequencies of species": words seen once are the best guess at what words never seen are like.

May import what `models` may.
"""
