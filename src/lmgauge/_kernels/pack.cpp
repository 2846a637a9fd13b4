// Packing: n-grams in any order to a table whose bytes depend on nothing but what is in it.
//
// They are staged in parts by their scattered number, each part is sorted, and the places follow one after another:
//
//   place of the i-th n-gram = max(place of the one before + 1, first place of its home line)
//
// Taking a maximum and adding one can be done for all of a part at once, so that parts are placed side by side: a part that
// fills places up to f when it begins at its first home ends at max(start + size, f) when it begins at `start`.
#include "pack.hpp"

namespace lmgauge {

void Below::has_longer(std::uint32_t slot) const {
    if (lines == nullptr) return;
    require(slot < slots, "a slot outside the table below");
    constexpr std::uint32_t kWidth = MiddleLine::kWidth;
    std::uint32_t& weight = lines[slot / kWidth].words[MiddleLine::kWeight + slot % kWidth];
    if (atomic_load(&weight) == kMinusOne) atomic_store(&weight, kOne);
}

void stage_columns(const NgramColumns& ngrams, std::size_t begin, std::size_t end, const Scatter& scatter, Below below, Parts parts) {
    Stage<Staged> stage(parts);
    for (std::size_t i = begin; i < end; ++i) {
        below.has_longer(ngrams.parents[i]);
        stage.add({Scattered::of(scatter(ngrams.parents[i], ngrams.words[i])), as_bits(ngrams.probabilities[i]),
                   as_bits(ngrams.weights[i]), static_cast<std::uint32_t>(i)});
    }
}

void sort_parts(const TableView& table, Parts parts, std::size_t first, std::size_t last, MutableView<std::uint64_t> frees) {
    std::vector<Staged> sorted;
    std::vector<std::uint32_t> ends;
    for (std::size_t p = first; p < last; ++p) {
        const MutableView<Staged> part = parts.part(p);
        // A bucket for each n-gram: then hardly any lie in the wrong order.
        const std::uint64_t buckets = part.size() + 1;
        const auto bucket_of = [&](const Staged& s) {
            return static_cast<std::size_t>(multiply_high(s.scattered(), parts.sizes.size() * buckets) - p * buckets);
        };
        ends.assign(static_cast<std::size_t>(buckets) + 1, 0);
        for (const Staged& s : part) {
            const std::size_t bucket = bucket_of(s);
            require(bucket < buckets, "an n-gram in a part that is not its own");
            ++ends[bucket + 1];
        }
        for (std::size_t b = 1; b < ends.size(); ++b) ends[b] += ends[b - 1];
        sorted.resize(part.size());
        for (const Staged& s : part) sorted[ends[bucket_of(s)]++] = s;
        for (std::size_t i = 1; i < sorted.size(); ++i) {
            const Staged moved = sorted[i];
            std::size_t j = i;
            for (; j > 0 && sorted[j - 1].scattered() > moved.scattered(); --j) sorted[j] = sorted[j - 1];
            sorted[j] = moved;
        }
        std::uint64_t free = 0;
        for (const Staged& s : sorted) free = std::max(free, multiply_high(s.scattered(), table.homes) * table.width) + 1;
        frees[p] = free;
        std::copy(sorted.begin(), sorted.end(), part.begin());
    }
}

Placed place_parts(const TableView& table, MutableView<Line> lines, Parts parts, std::size_t first, std::size_t last,
                   View<std::uint64_t> starts, MutableView<std::uint32_t> slots) {
    Placed result;
    const std::uint32_t width = table.width;
    for (std::size_t p = first; p < last; ++p) {
        std::uint64_t free = starts[p], before = 0;
        bool any = false;
        for (const Staged& s : parts.part(p)) {
            const Place home = table.place(s.scattered());
            result.twice += any && s.scattered() == before;
            any = true;
            before = s.scattered();
            const std::uint64_t slot = std::max(free, static_cast<std::uint64_t>(home.line) * width);
            free = slot + 1;
            const auto row = static_cast<std::size_t>(slot / width), i = static_cast<std::size_t>(slot % width);
            const std::size_t distance = row - home.line;
            if (distance > kFarthest) {
                result.far = true;
                return result;
            }
            Line& line = lines[row];
            line.words[i] = home.key + static_cast<std::uint32_t>(distance);
            line.words[width + 1 + i] = s.probability;
            if (!table.last) line.words[2 * width + 1 + i] = s.weight == kOne ? kMinusOne : s.weight;
            for (std::size_t passed = home.line; passed < row; ++passed) {    // a line may be of two parts
                atomic_or(&lines[passed].words[width], 1u << ((home.key >> 4) & 31));
            }
            if (!slots.empty()) slots[s.source] = static_cast<std::uint32_t>(slot);
        }
    }
    return result;
}

EntryCounts count_entries(const TableView& table, std::size_t begin, std::size_t end) {
    EntryCounts counts;
    table.for_each(begin, end, [&](std::uint32_t, const Line& line, std::uint32_t i) {
        ++counts.entries;
        counts.blanks += line.words[table.width + 1 + i] >> 31;
    });
    return counts;
}

void list_entries(const TableView& table, std::size_t begin, std::size_t end, const EntryColumns& out) {
    std::size_t n = 0;
    table.for_each(begin, end, [&](std::uint32_t slot, const Line& line, std::uint32_t i) {
        const Ngram ngram = table.ngram(slot / table.width, line.words[i]);
        out.slots[n] = slot;
        out.parents[n] = ngram.parent;
        out.words[n] = ngram.word;
        out.probabilities[n] = as_float(line.words[table.width + 1 + i]);
        out.weights[n] = table.weight(slot);
        ++n;
    });
}

namespace {

// Eight numbers to one; a change of any bit changes it, but for one case in 2^64.
std::uint64_t digest(const Line& line, std::uint64_t row) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < 8; i += 2) {
        std::uint64_t a, b;
        std::memcpy(&a, line.words + 2 * i, 8);
        std::memcpy(&b, line.words + 2 * i + 2, 8);
        a ^= 0xA0761D6478BD642Full + (row << 3 | i);
        b ^= 0xE7037ED1A0B428DBull;
        sum += mix(a * b ^ multiply_high(a, b)) + mix(a) + 3 * b;
    }
    return sum;
}

