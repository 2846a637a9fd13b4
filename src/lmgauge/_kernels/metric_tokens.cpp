// The tokenizers of mteval-v13a, its international variant and the one for Chinese, as sacreBLEU defines them: by regular
// expressions, one after the other over the whole line. All of them are one pass here, which is the same because
//   1. `symbol` -> ` symbol `               puts blanks around characters that no later expression looks for,
//   2. `([^digit])(point)` -> `\1 \2 `      reads the character before a point, and consumes it,
//   3. `(point)([^digit])` -> ` \1 \2`      so that of "..." every second point is left to the third expression,
//   4. `([digit])(-)`      -> `\1 \2 `      and a blank set by 2 is no digit for 3.
// In the international tokenizer (without 4) 1 comes last, which changes nothing: neither a symbol nor a blank is a digit.
// What number of blanks stands between two tokens does not matter; the words are found by str.split().
#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "bleu.hpp"

namespace lmgauge {

std::uint8_t* Bytes::room(std::size_t more) {
    if (capacity_ - size_ < more) {
        const std::size_t capacity = std::max(size_ + more, capacity_ + capacity_ / 2);
        void* const moved = std::realloc(bytes_.get(), capacity);
        if (moved == nullptr) throw std::bad_alloc();
        static_cast<void>(bytes_.release());
        bytes_.reset(static_cast<std::uint8_t*>(moved));
        capacity_ = capacity;
    }
    return bytes_.get() + size_;
}

namespace {

enum Class : std::uint8_t {
    kPlain = 0, kSymbol = 1, kDigit = 2, kPoint = 3, kDash = 4,
    kEdge = 5,    // no character: before the first, behind the last
    kTaken = 6,   // a point that expression 2 consumed
};

constexpr std::array<std::uint8_t, 256> make_western() {
    std::array<std::uint8_t, 256> classes{};
    const auto symbols = [&](int first, int last) {
        for (int c = first; c <= last; ++c) classes[static_cast<std::size_t>(c)] = kSymbol;
    };
    symbols('{', '~');
    symbols('[', '`');
    symbols(' ', '&');
    symbols('(', '+');
    symbols(':', '@');
    symbols('/', '/');
    for (int c = '0'; c <= '9'; ++c) classes[static_cast<std::size_t>(c)] = kDigit;
    classes['.'] = classes[','] = kPoint;
    classes['-'] = kDash;
    return classes;
}
constexpr std::array<std::uint8_t, 256> kWestern = make_western();

// sacreBLEU's "Chinese characters", by the ranges that published scores were made with: U+2001 to U+2A6D and U+2F81 to
// U+2FA1 come from '\u20000' and the like, which Python reads as U+2000 and a zero.
constexpr std::array<std::array<std::uint16_t, 2>, 18> kChineseRanges{{
    {0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x2FFF}, {0x3000, 0x303F}, {0x3100, 0x312F},
    {0x31A0, 0x31BF}, {0x31C0, 0x31EF}, {0x3200, 0x32FF}, {0x3300, 0x33FF}, {0x3400, 0x4DB5}, {0x4E00, 0x9FBB},
    {0xF900, 0xFA2D}, {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF},
}};

bool is_chinese(char32_t c) {
    if (c > 0xFFFF) return false;
    const auto above = std::upper_bound(kChineseRanges.begin(), kChineseRanges.end(), c,
                                        [](char32_t value, const auto& range) { return value < range[0]; });
    return above != kChineseRanges.begin() && c <= (*(above - 1))[1];
}

// Each reads the class of the character at `at` and moves past it. Bytes are enough where no class holds a character
// beyond ASCII: the bytes of such a character are not special, one by one.
struct WesternBytes {
    std::uint8_t operator()(const char*& at) const { return kWestern[static_cast<unsigned char>(*at++)]; }
};
struct ChineseCharacters {
    std::uint8_t operator()(const char*& at) const {
        const auto first = static_cast<unsigned char>(*at);
        if (first < 0x80) return ++at, kWestern[first];
        return is_chinese(next_code_point(at)) ? kSymbol : kPlain;
    }
};
struct TableCharacters {
    View<std::uint8_t> classes;
    std::uint8_t operator()(const char*& at) const {
        const char32_t c = next_code_point(at);
        return c < classes.size() ? classes[c] : std::uint8_t{kPlain};
    }
};

// `edge`: what stands before and behind the text, kPlain for a blank or kEdge for nothing. Where blanks meet one is
// written, and at most three bytes for each byte read.
template <class Classes>
std::uint8_t* separate(std::string_view text, const Classes& classes, std::uint8_t edge, std::uint8_t* out) {
    const char* at = text.data();
    const char* const end = at + text.size();
    std::uint8_t before = edge;
    bool open = false;    // the last byte written is a blank
    while (at < end) {
        const char* const here = at;
        std::uint8_t found = classes(at);
        const bool blank = *here == ' ';
        bool apart = found == kSymbol && !blank;
        if (found >= kPoint) [[unlikely]] {
            if (found == kDash) {
                apart = before == kDigit;
            } else if (before != kDigit && before != kEdge && before != kTaken) {
                apart = true;
                found = kTaken;
            } else {
                const char* next = at;
                const std::uint8_t behind = at < end ? classes(next) : edge;
                apart = behind != kDigit && behind != kEdge;
            }
        }
        // Everything is written in any case, and overwritten where it is too much: no branch to mispredict.
        *out = ' ';
        out += apart && !open;
        *out = static_cast<std::uint8_t>(*here);
        out += !(blank && open);
        for (const char* more = here + 1; more < at; ++more) *out++ = static_cast<std::uint8_t>(*more);
        *out = ' ';
        out += apart;
        open = apart || blank;
        before = found;
    }
    return out;
}

// str.replace() of Python, in place.
void replace_all(std::string& text, std::string_view from, std::string_view to) {
    std::size_t found = text.find(from);
    if (found == std::string::npos) return;
    std::size_t kept = found, read = found;
    while (found != std::string::npos) {
        std::copy(to.begin(), to.end(), text.begin() + static_cast<std::ptrdiff_t>(kept));
        kept += to.size();
        read = found + from.size();
        found = text.find(from, read);
        const std::size_t stop = found == std::string::npos ? text.size() : found;
        std::memmove(text.data() + kept, text.data() + read, stop - read);
        kept += stop - read;
    }
    text.resize(kept);
}

// What mteval-v13a undoes before it looks for tokens. The order is the definition: `&amp;lt;` becomes `<`.
std::string_view without_markup(std::string_view text, std::string& changed) {
    const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
    const bool entities = has("&");
    if (!entities && !has("\n") && !has("<skipped>")) return text;
    changed.assign(text);
    replace_all(changed, "<skipped>", "");
    replace_all(changed, "-\n", "");
    std::replace(changed.begin(), changed.end(), '\n', ' ');
    if (entities) {
        replace_all(changed, "&quot;", "\"");
        replace_all(changed, "&amp;", "&");
        replace_all(changed, "&lt;", "<");
        replace_all(changed, "&gt;", ">");
    }
    return changed;
}

std::string_view right_stripped(std::string_view text) {
    while (!text.empty()) {
        std::size_t last = text.size() - 1;
        while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80 && last > 0) --last;
        const char* at = text.data() + last;
        if (!is_white_space(next_code_point(at))) break;
        text = text.substr(0, last);
    }
    return text;
}

std::string_view left_stripped(std::string_view text) {
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
        const char* next = at;
        if (!is_white_space(next_code_point(next)) || next > end) break;
        at = next;
    }
    return {at, static_cast<std::size_t>(end - at)};
}

