// Probabilities and back-off weights from counts. Every function works on a range of slots of one table and may run beside
// others on other ranges: sums into contexts are of integers, so their order does not matter.
#include <algorithm>
#include <cmath>

#include "kernels.hpp"

namespace lmgauge {
namespace {

constexpr std::size_t kAhead = 32;

inline std::size_t bucket(std::uint32_t count, std::size_t size) {
    return std::min<std::size_t>(count, size - 1);
}

constexpr double kMassUnit = 1.0 / (std::uint64_t{1} << kMassBits);
constexpr double kLowerUnit = 1.0 / (std::uint64_t{1} << kLowerBits);

// In fixed point with 60 bits below one; a probability is far below where that would not fit.
inline std::uint64_t in_lower_units(double probability) {
    require(probability >= 0 && probability < 8, "a probability that is none");
    return static_cast<std::uint64_t>(probability / kLowerUnit);
}

inline double mass_of(const ContextSum& sum) { return static_cast<double>(sum.mass) * kMassUnit; }
inline double total_of(const ContextSum& sum) { return static_cast<double>(sum.total) * kMassUnit; }

// Calls work(slot, sum of its context) for the entries whose context is in the window.
template <class PrefetchLower, class Work>
void for_each_in(Window window, std::size_t begin, std::size_t end, const Entry* entries, PrefetchLower prefetch_lower,
                 Work work) {
    for (std::size_t slot = begin; slot < end; ++slot) {
        if (slot + kAhead < end && entries[slot + kAhead].key != 0) {
            const Entry& coming = entries[slot + kAhead];
            if (ContextSum* sum = window.of(key_parent(coming.key))) {
                prefetch_for_write(sum);
                prefetch_lower(coming);
            }
        }
        if (entries[slot].key == 0) continue;
        if (ContextSum* sum = window.of(key_parent(entries[slot].key))) work(slot, *sum);
    }
}

constexpr auto kNoLower = [](const Entry&) {};

template <class PrefetchNext, class Work>
void for_each_entry(std::size_t begin, std::size_t end, const Entry* entries, PrefetchNext prefetch_next, Work work) {
    for (std::size_t slot = begin; slot < end; ++slot) {
        if (slot + kAhead < end && entries[slot + kAhead].key != 0) prefetch_next(entries[slot + kAhead]);
        if (entries[slot].key != 0) work(slot);
    }
}

}  // namespace

float Lower::operator[](std::uint32_t slot) const {
    require(slot < (table.empty() ? unigram.size() : table.size()), "a suffix outside its table");
    return table.empty() ? unigram[slot] : std::fabs(as_float(table[slot].first));
}

const void* Lower::address(std::uint32_t slot) const {
    return table.empty() ? address_of(unigram, slot) : address_of(table, slot);
}

void sum_contexts(View<Entry> table, std::size_t begin, std::size_t end, View<std::uint8_t> dropped,
                  const Discounting& discounting, Window window) {
    for_each_in(window, begin, end, table.data(), kNoLower, [&](std::size_t slot, ContextSum& sum) {
        const std::uint64_t count = table[slot].first;
        if (!dropped.empty() && dropped[slot]) {
            // "backoff becomes larger than 1 otherwise": what a cut-off drops goes to the back-off mass, as in KenLM.
            atomic_add(&sum.total, (count + discounting.extra) << kMassBits);
            atomic_add(&sum.mass, (count + discounting.extra) << kMassBits);
            return;
        }
        atomic_add(&sum.total, (count + discounting.extra) << kMassBits);
        atomic_add(&sum.mass, discounting.mass[bucket(table[slot].first, discounting.mass.size())]);
    });
}

// p(w | h) = (c - D(c)) / total(h) + mass(h) / total(h) * p(w | h'); Chen & Goodman 1999, equations 18 and 26.
void estimate_interpolated(MutableView<Entry> table, std::size_t begin, std::size_t end, Window window,
                           const Discounting& discounting, Lower lower) {
    for_each_in(
        window, begin, end, table.data(), [&](const Entry& e) { prefetch(lower.address(e.second)); },
        [&](std::size_t slot, const ContextSum& sum) {
            Entry& entry = table[slot];
            const double kept = entry.first - discounting.discount[bucket(entry.first, discounting.discount.size())];
            const double p = (std::max(kept, 0.0) + mass_of(sum) * lower[entry.second]) / total_of(sum);
            entry.first = as_bits(static_cast<float>(p));
            entry.second = as_bits(1.0f);
        });
}

void sum_lower(View<Entry> table, std::size_t begin, std::size_t end, View<std::uint8_t> dropped, Lower lower,
               Followers followers) {
    const auto index_of = [&](const Entry& e) { return key_parent(e.key) - followers.first; };
    for_each_entry(
        begin, end, table.data(),
        [&](const Entry& e) {
            if (index_of(e) >= followers.types.size()) return;
            prefetch_for_write(&followers.lower_sums[index_of(e)]);
            prefetch_for_write(&followers.types[index_of(e)]);
            prefetch(lower.address(e.second));
        },
        [&](std::size_t slot) {
            const std::uint64_t i = index_of(table[slot]);
            if (i >= followers.types.size() || (!dropped.empty() && dropped[slot])) return;
            atomic_add(&followers.lower_sums[i], in_lower_units(lower[table[slot].second]));
            atomic_add(&followers.types[i], 1u);
            // The same for every word after the context, whoever writes it.
            atomic_store(&followers.lower_contexts[i], lower.table.empty() ? 0 : key_parent(lower.table[table[slot].second].key));
        });
}

// Two contexts need help. Where the words seen keep all the mass and others are unseen, the denominator grows by one count
// (Doug Paul's way out, after R. Rosenfeld's toolkit and SRILM): otherwise the unseen would be impossible. Where every word
// was seen there is nobody to give the discounted mass to, so it is not taken.
void balance_mass(MutableView<ContextSum> sums, View<std::uint32_t> types, std::uint64_t vocabulary_size) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
        if (sums[i].total == 0) continue;
        const bool all_seen = types[i] >= vocabulary_size;
        if (all_seen) {
            sums[i].total -= sums[i].mass;
            sums[i].mass = 0;
        } else if (sums[i].mass == 0) {
            sums[i].total += std::uint64_t{1} << kMassBits;
            sums[i].mass = std::uint64_t{1} << kMassBits;
        }
    }
}

