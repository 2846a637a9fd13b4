// Clipped n-gram matches, level by level: the n-gram that ends at word i + 1 is the child of the (n-1)-gram that ends at
// word i by the word i + 1. Only n-grams of the hypothesis whose first n - 1 words matched can match, so that only those
// are looked at, and most levels are short. One small table serves all levels of all segments.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "bleu.hpp"

namespace lmgauge {

namespace {

// Open addressing; emptied by moving on to another stamp, so that a small segment behind a large one costs little.
template <class Slot>
class Slots {
  public:
    // Makes it empty, for up to `entries` entries.
    void begin(std::size_t entries) {
        const std::size_t wanted = std::bit_ceil(2 * entries + 2);
        if (slots_.size() < wanted) slots_.resize(wanted);
        mask_ = wanted - 1;
        if (++stamp_ == 0) {
            std::fill(slots_.begin(), slots_.end(), Slot{});
            stamp_ = 1;
        }
    }
    // Whether `entries` do not leave half of it free.
    bool crowded(std::size_t entries) const { return 2 * entries > mask_; }

    // The slot for which `same` holds, or the free one where it belongs.
    template <class Same>
    Slot& find(std::uint64_t hash, Same&& same) {
        std::size_t at = hash & mask_;
        while (slots_[at].stamp == stamp_ && !same(slots_[at])) at = (at + 1) & mask_;
        return slots_[at];
    }
    bool holds(const Slot& slot) const { return slot.stamp == stamp_; }
    std::uint32_t stamp() const { return stamp_; }

  private:
    std::vector<Slot> slots_;
    std::size_t mask_ = 0;
    std::uint32_t stamp_ = 0;
};

// A word: its bytes, the first eight of them as a number (fewer: zeros behind), and a hash, on which only speed depends.
struct Word {
    std::string_view bytes;
    std::uint64_t head, hash;
};

constexpr std::uint64_t each_byte(std::uint64_t byte) { return byte * 0x0101010101010101ull; }

// Up to eight bytes at `at`, before `end`.
std::uint64_t load(const char* at, const char* end) {
    std::uint64_t value = 0;
    if (end - at >= 8) [[likely]] {
        std::memcpy(&value, at, 8);
    } else {
        std::memcpy(&value, at, static_cast<std::size_t>(end - at));
    }
    return value;
}

// How many of the eight bytes come before the first where white space may begin: a control, a blank, or one of the four
// bytes that characters of white space beyond ASCII begin with. In each mask the lowest bit set is right, so it is in all.
std::size_t plain_bytes(std::uint64_t bytes) {
    constexpr std::uint64_t kHigh = each_byte(0x80);
    std::uint64_t stops = (bytes - each_byte(0x21)) & ~bytes & kHigh;
    if ((bytes & kHigh) != 0) {
        for (const std::uint64_t first : {0xC2u, 0xE1u, 0xE2u, 0xE3u}) {
            const std::uint64_t zero = bytes ^ each_byte(first);
            stops |= (zero - each_byte(1)) & ~zero & kHigh;
        }
    }
    return static_cast<std::size_t>(std::countr_zero(stops)) / 8;
}

// What for_each_word() of texts.hpp does, eight bytes at a time. `limit` is where the block of all texts ends.
template <class Found>
void for_each_hashed_word(std::string_view text, const char* limit, Found&& found) {
    const char* at = text.data();
    const char* const end = at + text.size();
    while (true) {
        while (at < end && *at == ' ') ++at;
        if (at == end) return;
        const char* const begin = at;
        std::uint64_t hash = 0;
        while (at < end) {
            const std::uint64_t bytes = load(at, limit);
            const std::size_t plain = std::min(plain_bytes(bytes), static_cast<std::size_t>(end - at));
            if (plain != 0) {
                const std::uint64_t kept = plain == 8 ? bytes : bytes & ((1ull << 8 * plain) - 1);
                hash = mix(hash ^ kept);
                at += plain;
                if (plain == 8) continue;
            }
            const char* next = at;
            if (at == end || is_white_space(next_code_point(next))) break;
            hash = mix(hash ^ load(at, next));
            at = next;
        }
        if (const auto size = static_cast<std::size_t>(at - begin); size != 0) {
            const std::uint64_t head = load(begin, limit);
            found(Word{{begin, size}, size < 8 ? head & ((1ull << 8 * size) - 1) : head, hash});
        }
        if (at < end) next_code_point(at);    // white space
    }
}

struct WordSlot {
    std::uint64_t head;
    std::uint32_t stamp, id;
};
struct NgramSlot {
    std::uint64_t key;
    std::uint32_t stamp, node;
};

// An n-gram of the hypothesis: how often it has it, the reference that has it most often, and the reference being read.
struct Node {
    std::uint32_t hypothesis = 0, best = 0, current = 0, reference = 0;
};
// The n-gram that ends before `next` of the words.
struct Place {
    std::size_t next;
    std::uint32_t node;
};

class Matcher {
  public:
    // Numbers the words of the hypothesis; returns how many it has. `limit`: the end of the block that holds all texts.
    std::size_t read_hypothesis(std::string_view text, const char* limit);
    // Finds the words of one more reference; returns how many it has.
    std::size_t read_reference(std::string_view text, const char* limit);
    // Writes the matches of order 1, 2, ... `order`.
    void match(std::size_t order, std::int64_t* correct);