struct EveryCharacter {
    std::uint8_t operator()(const char*& at) const { return static_cast<void>(next_code_point(at)), kSymbol; }
};

}  // namespace

TokenTexts separate_tokens(const TextsView& texts, MetricTokens kind, View<std::uint8_t> classes, std::size_t begin,
                           std::size_t end) {
    TokenTexts result;
    result.data.room(1);    // NumPy wants an address, also of nothing
    result.starts.reserve(end - begin);
    result.ends.reserve(end - begin);
    std::string changed;
    for (std::size_t i = begin; i < end; ++i) {
        std::string_view text = right_stripped(texts[i]);
        if (kind == MetricTokens::mteval13a) text = without_markup(text, changed);
        // Bytes that are not UTF-8 may announce up to three more than there are before the white space cut off.
        std::uint8_t* const out = result.data.room(3 * text.size() + 4);
        std::uint8_t* last = out;
        switch (kind) {
            case MetricTokens::mteval13a: last = separate(text, WesternBytes{}, kPlain, out); break;
            case MetricTokens::chinese: last = separate(left_stripped(text), ChineseCharacters{}, kEdge, out); break;
            case MetricTokens::characters: last = separate(text, EveryCharacter{}, kEdge, out); break;
            case MetricTokens::international: last = separate(text, TableCharacters{classes}, kEdge, out); break;
        }
        result.starts.push_back(static_cast<std::int64_t>(result.data.size()));
        result.data.written_to(last);
        result.ends.push_back(static_cast<std::int64_t>(result.data.size()));
    }
    return result;
}

}  // namespace lmgauge
