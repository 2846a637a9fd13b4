// Python's face of kenlm.hpp. A file is opened anew by each call: that takes as long as a few lookups.
#include "bindings.hpp"
#include "kenlm.hpp"

namespace {

using KenlmRows = std::tuple<MutableArray<double>, MutableArray<std::uint8_t>, MutableArray<std::uint32_t>,
                             MutableArray<std::uint8_t>, MutableArray<std::uint32_t>>;

void check_ids(const KenlmFile& file, View<std::uint32_t> ids, bool none) {
    const std::uint64_t words = file.our_words();
    for (const std::uint32_t id : ids) require(id < words || (none && id == kNone), "a token id outside the vocabulary");
}

}  // namespace

void bind_kenlm(nb::module_& m) {
    m.def("kenlm_layout", [](Array<std::uint8_t> data) {
        const KenlmFile file = open_kenlm(view(data));
        const KenlmShape& shape = file.layout.shape;
        const auto specials = std::make_tuple(file.begin != 0, file.end != 0);
        return std::make_tuple(static_cast<int>(shape.kind), shape.counts, file.has_words, specials, shape.probability_bits,
                               shape.backoff_bits, shape.array_bits, file.bound);
    });
    m.def("kenlm_words", [](Array<std::uint8_t> data) {
        KenlmWords words;
        {
            nb::gil_scoped_release release;
            words = kenlm_words(open_kenlm(view(data)));
        }
        return nb::make_tuple(to_numpy(std::move(words.offsets)), to_numpy(std::move(words.bytes)), words.wrong);
    });
    m.def("score_kenlm", [](Array<std::uint8_t> data, Array<std::uint32_t> ids, std::size_t skip, const KenlmRows& out) {
        const KenlmFile file = open_kenlm(view(data));
        const EventRows rows{view(std::get<0>(out)), view(std::get<1>(out)), view(std::get<2>(out)), view(std::get<3>(out)),
                             view(std::get<4>(out))};
        require(rows.logprob.size() >= ids.size() && rows.matched.size() >= ids.size() && rows.ids.size() >= ids.size() &&
                    rows.kind.size() >= ids.size() &&
                    (rows.contexts.empty() || rows.contexts.size() >= ids.size() * (file.order() - 1)), "output");
        nb::gil_scoped_release release;
        check_ids(file, view(ids), false);
        return score_kenlm(file, view(ids), skip, rows);
    });
    m.def("fill_kenlm", [](Array<std::uint8_t> data, Array<std::uint32_t> contexts, double lowest, MutableArray<double> rows) {
        const KenlmFile file = open_kenlm(view(data));
        require(contexts.size() * file.our_words() == rows.size() * (file.order() - 1) && rows.size() % file.our_words() == 0,
                "output");
        nb::gil_scoped_release release;
        check_ids(file, view(contexts), true);
        fill_kenlm(file, view(contexts), lowest, view(rows));
    });
    m.def("list_kenlm", [](Array<std::uint8_t> data, unsigned order, MutableArray<std::uint32_t> words,
                           MutableArray<float> probability, MutableArray<float> backoff) {
        const KenlmFile file = open_kenlm(view(data));
        require(is_trie(file.layout.shape.kind) && 1 <= order && order <= file.order(), "order");
        const std::uint64_t entries = order == 1 ? file.bound : file.layout.levels[order - 2].entries;
        require(probability.size() == entries && backoff.size() == entries && words.size() == entries * order, "output");
        nb::gil_scoped_release release;
        list_kenlm(file, order, view(words), view(probability), view(backoff));
    });
    m.def("checksum_bytes", [](Array<std::uint8_t> data) {
        nb::gil_scoped_release release;
        return checksum_bytes(view(data));
    });
}
