// Test text inside training text. The test's tokens stand in a suffix array, so that every run of tokens it has in common
// with the training text is found, exactly and in time linear in the training text (times a logarithm), however often
// either repeats itself. A training text is a stream of ids of the test's vocabulary, 0 for anything else.
#include <algorithm>

#include "kernels.hpp"

namespace lmgauge {
namespace {

using Indices = std::vector<std::int32_t>;
constexpr std::size_t kFan = 64;   // entries under one of the level above, in the minima over the common prefixes
constexpr std::size_t kTile = 64;  // windows hashed, and their places in the filter fetched, before any is looked up
constexpr std::uint32_t kBreak = 0;
constexpr const char* kUnsound = "a suffix array that contradicts itself";
constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15ull;

// ---- suffixes

// Places for each symbol's suffixes: those larger than the suffix that follows them (L) come first, then the smaller (S).
struct Buckets {
    Indices large, small;  // where either begins; `large` has one entry more, the end of the last
};

template <class Symbol>
Buckets count_buckets(View<Symbol> text, const std::vector<bool>& is_small, std::size_t symbols) {
    Buckets b{Indices(symbols + 1, 0), Indices(symbols, 0)};
    Indices large(symbols, 0), small(symbols, 0);
    for (std::size_t i = 0; i < text.size(); ++i) ++(is_small[i] ? small : large)[static_cast<std::size_t>(text[i])];
    std::int32_t next = 0;
    for (std::size_t c = 0; c < symbols; ++c) {
        b.large[c] = next;
        b.small[c] = next += large[c];
        next += small[c];
    }
    b.large[symbols] = next;
    return b;
}

// Sorts all suffixes, given the leftmost S suffixes (LMS) in order: L from left to right, S from right to left.
template <class Symbol>
void induce(View<Symbol> text, const std::vector<bool>& is_small, const Buckets& buckets, const Indices& lms, Indices& order) {
    const auto at = [&](std::int32_t i) { return static_cast<std::size_t>(text[static_cast<std::size_t>(i)]); };
    std::fill(order.begin(), order.end(), -1);
    Indices next = buckets.small;
    for (const std::int32_t i : lms) order[static_cast<std::size_t>(next[at(i)]++)] = i;
    next = buckets.large;
    const auto last = static_cast<std::int32_t>(text.size()) - 1;
    order[static_cast<std::size_t>(next[at(last)]++)] = last;
    for (std::size_t k = 0; k < order.size(); ++k) {
        const std::int32_t i = order[k] - 1;
        if (i >= 0 && !is_small[static_cast<std::size_t>(i)]) order[static_cast<std::size_t>(next[at(i)]++)] = i;
    }
    next = buckets.large;
    for (std::size_t k = order.size(); k-- > 0;) {
        const std::int32_t i = order[k] - 1;
        if (i >= 0 && is_small[static_cast<std::size_t>(i)]) order[static_cast<std::size_t>(--next[at(i) + 1])] = i;
    }
}

// SA-IS: Nong, Zhang & Chan (2009), "Linear suffix array construction by almost pure induced-sorting". Symbols are below
// `symbols`.
template <class Symbol>
Indices suffix_array(View<Symbol> text, std::size_t symbols) {
    const std::size_t n = text.size();
    if (n < 2) return Indices(n, 0);
    std::vector<bool> is_small(n, false);
    for (std::size_t i = n - 1; i-- > 0;) is_small[i] = text[i] == text[i + 1] ? is_small[i + 1] : text[i] < text[i + 1];
    Indices lms, number(n, -1);
    for (std::size_t i = 1; i < n; ++i) {
        if (is_small[i] && !is_small[i - 1]) {
            number[i] = static_cast<std::int32_t>(lms.size());
            lms.push_back(static_cast<std::int32_t>(i));
        }
    }
    const Buckets buckets = count_buckets(text, is_small, symbols);
    Indices order(n);
    induce(text, is_small, buckets, lms, order);
    if (lms.empty()) return order;

    // The LMS stretches are sorted now; equal ones get equal names, and the names' suffix array sorts the LMS suffixes.
    const auto stretch_end = [&](std::int32_t i) {
        const auto k = static_cast<std::size_t>(number[static_cast<std::size_t>(i)]) + 1;
        return k < lms.size() ? static_cast<std::size_t>(lms[k]) : n;
    };
    std::vector<std::uint32_t> names(lms.size());
    std::uint32_t name = 0;
    std::int32_t previous = -1;
    for (const std::int32_t i : order) {
        if (number[static_cast<std::size_t>(i)] < 0) continue;
        if (previous >= 0) {
            auto a = static_cast<std::size_t>(previous), b = static_cast<std::size_t>(i);
            const std::size_t end_a = stretch_end(previous), end_b = stretch_end(i);
            bool same = end_a - a == end_b - b;
            for (; same && a < end_a; ++a, ++b) same = text[a] == text[b];
            if (!(same && end_a < n && end_b < n && text[end_a] == text[end_b])) ++name;
        }
        names[static_cast<std::size_t>(number[static_cast<std::size_t>(i)])] = name;
        previous = i;
    }
    Indices sorted = suffix_array(View<std::uint32_t>(names), name + 1);
    for (std::int32_t& i : sorted) i = lms[static_cast<std::size_t>(i)];
    induce(text, is_small, buckets, sorted, order);
    return order;
}

// Entries of the level above one of `size` entries.
std::size_t level_above(std::size_t size) { return (size + kFan - 1) / kFan; }

// The minima over 64, 64^2, ... entries of the common prefixes, one level after another.
class Minima {
  public:
    explicit Minima(const SuffixView& text) {
        const std::int32_t* p = text.minima.data();
        levels_.push_back({text.common.data(), text.common.size()});
        while (levels_.back().size() > kFan) {
            const std::size_t size = level_above(levels_.back().size());
            levels_.push_back({p, size});
            p += size;
        }
    }

