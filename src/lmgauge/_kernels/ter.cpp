// Translation edit rate (Snover et al. 2006, "A study of translation edit rate with targeted human annotation"): the edit
// distance between hypothesis and reference after shifts of word sequences, found greedily. The result is Tercom's as
// sacreBLEU 2 computes it, with all its limits: a beam around the diagonal, a longest shift, a farthest shift and a number
// of shifts looked at. There a table of costs is filled for every shift; here the beam is a window of 64 bits, a row of the
// table one step of the bit-parallel algorithm, and only rows that a shift changes are computed.
#include "ter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace lmgauge {

namespace {

constexpr std::int64_t kBeam = 25;               // columns to the left of the diagonal; to its right one less
constexpr std::int64_t kLongestShift = 10;       // words
constexpr std::int64_t kFarthestShift = 50;      // words between the places in hypothesis and reference
constexpr std::int64_t kMostCandidates = 1000;   // of a segment, all rounds together
constexpr std::int64_t kInfinity = std::numeric_limits<std::int64_t>::max() / 4;

// What stands at positions: they are signed, as differences of them are computed, and none that is looked up is below zero.
template <class T>
struct Positions : std::vector<T> {
    using std::vector<T>::vector;
    template <std::integral I>
    T& operator[](I i) { return std::vector<T>::operator[](static_cast<std::size_t>(i)); }
    template <std::integral I>
    const T& operator[](I i) const { return std::vector<T>::operator[](static_cast<std::size_t>(i)); }
};
using Ids = Positions<std::uint32_t>;

std::uint64_t low_bits(std::int64_t n) { return n >= 64 ? ~0ull : n <= 0 ? 0 : (1ull << n) - 1; }

std::int64_t count_bits(std::uint64_t x) {  // std::popcount is a call where the processor's instruction may not be used
    x -= x >> 1 & 0x5555555555555555ull;
    x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
    return static_cast<std::int64_t>(((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Full) * 0x0101010101010101ull >> 56);
}

std::uint64_t hash_word(std::string_view word) {
    std::uint64_t hash = word.size() * 0x9E3779B97F4A7C15ull;
    const char* at = word.data();
    std::size_t left = word.size();
    for (; left > 8; at += 8, left -= 8) {
        std::uint64_t bytes;
        std::memcpy(&bytes, at, 8);
        hash = mix(hash ^ bytes);
    }
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < left; ++i) bytes |= static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])) << 8 * i;
    return mix(hash ^ bytes);
}

// The words of one reference, numbered, and where each of them stands in it.
class Reference {
  public:
    void read(std::string_view text) {
        words_.clear();
        for_each_word(text, [&](std::string_view word) { words_.push_back(word); });
        std::size_t size = 16;
        while (size < 2 * words_.size()) size *= 2;
        slots_.assign(size, Slot{});
        names_.clear();
        ids_.clear();
        for (const std::string_view word : words_) {
            Slot& slot = find(word, hash_word(word));
            if (slot.id == 0) {
                names_.push_back(word);
                slot.id = static_cast<std::uint32_t>(names_.size());
            }
            ids_.push_back(slot.id - 1);
        }
        list_places();
    }

