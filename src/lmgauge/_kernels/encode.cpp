// Text to token ids: white-space words, code points, bytes, or tokens that were found elsewhere.
#include <algorithm>
#include <array>
#include <string>

#include "kernels.hpp"

namespace lmgauge {
namespace {

constexpr std::array<bool, 256> make_spaces() {
    std::array<bool, 256> table{};
    for (const char c : {' ', '\t', '\n', '\v', '\f', '\r'}) table[static_cast<unsigned char>(c)] = true;
    return table;
}
constexpr std::array<bool, 256> kSpace = make_spaces();
constexpr std::uint64_t kHigh = 0x8080808080808080ull;
constexpr std::uint64_t kOnes = 0x0101010101010101ull;
constexpr std::size_t kTile = 256;  // tokens looked up together: enough to hide a cache miss, few enough for the first cache

// Bits of the bytes of `word` that are below 0x21, i.e. candidates for white space: exact for each byte, as setting the top
// bit first keeps the subtraction from borrowing.
inline std::uint64_t below_21(std::uint64_t word) { return ~((word | kHigh) - kOnes * 0x21) & ~word & kHigh; }

// The (up to) 8 bytes at p as a little-endian integer; never reads beyond `end`.
inline std::uint64_t load(const std::uint8_t* p, const std::uint8_t* end) {
    std::uint64_t v = 0;
    if (end - p >= 8) {
        std::memcpy(&v, p, 8);
    } else if (end > p) {
        std::memcpy(&v, p, static_cast<std::size_t>(end - p));
    }
    return v;
}

inline std::uint64_t keep_bytes(std::uint64_t v, std::size_t n) { return n >= 8 ? v : v & ((1ull << (8 * n)) - 1); }

// `first8`: the first eight bytes of the token, those behind its end zero.
inline std::uint64_t hash_bytes(const std::uint8_t* p, std::size_t length, std::uint64_t first8, const std::uint8_t* end) {
    std::uint64_t h = length * 0xA0761D6478BD642Full;
    if (length == 0) return mix(h);
    h = (h ^ first8) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 32;
    for (std::size_t done = 8; done < length; done += 8) {
        h = (h ^ keep_bytes(load(p + done, end), length - done)) * 0x9E3779B97F4A7C15ull;
        h ^= h >> 32;
    }
    return mix(h);
}

std::uint64_t hash_token(const std::uint8_t* p, std::size_t length, const std::uint8_t* end) {
    return hash_bytes(p, length, keep_bytes(load(p, end), length), end);
}

// Whether two strings of the same length, more than eight bytes, agree behind the first eight: the last eight bytes of each
// are compared as one, whatever they share with those before. Most are over after that, and a call would cost more.
inline bool same_rest(const std::uint8_t* a, const std::uint8_t* b, std::size_t length) {
    std::uint64_t x, y;
    for (std::size_t done = 8; done + 8 < length; done += 8) {
        std::memcpy(&x, a + done, 8);
        std::memcpy(&y, b + done, 8);
        if (x != y) return false;
    }
    std::memcpy(&x, a + length - 8, 8);
    std::memcpy(&y, b + length - 8, 8);
    return x == y;
}

constexpr const char* kUnsound = "a vocabulary that contradicts itself";

struct Token {
    const std::uint8_t* text;
    std::size_t length;
    std::uint64_t hash;
    std::uint64_t first8;
    std::int64_t span_end;
    std::int64_t position;    // for messages
    std::uint32_t special;    // kBos, kEos or 0: look it up
    std::uint32_t candidate;  // the id whose hash is the token's, or kUnk
};

// Brackets around a reserved name: 1 for <unk>, <s>, </s>; 2 for <<unk>>, ...; 0 for any other token.
int reserved_depth(const std::uint8_t* p, std::size_t n) {
    if (n < 3 || p[0] != '<' || p[n - 1] != '>') return 0;
    std::size_t depth = 0;
    while (depth < n / 2 && p[depth] == '<' && p[n - 1 - depth] == '>') ++depth;
    const std::string_view name(reinterpret_cast<const char*>(p) + depth, n - 2 * depth);
    return name == "unk" || name == "s" || name == "/s" ? static_cast<int>(depth) : 0;
}

class Encoder {
  public:
    Encoder(const SegmentText& text, VocabularyView vocabulary, const EncodeOptions& options, EncodeState& state,
            MutableView<std::uint32_t> ids, MutableView<std::int64_t> span_ends, MutableView<std::uint8_t> lossy)
        : text_(text), vocabulary_(vocabulary), options_(options), state_(state), ids_(ids), span_ends_(span_ends),
          lossy_(lossy), known_(vocabulary.offsets.size() - 1) {}

