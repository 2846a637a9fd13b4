#include "partition.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <stdexcept>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace lmgauge {
namespace {

// Empty entries, in large pages where the system has them: a search begins anywhere in a table.
Entry* empty_entries(std::size_t count) {
    void* const memory = std::calloc(count, sizeof(Entry));
    if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    constexpr std::uintptr_t kPage = 4096, kLarge = std::uintptr_t{1} << 22;
    const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(memory) + kPage - 1) & ~(kPage - 1);
    if (count * sizeof(Entry) >= kLarge) madvise(reinterpret_cast<void*>(begin), count * sizeof(Entry) - kPage, MADV_HUGEPAGE);
#endif
    return static_cast<Entry*>(memory);
}

constexpr std::size_t kBatch = 64, kBlock = 1024;
constexpr double kFilled = 0.7, kGrowth = 1.5;

inline std::uint32_t partition_of(std::uint32_t first, std::uint32_t second, std::uint64_t partitions) {
    return static_cast<std::uint32_t>(((mix(static_cast<std::uint64_t>(first) << 32 | second) >> 32) * partitions) >> 32);
}

// The length of the window that begins at each index, asked for one after another.
class Windows {
  public:
    Windows(View<std::uint32_t> ids, std::size_t order) : ids_(ids), order_(order) {}
    std::size_t length(std::size_t i) {
        next_ = std::max(next_, i + 1);
        const std::size_t end = std::min(i + order_, ids_.size());
        while (next_ < end && ids_[next_] != kBos) ++next_;
        return next_ - i;
    }

  private:
    View<std::uint32_t> ids_;
    std::size_t order_, next_ = 0;
};

// About how many of so many things one partition has: a little too many rather than too few.
std::size_t share_of(std::size_t all, std::size_t partitions) { return all / partitions + all / partitions / 16 + 64; }

std::size_t tokens_of(View<std::uint32_t> ids, std::size_t order) {
    if (ids.size() <= order) throw std::invalid_argument("a chunk shorter than what stands around it");
    return ids.size() - order - 1;
}

// The window at one token and that at the next, for all tokens of a chunk.
template <class Work>
void walk(View<std::uint32_t> ids, std::size_t order, std::size_t partitions, Work work) {
    const std::size_t tokens = tokens_of(ids, order);
    Windows windows(ids, order);
    std::size_t length = windows.length(0);
    std::uint32_t home = length >= 2 ? partition_of(ids[0], ids[1], partitions) : 0;
    for (std::size_t i = 1; i <= tokens; ++i) {
        const std::size_t next_length = windows.length(i);
        const std::uint32_t next_home = next_length >= 2 ? partition_of(ids[i], ids[i + 1], partitions) : 0;
        work(i - 1, length, home, next_length, next_home);
        length = next_length;
        home = next_home;
    }
}

template <class T>
class Cursors {
  public:
    explicit Cursors(const Streams<T>& streams) : streams_(streams), positions_(streams.size(), 0) {}
    const T* take(std::size_t partition, std::size_t n) {
        std::size_t& position = positions_[partition];
        if (position + n > streams_[partition].size()) throw std::invalid_argument("a stream that is too short for its chunk");
        position += n;
        return streams_[partition].data() + position - n;
    }
    void check_used() const {
        for (std::size_t p = 0; p < positions_.size(); ++p) {
            if (positions_[p] != streams_[p].size()) throw std::invalid_argument("a stream that is too long for its chunk");
        }
    }

  private:
    const Streams<T>& streams_;
    std::vector<std::size_t> positions_;
};

}  // namespace

PartitionCounter::PartitionCounter(std::size_t order, std::uint32_t partitions, std::uint32_t partition,
                                   const std::vector<std::uint64_t>& expected)
    : partitions_(partitions), partition_(partition), tables_(order - 1) {
    for (std::size_t k = 0; k < tables_.size(); ++k) tables_[k].reserve(static_cast<std::size_t>(expected[k]));
}