    std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }
    const Ids& ids() const { return ids_; }

    // Numbers another text's words; those that the reference does not have are all alike.
    void number(const std::vector<std::string_view>& words, Ids& ids) {
        ids.clear();
        const std::uint32_t absent = static_cast<std::uint32_t>(names_.size());
        for (const std::string_view word : words) {
            const std::uint32_t id = find(word, hash_word(word)).id;
            ids.push_back(id == 0 ? absent : id - 1);
        }
    }

    // Most words that any arrangement of `words` can have right.
    std::int64_t in_common(const Ids& words) {
        seen_.assign(names_.size() + 1, 0);
        std::int64_t common = 0;
        for (const std::uint32_t word : words) common += seen_[word]++ < places_of(word).size();
        return common;
    }

    // Positions of a word, rising.
    View<std::uint32_t> places_of(std::uint32_t word) const {
        return {places_.data() + starts_[word], places_.data() + starts_[word + 1]};
    }

    // Bit k is set where the reference has `word` at position `first` + k.
    std::uint64_t window(std::uint32_t word, std::int64_t first) const {
        if (ids_.size() <= 64) return masks_[word] >> first;
        const auto places = places_of(word);
        std::uint64_t bits = 0;
        auto at = places.size() <= 4 ? places.begin() : std::lower_bound(places.begin(), places.end(), first);
        for (; at != places.end() && *at < first + 64; ++at) bits |= *at >= first ? 1ull << (*at - first) : 0;
        return bits;
    }

  private:
    struct Slot {
        std::uint32_t tag = 0, id = 0;  // id + 1; 0 is empty
    };

    Slot& find(std::string_view word, std::uint64_t hash) {
        const std::size_t mask = slots_.size() - 1;
        const auto tag = static_cast<std::uint32_t>(hash >> 32);
        for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
            Slot& slot = slots_[i];
            if (slot.id == 0) {
                slot.tag = tag;
                return slot;
            }
            if (slot.tag == tag && names_[slot.id - 1] == word) return slot;
        }
    }

    void list_places() {
        starts_.assign(names_.size() + 2, 0);
        for (const std::uint32_t id : ids_) ++starts_[id + 1];
        for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
        places_.resize(ids_.size());
        seen_.assign(starts_.begin(), starts_.end());
        for (std::size_t i = 0; i < ids_.size(); ++i) places_[seen_[ids_[i]]++] = static_cast<std::uint32_t>(i);
        if (ids_.size() > 64) return;
        masks_.assign(names_.size() + 1, 0);
        for (std::size_t i = 0; i < ids_.size(); ++i) masks_[ids_[i]] |= 1ull << i;
    }

    std::vector<std::string_view> words_, names_;
    std::vector<Slot> slots_;
    Ids ids_;
    std::vector<std::uint32_t> starts_, places_, seen_;
    std::vector<std::uint64_t> masks_;
};

// What becomes of a hypothesis word, a reference word, or both.
enum class Edit { right, wrong, extra, missing };

// Which hypothesis word each reference word stands at, as the cheapest edits have it (the one before, where it has none
// of its own; -1 before the first), and which words are not right.
struct Alignment {
    Positions<std::int64_t> places;
    Positions<std::uint8_t> hypothesis_errors, reference_errors;

    void clear(std::int64_t hypothesis, std::int64_t reference) {
        places.assign(static_cast<std::size_t>(reference), -1);
        hypothesis_errors.assign(static_cast<std::size_t>(hypothesis), 0);
        reference_errors.assign(static_cast<std::size_t>(reference), 0);
    }
    void pair(std::int64_t i, std::int64_t j, bool wrong) {  // after i words of the hypothesis and j of the reference
        places[j - 1] = i - 1;
        hypothesis_errors[i - 1] = reference_errors[j - 1] = wrong;
    }
    void missing(std::int64_t i, std::int64_t j) {
        places[j - 1] = i - 1;
        reference_errors[j - 1] = 1;
    }
    void extra(std::int64_t i) { hypothesis_errors[i - 1] = 1; }

    // Follows the cheapest path back from the last cell of a table; edit(i, j) is the last edit on the way to a cell.
    template <class LastEdit>
    void follow(std::int64_t i, std::int64_t j, LastEdit&& edit) {
        clear(i, j);
        while (i > 0 && j > 0) {
            const Edit last = edit(i, j);
            if (last == Edit::extra) {
                extra(i--);
            } else if (last == Edit::missing) {
                missing(i, j--);
            } else {
                pair(i--, j, last == Edit::wrong);
                --j;
            }
        }
        for (; i > 0; --i) extra(i);
        for (; j > 0; --j) missing(0, j);
    }
};

// The columns that a row of the table has: `first` to `last`, both included. The ratio is computed as in Python, in double.
struct Columns {
    std::int64_t first, last;
};

Columns columns_of_row(std::int64_t row, std::int64_t rows, std::int64_t columns) {
    if (row == 0) return {0, columns};
    const double ratio = static_cast<double>(columns) / static_cast<double>(rows);
    const std::int64_t beam = kBeam < ratio / 2 ? static_cast<std::int64_t>(std::ceil(ratio / 2 + kBeam)) : kBeam;
    const auto diagonal = static_cast<std::int64_t>(std::floor(static_cast<double>(row) * ratio));
    const std::int64_t last = row == rows ? columns : std::min(columns, diagonal + beam - 1);
    return {std::max<std::int64_t>(0, diagonal - beam), last};
}

bool is_wide(std::int64_t rows, std::int64_t columns) {
    return kBeam < static_cast<double>(columns) / static_cast<double>(rows) / 2;
}

