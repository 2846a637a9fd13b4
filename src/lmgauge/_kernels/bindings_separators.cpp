#include "bindings.hpp"
#include "separators.hpp"

namespace {

// data; start, given bytes (or empty), crossing (or empty) and events by segment; end of the span and kind by row.
using RowsArrays = std::tuple<Array<std::uint8_t>, Array<std::int64_t>, Array<std::int64_t>, Array<std::uint8_t>,
                              Array<std::int64_t>, Array<std::int64_t>, Array<std::uint8_t>>;
using RulesArrays = std::tuple<bool, Array<std::uint8_t>, Array<std::int64_t>, Array<std::int64_t>>;

SpanRows rows_view(const RowsArrays& arrays) {
    const auto& [data, starts, given, crossing, events, ends, kind] = arrays;
    const std::size_t segments = events.size();
    require(starts.size() == segments && kind.size() == ends.size(), "shapes");
    require((given.size() == 0 || given.size() == segments) && (crossing.size() == 0 || crossing.size() == segments), "shapes");
    for (std::size_t j = 0; j < given.size(); ++j) {
        require(0 <= given.data()[j] && given.data()[j] <= starts.data()[j], "given text outside the data");
    }
    std::size_t rows = 0;
    for (std::size_t j = 0; j < segments; ++j) {
        require(0 <= starts.data()[j] && starts.data()[j] <= static_cast<std::int64_t>(data.size()), "a segment outside the data");
        require(0 <= events.data()[j] && static_cast<std::size_t>(events.data()[j]) <= ends.size() - rows, "more events than rows");
        rows += static_cast<std::size_t>(events.data()[j]);
    }
    require(rows == ends.size(), "rows without a segment");
    for (const std::int64_t end : view(ends)) require(0 <= end && static_cast<std::size_t>(end) <= data.size(), "a span outside the data");
    return {view(data), view(starts), view(given), view(crossing), view(events), view(ends), view(kind)};
}

SeparatorRules rules_view(const RulesArrays& arrays) {
    const auto& [divided, texts, offsets, classes] = arrays;
    require(offsets.size() > 0 && offsets.data()[0] == 0 &&
                offsets.data()[offsets.size() - 1] == static_cast<std::int64_t>(texts.size()), "offsets of known separators");
    for (std::size_t k = 1; k < offsets.size(); ++k) require(offsets.data()[k - 1] <= offsets.data()[k], "rising offsets");
    require(classes.size() == kClasses, "a class for each code point");
    for (const std::int64_t c : view(classes)) require(0 <= c && c < kSides, "a class out of range");
    return {divided, view(texts), view(offsets), view(classes)};
}

nb::tuple as_tuple(SeparatorsFound&& listed) {
    require(listed.fault < 0, "a span outside the data, or before the one it follows");
    return nb::make_tuple(to_numpy(std::move(listed.unknown)), to_numpy(std::move(listed.unseen)));
}

}  // namespace

void bind_separators(nb::module_& m) {
    def(m, "score_separators", [](const RowsArrays& rows, const RulesArrays& rules, Array<std::int32_t> row_of_context,
                                 Array<double> table, MutableArray<double> logprob) {
        const SeparatorRules r = rules_view(rules);
        const std::size_t columns = r.offsets.size();
        require(row_of_context.size() == kSeparatorContexts && table.size() % columns == 0, "tables");
        const auto contexts = static_cast<std::int64_t>(table.size() / columns);
        for (const std::int32_t row : view(row_of_context)) require(0 <= row && row < contexts, "a context outside the table");
        SeparatorsFound listed;
        {
            nb::gil_scoped_release release;
            const SpanRows all = rows_view(rows);
            require(logprob.size() == all.ends.size(), "output");
            listed = score_separators(all, r, view(row_of_context), view(table), view(logprob));
        }
        return as_tuple(std::move(listed));
    });
    def(m, "find_separators", [](const RowsArrays& rows, const RulesArrays& rules, MutableArray<std::int32_t> context,
                                MutableArray<std::int32_t> which) {
        const SeparatorRules r = rules_view(rules);
        SeparatorsFound listed;
        {
            nb::gil_scoped_release release;
            const SpanRows all = rows_view(rows);
            require(context.size() == all.ends.size() && which.size() == all.ends.size(), "output");
            listed = find_separators(all, r, view(context), view(which));
        }
        return as_tuple(std::move(listed));
    });
    def(m, "place_separators", [](const RowsArrays& rows, const RulesArrays& rules, MutableArray<std::int64_t> context,
                                 MutableArray<std::int64_t> begins, MutableArray<std::int64_t> lengths, MutableArray<std::uint8_t> scored) {
        const SeparatorRules r = rules_view(rules);
        nb::gil_scoped_release release;
        const SpanRows all = rows_view(rows);
        const std::size_t n = all.ends.size();
        require(context.size() == n && begins.size() == n && lengths.size() == n && scored.size() == n, "output");
        require(place_separators(all, r, view(context), view(begins), view(lengths), view(scored)) < 0, "a span outside the data");
    });
}
