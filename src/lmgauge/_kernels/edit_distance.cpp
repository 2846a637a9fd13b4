#include "edit_distance.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "levenshtein.hpp"

namespace lmgauge {

namespace levenshtein {

void Masks::assign(Symbols pattern, std::uint32_t symbols, bool backwards) {
    const std::size_t size = pattern.size();
    const auto at = [&](std::size_t i) { return pattern[backwards ? size - 1 - i : i]; };
    blocks_ = (size + 63) / 64;
    dense_ = blocks_ <= 1 || symbols * blocks_ <= std::max<std::size_t>(16384, 2 * size);
    if (dense_) {
        words_.assign(symbols * blocks_, 0);
        for (std::size_t i = 0; i < size; ++i) words_[at(i) * blocks_ + i / 64] |= 1ull << i % 64;
        return;
    }
    words_.assign(kRowsAtOnce * blocks_, 0);
    for (std::vector<std::size_t>& filled : filled_) filled.clear();
    offsets_.assign(symbols + 1, 0);
    for (const std::uint32_t symbol : pattern) ++offsets_[symbol + 1];
    for (std::uint32_t s = 0; s < symbols; ++s) offsets_[s + 1] += offsets_[s];
    ends_.assign(offsets_.begin(), offsets_.end() - 1);
    entries_.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
        const std::uint32_t symbol = at(i);
        const std::size_t next = ends_[symbol];
        const bool begun = next > offsets_[symbol] && entries_[next - 1].block == i / 64;
        if (!begun) entries_[ends_[symbol]++] = {i / 64, 0};
        entries_[ends_[symbol] - 1].bits |= 1ull << i % 64;
    }
    lay_out_frequent(symbols);
}

// Few symbols have most of the entries; there are no more than 4 * 64 that are in a quarter of the blocks.
void Masks::lay_out_frequent(std::uint32_t symbols) {
    constexpr std::size_t kShare = 4;
    const auto count = [this](std::uint32_t symbol) { return ends_[symbol] - offsets_[symbol]; };
    rows_.assign(symbols, kNone);
    std::size_t frequent = 0;
    for (std::uint32_t s = 0; s < symbols; ++s) {
        if (kShare * count(s) > blocks_) rows_[s] = frequent++ * blocks_;
    }
    frequent_.assign(frequent * blocks_, 0);
    for (std::uint32_t s = 0; s < symbols; ++s) {
        if (rows_[s] == kNone) continue;
        for (std::size_t i = offsets_[s]; i < ends_[s]; ++i) frequent_[rows_[s] + entries_[i].block] = entries_[i].bits;
    }
}

const std::uint64_t* Masks::spread(std::uint32_t symbol, std::size_t first, std::size_t last, std::size_t row) {
    if (rows_[symbol] != kNone) return frequent_.data() + rows_[symbol];
    std::uint64_t* const words = words_.data() + row * blocks_;
    for (const std::size_t block : filled_[row]) words[block] = 0;
    filled_[row].clear();
    const Word* const end = entries_.data() + ends_[symbol];
    const auto before = [](const Word& word, std::size_t block) { return word.block < block; };
    const Word* entry = std::lower_bound<const Word*>(entries_.data() + offsets_[symbol], end, first, before);
    for (; entry != end && entry->block <= last; ++entry) {
        words[entry->block] = entry->bits;
        filled_[row].push_back(entry->block);
    }
    return words;
}

// A path from diagonal 0 to diagonal d by way of diagonal x costs at least |x| + |d - x|.
Band::Band(std::size_t pattern, std::size_t text, std::size_t bound) : pattern_(static_cast<std::int64_t>(pattern)) {
    const std::int64_t d = pattern_ - static_cast<std::int64_t>(text);
    const std::int64_t spare = (static_cast<std::int64_t>(bound) - std::abs(d)) / 2;
    low_ = std::min<std::int64_t>(d, 0) - spare;
    high_ = std::max<std::int64_t>(d, 0) + spare;
}

std::size_t trim(Symbols& one, Symbols& other) {
    const std::size_t shorter = std::min(one.size(), other.size());
    std::size_t before = 0;
    while (before < shorter && one[before] == other[before]) ++before;
    std::size_t behind = 0;
    while (behind < shorter - before && one[one.size() - 1 - behind] == other[other.size() - 1 - behind]) ++behind;
    one = one.subspan(before, one.size() - before - behind);
    other = other.subspan(before, other.size() - before - behind);
    return before;
}

namespace {

std::size_t length_difference(Symbols one, Symbols other) {
    return one.size() > other.size() ? one.size() - other.size() : other.size() - one.size();
}

// A bound to try where nothing is known, and the next one where it was too small: what was found then is the cost of some
// path, and worth trying unless it is far off.
std::size_t first_guess(Symbols one, Symbols other) {
    const std::size_t longer = std::max(one.size(), other.size());
    return std::min<std::size_t>(longer, length_difference(one, other) + 256);
}
std::size_t next_guess(std::size_t bound, std::size_t found, Symbols one, Symbols other) {
    const std::size_t limit = std::min(found, std::max(one.size(), other.size()));
    return 4 * bound >= limit ? limit : 4 * bound;
}

}  // namespace

EditCounts Aligner::align(Symbols reference, Symbols hypothesis, std::uint32_t symbols,
                          std::vector<std::uint8_t>* operations) {
    symbols_ = symbols;
    operations_ = operations;
    counts_ = {};
    divide(reference, hypothesis, std::max(reference.size(), hypothesis.size()));
    counts_.hits = static_cast<std::int64_t>(reference.size()) - counts_.substitutions - counts_.deletions;
    return counts_;
}

void Aligner::append(Operation operation, std::size_t count) {
    if (operations_ != nullptr) operations_->insert(operations_->end(), count, static_cast<std::uint8_t>(operation));
}

// Where the matrix is small it is kept and traced back; otherwise both are cut in two (Hirschberg 1975). What is small is
// rapidfuzz's choice, since a cut may lead to another of the optimal alignments. `bound`: the distance where it is known.
void Aligner::divide(Symbols reference, Symbols hypothesis, std::size_t bound) {
    const std::size_t whole = reference.size();
    const std::size_t before = trim(reference, hypothesis);
    const std::size_t behind = whole - reference.size() - before;
    append(Operation::equal, before);
    bound = std::min(bound, std::max(reference.size(), hypothesis.size()));
    const std::size_t band = std::min(reference.size(), 2 * bound + 1);
    const std::size_t bytes = 2 * band * hypothesis.size() / 8;
    if (bytes < 1024 * 1024 || reference.size() < 65 || hypothesis.size() < 10) {
        solve(reference, hypothesis, bound);
    } else {
        const Cut cut = find_cut(reference, hypothesis, bound);
        divide(reference.first(cut.reference), hypothesis.first(cut.hypothesis), cut.left);
        divide(reference.subspan(cut.reference), hypothesis.subspan(cut.hypothesis), cut.right);
    }
    append(Operation::equal, behind);
}

void Aligner::solve(Symbols reference, Symbols hypothesis, std::size_t bound) {
    if (reference.empty() || hypothesis.empty()) {
        append(Operation::remove, reference.size());
        append(Operation::insert, hypothesis.size());
        counts_.deletions += static_cast<std::int64_t>(reference.size());
        counts_.insertions += static_cast<std::int64_t>(hypothesis.size());
        return;
    }
    const std::size_t rows = hypothesis.size();
    masks_.assign(reference, symbols_);
    if (reference.size() <= 64) {
        matrix_.resize(std::max(matrix_.size(), rows));
        Block* const kept = matrix_.data();
        Block block;
        const auto last = static_cast<unsigned>(reference.size() - 1);
        std::int64_t distance = static_cast<std::int64_t>(reference.size());
        for (std::size_t row = 0; row < rows; ++row) {
            Carry carry;
            advance(block, *masks_.of(hypothesis[row], 0, 0), carry, last);
            distance += carry.value();
            kept[row] = block;
        }
        pause_.after(rows);
        trace(
            reference, hypothesis, static_cast<std::size_t>(distance),
            [kept](std::size_t row, std::size_t cell) { return (kept[row].up >> cell & 1) != 0; },
            [kept](std::size_t row, std::size_t cell) { return (kept[row].down >> cell & 1) != 0; });
        return;
    }
    const Band band(reference.size(), rows, bound);
    const std::size_t width = band.width();
    matrix_.resize(std::max(matrix_.size(), rows * width));
    Block* const kept = matrix_.data();
    const auto keep = [&](std::size_t row, std::size_t first, std::size_t last) {
        std::copy(blocks_.begin() + static_cast<std::ptrdiff_t>(first),
                  blocks_.begin() + static_cast<std::ptrdiff_t>(last) + 1, kept + row * width);
    };
    const auto text = [&](std::size_t i) { return hypothesis[i]; };
    const std::size_t distance =
        compute_rows(masks_, reference.size(), text, rows, band, blocks_, pause_, keep);
    const auto block_at = [&](std::size_t row, std::size_t cell) -> const Block& {
        return kept[row * width + cell / 64 - band.first(row)];
    };
    const auto reached = [&](std::size_t row, std::size_t cell) {
        return cell / 64 >= band.first(row) && cell / 64 <= band.last(row);
    };
    trace(
        reference, hypothesis, distance,
        [&](std::size_t row, std::size_t cell) { return (block_at(row, cell).up >> cell % 64 & 1) != 0; },
        [&](std::size_t row, std::size_t cell) {
            return reached(row, cell) && (block_at(row, cell).down >> cell % 64 & 1) != 0;
        });
}

// From the end: a deletion where it is on an optimal path, else an insertion if the cell above is one less than the one
// before that, else a step on the diagonal. up(row, cell) and down(row, cell) are bits of the matrix.
template <class Up, class Down>
void Aligner::trace(Symbols reference, Symbols hypothesis, std::size_t distance, Up&& up, Down&& down) {
    if (operations_ != nullptr) return trace_operations(reference, hypothesis, up, down);
    std::size_t cell = reference.size(), row = hypothesis.size(), deletions = 0;
    while (row != 0 && cell != 0) {
        if (up(row - 1, cell - 1)) {
            --cell;
            ++deletions;
        } else {
            --row;
            if (row == 0 || !down(row - 1, cell - 1)) --cell;
        }
    }
    deletions += cell;
    const std::size_t insertions = deletions + hypothesis.size() - reference.size();
    counts_.deletions += static_cast<std::int64_t>(deletions);
    counts_.insertions += static_cast<std::int64_t>(insertions);
    counts_.substitutions += static_cast<std::int64_t>(distance - deletions - insertions);
}

template <class Up, class Down>
void Aligner::trace_operations(Symbols reference, Symbols hypothesis, Up&& up, Down&& down) {
    std::vector<std::uint8_t>& out = *operations_;
    const std::size_t begin = out.size();
    const auto add = [&](Operation operation) { out.push_back(static_cast<std::uint8_t>(operation)); };
    std::size_t cell = reference.size(), row = hypothesis.size();
    while (row != 0 && cell != 0) {
        if (up(row - 1, cell - 1)) {
            --cell;
            add(Operation::remove);
        } else if (--row; row != 0 && down(row - 1, cell - 1)) {
            add(Operation::insert);
        } else {
            --cell;
            add(reference[cell] == hypothesis[row] ? Operation::equal : Operation::substitute);
        }
    }
    for (; cell != 0; --cell) add(Operation::remove);
    for (; row != 0; --row) add(Operation::insert);
    for (std::size_t i = begin; i < out.size(); ++i) {
        counts_.substitutions += out[i] == static_cast<std::uint8_t>(Operation::substitute);
        counts_.deletions += out[i] == static_cast<std::uint8_t>(Operation::remove);
        counts_.insertions += out[i] == static_cast<std::uint8_t>(Operation::insert);
    }
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end());
}

