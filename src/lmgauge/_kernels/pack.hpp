// Making packed tables, listing what is in them, and checking one that a file may have damaged.
#pragma once

#include <algorithm>
#include <memory>

#include "kernels.hpp"

namespace lmgauge {

constexpr std::size_t kAhead = 32;          // rows by which memory is asked for before it is needed
constexpr std::size_t kTogether = 16;       // staged n-grams that go to their part together
constexpr std::uint32_t kMinusOne = 0xBF800000u, kOne = 0x3F800000u;    // as float

// An n-gram on its way to its place begins with what it is, scattered; its values follow.
struct Scattered {
    std::uint32_t high, low;
    std::uint64_t scattered() const { return static_cast<std::uint64_t>(high) << 32 | low; }
    static Scattered of(std::uint64_t number) { return {static_cast<std::uint32_t>(number >> 32), static_cast<std::uint32_t>(number)}; }
};
// Staged n-grams in parts by rising `scattered`: part p is staged[p * room, p * room + sizes[p]). Where a size becomes larger
// than the room, what is beyond it is lost, and the caller does all of it again with more room.
template <class Record>
struct PartsOf {
    MutableView<Record> staged;
    MutableView<std::uint64_t> sizes;
    std::size_t room() const { return staged.size() / sizes.size(); }
    MutableView<Record> part(std::size_t p) const { return staged.subspan(p * room(), static_cast<std::size_t>(sizes[p])); }
};

// N-grams on their way to the parts, in which they stay in order.
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
        const auto at = static_cast<std::size_t>(parts_.sizes[p]);
        parts_.sizes[p] += n;
        if (at <= parts_.room() && n <= parts_.room() - at) {
            std::copy_n(held_.get() + p * kTogether, n, parts_.staged.begin() + static_cast<std::ptrdiff_t>(p * parts_.room() + at));
        }
        counts_[p] = 0;
    }

    PartsOf<Record> parts_;
    std::unique_ptr<Record[]> held_;
    std::vector<std::uint8_t> counts_;
};

// Marks n-grams of a table, by their slots, as those that something longer begins with: the weight -1 becomes 1.
void mark_parents(MutableView<Line> lines, View<std::uint32_t> slots);

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
