// KenLM's binary files, as its build_binary writes them (format version 5): where everything lies, and how it is read.
//
//   header      56 bytes of magic, test values that tell other machines, then order, model type, counts of n-grams
//   vocabulary  probing: a table of (MurmurHash64A of the word, id); trie: the sorted hashes, a word's place being its id
//   search      probing: unigrams by id, then for each order a table keyed by a hash over the words from the last to the first
//               trie: (quantization tables), unigrams by id with a pointer each, then for each order an array of bit-packed
//               (word, probability, back-off weight, pointer): the children of an n-gram, its extensions to the left by one
//               word, lie between its pointer and the next one's, sorted by word
//   words       each followed by a zero byte, by id; may be missing
//
// Values are log10. A back-off weight of -0.0 says that no longer n-gram begins with this one; in probing files, the sign bit
// of a probability that none ends with it. Nothing in a file is trusted: `open_kenlm` checks that all parts fit into it, every
// pointer is clamped where it is used, and every search is bounded, so that damaged bytes give wrong numbers at worst.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "reader.hpp"

namespace lmgauge {

enum class KenlmKind : std::uint32_t { probing = 0, trie = 2, quantized = 3, array = 4, quantized_array = 5 };

inline bool is_trie(KenlmKind kind) { return kind != KenlmKind::probing; }
inline bool is_quantized(KenlmKind kind) { return kind == KenlmKind::quantized || kind == KenlmKind::quantized_array; }
inline bool is_array(KenlmKind kind) { return kind == KenlmKind::array || kind == KenlmKind::quantized_array; }

// What decides where everything lies. `kind` and the bits are those of build_binary's type, -q, -b and -a.
struct KenlmShape {
    KenlmKind kind = KenlmKind::probing;
    std::vector<std::uint64_t> counts;    // n-grams of order 1, 2, ...
    float multiplier = 1.5f;              // probing: room in the tables
    unsigned probability_bits = 8, backoff_bits = 8, array_bits = 22;
    unsigned order() const { return static_cast<unsigned>(counts.size()); }
};

// The n-grams of one order from 2.
struct KenlmLevel {
    std::uint64_t at = 0;            // of its first byte in the file; of an array, the first byte of the packed entries
    std::uint64_t buckets = 0;       // probing
    std::uint64_t inverse = 0;       // probing: 2^64 / buckets, rounded down
    std::uint64_t entries = 0;
    unsigned word_bits = 0, value_bits = 0, next_bits = 0;    // trie: of one entry, in this order
    std::uint64_t offsets_at = 0, offsets = 0;                // array: where the upper halves of pointers begin, how many
    std::uint64_t header_at = 0;                              // array: two bytes, version and bits
    std::uint64_t probabilities_at = 0, backoffs_at = 0;      // quantized: tables of float
    unsigned bits() const { return word_bits + value_bits + next_bits; }
};

struct KenlmLayout {
    KenlmShape shape;
    std::uint64_t vocabulary = 0, unigrams = 0, quantization = 0, end = 0;    // where they begin; words, if any, from `end`
    std::uint64_t vocabulary_buckets = 0;    // probing
    std::vector<KenlmLevel> levels;          // of order 2, 3, ...
};

constexpr std::size_t kKenlmSanity = 88;    // bytes of magic and test values

inline std::uint64_t combine_kenlm(std::uint64_t key, std::uint32_t word) {
    return (key * 8978948897894561157ull) ^ (static_cast<std::uint64_t>(word + 1u) * 17894857484156487943ull);
}
std::uint64_t hash_kenlm_word(const std::uint8_t* data, std::size_t size);    // MurmurHash64A by Austin Appleby, public domain

inline unsigned bits_for(std::uint64_t largest) { return static_cast<unsigned>(std::bit_width(largest)); }

template <class T>
T load_as(const std::uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}
// Up to 57 bits from a bit position; eight bytes can be read from where they begin.
inline std::uint64_t load_bits(const std::uint8_t* base, std::uint64_t position, unsigned bits) {
    return (load_as<std::uint64_t>(base + (position >> 3)) >> (position & 7)) & ((std::uint64_t{1} << bits) - 1);
}

// Exact, as `inverse` is too small by less than one part in 2^64 of what is divided.
inline std::uint64_t modulo(std::uint64_t value, std::uint64_t divisor, std::uint64_t inverse) {
    const std::uint64_t rest = value - multiply_high(value, inverse) * divisor;
    return rest >= divisor ? rest - divisor : rest;
}
inline std::uint64_t inverse_of(std::uint64_t divisor) {
    return ~std::uint64_t{0} / divisor;
}

// A file, opened for lookups.
struct KenlmFile {
    View<std::uint8_t> data;
    KenlmLayout layout;
    bool has_words = false;
    std::uint64_t bound = 0;             // words, <unk> among them
    std::uint32_t begin = 0, end = 0;    // ids in the file of <s> and </s>; 0, that of <unk>, where they are missing