Aligner::Cut Aligner::find_cut(Symbols reference, Symbols hypothesis, std::size_t bound) {
    const bool known = bound < std::max(reference.size(), hypothesis.size());
    if (!known) bound = first_guess(reference, hypothesis);
    for (;;) {
        const Cut cut = cheapest_cut(reference, hypothesis, bound);
        if (cut.total() <= bound) return cut;
        bound = next_guess(bound, cut.total(), reference, hypothesis);
    }
}

namespace {

// All cells of a row from its end: scores[i] is that of cell `begin` + i; cells count from 0, the one before the pattern.
void cells_of_row(const std::vector<Block>& blocks, std::size_t begin, std::size_t end, std::size_t score,
                  std::vector<std::int64_t>& scores) {
    scores.resize(end - begin + 1);
    scores.back() = static_cast<std::int64_t>(score);
    for (std::size_t cell = end; cell > begin; --cell) {
        const Block& block = blocks[(cell - 1) / 64];
        const unsigned bit = (cell - 1) % 64;
        scores[cell - 1 - begin] = scores[cell - begin] - static_cast<std::int64_t>(block.up >> bit & 1) +
                                   static_cast<std::int64_t>(block.down >> bit & 1);
    }
}

}  // namespace

// The hypothesis is cut in the middle, the reference at the first place with the smallest sum of both parts' distances.
Aligner::Cut Aligner::cheapest_cut(Symbols reference, Symbols hypothesis, std::size_t bound) {
    const std::size_t length = reference.size(), middle = hypothesis.size() / 2;
    const Band band(length, hypothesis.size(), bound);
    const auto cells = [&](std::size_t rows, bool backwards, std::vector<std::int64_t>& scores) {
        masks_.assign(reference, symbols_, backwards);
        const auto text = [&](std::size_t i) { return hypothesis[backwards ? hypothesis.size() - 1 - i : i]; };
        const std::size_t score = compute_last_row(masks_, length, text, rows, band, blocks_, pause_);
        const std::size_t begin = 64 * band.first(rows - 1);
        cells_of_row(blocks_, begin, std::min(length, 64 * (band.last(rows - 1) + 1)), score, scores);
        return begin;
    };
    const std::size_t right_begin = cells(hypothesis.size() - middle, true, right_);
    const std::size_t left_begin = cells(middle, false, left_);
    const std::size_t from = std::max(left_begin, length - std::min(length, right_begin + right_.size() - 1));
    const std::size_t to = std::min(left_begin + left_.size() - 1, length - right_begin);
    constexpr std::size_t kFar = std::numeric_limits<std::size_t>::max() / 2;
    Cut best{0, middle, kFar, 0};
    for (std::size_t cell = from; cell <= to; ++cell) {
        const auto left = static_cast<std::size_t>(left_[cell - left_begin]);
        const auto right = static_cast<std::size_t>(right_[length - cell - right_begin]);
        if (left + right < best.total()) best = {cell, middle, left, right};
    }
    return best;
}

}  // namespace levenshtein