// The edit distance of a hypothesis to the reference within the beam, for references at most 50 times as long, by the
// bit-parallel algorithm (Myers 1999; Hyyrö 2003, "A bit-vector algorithm for computing Levenshtein and Damerau edit
// distances"). Row i of the table of costs D is after i hypothesis words, column j after j reference words. Bit k of a row
// stands for column base + k: `rise` is D(i, j) - D(i, j - 1) = 1, `fall` is -1; `left` is D(i, base - 1).
//
// The beam of a row has at most 51 columns, so a window of 64 bits holds it; base is its first column, or 1. Cells outside
// the beam cost infinitely much. In their place the window has costs that no cell of the beam can gain from:
//   - left of it, the cell above plus 1 (the carry that enters at bit 0 is always +1). A path from there through the cell
//     to the right is then never cheaper than the one straight down; one across costs at least 1 because `allow` hides the
//     match. Where the window has just moved, the cell above to the left is a real one and not hidden.
//   - right of it, 1 more for each column (`rise` set), which the next row reads when its beam reaches further. A path down
//     from there costs more than the one along the new row; one across is hidden in the same way.
// Two rows' beams always touch (the diagonal moves by at most 50, the beam has 50 columns), so every cell has a real cost.
class Beam {
  public:
    explicit Beam(const Reference& reference) : reference_(reference) {}

    void fit(std::int64_t rows) {
        rows_ = rows;
        columns_ = reference_.size();
        whole_ = columns_ < kBeam;  // every row has all columns: the window never moves
        live_ = whole_ ? low_bits(columns_) : ~0ull;
        table_.resize(static_cast<std::size_t>(rows) + 1);
        steps_.resize(static_cast<std::size_t>(rows) + 1);
        table_[0] = {~0ull, 0, 0};
        if (!whole_) plan();
    }

    // Fills the table, given that its first `done` rows are right.
    std::int64_t fill(const Ids& words, std::int64_t done) {
        total_ = whole_ ? fill_rows<true>(words, done) : fill_rows<false>(words, done);
        return total_;
    }

    // Whether the beam hides nothing from the words that were filled in: their cost is the plain edit distance d. A path of
    // cost d leaves the true diagonal by at most (d + |difference of the lengths|) / 2 columns, as each column off it must
    // be won and lost again; the beam reaches at least 23 columns to both sides of it.
    bool is_exact() const { return whole_ || total_ + std::abs(rows_ - columns_) <= 44; }

    // The cost if [first, middle) and [middle, last) changed places.
    std::int64_t swapped(const Ids& words, std::int64_t first, std::int64_t middle, std::int64_t last) const {
        return whole_ ? swapped_rows<true>(words, first, middle, last) : swapped_rows<false>(words, first, middle, last);
    }

    // Of several cheapest paths a pair comes before an extra word of the hypothesis, and that before a missing one.
    void align(const Ids&, Alignment& alignment) const {
        alignment.follow(rows_, columns_, [&](std::int64_t i, std::int64_t j) {
            const Step& step = steps_[i];
            const std::uint64_t bit = 1ull << (j - step.base);
            if (step.right & bit) return Edit::right;
            if (step.wrong & bit) return Edit::wrong;
            return step.extra & bit ? Edit::extra : Edit::missing;
        });
    }

  private:
    struct Row {
        std::uint64_t rise, fall;
        std::int64_t left;
    };
    // How a row follows from the one before, and what align() has to know of it.
    struct Step {
        std::int64_t base = 1, shift = 0;
        std::uint64_t allow = ~0ull, valid = ~0ull;
        std::uint64_t right = 0, wrong = 0, extra = 0;
    };

    void plan() {
        Columns before = columns_of_row(0, rows_, columns_);
        steps_[0] = Step{};
        for (std::int64_t i = 1; i <= rows_; ++i) {
            const Columns now = columns_of_row(i, rows_, columns_);
            Step& step = steps_[i];
            step.base = std::max<std::int64_t>(1, now.first);
            step.shift = step.base - steps_[i - 1].base;
            step.allow = low_bits(before.last + 2 - step.base) & ~low_bits(before.first + 1 - step.base);
            step.valid = low_bits(now.last + 1 - step.base);
            before = now;
        }
    }

