// Whole distributions of an n-gram model: rows over the vocabulary, and sums over a distribution that look at the words seen
// after its context only. models/ngram/closed_forms.py derives the sums.
//
// The context of an event is a row of slots: the last word, the last two words, ... as far as the model has seen them, then
// kNone. In a model without back-off only the longest counts; kUnseenContext stands first where it was not seen.
#pragma once

#include "kernels.hpp"

namespace lmgauge {

struct Child {
    std::uint32_t word;
    float probability;
};
static_assert(sizeof(Child) == 8);

// The words seen after the context with slot s are children[offsets[s], offsets[s + 1]), in the order of their slots.
struct ChildrenView {
    View<std::uint32_t> offsets;
    View<Child> children;
    View<Child> of(std::uint32_t slot) const {
        const std::size_t begin = offsets[slot], end = offsets[slot + std::size_t{1}];
        require(begin <= end && end <= children.size(), "children out of order");
        return children.subspan(begin, end - begin);
    }
};
// `offsets` has one element more than there are slots of contexts, `children` one for each entry of the table.
void index_children(const TableView& table, MutableView<std::uint32_t> offsets, MutableView<Child> children);

// A model, the children of its contexts of 1, 2, ... words (none: they are looked for, which is slow), and the unigrams: the probability of word w is
// values[value_of[w]], 0 where w is never an event. Few different values stand for many words, and save their logarithms.
struct DistributionSource {
    ModelView model;
    std::vector<ChildrenView> children;
    View<double> values;
    View<std::uint32_t> value_of;
    bool eos;    // whether </s> is an event
    std::size_t width() const { return model.tables.size(); }
    // The word of a child, which came from outside.
    std::uint32_t word_of(const Child& child) const {
        require(child.word < model.words(), "a child that is no word of the model");
        return child.word;
    }
    bool possible(std::uint32_t word) const {
        return word > kEos || (word == kEos && eos) || (word == kUnk && model.unigrams[2 * kUnk] > 0);
    }
};

constexpr double kLowest = -1e30;    // stands for ln 0 in tiles

// Rows of the vocabulary for contexts [n, width]: probabilities, or their natural logarithms. None is above one. Returns the
// largest probability that was, 0 if none was.
double fill_distributions(const DistributionSource& source, View<std::uint32_t> contexts, bool logarithms,
                          MutableView<double> rows);

// The words by falling unigram probability, equal ones by id; above[i] words have values[i] or more, none values.size().
struct UnigramOrder {
    View<std::uint32_t> words;
    View<std::int64_t> above;
};
// How many words are more probable than the target, and one, for each context.
double rank_words(const DistributionSource& source, const UnigramOrder& order, View<std::uint32_t> contexts,
                  View<std::uint32_t> targets, MutableView<std::int64_t> ranks);
// The k most probable words after each context, equal ones by id, and the natural logarithms of their probabilities. Both
// functions return the largest probability of the rows they had to fill, as there may be one above one.
double top_words(const DistributionSource& source, const UnigramOrder& order, View<std::uint32_t> contexts, std::size_t k,
                 MutableView<std::uint32_t> words, MutableView<double> logarithms);

// Sums over the distribution after a context: of p, of p ln p, and of p (ln p - the sum before)^2. `error` bounds how much of
// the rounding of one step there is in them.
struct DistributionSums {
    double mass, sum, centered, error;
};
// The sums known so far: those of a context are sums[numbers[words][slot] - 1], 0 where they are not known. `numbers` has two
// elements for the empty context (unigrams; all words alike), then one for each slot of contexts of 1, 2, ... words.
struct SumsMemo {
    std::vector<MutableView<std::uint32_t>> numbers;
    MutableView<DistributionSums> sums;
    std::size_t used;
};
// Stops where the memo could become too small. `largest` is the largest probability of the distributions that had to be looked
// at as a whole, among them all whose sums a probability above one could have made.
struct SumsResult {
    std::size_t done;
    double largest;
};
SumsResult sum_distributions(const DistributionSource& source, View<std::uint32_t> contexts, SumsMemo& memo,
                             MutableView<DistributionSums> rows);

// The Kullback-Leibler divergence, in nats, of the distributions of two models over one vocabulary after the same text; both
// are divided by their mass first. inf where `b` rules out what `a` holds possible, NaN where either has no mass.
void divergences(const DistributionSource& a, View<std::uint32_t> contexts_a, const DistributionSource& b,
                 View<std::uint32_t> contexts_b, MutableView<double> divergence);

}  // namespace lmgauge
