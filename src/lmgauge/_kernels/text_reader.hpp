// Texts through a reader of an n-gram model: states that are held between calls, short texts in one call, KenLM's calls.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "reader.hpp"

namespace lmgauge {

// Of one model. Most have few orders, so that most states need no memory of their own.
class State {
  public:
    State() = default;
    State(std::uint64_t owner, std::size_t order) : owner_(owner) { resize(order); }
    State(const State& other) { *this = other; }
    State& operator=(const State& other) {
        if (this == &other) return *this;
        owner_ = other.owner_;
        resize(other.order_);
        std::copy_n(other.cells(), order_, cells());
        return *this;
    }
    // Makes it a state of this model, if it is not; what is in the cells is for the caller to write.
    void become(std::uint64_t owner, std::size_t order) {
        owner_ = owner;
        if (order != order_) resize(order);
    }
    std::uint64_t owner() const { return owner_; }    // 0: of no model
    std::size_t order() const { return order_; }
    std::size_t length() const { return order_ == 0 ? 0 : cells()[0].id; }
    const Cell* cells() const { return many_ ? many_.get() : few_.data(); }
    Cell* cells() { return many_ ? many_.get() : few_.data(); }
    // Below zero, zero or above: an order of all states of one model.
    int compare(const State& other) const {
        if (length() != other.length()) return length() < other.length() ? -1 : 1;
        return std::memcmp(cells(), other.cells(), sizeof(Cell) * std::min(order_, other.order_));
    }
    bool operator==(const State& other) const { return owner_ == other.owner_ && compare(other) == 0; }
    std::uint64_t hash() const {
        std::uint64_t h = owner_;
        for (std::size_t k = 0; k <= length() && k < order_; ++k) h = mix(h ^ cells()[k].id) + k;
        return h;
    }

  private:
    void resize(std::size_t order) {
        many_.reset(order > few_.size() ? new Cell[order] : nullptr);
        order_ = order;
    }
    std::uint64_t owner_ = 0;
    std::size_t order_ = 0;
    std::array<Cell, 7> few_;    // written by whoever makes the state one of a model
    std::unique_ptr<Cell[]> many_;
};

// As `State`, for those who write into their states.
class WrittenState : public State {};

// What the reader of a model does with text: how it is cut (-1: elsewhere), what a reserved word means, whether `</s>` is an event.
struct TextOptions {
    int mode;
    ReservedPolicy reserved;
    bool eos;
};

// Logarithms of all events, where those of each text end, and their sums.
struct ScoredLines {
    std::vector<double> logprob;
    std::vector<std::int64_t> ends;
    std::vector<double> sums;
};

class TextReader {
  public:
    static constexpr std::size_t kShort = 2048;      // bytes of a text that is scored at once
    static constexpr double kRounding = 1e-6;        // of products of single-precision numbers: a probability above one by less is one

    TextReader(const NgramReader& reader, const VocabularyView& words, const TextOptions& options)
        : reader_(reader), words_(words), options_(options) {}

    // The id of a word, -1 if it is unknown; that of one which begins as reserved words do; none where its use is refused.
    std::int64_t find(std::string_view word) const;
    std::optional<std::uint32_t> find_reserved(std::string_view word) const;
    // Steps of many states at once.
    void step_all(View<Cell> from, View<std::uint32_t> words, MutableView<Cell> to, MutableView<double> logprob) const;
    // The natural logarithms of the events of a sentence, how many; none where the text has to go the long way.
    std::optional<std::size_t> score_line(std::string_view text, std::array<double, kShort + 1>& logprobs) const;
    // The same of many texts, one behind the other in `data`; no sums where one has to go the long way.
    ScoredLines score_lines(std::string_view data, View<std::int64_t> starts, std::vector<std::int64_t> ends) const;

    // KenLM's calls: words as they are, log10 in single precision.
    float score_words(std::string_view sentence, bool bos, bool eos) const;
    std::vector<std::tuple<float, int, bool>> full_scores(std::string_view sentence, bool bos, bool eos) const;

  private:
    template <class F>
    void walk_words(std::string_view sentence, bool bos, bool eos, F&& visit) const;

    const NgramReader& reader_;
    VocabularyView words_;
    TextOptions options_;
};

constexpr double kLog10E = 0.43429448190325182765;
inline float as_log10(double logprob) { return static_cast<float>(logprob * kLog10E); }

}  // namespace lmgauge
