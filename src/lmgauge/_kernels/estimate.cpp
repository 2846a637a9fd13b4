// Probabilities and back-off weights from counts, of the n-grams of one order in a partition.
#include <algorithm>
#include <cmath>

#include "kernels.hpp"

namespace lmgauge {
namespace {

constexpr std::size_t kAhead = 32;
constexpr double kMassUnit = 1.0 / (std::uint64_t{1} << kMassBits);
constexpr double kLowerUnit = 1.0 / (std::uint64_t{1} << kLowerBits);

std::size_t bucket(std::uint32_t count, std::size_t size) { return std::min<std::size_t>(count, size - 1); }

// In fixed point with 60 bits below one; a probability is far below where that would not fit.
std::uint64_t in_lower_units(double probability) {
    require(probability >= 0 && probability < 8, "a probability that is none");
    return static_cast<std::uint64_t>(probability / kLowerUnit);
}

double mass_of(const ContextSum& sum) { return static_cast<double>(sum.mass) * kMassUnit; }
double total_of(const ContextSum& sum) { return static_cast<double>(sum.total) * kMassUnit; }

// What is kept of a count.
double discounted(std::uint32_t count, const Discounting& discounting) {
    return std::max(count - discounting.discount[bucket(count, discounting.discount.size())], 0.0);
}

// Calls work(row, context) for each row; `of_contexts` has a value for each context, which the work looks at.
template <class Value, class Work>
void for_each_row(const CountedRows& ngrams, std::span<Value> of_contexts, Work work) {
    for (std::size_t row = 0; row < ngrams.size(); ++row) {
        if (row + kAhead < ngrams.size()) prefetch_for_write(address_of(of_contexts, ngrams.parents[row + kAhead]));
        require(ngrams.parents[row] < of_contexts.size(), "a context outside its order");
        work(row, ngrams.parents[row]);
    }
}

}  // namespace

float Lower::operator[](std::size_t row) const {
    const std::size_t place = suffixes.empty() ? row : suffixes[row];
    require(place < probabilities.size(), "a suffix outside its order");
    return probabilities[place];
}

void sum_contexts(const CountedRows& ngrams, const Discounting& discounting, MutableView<ContextSum> sums) {
    for_each_row(ngrams, sums, [&](std::size_t row, std::uint32_t context) {
        const std::uint64_t count = ngrams.counts[row], weighed = (count + discounting.extra) << kMassBits;
        sums[context].total += weighed;
        // "backoff becomes larger than 1 otherwise": what a cut-off drops goes to the back-off mass, as in KenLM.
        sums[context].mass += ngrams.is_dropped(row) ? weighed : discounting.mass[bucket(ngrams.counts[row], discounting.mass.size())];
    });
}

// p(w | h) = (c - D(c)) / total(h) + mass(h) / total(h) * p(w | h'); Chen & Goodman 1999, equations 18 and 26.
void estimate_interpolated(const CountedRows& ngrams, View<ContextSum> sums, const Discounting& discounting, const Lower& lower,
                           MutableView<float> probabilities) {
    for_each_row(ngrams, sums, [&](std::size_t row, std::uint32_t context) {
        const ContextSum& sum = sums[context];
        probabilities[row] = static_cast<float>((discounted(ngrams.counts[row], discounting) + mass_of(sum) * lower[row]) / total_of(sum));
    });
}

void sum_lower(const CountedRows& ngrams, const Lower& lower, MutableView<std::uint64_t> lower_sums, MutableView<std::uint32_t> types) {
    for_each_row(ngrams, lower_sums, [&](std::size_t row, std::uint32_t context) {
        if (ngrams.is_dropped(row)) return;
        lower_sums[context] += in_lower_units(lower[row]);
        ++types[context];
    });
}

// Two contexts need help. Where the words seen keep all the mass and others are unseen, the denominator grows by one count
// (Doug Paul's way out, after R. Rosenfeld's toolkit and SRILM): otherwise the unseen would be impossible. Where every word
// was seen there is nobody to give the discounted mass to, so it is not taken.
void balance_mass(MutableView<ContextSum> sums, View<std::uint32_t> types, std::uint64_t vocabulary_size) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
        if (sums[i].total == 0) continue;
        if (types[i] >= vocabulary_size) {
            sums[i].total -= sums[i].mass;
            sums[i].mass = 0;
        } else if (sums[i].mass == 0) {
            sums[i].total += std::uint64_t{1} << kMassBits;
            sums[i].mass = std::uint64_t{1} << kMassBits;
        }
    }
}

// p(w | h) = (c - D(c)) / total(h) for what was seen; the back-off weights make the rest sum to one.
void estimate_discounted(const CountedRows& ngrams, View<ContextSum> sums, const Discounting& discounting, MutableView<float> probabilities,
                         MutableView<std::uint64_t> kept_sums) {
    for_each_row(ngrams, sums, [&](std::size_t row, std::uint32_t context) {
        probabilities[row] = static_cast<float>(discounted(ngrams.counts[row], discounting) / total_of(sums[context]));
        if (!ngrams.is_dropped(row)) kept_sums[context] += in_lower_units(probabilities[row]);
    });
}

// p(w | h) = (c + k) / (c(h) + k V) (Lidstone 1920; k = 1: Laplace; k = 0: maximum likelihood).
void estimate_additive(const CountedRows& ngrams, View<ContextSum> sums, double added, double vocabulary_size, MutableView<float> probabilities) {
    for_each_row(ngrams, sums, [&](std::size_t row, std::uint32_t context) {
        probabilities[row] = static_cast<float>((ngrams.counts[row] + added) / (total_of(sums[context]) + added * vocabulary_size));
    });
}

}  // namespace lmgauge
