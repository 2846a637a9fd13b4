// The tables of a finished model, which are only read: smaller than those of counting, and one cache line a probe.
//
// A table is an array of 64-byte lines of sixteen 32-bit words:
//
//   order 2 .. n - 1   5 keys, marks, 5 probabilities, 5 back-off weights      (12 bytes an entry)
//   order n            7 keys, marks, 7 probabilities, one unused word         (8 bytes an entry)
//
// The n-gram is the pair of the slot of its beginning in the table below (order 2: a word id) and its last word, a number of
// `bits` bits. A one-to-one function scatters these numbers over 0 .. 2^bits - 1; the result h says at which line the search
// begins, its home: line floor(h * homes / 2^bits). So the line itself says the upper bits of h, and an entry needs to store
// only the lower 28 (Cleary 1984, "Compact hash tables using bidirectional linear probing"). There are at least
// 2^(bits - 27) homes, so nothing is lost: h, and with it parent and word, follow from line and key.
//
//   key           28 bits of h, then 4 bits: by how many lines the entry is behind its home, and one; 0: an empty place
//   marks         a bit for each value of 5 bits of h: an entry with these bits and this line on its way had to go further
//   probability   float, linear; negative for a "blank": an n-gram that is no event of the model, held because longer ones
//                 contain it, with the probability backing off gives it
//   weight        float, linear; -1 stands for 1 where nothing longer begins with the n-gram
//
// Entries lie in the order of h, each at the first free place from its home on, so the bytes of a table follow from what is
// in it. The slot of an n-gram, which is its id, is the number of its place: width * line + place in the line.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "hashing.hpp"

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#endif

namespace lmgauge {

struct alignas(16) Line {    // as NumPy's memory is at least; aligned to 64 bytes, a line is one of the cache's
    std::uint32_t words[16];
};
static_assert(sizeof(Line) == 64);

constexpr std::uint32_t kSpareLines = 15;     // behind the last home: an entry lies at most 14 lines behind its own
constexpr std::uint32_t kFarthest = kSpareLines - 1;
constexpr int kStoredBits = 28, kLeastHomeBits = 27;
constexpr int kMostBits = 56;

constexpr std::uint64_t inverse(std::uint64_t odd) {    // modulo 2^64 (Newton: each step doubles the bits that fit)
    std::uint64_t x = odd;
    for (int i = 0; i < 5; ++i) x *= 2 - odd * x;
    return x;
}

// Parent and word of every entry as one number, scattered.
struct Scatter {
    static constexpr std::uint64_t kFirst = 0x9E3779B97F4A7C15ull, kSecond = 0xD6E8FEB86659FD93ull;
    int shift = 62, fold = 1, word_bits = 1;      // the number stands in the upper `64 - shift` bits
    std::uint64_t mask = 0;                       // of these bits

    Scatter() = default;
    Scatter(std::uint64_t parents, std::uint64_t words) {
        const auto bits_for = [](std::uint64_t n) { return n > 2 ? static_cast<int>(std::bit_width(n - 1)) : 1; };
        word_bits = bits_for(words);
        const int bits = word_bits + bits_for(parents);
        shift = 64 - bits;
        fold = (bits + 1) / 2;
        mask = ~std::uint64_t{0} << shift;
    }
    int bits() const { return 64 - shift; }

    std::uint64_t operator()(std::uint32_t parent, std::uint32_t word) const {
        std::uint64_t y = (((static_cast<std::uint64_t>(parent) << word_bits) | word) * kFirst) << shift;
        y ^= (y >> fold) & mask;
        return y * kSecond;
    }
    // The number that was scattered: parent << word_bits | word.
    std::uint64_t undo(std::uint64_t y) const {
        y *= inverse(kSecond);
        y ^= (y >> fold) & mask;
        return ((y >> shift) * inverse(kFirst)) & (~std::uint64_t{0} >> shift);
    }
    std::uint32_t parent_of(std::uint64_t pair) const { return static_cast<std::uint32_t>(pair >> word_bits); }
    std::uint32_t word_of(std::uint64_t pair) const {
        return static_cast<std::uint32_t>(pair & ((std::uint64_t{1} << word_bits) - 1));
    }
};

struct Ngram {
    std::uint32_t parent, word;
};

// Where the search for an n-gram begins, and the key that it has there.
struct Place {
    std::size_t line;
    std::uint32_t key;
};

// One line, whose layout is known when compiled: 5 places, or 7 for the highest order.
template <std::uint32_t kPlaces>
struct LineOf {
    static constexpr std::uint32_t kWidth = kPlaces, kProbability = kWidth + 1, kWeight = 2 * kWidth + 1;

    // A bit for each place that holds the key. Eight words are compared, the keys first.
    static unsigned hits(const Line& line, std::uint32_t key) {
#if defined(__SSE2__) || defined(_M_X64)
        const auto* words = reinterpret_cast<const __m128i*>(line.words);
        const __m128i keys = _mm_set1_epi32(static_cast<int>(key));
        const __m128 low = _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_load_si128(words), keys));
        const __m128 high = _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_load_si128(words + 1), keys));
        const auto all = static_cast<unsigned>(_mm_movemask_ps(low)) | static_cast<unsigned>(_mm_movemask_ps(high)) << 4;
        return all & ((1u << kWidth) - 1);
