// Packing in parts that fit into little memory: the n-grams of one order come partition by partition and are dealt to buckets
// by their scattered number; each bucket becomes some lines of the table. The bytes of the table depend on what is in it alone.
#pragma once

#include "pack.hpp"

namespace lmgauge {

// Staged n-grams: 16 bytes, and 12 at the highest order, which has no weights. A weight is as the table stores it.
struct MiddleNgram : Scattered {
    std::uint32_t probability, weight;
};
struct LastNgram : Scattered {
    std::uint32_t probability;
};
static_assert(sizeof(MiddleNgram) == 16 && sizeof(LastNgram) == 12);

constexpr std::size_t kMostBuckets = 255;
constexpr std::uint8_t kNoBucket = 255;    // of a row that is dropped

// ---- a partition: rows to buckets -------------------------------------------------------------------------------------

// The n-grams of one order. A parent is a row of the order below, or at order 2 (`parent_slots` empty) the id of a word.
struct PartitionRows {
    View<std::uint32_t> parents, words;
    View<float> probabilities, weights;      // no weights at the highest order
    View<std::uint8_t> dropped, longer;      // 1: is left out (empty: none is); something longer begins with it
    View<std::uint32_t> parent_slots;
};
// longer[parent] = 1 for each row that is not dropped.
void mark_longer(View<std::uint32_t> parents, View<std::uint8_t> dropped, MutableView<std::uint8_t> longer);
// Deals rows to buckets, where they stay in order. buckets[row] (empty: is not wanted): where it went.
template <class Record>
void stage_rows(const PartitionRows& rows, const Scatter& scatter, std::uint64_t parents, std::uint64_t words,
                PartsOf<Record> parts, MutableView<std::uint8_t> buckets);
// What `stage_rows` did, once more: slots[row] is the next of the slots that the row's bucket sent back; kNone: dropped.
void replay_slots(View<std::uint8_t> buckets, const std::vector<View<std::uint32_t>>& streams, MutableView<std::uint32_t> slots);

// ---- a bucket: n-grams to lines ---------------------------------------------------------------------------------------

// The n-grams whose home lines are [first, first + homes), and the lines of the table from the first of these on: one
// may lie up to kFarthest lines behind the last home. Slots are counted from the first of these lines.
struct Bucket {
    TableView table;    // without lines
    std::uint64_t first, homes;
    std::size_t lines() const { return static_cast<std::size_t>(homes) + kSpareLines; }
    std::size_t home(std::uint64_t scattered) const;
};

// counts[home] += 1 for each n-gram; 255 stands for more.
template <class Record>
void count_homes(const Bucket& bucket, View<Record> ngrams, MutableView<std::uint8_t> counts);

struct Measured {
    std::uint64_t free = 0;     // slot of the table: the first that is free behind, if the bucket begins at its first home
    std::uint64_t limit = 0;    // the bucket must begin before this slot, so that no n-gram lies too far from its home
};
Measured measure_homes(const Bucket& bucket, View<std::uint8_t> counts);

// cursors[home]: the first slot of the n-grams of this home, if the bucket begins at slot `start` of the table.
void open_homes(const Bucket& bucket, View<std::uint8_t> counts, std::uint64_t start, MutableView<std::uint32_t> cursors);
// Writes n-grams to the slots of their homes, in the order in which they come; cursors move on.
template <class Record>
void write_ngrams(const Bucket& bucket, View<Record> ngrams, MutableView<std::uint32_t> cursors, MutableView<Line> lines);

struct Sorted {
    std::uint64_t twice = 0, blanks = 0;
};
// Sorts the n-grams of each home, sets the marks, and moves the cursors back. shifts[slot] (empty: is not wanted): how far
// what was written there moved.
Sorted sort_homes(const Bucket& bucket, View<std::uint8_t> counts, MutableView<std::uint32_t> cursors, MutableView<Line> lines,
                  MutableView<std::int8_t> shifts);
// slots[i]: of the table, where an n-gram went; they come as they came to `write_ngrams`.
void list_slots(const Bucket& bucket, View<MiddleNgram> ngrams, MutableView<std::uint32_t> cursors, View<std::int8_t> shifts,
                MutableView<std::uint32_t> slots);

}  // namespace lmgauge
