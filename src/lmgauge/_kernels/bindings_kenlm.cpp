// Python's face of kenlm.hpp. A file is opened anew by each call: that takes as long as a few lookups.
#include "bindings.hpp"

namespace lmgauge {

template <>
struct From<KenlmFile> {
    using Python = Array<std::uint8_t>;
    static KenlmFile view(const Python& data) { return open_kenlm({data.data(), data.size()}); }
};

namespace {

void check_ids(const KenlmFile& file, Ids ids, bool none) {
    for (const std::uint32_t id : ids) require(id < file.our_words() || (none && id == kNone), "a token id outside the vocabulary");
}
void check_words(Places offsets, std::size_t word, std::size_t size) {
    require(word + 1 < offsets.size(), "a word outside the vocabulary");
    require(0 <= offsets[word] && offsets[word] <= offsets[word + 1] && static_cast<std::size_t>(offsets[word + 1]) <= size, "words outside their data");
}

void bind_reading(nb::module_& m) {
    m.def("kenlm_layout", [](const Array<std::uint8_t>& data) {
        const KenlmFile file = From<KenlmFile>::view(data);
        const KenlmShape& shape = file.layout.shape;
        return std::make_tuple(static_cast<int>(shape.kind), shape.counts, file.has_words, std::make_tuple(file.begin != 0, file.end != 0),
                               shape.probability_bits, shape.backoff_bits, shape.array_bits, file.bound);
    });
    def(m, "kenlm_words", kenlm_words);
    def(m, "score_kenlm", score_kenlm, [](const KenlmFile& file, Ids ids, std::size_t, const EventRows& rows) {
        check_rows(rows, ids.size(), file.order() - 1);
        check_ids(file, ids, false);
    });
    def(m, "sum_kenlm", sum_kenlm, [](const KenlmFile& file, Ids ids, const SegmentColumns& columns) {
        check_ids(file, ids, false);
        check_segments(columns, ids);
    });
    def(m, "fill_kenlm", fill_kenlm, [](const KenlmFile& file, Ids contexts, double, const auto& rows) {
        const std::uint64_t words = file.our_words();
        require(contexts.size() * words == rows.size() * (file.order() - 1) && rows.size() % words == 0, "output");
        check_ids(file, contexts, true);
    });
    def(m, "list_kenlm", list_kenlm, [](const KenlmFile& file, unsigned order, const auto& words, const auto& probability, const auto& backoff) {
        require(is_trie(file.layout.shape.kind) && 1 <= order && order <= file.order(), "order");
        const std::uint64_t entries = order == 1 ? file.bound : file.layout.levels[order - 2].entries;
        require(probability.size() == entries && words.size() == entries * order, "output");
        check_same_size(probability, backoff);
    });
    def(m, "checksum_bytes", checksum_bytes);
}

void bind_writing(nb::module_& m) {
    def(m, "hash_kenlm_words", [](Places offsets, Bytes8 bytes, MutableView<std::uint64_t> hashes) {
        require(offsets.size() == hashes.size() + 1, "shapes");
        for (std::size_t i = 0; i < hashes.size(); ++i) {
            check_words(offsets, i, bytes.size());
            hashes[i] = hash_kenlm_word(bytes.data() + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
        }
    });
    def(m, "log10_of", log10_of, [](const auto& linear, const auto& log10) { check_same_size(linear, log10); });
    def(m, "combine_kenlm", [](View<std::uint64_t> keys, Ids suffixes, Ids words, MutableView<std::uint64_t> longer) {
        check_same_size(suffixes, words, longer);
        for (std::size_t i = 0; i < longer.size(); ++i) {
            require(suffixes[i] < keys.size(), "a suffix outside the order below");
            longer[i] = combine_kenlm(keys[suffixes[i]], words[i]);
        }
    });
    def(m, "fill_probing", [](MutableView<std::uint8_t> table, View<std::uint64_t> keys, Ids values, std::size_t width,
                              const std::tuple<std::uint64_t, std::uint64_t>& range) {
        require(1 <= width && width <= 2 && values.size() == keys.size() * width, "values");
        const std::size_t buckets = table.size() / (8 + 4 * width);
        require(table.size() % (8 + 4 * width) == 0 && keys.size() < buckets, "table");
        check_range(std::get<0>(range), std::get<1>(range), buckets);
        return fill_probing(table, keys, values, width, std::get<0>(range), std::get<1>(range));
    });
    def(m, "sort_extensions", sort_extensions, [](Ids suffixes, Ids words, Ids ends, Ids places) {
        check_same_size(suffixes, words, places);
        for (const std::uint32_t suffix : suffixes) require(suffix < ends.size(), "a suffix outside the order below");
    });
    def(m, "pack_rows", pack_rows, [](const auto& columns, const auto& widths, const auto& out) {
        require(!columns.empty() && columns.size() == widths.size(), "a width for each column");
        std::size_t bits = 0;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            check_same_size(columns[i], columns[0]);
            require(widths[i] <= 32, "widths");
            bits += widths[i];
        }
        require(out.size() >= (columns[0].size() * bits + 7) / 8 + 8, "output");
    });
    def(m, "center_bins", center_bins);
    def(m, "encode_bins", encode_bins, [](const auto& values, const auto& centers, std::size_t reserved, const auto& codes) {
        check_same_size(values, codes);
        require(centers.size() > reserved, "shapes");
    });
}

}  // namespace

void bind_kenlm(nb::module_& m) {
    bind_reading(m);
    bind_writing(m);
}

}  // namespace lmgauge
