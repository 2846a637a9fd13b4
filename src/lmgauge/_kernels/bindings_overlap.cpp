// Python's face of overlap.cpp.
#include "bindings.hpp"

namespace lmgauge {

// Shapes only: what the arrays hold is checked where it is used, as a text is followed in many calls.
inline void check(const SuffixView& text) {
    const std::size_t n = text.ids.size();
    std::size_t minima = 0;
    for (std::size_t size = n; size > 64; minima += size) size = (size + 63) / 64;
    require(n < kNone / 2 && text.minima.size() == minima, "suffixes");
    check_same_size(text.ids, text.suffixes, text.ranks, text.common);
}
template <>
struct From<SuffixView> : FromFields<SuffixView, Ids, View<std::int32_t>, View<std::int32_t>, View<std::int32_t>, View<std::int32_t>> {};

inline void check_length(std::size_t n) { require(n > 0 && n < std::size_t{1} << 20, "n-grams of 1 to 2^20 tokens"); }
inline void check(const WindowIndex& index) {
    check_length(index.n);
    require(std::has_single_bit(index.slots.size()) && std::has_single_bit(index.filter.size()), "index");
}
template <>
struct From<WindowIndex> : FromFields<WindowIndex, std::size_t, View<std::uint64_t>, View<std::uint64_t>> {};

namespace {

// Where following a text stands, between two calls.
class State {
  public:
    State(MutableView<std::int64_t> array, const SuffixView& text) : array_(array) {
        require(array.size() == sizeof(FollowState) / 8, "state");
        std::memcpy(static_cast<void*>(&values), array.data(), sizeof values);
        for (const std::int64_t value : array) require(0 <= value && value < std::int64_t{1} << 60, "state");
        const auto place = static_cast<std::size_t>(values.place), n = text.ids.size();
        // A run that stands in the test.
        require(values.length == 0 || (place < n && static_cast<std::size_t>(text.suffixes[place]) <= n &&
                                       static_cast<std::size_t>(values.length) <= n - static_cast<std::size_t>(text.suffixes[place])), "state");
    }
    std::vector<std::int64_t> stored(std::vector<std::int64_t>&& runs) const {
        std::memcpy(array_.data(), &values, sizeof values);
        return std::move(runs);
    }
    FollowState values;

  private:
    MutableView<std::int64_t> array_;
};

using Numbers = MutableView<std::int32_t>;

}  // namespace

void bind_overlap(nb::module_& m) {
    def(m, "sort_suffixes", sort_suffixes, [](Ids ids, std::uint32_t) { require(ids.size() < kNone / 2, "too many tokens"); });
    def(m, "common_prefixes", common_prefixes, [](const auto& ids, const auto&... others) { check_same_size(ids, others...); });
    def(m, "common_minima", common_minima);
    def(m, "index_windows", index_windows, [](const SuffixView& text, std::size_t n, std::uint32_t, const auto& slots, const auto& filter) {
        check_length(n);
        require(std::has_single_bit(slots.size()) && slots.size() > text.ids.size() && std::has_single_bit(filter.size()), "index");
    });
    def(m, "follow_text", [](const SuffixView& text, const WindowIndex& index, Ids ids, std::size_t skip, Numbers longest,
                             MutableView<std::int64_t> kept) {
        State state(kept, text);
        require(skip <= ids.size() && (skip + 1 >= index.n || state.values.since_break <= static_cast<std::int64_t>(skip)), "skip");
        check_same_size(text.ids, longest);
        return state.stored(follow_text(text, index, ids, skip, {longest, static_cast<std::int32_t>(index.n)}, state.values));
    });
    def(m, "finish_following", [](const SuffixView& text, const WindowIndex& index, Numbers longest, MutableView<std::int64_t> kept) {
        State state(kept, text);
        check_same_size(text.ids, longest);
        return state.stored(finish_following(text, index, {longest, static_cast<std::int32_t>(index.n)}, state.values));
    });
    def(m, "spread_runs", [](const SuffixView& text, std::int32_t shortest, Numbers longest, Numbers origin) {
        check_same_size(text.ids, longest, origin);
        spread_runs(text, {longest, shortest}, origin);
    });
    def(m, "hash_segments", hash_segments, [](Bytes8 data, Places starts, Places ends, const auto& hashes) {
        check_spans(starts, ends, data.size(), "segments outside their data");
        check_same_size(starts, hashes);
    });
    def(m, "number_ngrams", number_ngrams, [](Ids ids, Ids shorter, const auto& keys, const auto& numbers) {
        check_same_size(ids, shorter, numbers);
        require(keys.size() > ids.size() && keys.size() < kNone, "shapes");
    });
    def(m, "mark_ngrams", mark_ngrams, [](Ids, const auto& keys, const auto& seen) {
        check_same_size(keys, seen);
        for (std::size_t k = 0; k < keys.size(); ++k) {
            require(!keys[k].empty() && keys[k].size() < kNone && keys[k].size() == seen[k].size(), "shapes");
        }
    });
}

}  // namespace lmgauge