    template <bool kWhole, class Trace>
    Row next(Row row, const Step& step, std::uint32_t word, Trace&& trace) const {
        std::uint64_t match;
        if constexpr (kWhole) {
            match = reference_.window(word, 0);
        } else {
            for (std::int64_t s = step.shift; s > 0; --s) {
                row.left += static_cast<std::int64_t>(row.rise & 1) - static_cast<std::int64_t>(row.fall & 1);
                row.rise = row.rise >> 1 | 1ull << 63;
                row.fall >>= 1;
            }
            match = reference_.window(word, step.base - 1) & step.allow;
        }
        const std::uint64_t across = (((match & row.rise) + row.rise) ^ row.rise) | match;
        const std::uint64_t free = match | row.fall;
        const std::uint64_t down = row.fall | ~(across | row.rise);  // D(i, j) - D(i - 1, j) is 1
        const std::uint64_t up = row.rise & across;                  // it is -1
        trace(match, ~(across | free), down);
        const std::uint64_t left_down = down << 1 | 1, left_up = up << 1;
        row.rise = left_up | ~(free | left_down);
        row.fall = left_down & free;
        if constexpr (!kWhole) {
            row.rise |= ~step.valid;
            row.fall &= step.valid;
        }
        ++row.left;
        return row;
    }
    template <bool kWhole>
    Row next(Row row, std::int64_t i, std::uint32_t word) const {
        return next<kWhole>(row, steps_[i], word, [](std::uint64_t, std::uint64_t, std::uint64_t) {});
    }

    template <bool kWhole>
    std::int64_t fill_rows(const Ids& words, std::int64_t done) {
        for (std::int64_t i = done + 1; i <= rows_; ++i) {
            Step& step = steps_[i];
            if constexpr (kWhole) step.base = 1;
            // A pair is the cheapest where words match, or where the cost is 1 more than that of the cell before both.
            const auto keep = [&](std::uint64_t match, std::uint64_t dearer, std::uint64_t down) {
                step.right = match;
                step.wrong = kWhole ? dearer : dearer & step.allow;
                step.extra = down;
            };
            table_[i] = next<kWhole>(table_[i - 1], step, words[i - 1], keep);
        }
        return last_cell(table_[rows_]);
    }

    std::int64_t last_cell(const Row& row) const {
        const std::uint64_t columns = low_bits(columns_ + 1 - (whole_ ? 1 : steps_[rows_].base));
        return row.left + count_bits(row.rise & columns) - count_bits(row.fall & columns);
    }

    template <bool kWhole>
    std::int64_t swapped_rows(const Ids& words, std::int64_t first, std::int64_t middle, std::int64_t last) const {
        Row row = table_[first];
        std::int64_t i = first;
        for (std::int64_t p = middle; p < last; ++p) row = next<kWhole>(row, ++i, words[p]);
        for (std::int64_t p = first; p < middle; ++p) row = next<kWhole>(row, ++i, words[p]);
        for (;; row = next<kWhole>(row, i, words[i - 1])) {
            const Row& old = table_[i];
            // From equal rows the same words lead to equal rows.
            if ((((row.rise ^ old.rise) | (row.fall ^ old.fall)) & live_) == 0) return total_ + row.left - old.left;
            if (++i > rows_) return last_cell(row);
        }
    }

    const Reference& reference_;
    std::int64_t rows_ = 0, columns_ = 0, total_ = 0;
    bool whole_ = false;
    std::uint64_t live_ = 0;
    Positions<Row> table_;
    Positions<Step> steps_;
};

// The same for references more than 50 times as long, where the beam is wider: the table itself.
class WideBeam {
  public:
    explicit WideBeam(const Reference& reference) : reference_(reference) {}

    void fit(std::int64_t rows) {
        rows_ = rows;
        columns_ = reference_.size();
        bounds_.clear();
        table_.resize(static_cast<std::size_t>(rows) + 1);
        for (std::int64_t i = 0; i <= rows; ++i) {
            bounds_.push_back(columns_of_row(i, rows, columns_));
            table_[i].resize(static_cast<std::size_t>(bounds_[i].last - bounds_[i].first) + 1);
        }
        for (std::int64_t j = 0; j <= columns_; ++j) table_[0][j] = j;
    }

    std::int64_t fill(const Ids& words, std::int64_t done) {
        for (std::int64_t i = done + 1; i <= rows_; ++i) next(table_[i - 1], i, words[i - 1], table_[i]);
        return table_[rows_].back();
    }

    bool is_exact() const { return false; }

    std::int64_t swapped(const Ids& words, std::int64_t first, std::int64_t middle, std::int64_t last) {
        row_ = table_[first];
        std::int64_t i = first;
        const auto read = [&](std::uint32_t word) {
            ++i;
            below_.resize(table_[i].size());
            next(row_, i, word, below_);
            row_.swap(below_);
        };
        for (std::int64_t p = middle; p < last; ++p) read(words[p]);
        for (std::int64_t p = first; p < middle; ++p) read(words[p]);
        for (std::int64_t p = last; p < rows_; ++p) read(words[p]);
        return row_.back();
    }

