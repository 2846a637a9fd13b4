// chrF: how many n-grams of characters and of words a hypothesis shares with a reference.
//
// N-grams are matched order by order, as the n-gram engine counts: an n-gram is the slot of its first n - 1 symbols in the
// table of the order below, and its last symbol. So any order and any alphabet is one 64-bit key, and an n-gram is looked
// at only while its first n - 1 symbols occur in both texts.
#include "chrf.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <vector>

namespace lmgauge {

namespace {

constexpr double kEpsilon = 1e-16;  // of sacreBLEU's `eps_smoothing`

using Symbols = std::vector<std::uint32_t>;

// Where an n-gram begins, and the slot of all of it but the last symbol.
struct Candidate {
    std::uint32_t position, prefix;
};

struct Slot {
    std::uint64_t key;
    std::uint32_t use;   // of the table, when this was entered: a slot from an older use is empty
    std::uint32_t left;  // occurrences in the reference that the hypothesis has not used up; kMet: it has the n-gram
};
constexpr std::uint32_t kMet = 1u << 31;
constexpr std::size_t kFewSlots = 1024;  // stay in the core's own cache

// An open hash table, as the loops want it: in registers.
struct Table {
    Slot* slots;
    std::size_t mask;
    unsigned shift;
    std::uint32_t use;

    bool empty(std::size_t slot) const { return slots[slot].use != use; }
    // The slot of a key, or the empty one where it belongs.
    std::size_t find(std::uint64_t key) const {
        std::size_t slot = static_cast<std::size_t>(key * 0x9E3779B97F4A7C15ull >> shift);
        while (!empty(slot) && slots[slot].key != key) slot = (slot + 1) & mask;
        return slot;
    }
};

class Matcher {
  public:
    // Writes to `row` [hypothesis, reference, matches] of orders 1 to `orders`.
    void match(const Symbols& hypothesis, const Symbols& reference, int orders, std::int64_t* row) {
        start(hypothesis, hypothesis_);
        start(reference, reference_);
        for (std::size_t n = 1; n <= static_cast<std::size_t>(orders); ++n, row += 3) {
            row[1] = ngrams(reference.size(), n);
            // As sacreBLEU: where the reference is too short to have any, those of the hypothesis do not count.
            row[0] = row[1] > 0 ? ngrams(hypothesis.size(), n) : 0;
            row[2] = 0;
            if (reference_.empty() || hypothesis_.empty()) continue;
            const Table table = empty_table(reference_.size());
            enter(table, reference, n);
            row[2] = meet(table, hypothesis, n);
            keep_met();
        }
    }

  private:
    static std::int64_t ngrams(std::size_t length, std::size_t n) {
        return length >= n ? static_cast<std::int64_t>(length - n + 1) : 0;
    }

    static void start(const Symbols& text, std::vector<Candidate>& candidates) {
        candidates.resize(text.size());
        for (std::uint32_t i = 0; i < text.size(); ++i) candidates[i] = {i, 0};
    }

    // A table at most half of which will be filled. Nothing is cleared: most segments are shorter than the table.
    Table empty_table(std::size_t entries) {
        const std::size_t size = std::max(kFewSlots, std::bit_ceil(2 * entries));
        if (slots_.size() < size) slots_.resize(size);
        if (++use_ == 0) {
            std::fill(slots_.begin(), slots_.end(), Slot{});
            use_ = 1;
        }
        return {slots_.data(), size - 1, 64 - static_cast<unsigned>(std::countr_zero(size)), use_};
    }

    // Enters the reference's candidates that are long enough; each is left with its own slot.
    void enter(const Table table, const Symbols& text, std::size_t n) {
        std::size_t kept = 0;
        for (const Candidate candidate : reference_) {
            const std::size_t last = candidate.position + n - 1;
            if (last >= text.size()) break;  // positions rise
            const std::uint64_t key = std::uint64_t{candidate.prefix} << 32 | text[last];
            const std::size_t slot = table.find(key);
            const std::uint32_t before = table.empty(slot) ? 0 : table.slots[slot].left;
            table.slots[slot] = {key, table.use, before + 1};
            reference_[kept++] = {candidate.position, static_cast<std::uint32_t>(slot)};
        }
        reference_.resize(kept);
    }

    // Looks up the hypothesis's candidates and keeps those the reference has. Returns the matches, each of which uses up
    // an occurrence in the reference.
    std::int64_t meet(const Table table, const Symbols& text, std::size_t n) {
        std::size_t kept = 0;
        std::int64_t matches = 0;
        for (const Candidate candidate : hypothesis_) {
            const std::size_t last = candidate.position + n - 1;
            if (last >= text.size()) break;
            const std::size_t slot = table.find(std::uint64_t{candidate.prefix} << 32 | text[last]);
            if (table.empty(slot)) continue;
            Slot& found = table.slots[slot];
            const std::uint32_t left = found.left & ~kMet;
            matches += left != 0;
            found.left = (left - (left != 0)) | kMet;
            hypothesis_[kept++] = {candidate.position, static_cast<std::uint32_t>(slot)};
        }
        hypothesis_.resize(kept);
        return matches;
    }

    // Of the reference's candidates those that the hypothesis has too.
    void keep_met() {
        std::size_t kept = 0;
        for (const Candidate candidate : reference_) {
            reference_[kept] = candidate;
            kept += slots_[candidate.prefix].left >> 31;
        }
        reference_.resize(kept);
    }

