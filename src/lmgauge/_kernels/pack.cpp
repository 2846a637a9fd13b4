// What is in packed tables: listed, counted, checked. `partition_pack.cpp` makes them.
#include "pack.hpp"

namespace lmgauge {

void mark_parents(MutableView<Line> lines, View<std::uint32_t> slots) {
    constexpr std::uint32_t kWidth = MiddleLine::kWidth;
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (i + kAhead < slots.size()) prefetch_for_write(address_of(lines, slots[i + kAhead] / kWidth));
        require(slots[i] / kWidth < lines.size(), "a slot outside the table below");
        std::uint32_t& weight = lines[slots[i] / kWidth].words[MiddleLine::kWeight + slots[i] % kWidth];
        if (weight == kMinusOne) weight = kOne;
    }
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