namespace {

using levenshtein::Aligner;
using levenshtein::EditCounts;
using levenshtein::Symbols;

// Numbers the units of a segment's reference from 1 and finds those of the hypothesis; others are 0. The
// hash table is cleared by a new stamp.
class Numbers {
  public:
    void start() {
        mask_ = kFirstSlots - 1;
        count_ = 0;
        if (++stamp_ == 0) {
            std::fill(slots_.begin(), slots_.end(), Slot{});
            stamp_ = 1;
        }
    }
    std::uint32_t count() const { return count_; }

    std::uint32_t number(std::string_view word, bool insert) {
        const std::uint64_t hash = hash_of(word);
        for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
            Slot& slot = slots_[at];
            if (slot.stamp != stamp_) {
                return insert ? add(slot, {word.data(), hash, static_cast<std::uint32_t>(word.size())}) : 0;
            }
            const bool same = slot.hash == hash && slot.size == word.size();
            if (same && std::memcmp(slot.data, word.data(), word.size()) == 0) return slot.number;
        }
    }
    std::uint32_t number(char32_t character, bool insert) {
        const std::uint64_t hash = mix(character + 1);
        for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
            Slot& slot = slots_[at];
            if (slot.stamp != stamp_) {
                return insert ? add(slot, {nullptr, hash, character}) : 0;
            }
            if (slot.size == character) return slot.number;
        }
    }

  private:
    struct Slot {
        const char* data = nullptr;
        std::uint64_t hash = 0;
        std::uint32_t size = 0, stamp = 0, number = 0;  // size: for a character, which one
    };
    std::uint32_t add(Slot& slot, Slot filled) {
        filled.stamp = stamp_;
        filled.number = ++count_;
        slot = filled;
        if (2 * count_ > mask_) grow();
        return count_;
    }
    void grow() {
        std::vector<Slot> old(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(mask_) + 1);
        mask_ = 4 * mask_ + 3;
        slots_.assign(std::max(slots_.size(), mask_ + 1), {});
        for (const Slot& slot : old) {
            if (slot.stamp != stamp_) continue;
            std::size_t at = slot.hash & mask_;
            while (slots_[at].stamp == stamp_) at = (at + 1) & mask_;
            slots_[at] = slot;
        }
    }
    static std::uint64_t hash_of(std::string_view word) {
        const char* at = word.data();
        std::size_t left = word.size();
        std::uint64_t hash = left;
        for (; left >= 8; left -= 8, at += 8) {
            std::uint64_t part;
            std::memcpy(&part, at, 8);
            hash = mix(hash ^ part);
        }
        std::uint64_t part = 0;
        for (std::size_t i = 0; i < left; ++i) part = part << 8 | static_cast<unsigned char>(at[i]);
        return mix(hash ^ part);
    }
    static constexpr std::size_t kFirstSlots = 256;
    std::vector<Slot> slots_ = std::vector<Slot>(kFirstSlots);
    std::size_t mask_ = 0;
    std::uint32_t stamp_ = 0, count_ = 0;
};

