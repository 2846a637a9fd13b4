// A reader of n-gram models as Python holds it: the tables, the vocabulary that words go through, and how text is cut.
#pragma once

#include <algorithm>
#include <memory>

#include "bindings.hpp"
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

// What the reader of a model does with text: how it is cut (-1: elsewhere), what a reserved word means, whether `</s>` is an
// event; and what to call with a reason and a word when a call must be refused: it raises.
struct ReaderOptions {
    int mode;
    ReservedPolicy reserved;
    bool eos;
    nb::object refuse;
};

class BoundReader {
  public:
    // `arrays`: what the reader looks into; it lives as long as this.
    BoundReader(std::unique_ptr<NgramReader> reader, std::shared_ptr<const void> arrays, PythonOf<ReadVocabulary> vocabulary, ReaderOptions options);

    const NgramReader& reader() const { return *reader_; }
    std::uint64_t owner() const { return owner_; }
    bool has_word(nb::handle word) const { return find(bytes_of(word)) >= 0; }
    std::uint32_t word_id(nb::handle word) const;

    State begin(bool bos) const;
    nb::tuple step(const State& state, nb::handle word) const;
    void step_all(View<Cell> from, View<std::uint32_t> words, MutableView<Cell> to, MutableView<double> logprob) const;
    // The natural logarithms of the events of a sentence, a tuple; None where the text has to go the long way.
    nb::object score_line(nb::str text) const;
    // The same of many texts: (logarithms of all events, where those of each text end, their sums), arrays; or None.
    nb::object score_lines(nb::list texts) const;

    // KenLM's calls: words as they are, log10 in single precision.
    void begin_written(bool bos, WrittenState& state) const;
    Step step_written(const WrittenState& from, nb::handle word, WrittenState& to, bool& oov) const;
    float score_words(nb::handle sentence, bool bos, bool eos) const;
    nb::list full_scores(nb::handle sentence, bool bos, bool eos) const;

  private:
    [[noreturn]] void refuse(const char* reason, nb::handle about) const;
    void check(const State& state) const;
    double checked(double logprob, std::uint32_t word, nb::handle about) const;
    std::string_view bytes_of(nb::handle text) const;
    std::int64_t find(std::string_view word) const;
    template <class F>
    void walk_words(nb::handle sentence, bool bos, bool eos, F&& visit) const;

    std::unique_ptr<NgramReader> reader_;
    std::shared_ptr<const void> arrays_;
    PythonOf<ReadVocabulary> vocabulary_;
    VocabularyView words_;
    ReaderOptions options_;
    std::uint64_t owner_;
};

}  // namespace lmgauge
