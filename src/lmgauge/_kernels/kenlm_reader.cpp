// Steps through a KenLM binary file, word by word.
#include <algorithm>

#include "kenlm_search.hpp"

namespace lmgauge {
namespace {

constexpr double kLn10 = 2.302585092994045684;

template <class Search>
class KenlmReader final : public NgramReader {
  public:
    explicit KenlmReader(const KenlmFile& file)
        : NgramReader(file.order(), static_cast<std::uint32_t>(file.our_words())), file_(file), search_(file_) {}

    void begin(bool bos, Cell* state) const override {
        std::fill_n(state, order(), Cell{0, 0.0f});
        if (!bos || order() == 1) return;
        typename Search::Node node{};
        state[0].id = 1;
        state[1] = Cell{file_.begin, search_.unigram(file_.begin, node).backoff};
    }

    // The file is looked up from the last word back, adding those of the state.
    Step step(const Cell* from, std::uint32_t word, Cell* to) const override {
        const std::size_t seen = from[0].id, most = order() - 1;
        const std::uint32_t theirs = file_.theirs(word);
        typename Search::Node node{};
        KenlmValue value = search_.unigram(theirs, node);
        float log10 = value.probability;
        std::size_t matched = 1, length = 0;
        if (most > 0) to[1] = Cell{theirs, value.backoff};
        if (most > 0 && (begins_longer(value.backoff) || word == kBos)) length = 1;
        for (std::size_t k = 2; k <= seen + 1 && value.ends_longer; ++k) {
            const Cell& before = from[k - 1];
            if (!begins_longer(before.weight) && !(k == 2 && before.id == file_.begin)) break;
            if (!look_up(static_cast<unsigned>(k), before.id, value, node)) break;
            log10 = value.probability;
            matched = k;
            if (k > most) break;
            to[k] = Cell{before.id, value.backoff};
            if (begins_longer(value.backoff)) length = k;
        }
        for (std::size_t k = matched; k <= seen; ++k) log10 += from[k].weight;    // what contexts cost, the shortest first
        to[0] = Cell{static_cast<std::uint32_t>(length), 0.0f};
        std::fill(to + length + 1, to + order(), Cell{0, 0.0f});
        return {static_cast<double>(log10) * kLn10, static_cast<std::uint8_t>(matched)};
    }

    std::size_t score(View<std::uint32_t> ids, const EventRows& rows) const override { return score_kenlm(file_, ids, 0, rows); }

    bool sound(const Cell* state) const override {
        if (state[0].id >= order()) return false;
        for (std::size_t k = 1; k <= state[0].id; ++k) {
            if (state[k].id >= file_.bound) return false;
        }
        return true;
    }

  private:
    bool look_up(unsigned order, std::uint32_t word, KenlmValue& value, typename Search::Node& node) const {
        typename Search::Pending pending;
        if (!search_.extend(order, node, word, 0, pending)) return false;
        Look look = Look::again;
        while (look == Look::again) look = search_.advance(order, pending, value, node);
        return look == Look::found;
    }

    KenlmFile file_;
    Search search_;
};

}  // namespace

std::unique_ptr<NgramReader> read_kenlm(const KenlmFile& file) {
    return with_search(file, [&](const auto& search) -> std::unique_ptr<NgramReader> {
        return std::make_unique<KenlmReader<std::decay_t<decltype(search)>>>(file);
    });
}

}  // namespace lmgauge
