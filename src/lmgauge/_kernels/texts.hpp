// Many texts side by side in one block of UTF-8, read code point by code point; what counts as white space is what
// Python's str.split() cuts at. The texts are valid UTF-8: whoever packs them has checked. That no other bytes are read or
// written where they are not is seen to here all the same (`ends_within`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels.hpp"

namespace lmgauge {

// An average length of references is counted in this part of a word, so that sums stay whole numbers: lcm(1 ... 16).
constexpr std::int64_t kLengthScale = 720720;

struct TextsView {
    View<std::uint8_t> data;
    View<std::int64_t> starts, ends;

    std::size_t size() const { return starts.size(); }
    std::string_view operator[](std::size_t i) const {
        return {reinterpret_cast<const char*>(data.data()) + starts[i], static_cast<std::size_t>(ends[i] - starts[i])};
    }
};

// The references of segment i are texts offsets[i] to offsets[i + 1] (excluded).
struct ReferencesView {
    TextsView texts;
    View<std::int64_t> offsets;
};

// The code point at `at`, which is moved past it. `at` is before the end of valid UTF-8; of other bytes something is made,
// of no more of them than their first one announces.
inline char32_t next_code_point(const char*& at) {
    const auto tail = [&](int i) { return static_cast<char32_t>(static_cast<unsigned char>(at[i]) & 0x3F); };
    const char32_t first = static_cast<unsigned char>(*at);
    char32_t value = first;
    if (first < 0xC0) {
        at += 1;
    } else if (first < 0xE0) {
        value = (first & 0x1F) << 6 | tail(1);
        at += 2;
    } else if (first < 0xF0) {
        value = (first & 0x0F) << 12 | tail(1) << 6 | tail(2);
        at += 3;
    } else {
        value = (first & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3);
        at += 4;
    }
    return value;
}

// Whether a character announced in the last three bytes would go beyond them; of valid UTF-8, none would. Otherwise no
// code point read from within the text goes beyond its end.
inline bool ends_within(std::string_view text) {
    const auto byte = [&](std::size_t back) { return static_cast<unsigned char>(text[text.size() - back]); };
    return !text.empty() &&
           (byte(1) >= 0xC0 || (text.size() > 1 && byte(2) >= 0xE0) || (text.size() > 2 && byte(3) >= 0xF0));
}

// str.isspace() of Python, the same in all versions since 3.11.
inline bool is_white_space(char32_t c) {
    if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
    if (c < 0x2000) return c == 0x85 || c == 0xA0 || c == 0x1680;
    return c <= 0x200A || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// Calls `word(std::string_view)` for each maximal run of code points that are not white space, as str.split() does.
template <class Word>
void for_each_word(std::string_view text, Word&& word) {
    const char* at = text.data();
    const char* const end = at + text.size();
    const char* begin = nullptr;
    while (at < end) {
        const char* const here = at;
        const auto first = static_cast<unsigned char>(*at);
        // Most bytes are ASCII, and above the controls and the blank.
        const bool white = first < 0x80 ? (++at, is_white_space(first)) : is_white_space(next_code_point(at));
        if (!white) {
            if (begin == nullptr) begin = here;
        } else if (begin != nullptr) {
            word(std::string_view(begin, static_cast<std::size_t>(here - begin)));
            begin = nullptr;
        }
    }
    if (begin != nullptr) word(std::string_view(begin, static_cast<std::size_t>(end - begin)));
}

}  // namespace lmgauge