    EncodeStatus run() {
        while (state_.segment < static_cast<std::int64_t>(text_.starts.size())) {
            const EncodeState before = state_;
            tile_ = 0;
            fill_tile();
            const EncodeStatus status = flush(before);
            if (status != EncodeStatus::done) return status;
        }
        return EncodeStatus::done;
    }

  private:
    // Collects tokens until the tile is full or the text ends; state_ then says where to go on.
    void fill_tile() {
        while (tile_ + 2 <= kTile && state_.segment < static_cast<std::int64_t>(text_.starts.size())) {
            const auto s = static_cast<std::size_t>(state_.segment);
            if (state_.position < 0) {
                state_.position = options_.mode == TokenMode::given ? 0 : text_.starts[s];
                state_.irregular = 0;
                if (options_.bos) push_special(kBos, 0);
            }
            bool finished = false;
            switch (options_.mode) {
                case TokenMode::whitespace: finished = fill_words(s); break;
                case TokenMode::character: finished = fill_characters(s); break;
                case TokenMode::byte: finished = fill_bytes(s); break;
                case TokenMode::given: finished = fill_given(s); break;
            }
            if (!finished) return;
            if (options_.eos) push_special(kEos, text_.ends[s] - text_.starts[s]);
            if (options_.mode == TokenMode::given) state_.token += text_.token_counts[s];
            if (!lossy_.empty()) lossy_[s] = state_.irregular != 0;
            ++state_.segment;
            state_.position = -1;
        }
    }

    void push_special(std::uint32_t id, std::int64_t span_end) {
        buffer_[tile_++] = Token{nullptr, 0, 0, 0, span_end, state_.position, id, kUnk};
    }

    // `first8`: of the token and what follows it; `end`: of what may be read.
    void push(const std::uint8_t* p, std::size_t length, std::uint64_t first8, const std::uint8_t* end, std::int64_t span_end,
              std::int64_t position) {
        first8 = keep_bytes(first8, length);
        const std::uint64_t hash = hash_bytes(p, length, first8, end);
        prefetch(&vocabulary_.slots[home(hash)]);
        buffer_[tile_++] = Token{p, length, hash, first8, span_end, position, 0, kUnk};
    }

    bool room() const { return tile_ + 1 < kTile; }  // one place is kept for </s>

    bool fill_words(std::size_t s) {
        const std::uint8_t* const data = text_.data.data();
        const std::uint8_t* const data_end = data + text_.data.size();
        const std::uint8_t* const begin = data + text_.starts[s];
        const std::uint8_t* const end = data + text_.ends[s];
        const std::uint8_t* p = data + state_.position;
        while (room()) {
            const std::uint8_t* const gap = p;
            while (p < end && kSpace[*p]) ++p;
            if (p == end) {
                if (p != gap) state_.irregular = 1;  // white space behind the last word
                state_.position = p - data;
                return true;
            }
            if (gap == begin ? p != gap : (p - gap != 1 || *gap != ' ')) state_.irregular = 1;
            const std::uint8_t* const word = p;
            std::uint64_t first8 = load(p, data_end);
            std::uint64_t candidates = below_21(first8);
            const std::uint8_t* const stop = p + std::countr_zero(candidates) / 8;
            if (candidates != 0 && (stop >= end || kSpace[*stop])) {    // behind the data `load` gives zeros
                p = stop;
            } else {
                p = word_end(p, end, data_end);
            }
            if (p > end) p = end;
            const auto length = static_cast<std::size_t>(p - word);
            push(word, length, first8, data_end, p - begin, word - data);
        }
        state_.position = p - data;
        return false;
    }

    static const std::uint8_t* word_end(const std::uint8_t* p, const std::uint8_t* end, const std::uint8_t* data_end) {
        while (p < end) {
            std::uint64_t candidates = below_21(load(p, data_end));
            if (candidates == 0) {
                p += 8;
                continue;
            }
            const std::uint8_t* c = p + std::countr_zero(candidates) / 8;
            if (c >= end || kSpace[*c]) return c;
            p = c + 1;  // another control character: part of the word
        }
        return end;
    }

