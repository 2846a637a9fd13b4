// Lines of ARPA files: log10 probability, words, log10 back-off weight.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "kernels.hpp"

namespace lmgauge {
namespace {

inline bool is_blank(std::uint8_t c) { return c == ' ' || c == '\t' || c == '\r'; }

// A decimal number that fills [p, end). Digits that fit 2^53 with a power of ten that is exact need no library call.
bool parse_number(const std::uint8_t* p, const std::uint8_t* end, double& value) {
    const std::uint8_t* const begin = p;
    static constexpr double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) ++p;
    std::uint64_t digits = 0;
    int seen = 0, behind = 0;
    bool point = false;
    for (; p < end; ++p) {
        if (*p >= '0' && *p <= '9') {
            if (seen < 18) digits = digits * 10 + (*p - '0');
            ++seen;
            behind += point;
        } else if (*p == '.' && !point) {
            point = true;
        } else {
            break;
        }
    }
    if (p == end && seen > 0 && seen <= 15 && behind <= 22) {
        value = static_cast<double>(digits) / powers[behind];
        if (negative) value = -value;
        return true;
    }
    char buffer[64];
    const auto length = static_cast<std::size_t>(end - begin);
    if (length == 0 || length >= sizeof buffer) return false;
    for (std::size_t i = 0; i < length; ++i) {
        const char c = static_cast<char>(begin[i]);
        if (c == 'x' || c == 'X') return false;  // strtod reads hexadecimal; ARPA does not know it
        buffer[i] = c;
    }
    buffer[length] = '\0';
    char* stop = nullptr;
    value = std::strtod(buffer, &stop);
    return stop == buffer + length;
}

struct Cursor {
    const std::uint8_t* p;
    const std::uint8_t* end;
    bool field(const std::uint8_t*& begin, const std::uint8_t*& stop) {
        while (p < end && is_blank(*p)) ++p;
        begin = p;
        while (p < end && !is_blank(*p)) ++p;
        stop = p;
        return stop != begin;
    }
};

}  // namespace

ArpaLines parse_arpa_lines(View<std::uint8_t> data, int order, MutableView<double> probability, MutableView<double> backoff,
                           MutableView<std::int64_t> word_starts, MutableView<std::int64_t> word_ends) {
    ArpaLines result;
    const std::uint8_t* const begin = data.data();
    const std::uint8_t* const end = begin + data.size();
    const std::uint8_t* p = begin;
    const auto k = static_cast<std::size_t>(order);
    while (p < end && static_cast<std::size_t>(result.lines) < probability.size()) {
        const auto* newline = static_cast<const std::uint8_t*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
        if (newline == nullptr) break;
        if (p == newline || *p == '\r' || *p == '\\') break;
        const auto row = static_cast<std::size_t>(result.lines);
        const auto fail = [&](int reason) {
            result.fault = p - begin;
            result.reason = reason;
            return result;
        };
        Cursor cursor{p, newline};
        const std::uint8_t *from = nullptr, *to = nullptr;
        if (!cursor.field(from, to)) return fail(2);
        double value = 0;
        if (!parse_number(from, to, value)) return fail(1);
        if (!(value <= 0)) return fail(3);
        probability[row] = value;
        for (std::size_t j = 0; j < k; ++j) {
            if (!cursor.field(from, to)) return fail(2);
            word_starts[row * k + j] = from - begin;
            word_ends[row * k + j] = to - begin;
        }
        backoff[row] = 0;
        if (cursor.field(from, to)) {
            if (!parse_number(from, to, value)) return fail(1);
            if (!(value <= 38)) return fail(3);
            backoff[row] = value;
            if (cursor.field(from, to)) return fail(2);
        }
        ++result.lines;
        p = newline + 1;
    }
    result.consumed = p - begin;
    return result;
}

namespace {

void append_log10(std::string& out, double probability) {
    // 10 significant digits give back the single-precision probability they were made from.
    char buffer[40];
    const double value = probability > 0 ? std::log10(probability) : -99.0;
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value == 0 ? 0.0 : value,
                                            std::chars_format::general, 10);
    (void)error;  // 40 characters hold any double with 10 digits
    out.append(buffer, end);
}

}  // namespace

// `backoff` empty: the highest order, which has none.
std::string format_arpa_lines(View<double> probability, View<double> backoff, View<std::uint32_t> words, int order,
                              View<std::int64_t> offsets, View<std::uint8_t> bytes) {
    std::string out;
    const auto k = static_cast<std::size_t>(order);
    out.reserve(probability.size() * (24 + 8 * k));
    for (std::size_t row = 0; row < probability.size(); ++row) {
        append_log10(out, probability[row]);
        for (std::size_t j = 0; j < k; ++j) {
            const std::size_t word = words[row * k + j];
            out.push_back(j == 0 ? '\t' : ' ');
            const auto start = static_cast<std::size_t>(offsets[word]), end = static_cast<std::size_t>(offsets[word + 1]);
            require(start <= end && end <= bytes.size(), "words outside their data");
            out.append(reinterpret_cast<const char*>(bytes.data()) + start, end - start);
        }
        if (!backoff.empty()) {
            out.push_back('\t');
            append_log10(out, backoff[row]);
        }
        out.push_back('\n');
    }
    return out;
}

}  // namespace lmgauge
