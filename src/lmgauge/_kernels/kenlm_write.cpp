// The parts of a new KenLM binary file.
#include <algorithm>

#include "kenlm.hpp"

namespace lmgauge {
namespace {

template <class T>
void store_as(std::uint8_t* at, T value) { std::memcpy(at, &value, sizeof value); }

}  // namespace

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

void sort_extensions(View<std::uint32_t> suffixes, View<std::uint32_t> words, MutableView<std::uint32_t> ends,
                     MutableView<std::uint32_t> places) {
    struct Extension {
        std::uint32_t word, ngram;
    };
    std::fill(ends.begin(), ends.end(), 0u);
    for (const std::uint32_t suffix : suffixes) ++ends[suffix];
    std::uint32_t total = 0;
    for (std::uint32_t& end : ends) {    // now where those of each begin; filling moves it to where they end
        const std::uint32_t count = end;
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
    std::uint32_t begin = 0;
    for (const std::uint32_t end : ends) {
        std::sort(sorted.begin() + begin, sorted.begin() + end, [](const Extension& a, const Extension& b) { return a.word < b.word; });
        begin = end;
    }
    for (std::size_t i = 0; i < sorted.size(); ++i) places[i] = sorted[i].ngram;
}

void pack_rows(const std::vector<View<std::uint32_t>>& columns, const std::vector<unsigned>& widths, MutableView<std::uint8_t> out) {
    std::uint8_t* at = out.data();
    std::uint64_t held = 0;
    unsigned used = 0;    // of its bits, fewer than 32 of which wait for the next number
    for (std::size_t row = 0; row < columns[0].size(); ++row) {
        for (std::size_t column = 0; column < columns.size(); ++column) {
            held |= std::uint64_t{columns[column][row]} << used;
            used += widths[column];
            if (used < 32) continue;
            store_as(at, static_cast<std::uint32_t>(held));
            at += 4;
            held >>= 32;
            used -= 32;
        }
    }
    store_as(at, static_cast<std::uint32_t>(held));
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
