// The parts of a new KenLM binary file.
#include <algorithm>

#include "kenlm.hpp"

namespace lmgauge {
namespace {

template <class T>
void store_as(std::uint8_t* at, T value) { std::memcpy(at, &value, sizeof value); }

// Numbers one after another, the lowest bits first.
class BitWriter {
  public:
    explicit BitWriter(std::uint8_t* out) : out_(out) {}
    void put(std::uint64_t value, unsigned bits) {    // at most 63, and no more bits than these set
        held_ |= value << used_;
        used_ += bits;
        if (used_ < 64) return;
        store_as(out_, held_);
        out_ += 8;
        used_ -= 64;
        held_ = used_ == 0 ? 0 : value >> (bits - used_);
    }
    void finish() {
        for (; used_ > 0; used_ -= std::min(used_, 8u), held_ >>= 8) *out_++ = static_cast<std::uint8_t>(held_);
    }

  private:
    std::uint8_t* out_;
    std::uint64_t held_ = 0;
    unsigned used_ = 0;
};

}  // namespace

void write_kenlm_header(const KenlmShape& shape, MutableView<std::uint8_t> header) {
    constexpr char kMagic[] = "mmap lm http://kheafield.com/code format version 5\n";
    std::fill(header.begin(), header.end(), std::uint8_t{0});
    std::uint8_t* const at = header.data();
    std::memcpy(at, kMagic, sizeof kMagic);
    store_as(at + 56, 0.0f);
    store_as(at + 60, 1.0f);
    store_as(at + 64, -0.5f);
    store_as(at + 68, std::uint32_t{1});
    store_as(at + 72, 0xFFFFFFFFu);
    store_as(at + 80, std::uint64_t{1});
    std::uint8_t* const fixed = at + kKenlmSanity;
    fixed[0] = static_cast<std::uint8_t>(shape.order());
    store_as(fixed + 4, shape.multiplier);
    store_as(fixed + 8, static_cast<std::uint32_t>(shape.kind));
    fixed[12] = 1;
    store_as(fixed + 16, std::uint32_t{is_trie(shape.kind)});
    for (unsigned k = 0; k < shape.order(); ++k) store_as(fixed + 20 + 8 * k, shape.counts[k]);
}

void log10_of(View<float> linear, MutableView<float> log10) {
    for (std::size_t i = 0; i < linear.size(); ++i) {
        const double value = std::fabs(static_cast<double>(linear[i]));
        log10[i] = value == 0 ? -99.0f : value == 1 ? 0.0f : static_cast<float>(std::log10(value));
    }
}

std::vector<std::uint32_t> fill_probing(MutableView<std::uint8_t> table, View<std::uint64_t> keys, View<std::uint32_t> values,
                                        std::size_t width, std::uint64_t first, std::uint64_t last) {
    constexpr std::size_t kAhead = 32;
    const std::size_t size = 8 + 4 * width;
    const std::uint64_t buckets = table.size() / size, inverse = inverse_of(buckets);
    const bool whole = first == 0 && last == buckets;
    std::array<std::uint64_t, kAhead> homes{};    // of the keys to come, by the place of the key
    const auto look = [&](std::size_t i) {
        const std::uint64_t home = modulo(keys[i], buckets, inverse);
        homes[i % kAhead] = home;
        if (home >= first && home < last) prefetch_for_write(table.data() + home * size);
    };
    for (std::size_t i = 0; i < std::min(kAhead, keys.size()); ++i) look(i);
    std::vector<std::uint32_t> left;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        std::uint64_t bucket = homes[i % kAhead];
        if (i + kAhead < keys.size()) look(i + kAhead);
        if (bucket < first || bucket >= last) continue;
        const std::uint64_t home = bucket;
        while (bucket < last && load_as<std::uint64_t>(table.data() + bucket * size) != 0) {
            ++bucket;
            if (whole && bucket == buckets) bucket = 0;
            require(bucket != home, "a table without an empty bucket");
        }
        if (bucket == last) {
            left.push_back(static_cast<std::uint32_t>(i));
            continue;
        }
        std::uint8_t* const entry = table.data() + bucket * size;
        store_as(entry, keys[i]);
        std::memcpy(entry + 8, values.data() + i * width, 4 * width);
    }
    return left;
}

