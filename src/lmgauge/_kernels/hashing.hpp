// Hashing, prefetching, and the layout of the tables in which n-grams are counted. `packed.hpp` has that of
// finished models.
//
// A table of counting is an array of 16-byte entries. An entry holds
//   key    64 bits: (parent << 32 | word) + 1, where parent says which (k-1)-gram stands before the word (for k = 2 the word
//                   id itself); 0 marks an empty slot, so that fresh zero pages are an empty table
//   first  32 bits: the count
//   second 32 bits: the number of the n-gram, by which it is known
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace lmgauge {

struct Entry {
    std::uint64_t key;
    std::uint32_t first;
    std::uint32_t second;
};
static_assert(sizeof(Entry) == 16);

constexpr std::uint32_t kNone = 0xFFFFFFFFu;  // no such n-gram
constexpr std::uint32_t kUnk = 0, kBos = 1, kEos = 2;

// Kernels are called with arrays from outside. Shapes are checked in the bindings; what an array holds is checked where it
// becomes an index, as a look of its own would cost a pass over memory.
inline void require(bool sound, const char* what) {
    if (!sound) [[unlikely]] throw std::invalid_argument(what);
}

inline void prefetch(const void* p) {
#if defined(_MSC_VER) && (defined(_M_ARM64) || defined(_M_ARM64EC))
    __prefetch(p);
#elif defined(_MSC_VER)
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
#else
    __builtin_prefetch(p, 0, 3);
#endif
}

inline void prefetch_for_write(const void* p) {
#if defined(_MSC_VER) && (defined(_M_ARM64) || defined(_M_ARM64EC))
    __prefetch(p);
#elif defined(_MSC_VER)
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
#else
    __builtin_prefetch(p, 1, 3);
#endif
}

// The address of an element that may not be there: it is prefetched, never used.
template <class Items>
const void* address_of(const Items& items, std::uint64_t i) {
    return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(items.data()) +
                                         static_cast<std::uintptr_t>(i) * sizeof(*items.data()));
}

// A flag that several threads set. One that is set is not written again: the cache line stays shared.
inline void set_flag(std::uint8_t* flag) {
#if defined(_MSC_VER)
    if (*static_cast<volatile std::uint8_t*>(flag) == 0) *static_cast<volatile std::uint8_t*>(flag) = 1;
#else
    if (__atomic_load_n(flag, __ATOMIC_RELAXED) == 0) __atomic_store_n(flag, std::uint8_t{1}, __ATOMIC_RELAXED);
#endif
}

// The upper half of the product of two numbers.
inline std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
#if defined(_MSC_VER)
    return __umulh(a, b);
#else
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#endif
}

inline std::uint64_t mix(std::uint64_t x) {
    x *= 0x9E3779B97F4A7C15ull;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ull;
    x ^= x >> 29;
    return x;
}

inline std::uint64_t make_key(std::uint32_t parent, std::uint32_t word) {
    return ((static_cast<std::uint64_t>(parent) << 32) | word) + 1;
}
inline std::uint32_t key_parent(std::uint64_t key) { return static_cast<std::uint32_t>((key - 1) >> 32); }
inline std::uint32_t key_word(std::uint64_t key) { return static_cast<std::uint32_t>(key - 1); }

// The slot behind another in a table of mask + 1 slots. A search that comes back to where it began would never end.
inline std::size_t next_slot(std::size_t slot, std::size_t mask, std::size_t first) {
    slot = (slot + 1) & mask;
    require(slot != first, "a hash table without an empty slot");
    return slot;
}

inline float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t as_bits(float value) { return std::bit_cast<std::uint32_t>(value); }

}  // namespace lmgauge
