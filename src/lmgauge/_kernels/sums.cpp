// Exact sums of log-probabilities: fixed point, so that no grouping, order or number of threads changes a digit.
#include <algorithm>
#include <cmath>

#include "kernels.hpp"

namespace lmgauge {

void ExactSum::add(const ExactSum& other) {
    low += other.low;
    high = wrapping_add(wrapping_add(high, other.high), low < other.low ? 1 : 0);
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
            const std::size_t k = kind[row] < kKinds ? kind[row] : 0;
            ++result.events[k];
            if (value == -INFINITY) {
                ++result.zeros[k];
                ++segment_zeros;
                continue;
            }
            ExactSum term;
            if (!(value <= 0.0) || !term.add(value) || !segment.fits()) {
                if (result.bad < 0) result.bad = static_cast<std::int64_t>(row);
                continue;
            }
            segment.add(term);
            if (k != 0) result.sum[k].add(term);
        }
        // Ordinary tokens are what is left of the segments once the other kinds are taken out: one addition less per row.
        result.sum[0].add(segment);
        if (!result.sum[0].fits()) {    // of absurd values, each of which is in range
            if (result.bad < 0) result.bad = static_cast<std::int64_t>(row) - 1;
            result.sum = {};
        }
        high[j] = segment.high;
        low[j] = segment.low;
        zeros[j] = segment_zeros;
    }
    for (std::size_t k = 1; k < kKinds; ++k) {
        const ExactSum negated{-result.sum[k].high - (result.sum[k].low != 0 ? 1 : 0), ~result.sum[k].low + 1};
        result.sum[0].add(negated);
    }
    return result;
}

}  // namespace lmgauge
