#include "text_reader.hpp"

namespace lmgauge {
namespace {

constexpr std::size_t kTexts = 128;       // texts of many
constexpr std::size_t kOrders = 64;       // of models whose states fit the stack

// Two states in turn: that before a word, and that behind it.
class Turn {
  public:
    explicit Turn(std::size_t order) {
        if (order > kOrders) more_.resize(2 * order);
        Cell* const cells = more_.empty() ? few_.data() : more_.data();
        before_ = cells;
        behind_ = cells + order;
    }
    Cell* before() { return before_; }
    Step step(const NgramReader& reader, std::uint32_t word) {
        const Step step = reader.step(before_, word, behind_);
        std::swap(before_, behind_);
        return step;
    }

  private:
    std::array<Cell, 2 * kOrders> few_;
    std::vector<Cell> more_;
    Cell *before_, *behind_;
};

// A text as the encoder takes it: one segment, not cut yet.
struct OneSegment {
    std::int64_t start = 0, end;
    explicit OneSegment(std::string_view text) : end(static_cast<std::int64_t>(text.size())), text_(text) {}
    SegmentText view() const {
        return {{reinterpret_cast<const std::uint8_t*>(text_.data()), text_.size()}, {&start, 1}, {&end, 1}, {}, {}, {}, {}, {}};
    }