    void align(const Ids& words, Alignment& alignment) const {
        alignment.follow(rows_, columns_, [&](std::int64_t i, std::int64_t j) {
            const std::int64_t here = cell(table_[i], i, j);
            const bool match = words[i - 1] == reference_.ids()[j - 1];
            if (cell(table_[i - 1], i - 1, j - 1) + !match == here) return match ? Edit::right : Edit::wrong;
            return cell(table_[i - 1], i - 1, j) + 1 == here ? Edit::extra : Edit::missing;
        });
    }

  private:
    using Costs = Positions<std::int64_t>;

    std::int64_t cell(const Costs& row, std::int64_t i, std::int64_t j) const {
        return j < bounds_[i].first || j > bounds_[i].last ? kInfinity : row[j - bounds_[i].first];
    }
    void next(const Costs& above, std::int64_t i, std::uint32_t word, Costs& row) const {
        std::int64_t left = kInfinity;
        for (std::int64_t j = bounds_[i].first; j <= bounds_[i].last; ++j) {
            std::int64_t cost = cell(above, i - 1, j) + 1;
            if (j > 0) cost = std::min({cost, cell(above, i - 1, j - 1) + (reference_.ids()[j - 1] != word), left + 1});
            row[j - bounds_[i].first] = left = cost;
        }
    }

    const Reference& reference_;
    std::int64_t rows_ = 0, columns_ = 0;
    Positions<Columns> bounds_;
    Positions<Costs> table_;
    Costs row_, below_;
};

// A shift of `length` words from `start` to before `target`, as [first, middle) and [middle, last) that change places.
// Targets from `start` to its end count on from there, past the words that move (and may be past the end).
struct Shift {
    std::int64_t start, length, target;
    std::int64_t first, middle, last;

    Shift(std::int64_t start_, std::int64_t length_, std::int64_t target_, std::int64_t words)
        : start(start_), length(length_), target(target_), first(std::min(start_, target_)) {
        if (target < start) {
            middle = start;
            last = start + length;
        } else {
            middle = start + length;
            last = target > middle ? target : std::min(words, target + length);
        }
    }
    bool moves() const { return first < middle && middle < last; }
};

// The shifts worth a look in one round, by their lengths.
class Shifts {
  public:
    // Lists them in Tercom's order and adds their number to `looked_at`; stops where that is too large.
    void list(const Ids& words, const Reference& reference, const Alignment& alignment, std::int64_t& looked_at) {
        for (auto& shifts : by_length_) shifts.clear();
        distances_to_error(alignment.hypothesis_errors, hypothesis_error_);
        distances_to_error(alignment.reference_errors, reference_error_);
        const auto n = static_cast<std::int64_t>(words.size()), m = reference.size();
        for (std::int64_t start = 0; start < n; ++start) {
            if (hypothesis_error_[start] > kLongestShift) continue;
            const auto places = reference.places_of(words[start]);
            const std::int64_t nearest = std::max<std::int64_t>(0, start - kFarthestShift);
            auto place = places.size() <= 8 ? places.begin() : std::lower_bound(places.begin(), places.end(), nearest);
            for (; place != places.end() && *place <= start + kFarthestShift; ++place) {
                if (*place < nearest) continue;
                // Both the words that move and those at the place they go to must hold an error.
                const std::int64_t shortest = std::max(hypothesis_error_[start], reference_error_[*place]);
                const std::int64_t longest = std::min({kLongestShift, n - start, m - *place});
                for (std::int64_t length = 1; length <= longest; ++length) {
                    if (words[start + length - 1] != reference.ids()[*place + length - 1]) break;
                    if (length >= shortest && !list_targets(start, length, *place, n, alignment, looked_at)) return;
                }
            }
        }
    }

