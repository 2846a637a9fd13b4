// Making packed tables, listing what is in them, and checking one that a file may have damaged.
#pragma once

#include <algorithm>
#include <memory>

#include "kernels.hpp"

namespace lmgauge {

constexpr std::size_t kAhead = 32;          // rows by which memory is asked for before it is needed
constexpr std::size_t kTogether = 16;       // staged n-grams that go to their part together
constexpr std::uint32_t kMinusOne = 0xBF800000u, kOne = 0x3F800000u;    // as float

// An n-gram on its way to its place: what it is, scattered, and its values.
struct Scattered {
    std::uint32_t high, low;
    std::uint64_t scattered() const { return static_cast<std::uint64_t>(high) << 32 | low; }
    static Scattered of(std::uint64_t number) { return {static_cast<std::uint32_t>(number >> 32), static_cast<std::uint32_t>(number)}; }
};
struct Staged : Scattered {
    std::uint32_t probability, weight, source;    // `source` is what the caller knows it by
};
static_assert(sizeof(Staged) == 20);

// Staged n-grams in parts by rising `scattered`: part p is staged[p * room, p * room + sizes[p]). Where a size becomes larger
// than the room, what is beyond it is lost, and the caller does all of it again with more room.
template <class Record>
struct PartsOf {
    MutableView<Record> staged;
    MutableView<std::uint64_t> sizes;
    std::size_t room() const { return staged.size() / sizes.size(); }
    MutableView<Record> part(std::size_t p) const { return staged.subspan(p * room(), static_cast<std::size_t>(sizes[p])); }
};
using Parts = PartsOf<Staged>;

// One thread's n-grams, on their way to the parts. Those of one thread stay in order.
template <class Record>
class Stage {
  public:
    explicit Stage(PartsOf<Record> parts)
        : parts_(parts), held_(new Record[parts.sizes.size() * kTogether]), counts_(parts.sizes.size(), 0) {}
    ~Stage() {
        for (std::size_t p = 0; p < counts_.size(); ++p) send(p);
    }
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    // Returns the part.
    std::size_t add(const Record& record) {
        const auto p = static_cast<std::size_t>(multiply_high(record.scattered(), counts_.size()));
        held_[p * kTogether + counts_[p]] = record;
        if (++counts_[p] == kTogether) send(p);
        return p;
    }

  private:
    void send(std::size_t p) {
        const std::size_t n = counts_[p];
        if (n == 0) return;
        const auto at = static_cast<std::size_t>(atomic_fetch_add(&parts_.sizes[p], n));
        if (at <= parts_.room() && n <= parts_.room() - at) {
            std::copy_n(held_.get() + p * kTogether, n, parts_.staged.begin() + static_cast<std::ptrdiff_t>(p * parts_.room() + at));
        }
        counts_[p] = 0;
    }

    PartsOf<Record> parts_;
    std::unique_ptr<Record[]> held_;
    std::vector<std::uint8_t> counts_;
};

// The table of the order below, whose entries learn that something longer begins with them; none for bigrams.
struct Below {
    Line* lines;
    std::uint64_t slots;
    void has_longer(std::uint32_t slot) const;    // an entry with the weight -1, which becomes 1
};

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
// empty) [source]: where each went.
Placed place_parts(const TableView& table, MutableView<Line> lines, Parts parts, std::size_t first, std::size_t last,
                   View<std::uint64_t> starts, MutableView<std::uint32_t> slots);

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
// The checksum of some lines of a table, the first of which is its line `row`.
std::uint64_t digest_lines(View<Line> lines, std::uint64_t row);

}  // namespace lmgauge