    // The last entry at or before i that is below `length` (the first entry, 0, always is).
    std::size_t last_below(std::size_t i, std::int32_t length) const {
        std::size_t level = 0;
        for (;; ++level, i = i / kFan - 1) {
            const std::size_t first = i / kFan * kFan;
            std::size_t k = i + 1;
            while (k > first && levels_[level][k - 1] >= length) --k;
            if (k > first) {
                i = k - 1;
                break;
            }
            require(first > 0 && level + 1 < levels_.size(), kUnsound);
        }
        for (; level > 0; --level) {
            i = i * kFan + kFan - 1;
            i = std::min(i, levels_[level - 1].size() - 1);
            while (levels_[level - 1][i] >= length) require(i-- > 0, kUnsound);
        }
        return i;
    }

    // The first entry at or behind i that is below `length`, or one past the last.
    std::size_t first_below(std::size_t i, std::int32_t length) const {
        std::size_t level = 0;
        for (;; ++level, i = i / kFan) {
            const std::size_t size = levels_[level].size();
            const std::size_t end = std::min(size, i / kFan * kFan + kFan);
            while (i < end && levels_[level][i] >= length) ++i;
            if (i < end) break;
            if (end == size) return levels_[0].size();
            require(level + 1 < levels_.size(), kUnsound);
        }
        for (; level > 0; --level) {
            i *= kFan;
            while (levels_[level - 1][i] >= length) require(++i < levels_[level - 1].size(), kUnsound);
        }
        return i;
    }

  private:
    std::vector<View<std::int32_t>> levels_;
};

// ---- windows

inline std::uint64_t spread(std::uint32_t id) { return mix(id + 0x632BE59Bull); }

// The hash of the last n ids: a polynomial, so that a window follows from the one before it.
class RollingHash {
  public:
    explicit RollingHash(std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) leaving_ *= kBase;
    }
    void push(std::uint32_t entering) { value_ = value_ * kBase + spread(entering); }
    void push(std::uint32_t entering, std::uint32_t leaving) {
        value_ = value_ * kBase + spread(entering) - leaving_ * spread(leaving);
    }
    std::uint64_t hash() const { return mix(value_); }

