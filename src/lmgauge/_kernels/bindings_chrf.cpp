#include "bindings.hpp"
#include "chrf.hpp"

namespace {

void check_lengths(const TextsView& texts) {
    for (std::size_t i = 0; i < texts.size(); ++i) require(texts[i].size() < kLongestChrfText, "a text of 1 GiB or more");
}

}  // namespace

void bind_chrf(nb::module_& m) {
    using Options = std::tuple<int, int, double, bool, bool>;
    using Statistics = nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    def(m, "chrf_statistics", [](const TextsArrays& hypotheses, const TextsArrays& references, Array<std::int64_t> offsets,
                                Options options, std::size_t begin, std::size_t end, Statistics out) {
        const auto [char_order, word_order, factor, eps_smoothing, whitespace] = options;
        const TextsView texts = view(hypotheses);
        const ReferencesView all = view(references, offsets);
        require(char_order >= 0 && word_order >= 0 && char_order <= kMaxChrfOrder && word_order <= kMaxChrfOrder, "orders");
        require(all.offsets.size() == texts.size() + 1, "references for each hypothesis");
        const auto orders = static_cast<std::size_t>(char_order + word_order);
        require(out.shape(0) == texts.size() && out.shape(1) == 3 * orders, "shapes");
        check_range(begin, end, texts.size());
        check_lengths(texts);
        check_lengths(all.texts);
        nb::gil_scoped_release release;
        chrf_statistics(texts, all, {char_order, word_order, factor, eps_smoothing, whitespace}, begin, end,
                        {out.data(), out.size()});
    });
}