void PartitionCounter::Table::reserve(std::size_t more) {
    if (rows + more >= kNone / 2) throw std::length_error("more n-grams of one order than a partition can hold");
    const auto wanted = static_cast<std::uint64_t>(static_cast<double>(rows + more) / kFilled) + 16;
    if (wanted <= slots) return;
    const std::uint64_t size = std::max(wanted, static_cast<std::uint64_t>(static_cast<double>(slots) * kGrowth));
    std::unique_ptr<Entry[], Free> old(empty_entries(static_cast<std::size_t>(size)));
    old.swap(entries);
    const std::uint64_t old_slots = slots;
    slots = size;
    for (std::size_t i = 0; i < old_slots; ++i) {
        if (old[i].key != 0) at(old[i].key, home(old[i].key)) = old[i];
    }
}

// The entry of a key whose search begins at `slot`, or the empty one where it belongs.
Entry& PartitionCounter::Table::at(std::uint64_t key, std::size_t slot) {
    while (entries[slot].key != key && entries[slot].key != 0) slot = slot + 1 == slots ? 0 : slot + 1;
    return entries[slot];
}

void PartitionCounter::add(View<std::uint32_t> ids, bool linked, std::vector<std::uint32_t>& rows, std::vector<std::uint8_t>& fresh) {
    struct Probe {
        std::size_t start, length;
        std::uint64_t key;
        std::size_t home;
        std::uint32_t row;
        std::uint8_t fresh;
    };
    std::array<Probe, kBatch> batch;
    std::size_t filled = 0;
    const std::size_t n = order(), tokens = tokens_of(ids, n), stride = linked ? n - 2 : 0, share = linked ? share_of(tokens, partitions_) : 0;
    const auto flush = [&] {
        const std::size_t first = rows.size();
        rows.resize(first + filled * stride, kNone);
        for (std::size_t k = 2; k <= n; ++k) {
            Table& table = tables_[k - 2];
            table.reserve(filled);
            for (std::size_t j = 0; j < filled; ++j) {
                Probe& probe = batch[j];
                if (probe.length < k) continue;
                probe.key = make_key(probe.row, ids[probe.start + k - 1]);
                probe.home = table.home(probe.key);
                prefetch_for_write(&table.entries[probe.home]);
            }
            for (std::size_t j = 0; j < filled; ++j) {
                Probe& probe = batch[j];
                if (probe.length < k) continue;
                Entry& entry = table.at(probe.key, probe.home);
                if (entry.key == 0) {
                    entry.key = probe.key;
                    entry.second = static_cast<std::uint32_t>(table.rows++);
                    if (probe.fresh == kNothingNew) probe.fresh = static_cast<std::uint8_t>(k);
                }
                if (++entry.first == 0) throw std::overflow_error("an n-gram occurs 2^32 times");
                probe.row = entry.second;
                if (linked && k < n) rows[first + j * stride + k - 2] = entry.second;
            }
        }
        for (std::size_t j = 0; linked && j < filled; ++j) {
            if (batch[j].start == tokens) {
                held_ = batch[j].fresh;
            } else {
                fresh.push_back(batch[j].fresh);
            }
        }
        filled = 0;
    };
    rows.reserve(share * stride);
    fresh.reserve(share);
    if (held_ >= 0) fresh.push_back(static_cast<std::uint8_t>(held_));
    held_ = -1;
    Windows windows(ids, n);
    std::array<std::size_t, kBlock> own;
    for (std::size_t begin = 1; begin <= tokens; begin += kBlock) {
        // Which windows are of this partition nobody can foresee, and a processor that guesses is wrong too often: no branch here.
        std::size_t count = 0;
        for (std::size_t i = begin, end = std::min(begin + kBlock, tokens + 1); i < end; ++i) {
            own[count] = i;
            count += static_cast<std::size_t>((ids[i + 1] != kBos) & (partition_of(ids[i], ids[i + 1], partitions_) == partition_));
        }
        for (std::size_t j = 0; j < count; ++j) {
            batch[filled++] = Probe{own[j], windows.length(own[j]), 0, 0, ids[own[j]], kNothingNew};
            if (filled == kBatch) flush();
        }
    }
    flush();
}