    // The best one: that which saves most; of several the longest, the first, the one that goes farthest to the front.
    // Returns what it saves; 0: there is none that saves anything. `cost` is that of the words as they are, `possible` what
    // any order of them must cost.
    template <class Table>
    std::int64_t best(const Ids& words, Table& table, std::int64_t cost, std::int64_t possible, Shift& best) const {
        std::int64_t most = 0;
        for (std::int64_t length = kLongestShift; length > 0; --length) {
            // Taking words out and putting them in again changes an edit distance by at most twice their number, and the
            // beam makes what the shifted words cost only larger.
            const std::int64_t bound = table.is_exact() ? std::min(2 * length, cost - possible) : cost - possible;
            if (most >= bound) continue;
            for (const Shift& shift : by_length_[length]) {
                if (most >= bound && shift.start != best.start) break;
                const std::int64_t saved = cost - table.swapped(words, shift.first, shift.middle, shift.last);
                const bool earlier = shift.length == best.length && shift.start == best.start && shift.target < best.target;
                if (saved > most || (saved == most && saved > 0 && earlier)) {
                    most = saved;
                    best = shift;
                }
            }
        }
        return most;
    }

  private:
    // How many words from each on, itself included, it takes to meet an error; more than kLongestShift where none is near.
    static void distances_to_error(const Positions<std::uint8_t>& errors, Positions<std::int64_t>& distances) {
        distances.resize(errors.size());
        std::int64_t distance = kLongestShift;
        for (std::size_t i = errors.size(); i-- > 0;) distances[i] = distance = errors[i] ? 1 : distance + 1;
    }

    bool list_targets(std::int64_t start, std::int64_t length, std::int64_t place, std::int64_t words,
                      const Alignment& alignment, std::int64_t& looked_at) {
        const std::int64_t aligned = alignment.places[place];
        if (start <= aligned && aligned < start + length) return true;
        std::int64_t before = -1;
        for (std::int64_t j = place - 1; j < place + length; ++j) {
            const std::int64_t target = j < 0 ? 0 : alignment.places[j] + 1;
            if (target == before) continue;
            before = target;
            ++looked_at;
            const Shift shift(start, length, target, words);
            if (shift.moves()) by_length_[length].push_back(shift);
        }
        return looked_at < kMostCandidates;
    }

    Positions<std::vector<Shift>> by_length_{kLongestShift + 1};
    Positions<std::int64_t> hypothesis_error_, reference_error_;
};

class Segment {
  public:
    void read(std::string_view hypothesis) {
        names_.clear();
        for_each_word(hypothesis, [&](std::string_view word) { names_.push_back(word); });
    }

    // Edits to one reference, and its length in words.
    std::pair<std::int64_t, std::int64_t> edits(std::string_view text) {
        reference_.read(text);
        const auto rows = static_cast<std::int64_t>(names_.size()), columns = reference_.size();
        if (rows == 0 || columns == 0) return {rows + columns, columns};
        reference_.number(names_, words_);
        return {is_wide(rows, columns) ? edits(wide_beam_) : edits(beam_), columns};
    }

  private:
    template <class Table>
    std::int64_t edits(Table& table) {
        const auto rows = static_cast<std::int64_t>(words_.size());
        const std::int64_t possible = std::max(rows, reference_.size()) - reference_.in_common(words_);
        table.fit(rows);
        std::int64_t cost = table.fill(words_, 0), shifts = 0, looked_at = 0;
        while (cost > possible) {
            table.align(words_, alignment_);
            shifts_.list(words_, reference_, alignment_, looked_at);
            if (looked_at >= kMostCandidates) break;  // also the best shift of the last round is then not taken
            Shift shift(0, 0, 0, 0);
            if (shifts_.best(words_, table, cost, possible, shift) == 0) break;
            std::rotate(words_.begin() + shift.first, words_.begin() + shift.middle, words_.begin() + shift.last);
            ++shifts;
            cost = table.fill(words_, shift.first);
        }
        return shifts + cost;
    }

    std::vector<std::string_view> names_;
    Ids words_;
    Reference reference_;
    Beam beam_{reference_};
    WideBeam wide_beam_{reference_};
    Alignment alignment_;
    Shifts shifts_;
};

}  // namespace

void ter_statistics(const TextsView& hypotheses, const ReferencesView& references, std::size_t begin, std::size_t end,
                    MutableView<std::int64_t> out) {
    Segment segment;
    for (std::size_t i = begin; i < end; ++i) {
        segment.read(hypotheses[i]);
        std::int64_t fewest = kInfinity, total = 0;
        for (std::int64_t r = references.offsets[i]; r < references.offsets[i + 1]; ++r) {
            const auto [edits, length] = segment.edits(references.texts[static_cast<std::size_t>(r)]);
            fewest = std::min(fewest, edits);
            total += length;
        }
        out[2 * i] = fewest;
        out[2 * i + 1] = total * (kLengthScale / (references.offsets[i + 1] - references.offsets[i]));
    }
}

}  // namespace lmgauge