  private:
    std::uint64_t value_ = 0, leaving_ = 1;
};

class Windows {
  public:
    Windows(const SuffixView& text, const WindowIndex& index) : text_(text), index_(index) {}

    bool may_hold(std::uint64_t hash) const { return (filter_word(hash) >> (hash >> 58) & 1) != 0; }
    const std::uint64_t* filter_place(std::uint64_t hash) const { return &index_.filter[(hash >> 8) & (index_.filter.size() - 1)]; }

    // The place in the suffix array of the first suffix that begins with these n ids, or -1.
    std::int32_t find(std::uint64_t hash, const std::uint32_t* window) const {
        const std::size_t mask = index_.slots.size() - 1, first = hash & mask;
        for (std::size_t slot = first;; slot = next_slot(slot, mask, first)) {
            const std::uint64_t seen = index_.slots[slot];
            if (seen == 0) return -1;
            if (seen >> 32 != hash >> 32) continue;
            const std::size_t place = (seen & kNone) - 1, size = text_.ids.size();
            require(place < size, kUnsound);
            const auto begin = static_cast<std::size_t>(text_.suffixes[place]);
            require(begin < size && index_.n <= size - begin, kUnsound);
            if (std::equal(window, window + index_.n, text_.ids.data() + begin)) return static_cast<std::int32_t>(place);
        }
    }

  private:
    std::uint64_t filter_word(std::uint64_t hash) const { return *filter_place(hash); }

    const SuffixView& text_;
    const WindowIndex& index_;
};

// ---- common runs

// Follows the training text token by token and knows the longest suffix of it (of at least n tokens) that is in the test,
// and where: so every pair (training position, length of the longest run that begins there) is met when the run ends.
class Follower {
  public:
    Follower(const SuffixView& text, const WindowIndex& index, const Runs& runs, FollowState& state, std::vector<std::int64_t>& found)
        : text_(text), minima_(text), windows_(text, index), n_(static_cast<std::int32_t>(index.n)), runs_(runs), state_(state),
          found_(found) {}

    // The next token: `window` are the n ids that end with it, `hash` theirs.
    void step(std::uint32_t id, std::uint64_t hash, const std::uint32_t* window) {
        ++state_.position;
        if (id == kBreak) {
            close();
            state_.since_break = 0;
            return;
        }
        ++state_.since_break;
        if (state_.length > 0 && extend(id)) return;
        close_run();
        const std::int32_t place = state_.since_break >= n_ && windows_.may_hold(hash) ? windows_.find(hash, window) : -1;
        if (place < 0) {
            state_.length = 0;
            return;
        }
        // Some later beginning goes on: shorten from the left until one does. At the latest it is the window itself.
        while (--state_.length >= n_) {
            state_.place = rank(static_cast<std::size_t>(suffix(state_.place)) + 1);
            if (extend(id)) return;
        }
        state_.place = place;
        state_.length = n_;
    }

    void close() {
        close_run();
        state_.length = 0;
    }

  private:
    std::int32_t suffix(std::int64_t place) const { return text_.suffixes[static_cast<std::size_t>(place)]; }
    std::int32_t rank(std::size_t test) const {
        require(test < text_.ranks.size() && static_cast<std::size_t>(text_.ranks[test]) < text_.ids.size(), kUnsound);
        return text_.ranks[test];
    }

    // The id `length` tokens into a suffix; past the end one that no training token has.
    std::uint32_t id_at(std::size_t place, std::int64_t length) const {
        const std::size_t i = static_cast<std::size_t>(text_.suffixes[place]) + static_cast<std::size_t>(length);
        return i < text_.ids.size() ? text_.ids[i] : kBreak;
    }

    bool extend(std::uint32_t id) {
        const auto here = static_cast<std::size_t>(state_.place);
        if (id_at(here, state_.length) == id) {
            ++state_.length;
            return true;
        }
        // Another suffix with the same beginning may go on with this id: they stand together, sorted by what comes next.
        const auto length = static_cast<std::int32_t>(state_.length);
        std::size_t low = minima_.last_below(here, length), high = minima_.first_below(here + 1, length);
        const std::size_t end = high;
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            if (id_at(middle, length) < id) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (low == end || id_at(low, length) != id) return false;
        state_.place = static_cast<std::int64_t>(low);
        ++state_.length;
        return true;
    }

