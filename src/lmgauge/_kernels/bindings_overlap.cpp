#include "bindings.hpp"

namespace {

using Suffixes = std::tuple<Array<std::uint32_t>, Array<std::int32_t>, Array<std::int32_t>, Array<std::int32_t>, Array<std::int32_t>>;
using Index = std::tuple<std::size_t, Array<std::uint64_t>, Array<std::uint64_t>>;

// Shapes only: what the arrays hold is checked where it is used, as a text is followed in many calls.
SuffixView suffix_view(const Suffixes& s) {
    const SuffixView text{view(std::get<0>(s)), view(std::get<1>(s)), view(std::get<2>(s)), view(std::get<3>(s)), view(std::get<4>(s))};
    const std::size_t n = text.ids.size();
    std::size_t minima = 0;
    for (std::size_t size = n; size > 64; minima += size) size = (size + 63) / 64;
    require(n < kNone / 2 && text.suffixes.size() == n && text.ranks.size() == n && text.common.size() == n &&
                text.minima.size() == minima, "suffixes");
    return text;
}

void check_length(std::size_t n) { require(n > 0 && n < std::size_t{1} << 20, "n-grams of 1 to 2^20 tokens"); }

WindowIndex index_view(const Index& index) {
    const WindowIndex w{std::get<0>(index), view(std::get<1>(index)), view(std::get<2>(index))};
    check_length(w.n);
    require(std::has_single_bit(w.slots.size()) && std::has_single_bit(w.filter.size()), "index");
    return w;
}

struct State {
    explicit State(MutableArray<std::int64_t>& array) : kept(array) {
        require(array.size() == sizeof(FollowState) / 8, "state");
        std::memcpy(static_cast<void*>(&values), array.data(), sizeof values);
        const auto is_number = [](std::int64_t value) { return 0 <= value && value < std::int64_t{1} << 60; };
        require(is_number(values.position) && is_number(values.since_break) && is_number(values.length) && is_number(values.place), "state");
    }
    // A run that stands in the test.
    void check(const SuffixView& text) const {
        if (values.length == 0) return;
        const auto place = static_cast<std::size_t>(values.place), n = text.ids.size();
        require(place < n && static_cast<std::size_t>(text.suffixes[place]) <= n &&
                    static_cast<std::size_t>(values.length) <= n - static_cast<std::size_t>(text.suffixes[place]), "state");
    }
    void store() { std::memcpy(kept.data(), &values, sizeof values); }
    FollowState values;
    MutableArray<std::int64_t>& kept;
};

}  // namespace

