// Python's face of the kernels: arrays in, arrays and small tuples out, nothing else. All release the GIL.
#include "bindings_reader.hpp"

// The kernels write to a vocabulary only when asked to insert.
VocabularyView vocabulary_view(const ReadVocabulary& v) {
    const auto slots = view(std::get<0>(v));
    require(std::has_single_bit(slots.size()) && std::get<1>(v).size() > 0, "vocabulary slots: a power of two; offsets from 0");
    const auto offsets = view(std::get<1>(v));
    const auto bytes = view(std::get<2>(v));
    return {{const_cast<std::uint64_t*>(slots.data()), slots.size()},
            {const_cast<std::int64_t*>(offsets.data()), offsets.size()},
            {const_cast<std::uint8_t*>(bytes.data()), bytes.size()}};
}

using Vocabulary = std::tuple<MutableArray<std::uint64_t>, MutableArray<std::int64_t>, MutableArray<std::uint8_t>>;

static VocabularyView vocabulary_view(const Vocabulary& v) {
    const auto slots = view(std::get<0>(v));
    require(std::has_single_bit(slots.size()) && std::get<1>(v).size() > 0, "vocabulary slots: a power of two; offsets from 0");
    return {slots, view(std::get<1>(v)), view(std::get<2>(v))};
}

namespace {

using SegmentArrays = std::tuple<Array<std::uint8_t>, Array<std::int64_t>, Array<std::int64_t>>;
using TokenArrays = std::tuple<Array<std::uint8_t>, Array<std::int64_t>, Array<std::int64_t>, Array<std::int64_t>, Array<std::int64_t>>;

void check_segments(const SegmentArrays& segments) {
    const auto& [data, starts, ends] = segments;
    require(starts.size() == ends.size(), "shapes");
    for (std::size_t i = 0; i < starts.size(); ++i) {
        require(0 <= starts.data()[i] && starts.data()[i] <= ends.data()[i] &&
                    ends.data()[i] <= static_cast<std::int64_t>(data.size()), "segments outside their data");
    }
}

// Tokens that were found elsewhere: so many for each segment, each within the data.
void check_tokens(const SegmentText& text) {
    std::size_t left = text.token_starts.size();
    require(text.token_counts.size() == text.starts.size() && left == text.token_ends.size() && left == text.token_spans.size(), "tokens");
    for (const std::int64_t n : text.token_counts) {
        require(0 <= n && static_cast<std::size_t>(n) <= left, "tokens");
        left -= static_cast<std::size_t>(n);
    }
    require(left == 0, "tokens");
    for (std::size_t j = 0; j < text.token_starts.size(); ++j) {
        require(0 <= text.token_starts[j] && text.token_starts[j] <= text.token_ends[j] &&
                    text.token_ends[j] <= static_cast<std::int64_t>(text.token_data.size()), "tokens outside their data");
    }
}

// Where a call before this one stopped.
void check_state(const EncodeState& state, const SegmentText& text, TokenMode mode, std::size_t ids) {
    const auto segments = static_cast<std::int64_t>(text.starts.size());
    require(0 <= state.segment && state.segment <= segments && -1 <= state.position, "state");
    require(0 <= state.written && static_cast<std::size_t>(state.written) <= ids && 0 <= state.size, "state");
    if (mode == TokenMode::given) {
        std::int64_t before = 0;
        for (std::size_t s = 0; s < static_cast<std::size_t>(state.segment); ++s) before += text.token_counts[s];
        require(state.token == before, "state");
    }
    if (state.position < 0 || state.segment == segments) return;
    const auto s = static_cast<std::size_t>(state.segment);
    const bool given = mode == TokenMode::given;
    require((given ? 0 : text.starts[s]) <= state.position && state.position <= (given ? text.token_counts[s] : text.ends[s]), "state");
}

template <class V>
int run_encode(const SegmentArrays& segments, const TokenArrays& tokens, const V& vocabulary,
               std::tuple<int, int, bool, bool> options, bool insert, MutableArray<std::int64_t> state,
               MutableArray<std::uint32_t> ids, MutableArray<std::int64_t> span_ends, MutableArray<std::uint8_t> lossy) {
    const auto& [data, starts, ends] = segments;
    const auto& [token_data, token_starts, token_ends, token_counts, token_spans] = tokens;
    const auto& [mode, reserved, bos, eos] = options;
    require(state.size() == sizeof(EncodeState) / 8, "shapes");
    require(mode >= 0 && mode <= static_cast<int>(TokenMode::given), "how text is cut");
    check_policy(reserved);
    require((span_ends.size() == 0 || span_ends.size() >= ids.size()) && (lossy.size() == 0 || lossy.size() == starts.size()),
            "output");
    check_segments(segments);
    const SegmentText text{view(data), view(starts), view(ends), view(token_data), view(token_starts), view(token_ends),
                           view(token_counts), view(token_spans)};
    if (static_cast<TokenMode>(mode) == TokenMode::given) check_tokens(text);
    EncodeState s;
    std::memcpy(static_cast<void*>(&s), state.data(), sizeof s);
    check_state(s, text, static_cast<TokenMode>(mode), ids.size());
    const EncodeOptions o{static_cast<TokenMode>(mode), static_cast<ReservedPolicy>(reserved), insert, bos, eos};
    const EncodeStatus status = encode(text, vocabulary_view(vocabulary), o, s, view(ids), view(span_ends), view(lossy));
    std::memcpy(state.data(), &s, sizeof s);
    return static_cast<int>(status);
}

using Rows = std::tuple<MutableArray<double>, MutableArray<std::uint8_t>, MutableArray<std::uint32_t>, MutableArray<std::uint8_t>,
                        MutableArray<std::uint32_t>>;

Lower lower_view(const Array<float>& unigram, const std::vector<Table>& table) {
    return Lower{view(unigram), table.empty() ? View<Entry>{} : view(table[0])};
}

// Subtracted from each count, given away for it (fixed point), added to the denominator per type.
using Discounts = std::tuple<Array<double>, Array<std::uint64_t>, std::uint64_t>;

Discounting discounting(const Discounts& d) {
    require(std::get<0>(d).size() > 0 && std::get<0>(d).size() == std::get<1>(d).size(), "discounts");
    return Discounting{view(std::get<0>(d)), view(std::get<1>(d)), std::get<2>(d)};
}

Window window(std::uint64_t first, const MutableSums& sums) {
    return Window{first, {reinterpret_cast<ContextSum*>(sums.data()), sums.shape(0)}};
}

}  // namespace

