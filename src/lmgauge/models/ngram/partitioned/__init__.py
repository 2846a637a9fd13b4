"""Training over partitions of the n-grams: in memory, or a part at a time, on disk, in processes or on several machines.

The n-grams that begin with the same two words are a partition, so that all followers of a context of two words or more are
together. Each partition is counted, and its probabilities are estimated.
What one partition has to know of another belongs to suffixes: how many tokens precede an n-gram, and the probability of its
shorter form. This travels in the order of the text: an n-gram that is new at position s has its suffix at position s + 1, so
one walk over the ids deals what every partition has to say, in its own order, to those that wait for it, in theirs.

    text -> ids in chunks
    count     partition   a trie of its n-grams: parents, words, counts; n-grams are numbered as they first occur (rows)
    route     chunk       for each new n-gram a request for its suffix: the row of the suffix in its own partition
    adjust    partition   tokens that precede an n-gram = requests for its row; counts of counts
    estimate  partition   order by order: contexts summed, probabilities; answers to the requests
    deal      chunk       the answers, back to those who asked
    prune     partition   if asked for: upward the losses, downward what stays, upward the weights
    pack      bucket      the tables of the model

`training` chains the stages; `links` has what they all know. Sums are of integers, so the model is the same, to the bit, for
any number of partitions, chunks and workers.

May import what `models.ngram` may.
"""