    bool fill_characters(std::size_t s) {
        const std::uint8_t* const data = text_.data.data();
        const std::uint8_t* const data_end = data + text_.data.size();
        const std::uint8_t* const begin = data + text_.starts[s];
        const std::uint8_t* const end = data + text_.ends[s];
        const std::uint8_t* p = data + state_.position;
        while (room()) {
            if (p == end) {
                state_.position = p - data;
                return true;
            }
            const std::uint8_t* const start = p++;
            while (p < end && (*p & 0xC0) == 0x80) ++p;
            const auto length = static_cast<std::size_t>(p - start);
            push(start, length, load(start, data_end), data_end, p - begin, start - data);
        }
        state_.position = p - data;
        return false;
    }

    bool fill_bytes(std::size_t s) {
        if (byte_names_.empty()) {
            static constexpr char digits[] = "0123456789ABCDEF";
            for (int b = 0; b < 256; ++b) {
                byte_names_ += {'<', '0', 'x', digits[b >> 4], digits[b & 15], '>'};
            }
        }
        std::int64_t position = state_.position;
        while (room() && position < text_.ends[s]) {
            const std::uint8_t b = text_.data[static_cast<std::size_t>(position)];
            push(byte_name(b), 6, load(byte_name(b), byte_name(256)), byte_name(256), position + 1 - text_.starts[s], position);
            ++position;
        }
        state_.position = position;
        return position == text_.ends[s];
    }

    const std::uint8_t* byte_name(std::size_t b) const {
        return reinterpret_cast<const std::uint8_t*>(byte_names_.data()) + 6 * b;
    }

    bool fill_given(std::size_t s) {
        const std::uint8_t* const data = text_.token_data.data();
        const std::uint8_t* const data_end = data + text_.token_data.size();
        while (room() && state_.position < text_.token_counts[s]) {
            const auto j = static_cast<std::size_t>(state_.token + state_.position);
            const std::uint8_t* const p = data + text_.token_starts[j];
            const auto length = static_cast<std::size_t>(text_.token_ends[j] - text_.token_starts[j]);
            push(p, length, load(p, data_end), data_end, text_.token_spans[j], state_.position);
            ++state_.position;
        }
        return state_.position == text_.token_counts[s];
    }

    std::size_t home(std::uint64_t hash) const { return static_cast<std::size_t>(hash & (vocabulary_.slots.size() - 1)); }

    EncodeStatus flush(const EncodeState& before) {
        if (static_cast<std::size_t>(state_.written) + tile_ > ids_.size()) {
            state_ = before;
            return EncodeStatus::room;
        }
        if (options_.insert && !has_room()) {
            state_ = before;
            return EncodeStatus::grow;
        }
        find_candidates();
        auto written = static_cast<std::size_t>(state_.written);
        for (std::size_t j = 0; j < tile_; ++j) {
            const Token& token = buffer_[j];
            std::uint32_t id = token.special;
            if (id == 0 && !look_up(token, id)) {
                state_ = before;
                state_.fault = token.position;
                return EncodeStatus::reserved;
            }
            if (!span_ends_.empty()) span_ends_[written] = token.span_end;
            ids_[written++] = id;
        }
        state_.written = static_cast<std::int64_t>(written);
        return EncodeStatus::done;
    }

    bool has_room() const {
        std::size_t bytes = 0;
        for (std::size_t j = 0; j < tile_; ++j) bytes += buffer_[j].length + 2;  // + 2: escaping a reserved token
        const auto size = static_cast<std::size_t>(state_.size);
        require(size <= known_ && static_cast<std::size_t>(vocabulary_.offsets[size]) <= vocabulary_.bytes.size(), kUnsound);
        return (size + tile_) * 2 <= vocabulary_.slots.size() && size + tile_ + 1 <= vocabulary_.offsets.size() &&
               static_cast<std::size_t>(vocabulary_.offsets[size]) + bytes + 8 <= vocabulary_.bytes.size();
    }

    // Finds for each token the id with its hash, and brings the string of that id, which is somewhere in memory, near: one step
    // for the whole tile after the other, so that the memory is waited for once and not token by token.
    void find_candidates() {
        const std::size_t mask = vocabulary_.slots.size() - 1;
        for (std::size_t j = 0; j < tile_; ++j) {
            Token& token = buffer_[j];
            if (token.special != 0) continue;
            const std::size_t first = home(token.hash);
            std::size_t slot = first;
            std::uint64_t seen = vocabulary_.slots[slot];
            while (seen != 0 && ((seen ^ token.hash) >> 32) != 0) {
                slot = next_slot(slot, mask, first);
                seen = vocabulary_.slots[slot];
            }
            token.candidate = seen == 0 ? kUnk : static_cast<std::uint32_t>(seen) - 1;
            require(token.candidate <= known_, kUnsound);
            prefetch(&vocabulary_.offsets[token.candidate]);
        }
        for (std::size_t j = 0; j < tile_; ++j) {
            prefetch(address_of(vocabulary_.bytes, static_cast<std::uint64_t>(vocabulary_.offsets[buffer_[j].candidate])));
        }
    }

