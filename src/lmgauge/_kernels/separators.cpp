// One walk over the rows of a block; what is done at each separator is a parameter.
#include "separators.hpp"

#include <algorithm>
#include <cstring>

namespace lmgauge {

namespace {

constexpr int kFirst = 0, kInner = 1, kLast = 2, kEmpty = 3;
constexpr std::int64_t kNoSide = 0, kOther = 3, kClitic = 4;
constexpr std::uint8_t kOov = 1, kEos = 2;

bool is_between_words(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Bytes of the white space character of Unicode at the beginning of [p, end); 0 if there is none.
std::size_t white_space_character(const std::uint8_t* p, const std::uint8_t* end) {
    const std::size_t left = static_cast<std::size_t>(end - p);
    if (left == 0) return 0;
    if (is_between_words(*p) || (*p >= 0x1C && *p <= 0x1F)) return 1;
    if (left >= 2 && p[0] == 0xC2) return p[1] == 0x85 || p[1] == 0xA0 ? 2 : 0;
    if (left < 3) return 0;
    if (p[0] == 0xE1) return p[1] == 0x9A && p[2] == 0x80 ? 3 : 0;
    if (p[0] == 0xE3) return p[1] == 0x80 && p[2] == 0x80 ? 3 : 0;
    if (p[0] != 0xE2) return 0;
    if (p[1] == 0x80) return p[2] <= 0x8A || p[2] == 0xA8 || p[2] == 0xA9 || p[2] == 0xAF ? 3 : 0;
    return p[1] == 0x81 && p[2] == 0x9F ? 3 : 0;
}

std::size_t white_space(const std::uint8_t* p, const std::uint8_t* end, bool divided) {
    const std::uint8_t* const begin = p;
    if (divided) {
        while (p < end && is_between_words(*p)) ++p;
    } else {
        while (const std::size_t size = white_space_character(p, end)) p += size;
    }
    return static_cast<std::size_t>(p - begin);
}

// Whether [begin, p) ends in white space.
bool ends_white(const std::uint8_t* begin, const std::uint8_t* p, bool divided) {
    for (std::ptrdiff_t size = 1; size <= 3 && size <= p - begin; ++size) {
        if (static_cast<std::ptrdiff_t>(white_space(p - size, p, divided)) == size) return true;
    }
    return false;
}

// The class of the character that data[at] is part of; with divided tokens all that are not ASCII are of one class.
std::int64_t class_at(View<std::uint8_t> data, std::size_t at, const SeparatorRules& rules) {
    if (data[at] < 0x80) return rules.classes[data[at]];
    if (rules.divided) return kOther;
    for (int n = 0; n < 3 && at > 0 && (data[at] & 0xC0) == 0x80; ++n) --at;
    const std::size_t first = data[at], left = data.size() - at;
    if (first >= 0xC0 && first < 0xE0 && left >= 2) return rules.classes[(first & 0x1Fu) << 6 | (data[at + 1] & 0x3Fu)];
    if (first >= 0xE0 && first < 0xF0 && left >= 3) {
        return rules.classes[(first & 0x0Fu) << 12 | (data[at + 1] & 0x3Fu) << 6 | (data[at + 2] & 0x3Fu)];
    }
    return rules.classes[kClasses - 1];
}

// The number of a separator; the two that nearly all are have been looked up before.
class Numbers {
public:
    explicit Numbers(const SeparatorRules& rules) : rules_(rules) {
        empty_ = search(nullptr, 0);
        const std::uint8_t blank = ' ';
        blank_ = search(&blank, 1);
    }
    std::int32_t of(const std::uint8_t* p, std::size_t size) const {
        if (size == 0) return empty_;
        return size == 1 && *p == ' ' ? blank_ : search(p, size);
    }

private:
    std::int32_t search(const std::uint8_t* p, std::size_t size) const {
        for (std::size_t k = 0; k + 1 < rules_.offsets.size(); ++k) {
            const auto begin = static_cast<std::size_t>(rules_.offsets[k]), end = static_cast<std::size_t>(rules_.offsets[k + 1]);
            if (end - begin == size && (size == 0 || std::memcmp(&rules_.texts[begin], p, size) == 0)) return static_cast<std::int32_t>(k);
        }
        return -1;
    }
    const SeparatorRules& rules_;
    std::int32_t empty_, blank_;
};

struct Separator {
    std::size_t row;
    std::int32_t context, which;  // place and sides; -1: not known
    std::int32_t before;          // what comes before it in the segment counts as, 0: nothing
    bool scored;                  // not where all of it is in the given text
};

template <class Visit>
SeparatorsFound walk(const SpanRows& rows, const SeparatorRules& rules, Visit visit) {
    SeparatorsFound result;
    const Numbers numbers(rules);
    const std::uint8_t* const data = rows.data.data();
    const auto size = static_cast<std::int64_t>(rows.data.size());
    std::size_t row = 0;
    for (std::size_t j = 0; j < rows.segment_events.size(); ++j) {
        const std::int64_t start = rows.starts[j];
        const bool is_given = !rows.given.empty() && rows.given[j] > 0;
        std::int64_t begin = start;
        std::int32_t before = 0;
        bool quoted = false;
        if (is_given && !rules.divided) quoted = std::count(data + start - rows.given[j], data + start, '"') % 2 != 0;
        for (std::int64_t n = 0; n < rows.segment_events[j]; ++n, ++row) {
            const std::int64_t end = start + rows.ends[row];
            const bool behind = n > 0 || is_given;
            if (end < begin || end > size || (behind && begin == 0)) {
                result.fault = static_cast<std::int64_t>(row);
                return result;
            }
            const auto length = static_cast<std::int64_t>(white_space(data + begin, data + end, rules.divided));
            const bool is_end = rows.kind[row] == kEos;
            const std::int64_t word = begin + length;
            bool scored = true;
            if (n == 0 && is_given) scored = length > 0 || !ends_white(data + begin - rows.given[j], data + begin, rules.divided);
            if (n == 0 && !rows.crossing.empty()) scored = scored && rows.crossing[j] == 0;
            const int place = is_end ? (behind ? kLast : kEmpty) : (behind ? kInner : kFirst);
            const std::int64_t left = behind ? class_at(rows.data, static_cast<std::size_t>(begin - 1), rules) : kNoSide;
            std::int64_t right = kNoSide;
            if (!rules.divided && !is_end && word < end) {
                const bool clitic = end - word == 3 && data[word] == 'n' && data[word + 1] == '\'';
                right = clitic ? kClitic : class_at(rows.data, static_cast<std::size_t>(word), rules);
            }
            const std::int32_t which = numbers.of(data + begin, static_cast<std::size_t>(length));
            const auto context = static_cast<std::int32_t>(((place * kSides + left) * kSides + right) * 2 + quoted);
            visit(Separator{row, context, which, before, scored});
            if (which < 0 && scored) {
                result.unknown.insert(result.unknown.end(), {static_cast<std::int64_t>(row), begin, length, context});
            }
            if (rows.kind[row] == kOov) {
                result.unseen.insert(result.unseen.end(), {static_cast<std::int64_t>(row), word, end - word});
            }
            before = which < 0 ? kBefore - 1 : std::min(which + 1, kBefore - 1);
            if (!rules.divided) quoted ^= std::count(data + begin, data + end, '"') % 2 != 0;
            begin = end;
        }
    }
    return result;
}

}  // namespace

SeparatorsFound score_separators(const SpanRows& rows, const SeparatorRules& rules, View<std::int32_t> row_of_context,
                                 View<double> table, MutableView<double> logprob) {
    const std::size_t columns = rules.offsets.size();  // the known ones, and one for the others
    return walk(rows, rules, [&](const Separator& s) {
        const std::size_t column = s.which < 0 ? columns - 1 : static_cast<std::size_t>(s.which);
        const auto context = static_cast<std::size_t>(s.context * kBefore + s.before);
        logprob[s.row] = s.scored ? table[static_cast<std::size_t>(row_of_context[context]) * columns + column] : 0.0;
    });
}

SeparatorsFound find_separators(const SpanRows& rows, const SeparatorRules& rules, MutableView<std::int32_t> context,
                                MutableView<std::int32_t> which) {
    return walk(rows, rules, [&](const Separator& s) {
        context[s.row] = s.context;
        which[s.row] = s.which;
    });
}

}  // namespace lmgauge
