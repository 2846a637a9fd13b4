// Levenshtein distances by bit-parallel rows, 64 cells at once: Myers (1999), in the form of Hyyrö (2003).
//
// D[j][i] is the distance between the first j symbols of the text and the first i of the pattern. A row is kept as its
// differences D[j][i] - D[j][i - 1], two bits a cell, in blocks of 64 cells. Symbols are small dense numbers. Where an
// upper bound of the distance is known, only the blocks that a path of that cost can reach are computed (Ukkonen 1985):
// cells on such paths are exact, the others never too small.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels.hpp"

namespace lmgauge::levenshtein {

using Symbols = View<std::uint32_t>;

// Cell i of a row is one more (`up`) or one less (`down`) than cell i - 1, or the same.
struct Block {
    std::uint64_t up = ~0ull, down = 0;
};

// By how much a cell differs from the one above it: one more, one less (never both), or neither.
struct Carry {
    std::uint64_t more = 1, less = 0;
    int value() const { return static_cast<int>(more) - static_cast<int>(less); }
};

// Moves a block one row down. `carry` is that of the cell before the block and becomes that of its cell `last`.
inline void advance(Block& block, std::uint64_t matches, Carry& carry, unsigned last) {
    const std::uint64_t up = block.up, down = block.down;
    const std::uint64_t x = matches | carry.less;
    const std::uint64_t level = (((x & up) + up) ^ up) | x | down;  // cells that are as their neighbour up and left
    const std::uint64_t more = down | ~(level | up), less = level & up;
    const std::uint64_t more_before = more << 1 | carry.more, less_before = less << 1 | carry.less;
    carry = {more >> last & 1, less >> last & 1};
    block.up = less_before | ~(level | more_before);
    block.down = more_before & level;
}

// Called now and then by long computations; it may throw, to end them.
struct Pause {
    std::function<void()> look;
    std::size_t work = 0;
    void after(std::size_t blocks) {
        if ((work += blocks) < std::size_t{1} << 25) return;
        work = 0;
        if (look) look();
    }
};

constexpr std::size_t kRowsAtOnce = 8;

// Moves blocks first to last (excluded) down by kRowsAtOnce rows. words[r][block]: where in the pattern the symbol of row r
// is; carries[r]: of the cell before block `first`, becomes that of the last cell of block `last` - 1.
void advance_rows(const std::uint64_t* const* words, Block* blocks, std::size_t first, std::size_t last, Carry* carries);

// Where in the pattern each symbol is, 64 places to a word.
class Masks {
  public:
    // All symbols are below `symbols`. `backwards`: of the pattern read from its end.
    void assign(Symbols pattern, std::uint32_t symbols, bool backwards = false);
    std::size_t blocks() const { return blocks_; }
    // The words of blocks first to last, at [first] to [last]; until the next call for the same row (of kRowsAtOnce).
    const std::uint64_t* of(std::uint32_t symbol, std::size_t first, std::size_t last, std::size_t row = 0) {
        return dense_ ? words_.data() + symbol * blocks_ : spread(symbol, first, last, row);
    }

  private:
    struct Word {
        std::size_t block;
        std::uint64_t bits;
    };
    void lay_out_frequent(std::uint32_t symbols);
    const std::uint64_t* spread(std::uint32_t symbol, std::size_t first, std::size_t last, std::size_t row);
    std::size_t blocks_ = 0;
    bool dense_ = true;
    std::vector<std::uint64_t> words_;  // dense: [symbol][block]; otherwise of one symbol a row, [row][block]
    // Otherwise: entries offsets_[s] to ends_[s] are the words of symbol s that are not zero.
    std::vector<std::size_t> offsets_, ends_, filled_[kRowsAtOnce];
    std::vector<Word> entries_;
    // The words of frequent symbols, [block]; rows_[s]: where those of symbol s begin, kNone if it is not one of them.
    static constexpr std::size_t kNone = ~std::size_t{0};
    std::vector<std::uint64_t> frequent_;
    std::vector<std::size_t> rows_;
};

// The blocks that paths of cost `bound` or less can reach, row by row (rows count from 0). `bound` is at least the
// difference of the lengths.
class Band {
  public:
    Band(std::size_t pattern, std::size_t text, std::size_t bound);
    std::size_t first(std::size_t row) const {
        const std::int64_t cell = static_cast<std::int64_t>(row) + 1 + low_;
        return cell <= 1 ? 0 : static_cast<std::size_t>(cell - 1) / 64;
    }
    std::size_t last(std::size_t row) const {
        const std::int64_t cell = static_cast<std::int64_t>(row) + 1 + high_;
        return static_cast<std::size_t>(std::min(cell, pattern_) - 1) / 64;
    }
    // No row has more blocks than this.
    std::size_t width() const { return static_cast<std::size_t>(std::min(high_ - low_ + 64, pattern_ + 63)) / 64 + 1; }

