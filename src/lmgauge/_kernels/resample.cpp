// Resampling of per-segment sums: the paired bootstrap and the sign-flip permutation test. Every resample has its own
// stream of random numbers, so results do not depend on how resamples are shared among threads.
#include <algorithm>
#include <array>
#include <bit>

#include "kernels.hpp"

namespace lmgauge {

namespace {

// SplitMix64: Steele, Lea & Flood (2014), "Fast splittable pseudorandom number generators".
class Stream {
  public:
    Stream(std::uint64_t seed, std::uint64_t resample) : state_(finish(seed) ^ finish(~resample)) {}
    std::uint64_t next() { return finish(state_ += 0x9E3779B97F4A7C15ull); }
    // Uniform on [0, n): the upper half of a 128-bit product (Lemire 2019, without the rejection, which for n below 2^40
    // changes a probability by less than 2^-24 of itself).
    std::uint64_t below(std::uint64_t n) { return multiply_high(next(), n); }

  private:
    static std::uint64_t finish(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    std::uint64_t state_;
};

// The width is a constant where it can be, for the sums to stay in registers.
template <std::size_t Width>
void draw_sums(View<double> values, std::size_t width, Stream stream, double* sums) {
    if constexpr (Width != 0) width = Width;
    const std::uint64_t rows = values.size() / width;
    std::array<double, kMaxColumns> total{};
    for (std::uint64_t i = 0; i < rows; ++i) {
        const double* row = values.data() + stream.below(rows) * width;
        for (std::size_t k = 0; k < width; ++k) total[k] += row[k];
    }
    std::copy_n(total.begin(), width, sums);
}

}  // namespace

void bootstrap_sums(View<double> values, std::size_t width, std::uint64_t seed, std::uint64_t first, MutableView<double> sums) {
    const std::size_t resamples = sums.size() / width;
    for (std::size_t r = 0; r < resamples; ++r) {
        const Stream stream(seed, first + r);
        double* out = sums.data() + r * width;
        switch (width) {
            case 1: draw_sums<1>(values, width, stream, out); break;
            case 2: draw_sums<2>(values, width, stream, out); break;
            case 5: draw_sums<5>(values, width, stream, out); break;
            default: draw_sums<0>(values, width, stream, out);
        }
    }
}

void sign_flip_sums(View<double> values, std::uint64_t seed, std::uint64_t first, MutableView<double> sums) {
    constexpr std::size_t kLanes = 8;  // additions that do not wait for each other
    for (std::size_t r = 0; r < sums.size(); ++r) {
        Stream stream(seed, first + r);
        std::array<double, kLanes> lanes{};
        for (std::size_t i = 0; i < values.size(); i += 64) {
            const std::uint64_t signs = stream.next();
            const std::size_t end = std::min<std::size_t>(64, values.size() - i);
            std::size_t j = 0;
            for (; j + kLanes <= end; j += kLanes) {
                for (std::size_t lane = 0; lane < kLanes; ++lane) {
                    const std::uint64_t sign = ((signs >> (j + lane)) & 1) << 63;
                    lanes[lane] += std::bit_cast<double>(std::bit_cast<std::uint64_t>(values[i + j + lane]) ^ sign);
                }
            }
            for (; j < end; ++j) {
                const std::uint64_t sign = ((signs >> j) & 1) << 63;
                lanes[j % kLanes] += std::bit_cast<double>(std::bit_cast<std::uint64_t>(values[i + j]) ^ sign);
            }
        }
        double total = 0;
        for (const double lane : lanes) total += lane;
        sums[r] = total;
    }
}

}  // namespace lmgauge
