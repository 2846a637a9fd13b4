// The compiled hot loops: plain functions over array views. They know nothing of files, models or Python, trust no index
// that a file gave them, and each has a slow, obvious twin in tests/reference.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hashing.hpp"
#include "packed.hpp"

namespace lmgauge {

template <class T>
using View = std::span<const T>;
template <class T>
using MutableView = std::span<T>;

// ---- encode.cpp: text to token ids --------------------------------------------------------------------------------

enum class TokenMode : int { whitespace = 0, character = 1, byte = 2, given = 3 };
enum class ReservedPolicy : int { refuse = 0, escape = 1, unk = 2, ordinary = 3 };
enum class EncodeStatus : int { done = 0, grow = 1, reserved = 2, room = 3 };

// Segment i is data[starts[i], ends[i]). In mode `given` token j is token_data[token_starts[j], token_ends[j]), segment i
// has token_counts[i] of them, and token_spans[j] is where its span ends in the segment.
struct SegmentText {
    View<std::uint8_t> data;
    View<std::int64_t> starts, ends;
    View<std::uint8_t> token_data;
    View<std::int64_t> token_starts, token_ends, token_counts, token_spans;
};

// Token strings by id, and an open hash table from string to id. A slot is (upper half of the hash << 32) | (id + 1);
// 0 is empty. offsets[id], offsets[id + 1] bound the string in `bytes`, which has 8 spare bytes behind the last one.
struct VocabularyView {
    MutableView<std::uint64_t> slots;
    MutableView<std::int64_t> offsets;
    MutableView<std::uint8_t> bytes;
};

struct EncodeOptions {
    TokenMode mode;
    ReservedPolicy reserved;
    bool insert;     // unknown tokens enter the vocabulary; otherwise they become <unk>
    bool bos, eos;   // events around each segment
};

// Where encoding stands; the caller keeps it between calls, so that a call can stop to let arrays grow.
struct EncodeState {
    std::int64_t segment = 0;     // next segment
    std::int64_t position = -1;   // next byte (token, in mode `given`) of that segment; -1: not begun
    std::int64_t token = 0;       // in mode `given`: first token of that segment
    std::int64_t written = 0;     // ids written
    std::int64_t size = 0;        // vocabulary size
    std::int64_t fault = -1;      // byte (token) of a reserved token that was refused
    std::int64_t irregular = 0;   // the segment being read is not given back by its tokens
};

// `lossy[i]` (unless empty): the words of segment i, joined by single spaces, are not the segment.
EncodeStatus encode(const SegmentText& text, VocabularyView vocabulary, const EncodeOptions& options, EncodeState& state,
                    MutableView<std::uint32_t> ids, MutableView<std::int64_t> span_ends, MutableView<std::uint8_t> lossy);
struct TextCounts {
    std::int64_t words = 0, characters = 0;
};
// Runs of bytes that are not ASCII white space, and code points, of all segments together.
TextCounts count_text(View<std::uint8_t> data, View<std::int64_t> starts, View<std::int64_t> ends);
void index_vocabulary(VocabularyView vocabulary, std::int64_t size);
std::int64_t find_token(VocabularyView vocabulary, View<std::uint8_t> token);

// ---- estimate.cpp: probabilities and back-off weights -------------------------------------------------------------

constexpr int kMassBits = 28;    // fixed point of counts and of discounted mass; counts stay below 2^32
constexpr int kLowerBits = 60;   // fixed point of sums of lower-order probabilities

// What the words seen after a context leave: `total` is the denominator, `mass` the numerator of what is given away, both
// in fixed point. Sums of integers, so the same on any number of threads.
struct ContextSum {
    std::uint64_t total, mass;
};

// The n-grams of one order in a partition, as columns with a value for each: the row of the n-gram without its last word in the
// order below (order 2: the first word), which is its context; the count; 1 where a cut-off drops it (none: it drops none).
struct CountedRows {
    View<std::uint32_t> parents, counts;
    View<std::uint8_t> dropped;
    std::size_t size() const { return parents.size(); }
    bool is_dropped(std::size_t row) const { return !dropped.empty() && dropped[row]; }
};

struct Discounting {
    View<double> discount;        // subtracted from count c: discount[min(c, size - 1)]
    View<std::uint64_t> mass;     // given away for count c, fixed point
    std::uint64_t extra;          // added to the denominator per type (Witten-Bell: 1)
};

// p(w | h') of each row: in the order of the rows, or by its suffix.
struct Lower {
    View<std::uint32_t> suffixes;
    View<float> probabilities;
    float operator[](std::size_t row) const;
};
void sum_contexts(const CountedRows& ngrams, const Discounting& discounting, MutableView<ContextSum> sums);
void estimate_interpolated(const CountedRows& ngrams, View<ContextSum> sums, const Discounting& discounting, const Lower& lower,
                           MutableView<float> probabilities);
// What the words kept after each context have in the lower order together, and how many they are.
void sum_lower(const CountedRows& ngrams, const Lower& lower, MutableView<std::uint64_t> lower_sums, MutableView<std::uint32_t> types);
void balance_mass(MutableView<ContextSum> sums, View<std::uint32_t> types, std::uint64_t vocabulary_size);
// `kept_sums`: the sums of the probabilities as stored, by context.
void estimate_discounted(const CountedRows& ngrams, View<ContextSum> sums, const Discounting& discounting, MutableView<float> probabilities,
                         MutableView<std::uint64_t> kept_sums);
void estimate_additive(const CountedRows& ngrams, View<ContextSum> sums, double added, double vocabulary_size, MutableView<float> probabilities);

// ---- lookup.cpp: scoring ------------------------------------------------------------------------------------------

struct ModelView {
    View<float> unigrams;             // probability, back-off weight of word 0, of word 1, ...
    std::vector<TableView> tables;    // order 2, 3, ...
    bool full_context;                // no back-off: an unseen n-gram has the probability its context holds for it
    float unseen;                     // full_context: probability of any word after an unseen context
    std::uint32_t words() const { return static_cast<std::uint32_t>(unigrams.size() / 2); }
    float probability(std::uint32_t word) const { return unigrams[2 * word]; }
    float weight(std::uint32_t word) const { return unigrams[2 * word + 1]; }
};

constexpr std::uint32_t kUnseenContext = 0xFFFFFFFEu;

// A row for every id but <s>, in order: the natural log-probability, the order of the longest n-gram found, the id, its kind
// (0 token, 1 <unk>, 2 </s>); and unless `contexts` is empty, the context, a slot for each order from 2: that of the last
// word, of the last two, ... as far as the model has them, then kNone. In a model without back-off kUnseenContext comes first
// where the model does not have the full context.
struct EventRows {
    MutableView<double> logprob;
    MutableView<std::uint8_t> matched;
    MutableView<std::uint32_t> ids;
    MutableView<std::uint8_t> kind;
    MutableView<std::uint32_t> contexts;
};
// `skip` leading ids serve as context only. Returns the number of rows.
std::size_t score_ids(const ModelView& model, View<std::uint32_t> ids, std::size_t skip, const EventRows& rows);
// A row for each segment, and what its events come to: `high` and `low` are an ExactSum of the possible ones.
struct SegmentColumns {
    MutableView<std::int64_t> high;
    MutableView<std::uint64_t> low;
    MutableView<std::int64_t> events, zeros, unseen, ends;
};
// As many segments as there are columns, each after <s>. Returns the largest log-probability, where that is above 0, or NaN;
// such are added as 0.
double sum_ids(const ModelView& model, View<std::uint32_t> ids, const SegmentColumns& columns);
// The context of an event, from the ids before it, as EventRows has it.
void find_context(const ModelView& model, View<std::uint32_t> context, MutableView<std::uint32_t> slots);
// Slots of n-grams; kNone where there is no such n-gram, or the parent is kNone.
void find_ngrams(const TableView& table, View<std::uint32_t> parents, View<std::uint32_t> words, MutableView<std::uint32_t> slots);

// ---- sums.cpp: exact sums -----------------------------------------------------------------------------------------

// A sum in fixed point with 80 bits below one: additions are exact, so no grouping of the terms changes it.
struct ExactSum {
    std::int64_t high = 0;      // multiples of 2^-16
    std::uint64_t low = 0;      // multiples of 2^-80
    bool add(double value);     // false where the value is out of range
    void add(const ExactSum& other);
    // Of numbers that are not positive: false long before the next of them could be out of range.
    bool fits() const { return high > -(std::int64_t{1} << 60); }
};

// As the machine adds: what is out of range wraps around, and is for the caller to keep from happening.
inline std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

inline bool ExactSum::add(double value) {
    constexpr double kLimit = 1099511627776.0;  // 2^40
    if (!(value > -kLimit && value < kLimit)) return false;
    const double scaled = value * 65536.0;
    auto whole = static_cast<std::int64_t>(scaled);  // towards zero; one less where that was up
    double part = scaled - static_cast<double>(whole);
    whole -= part < 0;
    part += part < 0 ? 1.0 : 0.0;
    // The part is in [0, 1]. Values between -2^-17 and 0 are rounded by at most 2^-69 as 1 is added; what is below 2^-79 is
    // cut off: the same for every grouping. Signed conversions, as those to unsigned numbers branch on the top bit, which
    // nobody can predict.
    constexpr double kPart = 9223372036854775808.0;  // 2^63
    const auto rest = static_cast<std::uint64_t>(static_cast<std::int64_t>(std::min(part * kPart, kPart - 1024))) << 1;
    low += rest;
    high = wrapping_add(high, whole + (low < rest ? 1 : 0));
    return true;
}

// Adds up events, segment after segment.
class SegmentAdder {
  public:
    explicit SegmentAdder(const SegmentColumns& columns) : columns_(columns) {}
    void begin() {
        write();
        ++segment_;
        sum_ = {};
        events_ = zeros_ = unseen_ = ends_ = 0;
    }
    void add(std::uint32_t id, double logprob) {
        ++events_;
        unseen_ += id == kUnk;
        ends_ += id == kEos;
        if (!(logprob <= 0.0)) {
            most_ = most_ == most_ && !(logprob <= most_) ? logprob : most_;
        } else if (!sum_.fits() || !sum_.add(logprob)) {
            ++zeros_;    // -inf: no other logarithm of a double is out of range, nor is the sum of any text's
        }
    }
    double finish() {
        write();
        return most_;
    }

