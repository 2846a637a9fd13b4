// What the kernels take and return, as Python gives and gets it: structs by their fields, and what must hold of each.
#pragma once

#include <algorithm>

#include "arguments.hpp"
#include "bleu.hpp"
#include "chrf.hpp"
#include "distributions.hpp"
#include "edit_distance.hpp"
#include "kenlm.hpp"
#include "partition.hpp"
#include "partition_pack.hpp"
#include "separators.hpp"
#include "ter.hpp"

namespace lmgauge {

static_assert(std::endian::native == std::endian::little, "lmgauge's files are little-endian");
static_assert(sizeof(void*) == 8, "lmgauge needs a 64-bit machine: tables of n-grams are larger than 4 GiB");

using Ids = View<std::uint32_t>;
using Bytes8 = View<std::uint8_t>;
using Places = View<std::int64_t>;

// ---- what many functions check

inline void check_range(std::size_t begin, std::size_t end, std::size_t size) { require(begin <= end && end <= size, "range"); }
inline void check_below(Ids ids, std::uint64_t words) {
    for (const std::uint32_t id : ids) require(id < words, "a token id outside the vocabulary");
}
// The first has that many elements, and so has each of the others.
template <class First, class... Rest>
void check_same_size(const First& first, const Rest&... rest) { require(((rest.size() == first.size()) && ...), "shapes"); }
template <class Array>
void check_empty_or(const Array& array, std::size_t size, const char* what) { require(array.empty() || array.size() == size, what); }

// ---- text

constexpr TokenMode last_of(TokenMode) { return TokenMode::given; }
constexpr ReservedPolicy last_of(ReservedPolicy) { return ReservedPolicy::ordinary; }

inline void check_spans(Places starts, Places ends, std::size_t size, const char* what) {
    require(starts.size() == ends.size(), "a start and an end for each text");
    for (std::size_t i = 0; i < starts.size(); ++i) {
        require(0 <= starts[i] && starts[i] <= ends[i] && static_cast<std::size_t>(ends[i]) <= size, what);
    }
}

inline void check(const VocabularyView& v) {
    require(std::has_single_bit(v.slots.size()) && !v.offsets.empty(), "vocabulary slots: a power of two; offsets from 0");
}
template <>
struct From<VocabularyView> : FromFields<VocabularyView, MutableView<std::uint64_t>, MutableView<std::int64_t>, MutableView<std::uint8_t>> {};

// A vocabulary that is only read, which the kernels write to only when asked to insert.
struct ReadVocabulary : VocabularyView {};
template <>
struct From<ReadVocabulary> {
    using Python = std::tuple<Array<std::uint64_t>, Array<std::int64_t>, Array<std::uint8_t>>;
    template <class Number>
    static MutableView<Number> writable(const Array<Number>& array) { return {const_cast<Number*>(array.data()), array.size()}; }
    static ReadVocabulary view(const Python& v) {
        const VocabularyView all{writable(std::get<0>(v)), writable(std::get<1>(v)), writable(std::get<2>(v))};
        check(all);
        return {all};
    }
};

// Texts; every span is checked here, so that kernels need not.
inline void check(const TextsView& texts) {
    check_spans(texts.starts, texts.ends, texts.data.size(), "a text outside the data");
    for (std::size_t i = 0; i < texts.size(); ++i) require(!ends_within(texts[i]), "a text that ends within a character");
}
template <>
struct From<TextsView> : FromFields<TextsView, Bytes8, Places, Places> {};

inline void check_offsets(Places offsets, std::size_t size) {
    require(!offsets.empty() && offsets.front() == 0 && static_cast<std::size_t>(offsets.back()) == size, "offsets from 0 to the end");
    require(std::is_sorted(offsets.begin(), offsets.end()), "rising offsets");
}

// ---- what kernels return, by its fields

inline auto fields(TextCounts& counts) { return std::tie(counts.words, counts.characters); }
inline auto fields(ArpaLines& lines) { return std::tie(lines.lines, lines.consumed, lines.fault, lines.reason); }
inline auto fields(Requests& requests) { return std::tie(requests.fresh, requests.rows); }
inline auto fields(EntryCounts& counts) { return std::tie(counts.entries, counts.blanks); }
inline auto fields(TableCheck& check) { return std::tie(check.checksum, check.bad); }
inline auto fields(Measured& measured) { return std::tie(measured.free, measured.limit); }
inline auto fields(Sorted& sorted) { return std::tie(sorted.twice, sorted.blanks); }
inline auto fields(KenlmWords& words) { return std::tie(words.offsets, words.bytes, words.wrong); }
inline auto fields(EditOperations& edits) { return std::tie(edits.operations, edits.ends); }

// ---- packed tables, and models of them

template <>
struct From<std::span<const Line>> : FromRows<const Line, const std::uint32_t, 16> {};
template <>
struct From<std::span<Line>> : FromRows<Line, std::uint32_t, 16> {};

// Bounds of parents and words, which keys can tell apart.
struct BoundedScatter : Scatter {
    std::uint64_t parents, words;
};
template <>
struct From<BoundedScatter> {
    using Python = std::tuple<std::uint64_t, std::uint64_t>;
    static BoundedScatter view(const Python& bounds) {
        const auto [parents, words] = bounds;
        require(parents < kNone && words < kNone, "slots of parents, and words: fewer than 2^32");
        const Scatter scatter(parents, words);
        require(scatter.bits() <= kMostBits, "slots of parents, and words: too many for keys");
        return {scatter, parents, words};
    }
};
template <>
struct From<Scatter> : From<BoundedScatter> {};

// Lines; bounds of parents and words; whether it is the highest order.
struct BoundedTable : TableView {
    std::uint64_t parents, words;
};
template <>
struct From<BoundedTable> {
    using Python = std::tuple<PythonOf<View<Line>>, std::uint64_t, std::uint64_t, bool>;
    static BoundedTable view(const Python& table) {
        const auto& [given, parents, words, last] = table;
        const View<Line> lines = From<View<Line>>::view(given);
        require(parents < kNone && words < kNone && TableView::fits(lines.size(), parents, words), "a table too small for its keys");
        require(lines.size() < kNone / 2 / 7, "slots: fewer than 2^31");
        return {TableView(lines.data(), lines.size(), parents, words, last), parents, words};
    }
};
template <>
struct From<TableView> : From<BoundedTable> {};

template <>
struct From<ModelView> {
    using Python = std::tuple<Array<float>, std::vector<PythonOf<TableView>>, std::tuple<bool, float>>;
    static ModelView view(const Python& given) {
        const auto& [unigrams, tables, mode] = given;
        ModelView model{From<View<float>>::view(unigrams), {}, std::get<0>(mode), std::get<1>(mode)};
        require(tables.size() < 250 && unigrams.size() >= 6 && unigrams.size() % 2 == 0 && unigrams.size() < kNone, "model");
        for (const auto& one : tables) {
            const BoundedTable table = From<BoundedTable>::view(one);
            // Every slot of a table is a parent that the next may name.
            const std::uint64_t below = model.tables.empty() ? model.words() : model.tables.back().size();
            require(table.parents == below && table.words == model.words(), "tables that belong together");
            require(table.last == (model.tables.size() + 1 == tables.size()), "the highest order comes last");
            model.tables.push_back(table);
        }
        return model;
    }
};

// A model's rows of events, and its sums of segments.
template <>
struct From<EventRows> : FromFields<EventRows, MutableView<double>, MutableView<std::uint8_t>, MutableView<std::uint32_t>,
                                    MutableView<std::uint8_t>, MutableView<std::uint32_t>> {};
inline void check_rows(const EventRows& rows, std::size_t n, std::size_t contexts) {
    const bool fits = rows.logprob.size() >= n && rows.matched.size() >= n && rows.ids.size() >= n && rows.kind.size() >= n;
    require(fits && (rows.contexts.empty() || rows.contexts.size() >= n * contexts), "output");
}
inline void check(const SegmentColumns& c) { check_same_size(c.high, c.low, c.events, c.zeros, c.unseen, c.ends); }
template <>
struct From<SegmentColumns> : FromFields<SegmentColumns, MutableView<std::int64_t>, MutableView<std::uint64_t>, MutableView<std::int64_t>,
                                         MutableView<std::int64_t>, MutableView<std::int64_t>, MutableView<std::int64_t>> {};
// A column for each segment: these begin where an id is <s>, the first of them with the first id.
inline void check_segments(const SegmentColumns& columns, Ids ids) {
    require(ids.empty() || ids[0] == kBos, "a segment that begins with <s>");
    require(static_cast<std::size_t>(std::count(ids.begin(), ids.end(), kBos)) == columns.high.size(), "a column for each segment");
}

void bind_reader(nb::module_& m);
void bind_tables(nb::module_& m);
void bind_metrics(nb::module_& m);
void bind_distributions(nb::module_& m);
void bind_overlap(nb::module_& m);
void bind_kenlm(nb::module_& m);

}  // namespace lmgauge
