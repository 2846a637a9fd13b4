#include "bindings.hpp"
#include "ter.hpp"

void bind_ter(nb::module_& m) {
    using Statistics = nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    def(m, "ter_statistics", [](const TextsArrays& hypotheses, const TextsArrays& references, Array<std::int64_t> offsets,
                               std::size_t begin, std::size_t end, Statistics out) {
        const TextsView texts = view(hypotheses);
        const ReferencesView all = view(references, offsets);
        require(all.offsets.size() == texts.size() + 1, "references for each hypothesis");
        require(out.shape(0) == texts.size() && out.shape(1) == 2, "shapes");
        check_range(begin, end, texts.size());
        for (std::size_t i = 0; i < texts.size(); ++i) {
            const std::int64_t count = all.offsets[i + 1] - all.offsets[i];
            require(count >= 1 && count <= static_cast<std::int64_t>(kMaxTerReferences), "1 to 16 references for each segment");
        }
        nb::gil_scoped_release release;
        ter_statistics(texts, all, begin, end, {out.data(), out.size()});
    });
}