template <class Unit>
void split(std::string_view text, std::vector<Unit>& units) {
    units.clear();
    if constexpr (std::is_same_v<Unit, std::string_view>) {
        for_each_word(text, [&](std::string_view word) { units.push_back(word); });
    } else {
        const char* at = text.data();
        const char* const end = at + text.size();
        std::size_t kept = 0;
        while (at < end) {
            const char32_t character = next_code_point(at);
            const bool white = is_white_space(character);
            if (white && units.empty()) continue;
            units.push_back(character);
            if (!white) kept = units.size();
        }
        units.resize(kept);
    }
}

// Aligns segments, units of one kind; what both texts begin and end with is taken off before the units are numbered.
template <class Unit>
class SegmentAligner {
  public:
    explicit SegmentAligner(const std::function<void()>& pause) { aligner_.pause().look = pause; }
    void set_hypothesis(std::string_view text) { split(text, hypothesis_); }
    EditCounts align(std::string_view reference_text, std::vector<std::uint8_t>* operations = nullptr) {
        split(reference_text, reference_);
        const std::size_t shorter = std::min(reference_.size(), hypothesis_.size());
        std::size_t before = 0, behind = 0;
        while (before < shorter && reference_[before] == hypothesis_[before]) ++before;
        const auto *one = reference_.data() + reference_.size(), *other = hypothesis_.data() + hypothesis_.size();
        while (behind < shorter - before && one[-1] == other[-1]) ++behind, --one, --other;
        if (operations != nullptr) operations->insert(operations->end(), before, std::uint8_t{0});
        numbers_.start();
        const Symbols reference = number(reference_, before, behind, true, reference_symbols_);
        const Symbols hypothesis = number(hypothesis_, before, behind, false, hypothesis_symbols_);
        EditCounts counts = aligner_.align(reference, hypothesis, numbers_.count() + 1, operations);
        counts.hits += static_cast<std::int64_t>(before + behind);
        if (operations != nullptr) operations->insert(operations->end(), behind, std::uint8_t{0});
        return counts;
    }

