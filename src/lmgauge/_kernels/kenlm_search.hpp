// Lookups in the two structures of KenLM's files: from n-grams of one order to those with one more word before them.
//
// Both searches have the same form, so that whole blocks of them can be in flight: `unigram` and `extend` begin, with the
// place to look at prefetched; `advance` looks at it, and says whether it has to be asked again after more has come from memory.
#pragma once

#include "kenlm.hpp"

namespace lmgauge {

enum class Look : std::uint8_t { found, missing, again };

// An n-gram that was looked up.
struct KenlmValue {
    float probability = 0, backoff = -0.0f;    // log10
    bool ends_longer = false;                  // whether a longer n-gram ends with it
};
// Whether a longer n-gram may begin with it, or a context of it costs something.
inline bool begins_longer(float backoff) { return as_bits(backoff) != 0x80000000u; }

class ProbingSearch {
  public:
    using Node = std::uint64_t;    // the hash over its words from the last one
    struct Pending {
        Node key;
        std::uint64_t bucket;
        std::uint32_t position;
    };
    explicit ProbingSearch(const KenlmFile& file)
        : file_(file), unigrams_(file.at(file.layout.unigrams)), order_(file.order()) {}

    void prefetch_unigram(std::uint32_t word) const { prefetch(unigrams_ + std::uint64_t{8} * word); }
    KenlmValue unigram(std::uint32_t word, Node& node) const {
        node = word;
        return value(unigrams_ + std::uint64_t{8} * word, true);
    }
    bool extend(unsigned order, Node node, std::uint32_t word, std::uint32_t position, Pending& out) const {
        const KenlmLevel& level = file_.layout.levels[order - 2];
        const std::uint64_t key = combine_kenlm(node, word);
        out = Pending{key, modulo(key, level.buckets, level.inverse), position};
        prefetch(file_.at(level.at) + out.bucket * size(order));
        return true;
    }
    Look advance(unsigned order, Pending& pending, KenlmValue& found, Node& node) const {
        const KenlmLevel& level = file_.layout.levels[order - 2];
        const std::uint8_t* const table = file_.at(level.at);
        for (std::uint64_t step = 0; step < level.buckets; ++step) {
            const std::uint8_t* const entry = table + pending.bucket * size(order);
            const auto key = load_as<std::uint64_t>(entry);
            if (key == pending.key) {
                found = value(entry + 8, order < order_);
                node = key;
                return Look::found;
            }
            if (key == 0) return Look::missing;
            pending.bucket = pending.bucket + 1 == level.buckets ? 0 : pending.bucket + 1;
        }
        return Look::missing;
    }

  private:
    std::uint64_t size(unsigned order) const { return order < order_ ? 16 : 12; }
    static KenlmValue value(const std::uint8_t* at, bool has_backoff) {
        const auto bits = load_as<std::uint32_t>(at);
        return {as_float(bits | 0x80000000u), has_backoff ? load_as<float>(at + 4) : -0.0f, (bits >> 31) == 0};
    }
    const KenlmFile& file_;
    const std::uint8_t* unigrams_;
    unsigned order_;
};

template <bool kQuantized, bool kArray>
class TrieSearch {
  public:
    struct Node {    // its extensions to the left are entries [begin, end) of the next order
        std::uint64_t begin, end;
    };
    // The word is in [low, high) if at all, where words are from `least` to `most`.
    struct Pending {
        std::uint64_t low, high, pivot;
        std::uint32_t least, most, word, position;
        std::uint32_t steps;
    };
    explicit TrieSearch(const KenlmFile& file)
        : file_(file), unigrams_(file.at(file.layout.unigrams)), order_(file.order()),
          words_(static_cast<std::uint32_t>(file.layout.shape.counts[0])), backoff_bits_(file.layout.shape.backoff_bits),
          probability_bits_(file.layout.shape.probability_bits) {}

    void prefetch_unigram(std::uint32_t word) const { prefetch(unigrams_ + std::uint64_t{16} * word); }
    KenlmValue unigram(std::uint32_t word, Node& node) const {
        const std::uint8_t* const at = unigrams_ + std::uint64_t{16} * word;
        node = clamped(2, load_as<std::uint64_t>(at + 8), load_as<std::uint64_t>(at + 24));
        return {load_as<float>(at), load_as<float>(at + 4), node.begin < node.end};
    }
    bool extend(unsigned order, Node node, std::uint32_t word, std::uint32_t position, Pending& out) const {
        if (node.begin >= node.end) return false;
        const KenlmLevel& level = file_.layout.levels[order - 2];
        out = Pending{node.begin, node.end, 0, 0, words_, word, position, 0};
        aim(level, out);
        return true;
    }
    Look advance(unsigned order, Pending& p, KenlmValue& found, Node& node) const {
        const KenlmLevel& level = file_.layout.levels[order - 2];
        const std::uint8_t* const base = file_.at(level.at);
        for (;;) {
            const auto there = static_cast<std::uint32_t>(load_bits(base, p.pivot * level.bits(), level.word_bits));
            if (there == p.word) {
                found = entry(level, order, p.pivot, node);
                return Look::found;
            }
            if (there < p.word) {
                p.low = p.pivot + 1;
                p.least = there + 1;
            } else {
                p.high = p.pivot;
                p.most = there - 1;
            }
            if (p.low >= p.high) return Look::missing;
            const std::uint64_t before = p.pivot;
            const bool near = aim(level, p, before);
            if (!near) return Look::again;
        }
    }
    // An entry of an order, for listing.
    KenlmValue entry(unsigned order, std::uint64_t index, Node& node) const {
        return entry(file_.layout.levels[order - 2], order, index, node);
    }
    std::uint32_t word(unsigned order, std::uint64_t index) const {
        const KenlmLevel& level = file_.layout.levels[order - 2];
        return static_cast<std::uint32_t>(load_bits(file_.at(level.at), index * level.bits(), level.word_bits));
    }