    std::vector<Candidate> hypothesis_, reference_;
    std::vector<Slot> slots_;
    std::uint32_t use_ = 0;
};

void read_characters(std::string_view text, bool whitespace, Symbols& characters) {
    characters.resize(text.size());
    const char* at = text.data();
    const char* const end = at + text.size();
    std::size_t size = 0;
    while (at < end) {
        const char32_t c = next_code_point(at);
        characters[size] = c;
        size += whitespace || !is_white_space(c);
    }
    characters.resize(size);
}

bool is_ascii_punctuation(char byte) {
    const auto c = static_cast<unsigned char>(byte);
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// The words of chrF++ (Popovic 2017): white space separates, and of a word longer than one character the last one is cut
// off if it is ASCII punctuation, otherwise the first.
template <class Word>
void for_each_part(std::string_view text, Word&& part) {
    for_each_word(text, [&](std::string_view word) {
        const char* second = word.data();
        next_code_point(second);
        if (second == word.data() + word.size()) {
            part(word);
        } else if (is_ascii_punctuation(word.back())) {
            part(word.substr(0, word.size() - 1));
            part(word.substr(word.size() - 1));
        } else if (is_ascii_punctuation(word.front())) {
            part(word.substr(0, 1));
            part(word.substr(1));
        } else {
            part(word);
        }
    });
}

// Numbers the words of two texts: a word's number is the place where it occurs first.
class Words {
  public:
    void read(std::string_view hypothesis, std::string_view reference, Symbols& hypothesis_words, Symbols& reference_words) {
        words_.clear();
        const auto take = [&](std::string_view word) { words_.push_back(word); };
        for_each_part(hypothesis, take);
        const std::size_t middle = words_.size();
        for_each_part(reference, take);
        clear(words_.size());
        hypothesis_words.resize(middle);
        reference_words.resize(words_.size() - middle);
        for (std::size_t i = 0; i < middle; ++i) hypothesis_words[i] = number(i);
        for (std::size_t i = middle; i < words_.size(); ++i) reference_words[i - middle] = number(i);
    }

  private:
    void clear(std::size_t words) {
        const std::size_t size = std::bit_ceil(2 * words + 1);
        first_.assign(size, 0);
        mask_ = size - 1;
    }

    std::uint32_t number(std::size_t i) {
        std::size_t slot = static_cast<std::size_t>(hash(words_[i])) & mask_;
        while (first_[slot] != 0 && words_[first_[slot] - 1] != words_[i]) slot = (slot + 1) & mask_;
        if (first_[slot] == 0) first_[slot] = static_cast<std::uint32_t>(i) + 1;
        return first_[slot];
    }

    static std::uint64_t hash(std::string_view word) {
        std::uint64_t h = word.size();
        const char* at = word.data();
        std::size_t left = word.size();
        for (; left >= 8; at += 8, left -= 8) {
            std::uint64_t block;
            std::memcpy(&block, at, 8);
            h = mix(h ^ block);
        }
        std::uint64_t block = 0;
        std::memcpy(&block, at, left);
        return mix(h ^ block);
    }

    std::vector<std::string_view> words_;
    std::vector<std::uint32_t> first_;  // of the word of each slot, its first place, from 1; 0: empty
    std::size_t mask_ = 0;
};

// The F score of sacreBLEU 2.6, operation by operation: which of two references is better depends on its last bit.
double f_score(const std::int64_t* row, const ChrfOptions& options) {
    const int orders = options.char_order + options.word_order;
    const double factor = options.factor;
    double score = 0, precisions = 0, recalls = 0;
    int effective = 0;
    for (int i = 0; i < orders; ++i, row += 3) {
        const auto hypothesis = static_cast<double>(row[0]), reference = static_cast<double>(row[1]);
        const auto matches = static_cast<double>(row[2]);
        const double precision = row[0] > 0 ? matches / hypothesis : kEpsilon;
        const double recall = row[1] > 0 ? matches / reference : kEpsilon;
        const double below = factor * precision + recall;
        score += below > 0 ? (1 + factor) * precision * recall / below : kEpsilon;
        if (row[0] > 0 && row[1] > 0) {
            precisions += precision;
            recalls += recall;
            ++effective;
        }
    }
    if (options.eps_smoothing) return 100 * score / orders;
    if (effective == 0) return 0;
    precisions /= effective;
    recalls /= effective;
    if (precisions + recalls == 0) return 0;
    return 100 * ((1 + factor) * precisions * recalls / (factor * precisions + recalls));
}

}  // namespace

void chrf_statistics(const TextsView& hypotheses, const ReferencesView& references, const ChrfOptions& options,
                     std::size_t begin, std::size_t end, MutableView<std::int64_t> out) {
    const std::size_t columns = 3 * static_cast<std::size_t>(options.char_order + options.word_order);
    Matcher matcher;
    Words words;
    Symbols hypothesis, reference, hypothesis_words, reference_words;
    std::vector<std::int64_t> row(columns);
    for (std::size_t i = begin; i < end; ++i) {
        const auto first = static_cast<std::size_t>(references.offsets[i]);
        const auto last = static_cast<std::size_t>(references.offsets[i + 1]);
        read_characters(hypotheses[i], options.whitespace, hypothesis);
        double best = -1;
        for (std::size_t k = first; k < last; ++k) {
            read_characters(references.texts[k], options.whitespace, reference);
            matcher.match(hypothesis, reference, options.char_order, row.data());
            if (options.word_order > 0) {
                words.read(hypotheses[i], references.texts[k], hypothesis_words, reference_words);
                matcher.match(hypothesis_words, reference_words, options.word_order, row.data() + 3 * options.char_order);
            }
            const double score = last - first > 1 ? f_score(row.data(), options) : 0;
            if (score > best) {
                best = score;
                std::copy(row.begin(), row.end(), out.begin() + static_cast<std::ptrdiff_t>(i * columns));
            }
        }
    }
}

}  // namespace lmgauge