// p(w | h) = (c - D(c)) / total(h) for what was seen; the back-off weights make the rest sum to one.
void estimate_discounted(MutableView<Entry> table, std::size_t begin, std::size_t end, View<std::uint8_t> dropped,
                         Window window, const Discounting& discounting, MutableView<std::uint64_t> kept_sums) {
    for_each_in(
        window, begin, end, table.data(),
        [&](const Entry& e) { prefetch_for_write(&kept_sums[key_parent(e.key) - window.first]); },
        [&](std::size_t slot, const ContextSum& sum) {
            Entry& entry = table[slot];
            const double kept = entry.first - discounting.discount[bucket(entry.first, discounting.discount.size())];
            const auto p = static_cast<float>(std::max(kept, 0.0) / total_of(sum));
            if (dropped.empty() || !dropped[slot]) {
                atomic_add(&kept_sums[key_parent(entry.key) - window.first], in_lower_units(p));
            }
            entry.first = as_bits(p);
            entry.second = as_bits(1.0f);
        });
}

// p(w | h) = (c + k) / (c(h) + k V) (Lidstone 1920; k = 1: Laplace; k = 0: maximum likelihood).
void estimate_additive(MutableView<Entry> table, std::size_t begin, std::size_t end, Window window, double added,
                       double vocabulary_size) {
    for_each_in(window, begin, end, table.data(), kNoLower, [&](std::size_t slot, const ContextSum& sum) {
        Entry& entry = table[slot];
        const double total = total_of(sum) + added * vocabulary_size;
        entry.first = as_bits(static_cast<float>((entry.first + added) / total));
        entry.second = as_bits(static_cast<float>(added > 0 ? 1.0 / vocabulary_size : 0.0));
    });
}

// gamma(h) = mass / total: Chen & Goodman 1999, eq. 27.
void store_backoffs(MutableView<Entry> table, Window window) {
    for (std::size_t i = 0; i < window.sums.size(); ++i) {
        const ContextSum& sum = window.sums[i];
        if (sum.total == 0) continue;
        table[window.first + i].second = as_bits(static_cast<float>(mass_of(sum) / total_of(sum)));
    }
}

// Additive smoothing has no back-off: a context holds the probability of each word unseen after it.
void store_unseen(MutableView<Entry> table, Window window, double added, double vocabulary_size) {
    for (std::size_t i = 0; i < window.sums.size(); ++i) {
        const ContextSum& sum = window.sums[i];
        if (sum.total == 0) continue;
        const double total = total_of(sum) + added * vocabulary_size;
        table[window.first + i].second = as_bits(static_cast<float>(added / total));
    }
}

}  // namespace lmgauge
