// Packing in buckets: no n-gram is sorted before it is placed.
//
// How many n-grams have each line as their home says where those of each home begin (`open_homes`): the place of the i-th
// n-gram of a table is max(place of the one before + 1, first place of its home line). Each is written to the
// next place of its home, and what stands at the places of one home, five or so, is put in order at the end. Arrays come from
// files, so every index is checked.
#include "partition_pack.hpp"

#include <stdexcept>
#include <type_traits>

namespace lmgauge {
namespace {

constexpr std::uint32_t kKeyMask = (1u << kStoredBits) - 1;

void check(bool sound) {
    if (!sound) throw std::invalid_argument("staged n-grams that do not belong together");
}

template <class Record>
Record record_of(const PartitionRows& rows, std::size_t row, std::uint64_t scattered) {
    const std::uint32_t probability = as_bits(rows.probabilities[row]);
    if constexpr (std::is_same_v<Record, MiddleNgram>) {
        const std::uint32_t weight = as_bits(rows.weights[row]);
        return {Scattered::of(scattered), probability, weight == kOne && !rows.longer[row] ? kMinusOne : weight};
    } else {
        return {Scattered::of(scattered), probability};
    }
}

}  // namespace

void mark_longer(View<std::uint32_t> parents, View<std::uint8_t> dropped, MutableView<std::uint8_t> longer) {
    for (std::size_t row = 0; row < parents.size(); ++row) {
        if (row + kAhead < parents.size() && parents[row + kAhead] < longer.size()) prefetch_for_write(&longer[parents[row + kAhead]]);
        if (!dropped.empty() && dropped[row]) continue;
        check(parents[row] < longer.size());
        longer[parents[row]] = 1;
    }
}

template <class Record>
void stage_rows(const PartitionRows& rows, const Scatter& scatter, std::uint64_t parents, std::uint64_t words,
                PartsOf<Record> parts, MutableView<std::uint8_t> buckets) {
    Stage<Record> stage(parts);
    const View<std::uint32_t> slots = rows.parent_slots;
    for (std::size_t row = 0; row < rows.parents.size(); ++row) {
        if (row + kAhead < rows.parents.size() && rows.parents[row + kAhead] < slots.size()) prefetch(&slots[rows.parents[row + kAhead]]);
        std::size_t bucket = kNoBucket;
        if (rows.dropped.empty() || !rows.dropped[row]) {
            std::uint32_t parent = rows.parents[row];
            if (!slots.empty()) {
                check(parent < slots.size());
                parent = slots[parent];
            }
            check(parent < parents && rows.words[row] < words);
            bucket = stage.add(record_of<Record>(rows, row, scatter(parent, rows.words[row])));
        }
        if (!buckets.empty()) buckets[row] = static_cast<std::uint8_t>(bucket);
    }
}

void replay_slots(View<std::uint8_t> buckets, const std::vector<View<std::uint32_t>>& streams, MutableView<std::uint32_t> slots) {
    std::vector<std::size_t> next(streams.size(), 0);
    for (std::size_t row = 0; row < buckets.size(); ++row) {
        const std::uint8_t bucket = buckets[row];
        if (bucket == kNoBucket) {
            slots[row] = kNone;
            continue;
        }
        check(bucket < streams.size() && next[bucket] < streams[bucket].size());
        slots[row] = streams[bucket][next[bucket]++];
    }
}

std::size_t Bucket::home(std::uint64_t scattered) const {
    const std::uint64_t home = multiply_high(scattered, table.homes) - first;    // wraps around below the first
    check(home < homes);
    return static_cast<std::size_t>(home);
}

template <class Record>
void count_homes(const Bucket& bucket, View<Record> ngrams, MutableView<std::uint8_t> counts) {
    for (const Record& ngram : ngrams) {
        std::uint8_t& count = counts[bucket.home(ngram.scattered())];
        if (count != 255) ++count;
    }
}

Measured measure_homes(const Bucket& bucket, View<std::uint8_t> counts) {
    const std::uint32_t width = bucket.table.width;
    Measured result{0, ~std::uint64_t{0}};
    std::uint64_t before = 0;
    for (std::size_t home = 0; home < counts.size(); ++home) {
        if (counts[home] == 0) continue;
        const std::uint64_t line = bucket.first + home, behind = (line + kFarthest + 1) * width;
        result.free = std::max(result.free, line * width) + counts[home];
        before += counts[home];
        // The last n-gram of this home has before - 1 others before it; it lies at `start + before - 1`, or at `free - 1`.
        if (result.free > behind) result.limit = 0;
        result.limit = std::min(result.limit, behind + 1 > before ? behind + 1 - before : 0);
    }
    return result;
}

void open_homes(const Bucket& bucket, View<std::uint8_t> counts, std::uint64_t start, MutableView<std::uint32_t> cursors) {
    const std::uint64_t first = bucket.first * bucket.table.width;
    std::uint64_t free = start > first ? start - first : 0;
    for (std::size_t home = 0; home < counts.size(); ++home) {
        free = std::max(free, home * std::uint64_t{bucket.table.width});
        cursors[home] = static_cast<std::uint32_t>(free);
        free += counts[home];
    }
    check(free <= bucket.lines() * std::uint64_t{bucket.table.width});
}

namespace {

template <class Record>
using LineFor = std::conditional_t<std::is_same_v<Record, MiddleNgram>, MiddleLine, LastLine>;

// Puts what stands in the places of one home in order; `start` is the key of the first number that has this home.
template <class Layout>
class HomeSorter {
  public:
    HomeSorter(MutableView<Line> lines, MutableView<std::int8_t> shifts) : lines_(lines), shifts_(shifts) {}