  private:
    std::int64_t pattern_, low_, high_;
};

// Computes the first `rows` rows of the matrix of a pattern of `length` symbols, whose masks are given, and the symbols
// text(0), text(1), ...; calls done(row, first block, last block) after each, with the row in `blocks`. Returns the cell
// at the end of the last row's last block.
template <class Text, class Done>
std::size_t compute_rows(Masks& masks, std::size_t length, Text&& text, std::size_t rows, const Band& band,
                         std::vector<Block>& blocks, Pause& pause, Done&& done) {
    blocks.assign(masks.blocks(), Block{});
    const std::size_t final_block = masks.blocks() - 1;
    const auto end_of = [&](std::size_t block) { return std::min(length, 64 * (block + 1)); };
    const unsigned final_bit = (length - 1) % 64;
    std::size_t last = band.last(0), score = end_of(last);
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t first = band.first(row), before = last;
        last = band.last(row);
        score += end_of(last) - end_of(before);  // a block that enters is taken to rise by one with every cell
        const std::uint64_t* const words = masks.of(text(row), first, last);
        Carry carry;
        for (std::size_t b = first; b < last; ++b) advance(blocks[b], words[b], carry, 63);
        advance(blocks[last], words[last], carry, last == final_block ? final_bit : 63);
        score = static_cast<std::size_t>(static_cast<std::int64_t>(score) + carry.value());
        pause.after(last - first + 1);
        done(row, first, last);
    }
    return score;
}

// The same for the last row alone, and faster: several rows at a time, all with the blocks that one of them can reach.
template <class Text>
std::size_t compute_last_row(Masks& masks, std::size_t length, Text&& text, std::size_t rows, const Band& band,
                             std::vector<Block>& blocks, Pause& pause) {
    blocks.assign(masks.blocks(), Block{});
    const std::size_t final_block = masks.blocks() - 1;
    const auto end_of = [&](std::size_t block) { return std::min(length, 64 * (block + 1)); };
    std::size_t last = band.last(0), score = end_of(last);
    const std::uint64_t* words[kRowsAtOnce];
    Carry carries[kRowsAtOnce];
    for (std::size_t row = 0; row < rows;) {
        const std::size_t together = rows - row < kRowsAtOnce ? 1 : kRowsAtOnce;
        const std::size_t first = band.first(row), before = last;
        last = band.last(row + together - 1);
        score += end_of(last) - end_of(before);
        for (std::size_t r = 0; r < together; ++r) {
            words[r] = masks.of(text(row + r), first, last, r);
            carries[r] = {};
        }
        if (together > 1) {
            advance_rows(words, blocks.data(), first, last, carries);
        } else {
            for (std::size_t b = first; b < last; ++b) advance(blocks[b], words[0][b], carries[0], 63);
        }
        const unsigned last_bit = last == final_block ? (length - 1) % 64 : 63;
        std::int64_t change = 0;
        for (std::size_t r = 0; r < together; ++r) {
            advance(blocks[last], words[r][last], carries[r], last_bit);
            change += carries[r].value();
        }
        score = static_cast<std::size_t>(static_cast<std::int64_t>(score) + change);
        pause.after(together * (last - first + 1));
        row += together;
    }
    return score;
}

// Takes what both begin and end with from both; returns with how many symbols they both begin.
std::size_t trim(Symbols& one, Symbols& other);

enum class Operation : std::uint8_t { equal = 0, substitute = 1, remove = 2, insert = 3 };

struct EditCounts {
    std::int64_t hits = 0, substitutions = 0, deletions = 0, insertions = 0;
    std::int64_t edits() const { return substitutions + deletions + insertions; }
};

// Optimal alignments; of several the one that rapidfuzz takes, which decides how many edits are substitutions.
class Aligner {
  public:
    Pause& pause() { return pause_; }
    // What makes the hypothesis of the reference. Symbols are below `symbols`, those of the reference above 0; the
    // hypothesis has 0 for all that the reference does not have. All are appended to `operations` (may be null), in order.
    EditCounts align(Symbols reference, Symbols hypothesis, std::uint32_t symbols,
                     std::vector<std::uint8_t>* operations = nullptr);

  private:
    // Where to cut both, and the distances of the parts.
    struct Cut {
        std::size_t reference, hypothesis, left, right;
        std::size_t total() const { return left + right; }
    };
    void divide(Symbols reference, Symbols hypothesis, std::size_t bound);
    void solve(Symbols reference, Symbols hypothesis, std::size_t bound);
    Cut find_cut(Symbols reference, Symbols hypothesis, std::size_t bound);
    Cut cheapest_cut(Symbols reference, Symbols hypothesis, std::size_t bound);
    template <class Up, class Down>
    void trace(Symbols reference, Symbols hypothesis, std::size_t distance, Up&& up, Down&& down);
    template <class Up, class Down>
    void trace_operations(Symbols reference, Symbols hypothesis, Up&& up, Down&& down);
    void append(Operation operation, std::size_t count);

    Masks masks_;
    std::vector<Block> blocks_;
    Pause pause_;
    std::uint32_t symbols_ = 0;
    std::vector<Block> matrix_;
    std::vector<std::int64_t> left_, right_;
    std::vector<std::uint8_t>* operations_ = nullptr;
    EditCounts counts_;
};

}  // namespace lmgauge::levenshtein
