#include "levenshtein.hpp"

// Eight rows of a matrix at once, each a block behind the one above it: what a row needs of a block is ready when it comes
// there. Two registers hold a word of each row; without AVX2 rows are moved one after the other.
//
//     step        s          s + 1
//     row 0   block s     block s + 1
//     row 1   block s - 1 block s          its input is what row 0 made of that block a step before
//     row 7   block s - 7 block s - 6

#if defined(__x86_64__) && defined(__GNUC__)
#define LMGAUGE_AVX2 1
#endif

namespace lmgauge::levenshtein {

namespace {

void advance_row(const std::uint64_t* words, Block* blocks, std::size_t first, std::size_t end, Carry& carry) {
    for (std::size_t b = first; b < end; ++b) advance(blocks[b], words[b], carry, 63);
}

#ifdef LMGAUGE_AVX2

constexpr std::size_t kBehind = kRowsAtOnce - 1, kLanes = 4;
typedef std::uint64_t Lanes __attribute__((vector_size(8 * kLanes)));

// `advance` for a block of each of four rows.
#define LMGAUGE_ADVANCE(up, down, more, less, matches)                                                             \
    do {                                                                                                           \
        const Lanes x = (matches) | (less), level = ((((x & (up)) + (up)) ^ (up)) | x) | (down);                   \
        const Lanes rising = (down) | ~(level | (up)), falling = level & (up);                                     \
        const Lanes rising_before = rising << 1 | (more), falling_before = falling << 1 | (less);                  \
        (more) = rising >> 63, (less) = falling >> 63;                                                             \
        (up) = falling_before | ~(level | rising_before), (down) = rising_before & level;                          \
    } while (false)

// Steps first + kBehind to last (excluded). The rows above have been moved at the blocks before.
__attribute__((target("avx2"))) void advance_together(const std::uint64_t* const* words, Block* blocks, std::size_t first,
                                                      std::size_t last, Carry* carries) {
    std::uint64_t state[4][kRowsAtOnce] = {};  // up, down, more, less of each row
    for (std::size_t r = 0; r < kRowsAtOnce; ++r) {
        state[2][r] = carries[r].more, state[3][r] = carries[r].less;
        if (r < kBehind) state[0][r] = blocks[first + kBehind - 1 - r].up, state[1][r] = blocks[first + kBehind - 1 - r].down;
    }
    const auto load = [&state](std::size_t which, std::size_t r) __attribute__((target("avx2"), always_inline)) {
        const std::uint64_t* const at = state[which] + r;
        return Lanes{at[0], at[1], at[2], at[3]};
    };
    Lanes up0 = load(0, 0), up1 = load(0, 4), down0 = load(1, 0), down1 = load(1, 4);
    Lanes more0 = load(2, 0), more1 = load(2, 4), less0 = load(3, 0), less1 = load(3, 4);
    const std::uint64_t *const w0 = words[0], *const w1 = words[1], *const w2 = words[2], *const w3 = words[3];
    const std::uint64_t *const w4 = words[4], *const w5 = words[5], *const w6 = words[6], *const w7 = words[7];
    for (std::size_t s = first + kBehind; s < last; ++s) {
        const std::uint64_t above_up = blocks[s].up, above_down = blocks[s].down;
        const Lanes top_up = {above_up, 0, 0, 0}, top_down = {above_down, 0, 0, 0};
        up1 = __builtin_shufflevector(up0, up1, 3, 4, 5, 6);
        down1 = __builtin_shufflevector(down0, down1, 3, 4, 5, 6);
        up0 = __builtin_shufflevector(top_up, up0, 0, 4, 5, 6);
        down0 = __builtin_shufflevector(top_down, down0, 0, 4, 5, 6);
        const Lanes matches0 = {w0[s], w1[s - 1], w2[s - 2], w3[s - 3]};
        const Lanes matches1 = {w4[s - 4], w5[s - 5], w6[s - 6], w7[s - 7]};
        LMGAUGE_ADVANCE(up0, down0, more0, less0, matches0);
        LMGAUGE_ADVANCE(up1, down1, more1, less1, matches1);
        blocks[s - kBehind] = {up1[kLanes - 1], down1[kLanes - 1]};
    }
    for (std::size_t r = 0; r < kRowsAtOnce; ++r) {
        const std::size_t lane = r % kLanes;
        carries[r] = r < kLanes ? Carry{more0[lane], less0[lane]} : Carry{more1[lane], less1[lane]};
        if (r < kBehind) blocks[last - 1 - r] = r < kLanes ? Block{up0[lane], down0[lane]} : Block{up1[lane], down1[lane]};
    }
}

#undef LMGAUGE_ADVANCE
#endif

}  // namespace

void advance_rows(const std::uint64_t* const* words, Block* blocks, std::size_t first, std::size_t last, Carry* carries) {
#ifdef LMGAUGE_AVX2
    static const bool has_avx2 = __builtin_cpu_supports("avx2");
    if (has_avx2 && last - first >= 2 * kRowsAtOnce) {
        for (std::size_t r = 0; r < kBehind; ++r) advance_row(words[r], blocks, first, first + kBehind - r, carries[r]);
        advance_together(words, blocks, first, last, carries);
        for (std::size_t r = 1; r < kRowsAtOnce; ++r) advance_row(words[r], blocks, last - r, last, carries[r]);
        return;
    }
#endif
    for (std::size_t r = 0; r < kRowsAtOnce; ++r) advance_row(words[r], blocks, first, last, carries[r]);
}

}  // namespace lmgauge::levenshtein
