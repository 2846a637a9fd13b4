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

// kind, counts, bits of probabilities, of back-off weights, of arrays
using Shape = std::tuple<int, std::vector<std::uint64_t>, unsigned, unsigned, unsigned>;

KenlmLayout layout_of(const Shape& given) {
    const auto& [kind, counts, probability_bits, backoff_bits, array_bits] = given;
    require(kind >= 0 && kind <= 5 && kind != 1 && counts.size() >= 2 && counts.size() < 250, "shape");
    require(probability_bits >= 1 && probability_bits <= 25 && backoff_bits >= 1 && backoff_bits <= 25 && array_bits < 256, "bits");
    for (const std::uint64_t count : counts) require(count < std::uint64_t{1} << 40, "counts");
    KenlmShape shape{static_cast<KenlmKind>(kind), counts, 1.5f, probability_bits, backoff_bits, array_bits};
    return lay_out_kenlm(shape, std::uint64_t{1} << 60);
}

}  // namespace

void bind_kenlm(nb::module_& m) {
    def(m, "kenlm_layout", [](Array<std::uint8_t> data) {
        const KenlmFile file = open_kenlm(view(data));
        const KenlmShape& shape = file.layout.shape;
        const auto specials = std::make_tuple(file.begin != 0, file.end != 0);
        return std::make_tuple(static_cast<int>(shape.kind), shape.counts, file.has_words, specials, shape.probability_bits,
                               shape.backoff_bits, shape.array_bits, file.bound);
    });
    def(m, "kenlm_words", [](Array<std::uint8_t> data) {
        KenlmWords words;
        {
            nb::gil_scoped_release release;
            words = kenlm_words(open_kenlm(view(data)));
        }
        return nb::make_tuple(to_numpy(std::move(words.offsets)), to_numpy(std::move(words.bytes)), words.wrong);
    });
    def(m, "score_kenlm", [](Array<std::uint8_t> data, Array<std::uint32_t> ids, std::size_t skip, const KenlmRows& out) {
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
    def(m, "sum_kenlm", [](Array<std::uint8_t> data, Array<std::uint32_t> ids, const SumArrays& out) {
        const KenlmFile file = open_kenlm(view(data));
        nb::gil_scoped_release release;
        check_ids(file, view(ids), false);
        return sum_kenlm(file, view(ids), segment_columns(out, view(ids)));
    });
    def(m, "fill_kenlm", [](Array<std::uint8_t> data, Array<std::uint32_t> contexts, double lowest, MutableArray<double> rows) {
        const KenlmFile file = open_kenlm(view(data));
        require(contexts.size() * file.our_words() == rows.size() * (file.order() - 1) && rows.size() % file.our_words() == 0,
                "output");
        nb::gil_scoped_release release;
        check_ids(file, view(contexts), true);
        fill_kenlm(file, view(contexts), lowest, view(rows));
    });
    def(m, "list_kenlm", [](Array<std::uint8_t> data, unsigned order, MutableArray<std::uint32_t> words,
                           MutableArray<float> probability, MutableArray<float> backoff) {
        const KenlmFile file = open_kenlm(view(data));
        require(is_trie(file.layout.shape.kind) && 1 <= order && order <= file.order(), "order");
        const std::uint64_t entries = order == 1 ? file.bound : file.layout.levels[order - 2].entries;
        require(probability.size() == entries && backoff.size() == entries && words.size() == entries * order, "output");
        nb::gil_scoped_release release;
        list_kenlm(file, order, view(words), view(probability), view(backoff));
    });
    def(m, "checksum_bytes", [](Array<std::uint8_t> data) {
        nb::gil_scoped_release release;
        return checksum_bytes(view(data));
    });

    // ---- writing
    def(m, "hash_kenlm_words", [](Array<std::int64_t> offsets, Array<std::uint8_t> bytes, MutableArray<std::uint64_t> hashes) {
        require(offsets.size() == hashes.size() + 1, "shapes");
        for (std::size_t i = 0; i < hashes.size(); ++i) {
            require(0 <= offsets.data()[i] && offsets.data()[i] <= offsets.data()[i + 1] &&
                        static_cast<std::size_t>(offsets.data()[i + 1]) <= bytes.size(), "words outside their data");
            const auto size = static_cast<std::size_t>(offsets.data()[i + 1] - offsets.data()[i]);
            hashes.data()[i] = hash_kenlm_word(bytes.data() + offsets.data()[i], size);
        }
    });
    def(m, "plan_kenlm", [](const Shape& shape) {
        const KenlmLayout layout = layout_of(shape);
        std::vector<std::tuple<std::uint64_t, std::uint64_t>> levels;
        for (const KenlmLevel& level : layout.levels) {
            levels.emplace_back(level.offsets > 0 ? level.header_at : level.at, level.buckets);
        }
        const std::vector<std::uint64_t> places{layout.vocabulary, layout.quantization, layout.unigrams, layout.end,
                                                layout.vocabulary_buckets};
        return std::make_tuple(places, levels);
    });
    def(m, "write_kenlm_header", [](const Shape& shape, MutableArray<std::uint8_t> header) {
        const KenlmLayout layout = layout_of(shape);
        require(header.size() == kenlm_header_size(layout.shape.order()), "header");
        write_kenlm_header(layout.shape, view(header));
    });
    def(m, "join_words", [](Array<std::int64_t> offsets, Array<std::uint8_t> bytes, Array<std::uint32_t> order) {
        std::string out;
        for (const std::uint32_t word : view(order)) {
            require(word + std::size_t{1} < offsets.size(), "a word outside the vocabulary");
            const std::int64_t begin = offsets.data()[word], end = offsets.data()[word + 1];
            require(0 <= begin && begin <= end && static_cast<std::size_t>(end) <= bytes.size(), "words outside their data");
            out.append(reinterpret_cast<const char*>(bytes.data()) + begin, static_cast<std::size_t>(end - begin));
            out.push_back('\0');
        }
        return nb::bytes(out.data(), out.size());
    });
    def(m, "log10_of", [](Array<float> linear, MutableArray<float> log10) {
        require(linear.size() == log10.size(), "shapes");
        nb::gil_scoped_release release;
        log10_of(view(linear), view(log10));
    });
    def(m, "combine_kenlm", [](Array<std::uint64_t> keys, Array<std::uint32_t> words, MutableArray<std::uint64_t> longer) {
        require(keys.size() == words.size() && keys.size() == longer.size(), "shapes");
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < keys.size(); ++i) longer.data()[i] = combine_kenlm(keys.data()[i], words.data()[i]);
    });
    def(m, "fill_probing", [](MutableArray<std::uint8_t> table, Array<std::uint64_t> keys, Array<std::uint32_t> values, std::size_t width,
                             std::tuple<std::uint64_t, std::uint64_t> range) {
        require(1 <= width && width <= 2 && values.size() == keys.size() * width, "values");
        const std::size_t buckets = table.size() / (8 + 4 * width);
        require(table.size() % (8 + 4 * width) == 0 && keys.size() < buckets, "table");
        check_range(std::get<0>(range), std::get<1>(range), buckets);
        std::vector<std::uint32_t> left;
        {
            nb::gil_scoped_release release;
            left = fill_probing(view(table), view(keys), view(values), width, std::get<0>(range), std::get<1>(range));
        }
        return to_numpy(std::move(left));
    });
    def(m, "sort_extensions", [](Array<std::uint32_t> suffixes, Array<std::uint32_t> words, MutableArray<std::uint64_t> ends,
                                MutableArray<std::uint32_t> places) {
        require(suffixes.size() == words.size() && words.size() == places.size(), "shapes");
        nb::gil_scoped_release release;
        for (const std::uint32_t suffix : view(suffixes)) require(suffix < ends.size(), "a suffix outside the order below");
        sort_extensions(view(suffixes), view(words), view(ends), view(places));
    });
    def(m, "pack_level", [](const Shape& shape, unsigned order, Array<std::uint32_t> words, Array<std::uint64_t> values,
                           Array<std::uint64_t> next, MutableArray<std::uint8_t> part) {
        const KenlmLayout layout = layout_of(shape);
        require(is_trie(layout.shape.kind) && order >= 2 && order <= layout.shape.order(), "order");
        const KenlmLevel& level = layout.levels[order - 2];
        const bool longest = order == layout.shape.order();
        const std::uint64_t end = longest ? layout.end : layout.levels[order - 1].offsets > 0 ? layout.levels[order - 1].header_at
                                                                                              : layout.levels[order - 1].at;
        const std::uint64_t begin = level.offsets > 0 ? level.header_at : level.at;
        require(words.size() == level.entries && values.size() == level.entries && part.size() == end - begin, "shapes");
        require(next.size() == (longest ? 0 : level.entries + 1), "next");
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < next.size(); ++i) {
            require(next.data()[i] <= layout.shape.counts[order] && (i == 0 || next.data()[i - 1] <= next.data()[i]), "next");
        }
        pack_level(level, layout.shape.array_bits, view(words), view(values), view(next), view(part));
    });
    def(m, "center_bins", [](Array<float> sorted, MutableArray<float> centers) {
        nb::gil_scoped_release release;
        center_bins(view(sorted), view(centers));
    });
    def(m, "encode_bins", [](Array<float> values, Array<float> centers, std::size_t reserved, MutableArray<std::uint32_t> codes) {
        require(values.size() == codes.size() && centers.size() > reserved, "shapes");
        nb::gil_scoped_release release;
        encode_bins(view(values), view(centers), reserved, view(codes));
    });
}