  private:
    void write() const {
        if (segment_ < 0) return;
        const auto i = static_cast<std::size_t>(segment_);
        columns_.high[i] = sum_.high;
        columns_.low[i] = sum_.low;
        columns_.events[i] = events_;
        columns_.zeros[i] = zeros_;
        columns_.unseen[i] = unseen_;
        columns_.ends[i] = ends_;
    }

    SegmentColumns columns_;
    std::int64_t segment_ = -1;
    ExactSum sum_;
    std::int64_t events_ = 0, zeros_ = 0, unseen_ = 0, ends_ = 0;
    double most_ = 0.0;
};

inline constexpr int kKinds = 5;  // of events: token, oov, eos, spelled, framing

struct EventSums {
    std::array<ExactSum, kKinds> sum;
    std::array<std::int64_t, kKinds> events{}, zeros{};
    std::array<std::int64_t, 256> contexts{};
    std::int64_t bad = -1;                    // first row that is NaN, positive or absurd
};

// `context` (may be empty) is only counted.
EventSums sum_events(View<double> logprob, View<std::uint8_t> kind, View<std::uint8_t> context,
                     View<std::int64_t> segment_events,
                     MutableView<std::int64_t> high, MutableView<std::uint64_t> low, MutableView<std::int64_t> zeros);

// ---- resample.cpp: draws of sacreBLEU's tests ---------------------------------------------------------

// The state of NumPy's default generator: two 128-bit numbers, and the upper half of a 64-bit number if it waits for use.
struct PcgState {
    std::uint64_t high, low, increment_high, increment_low, has_half, half;
};
// How often each of n things was drawn, for each row of `counts`, n times with replacement: the draws are those of NumPy's
// `integers(0, n)`, row after row, and `state` moves on as NumPy's would. A byte each, for a row to stay in a core's cache:
// one thing is drawn 256 times with a probability below n / 256!, which is 10^-500.
void draw_counts(PcgState& state, std::uint32_t n, MutableView<std::uint8_t> counts);
// Sums of the rows that coins choose: sums[t] of `width` columns adds the rows i of `values` for which bit
// (first + t) * rows + i of `bits` is set, the lowest of each word first. There is a spare word behind the last bit.
void coin_sums(View<std::uint64_t> bits, std::uint64_t first, View<std::int64_t> values, std::size_t width,
               MutableView<std::int64_t> sums);

// ---- overlap.cpp: test text inside training text ------------------------------------------------------------------

// The tokens of a test with their suffix array: suffixes[k] begins the k-th suffix in order, ranks is its inverse,
// common[k] how many tokens suffixes k - 1 and k begin with alike (common[0] = 0), and `minima` the minima over 64, 64^2,
// ... entries of `common`. No token is 0.
struct SuffixView {
    View<std::uint32_t> ids;
    View<std::int32_t> suffixes, ranks, common, minima;
};
std::vector<std::int32_t> sort_suffixes(View<std::uint32_t> ids, std::uint32_t symbols);  // every id is below `symbols`
void common_prefixes(View<std::uint32_t> ids, View<std::int32_t> suffixes, View<std::int32_t> ranks,
                     MutableView<std::int32_t> common);
std::vector<std::int32_t> common_minima(View<std::int32_t> common);

// The distinct n-grams of the test: a hash table of (upper half of the hash << 32) | (place in the suffix array + 1), and
// before it a filter of 64-bit words. Both have a power of two of entries.
struct WindowIndex {
    std::size_t n;
    View<std::uint64_t> slots, filter;
};
void index_windows(const SuffixView& text, std::size_t n, std::uint32_t separator, MutableView<std::uint64_t> slots,
                   MutableView<std::uint64_t> filter);

// longest[p]: the longest run of at least `shortest` tokens from position p of the test met so far; 0 for none.
struct Runs {
    MutableView<std::int32_t> longest;
    std::int32_t shortest;
};
// Where following a training text stands. A run of `length` tokens that ends here also begins the suffix at `place`.
struct FollowState {
    std::int64_t position = 0;      // tokens read
    std::int64_t since_break = 0;
    std::int64_t length = 0;
    std::int64_t place = 0;
};
// Reads more training tokens (0: a word the test does not have, or a break); the first `skip` ids are the last n - 1 of
// before, or all there were. Returns test position, training position, ... of the runs it kept, later ones replacing
// earlier ones. The other runs follow from these by `spread_runs`.
std::vector<std::int64_t> follow_text(const SuffixView& text, const WindowIndex& index, View<std::uint32_t> ids, std::size_t skip,
                                      const Runs& runs, FollowState& state);
std::vector<std::int64_t> finish_following(const SuffixView& text, const WindowIndex& index, const Runs& runs, FollowState& state);
// Completes `longest`; origin[p] becomes the test position whose training place is one of p's run, -1 where the run is the
// rest of the one from p - 1. It enters as 0, 1, 2, ...
void spread_runs(const SuffixView& text, const Runs& runs, MutableView<std::int32_t> origin);

void hash_segments(View<std::uint8_t> data, View<std::int64_t> starts, View<std::int64_t> ends, MutableView<std::uint64_t> hashes);

// Numbers the n-grams of one order that end at each position, given the numbers of those of the order below (kNone where
// there is none): the slot of (number of the n-gram without its last word, last word) in an open hash table of 64-bit keys.
void number_ngrams(View<std::uint32_t> ids, View<std::uint32_t> shorter, MutableView<std::uint64_t> keys,
                   MutableView<std::uint32_t> numbers);
// Sets seen[k - 2][number] of every k-gram of `ids` in the tables keys[k - 2]; ids below 3 break n-grams. May run in
// several threads on the same flags.
void mark_ngrams(View<std::uint32_t> ids, const std::vector<View<std::uint64_t>>& keys,
                 const std::vector<MutableView<std::uint8_t>>& seen);

// ---- arpa.cpp: the text format ------------------------------------------------------------------------------------

struct ArpaLines {
    std::int64_t lines = 0, consumed = 0;
    std::int64_t fault = -1;    // byte offset of a line that cannot be read
    int reason = 0;             // 1 number, 2 fields, 3 out of range
};
// Reads whole lines `log10 p TAB w1 ... wk [TAB log10 b]`: numbers, and the byte ranges of the k words.
ArpaLines parse_arpa_lines(View<std::uint8_t> data, int order, MutableView<double> probability, MutableView<double> backoff,
                           MutableView<std::int64_t> word_starts, MutableView<std::int64_t> word_ends);
std::string format_arpa_lines(View<double> probability, View<double> backoff, View<std::uint32_t> words, int order,
                              View<std::int64_t> offsets, View<std::uint8_t> bytes);

}  // namespace lmgauge