#else
        unsigned all = 0;
        for (std::uint32_t i = 0; i < kWidth; ++i) all |= static_cast<unsigned>(line.words[i] == key) << i;
        return all;
#endif
    }
    // Whether an entry with this key and home, or one that looks alike, had to go further.
    static bool passed(const Line& line, std::uint32_t key) { return (line.words[kWidth] >> ((key >> 4) & 31)) & 1; }
};

using MiddleLine = LineOf<5>;
using LastLine = LineOf<7>;

struct TableView {
    const Line* lines = nullptr;
    std::uint64_t homes = 0;
    std::uint64_t step = 0;        // 2^64 / homes, rounded down
    Scatter scatter;
    bool last = false;             // the highest order: no back-off weights
    std::uint32_t width = 5;

    TableView() = default;
    // `rows` counts all lines, at least one of them a home. Slots of parents are below `parents`, words below `words`.
    TableView(const Line* lines_, std::uint64_t rows, std::uint64_t parents, std::uint64_t words, bool last_)
        : lines(lines_), homes(rows - kSpareLines), step(~std::uint64_t{0} / homes), scatter(parents, words), last(last_),
          width(last_ ? LastLine::kWidth : MiddleLine::kWidth) {}

    // Whether the keys of a table of this size tell its n-grams apart.
    static bool fits(std::uint64_t rows, std::uint64_t parents, std::uint64_t words) {
        const int bits = Scatter(parents, words).bits();
        return rows > kSpareLines && bits <= kMostBits &&
               (bits <= kLeastHomeBits || rows - kSpareLines >= std::uint64_t{1} << (bits - kLeastHomeBits));
    }

    std::size_t rows() const { return static_cast<std::size_t>(homes) + kSpareLines; }
    std::size_t size() const { return rows() * width; }    // slots

    Place place(std::uint64_t scattered) const {
        const auto low = static_cast<std::uint32_t>(scattered >> scatter.shift);
        return {static_cast<std::size_t>(multiply_high(scattered, homes)), low << 4 | 1};
    }
    Place place(std::uint32_t parent, std::uint32_t word) const { return place(scatter(parent, word)); }
    void fetch(std::uint32_t parent, std::uint32_t word) const { prefetch(&lines[place(parent, word).line]); }

    unsigned hits(const Line& line, std::uint32_t key) const {
        return last ? LastLine::hits(line, key) : MiddleLine::hits(line, key);
    }
    bool passed(const Line& line, std::uint32_t key) const {
        return last ? LastLine::passed(line, key) : MiddleLine::passed(line, key);
    }

    // The slot of an n-gram, kNone where there is no such n-gram.
    std::uint32_t find(std::uint32_t parent, std::uint32_t word) const {
        const Place start = place(parent, word);
        for (std::uint32_t distance = 0; distance <= kFarthest; ++distance) {
            const Line& line = lines[start.line + distance];
            const unsigned all = hits(line, start.key + distance);
            if (all != 0) {
                return static_cast<std::uint32_t>((start.line + distance) * width) + static_cast<std::uint32_t>(std::countr_zero(all));
            }
            if (!passed(line, start.key)) break;
        }
        return kNone;
    }

    const std::uint32_t* words_of(std::uint32_t slot) const { return lines[slot / width].words; }
    bool used(std::uint32_t slot) const { return words_of(slot)[slot % width] != 0; }
    float probability(std::uint32_t slot) const { return as_float(words_of(slot)[width + 1 + slot % width]); }    // below zero: of a blank
    float weight(std::uint32_t slot) const {
        return last ? 1.0f : std::fabs(as_float(words_of(slot)[MiddleLine::kWeight + slot % width]));
    }
    // False where no longer n-gram begins with this one, and its weight is 1: it cannot matter for what comes.
    bool extends(std::uint32_t slot) const {
        return !last && !std::signbit(as_float(words_of(slot)[MiddleLine::kWeight + slot % width]));
    }

    // The number of an entry before it was scattered, from its line and its key (not 0).
    std::uint64_t scattered_at(std::size_t row, std::uint32_t key) const {
        const std::uint64_t home = row - ((key & 15) - 1);
        const std::uint64_t low = (std::uint64_t{1} << kStoredBits) - 1;
        // No more than h of the first number that has this home, and less by at most 2^21: so the 28 bits fit once.
        const std::uint64_t start = (home * step) >> scatter.shift;
        return (start + (((key >> 4) - start) & low)) << scatter.shift;
    }
    Ngram ngram(std::size_t row, std::uint32_t key) const {
        const std::uint64_t pair = scatter.undo(scattered_at(row, key));
        return {scatter.parent_of(pair), scatter.word_of(pair)};
    }
    Ngram ngram(std::uint32_t slot) const { return ngram(slot / width, words_of(slot)[slot % width]); }

    // Calls work(slot, line, place) for the entries of lines [begin, end), in order.
    template <class Work>
    void for_each(std::size_t begin, std::size_t end, Work work) const {
        for (std::size_t row = begin; row < end; ++row) {
            for (std::uint32_t i = 0; i < width; ++i) {
                if (lines[row].words[i] != 0) work(static_cast<std::uint32_t>(row * width + i), lines[row], i);
            }
        }
    }
};

}  // namespace lmgauge
