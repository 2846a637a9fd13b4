// Python's face of the kernels of task metrics, and of separators.
#include "bindings.hpp"

namespace lmgauge {

constexpr MetricTokens last_of(MetricTokens) { return MetricTokens::international; }
constexpr ReferenceLength last_of(ReferenceLength) { return ReferenceLength::average; }
constexpr EditUnit last_of(EditUnit) { return EditUnit::character; }

template <>
struct From<ChrfOptions> : FromFields<ChrfOptions, int, int, double, bool, bool> {};

inline void check(const SpanRows& s) {
    check_same_size(s.segment_events, s.starts);
    check_same_size(s.ends, s.kind);
    check_empty_or(s.given, s.starts.size(), "shapes");
    check_empty_or(s.crossing, s.starts.size(), "shapes");
    for (std::size_t j = 0; j < s.given.size(); ++j) require(0 <= s.given[j] && s.given[j] <= s.starts[j], "given text outside the data");
    const auto size = static_cast<std::int64_t>(s.data.size());
    std::size_t rows = 0;
    for (std::size_t j = 0; j < s.starts.size(); ++j) {
        require(0 <= s.starts[j] && s.starts[j] <= size, "a segment outside the data");
        require(0 <= s.segment_events[j] && static_cast<std::size_t>(s.segment_events[j]) <= s.ends.size() - rows, "more events than rows");
        rows += static_cast<std::size_t>(s.segment_events[j]);
    }
    require(rows == s.ends.size(), "rows without a segment");
    for (const std::int64_t end : s.ends) require(0 <= end && end <= size, "a span outside the data");
}
template <>
struct From<SpanRows> : FromFields<SpanRows, Bytes8, Places, Places, Bytes8, Places, Places, Bytes8> {};
inline void check(const SeparatorRules& rules) {
    check_offsets(rules.offsets, rules.texts.size());
    require(rules.classes.size() == kClasses, "a class for each code point");
    for (const std::int64_t c : rules.classes) require(0 <= c && c < kSides, "a class out of range");
}
template <>
struct From<SeparatorRules> : FromFields<SeparatorRules, bool, Bytes8, Places, Places> {};
inline nb::tuple to_python(SeparatorsFound&& listed) {
    require(listed.fault < 0, "a span outside the data, or before the one it follows");
    return nb::make_tuple(to_python(std::move(listed.unknown)), to_python(std::move(listed.unseen)));
}
inline nb::object to_python(Bytes&& bytes) {
    const std::size_t size = bytes.size();
    std::uint8_t* const kept = bytes.release();
    nb::capsule owner(kept, [](void* p) noexcept { std::free(p); });
    return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(kept, {size}, owner));
}
inline auto fields(TokenTexts& texts) { return std::tie(texts.data, texts.starts, texts.ends); }

namespace {

using Statistics = Matrix<std::int64_t>;

// The references of some texts, which are at `begin` to `end`.
ReferencesView references_for(const TextsView& texts, const TextsView& references, Places offsets, std::size_t begin, std::size_t end) {
    require(offsets.size() == texts.size() + 1, "references for each hypothesis");
    check_offsets(offsets, references.size());
    check_range(begin, end, texts.size());
    return {references, offsets};
}
void check_lengths(const TextsView& texts) {
    for (std::size_t i = 0; i < texts.size(); ++i) require(texts[i].size() < kLongestChrfText, "a text of 1 GiB or more");
}
MutableView<std::int64_t> statistics(const Statistics& out, std::size_t rows, std::size_t columns) {
    require(out.shape(0) == rows && out.shape(1) == columns, "shapes");
    return {out.data(), out.size()};
}

// Lets a long computation end: where Ctrl-C was pressed (the main thread hears of it), or where `stop` was set (the others).
std::function<void()> pause_for(View<std::uint8_t> stop) {
    require(stop.size() == 1, "stop: one flag");
    return [flag = static_cast<volatile const std::uint8_t*>(stop.data())] {
        if (*flag != 0) throw std::runtime_error("stopped");
        nb::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    };
}

void bind_separators(nb::module_& m) {
    def(m, "score_separators", score_separators, [](const SpanRows& rows, const SeparatorRules& rules, View<std::int32_t> row_of_context,
                                                    View<double> table, const auto& logprob) {
        const std::size_t columns = rules.offsets.size();
        require(row_of_context.size() == kSeparatorContexts && table.size() % columns == 0, "tables");
        const auto contexts = static_cast<std::int64_t>(table.size() / columns);
        for (const std::int32_t row : row_of_context) require(0 <= row && row < contexts, "a context outside the table");
        check_same_size(rows.ends, logprob);
    });
    const auto a_row_each = [](const SpanRows& rows, const SeparatorRules&, const auto&... out) { check_same_size(rows.ends, out...); };
    def(m, "find_separators", find_separators, a_row_each);
}

}  // namespace