    bool repeated(std::size_t test) const {
        const auto place = static_cast<std::size_t>(rank(test));
        return text_.common[place] >= n_ || (place + 1 < text_.common.size() && text_.common[place + 1] >= n_);
    }

    // Keeps the run that has just ended, where it is the longest so far. From inside it only beginnings that the test has
    // elsewhere too are kept: the others follow from the position before them.
    void close_run() {
        const std::int64_t length = state_.length;
        if (length < n_) return;
        const auto test = static_cast<std::size_t>(suffix(state_.place));
        require(test < text_.ids.size() && static_cast<std::size_t>(length) <= text_.ids.size() - test, kUnsound);
        if (runs_.longest[test] >= length) return;
        const std::int64_t begin = state_.position - 1 - length;  // of the run in the training text
        for (std::int64_t k = 0; k <= length - n_; ++k) {
            const std::size_t p = test + static_cast<std::size_t>(k);
            if (runs_.longest[p] >= length - k || (k > 0 && !repeated(p))) continue;
            runs_.longest[p] = static_cast<std::int32_t>(length - k);
            found_.push_back(static_cast<std::int64_t>(p));
            found_.push_back(begin + k);
        }
    }

    const SuffixView& text_;
    Minima minima_;
    Windows windows_;
    std::int32_t n_;
    const Runs& runs_;
    FollowState& state_;
    std::vector<std::int64_t>& found_;
};

}  // namespace

std::vector<std::int32_t> sort_suffixes(View<std::uint32_t> ids, std::uint32_t symbols) {
    for (const std::uint32_t id : ids) require(id < symbols, "a token id outside the vocabulary");
    const std::size_t used = ids.empty() ? 0 : *std::max_element(ids.begin(), ids.end()) + std::size_t{1};
    return suffix_array(ids, used);
}

// Kasai et al. (2001), "Linear-time longest-common-prefix computation in suffix arrays".
void common_prefixes(View<std::uint32_t> ids, View<std::int32_t> suffixes, View<std::int32_t> ranks, MutableView<std::int32_t> common) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto rank = static_cast<std::size_t>(ranks[i]);
        require(rank < ids.size(), kUnsound);
        if (rank == 0) {
            common[0] = 0;
            length = 0;
            continue;
        }
        const auto other = static_cast<std::size_t>(suffixes[rank - 1]);
        require(other < ids.size(), kUnsound);
        const std::size_t room = ids.size() - std::max(i, other);
        while (length < room && ids[i + length] == ids[other + length]) ++length;
        common[rank] = static_cast<std::int32_t>(length);
        length -= length > 0;
    }
}

std::vector<std::int32_t> common_minima(View<std::int32_t> common) {
    std::vector<std::int32_t> minima;
    View<std::int32_t> below = common;
    std::size_t total = 0;
    for (std::size_t size = common.size(); size > kFan; total += size) size = level_above(size);
    minima.reserve(total);  // so that `below` stays where it is
    while (below.size() > kFan) {
        const std::size_t first = minima.size(), size = level_above(below.size());
        for (std::size_t k = 0; k < size; ++k) {
            const auto begin = below.begin() + static_cast<std::ptrdiff_t>(k * kFan);
            minima.push_back(*std::min_element(begin, begin + static_cast<std::ptrdiff_t>(std::min(kFan, below.size() - k * kFan))));
        }
        below = View<std::int32_t>(minima.data() + first, size);
    }
    return minima;
}