    // False where the token is reserved and the policy is to refuse it.
    bool look_up(const Token& token, std::uint32_t& id) {
        if (token.length >= 3 && token.text[0] == '<' && options_.reserved != ReservedPolicy::ordinary) {
            const int depth = reserved_depth(token.text, token.length);
            if (depth > 0 && options_.reserved == ReservedPolicy::escape) {
                std::string escaped = "<";
                escaped.append(reinterpret_cast<const char*>(token.text), token.length).append(">");
                const auto* p = reinterpret_cast<const std::uint8_t*>(escaped.data());
                const std::uint8_t* const end = p + escaped.size();
                const std::uint64_t first8 = keep_bytes(load(p, end), escaped.size());
                id = find_or_insert(p, escaped.size(), hash_bytes(p, escaped.size(), first8, end), first8);
                return true;
            }
            if (depth == 1) {
                id = kUnk;
                return options_.reserved == ReservedPolicy::unk && token.text[1] == 'u';
            }
        }
        id = token.candidate;
        // No candidate: another token of this tile may have become a word; or the candidate shares no more than the hash.
        if (id == kUnk || !equals(id, token.text, token.length, token.first8)) {
            id = find_or_insert(token.text, token.length, token.hash, token.first8);
        }
        return true;
    }

    // `first8`: the first eight bytes of the token, those behind its end zero.
    std::uint32_t find_or_insert(const std::uint8_t* p, std::size_t length, std::uint64_t hash, std::uint64_t first8) {
        const std::uint64_t tag = hash & 0xFFFFFFFF00000000ull;
        const std::size_t mask = vocabulary_.slots.size() - 1;
        const std::size_t first = home(hash);
        for (std::size_t slot = first;; slot = next_slot(slot, mask, first)) {
            const std::uint64_t seen = vocabulary_.slots[slot];
            if (seen == 0) {
                return options_.insert ? insert(p, length, tag, slot) : kUnk;
            }
            if ((seen & 0xFFFFFFFF00000000ull) == tag) {
                const auto id = static_cast<std::uint32_t>(seen) - 1;
                if (equals(id, p, length, first8)) return id;
            }
        }
    }

    bool equals(std::uint32_t id, const std::uint8_t* p, std::size_t length, std::uint64_t first8) const {
        require(id < known_, kUnsound);
        const auto start = static_cast<std::size_t>(vocabulary_.offsets[id]), end = static_cast<std::size_t>(vocabulary_.offsets[id + 1]);
        if (end - start != length) return false;
        require(start <= end && end + 8 <= vocabulary_.bytes.size() && end + 8 >= 8, kUnsound);
        const std::uint8_t* const stored = vocabulary_.bytes.data() + start;
        std::uint64_t there;
        std::memcpy(&there, stored, 8);  // the strings have eight spare bytes
        return keep_bytes(there, length) == first8 && (length <= 8 || same_rest(stored, p, length));
    }

    std::uint32_t insert(const std::uint8_t* p, std::size_t length, std::uint64_t tag, std::size_t slot) {
        require(static_cast<std::size_t>(state_.size) < known_, kUnsound);
        const auto id = static_cast<std::uint32_t>(state_.size++);
        const std::int64_t start = vocabulary_.offsets[id];
        std::memcpy(vocabulary_.bytes.data() + start, p, length);
        vocabulary_.offsets[id + 1] = start + static_cast<std::int64_t>(length);
        vocabulary_.slots[slot] = tag | (id + 1);
        return id;
    }

