// Exact sums of log-probabilities: fixed point, so that no grouping, order or number of threads changes a digit.
#include <algorithm>
#include <cmath>

#include "kernels.hpp"

namespace lmgauge {

bool ExactSum::add(double value) {
    constexpr double kLimit = 1099511627776.0;  // 2^40
    if (!(value > -kLimit && value < kLimit)) return false;
    const double scaled = value * 65536.0;
    auto whole = static_cast<std::int64_t>(scaled);  // towards zero; one less where that was up
    double part = scaled - static_cast<double>(whole);
    whole -= part < 0;
    part += part < 0 ? 1.0 : 0.0;
    // The part is in [0, 1]. Values between -2^-17 and 0 are rounded by at most 2^-70 as 1 is added; what is below 2^-79 is
    // cut off: the same for every grouping. Signed conversions, as those to unsigned numbers branch on the top bit, which
    // nobody can predict.
    constexpr double kPart = 9223372036854775808.0;  // 2^63
    const auto rest = static_cast<std::uint64_t>(static_cast<std::int64_t>(std::min(part * kPart, kPart - 1024))) << 1;
    low += rest;
    high += whole + (low < rest ? 1 : 0);
    return true;
}

void ExactSum::add(const ExactSum& other) {
    low += other.low;
    high += other.high + (low < other.low ? 1 : 0);
}

// Segment j has segment_events[j] rows; its sum (zero-probability events left out) goes to high[j], low[j].
EventSums sum_events(View<double> logprob, View<std::uint8_t> kind, View<std::uint8_t> context,
                     View<std::int64_t> segment_events,
                     MutableView<std::int64_t> high, MutableView<std::uint64_t> low, MutableView<std::int64_t> zeros) {
    EventSums result;
    for (const std::uint8_t order : context) ++result.contexts[order];
    std::size_t row = 0;
    for (std::size_t j = 0; j < segment_events.size(); ++j) {
        ExactSum segment;
        std::int64_t segment_zeros = 0;
        for (std::int64_t n = segment_events[j]; n > 0; --n, ++row) {
            const double value = logprob[row];
            const std::uint8_t k = kind[row] < 3 ? kind[row] : 0;
            ++result.events[k];
            if (value == -INFINITY) {
                ++result.zeros[k];
                ++segment_zeros;
                continue;
            }
            ExactSum term;
            if (!(value <= 0.0) || !term.add(value)) {
                if (result.bad < 0) result.bad = static_cast<std::int64_t>(row);
                continue;
            }
            segment.add(term);
            if (k != 0) result.sum[k].add(term);
        }
        // Ordinary tokens are what is left of the segments once the other kinds are taken out: one addition less per row.
        result.sum[0].add(segment);
        high[j] = segment.high;
        low[j] = segment.low;
        zeros[j] = segment_zeros;
    }
    for (int k = 1; k < 3; ++k) {
        ExactSum negated{-result.sum[k].high - (result.sum[k].low != 0 ? 1 : 0), ~result.sum[k].low + 1};
        result.sum[0].add(negated);
    }
    return result;
}

}  // namespace lmgauge