void bind_overlap(nb::module_& m) {
    def(m, "sort_suffixes", [](Array<std::uint32_t> ids, std::uint32_t symbols) {
        require(ids.size() < kNone / 2, "too many tokens");
        std::vector<std::int32_t> suffixes;
        {
            nb::gil_scoped_release release;
            suffixes = sort_suffixes(view(ids), symbols);
        }
        return to_numpy(std::move(suffixes));
    });
    def(m, "common_prefixes", [](Array<std::uint32_t> ids, Array<std::int32_t> suffixes, Array<std::int32_t> ranks,
                                MutableArray<std::int32_t> common) {
        require(suffixes.size() == ids.size() && ranks.size() == ids.size() && common.size() == ids.size(), "shapes");
        nb::gil_scoped_release release;
        common_prefixes(view(ids), view(suffixes), view(ranks), view(common));
    });
    def(m, "common_minima", [](Array<std::int32_t> common) { return to_numpy(common_minima(view(common))); });
    def(m, "index_windows", [](const Suffixes& suffixes, std::size_t n, std::uint32_t separator, MutableArray<std::uint64_t> slots,
                              MutableArray<std::uint64_t> filter) {
        check_length(n);
        require(std::has_single_bit(slots.size()) && slots.size() > std::get<0>(suffixes).size() &&
                    std::has_single_bit(filter.size()), "index");
        nb::gil_scoped_release release;
        index_windows(suffix_view(suffixes), n, separator, view(slots), view(filter));
    });
    def(m, "follow_text", [](const Suffixes& suffixes, const Index& index, Array<std::uint32_t> ids, std::size_t skip,
                            MutableArray<std::int32_t> longest, MutableArray<std::int64_t> state) {
        State s(state);
        require(skip <= ids.size() && longest.size() == std::get<0>(suffixes).size(), "shapes");
        std::vector<std::int64_t> found;
        {
            nb::gil_scoped_release release;
            const WindowIndex windows = index_view(index);
            require(skip + 1 >= windows.n || s.values.since_break <= static_cast<std::int64_t>(skip), "skip");
            const SuffixView text = suffix_view(suffixes);
            s.check(text);
            found = follow_text(text, windows, view(ids), skip,
                                Runs{view(longest), static_cast<std::int32_t>(windows.n)}, s.values);
        }
        s.store();
        return to_numpy(std::move(found));
    });
    def(m, "finish_following", [](const Suffixes& suffixes, const Index& index, MutableArray<std::int32_t> longest,
                                 MutableArray<std::int64_t> state) {
        State s(state);
        require(longest.size() == std::get<0>(suffixes).size(), "shapes");
        const WindowIndex windows = index_view(index);
        const SuffixView text = suffix_view(suffixes);
        s.check(text);
        auto found = finish_following(text, windows, Runs{view(longest), static_cast<std::int32_t>(windows.n)}, s.values);
        s.store();
        return to_numpy(std::move(found));
    });
    def(m, "spread_runs", [](const Suffixes& suffixes, std::int32_t shortest, MutableArray<std::int32_t> longest,
                            MutableArray<std::int32_t> origin) {
        require(longest.size() == std::get<0>(suffixes).size() && origin.size() == longest.size(), "shapes");
        nb::gil_scoped_release release;
        spread_runs(suffix_view(suffixes), Runs{view(longest), shortest}, view(origin));
    });
    def(m, "count_shingles", [](const Suffixes& suffixes, const Index& index, Array<std::uint32_t> ids, std::uint32_t end_of_segment,
                               MutableArray<std::int32_t> known, MutableArray<std::int32_t> unknown, Array<std::uint8_t> only,
                               MutableArray<std::uint8_t> met) {
        const auto fits = [&](std::size_t size) { return size == 0 || size == std::get<0>(suffixes).size(); };
        require(known.size() == unknown.size() && fits(only.size()) && fits(met.size()), "shapes");
        nb::gil_scoped_release release;
        count_shingles(suffix_view(suffixes), index_view(index), view(ids), end_of_segment, view(known), view(unknown), view(only), view(met));
    });
    def(m, "hash_segments", [](Array<std::uint8_t> data, Array<std::int64_t> starts, Array<std::int64_t> ends,
                              MutableArray<std::uint64_t> hashes) {
        require(starts.size() == ends.size() && hashes.size() == starts.size(), "shapes");
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < starts.size(); ++i) {
            require(0 <= starts.data()[i] && starts.data()[i] <= ends.data()[i] &&
                        ends.data()[i] <= static_cast<std::int64_t>(data.size()), "segments outside their data");
        }
        hash_segments(view(data), view(starts), view(ends), view(hashes));
    });
    def(m, "number_ngrams", [](Array<std::uint32_t> ids, Array<std::uint32_t> shorter, MutableArray<std::uint64_t> keys,
                              MutableArray<std::uint32_t> numbers) {
        require(shorter.size() == ids.size() && numbers.size() == ids.size() && keys.size() > ids.size() && keys.size() < kNone, "shapes");
        nb::gil_scoped_release release;
        number_ngrams(view(ids), view(shorter), view(keys), view(numbers));
    });
    def(m, "mark_ngrams", [](Array<std::uint32_t> ids, const std::vector<Array<std::uint64_t>>& keys,
                            const std::vector<MutableArray<std::uint8_t>>& seen) {
        require(keys.size() == seen.size(), "levels");
        std::vector<View<std::uint64_t>> tables;
        std::vector<MutableView<std::uint8_t>> flags;
        for (std::size_t k = 0; k < keys.size(); ++k) {
            require(keys[k].size() > 0 && keys[k].size() < kNone && keys[k].size() == seen[k].size(), "shapes");
            tables.push_back(view(keys[k]));
            flags.push_back(view(seen[k]));
        }
        nb::gil_scoped_release release;
        mark_ngrams(view(ids), tables, flags);
    });
}