  private:
    std::uint32_t number(const Word& word);
    WordSlot& find_word(const Word& word);
    void grow_words();
    void number_children();
    void find_children();
    void count_references();
    std::int64_t clipped() const;

    Slots<WordSlot> words_;
    Slots<NgramSlot> ngrams_;
    std::vector<Word> spellings_;                      // by number
    std::vector<std::uint32_t> hypothesis_;            // words, then kNone
    std::vector<std::uint32_t> references_;            // words (kNone: not of the hypothesis), after each reference kNone
    std::vector<std::size_t> ends_;                    // of each reference in `references_`
    std::vector<Node> nodes_;                          // of the level
    std::vector<Place> in_hypothesis_, in_references_; // where the level's n-grams end, in order
};

WordSlot& Matcher::find_word(const Word& word) {
    return words_.find(word.hash, [&](const WordSlot& slot) {
        if (slot.head != word.head) return false;
        const std::string_view known = spellings_[slot.id].bytes;
        return known.size() == word.bytes.size() && (known.size() <= 8 || known == word.bytes);
    });
}

std::uint32_t Matcher::number(const Word& word) {
    if (words_.crowded(spellings_.size() + 1)) grow_words();
    WordSlot& slot = find_word(word);
    if (!words_.holds(slot)) {
        slot = {word.head, words_.stamp(), static_cast<std::uint32_t>(spellings_.size())};
        spellings_.push_back(word);
    }
    return slot.id;
}

void Matcher::grow_words() {
    words_.begin(4 * spellings_.size());
    for (std::uint32_t id = 0; id < spellings_.size(); ++id) {
        const Word& word = spellings_[id];
        words_.find(word.hash, [](const WordSlot&) { return false; }) = {word.head, words_.stamp(), id};
    }
}

std::size_t Matcher::read_hypothesis(std::string_view text, const char* limit) {
    spellings_.clear();
    hypothesis_.clear();
    references_.clear();
    ends_.clear();
    words_.begin(64);
    for_each_hashed_word(text, limit, [&](const Word& word) { hypothesis_.push_back(number(word)); });
    hypothesis_.push_back(kNone);
    return hypothesis_.size() - 1;
}

std::size_t Matcher::read_reference(std::string_view text, const char* limit) {
    const std::size_t begin = references_.size();
    for_each_hashed_word(text, limit, [&](const Word& word) {
        const WordSlot& slot = find_word(word);
        references_.push_back(words_.holds(slot) ? slot.id : kNone);
    });
    references_.push_back(kNone);
    ends_.push_back(references_.size());
    return references_.size() - begin - 1;
}

// The n-grams of the hypothesis get numbers, where their first n - 1 words matched.
void Matcher::number_children() {
    ngrams_.begin(in_hypothesis_.size());
    std::uint32_t count = 0;
    std::size_t kept = 0;
    for (const Place place : in_hypothesis_) {
        const std::uint32_t word = hypothesis_[place.next];
        if (nodes_[place.node].best == 0 || word == kNone) continue;
        const std::uint64_t key = make_key(place.node, word);
        NgramSlot& slot = ngrams_.find(mix(key), [&](const NgramSlot& s) { return s.key == key; });
        if (!ngrams_.holds(slot)) slot = {key, ngrams_.stamp(), count++};
        in_hypothesis_[kept++] = {place.next + 1, slot.node};
    }
    in_hypothesis_.resize(kept);
    nodes_.assign(count, Node{});
    for (const Place place : in_hypothesis_) ++nodes_[place.node].hypothesis;
}

// The same n-grams in the references.
void Matcher::find_children() {
    std::size_t kept = 0;
    for (const Place place : in_references_) {
        const std::uint32_t word = references_[place.next];
        if (word == kNone) continue;
        const std::uint64_t key = make_key(place.node, word);
        const NgramSlot& slot = ngrams_.find(mix(key), [&](const NgramSlot& s) { return s.key == key; });
        if (ngrams_.holds(slot)) in_references_[kept++] = {place.next + 1, slot.node};
    }
    in_references_.resize(kept);
}

void Matcher::count_references() {
    std::uint32_t reference = 0;
    for (const Place place : in_references_) {
        while (place.next > ends_[reference]) ++reference;
        Node& node = nodes_[place.node];
        if (node.reference != reference + 1) {
            node.reference = reference + 1;
            node.current = 0;
        }
        node.best = std::max(node.best, ++node.current);
    }
}

std::int64_t Matcher::clipped() const {
    std::int64_t sum = 0;
    for (const Node& node : nodes_) sum += std::min(node.hypothesis, node.best);
    return sum;
}

void Matcher::match(std::size_t order, std::int64_t* correct) {
    in_hypothesis_.clear();
    in_references_.clear();
    nodes_.assign(spellings_.size(), Node{});
    for (std::size_t i = 0; i + 1 < hypothesis_.size(); ++i) {
        in_hypothesis_.push_back({i + 1, hypothesis_[i]});
        ++nodes_[hypothesis_[i]].hypothesis;
    }
    for (std::size_t i = 0; i < references_.size(); ++i) {
        if (references_[i] != kNone) in_references_.push_back({i + 1, references_[i]});
    }
    count_references();
    correct[0] = clipped();
    for (std::size_t n = 1; n < order; ++n) {
        if (correct[n - 1] == 0) {
            correct[n] = 0;
            continue;
        }
        number_children();
        find_children();
        count_references();
        correct[n] = clipped();
    }
}

// What the brevity penalty compares the hypothesis with; of two lengths equally close, the shorter.
class LengthOfReferences {
  public:
    LengthOfReferences(std::int64_t hypothesis, ReferenceLength kind) : hypothesis_(hypothesis), kind_(kind) {}
    void add(std::int64_t length) {
        ++count_;
        sum_ += length;
        const std::int64_t distance = kind_ == ReferenceLength::closest ? std::abs(hypothesis_ - length) : 0;
        if (distance < distance_ || (distance == distance_ && length < best_)) {
            distance_ = distance;
            best_ = length;
        }
    }
    std::int64_t value() const {
        if (count_ == 0) return 0;
        return kind_ == ReferenceLength::average ? sum_ * (kLengthScale / count_) : best_;
    }