void sort_extensions(View<std::uint32_t> suffixes, View<std::uint32_t> words, MutableView<std::uint64_t> ends,
                     MutableView<std::uint32_t> places) {
    struct Extension {
        std::uint32_t word, ngram;
    };
    std::fill(ends.begin(), ends.end(), std::uint64_t{0});
    for (const std::uint32_t suffix : suffixes) ++ends[suffix];
    std::uint64_t total = 0;
    for (std::uint64_t& end : ends) {    // now where those of each begin; filling moves it to where they end
        const std::uint64_t count = end;
        end = total;
        total += count;
    }
    std::vector<Extension> sorted(suffixes.size());
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < suffixes.size(); ++i) {
        if (i + 2 * kAhead < suffixes.size()) prefetch_for_write(&ends[suffixes[i + 2 * kAhead]]);
        if (i + kAhead < suffixes.size()) prefetch_for_write(sorted.data() + ends[suffixes[i + kAhead]]);
        sorted[ends[suffixes[i]]++] = {words[i], static_cast<std::uint32_t>(i)};
    }
    std::uint64_t begin = 0;
    for (const std::uint64_t end : ends) {
        std::sort(sorted.begin() + static_cast<std::ptrdiff_t>(begin), sorted.begin() + static_cast<std::ptrdiff_t>(end),
                  [](const Extension& a, const Extension& b) { return a.word < b.word; });
        begin = end;
    }
    for (std::size_t i = 0; i < sorted.size(); ++i) places[i] = sorted[i].ngram;
}

void pack_level(const KenlmLevel& level, unsigned array_bits, View<std::uint32_t> words, View<std::uint64_t> values,
                View<std::uint64_t> next, MutableView<std::uint8_t> part) {
    const bool array = level.offsets > 0;
    const std::uint64_t begin = array ? level.header_at : level.at;
    if (array) {
        part[1] = static_cast<std::uint8_t>(array_bits);
        std::uint8_t* const offsets = part.data() + (level.offsets_at - begin);
        std::uint64_t written = 1;
        for (std::uint64_t i = 0; i < next.size(); ++i) {
            for (const std::uint64_t upper = next[i] >> level.next_bits; written <= upper; ++written) store_as(offsets + 8 * written, i);
        }
    }
    const std::uint64_t mask = (std::uint64_t{1} << level.next_bits) - 1;
    BitWriter out(part.data() + (level.at - begin));
    for (std::size_t i = 0; i < words.size(); ++i) {
        out.put(words[i], level.word_bits);
        out.put(values[i], level.value_bits);
        if (!next.empty()) out.put(next[i] & mask, level.next_bits);
    }
    if (!next.empty()) {
        out.put(0, level.word_bits);
        out.put(0, level.value_bits);
        out.put(next.back() & mask, level.next_bits);
    }
    out.finish();
}

void center_bins(View<float> sorted, MutableView<float> centers) {
    std::size_t begin = 0;
    for (std::size_t bin = 0; bin < centers.size(); ++bin) {
        const std::size_t end = sorted.size() * (bin + 1) / centers.size();
        double sum = 0;
        for (std::size_t i = begin; i < end; ++i) sum += sorted[i];
        const float empty = bin > 0 ? centers[bin - 1] : -INFINITY;
        centers[bin] = end == begin ? empty : static_cast<float>(sum / static_cast<double>(static_cast<float>(end - begin)));
        begin = end;
    }
}

void encode_bins(View<float> values, View<float> centers, std::size_t reserved, MutableView<std::uint32_t> codes) {
    const auto first = centers.begin() + static_cast<std::ptrdiff_t>(reserved);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float value = values[i];
        if (reserved > 0 && value == 0) {
            codes[i] = std::signbit(value) ? 0 : 1;
            continue;
        }
        auto above = std::lower_bound(first, centers.end(), value);
        if (above == centers.end()) --above;
        else if (above != first && value - *(above - 1) < *above - value) --above;
        codes[i] = static_cast<std::uint32_t>(above - centers.begin());
    }
}

}  // namespace lmgauge
