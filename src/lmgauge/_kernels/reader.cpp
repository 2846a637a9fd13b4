// Steps over own tables: all n-grams that could end with the next word are children of those that end the state, so their
// probes do not wait for one another, and the processor begins them together.
#include "reader.hpp"

#include <algorithm>

namespace lmgauge {
namespace {

// `kFull`: no back-off, an n-gram counts with its full context only. The first cell then holds the length of the context.
template <bool kFull>
class TableReader final : public NgramReader {
  public:
    explicit TableReader(const ModelView& model)
        : NgramReader(model.tables.size() + 1, model.words(), true), model_(model), extends_(model.words(), kFull ? 1 : 0) {
        if (kFull || model_.tables.empty()) return;
        for (std::uint32_t word = 0; word < words(); ++word) extends_[word] = model_.weight(word) != 1.0f;
        const TableView& bigrams = model_.tables[0];
        bigrams.for_each(0, bigrams.rows(), [&](std::uint32_t, const Line& line, std::uint32_t place) {
            const auto row = static_cast<std::size_t>(&line - bigrams.lines);
            const std::uint32_t parent = bigrams.ngram(row, line.words[place]).parent;
            if (parent < words()) extends_[parent] = 1;
        });
    }

    void begin(bool bos, Cell* state) const override {
        std::fill_n(state, order(), Cell{0, 0.0f});
        if (!bos || order() == 1) return;
        state[0] = Cell{1, kFull ? 1.0f : 0.0f};
        state[1] = Cell{kBos, model_.weight(kBos)};
    }

    void prefetch_step(const Cell* from, std::uint32_t word) const override {
        for (std::size_t k = 2; k <= from[0].id + std::size_t{1}; ++k) model_.tables[k - 2].fetch(from[k - 1].id, word);
    }

    Step step(const Cell* from, std::uint32_t word, Cell* to) const override {
        const std::size_t seen = from[0].id, most = order() - 1;
        const std::size_t context = kFull ? static_cast<std::size_t>(from[0].weight) : 0;
        double p = kFull && context > 0 ? static_cast<double>(model_.unseen) : static_cast<double>(model_.probability(word));
        std::uint8_t matched = 1;
        std::size_t length = most > 0 ? 1 : 0;    // suffixes of the next state
        std::size_t needed = extends_[word] != 0 ? length : 0;
        if (most > 0) to[1] = Cell{word, model_.weight(word)};
        for (std::size_t k = 2, alive = 1; k <= seen + 1; ++k) {
            const TableView& table = model_.tables[k - 2];
            // Tables are closed under suffixes: where the shorter n-gram is missing, so is this one.
            const std::uint32_t slot = alive != 0 ? table.find(from[k - 1].id, word) : kNone;
            if (slot == kNone) {
                alive = 0;
                if constexpr (!kFull) p *= static_cast<double>(from[k - 1].weight);
                if (kFull && k == context + 1) p = static_cast<double>(from[k - 1].weight);
                continue;
            }
            const float probability = table.probability(slot);
            if (!kFull || k == context + 1) p = static_cast<double>(std::fabs(probability));
            if (!std::signbit(probability)) matched = static_cast<std::uint8_t>(k);
            if (k > most) continue;
            to[k] = Cell{slot, table.weight(slot)};
            length = k;
            if (table.extends(slot)) needed = k;
        }
        if constexpr (kFull) {
            // A context that was not seen stays so until it is forgotten: how long it is no longer matters.
            const std::size_t next = std::min(context + 1, most);
            to[0] = Cell{static_cast<std::uint32_t>(length), static_cast<float>(length < next ? most : next)};
        } else {
            length = needed;
            to[0] = Cell{static_cast<std::uint32_t>(length), 0.0f};
        }
        std::fill(to + length + 1, to + order(), Cell{0, 0.0f});
        // Where <unk> is no event as a unigram, it is none after any context.
        const bool impossible = kFull && word == kUnk && model_.probability(kUnk) == 0;
        return {impossible ? 0.0 : p, matched};
    }

    std::size_t score(View<std::uint32_t> ids, const EventRows& rows) const override { return score_ids(model_, ids, 0, rows); }

    bool sound(const Cell* state) const override {
        const std::size_t length = state[0].id, most = order() - 1;
        if (length > most) return false;
        if (kFull && !(state[0].weight >= static_cast<float>(length) && state[0].weight <= static_cast<float>(most))) return false;
        for (std::size_t k = 1; k <= length; ++k) {
            if (state[k].id >= (k == 1 ? words() : model_.tables[k - 2].size())) return false;
        }
        return true;
    }

  private:
    ModelView model_;
    std::vector<std::uint8_t> extends_;    // of words, as TableView::extends
};

}  // namespace

std::unique_ptr<NgramReader> read_tables(const ModelView& model) {
    if (model.full_context) return std::make_unique<TableReader<true>>(model);
    return std::make_unique<TableReader<false>>(model);
}

}  // namespace lmgauge