NB_MODULE(_native, m) {
    // Models that a module or a notebook still holds when Python ends are no fault.
    nb::set_leak_warnings(false);
    m.doc() = "Compiled hot loops of lmgauge: flat functions over arrays. See the headers for what each expects.";

    // ---- text
    const auto bind_encode = [&](const char* name, auto tag, bool insert) {
        using V = decltype(tag);
        def(m, name, [insert](const SegmentArrays& segments, const TokenArrays& tokens, const V& vocabulary,
                             std::tuple<int, int, bool, bool> options, MutableArray<std::int64_t> state,
                             MutableArray<std::uint32_t> ids, MutableArray<std::int64_t> span_ends,
                             MutableArray<std::uint8_t> lossy) {
            nb::gil_scoped_release release;
            return run_encode(segments, tokens, vocabulary, options, insert, state, ids, span_ends, lossy);
        });
    };
    bind_encode("intern_segments", Vocabulary{}, true);
    bind_encode("encode_segments", ReadVocabulary{}, false);
    def(m, "count_text", [](Array<std::uint8_t> data, Array<std::int64_t> starts, Array<std::int64_t> ends) {
        check_segments({data, starts, ends});
        nb::gil_scoped_release release;
        const TextCounts counts = count_text(view(data), view(starts), view(ends));
        return std::make_tuple(counts.words, counts.characters);
    });
    def(m, "index_vocabulary", [](const Vocabulary& vocabulary, std::int64_t size) {
        const VocabularyView v = vocabulary_view(vocabulary);
        require(size >= 0 && static_cast<std::size_t>(size) < v.slots.size() &&
                    static_cast<std::size_t>(size) < v.offsets.size(), "vocabulary size");
        nb::gil_scoped_release release;
        index_vocabulary(v, size);
    });
    def(m, "find_token", [](const ReadVocabulary& vocabulary, Array<std::uint8_t> token) {
        return find_token(vocabulary_view(vocabulary), view(token));
    });

    // ---- counting
    def(m, "count_level", [](Array<std::uint32_t> ids, Array<std::uint32_t> previous, MutableArray<std::uint32_t> next,
                            MutableTable table, std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> share,
                            std::uint64_t spill_limit) {
        const auto& [worker, workers, regions] = share;
        require(previous.size() == ids.size() && (next.size() == 0 || next.size() == ids.size()), "shapes");
        require(worker < workers && regions > 0, "share");
        CountResult result;
        {
            nb::gil_scoped_release release;
            result = count_level(view(ids), view(previous), view(next), view(table), Share{worker, workers, regions}, spill_limit);
        }
        return nb::make_tuple(result.added, to_numpy(std::move(result.spilled)));
    });
    def(m, "count_spilled", [](Array<std::uint32_t> ids, Array<std::uint32_t> previous, MutableArray<std::uint32_t> next,
                              MutableTable table, Array<std::uint64_t> positions) {
        require(previous.size() == ids.size() && (next.size() == 0 || next.size() == ids.size()), "shapes");
        nb::gil_scoped_release release;
        return count_spilled(view(ids), view(previous), view(next), view(table), view(positions));
    });
    def(m, "sketch_distinct", [](Array<std::uint32_t> ids, std::size_t begin, std::size_t end, int order,
                                MutableArray<std::uint8_t> registers, int index_bits) {
        check_range(begin, end, ids.size());
        require(order >= 2 && order <= 256 && index_bits >= 1 && index_bits <= 32, "order, bits");
        require(registers.size() == static_cast<std::size_t>(order - 1) << index_bits, "registers");
        nb::gil_scoped_release release;
        sketch_distinct(view(ids), begin, end, order, view(registers), index_bits);
    });
    def(m, "add_continuations", [](Table table, std::size_t begin, std::size_t end, MutableArray<std::uint32_t> counts) {
        check_range(begin, end, table.shape(0));
        nb::gil_scoped_release release;
        add_continuations(view(table), begin, end, view(counts));
    });
    def(m, "adjust_counts", [](MutableTable table, std::size_t begin, std::size_t end, Array<std::uint32_t> continuations,
                              std::uint32_t cutoff, MutableArray<std::uint8_t> dropped, std::uint32_t histogram_size) {
        check_range(begin, end, table.shape(0));
        check_marks(continuations.size(), end);
        check_marks(dropped.size(), end);
        require(histogram_size < std::uint32_t{1} << 20, "histogram");
        std::vector<std::uint64_t> histogram;
        {
            nb::gil_scoped_release release;
            histogram = adjust_counts(view(table), begin, end, view(continuations), cutoff, view(dropped), histogram_size);
        }
        return to_numpy(std::move(histogram));
    });

    // ---- estimating
    def(m, "sum_contexts", [](Table table, std::size_t begin, std::size_t end, Array<std::uint8_t> dropped, Discounts discounts,
                             std::uint64_t first, MutableSums sums) {
        check_range(begin, end, table.shape(0));
        check_marks(dropped.size(), end);
        const Discounting d = discounting(discounts);
        nb::gil_scoped_release release;
        sum_contexts(view(table), begin, end, view(dropped), d, window(first, sums));
    });
    def(m, "estimate_interpolated", [](MutableTable table, std::size_t begin, std::size_t end, std::uint64_t first, MutableSums sums,
                                      Discounts discounts, Array<float> unigram, const std::vector<Table>& lower) {
        check_range(begin, end, table.shape(0));
        const Discounting d = discounting(discounts);
        nb::gil_scoped_release release;
        estimate_interpolated(view(table), begin, end, window(first, sums), d, lower_view(unigram, lower));
    });
    def(m, "sum_lower", [](Table table, std::size_t begin, std::size_t end, Array<std::uint8_t> dropped, Array<float> unigram,
                          const std::vector<Table>& lower, std::uint64_t first, MutableArray<std::uint64_t> lower_sums,
                          MutableArray<std::uint32_t> types, MutableArray<std::uint32_t> lower_contexts) {
        check_range(begin, end, table.shape(0));
        check_marks(dropped.size(), end);
        require(lower_sums.size() == types.size() && types.size() == lower_contexts.size(), "shapes");
        nb::gil_scoped_release release;
        sum_lower(view(table), begin, end, view(dropped), lower_view(unigram, lower),
                  Followers{first, view(lower_sums), view(types), view(lower_contexts)});
    });
    def(m, "balance_mass", [](MutableSums sums, Array<std::uint32_t> types, std::uint64_t vocabulary_size) {
        require(sums.shape(0) == types.size(), "shapes");
        nb::gil_scoped_release release;
        balance_mass(window(0, sums).sums, view(types), vocabulary_size);
    });
    def(m, "estimate_discounted", [](MutableTable table, std::size_t begin, std::size_t end, Array<std::uint8_t> dropped,
                                    std::uint64_t first, MutableSums sums, Discounts discounts,
                                    MutableArray<std::uint64_t> kept_sums) {
        check_range(begin, end, table.shape(0));
        check_marks(dropped.size(), end);
        require(kept_sums.size() == sums.shape(0), "shapes");
        const Discounting d = discounting(discounts);
        nb::gil_scoped_release release;
        estimate_discounted(view(table), begin, end, view(dropped), window(first, sums), d, view(kept_sums));
    });
    def(m, "estimate_additive", [](MutableTable table, std::size_t begin, std::size_t end, std::uint64_t first, MutableSums sums,
                                  double added, double vocabulary_size) {
        check_range(begin, end, table.shape(0));
        nb::gil_scoped_release release;
        estimate_additive(view(table), begin, end, window(first, sums), added, vocabulary_size);
    });
    def(m, "store_backoffs", [](MutableTable table, std::uint64_t first, MutableSums sums) {
        check_range(first, first + sums.shape(0), table.shape(0));
        nb::gil_scoped_release release;
        store_backoffs(view(table), window(first, sums));
    });
    def(m, "store_unseen", [](MutableTable table, std::uint64_t first, MutableSums sums, double added, double vocabulary_size) {
        check_range(first, first + sums.shape(0), table.shape(0));
        nb::gil_scoped_release release;
        store_unseen(view(table), window(first, sums), added, vocabulary_size);
    });

    // ---- looking up
    def(m, "score_ids", [](const ModelArrays& arrays, Array<std::uint32_t> ids, std::size_t skip, const Rows& out) {
        const ModelView model = model_view(arrays);
        const EventRows rows{view(std::get<0>(out)), view(std::get<1>(out)), view(std::get<2>(out)), view(std::get<3>(out)),
                             view(std::get<4>(out))};
        require(rows.logprob.size() >= ids.size() && rows.matched.size() >= ids.size() && rows.ids.size() >= ids.size() &&
                    rows.kind.size() >= ids.size() &&
                    (rows.contexts.empty() || rows.contexts.size() >= ids.size() * model.tables.size()), "output");
        nb::gil_scoped_release release;
        for (const std::uint32_t id : view(ids)) require(id < model.words(), "a token id outside the vocabulary");
        return score_ids(model, view(ids), skip, rows);
    });

    def(m, "sum_ids", [](const ModelArrays& arrays, Array<std::uint32_t> ids, const SumArrays& out) {
        const ModelView model = model_view(arrays);
        nb::gil_scoped_release release;
        for (const std::uint32_t id : view(ids)) require(id < model.words(), "a token id outside the vocabulary");
        return sum_ids(model, view(ids), segment_columns(out, view(ids)));
    });

    // ---- sums
    def(m, "sum_events", [](Array<double> logprob, Array<std::uint8_t> kind, Array<std::uint8_t> context,
                           Array<std::int64_t> segment_events,
                           MutableArray<std::int64_t> high, MutableArray<std::uint64_t> low, MutableArray<std::int64_t> zeros) {
        std::size_t rows = 0;
        for (const std::int64_t n : view(segment_events)) {
            require(0 <= n && static_cast<std::size_t>(n) <= logprob.size() - rows, "segment_events");
            rows += static_cast<std::size_t>(n);
        }
        require(rows == logprob.size() && kind.size() == logprob.size() &&
                    high.size() == segment_events.size() && low.size() == high.size() && zeros.size() == high.size(), "shapes");
        EventSums r;
        {
            nb::gil_scoped_release release;
            r = sum_events(view(logprob), view(kind), view(context), view(segment_events), view(high), view(low), view(zeros));
        }
        nb::list kinds;
        for (std::size_t k = 0; k < kKinds; ++k) kinds.append(nb::make_tuple(r.sum[k].high, r.sum[k].low, r.events[k], r.zeros[k]));
        return nb::make_tuple(kinds, to_numpy(std::vector<std::int64_t>(r.contexts.begin(), r.contexts.end())), r.bad);
    });

    bind_reader(m);
    bind_tables(m);
    bind_partition_pack(m);
    bind_distributions(m);
    bind_resampling(m);
    bind_overlap(m);
    bind_bleu(m);
    bind_chrf(m);
    bind_edit_distance(m);
    bind_ter(m);
    bind_kenlm(m);
    bind_partition(m);
    bind_separators(m);

    // ---- ARPA
    def(m, "parse_arpa_lines", [](Array<std::uint8_t> data, int order, MutableArray<double> probability, MutableArray<double> backoff,
                                 MutableArray<std::int64_t> word_starts, MutableArray<std::int64_t> word_ends) {
        require(order > 0 && probability.size() == backoff.size() && word_starts.size() == word_ends.size() &&
                    word_starts.size() == probability.size() * static_cast<std::size_t>(order), "shapes");
        nb::gil_scoped_release release;
        const ArpaLines r = parse_arpa_lines(view(data), order, view(probability), view(backoff), view(word_starts), view(word_ends));
        return std::make_tuple(r.lines, r.consumed, r.fault, r.reason);
    });
    def(m, "format_arpa_lines", [](Array<double> probability, Array<double> backoff, Array<std::uint32_t> words, int order,
                                  Array<std::int64_t> offsets, Array<std::uint8_t> bytes) {
        require(order > 0 && words.size() == probability.size() * static_cast<std::size_t>(order) &&
                    (backoff.size() == 0 || backoff.size() == probability.size()), "shapes");
        for (const std::uint32_t w : view(words)) require(w + std::size_t{1} < offsets.size(), "a token id outside the vocabulary");
        std::string out;
        {
            nb::gil_scoped_release release;
            out = format_arpa_lines(view(probability), view(backoff), view(words), order, view(offsets), view(bytes));
        }
        return nb::bytes(out.data(), out.size());
    });
}