bool sound(const TableView& table, std::size_t row, const Line& line, std::uint32_t i, std::uint64_t parents, std::uint64_t words) {
    const std::uint32_t key = line.words[i], behind = key & 15;
    if (key == 0 || behind == 0 || behind > row + 1 || row - (behind - 1) >= table.homes) return key == 0;
    const std::uint64_t scattered = table.scattered_at(row, key);
    const Place place = table.place(scattered);
    const Ngram ngram = table.ngram(row, key);
    const float p = as_float(line.words[table.width + 1 + i]);
    const float weight = table.last ? 1.0f : as_float(line.words[MiddleLine::kWeight + i]);
    return place.line == row - (behind - 1) && place.key == key - (behind - 1) && ngram.parent < parents && ngram.word < words &&
           std::fabs(p) <= 1.0f && (weight == -1.0f || (weight >= 0.0f && weight <= 3.4e38f));
}

}  // namespace

std::uint64_t digest_lines(View<Line> lines, std::uint64_t row) {
    std::uint64_t sum = 0;
    for (const Line& line : lines) sum += digest(line, row++);
    return sum;
}

TableCheck check_lines(const TableView& table, std::size_t begin, std::size_t end, std::uint64_t parents, std::uint64_t words) {
    TableCheck result;
    for (std::size_t row = begin; row < end; ++row) {
        const Line& line = table.lines[row];
        result.checksum += digest(line, row);
        bool good = true;
        for (std::uint32_t i = 0; i < table.width; ++i) good &= sound(table, row, line, i, parents, words);
        if (!good && result.bad < 0) result.bad = static_cast<std::int64_t>(row);
    }
    return result;
}

}  // namespace lmgauge