  private:
    static constexpr std::uint32_t kGuesses = 12;      // by position among the words; then halves, whatever is there
    static constexpr std::uint64_t kNearBits = 512;    // as far as this, it is probably in a line that is there already

    // Choose where to look next, and fetch it. Returns whether that is near to where we looked before.
    bool aim(const KenlmLevel& level, Pending& p, std::uint64_t before = ~std::uint64_t{0}) const {
        const std::uint64_t width = p.high - p.low;
        std::uint64_t step = width / 2;
        if (p.steps < kGuesses) {
            const double share = static_cast<double>(p.word - p.least) / (static_cast<double>(p.most - p.least) + 1.0);
            // In a file whose words are not sorted the share may be anything.
            step = share < 1.0 ? std::min(width - 1, static_cast<std::uint64_t>(share * static_cast<double>(width))) : width - 1;
        }
        ++p.steps;
        p.pivot = p.low + step;
        const std::uint64_t distance = p.pivot > before ? p.pivot - before : before - p.pivot;
        if (before != ~std::uint64_t{0} && distance * level.bits() < kNearBits) return true;
        const std::uint8_t* const at = file_.at(level.at) + (p.pivot * level.bits() >> 3);
        prefetch(at);
        prefetch(at + 24);    // the next entry may begin in the next line
        return false;
    }
    Node clamped(unsigned order, std::uint64_t begin, std::uint64_t end) const {
        const std::uint64_t entries = file_.layout.levels[order - 2].entries;
        end = std::min(end, entries);
        return {std::min(begin, end), end};
    }
    KenlmValue entry(const KenlmLevel& level, unsigned order, std::uint64_t index, Node& node) const {
        const std::uint8_t* const base = file_.at(level.at);
        const std::uint64_t at = index * level.bits() + level.word_bits;
        KenlmValue value;
        const bool longest = order == order_;
        if constexpr (kQuantized) {
            const std::uint64_t code = load_bits(base, at, level.value_bits);
            const std::uint64_t probability = longest ? code : code >> backoff_bits_;
            value.probability = load_as<float>(file_.at(level.probabilities_at) + 4 * probability);
            if (!longest) {
                const std::uint64_t backoff = code & ((std::uint64_t{1} << backoff_bits_) - 1);
                value.backoff = load_as<float>(file_.at(level.backoffs_at) + 4 * backoff);
            }
        } else {
            value.probability = as_float(static_cast<std::uint32_t>(load_bits(base, at, 31)) | 0x80000000u);
            if (!longest) value.backoff = as_float(static_cast<std::uint32_t>(load_bits(base, at + 31, 32)));
        }
        if (longest) return value;
        const std::uint64_t pointer = at + level.value_bits;
        std::uint64_t begin = load_bits(base, pointer, level.next_bits);
        std::uint64_t end = load_bits(base, pointer + level.bits(), level.next_bits);
        if constexpr (kArray) {
            const std::uint64_t upper = upper_half(level, index);
            begin |= upper << level.next_bits;
            end |= next_upper_half(level, index + 1, upper) << level.next_bits;
        }
        node = clamped(order + 1, begin, end);
        value.ends_longer = node.begin < node.end;
        return value;
    }
    std::uint64_t offset(const KenlmLevel& level, std::uint64_t i) const {
        return load_as<std::uint64_t>(file_.at(level.offsets_at) + 8 * i);
    }
    // The last offset that is not above the index says the upper half of its pointer.
    std::uint64_t upper_half(const KenlmLevel& level, std::uint64_t index) const {
        std::uint64_t low = 0, high = level.offsets;
        while (low < high) {
            const std::uint64_t middle = low + (high - low) / 2;
            if (offset(level, middle) > index) high = middle;
            else low = middle + 1;
        }
        return low == 0 ? 0 : low - 1;
    }
    std::uint64_t next_upper_half(const KenlmLevel& level, std::uint64_t index, std::uint64_t from) const {
        while (from + 1 < level.offsets && offset(level, from + 1) <= index) ++from;
        return from;
    }
    const KenlmFile& file_;
    const std::uint8_t* unigrams_;
    unsigned order_;
    std::uint32_t words_;
    unsigned backoff_bits_, probability_bits_;
};

// Calls `use` with the search that a file needs.
template <class Use>
auto with_search(const KenlmFile& file, Use use) {
    switch (file.layout.shape.kind) {
        case KenlmKind::trie: return use(TrieSearch<false, false>(file));
        case KenlmKind::quantized: return use(TrieSearch<true, false>(file));
        case KenlmKind::array: return use(TrieSearch<false, true>(file));
        case KenlmKind::quantized_array: return use(TrieSearch<true, true>(file));
        case KenlmKind::probing: break;
    }
    return use(ProbingSearch(file));
}

}  // namespace lmgauge
