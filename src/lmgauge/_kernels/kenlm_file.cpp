// The parts of a KenLM binary file: where they lie, whether they fit, and its words.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "kenlm.hpp"

namespace lmgauge {
namespace {

constexpr char kMagic[] = "mmap lm http://kheafield.com/code format version 5\n";
constexpr std::size_t kFixed = 20;          // bytes of order, multiplier, type, whether there are words, search version
constexpr unsigned kMaxOrder = 64;
constexpr std::uint64_t kRestType = 1;      // probing with rest costs
constexpr std::uint8_t kQuantizationVersion = 2, kArrayVersion = 0;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

std::uint64_t align8(std::uint64_t size) { return (size + 7) / 8 * 8; }
std::uint64_t header_size(unsigned order) { return align8(kKenlmSanity + kFixed + std::uint64_t{8} * order); }

// Slots of a table for so many entries: KenLM computes them in single precision, and so must we.
std::uint64_t buckets_for(std::uint64_t entries, float multiplier) {
    const float wanted = multiplier * static_cast<float>(entries);
    if (!(wanted < 1e15f)) refuse("its header asks for tables larger than any memory");
    return std::max(entries + 1, static_cast<std::uint64_t>(wanted));
}

// How many upper bits of a pointer go to a table of offsets: as many, up to a limit, as make the file smallest.
unsigned chopped_bits(std::uint64_t entries, std::uint64_t largest, unsigned limit) {
    const unsigned required = bits_for(largest);
    unsigned best = 0;
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    for (unsigned chop = 0; chop <= std::min(required, limit); ++chop) {
        const std::uint64_t offsets = required - chop >= 64 ? 0 : largest >> (required - chop);
        const std::int64_t change = static_cast<std::int64_t>(offsets) * 64 - static_cast<std::int64_t>(entries) * chop;
        if (change < lowest) {
            lowest = change;
            best = chop;
        }
    }
    return best;
}

// The places of parts, one after another; none may end behind `limit`.
struct Cursor {
    std::uint64_t at, limit;
    std::uint64_t take(std::uint64_t size) {
        if (size > limit || at > limit - size) refuse("it is shorter than its header says: truncated, or damaged");
        const std::uint64_t here = at;
        at += size;
        return here;
    }
};

void lay_out_probing(KenlmLayout& layout, Cursor& cursor) {
    const KenlmShape& shape = layout.shape;
    layout.vocabulary_buckets = buckets_for(shape.counts[0], shape.multiplier);
    layout.vocabulary = cursor.take(8 + 12 * layout.vocabulary_buckets);
    layout.unigrams = cursor.take(8 * (shape.counts[0] + 1));
    for (unsigned k = 2; k <= shape.order(); ++k) {
        KenlmLevel level;
        level.entries = shape.counts[k - 1];
        level.buckets = buckets_for(level.entries, shape.multiplier);
        level.inverse = inverse_of(level.buckets);
        level.at = cursor.take(level.buckets * (k == shape.order() ? 12 : 16));
        layout.levels.push_back(level);
    }
}

void lay_out_trie(KenlmLayout& layout, Cursor& cursor) {
    const KenlmShape& shape = layout.shape;
    const unsigned order = shape.order();
    const bool quantized = is_quantized(shape.kind);
    layout.vocabulary = cursor.take(8 + 8 * shape.counts[0]);
    std::vector<std::uint64_t> tables;
    if (quantized) {
        layout.quantization = cursor.take(8);
        for (unsigned k = 2; k < order; ++k) {
            tables.push_back(cursor.take(std::uint64_t{4} << shape.probability_bits));
            tables.push_back(cursor.take(std::uint64_t{4} << shape.backoff_bits));
        }
        tables.push_back(cursor.take(std::uint64_t{4} << shape.probability_bits));
        tables.push_back(0);
    }
    layout.unigrams = cursor.take(16 * (shape.counts[0] + 2));
    for (unsigned k = 2; k <= order; ++k) {
        KenlmLevel level;
        level.entries = shape.counts[k - 1];
        level.word_bits = bits_for(shape.counts[0]);
        const bool longest = k == order;
        level.value_bits = quantized ? shape.probability_bits + (longest ? 0 : shape.backoff_bits) : longest ? 31 : 63;
        if (quantized) {
            level.probabilities_at = tables[2 * (k - 2)];
            level.backoffs_at = tables[2 * (k - 2) + 1];
        }
        if (!longest) {
            const std::uint64_t largest = shape.counts[k];
            level.next_bits = bits_for(largest);
            if (is_array(shape.kind)) {
                const unsigned chop = chopped_bits(level.entries + 1, largest, shape.array_bits);
                level.next_bits -= chop;
                level.offsets = (level.next_bits >= 64 ? 0 : largest >> level.next_bits) + 1;
                level.header_at = cursor.take(8 * (1 + level.offsets) + 7);
                level.offsets_at = align8(level.header_at) + 8;
            }
        }
        level.at = cursor.take(((1 + level.entries) * level.bits() + 7) / 8 + 8);
        layout.levels.push_back(level);
    }
}

// The test values behind the magic bytes, as a machine like this one writes them.
void check_sanity(View<std::uint8_t> data) {
    static_assert(sizeof kMagic + 1 <= 56);
    const std::string head(reinterpret_cast<const char*>(data.data()), std::min<std::size_t>(data.size(), 64));
    if (head.starts_with("mmap lm http://kheafield.com/code incomplete")) {
        refuse("KenLM did not finish writing it; build it again");
    }
    const std::string before = std::string(kMagic).substr(0, sizeof kMagic - 3);
    if (!head.starts_with(before)) refuse("it is not a binary file of KenLM");
    if (!head.starts_with(kMagic)) {
        refuse("it has another version of KenLM's format than 5; build it again with a newer build_binary, from its ARPA file");
    }
    if (data.size() < kKenlmSanity) refuse("it ends within its header");
    const bool sound = load_as<float>(data.data() + 56) == 0.0f && load_as<float>(data.data() + 60) == 1.0f &&
                       load_as<float>(data.data() + 64) == -0.5f && load_as<std::uint32_t>(data.data() + 68) == 1 &&
                       load_as<std::uint32_t>(data.data() + 72) == 0xFFFFFFFFu && load_as<std::uint64_t>(data.data() + 80) == 1;
    if (!sound) {
        refuse("its test values are not those of a little-endian 64-bit machine with IEEE numbers: it was built on another kind "
               "of machine, or is damaged; build it again here, from its ARPA file");
    }
}

KenlmShape read_shape(View<std::uint8_t> data, bool& has_words) {
    if (data.size() < kKenlmSanity + kFixed) refuse("it ends within its header");
    const std::uint8_t* const fixed = data.data() + kKenlmSanity;
    KenlmShape shape;
    const unsigned order = fixed[0];
    shape.multiplier = load_as<float>(fixed + 4);
    const std::uint32_t type = load_as<std::uint32_t>(fixed + 8);
    has_words = fixed[12] != 0;
    const std::uint32_t version = load_as<std::uint32_t>(fixed + 16);
    if (type == kRestType) refuse("it holds rest costs (build_binary -r), which are not read; build it without -r");
    if (type > 5) refuse("its type of model is " + std::to_string(type) + ", which is none that KenLM has: damaged");
    shape.kind = static_cast<KenlmKind>(type);
    if (order < 2 || order > kMaxOrder) refuse("its order is " + std::to_string(order) + "; orders from 2 to 64 can be read");
    if (!(shape.multiplier >= 1.0f && shape.multiplier <= 1e6f)) refuse("the size of its tables is not a sensible number: damaged");
    if (version != (is_trie(shape.kind) ? 1u : 0u)) refuse("its search structure has another version; build it again");
    if (data.size() < header_size(order)) refuse("it ends within its header");
    for (unsigned k = 0; k < order; ++k) {
        shape.counts.push_back(load_as<std::uint64_t>(fixed + kFixed + 8 * k));
        // Each n-gram takes a bit or more.
        if (shape.counts.back() > 8 * data.size()) refuse("its header promises more n-grams than it has room for: truncated, or damaged");
    }
    if (shape.counts[0] == 0 || shape.counts[0] >= 0xFFFFFFF0u) refuse("the number of its words is impossible: damaged");
    return shape;
}

// The bits of quantization and arrays stand in these parts themselves.
void read_bits(View<std::uint8_t> data, KenlmShape& shape) {
    std::uint64_t at = header_size(shape.order()) + 8 + 8 * shape.counts[0];
    if (is_quantized(shape.kind)) {
        if (at + 3 > data.size()) refuse("it is shorter than its header says: truncated, or damaged");
        if (data[at] != kQuantizationVersion) refuse("its quantization has another version; build it again");
        shape.probability_bits = data[at + 1];
        shape.backoff_bits = data[at + 2];
        const auto fits = [](unsigned bits) { return bits >= 1 && bits <= 25; };
        if (!fits(shape.probability_bits) || !fits(shape.backoff_bits)) refuse("its quantization has an impossible number of bits: damaged");
        at += 8 + (std::uint64_t{4} << shape.probability_bits) * (shape.order() - 1) +
              (std::uint64_t{4} << shape.backoff_bits) * (shape.order() - 2);
    }
    if (is_array(shape.kind) && shape.order() > 2) {
        at += 16 * (shape.counts[0] + 2);
        if (at + 2 > data.size()) refuse("it is shorter than its header says: truncated, or damaged");
        if (data[at] != kArrayVersion) refuse("its array of pointers has another version; build it again");
        shape.array_bits = data[at + 1];
    }
}

// Throws std::invalid_argument where the parts could not fit into `limit` bytes.
KenlmLayout lay_out_kenlm(const KenlmShape& shape, std::uint64_t limit) {
    KenlmLayout layout;
    layout.shape = shape;
    Cursor cursor{header_size(shape.order()), limit};
    if (is_trie(shape.kind)) {
        lay_out_trie(layout, cursor);
    } else {
        lay_out_probing(layout, cursor);
    }
    layout.end = cursor.at;
    return layout;
}

}  // namespace

KenlmFile open_kenlm(View<std::uint8_t> data) {
    if (data.size() >= std::uint64_t{1} << 48) refuse("it is too large");
    check_sanity(data);
    KenlmFile file;
    file.data = data;
    KenlmShape shape = read_shape(data, file.has_words);
    if (is_trie(shape.kind)) read_bits(data, shape);
    file.layout = lay_out_kenlm(shape, data.size());
    const std::uint8_t* const vocabulary = file.at(file.layout.vocabulary);
    if (is_trie(shape.kind)) {
        const auto hashes = load_as<std::uint64_t>(vocabulary);
        if (hashes > shape.counts[0]) refuse("the number of its words is impossible: damaged");
        file.bound = hashes + 1;
    } else {
        if (load_as<std::uint32_t>(vocabulary) != 0) refuse("its vocabulary has another version; build it again");
        file.bound = load_as<std::uint32_t>(vocabulary + 4);
        if (file.bound == 0 || file.bound > shape.counts[0] + 1) refuse("the number of its words is impossible: damaged");
    }
    const auto id_of = [&](const char* word, std::size_t size) {
        return file.find_word(reinterpret_cast<const std::uint8_t*>(word), size);
    };
    const std::uint32_t begin = id_of("<s>", 3), end = id_of("</s>", 4);
    if (begin != 0 && begin == end) refuse("<s> and </s> are one word in it: damaged");
    file.set_specials(begin, end);
    return file;
}

std::uint64_t hash_kenlm_word(const std::uint8_t* data, std::size_t size) {
    constexpr std::uint64_t m = 0xc6a4a7935bd1e995ull;
    constexpr int r = 47;
    std::uint64_t h = size * m;
    const std::uint8_t* const whole = data + size / 8 * 8;
    for (; data != whole; data += 8) {
        std::uint64_t k = load_as<std::uint64_t>(data) * m;
        k ^= k >> r;
        h = (h ^ (k * m)) * m;
    }
    if (size % 8 != 0) {
        std::uint64_t rest = 0;
        std::memcpy(&rest, data, size % 8);
        h = (h ^ rest) * m;
    }
    h = (h ^ (h >> r)) * m;
    return h ^ (h >> r);
}

std::uint32_t KenlmFile::find_word(const std::uint8_t* word, std::size_t size) const {
    const std::uint64_t hash = hash_kenlm_word(word, size);
    const std::uint8_t* const entries = at(layout.vocabulary + 8);
    if (is_trie(layout.shape.kind)) {
        std::uint64_t low = 0, high = bound - 1;
        while (low < high) {
            const std::uint64_t middle = low + (high - low) / 2;
            const auto there = load_as<std::uint64_t>(entries + 8 * middle);
            if (there == hash) return static_cast<std::uint32_t>(middle + 1);
            (there < hash ? low : high) = there < hash ? middle + 1 : middle;
        }
        return 0;
    }
    std::uint64_t bucket = hash % layout.vocabulary_buckets;
    for (std::uint64_t step = 0; step < layout.vocabulary_buckets; ++step) {
        const auto there = load_as<std::uint64_t>(entries + 12 * bucket);
        const auto id = load_as<std::uint32_t>(entries + 12 * bucket + 8);
        if (there == hash) return id < bound ? id : 0;
        if (there == 0) return 0;
        bucket = bucket + 1 == layout.vocabulary_buckets ? 0 : bucket + 1;
    }
    return 0;
}

KenlmWords kenlm_words(const KenlmFile& file) {
    KenlmWords words;
    const View<std::uint8_t> text = file.data.subspan(file.layout.end);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> spans(file.our_words());
    std::uint64_t at = 0;
    for (std::uint64_t id = 0; id < file.bound; ++id) {
        const void* const zero = at < text.size() ? std::memchr(text.data() + at, 0, text.size() - at) : nullptr;
        if (zero == nullptr) refuse("its words end too early: truncated, or damaged");
        const std::uint64_t size = static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(zero) - text.data()) - at;
        const auto theirs = static_cast<std::uint32_t>(id);
        const bool known = id == 0 ? size == 5 && std::memcmp(text.data() + at, "<unk>", 5) == 0
                                   : size > 0 && file.find_word(text.data() + at, size) == theirs;
        if (!known && words.wrong < 0) words.wrong = static_cast<std::int64_t>(id);
        spans[file.ours(theirs)] = {at, size};
        at += size + 1;
    }
    const auto add = [&](const std::uint8_t* word, std::uint64_t size) {
        words.bytes.insert(words.bytes.end(), word, word + size);
        words.offsets.push_back(static_cast<std::int64_t>(words.bytes.size()));
    };
    words.offsets.push_back(0);
    for (std::uint64_t ours = 0; ours < spans.size(); ++ours) {
        const bool absent = (ours == kBos && file.begin == 0) || (ours == kEos && file.end == 0);
        const char* const name = ours == kBos ? "<s>" : "</s>";
        if (absent) add(reinterpret_cast<const std::uint8_t*>(name), std::strlen(name));
        else add(text.data() + spans[ours].first, spans[ours].second);
    }
    words.bytes.insert(words.bytes.end(), 8, 0);
    return words;
}

std::uint64_t checksum_bytes(View<std::uint8_t> data) {
    std::uint64_t sums[4] = {1, 2, 3, 4};
    std::size_t at = 0;
    for (; at + 32 <= data.size(); at += 32) {
        for (unsigned lane = 0; lane < 4; ++lane) {
            sums[lane] = (sums[lane] ^ load_as<std::uint64_t>(data.data() + at + 8 * lane)) * 0x9E3779B97F4A7C15ull;
            sums[lane] ^= sums[lane] >> 32;
        }
    }
    for (; at < data.size(); ++at) sums[at % 4] = mix(sums[at % 4] ^ data[at]);
    return mix(sums[0] ^ mix(sums[1] ^ mix(sums[2] ^ mix(sums[3] ^ data.size()))));
}

}  // namespace lmgauge
