// Word by word: what a decoder asks of an n-gram model, whatever its tables look like.
//
// A *state* is what of the words before an event can still matter: `order` cells of eight bytes, so that n states travel as
// uint64 [n, order]. The first cell says how many suffixes of the history follow it (and, in models without back-off, how
// many words of context there are); cell k belongs to the last k words: `id` says which they are (own tables: the slot of
// that n-gram in the table of order k, for k = 1 the word; KenLM's: the k-th last word), `weight` is the back-off weight of
// that n-gram, in the unit of the tables. Cells behind the last suffix are zero, so that states are equal where their bytes
// are. Suffixes that no longer n-gram begins with and whose weight changes nothing are left out: states of one model are equal
// where the model cannot tell their futures apart by its tables.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

#include "kernels.hpp"

namespace lmgauge {

struct Cell {
    std::uint32_t id;
    float weight;
};
static_assert(sizeof(Cell) == 8);

struct Step {
    double value;            // natural logarithm, or probability (`linear`); more than one where the tables contradict themselves
    std::uint8_t matched;    // length of the longest n-gram of the model that ends with the word
};

class NgramReader {
  public:
    NgramReader(std::size_t order, std::uint32_t words, bool linear = false) : order_(order), words_(words), linear_(linear) {}
    virtual ~NgramReader() = default;
    NgramReader(const NgramReader&) = delete;
    NgramReader& operator=(const NgramReader&) = delete;

    std::size_t order() const { return order_; }
    std::uint32_t words() const { return words_; }    // ids are below it: the caller checks them
    bool linear() const { return linear_; }           // steps give probabilities
    double logprob(Step step) const { return linear_ ? std::log(step.value) : step.value; }

    // The state after <s>, or with nothing before. All cells are written.
    virtual void begin(bool bos, Cell* state) const = 0;
    // `word` after the state `from`; the state behind it goes to `to`, all cells of it, which is not `from`.
    virtual Step step(const Cell* from, std::uint32_t word, Cell* to) const = 0;
    // As many steps, from <s> to <s>, with lookups in flight together: a row for every id but <s>, as `score_ids`.
    virtual std::size_t score(View<std::uint32_t> ids, const EventRows& rows) const = 0;
    // Asks memory for what `step` will read first.
    virtual void prefetch_step(const Cell* /*from*/, std::uint32_t /*word*/) const {}
    // False where no step could have led to these cells: states may come from outside.
    virtual bool sound(const Cell* state) const = 0;

  private:
    std::size_t order_;
    std::uint32_t words_;
    bool linear_;
};

// Over this program's own tables. Logarithms and products are those of `score_ids`, to the last bit.
std::unique_ptr<NgramReader> read_tables(const ModelView& model);

}  // namespace lmgauge