  private:
    Symbols number(const std::vector<Unit>& units, std::size_t before, std::size_t behind, bool insert,
                   std::vector<std::uint32_t>& symbols) {
        const std::size_t size = units.size() - before - behind;
        if (symbols.size() < size) symbols.resize(size);
        for (std::size_t i = 0; i < size; ++i) symbols[i] = numbers_.number(units[before + i], insert);
        return {symbols.data(), size};
    }
    std::vector<Unit> reference_, hypothesis_;
    std::vector<std::uint32_t> reference_symbols_, hypothesis_symbols_;
    Numbers numbers_;
    Aligner aligner_;
};

template <class Unit>
void count_edits(const ReferencesView& references, const TextsView& hypotheses, std::size_t begin, std::size_t end,
                 MutableView<std::int64_t> out, const std::function<void()>& pause) {
    SegmentAligner<Unit> aligner(pause);
    for (std::size_t i = begin; i < end; ++i) {
        aligner.set_hypothesis(hypotheses[i]);
        std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
        const auto last = static_cast<std::size_t>(references.offsets[i + 1]);
        for (auto r = static_cast<std::size_t>(references.offsets[i]); r < last; ++r) {
            const EditCounts counts = aligner.align(references.texts[r]);
            if (counts.edits() >= fewest) continue;
            fewest = counts.edits();
            std::int64_t* const row = out.data() + 4 * i;
            row[0] = counts.hits, row[1] = counts.substitutions, row[2] = counts.deletions, row[3] = counts.insertions;
        }
    }
}

template <class Unit>
EditOperations list_edits(const TextsView& references, const TextsView& hypotheses, std::size_t begin, std::size_t end,
                          const std::function<void()>& pause) {
    SegmentAligner<Unit> aligner(pause);
    EditOperations result;
    for (std::size_t i = begin; i < end; ++i) {
        aligner.set_hypothesis(hypotheses[i]);
        aligner.align(references[i], &result.operations);
        result.ends.push_back(static_cast<std::int64_t>(result.operations.size()));
    }
    return result;
}

}  // namespace

void edit_counts(const ReferencesView& references, const TextsView& hypotheses, EditUnit unit, std::size_t begin,
                 std::size_t end, MutableView<std::int64_t> out, const std::function<void()>& pause) {
    const auto count = unit == EditUnit::word ? count_edits<std::string_view> : count_edits<char32_t>;
    count(references, hypotheses, begin, end, out, pause);
}

EditOperations edit_operations(const TextsView& references, const TextsView& hypotheses, EditUnit unit, std::size_t begin,
                               std::size_t end, const std::function<void()>& pause) {
    const auto list = unit == EditUnit::word ? list_edits<std::string_view> : list_edits<char32_t>;
    return list(references, hypotheses, begin, end, pause);
}

}  // namespace lmgauge