void index_windows(const SuffixView& text, std::size_t n, std::uint32_t separator, MutableView<std::uint64_t> slots,
                   MutableView<std::uint64_t> filter) {
    const std::size_t mask = slots.size() - 1, filter_mask = filter.size() - 1;
    struct Waiting {
        std::uint64_t hash;
        std::size_t place;
    };
    std::array<Waiting, kTile> waiting;
    std::size_t count = 0;
    const auto flush = [&] {
        for (std::size_t k = 0; k < count; ++k) {
            const auto [hash, place] = waiting[k];
            filter[(hash >> 8) & filter_mask] |= 1ull << (hash >> 58);
            const std::size_t first = hash & mask;
            std::size_t slot = first;
            while (slots[slot] != 0) slot = next_slot(slot, mask, first);
            slots[slot] = (hash & ~std::uint64_t{kNone}) | (place + 1);
        }
        count = 0;
    };
    for (std::size_t place = 0; place < text.suffixes.size(); ++place) {
        if (place + kTile < text.suffixes.size()) prefetch(address_of(text.ids, static_cast<std::size_t>(text.suffixes[place + kTile])));
        if (text.common[place] >= static_cast<std::int64_t>(n)) continue;  // the same window as the suffix before
        const auto begin = static_cast<std::size_t>(text.suffixes[place]);
        require(begin < text.ids.size(), kUnsound);
        if (n > text.ids.size() - begin) continue;
        RollingHash rolling(0);
        bool whole = true;
        for (std::size_t i = begin; i < begin + n; ++i) {
            whole = whole && text.ids[i] != separator;
            rolling.push(text.ids[i]);
        }
        if (!whole) continue;
        const std::uint64_t hash = rolling.hash();
        prefetch_for_write(&filter[(hash >> 8) & filter_mask]);
        prefetch_for_write(&slots[hash & mask]);
        waiting[count++] = Waiting{hash, place};
        if (count == kTile) flush();
    }
    flush();
}

std::vector<std::int64_t> follow_text(const SuffixView& text, const WindowIndex& index, View<std::uint32_t> ids, std::size_t skip,
                                      const Runs& runs, FollowState& state) {
    std::vector<std::int64_t> found;
    Follower follower(text, index, runs, state, found);
    const Windows windows(text, index);
    const std::size_t n = index.n;
    RollingHash rolling(n);
    for (std::size_t i = 0; i < skip; ++i) rolling.push(ids[i]);
    std::array<std::uint64_t, kTile> hashes;
    for (std::size_t first = skip; first < ids.size(); first += kTile) {
        const std::size_t count = std::min(kTile, ids.size() - first);
        for (std::size_t k = 0; k < count; ++k) {
            const std::size_t i = first + k;
            if (i >= n) {
                rolling.push(ids[i], ids[i - n]);
            } else {
                rolling.push(ids[i]);
            }
            hashes[k] = rolling.hash();
            prefetch(windows.filter_place(hashes[k]));
        }
        for (std::size_t k = 0; k < count; ++k) {
            const std::size_t i = first + k;
            follower.step(ids[i], hashes[k], ids.data() + (i + 1 >= n ? i + 1 - n : 0));
        }
    }
    return found;
}

std::vector<std::int64_t> finish_following(const SuffixView& text, const WindowIndex& index, const Runs& runs, FollowState& state) {
    std::vector<std::int64_t> found;
    ++state.position;  // as if a break followed
    Follower(text, index, runs, state, found).close();
    return found;
}

// A run at one suffix is one at its neighbours, as far as they agree: once down the suffix array, once up.
void spread_runs(const SuffixView& text, const Runs& runs, MutableView<std::int32_t> origin) {
    const std::size_t size = text.suffixes.size();
    const auto pass = [&](std::size_t from, std::size_t to, std::int32_t common) {
        const auto a = static_cast<std::size_t>(text.suffixes[from]), b = static_cast<std::size_t>(text.suffixes[to]);
        require(a < size && b < size, kUnsound);
        const std::int32_t length = std::min(runs.longest[a], common);
        if (length > runs.longest[b] && length >= runs.shortest) {
            runs.longest[b] = length;
            origin[b] = origin[a];
        }
    };
    for (std::size_t k = 1; k < size; ++k) pass(k - 1, k, text.common[k]);
    for (std::size_t k = size; k-- > 1;) pass(k, k - 1, text.common[k]);
    for (std::size_t p = 1; p < size; ++p) {
        const std::int64_t length = std::int64_t{runs.longest[p - 1]} - 1;
        if (length > runs.longest[p] && length >= runs.shortest) {
            runs.longest[p] = static_cast<std::int32_t>(length);
            origin[p] = -1;
        }
    }
}

