// Counting n-grams level by level over the whole corpus.
//
// id_k[i] is the slot of the k-gram that ends at token i: the child of id_{k-1}[i-1] by word i. The suffix of that k-gram is
// id_{k-1}[i], known at insertion. Probes of a level do not depend on each other, so a batch of them is prefetched.
#include <algorithm>
#include <array>

#include "kernels.hpp"

namespace lmgauge {
namespace {

constexpr std::size_t kBatch = 64;

struct Probe {
    std::uint64_t key;
    std::size_t home;
    std::size_t position;
    std::size_t region_end;
};

// Finds the key, or the empty slot where it belongs, in [home, end); `end` where there is neither.
inline std::size_t seek(const Entry* entries, std::uint64_t key, std::size_t home, std::size_t end) {
    for (std::size_t slot = home; slot < end; ++slot) {
        const std::uint64_t seen = plain(entries[slot].key);
        if (seen == key || seen == 0) return slot;
    }
    return end;
}

inline std::size_t seek_around(const Entry* entries, std::uint64_t key, std::size_t home, std::size_t size) {
    const std::size_t slot = seek(entries, key, home, size);
    return slot < size ? slot : seek(entries, key, 0, home);
}

// An entry goes to `slot`: the lines it had to pass are told.
inline void mark_passed(Entry* entries, std::size_t home, std::size_t slot, std::size_t size) {
    for (std::size_t line = home; line / kLine != slot / kLine; line = line + kLine == size ? 0 : line + kLine) {
        entries[line + kLine - 1].key |= kOverflow;
    }
}

// Regions are runs of 2^shift cache lines; a table has at least `wanted` of them if it has so many lines.
struct Regions {
    std::uint64_t lines;
    int shift;

    Regions(std::uint64_t lines_, std::uint32_t wanted) : lines(lines_), shift(0) {
        while ((lines >> (shift + 1)) >= wanted) ++shift;
    }
    std::size_t count() const { return static_cast<std::size_t>((lines - 1) >> shift) + 1; }
    std::uint64_t of_slot(std::size_t slot) const { return (slot / kLine) >> shift; }
    std::size_t end_slot(std::uint64_t region) const {
        return static_cast<std::size_t>(std::min((region + 1) << shift, lines)) * kLine;
    }
};

}  // namespace

// Input: `previous[i]`, the slot of the (k-1)-gram that ends at i, or kNone. Output: `next[i]` likewise for k (unless empty:
// the last order needs none), entries with counts and suffixes. Nothing is written for tokens of other workers' regions.
CountResult count_level(View<std::uint32_t> ids, View<std::uint32_t> previous, MutableView<std::uint32_t> next,
                        MutableView<Entry> table, Share share, std::uint64_t spill_limit) {
    CountResult result;
    const std::uint64_t lines = table.size() / kLine;
    const Regions regions(lines, share.regions);
    std::vector<std::uint8_t> owned(regions.count());
    for (std::size_t r = 0; r < owned.size(); ++r) owned[r] = r % share.workers == share.worker;
    Entry* const entries = table.data();
    std::array<Probe, kBatch> batch;
    std::size_t filled = 0;

    const auto flush = [&] {
        for (std::size_t j = 0; j < filled; ++j) {
            const Probe& probe = batch[j];
            const std::size_t slot = seek(entries, probe.key, probe.home, probe.region_end);
            if (slot == probe.region_end) {
                result.spilled.push_back(regions.of_slot(probe.home));
                result.spilled.push_back(probe.position);
                continue;
            }
            Entry& entry = entries[slot];
            if (entry.key == 0) {
                mark_passed(entries, probe.home, slot, table.size());
                entry.key = probe.key;
                entry.second = previous[probe.position];
                ++result.added;
            }
            ++entry.first;
            if (!next.empty()) next[probe.position] = static_cast<std::uint32_t>(slot);
        }
        filled = 0;
    };

    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i == 0 || ids[i] == kBos || previous[i - 1] == kNone) {
            if (share.worker == 0 && !next.empty()) next[i] = kNone;
            continue;
        }
        const std::uint64_t key = make_key(previous[i - 1], ids[i]);
        const std::size_t home = home_slot(key, lines);
        const std::uint64_t region = regions.of_slot(home);
        if (!owned[region]) continue;
        prefetch_for_write(&entries[home]);
        batch[filled++] = Probe{key, home, i, regions.end_slot(region)};
        if (filled == kBatch) {
            flush();
            if (result.spilled.size() > 2 * spill_limit) return result;
        }
    }
    flush();
    return result;
}