  private:
    std::int64_t hypothesis_;
    ReferenceLength kind_;
    std::int64_t count_ = 0, sum_ = 0, best_ = 0, distance_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace

void bleu_statistics(const TextsView& hypotheses, const ReferencesView& references, std::size_t order,
                     ReferenceLength length, std::size_t begin, std::size_t end, MutableView<std::int64_t> out) {
    Matcher matcher;
    const auto limit = [](const TextsView& texts) {
        return reinterpret_cast<const char*>(texts.data.data() + texts.data.size());
    };
    for (std::size_t i = begin; i < end; ++i) {
        std::int64_t* const row = out.data() + i * (2 + 2 * order);
        const std::size_t words = matcher.read_hypothesis(hypotheses[i], limit(hypotheses));
        LengthOfReferences reference(static_cast<std::int64_t>(words), length);
        for (std::int64_t r = references.offsets[i]; r < references.offsets[i + 1]; ++r) {
            const std::string_view text = references.texts[static_cast<std::size_t>(r)];
            reference.add(static_cast<std::int64_t>(matcher.read_reference(text, limit(references.texts))));
        }
        row[0] = static_cast<std::int64_t>(words);
        row[1] = reference.value();
        matcher.match(order, row + 2);
        for (std::size_t n = 0; n < order; ++n) row[2 + order + n] = words > n ? static_cast<std::int64_t>(words - n) : 0;
    }
}

}  // namespace lmgauge
