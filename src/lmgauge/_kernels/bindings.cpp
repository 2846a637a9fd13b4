// Python's face of the kernels: arrays in, arrays and small tuples out, nothing else. See the headers for what each expects.
#include "bindings.hpp"

namespace lmgauge {
namespace {

struct Segments {
    Bytes8 data;
    Places starts, ends;
};
void check(const Segments& s) { check_spans(s.starts, s.ends, s.data.size(), "segments outside their data"); }

// Tokens that were found elsewhere: so many for each segment, each within the data.
struct GivenTokens {
    Bytes8 data;
    Places starts, ends, counts, spans;
};
void check_given(const GivenTokens& tokens, std::size_t segments) {
    check_same_size(tokens.starts, tokens.ends, tokens.spans);
    check_spans(tokens.starts, tokens.ends, tokens.data.size(), "tokens outside their data");
    std::size_t left = tokens.starts.size();
    for (const std::int64_t n : tokens.counts) {
        require(0 <= n && static_cast<std::size_t>(n) <= left, "tokens");
        left -= static_cast<std::size_t>(n);
    }
    require(left == 0 && tokens.counts.size() == segments, "tokens");
}

// Where a call before this one stopped.
void check_state(const EncodeState& state, const SegmentText& text, bool given, std::size_t ids) {
    const auto segments = static_cast<std::int64_t>(text.starts.size());
    require(0 <= state.segment && state.segment <= segments && -1 <= state.position && 0 <= state.size, "state");
    require(0 <= state.written && static_cast<std::size_t>(state.written) <= ids, "state");
    const auto s = static_cast<std::size_t>(state.segment);
    if (given) {
        std::int64_t before = 0;
        for (const std::int64_t n : text.token_counts.first(s)) before += n;
        require(state.token == before, "state");
    }
    if (state.position < 0 || state.segment == segments) return;
    require((given ? 0 : text.starts[s]) <= state.position && state.position <= (given ? text.token_counts[s] : text.ends[s]), "state");
}

// Mode, reserved policy, <s>, </s>.
using Options = std::tuple<TokenMode, ReservedPolicy, bool, bool>;

template <class Vocabulary>
int encode_segments(const Segments& segments, const GivenTokens& tokens, const Vocabulary& vocabulary, const Options& options,
                    MutableView<std::int64_t> state, MutableView<std::uint32_t> ids, MutableView<std::int64_t> span_ends,
                    MutableView<std::uint8_t> lossy) {
    const auto& [mode, reserved, bos, eos] = options;
    const bool given = mode == TokenMode::given;
    require((span_ends.empty() || span_ends.size() >= ids.size()) && state.size() == sizeof(EncodeState) / 8, "output");
    check_empty_or(lossy, segments.starts.size(), "output");
    if (given) check_given(tokens, segments.starts.size());
    const SegmentText text{segments.data, segments.starts, segments.ends, tokens.data, tokens.starts, tokens.ends, tokens.counts, tokens.spans};
    EncodeState s;
    std::memcpy(static_cast<void*>(&s), state.data(), sizeof s);
    check_state(s, text, given, ids.size());
    constexpr bool kInsert = std::is_same_v<Vocabulary, VocabularyView>;
    const EncodeStatus status = encode(text, vocabulary, {mode, reserved, kInsert, bos, eos}, s, ids, span_ends, lossy);
    std::memcpy(state.data(), &s, sizeof s);
    return static_cast<int>(status);
}

}  // namespace

template <>
struct From<Segments> : FromFields<Segments, Bytes8, Places, Places> {};
template <>
struct From<GivenTokens> : FromFields<GivenTokens, Bytes8, Places, Places, Places, Places> {};
inline void check(const CountedRows& ngrams) {
    check_same_size(ngrams.parents, ngrams.counts);
    check_empty_or(ngrams.dropped, ngrams.size(), "a mark for each n-gram");
}
template <>
struct From<CountedRows> : FromFields<CountedRows, Ids, Ids, Bytes8> {};
inline void check(const Discounting& d) { require(!d.discount.empty() && d.discount.size() == d.mass.size(), "discounts"); }
template <>
struct From<Discounting> : FromFields<Discounting, View<double>, View<std::uint64_t>, std::uint64_t> {};
template <>
struct From<Lower> : FromFields<Lower, Ids, View<float>> {};
template <>
struct From<View<ContextSum>> : FromRows<const ContextSum, const std::uint64_t, 2> {};
template <>
struct From<MutableView<ContextSum>> : FromRows<ContextSum, std::uint64_t, 2> {};

namespace {

void bind_text(nb::module_& m) {
    def(m, "intern_segments", encode_segments<VocabularyView>);
    def(m, "encode_segments", encode_segments<ReadVocabulary>);
    def(m, "count_text", count_text, [](Bytes8 data, Places starts, Places ends) {
        check_spans(starts, ends, data.size(), "segments outside their data");
    });
    def(m, "index_vocabulary", index_vocabulary, [](const VocabularyView& v, std::int64_t size) {
        const auto n = static_cast<std::size_t>(size);
        require(size >= 0 && n < v.slots.size() && n < v.offsets.size(), "vocabulary size");
    });
    def(m, "find_token", [](const ReadVocabulary& vocabulary, Bytes8 token) { return find_token(vocabulary, token); });
}

void check_lower(const CountedRows& ngrams, const Lower& lower) { check_empty_or(lower.suffixes, ngrams.size(), "suffixes"); }

void bind_estimating(nb::module_& m) {
    def(m, "sum_contexts", sum_contexts);
    def(m, "estimate_interpolated", estimate_interpolated,
        [](const CountedRows& ngrams, const auto&, const auto&, const Lower& lower, const auto& out) {
            check_same_size(ngrams, out);
            check_lower(ngrams, lower);
        });
    def(m, "sum_lower", sum_lower, [](const CountedRows& ngrams, const Lower& lower, const auto& sums, const auto& types) {
        check_same_size(sums, types);
        check_lower(ngrams, lower);
    });
    def(m, "balance_mass", balance_mass, [](const auto& sums, Ids types, std::uint64_t) { check_same_size(sums, types); });
    def(m, "estimate_discounted", estimate_discounted,
        [](const CountedRows& ngrams, const auto& sums, const auto&, const auto& out, const auto& kept_sums) {
            check_same_size(ngrams, out);
            check_same_size(sums, kept_sums);
        });
    def(m, "estimate_additive", estimate_additive,
        [](const CountedRows& ngrams, const auto&, double, double, const auto& out) { check_same_size(ngrams, out); });
}

void bind_lookup(nb::module_& m) {
    def(m, "score_ids", score_ids, [](const ModelView& model, Ids ids, std::size_t, const EventRows& rows) {
        check_rows(rows, ids.size(), model.tables.size());
        check_below(ids, model.words());
    });
    def(m, "sum_ids", sum_ids, [](const ModelView& model, Ids ids, const SegmentColumns& columns) {
        check_below(ids, model.words());
        check_segments(columns, ids);
    });
    def(m, "sum_events", [](View<double> logprob, Bytes8 kind, Bytes8 context, Places segment_events, MutableView<std::int64_t> high,
                            MutableView<std::uint64_t> low, MutableView<std::int64_t> zeros) {
        std::size_t rows = 0;
        for (const std::int64_t n : segment_events) {
            require(0 <= n && static_cast<std::size_t>(n) <= logprob.size() - rows, "segment_events");
            rows += static_cast<std::size_t>(n);
        }
        require(rows == logprob.size() && kind.size() == rows, "shapes");
        check_same_size(segment_events, high, low, zeros);
        const EventSums sums = sum_events(logprob, kind, context, segment_events, high, low, zeros);
        std::vector<std::tuple<std::int64_t, std::uint64_t, std::int64_t, std::int64_t>> kinds;
        for (std::size_t k = 0; k < kKinds; ++k) kinds.emplace_back(sums.sum[k].high, sums.sum[k].low, sums.events[k], sums.zeros[k]);
        return std::tuple(kinds, std::vector<std::int64_t>(sums.contexts.begin(), sums.contexts.end()), sums.bad);
    });
    def(m, "coin_sums", [](View<std::uint64_t> bits, std::uint64_t first, const Matrix<const std::int64_t>& values,
                           const Matrix<std::int64_t>& sums) {
        const std::size_t rows = values.shape(0), width = values.shape(1), trials = sums.shape(0);
        require(rows > 0 && width > 0 && sums.shape(1) == width, "columns");
        // The last group of eight coins may reach into the word behind the last bit.
        require(first <= 0xFFFFFFFFu && trials <= 0xFFFFFFFFu && rows <= 0x7FFFFFFFu, "too many coins");
        require(bits.size() > ((first + trials) * rows + 7) / 64 + 1, "a bit for each coin, and a spare word");
        coin_sums(bits, first, {values.data(), values.size()}, width, {sums.data(), sums.size()});
    });
    def(m, "draw_counts", [](MutableView<std::uint64_t> state, const Matrix<std::uint8_t>& counts) {
        const std::size_t n = counts.shape(1);
        // With an even increment the generator may give one number for ever.
        require(state.size() == 6 && state[3] % 2 == 1, "the state of a generator is six numbers, the increment odd");
        require(n > 0 && n <= 0xFFFFFFFFu, "between 1 and 2^32 - 1 things to draw");
        PcgState s{state[0], state[1], state[2], state[3], state[4], state[5]};
        draw_counts(s, static_cast<std::uint32_t>(n), {counts.data(), counts.size()});
        state[0] = s.high, state[1] = s.low, state[4] = s.has_half, state[5] = s.half;
    });
}

void bind_arpa(nb::module_& m) {
    def(m, "parse_arpa_lines", parse_arpa_lines, [](Bytes8, int order, const auto& probability, const auto& backoff, Places starts, Places ends) {
        require(order > 0 && starts.size() == probability.size() * static_cast<std::size_t>(order), "shapes");
        check_same_size(probability, backoff);
        check_same_size(starts, ends);
    });
    def(m, "format_arpa_lines", format_arpa_lines,
        [](View<double> probability, View<double> backoff, Ids words, int order, Places offsets, Bytes8) {
            require(order > 0 && words.size() == probability.size() * static_cast<std::size_t>(order), "shapes");
            check_empty_or(backoff, probability.size(), "shapes");
            for (const std::uint32_t w : words) require(w + std::size_t{1} < offsets.size(), "a token id outside the vocabulary");
        });
}

}  // namespace
}  // namespace lmgauge

NB_MODULE(_native, m) {
    using namespace lmgauge;
    // Models that a module or a notebook still holds when Python ends are no fault.
    nb::set_leak_warnings(false);
    m.doc() = "Compiled hot loops of lmgauge: flat functions over arrays. See the headers for what each expects.";
    bind_text(m);
    bind_estimating(m);
    bind_lookup(m);
    bind_arpa(m);
    bind_tables(m);
    bind_distributions(m);
    bind_overlap(m);
    bind_metrics(m);
    bind_kenlm(m);
    bind_reader(m);
}