    void sort(std::size_t home, std::uint32_t begin, std::uint32_t count, std::uint32_t start, Sorted& result) {
        for (std::uint32_t i = 0; i < count; ++i) {
            const Line& line = lines_[(begin + i) / kWidth];
            const std::uint32_t place = (begin + i) % kWidth;
            const Moved moved{((line.words[place] >> 4) - start) & kKeyMask, line.words[Layout::kProbability + place],
                              kWeighted ? line.words[Layout::kWeight + place] : 0, i};
            std::uint32_t j = i;
            for (; j > 0 && moved_[j - 1].key > moved.key; --j) moved_[j] = moved_[j - 1];
            moved_[j] = moved;
        }
        for (std::uint32_t i = 0; i < count; ++i) {
            write(home, begin + i, ((moved_[i].key + start) & kKeyMask) << 4, moved_[i]);
            result.twice += i > 0 && moved_[i - 1].key == moved_[i].key;
            result.blanks += moved_[i].probability >> 31;
            if (!shifts_.empty()) shifts_[begin + moved_[i].from] = static_cast<std::int8_t>(static_cast<int>(i) - static_cast<int>(moved_[i].from));
        }
    }

  private:
    static constexpr std::uint32_t kWidth = Layout::kWidth;
    static constexpr bool kWeighted = std::is_same_v<Layout, MiddleLine>;
    struct Moved {
        std::uint32_t key, probability, weight, from;
    };

    void write(std::size_t home, std::uint32_t slot, std::uint32_t key, const Moved& moved) {
        const std::size_t row = slot / kWidth;
        const std::uint32_t place = slot % kWidth;
        check(row - home <= kFarthest);
        Line& line = lines_[row];
        line.words[place] = key | (static_cast<std::uint32_t>(row - home) + 1);
        line.words[Layout::kProbability + place] = moved.probability;
        if (kWeighted) line.words[Layout::kWeight + place] = moved.weight;
        for (std::size_t passed = home; passed < row; ++passed) lines_[passed].words[kWidth] |= 1u << ((key >> 4) & 31);
    }