void bind_metrics(nb::module_& m) {
    def(m, "separate_tokens", separate_tokens,
        [](const TextsView& texts, MetricTokens kind, Bytes8 classes, std::size_t begin, std::size_t end) {
            require(kind != MetricTokens::international || classes.size() == 0x110000, "a class for each code point");
            check_range(begin, end, texts.size());
        });
    def(m, "bleu_statistics", [](const TextsView& texts, const TextsView& references, Places offsets, std::size_t order, ReferenceLength length,
                                 std::size_t begin, std::size_t end, MutableView<std::int64_t> out) {
        require(order >= 1 && order <= 64, "order: 1 to 64");
        require(offsets.size() == texts.size() + 1 && out.size() == texts.size() * (2 + 2 * order), "shapes");
        bleu_statistics(texts, references_for(texts, references, offsets, begin, end), order, length, begin, end, out);
    });
    def(m, "chrf_statistics", [](const TextsView& texts, const TextsView& references, Places offsets, const ChrfOptions& options,
                                 std::size_t begin, std::size_t end, const Statistics& out) {
        const auto fits = [](int order) { return order >= 0 && order <= kMaxChrfOrder; };
        require(fits(options.char_order) && fits(options.word_order), "orders");
        const auto orders = static_cast<std::size_t>(options.char_order + options.word_order);
        check_lengths(texts);
        check_lengths(references);
        chrf_statistics(texts, references_for(texts, references, offsets, begin, end), options, begin, end,
                        statistics(out, texts.size(), 3 * orders));
    });
    def(m, "ter_statistics", [](const TextsView& texts, const TextsView& references, Places offsets, std::size_t begin, std::size_t end,
                                const Statistics& out) {
        const ReferencesView all = references_for(texts, references, offsets, begin, end);
        for (std::size_t i = 0; i < texts.size(); ++i) {
            const std::int64_t count = offsets[i + 1] - offsets[i];
            require(count >= 1 && count <= static_cast<std::int64_t>(kMaxTerReferences), "1 to 16 references for each segment");
        }
        ter_statistics(texts, all, begin, end, statistics(out, texts.size(), 2));
    });
    def(m, "edit_counts", [](const TextsView& references, Places offsets, const TextsView& texts, EditUnit unit, std::size_t begin,
                             std::size_t end, MutableView<std::int64_t> out, MutableView<std::uint8_t> stop) {
        require(out.size() == 4 * texts.size(), "four counts for each segment");
        edit_counts(references_for(texts, references, offsets, begin, end), texts, unit, begin, end, out, pause_for(stop));
    });
    def(m, "edit_operations", [](const TextsView& references, const TextsView& texts, EditUnit unit, std::size_t begin, std::size_t end,
                                 MutableView<std::uint8_t> stop) {
        require(references.size() == texts.size(), "a reference for each hypothesis");
        check_range(begin, end, texts.size());
        return edit_operations(references, texts, unit, begin, end, pause_for(stop));
    });
    bind_separators(m);
}

}  // namespace lmgauge