    unsigned order() const { return layout.shape.order(); }
    const std::uint8_t* at(std::uint64_t position) const { return data.data() + position; }
    // Here <unk>, <s> and </s> are 0, 1 and 2, and the others follow in the order of the file.
    std::uint32_t theirs(std::uint32_t ours) const {
        if (ours <= kEos) return ours == kUnk ? 0 : ours == kBos ? begin : end;
        std::uint32_t id = ours - 2;
        id += id >= low_ && low_ > 0;
        id += id >= high_ && high_ > 0;
        return id;
    }
    std::uint32_t ours(std::uint32_t theirs) const {
        if (theirs == 0) return kUnk;
        if (theirs == begin) return kBos;
        if (theirs == end) return kEos;
        return theirs + 2 - (theirs > low_ && low_ > 0) - (theirs > high_ && high_ > 0);
    }
    std::uint64_t our_words() const { return bound + 2 - (low_ > 0) - (high_ > 0); }
    void set_specials(std::uint32_t begin_id, std::uint32_t end_id) {
        begin = begin_id;
        end = end_id;
        low_ = std::min(begin, end);
        high_ = std::max(begin, end);
    }
    // Id in the file of a word, 0 if it is not there.
    std::uint32_t find_word(const std::uint8_t* word, std::size_t size) const;

  private:
    std::uint32_t low_ = 0, high_ = 0;
};

// Throws std::invalid_argument, with a reason in words, for what is not a whole file of this format.
KenlmFile open_kenlm(View<std::uint8_t> data);

// The words by id in our order. `wrong` is the id in the file of the first word that its vocabulary does not know under this
// id, -1 if there is none.
struct KenlmWords {
    std::vector<std::int64_t> offsets;
    std::vector<std::uint8_t> bytes;
    std::int64_t wrong = -1;
};
KenlmWords kenlm_words(const KenlmFile& file);

// Scores as KenLM does, in log10 and single precision, times ln 10 in double precision. `contexts` (may be empty), [n, order
// - 1], gets our ids of the words before each event, the last first, kNone where the sentence begins.
std::size_t score_kenlm(const KenlmFile& file, View<std::uint32_t> ids, std::size_t skip, const EventRows& rows);
// The sums of these rows by segment; see `sum_ids`.
double sum_kenlm(const KenlmFile& file, View<std::uint32_t> ids, const SegmentColumns& columns);
// Steps through a file: cells hold the file's ids of words, and log10 of back-off weights; logarithms are those of `score_kenlm`.
std::unique_ptr<NgramReader> read_kenlm(const KenlmFile& file);
// Rows of the vocabulary after contexts [n, order - 1]: natural logarithms, `lowest` for <s>, which cannot come.
void fill_kenlm(const KenlmFile& file, View<std::uint32_t> contexts, double lowest, MutableView<double> rows);

// The n-grams of one order of a trie: our ids of the words [n, order], log10 of probability and back-off weight [n].
void list_kenlm(const KenlmFile& file, unsigned order, MutableView<std::uint32_t> words, MutableView<float> probability,
                MutableView<float> backoff);

std::uint64_t checksum_bytes(View<std::uint8_t> data);

// ---- kenlm_write.cpp: the parts of a new file

// log10 of linear values: -99 for 0, the sign of others left out.
void log10_of(View<float> linear, MutableView<float> log10);
// Puts entries (key, values) into the buckets [first, last) of a table, those whose search begins there: `values` has `width`
// numbers of 32 bits for each key. Returns which found no place before `last`, and are to be put in when the rest is there.
std::vector<std::uint32_t> fill_probing(MutableView<std::uint8_t> table, View<std::uint64_t> keys, View<std::uint32_t> values,
                                        std::size_t width, std::uint64_t first, std::uint64_t last);

// The n-grams of one order in the order of a trie: by the place of their suffix in the order below, then by first word.
// ends[s] is where the extensions of suffix s end; places[i] which n-gram comes i-th.
void sort_extensions(View<std::uint32_t> suffixes, View<std::uint32_t> words, MutableView<std::uint32_t> ends,
                     MutableView<std::uint32_t> places);
// Packs the numbers of columns row by row, the lowest bits first. `out` has eight bytes more than these take; no number has
// more bits than its column's width, which is at most 32.
void pack_rows(const std::vector<View<std::uint32_t>>& columns, const std::vector<unsigned>& widths, MutableView<std::uint8_t> out);

// Centers of bins of equally many of the sorted values, which are the means of these (Federico and Bertoldi 2006).
void center_bins(View<float> sorted, MutableView<float> centers);
// The nearest center of each value; the first `reserved` centers are for -0.0 and 0.0.
void encode_bins(View<float> values, View<float> centers, std::size_t reserved, MutableView<std::uint32_t> codes);

}  // namespace lmgauge