void PartitionCounter::take(std::size_t order, MutableView<std::uint32_t> parents, MutableView<std::uint32_t> words,
                            MutableView<std::uint32_t> counts) {
    const Table table = std::move(tables_[order - 2]);
    tables_[order - 2] = Table{};
    for (std::size_t i = 0; i < table.slots; ++i) {
        const Entry& entry = table.entries[i];
        if (entry.key == 0) continue;
        parents[entry.second] = key_parent(entry.key);
        words[entry.second] = key_word(entry.key);
        counts[entry.second] = entry.first;
    }
}

Requests route_requests(View<std::uint32_t> ids, std::size_t order, const Streams<std::uint8_t>& fresh, const Streams<std::uint32_t>& rows) {
    const std::size_t stride = order - 2;
    Requests out;
    out.fresh.assign(tokens_of(ids, order), kNothingNew);
    out.rows.assign(stride, std::vector<std::vector<std::uint32_t>>(fresh.size()));
    for (std::size_t k = 3; k <= order; ++k) {
        const auto asks = [k](std::uint8_t first) { return first <= k; };
        std::ptrdiff_t requests = 0;
        for (const auto& stream : fresh) requests += std::count_if(stream.begin(), stream.end(), asks);
        for (auto& stream : out.rows[k - 3]) stream.reserve(share_of(static_cast<std::size_t>(requests), fresh.size()));
    }
    Cursors<std::uint8_t> news(fresh);
    Cursors<std::uint32_t> suffixes(rows);
    walk(ids, order, fresh.size(), [&](std::size_t t, std::size_t length, std::uint32_t home, std::size_t next_length, std::uint32_t next_home) {
        const std::uint32_t* of_suffix = next_length >= 2 ? suffixes.take(next_home, stride) : nullptr;
        if (length < 2) return;
        const std::uint8_t first = *news.take(home, 1);
        out.fresh[t] = first;
        for (std::size_t k = std::max<std::size_t>(first, 3); k <= length; ++k) out.rows[k - 3][next_home].push_back(of_suffix[k - 3]);
    });
    news.check_used();
    suffixes.check_used();
    return out;
}

template <class T>
std::vector<std::vector<T>> route_values(View<std::uint32_t> ids, std::size_t order, std::size_t lower, View<std::uint8_t> fresh,
                                         const Streams<T>& values, bool back) {
    std::vector<std::vector<T>> out(values.size());
    std::size_t total = 0;
    for (const auto& stream : values) total += stream.size();
    for (auto& stream : out) stream.reserve(share_of(total, values.size()));
    Cursors<T> cursors(values);
    walk(ids, order, values.size(), [&](std::size_t t, std::size_t length, std::uint32_t home, std::size_t, std::uint32_t next_home) {
        if (length <= lower || fresh[t] > lower + 1) return;
        if (back) {
            out[next_home].push_back(*cursors.take(home, 1));
        } else {
            out[home].push_back(*cursors.take(next_home, 1));
        }
    });
    cursors.check_used();
    return out;
}
template std::vector<std::vector<std::uint8_t>> route_values(View<std::uint32_t>, std::size_t, std::size_t, View<std::uint8_t>,
                                                             const Streams<std::uint8_t>&, bool);
template std::vector<std::vector<std::uint32_t>> route_values(View<std::uint32_t>, std::size_t, std::size_t, View<std::uint8_t>,
                                                              const Streams<std::uint32_t>&, bool);
template std::vector<std::vector<std::uint64_t>> route_values(View<std::uint32_t>, std::size_t, std::size_t, View<std::uint8_t>,
                                                              const Streams<std::uint64_t>&, bool);

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

void count_rows(View<std::uint32_t> rows, MutableView<std::uint32_t> counts) {
    for (const std::uint32_t row : rows) ++counts[row];
}

}  // namespace lmgauge