// ---- whole duplicates

void hash_segments(View<std::uint8_t> data, View<std::int64_t> starts, View<std::int64_t> ends, MutableView<std::uint64_t> hashes) {
    for (std::size_t i = 0; i < starts.size(); ++i) {
        auto p = static_cast<std::size_t>(starts[i]);
        const auto end = static_cast<std::size_t>(ends[i]);
        std::uint64_t h = (end - p) * 0xA0761D6478BD642Full;
        for (; p < end; p += 8) {
            std::uint64_t v = 0;
            std::memcpy(&v, data.data() + p, std::min<std::size_t>(8, end - p));
            h = mix(h ^ v) + kBase;
        }
        hashes[i] = mix(h);
    }
}

// ---- n-grams of every order, level by level

namespace {

// Where the search for a key begins; tables have fewer than 2^32 slots.
inline std::size_t home(View<std::uint64_t> keys, std::uint64_t key) {
    return static_cast<std::size_t>(((mix(key) >> 32) * keys.size()) >> 32);
}

// The slot of a key, or the empty one where it belongs. The slot is the number of the n-gram.
inline std::size_t slot_of(View<std::uint64_t> keys, std::uint64_t key) {
    const std::size_t first = home(keys, key);
    std::size_t slot = first;
    while (keys[slot] != key && keys[slot] != 0) {
        slot = slot + 1 == keys.size() ? 0 : slot + 1;
        require(slot != first, "a hash table without an empty slot");
    }
    return slot;
}

}  // namespace

void number_ngrams(View<std::uint32_t> ids, View<std::uint32_t> shorter, MutableView<std::uint64_t> keys,
                   MutableView<std::uint32_t> numbers) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const std::uint32_t parent = i > 0 ? shorter[i - 1] : kNone;
        if (parent == kNone || shorter[i] == kNone) {
            numbers[i] = kNone;
            continue;
        }
        const std::uint64_t key = make_key(parent, ids[i]);
        const std::size_t slot = slot_of(keys, key);
        keys[slot] = key;
        numbers[i] = static_cast<std::uint32_t>(slot);
    }
}

void mark_ngrams(View<std::uint32_t> ids, const std::vector<View<std::uint64_t>>& keys,
                 const std::vector<MutableView<std::uint8_t>>& seen) {
    struct Waiting {
        std::uint64_t key;
        std::size_t position;
    };
    // numbers[i]: of the n-gram of the order before that ends at position i of the tile; the first entry is the one before it.
    std::array<std::uint32_t, kTile + 1> numbers;
    std::vector<std::uint32_t> carried(keys.size(), kNone);  // of each order, at the end of the tile before
    std::array<Waiting, kTile> waiting;
    for (std::size_t first = 0; first < ids.size(); first += kTile) {
        const std::size_t count = std::min(kTile, ids.size() - first);
        for (std::size_t k = 0; k < count; ++k) numbers[k + 1] = ids[first + k] > kEos ? ids[first + k] : kNone;
        for (std::size_t level = 0; level < keys.size(); ++level) {
            numbers[0] = carried[level];
            carried[level] = numbers[count];
            std::size_t alive = 0;
            for (std::size_t k = 0; k < count; ++k) {
                if (numbers[k] == kNone || ids[first + k] <= kEos) continue;
                const std::uint64_t key = make_key(numbers[k], ids[first + k]);
                prefetch(&keys[level][home(keys[level], key)]);
                waiting[alive++] = Waiting{key, k};
            }
            std::fill(numbers.begin(), numbers.end(), kNone);
            for (std::size_t j = 0; j < alive; ++j) {
                const std::size_t slot = slot_of(keys[level], waiting[j].key);
                if (keys[level][slot] == 0) continue;
                numbers[waiting[j].position + 1] = static_cast<std::uint32_t>(slot);
                set_flag(&seen[level][slot]);
            }
        }
    }
}

}  // namespace lmgauge
