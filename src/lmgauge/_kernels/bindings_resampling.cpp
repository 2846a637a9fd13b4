#include "bindings.hpp"

void bind_resampling(nb::module_& m) {
    using MutableCounts = nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Rows = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using MutableRows = nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    def(m, "coin_sums", [](Array<std::uint64_t> bits, std::uint64_t first, Rows values, MutableRows sums) {
        const std::size_t rows = values.shape(0), width = values.shape(1), trials = sums.shape(0);
        require(rows > 0 && width > 0 && sums.shape(1) == width, "columns");
        // The last group of eight coins may reach into the word behind the last bit.
        require(first <= 0xFFFFFFFFu && trials <= 0xFFFFFFFFu && rows <= 0x7FFFFFFFu, "too many coins");
        require(bits.size() > ((first + trials) * rows + 7) / 64 + 1, "a bit for each coin, and a spare word");
        nb::gil_scoped_release release;
        coin_sums(view(bits), first, {values.data(), values.size()}, width, {sums.data(), sums.size()});
    });
    def(m, "draw_counts", [](MutableArray<std::uint64_t> state, MutableCounts counts) {
        const std::size_t n = counts.shape(1);
        // With an even increment the generator may give one number for ever.
        require(state.size() == 6 && state.data()[3] % 2 == 1, "the state of a generator is six numbers, the increment odd");
        require(n > 0 && n <= 0xFFFFFFFFu, "between 1 and 2^32 - 1 things to draw");
        nb::gil_scoped_release release;
        std::uint64_t* s = state.data();
        PcgState kept{s[0], s[1], s[2], s[3], s[4], s[5]};
        draw_counts(kept, static_cast<std::uint32_t>(n), {counts.data(), counts.size()});
        s[0] = kept.high, s[1] = kept.low, s[4] = kept.has_half, s[5] = kept.half;
    });
}