// The tokens whose region was full, one after another, now free to go on into the next region.
std::uint64_t count_spilled(View<std::uint32_t> ids, View<std::uint32_t> previous, MutableView<std::uint32_t> next,
                            MutableView<Entry> table, View<std::uint64_t> positions) {
    std::uint64_t added = 0;
    for (const std::uint64_t position : positions) {
        const auto i = static_cast<std::size_t>(position);
        require(i > 0 && i < ids.size(), "a position outside the text");
        const std::uint64_t key = make_key(previous[i - 1], ids[i]);
        const std::size_t home = home_slot(key, table.size() / kLine);
        const std::size_t slot = seek_around(table.data(), key, home, table.size());
        Entry& entry = table[slot];
        require(entry.key == 0 || plain(entry.key) == key, "a table without room");
        if (entry.key == 0) {
            mark_passed(table.data(), home, slot, table.size());
            entry.key = key;
            entry.second = previous[i];
            ++added;
        }
        ++entry.first;
        if (!next.empty()) next[i] = static_cast<std::uint32_t>(slot);
    }
    return added;
}

// HyperLogLog registers (Flajolet et al. 2007) of the k-grams ending in [begin, end), for k = 2 .. order: a row of
// 2^index_bits per order. They size the tables once, before anything is counted.
void sketch_distinct(View<std::uint32_t> ids, std::size_t begin, std::size_t end, int order,
                     MutableView<std::uint8_t> registers, int index_bits) {
    const auto levels = static_cast<std::size_t>(order);
    std::vector<std::uint64_t> hashes(levels + 1, 0), fresh(levels + 1, 0);
    std::size_t length = 0;  // tokens of context, <s> included
    const std::size_t row = std::size_t{1} << index_bits;
    for (std::size_t i = begin > levels ? begin - levels : 0; i < end; ++i) {
        if (ids[i] == kBos) length = 0;
        length = std::min(length + 1, levels);
        fresh[1] = mix(ids[i] + 1);
        for (std::size_t k = 2; k <= length; ++k) {
            fresh[k] = mix(hashes[k - 1] + (ids[i] + 1) * 0xA0761D6478BD642Full);
            if (i >= begin) {
                const std::uint64_t h = fresh[k];
                const auto rank = static_cast<std::uint8_t>(std::countl_zero((h << index_bits) | (row >> 1)) + 1);
                std::uint8_t& held = registers[(k - 2) * row + (h >> (64 - index_bits))];
                held = std::max(held, rank);
            }
        }
        hashes.swap(fresh);
    }
}

void add_continuations(View<Entry> table, std::size_t begin, std::size_t end, MutableView<std::uint32_t> counts) {
    constexpr std::size_t kAhead = 32;
    for (std::size_t slot = begin; slot < end; ++slot) {
        if (slot + kAhead < end) {
            const Entry& coming = table[slot + kAhead];
            if (coming.key != 0) prefetch_for_write(address_of(counts, coming.second));
        }
        if (table[slot].key == 0) continue;
        require(table[slot].second < counts.size(), "a suffix outside its table");
        atomic_add(&counts[table[slot].second], 1u);
    }
}

std::vector<std::uint64_t> adjust_counts(MutableView<Entry> table, std::size_t begin, std::size_t end,
                                         View<std::uint32_t> continuations, std::uint32_t cutoff,
                                         MutableView<std::uint8_t> dropped, std::uint32_t histogram_size) {
    std::vector<std::uint64_t> histogram(histogram_size + std::size_t{1}, 0);
    for (std::size_t slot = begin; slot < end; ++slot) {
        Entry& entry = table[slot];
        if (entry.key == 0) continue;
        if (!dropped.empty()) dropped[slot] = entry.first <= cutoff;
        // Only what begins with <s> has nothing before it; such n-grams keep their counts (Kneser & Ney 1995; KenLM).
        if (!continuations.empty() && continuations[slot] != 0) entry.first = continuations[slot];
        ++histogram[std::min(entry.first, histogram_size)];
    }
    return histogram;
}

}  // namespace lmgauge