  private:
    std::string_view text_;
};

// The sum of some numbers, rounded once (Ogita, Rump & Oishi 2005, algorithm Sum2, with the errors added up in the same way).
double exact_sum(View<double> values) {
    double sum = 0, error = 0, rest = 0;
    const auto add = [](double& to, double value) {
        const double before = to;
        to += value;
        const double part = to - before;
        return (before - (to - part)) + (value - part);
    };
    for (const double value : values) {
        if (!std::isfinite(value)) return value;
        rest += add(error, add(sum, value));
    }
    return sum + (error + rest);
}

}  // namespace

std::int64_t TextReader::find(std::string_view word) const {
    if (word.empty()) return -1;
    return find_token(words_, {reinterpret_cast<const std::uint8_t*>(word.data()), word.size()});
}

std::optional<std::uint32_t> TextReader::find_reserved(std::string_view word) const {
    const std::int64_t start = 0, end = static_cast<std::int64_t>(word.size()), one = 1;
    const View<std::uint8_t> data{reinterpret_cast<const std::uint8_t*>(word.data()), word.size()};
    std::uint32_t id = kUnk;
    EncodeState state;
    const EncodeStatus status = encode({data, {&start, 1}, {&end, 1}, data, {&start, 1}, {&end, 1}, {&one, 1}, {&end, 1}}, words_,
                                       {TokenMode::given, options_.reserved, false, false, false}, state, {&id, 1}, {}, {});
    return status == EncodeStatus::done ? std::optional(id) : std::nullopt;
}

void TextReader::step_all(View<Cell> from, View<std::uint32_t> words, MutableView<Cell> to, MutableView<double> logprob) const {
    constexpr std::size_t kStepsAhead = 8;
    const std::size_t order = reader_.order(), n = words.size();
    for (std::size_t i = 0; i < n; ++i) {
        require(words[i] < reader_.words() && words[i] != kBos, "a token id outside the vocabulary");
        require(reader_.sound(&from[i * order]), "states that no step leads to");
    }
    for (std::size_t i = 0; i < n; ++i) {
        if (i + kStepsAhead < n) reader_.prefetch_step(&from[(i + kStepsAhead) * order], words[i + kStepsAhead]);
        const double p = reader_.logprob(reader_.step(&from[i * order], words[i], &to[i * order]));
        logprob[i] = words[i] == kEos && !options_.eos ? -INFINITY : p;
    }
}

std::optional<std::size_t> TextReader::score_line(std::string_view text, std::array<double, kShort + 1>& logprobs) const {
    if (options_.mode < 0 || text.size() > kShort || reader_.order() > kOrders) return std::nullopt;
    if (text.find('\0') != text.npos || text.find('\r') != text.npos) return std::nullopt;
    std::array<std::uint32_t, kShort + 1> ids;
    EncodeState encoding;
    const EncodeOptions options{static_cast<TokenMode>(options_.mode), options_.reserved, false, false, options_.eos};
    if (encode(OneSegment(text).view(), words_, options, encoding, ids, {}, {}) != EncodeStatus::done) return std::nullopt;
    const auto n = static_cast<std::size_t>(encoding.written);
    Turn turn(reader_.order());
    reader_.begin(true, turn.before());
    for (std::size_t i = 0; i < n; ++i) {
        if (ids[i] == kBos || (ids[i] == kEos && (!options_.eos || i + 1 < n))) return std::nullopt;
        const double logprob = reader_.logprob(turn.step(reader_, ids[i]));
        if (logprob > kRounding) return std::nullopt;
        logprobs[i] = std::min(logprob, 0.0);
    }
    return n;
}

ScoredLines TextReader::score_lines(std::string_view data, View<std::int64_t> starts, std::vector<std::int64_t> ends) const {
    std::vector<double> logprob, sums;
    const EncodeOptions options{static_cast<TokenMode>(options_.mode), options_.reserved, false, true, options_.eos};
    std::vector<std::uint32_t> ids, events;
    std::vector<std::uint8_t> matched, kind;
    bool clean = data.find('\0') == data.npos && data.find('\r') == data.npos;
    for (std::size_t first = 0; clean && first < starts.size(); first += kTexts) {    // what the first caches hold
        const std::size_t n = std::min(kTexts, starts.size() - first), written = logprob.size();
        const auto most = static_cast<std::size_t>(ends[first + n - 1] - starts[first]) + 2 * n;
        if (ids.size() < most) {
            ids.resize(most);
            events.resize(most);
            matched.resize(most);
            kind.resize(most);
        }
        const SegmentText segments{{reinterpret_cast<const std::uint8_t*>(data.data()), data.size()}, starts.subspan(first, n),
                                   View<std::int64_t>(ends).subspan(first, n), {}, {}, {}, {}, {}};
        EncodeState encoding;
        clean = encode(segments, words_, options, encoding, ids, {}, {}) == EncodeStatus::done;
        const auto tokens = static_cast<std::size_t>(encoding.written);
        // A vocabulary in which a word has the id of <s> would make more sentences of these than there are.
        const auto begun = static_cast<std::size_t>(std::count(ids.begin(), ids.begin() + encoding.written, kBos));
        clean = clean && begun == n;
        if (!clean) break;
        logprob.resize(written + tokens);
        const MutableView<double> rows = MutableView<double>(logprob).subspan(written);
        logprob.resize(written + reader_.score(View<std::uint32_t>(ids).first(tokens), {rows, matched, events, kind, {}}));
        for (std::size_t i = 1, begin = written, line = 0; i <= tokens; ++i) {
            if (i < tokens && ids[i] != kBos) continue;
            const std::size_t end = written + i - ++line;    // events before it: ids without <s>
            ends[first + line - 1] = static_cast<std::int64_t>(end);
            sums.push_back(exact_sum(View<double>(logprob).subspan(begin, end - begin)));
            begin = end;
        }
    }
    // Rounding, or tables that contradict themselves: the long way says which.
    if (!clean || std::any_of(logprob.begin(), logprob.end(), [](double value) { return value > 0; })) sums.clear();
    return {std::move(logprob), std::move(ends), std::move(sums)};
}

// Calls visit(step, id) for each word between white space, and at last for </s>.
template <class F>
void TextReader::walk_words(std::string_view sentence, bool bos, bool eos, F&& visit) const {
    const OneSegment segment(sentence);
    std::array<std::uint32_t, kShort / 2 + 2> few;
    std::vector<std::uint32_t> more(sentence.size() > kShort ? sentence.size() / 2 + 2 : 0);
    const MutableView<std::uint32_t> ids = more.empty() ? MutableView<std::uint32_t>(few) : MutableView<std::uint32_t>(more);
    EncodeState encoding;
    encode(segment.view(), words_, {TokenMode::whitespace, ReservedPolicy::ordinary, false, false, eos}, encoding, ids, {}, {});
    Turn turn(reader_.order());
    reader_.begin(bos, turn.before());
    for (std::size_t i = 0; i < static_cast<std::size_t>(encoding.written); ++i) visit(turn.step(reader_, ids[i]), ids[i]);
}

float TextReader::score_words(std::string_view sentence, bool bos, bool eos) const {
    // A logarithm costs as much as a lookup: probabilities are multiplied as long as the product is far from the smallest number.
    const bool linear = reader_.linear();
    float sum = 0;
    double total = 0, product = 1;
    walk_words(sentence, bos, eos, [&](const Step& step, std::uint32_t) {
        if (!linear) {
            sum += as_log10(step.value);    // as KenLM adds them
            return;
        }
        if (product < 1e-150) {
            total += std::log(product);
            product = 1;
        }
        product *= step.value;
    });
    return linear ? as_log10(total + std::log(product)) : sum;
}

std::vector<std::tuple<float, int, bool>> TextReader::full_scores(std::string_view sentence, bool bos, bool eos) const {
    std::vector<std::tuple<float, int, bool>> scores;
    walk_words(sentence, bos, eos, [&](const Step& step, std::uint32_t id) {
        scores.emplace_back(as_log10(reader_.logprob(step)), static_cast<int>(step.matched), id == kUnk);
    });
    return scores;
}

}  // namespace lmgauge
