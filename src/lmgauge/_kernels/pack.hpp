// Making packed tables, listing what is in them, and checking one that a file may have damaged.
#pragma once

#include "kernels.hpp"

namespace lmgauge {

// An n-gram on its way to its place: what it is, scattered, and its values; `source` is what the caller knows it by.
struct Staged {
    std::uint32_t high, low, probability, weight, source;
    std::uint64_t scattered() const { return static_cast<std::uint64_t>(high) << 32 | low; }
};
static_assert(sizeof(Staged) == 20);

// Staged n-grams in parts by rising `scattered`: part p is staged[p * room, p * room + sizes[p]). Where a size becomes larger
// than the room, what is beyond it is lost, and the caller does all of it again with more room.
struct Parts {
    MutableView<Staged> staged;
    MutableView<std::uint64_t> sizes;
    std::size_t room() const { return staged.size() / sizes.size(); }
    MutableView<Staged> part(std::size_t p) const { return staged.subspan(p * room(), static_cast<std::size_t>(sizes[p])); }
};

// The table of the order below, whose entries learn that something longer begins with them; none for bigrams.
struct Below {
    Line* lines;
    void has_longer(std::uint32_t slot) const;    // an entry with the weight -1, which becomes 1
};

constexpr std::uint32_t kWeightIsOne = 1u << 31;    // beside a slot: this entry may have the weight -1

// From a table of counting, whose values are probabilities and weights by now. Entries that `dropped` marks are left out.
// parent_slots[slot]: the packed slot of an n-gram of the order below, with kWeightIsOne; empty for bigrams.
void stage_table(View<Entry> table, std::size_t begin, std::size_t end, View<std::uint8_t> dropped,
                 View<std::uint32_t> parent_slots, const Scatter& scatter, Below below, Parts parts);
struct NgramColumns {
    View<std::uint32_t> parents, words;
    View<float> probabilities, weights;
};
void stage_columns(const NgramColumns& ngrams, std::size_t begin, std::size_t end, const Scatter& scatter, Below below, Parts parts);

// Sorts parts [first, last). frees[p]: the first place that is free behind part p, if the parts before it do not reach into it.
void sort_parts(const TableView& table, Parts parts, std::size_t first, std::size_t last, MutableView<std::uint64_t> frees);

struct Placed {
    std::uint64_t twice = 0;     // n-grams that came twice
    bool far = false;            // an entry would lie too far from its home: the table needs more lines
};
// Writes parts [first, last) to the fresh lines of a table; starts[p] is the first place that is free for part p. slots (may be
// empty) [source]: where each went, with kWeightIsOne if `marked`.
Placed place_parts(const TableView& table, MutableView<Line> lines, Parts parts, std::size_t first, std::size_t last,
                   View<std::uint64_t> starts, bool marked, MutableView<std::uint32_t> slots);

struct EntryCounts {
    std::uint64_t entries = 0, blanks = 0;
};
EntryCounts count_entries(const TableView& table, std::size_t begin, std::size_t end);

// The entries of lines [begin, end) in the order of their slots, as many as count_entries says.
struct EntryColumns {
    MutableView<std::uint32_t> slots, parents, words;
    MutableView<float> probabilities, weights;    // negative where blank; weights as they are meant
};
void list_entries(const TableView& table, std::size_t begin, std::size_t end, const EntryColumns& out);

struct TableCheck {
    std::uint64_t checksum = 0;
    std::int64_t bad = -1;    // first line that no sound model has
};
TableCheck check_lines(const TableView& table, std::size_t begin, std::size_t end, std::uint64_t parents, std::uint64_t words);

}  // namespace lmgauge
