"""N-gram models: a first lesson, then the map of this room.

An n-gram model predicts a word from the n - 1 words before it, by counting. Take three sentences, and bigrams (n = 2):

    >>> import math
    >>> import lmgauge
    >>> corpus = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "the cat ran"])
    >>> counted = lmgauge.train("mle", corpus, order=2)

`the` was followed by `cat` twice and by `dog` once. Relative frequencies (maximum likelihood) give 2/3 and 1/3:

    >>> def probability(model, word, context):
    ...     return round(math.exp(model.log_distribution(model.vocabulary.ids(context))[model.vocabulary.id(word)]), 4)
    >>> probability(counted, "cat", ["the"]), probability(counted, "dog", ["the"])
    (0.6667, 0.3333)

Perplexity is how many words, equally likely, the model chooses from on average. `the` costs nothing here, as all sentences
begin with it, and `</s>`, the end of the sentence, is an event like any word: 1 * 2/3 * 1/2 * 1 over four events.

    >>> test = lmgauge.Corpus.from_strings(["the cat sat"])
    >>> round(lmgauge.evaluate(counted, test).perplexity, 4), round((2 / 3 * 1 / 2) ** (-1 / 4), 4)
    (1.3161, 1.3161)

But `dog ran` was never seen, so a sentence with it is impossible, and the perplexity infinite:

    >>> new = lmgauge.Corpus.from_strings(["the dog ran"])
    >>> lmgauge.evaluate(counted, new).perplexity
    inf

Smoothing takes something from what was seen and gives it to what was not, by the probabilities of the shorter context.
Witten-Bell gives half of what follows `dog` away, as it had one follower in one occurrence, and `ran` gets its share,
p(ran) = (1 + 6/7) / 18: it occurred once among twelve events, six of the seven possible words occurred (`<unk>` did not).

    >>> smoothed = lmgauge.train("witten-bell", corpus, order=2)
    >>> probability(smoothed, "ran", ["dog"])  # (1 + 6/7) / 18 / 2
    0.0516
    >>> round(lmgauge.evaluate(smoothed, new).perplexity, 2)
    3.58

The files in the order of the work, each with its input and output stated first: `settings` (all decisions), `training` (the
list of stages, over partitions of the n-grams, and `links`, what these have to say to each other), `reading`, `counting`,
`adjusted_counts`, `discounts`, `interpolation` (the recursion), `partition_pruning`, `packing`, `tables` (the finished
model's lookups). Of a finished model: `full_distribution` (entropy, divergence, ranks: whole distributions from the words
seen after a context), `distributions` (the same for the engine of whole distributions), `pruning`. `model` is what users
hold; `storage`, `arpa_reader` and `arpa_writer` read and write it, `kenlm` what KenLM reads and writes.

May import NumPy, text, scores, distributions, `_kernels` and `models.protocol`; never a metric.
"""
