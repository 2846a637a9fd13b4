// Resampling of sums: the draws of sacreBLEU's tests of task metrics.
#include <algorithm>
#include <bit>

#include "kernels.hpp"

namespace lmgauge {

namespace {

// PCG64 (XSL-RR 128/64; O'Neill 2014, "PCG: A family of simple fast space-efficient statistically good algorithms for
// random number generation", section 6.3) as NumPy's default generator runs it: the state moves first, and 32-bit numbers
// are the lower half of a 64-bit one, then its upper half.
class NumpyStream {
  public:
    explicit NumpyStream(PcgState& kept) : kept_(kept), s_(kept) {}
    ~NumpyStream() { kept_ = s_; }
    bool has_half() const { return s_.has_half != 0; }
    std::uint64_t next() {
        constexpr std::uint64_t kHigh = 2549297995355413924ull, kLow = 4865540595714422341ull;
        const std::uint64_t low = s_.low * kLow + s_.increment_low;
        const std::uint64_t carry = low < s_.increment_low;
        s_.high = multiply_high(s_.low, kLow) + s_.low * kHigh + s_.high * kLow + s_.increment_high + carry;
        s_.low = low;
        return std::rotr(s_.high ^ s_.low, static_cast<int>(s_.high >> 58));
    }
    std::uint32_t next_half() {
        if (s_.has_half) {
            s_.has_half = 0;
            return static_cast<std::uint32_t>(s_.half);
        }
        const std::uint64_t both = next();
        keep(static_cast<std::uint32_t>(both >> 32));
        return static_cast<std::uint32_t>(both);
    }
    void keep(std::uint32_t half) {
        s_.has_half = 1;
        s_.half = half;
    }
    // Uniform on [0, n) from a first number and, where that is one of the few too many, from further ones (Lemire 2019).
    std::uint64_t below(std::uint32_t n, std::uint32_t first) {
        std::uint64_t product = std::uint64_t{first} * n;
        if (static_cast<std::uint32_t>(product) < n) {
            const std::uint32_t threshold = (0u - n) % n;
            while (static_cast<std::uint32_t>(product) < threshold) product = std::uint64_t{next_half()} * n;
        }
        return product >> 32;
    }

  private:
    PcgState& kept_;
    PcgState s_;  // a copy the compiler can keep in registers
};

}  // namespace

void draw_counts(PcgState& state, std::uint32_t n, MutableView<std::uint8_t> counts) {
    std::fill(counts.begin(), counts.end(), std::uint8_t{0});
    NumpyStream stream(state);
    for (std::size_t row = 0; row < counts.size(); row += n) {
        std::uint8_t* count = counts.data() + row;
        if (n == 1) {  // nothing is drawn where there is no choice
            count[0] = 1;
            continue;
        }
        std::uint32_t i = 0;
        for (; i < n && stream.has_half(); ++i) count[stream.below(n, stream.next_half())] += 1;
        while (i + 2 <= n) {
            const std::uint64_t both = stream.next();
            const std::uint64_t first = (both & 0xFFFFFFFFu) * n, second = (both >> 32) * n;
            if (static_cast<std::uint32_t>(first) >= n && static_cast<std::uint32_t>(second) >= n) {
                count[first >> 32] += 1;
                count[second >> 32] += 1;
                i += 2;
                continue;
            }
            stream.keep(static_cast<std::uint32_t>(both >> 32));
            count[stream.below(n, static_cast<std::uint32_t>(both))] += 1;
            ++i;
            for (; i < n && stream.has_half(); ++i) count[stream.below(n, stream.next_half())] += 1;
        }
        for (; i < n; ++i) count[stream.below(n, stream.next_half())] += 1;
    }
}

void coin_sums(View<std::uint64_t> bits, std::uint64_t first, View<std::int64_t> values, std::size_t width,
               MutableView<std::int64_t> sums) {
    // The sums of all subsets of eight rows are tabled, so that eight coins cost one addition; a table fits a core's cache.
    constexpr std::size_t kRows = 8, kSubsets = 256, kTableBytes = 1 << 20;
    const std::size_t rows = values.size() / width, trials = sums.size() / width, groups = (rows + kRows - 1) / kRows;
    const std::size_t together = std::max<std::size_t>(1, kTableBytes / (kSubsets * width * sizeof(std::int64_t)));
    std::vector<std::int64_t> table(std::min(together, groups) * kSubsets * width);
    std::fill(sums.begin(), sums.end(), 0);
    for (std::size_t begin = 0; begin < groups; begin += together) {
        const std::size_t end = std::min(begin + together, groups);
        for (std::size_t group = begin; group < end; ++group) {
            std::int64_t* const sets = table.data() + (group - begin) * kSubsets * width;
            for (std::size_t set = 1; set < kSubsets; ++set) {
                // Rows behind the last one add nothing, whatever the coins of the next trial say.
                const std::size_t row = group * kRows + static_cast<std::size_t>(std::countr_zero(set));
                const std::int64_t* const rest = sets + (set & (set - 1)) * width;
                for (std::size_t k = 0; k < width; ++k) {
                    sets[set * width + k] = wrapping_add(rest[k], row < rows ? values[row * width + k] : 0);
                }
            }
        }
        for (std::size_t trial = 0; trial < trials; ++trial) {
            std::int64_t* const sum = sums.data() + trial * width;
            for (std::size_t group = begin; group < end; ++group) {
                const std::uint64_t at = (first + trial) * rows + group * kRows;
                const std::uint64_t low = bits[at / 64] >> (at % 64), high = bits[at / 64 + 1] << 1 << (63 - at % 64);
                const std::int64_t* const set = table.data() + ((group - begin) * kSubsets + ((low | high) & 0xFF)) * width;
                for (std::size_t k = 0; k < width; ++k) sum[k] = wrapping_add(sum[k], set[k]);
            }
        }
    }
}

}  // namespace lmgauge
