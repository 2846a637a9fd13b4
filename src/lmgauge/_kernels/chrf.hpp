// The statistics of chrF and chrF++.
#pragma once

#include "texts.hpp"

namespace lmgauge {

constexpr int kMaxChrfOrder = 1000;
constexpr std::size_t kLongestChrfText = std::size_t{1} << 30;  // twice as many slots have numbers of 32 bits

struct ChrfOptions {
    int char_order, word_order;
    double factor;  // beta squared
    bool eps_smoothing;
    bool whitespace;  // counts as characters
};

// For segments `begin` to `end`: [n-grams of the hypothesis, of the reference, matches] for each character order, then for
// each word order, into `out` [segments, 3 * orders]. Of several references the one with the best F score, the first of
// equals; without one the row is left as it is.
// Every text has fewer than kLongestChrfText bytes.
void chrf_statistics(const TextsView& hypotheses, const ReferencesView& references, const ChrfOptions& options,
                     std::size_t begin, std::size_t end, MutableView<std::int64_t> out);

}  // namespace lmgauge