    const SegmentText& text_;
    VocabularyView vocabulary_;
    const EncodeOptions& options_;
    EncodeState& state_;
    MutableView<std::uint32_t> ids_;
    MutableView<std::int64_t> span_ends_;
    MutableView<std::uint8_t> lossy_;
    std::size_t known_;    // ids that `offsets` has room for
    std::array<Token, kTile> buffer_;
    std::size_t tile_ = 0;
    std::string byte_names_;
};

}  // namespace

EncodeStatus encode(const SegmentText& text, VocabularyView vocabulary, const EncodeOptions& options, EncodeState& state,
                    MutableView<std::uint32_t> ids, MutableView<std::int64_t> span_ends, MutableView<std::uint8_t> lossy) {
    return Encoder(text, vocabulary, options, state, ids, span_ends, lossy).run();
}

TextCounts count_text(View<std::uint8_t> data, View<std::int64_t> starts, View<std::int64_t> ends) {
    constexpr std::size_t kChunk = 240;  // sums of so many ones fit a byte, so that sixteen are added at a time
    const auto is_space = [](std::uint8_t byte) -> std::uint8_t {
        return static_cast<std::uint8_t>((byte == 32) | (static_cast<std::uint8_t>(byte - 9) < 5));
    };
    TextCounts counts;
    for (std::size_t s = 0; s < starts.size(); ++s) {
        const std::uint8_t* p = data.data() + starts[s];
        const std::uint8_t* const end = data.data() + ends[s];
        if (p == end) continue;
        counts.words += !is_space(*p);
        counts.characters += (*p & 0xC0) != 0x80;
        for (++p; p < end;) {
            const std::size_t n = std::min(kChunk, static_cast<std::size_t>(end - p));
            std::uint8_t words = 0, characters = 0;
            for (std::size_t i = 0; i < n; ++i) {
                words = static_cast<std::uint8_t>(words + (is_space(*(p + i - 1)) & (is_space(p[i]) ^ 1)));
                characters = static_cast<std::uint8_t>(characters + ((p[i] & 0xC0) != 0x80));
            }
            counts.words += words;
            counts.characters += characters;
            p += n;
        }
    }
    return counts;
}

// The slots are zeros before.
void index_vocabulary(VocabularyView vocabulary, std::int64_t size) {
    const std::size_t mask = vocabulary.slots.size() - 1;
    const std::uint8_t* const bytes = vocabulary.bytes.data();
    const std::uint8_t* const end = bytes + vocabulary.bytes.size();
    std::array<std::uint64_t, kTile> hashes;  // a tile of tokens at a time: their slots are anywhere in memory
    for (std::size_t begin = 0, n = static_cast<std::size_t>(size); begin < n; begin += kTile) {
        const std::size_t tile = std::min(kTile, n - begin);
        for (std::size_t j = 0; j < tile; ++j) {
            const auto start = static_cast<std::size_t>(vocabulary.offsets[begin + j]);
            const auto stop = static_cast<std::size_t>(vocabulary.offsets[begin + j + 1]);
            require(start <= stop && stop <= vocabulary.bytes.size(), kUnsound);
            const std::size_t length = stop - start;
            hashes[j] = hash_token(bytes + start, length, end);
            prefetch_for_write(&vocabulary.slots[hashes[j] & mask]);
        }
        for (std::size_t j = 0; j < tile; ++j) {
            const std::size_t first = static_cast<std::size_t>(hashes[j] & mask);
            std::size_t slot = first;
            while (vocabulary.slots[slot] != 0) slot = next_slot(slot, mask, first);
            vocabulary.slots[slot] = (hashes[j] & 0xFFFFFFFF00000000ull) | static_cast<std::uint64_t>(begin + j + 1);
        }
    }
}

std::int64_t find_token(VocabularyView vocabulary, View<std::uint8_t> token) {
    const std::uint64_t hash = hash_token(token.data(), token.size(), token.data() + token.size());
    const std::size_t mask = vocabulary.slots.size() - 1, first = static_cast<std::size_t>(hash & mask);
    for (std::size_t slot = first;; slot = next_slot(slot, mask, first)) {
        const std::uint64_t seen = vocabulary.slots[slot];
        if (seen == 0) return -1;
        if ((seen & 0xFFFFFFFF00000000ull) != (hash & 0xFFFFFFFF00000000ull)) continue;
        const auto id = static_cast<std::size_t>(static_cast<std::uint32_t>(seen)) - 1;
        require(id + 1 < vocabulary.offsets.size() && id + 1 != 0, kUnsound);
        const auto start = static_cast<std::size_t>(vocabulary.offsets[id]);
        const auto end = static_cast<std::size_t>(vocabulary.offsets[id + 1]);
        require(start <= end && end <= vocabulary.bytes.size(), kUnsound);
        if (end - start == token.size() && std::memcmp(vocabulary.bytes.data() + start, token.data(), token.size()) == 0) {
            return static_cast<std::int64_t>(id);
        }
    }
}

}  // namespace lmgauge
