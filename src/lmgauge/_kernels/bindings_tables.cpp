// Python's face of pack.hpp.
#include "bindings.hpp"
#include "pack.hpp"

namespace {

using StagedArray = nb::ndarray<std::uint32_t, nb::shape<-1, 5>, nb::c_contig, nb::device::cpu>;
using PartsArrays = std::tuple<StagedArray, MutableArray<std::uint64_t>>;    // n-grams, sizes of the parts
using Columns = std::tuple<Array<std::uint32_t>, Array<std::uint32_t>, Array<float>, Array<float>>;
using Bounds = std::tuple<std::uint64_t, std::uint64_t>;                     // slots of parents, words
using MutableColumns = std::tuple<MutableArray<std::uint32_t>, MutableArray<std::uint32_t>, MutableArray<std::uint32_t>,
                                  MutableArray<float>, MutableArray<float>>;

Parts parts_view(const PartsArrays& parts) {
    const auto& [staged, sizes] = parts;
    require(sizes.size() > 0 && staged.shape(0) % sizes.size() == 0, "parts");
    return {{reinterpret_cast<Staged*>(staged.data()), staged.shape(0)}, view(sizes)};
}

Below below_view(const std::vector<MutableLines>& below, std::uint64_t parents) {
    if (below.empty()) return {nullptr, 0};
    require(below[0].shape(0) * MiddleLine::kWidth == parents, "the table below");
    check_aligned(below[0].data());
    return {reinterpret_cast<Line*>(below[0].data()), parents};
}

void check_parts(const Parts& parts, std::size_t first, std::size_t last) {
    check_range(first, last, parts.sizes.size());
    for (const std::uint64_t size : parts.sizes) require(size <= parts.room(), "parts that have room");
}

}  // namespace

void bind_tables(nb::module_& m) {
    m.attr("SPARE_LINES") = kSpareLines;
    m.attr("LEAST_HOME_BITS") = kLeastHomeBits;
    def(m, "stage_table", [](Table table, std::size_t begin, std::size_t end, Array<std::uint8_t> dropped,
                            Array<std::uint32_t> parent_slots, Bounds bounds, const std::vector<MutableLines>& below,
                            const PartsArrays& parts) {
        check_range(begin, end, table.shape(0));
        require(dropped.size() == 0 || dropped.size() == table.shape(0), "dropped");
        const auto& [parents, words] = bounds;
        const Below lower = below_view(below, parents);
        const auto entries = view(table);
        const Scatter scatter = scatter_of(parents, words);
        nb::gil_scoped_release release;
        stage_table(entries, begin, end, view(dropped), view(parent_slots), scatter, lower, parts_view(parts));
    });
    def(m, "stage_columns", [](const Columns& ngrams, std::size_t begin, std::size_t end, Bounds bounds,
                              const std::vector<MutableLines>& below, const PartsArrays& parts) {
        const NgramColumns columns{view(std::get<0>(ngrams)), view(std::get<1>(ngrams)), view(std::get<2>(ngrams)),
                                   view(std::get<3>(ngrams))};
        const std::size_t n = columns.parents.size();
        check_range(begin, end, n);
        require(columns.words.size() == n && columns.probabilities.size() == n && columns.weights.size() == n, "columns");
        const auto& [parents, words] = bounds;
        const Below lower = below_view(below, parents);
        const Scatter scatter = scatter_of(parents, words);
        nb::gil_scoped_release release;
        for (std::size_t i = begin; i < end; ++i) {
            require(columns.parents[i] < parents && columns.words[i] < words, "a parent or a word out of range");
        }
        stage_columns(columns, begin, end, scatter, lower, parts_view(parts));
    });
    def(m, "sort_parts", [](const PackedTable& table, const PartsArrays& parts, std::size_t first, std::size_t last,
                           MutableArray<std::uint64_t> frees) {
        const Parts p = parts_view(parts);
        require(frees.size() == p.sizes.size(), "frees");
        check_parts(p, first, last);
        nb::gil_scoped_release release;
        sort_parts(view(table), p, first, last, view(frees));
    });
    def(m, "place_parts", [](const MutableLines& lines, Bounds bounds, bool highest, const PartsArrays& parts, std::size_t first,
                            std::size_t last, Array<std::uint64_t> starts, bool marked, MutableArray<std::uint32_t> slots) {
        const Parts p = parts_view(parts);
        check_parts(p, first, last);
        require(starts.size() == p.sizes.size(), "starts");
        const TableView table = view(PackedTable{LinesArray(lines), std::get<0>(bounds), std::get<1>(bounds), highest});
        nb::gil_scoped_release release;
        if (slots.size() > 0) {
            for (std::size_t i = first; i < last; ++i) {
                for (const Staged& s : p.part(i)) require(s.source < slots.size(), "slots");
            }
        }
        const MutableView<Line> all{reinterpret_cast<Line*>(lines.data()), lines.shape(0)};
        const Placed r = place_parts(table, all, p, first, last, view(starts), marked, view(slots));
        return std::make_tuple(r.twice, r.far);
    });
    def(m, "count_entries", [](const PackedTable& table, std::size_t begin, std::size_t end) {
        const TableView packed = view(table);
        check_range(begin, end, packed.rows());
        nb::gil_scoped_release release;
        const EntryCounts r = count_entries(packed, begin, end);
        return std::make_tuple(r.entries, r.blanks);
    });
    def(m, "list_entries", [](const PackedTable& table, std::size_t begin, std::size_t end, const MutableColumns& out) {
        const TableView packed = view(table);
        check_range(begin, end, packed.rows());
        const EntryColumns columns{view(std::get<0>(out)), view(std::get<1>(out)), view(std::get<2>(out)), view(std::get<3>(out)),
                                   view(std::get<4>(out))};
        nb::gil_scoped_release release;
        const std::size_t n = count_entries(packed, begin, end).entries;
        require(columns.slots.size() == n && columns.parents.size() == n && columns.words.size() == n &&
                    columns.probabilities.size() == n && columns.weights.size() == n, "columns");
        list_entries(packed, begin, end, columns);
    });
    def(m, "check_lines", [](const PackedTable& table, std::size_t begin, std::size_t end) {
        const TableView packed = view(table);
        check_range(begin, end, packed.rows());
        nb::gil_scoped_release release;
        const TableCheck r = check_lines(packed, begin, end, std::get<1>(table), std::get<2>(table));
        return std::make_tuple(r.checksum, r.bad);
    });
    def(m, "find_ngrams", [](const PackedTable& table, Array<std::uint32_t> parents, Array<std::uint32_t> words,
                            MutableArray<std::uint32_t> slots) {
        require(parents.size() == slots.size() && words.size() == slots.size(), "shapes");
        const TableView packed = view(table);
        nb::gil_scoped_release release;
        find_ngrams(packed, view(parents), view(words), view(slots));
    });
    def(m, "entry_values", [](const PackedTable& table, Array<std::uint32_t> slots, MutableArray<float> probabilities,
                             MutableArray<float> weights) {
        require(probabilities.size() == slots.size() && weights.size() == slots.size(), "shapes");
        const TableView packed = view(table);
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < slots.size(); ++i) {
            const std::uint32_t slot = slots.data()[i];
            require(slot < packed.size(), "a slot outside the table");
            probabilities.data()[i] = packed.probability(slot);
            weights.data()[i] = packed.weight(slot);
        }
    });
}