    MutableView<Line> lines_;
    MutableView<std::int8_t> shifts_;
    Moved moved_[256];
};

template <class Layout>
Sorted sort_homes_of(const Bucket& bucket, View<std::uint8_t> counts, MutableView<std::uint32_t> cursors, MutableView<Line> lines,
                     MutableView<std::int8_t> shifts) {
    Sorted result;
    HomeSorter<Layout> sorter(lines, shifts);
    for (std::size_t home = 0; home < counts.size(); ++home) {
        check(cursors[home] >= counts[home] && cursors[home] <= lines.size() * Layout::kWidth);
        cursors[home] -= counts[home];
        const auto start = static_cast<std::uint32_t>(((bucket.first + home) * bucket.table.step) >> bucket.table.scatter.shift);
        if (counts[home] != 0) sorter.sort(home, cursors[home], counts[home], start, result);
    }
    return result;
}

}  // namespace

template <class Record>
void write_ngrams(const Bucket& bucket, View<Record> ngrams, MutableView<std::uint32_t> cursors, MutableView<Line> lines) {
    using Layout = LineFor<Record>;
    for (std::size_t i = 0; i < ngrams.size(); ++i) {
        if (i + 2 * kAhead < ngrams.size()) prefetch_for_write(&cursors[bucket.home(ngrams[i + 2 * kAhead].scattered())]);
        if (i + kAhead < ngrams.size()) {
            const std::size_t row = cursors[bucket.home(ngrams[i + kAhead].scattered())] / Layout::kWidth;
            if (row < lines.size()) prefetch_for_write(&lines[row]);
        }
        const Record& ngram = ngrams[i];
        const std::uint32_t slot = cursors[bucket.home(ngram.scattered())]++, place = slot % Layout::kWidth;
        check(slot / Layout::kWidth < lines.size());
        Line& line = lines[slot / Layout::kWidth];
        line.words[place] = bucket.table.place(ngram.scattered()).key;
        line.words[Layout::kProbability + place] = ngram.probability;
        if constexpr (std::is_same_v<Record, MiddleNgram>) line.words[Layout::kWeight + place] = ngram.weight;
    }
}

Sorted sort_homes(const Bucket& bucket, View<std::uint8_t> counts, MutableView<std::uint32_t> cursors, MutableView<Line> lines,
                  MutableView<std::int8_t> shifts) {
    return bucket.table.last ? sort_homes_of<LastLine>(bucket, counts, cursors, lines, shifts)
                             : sort_homes_of<MiddleLine>(bucket, counts, cursors, lines, shifts);
}

void list_slots(const Bucket& bucket, View<MiddleNgram> ngrams, MutableView<std::uint32_t> cursors, View<std::int8_t> shifts,
                MutableView<std::uint32_t> slots) {
    const auto first = static_cast<std::uint32_t>(bucket.first * bucket.table.width);
    for (std::size_t i = 0; i < ngrams.size(); ++i) {
        if (i + 2 * kAhead < ngrams.size()) prefetch_for_write(&cursors[bucket.home(ngrams[i + 2 * kAhead].scattered())]);
        if (i + kAhead < ngrams.size()) {
            const std::uint32_t later = cursors[bucket.home(ngrams[i + kAhead].scattered())];
            if (later < shifts.size()) prefetch(&shifts[later]);
        }
        const std::uint32_t slot = cursors[bucket.home(ngrams[i].scattered())]++;
        check(slot < shifts.size());
        slots[i] = first + slot + static_cast<std::uint32_t>(shifts[slot]);
    }
}

#define FOR_RECORD(Record)                                                                                                       \
    template void stage_rows(const PartitionRows&, const Scatter&, std::uint64_t, std::uint64_t, PartsOf<Record>,                \
                             MutableView<std::uint8_t>);                                                                        \
    template void count_homes(const Bucket&, View<Record>, MutableView<std::uint8_t>);                                          \
    template void write_ngrams(const Bucket&, View<Record>, MutableView<std::uint32_t>, MutableView<Line>);
FOR_RECORD(MiddleNgram)
FOR_RECORD(LastNgram)

}  // namespace lmgauge
