// Scoring: all n-grams that end at each token, level by level over a block, so that the probes of a level can be prefetched.
#include <algorithm>
#include <cmath>

#include "kernels.hpp"

namespace lmgauge {
namespace {

constexpr std::size_t kBlock = 512;  // tokens handled together: their state stays in the first cache

constexpr std::size_t kGroup = 32;   // probes in flight

// The state of a block. Index 0 is the token before the block; id[k % 2][i] is the slot of the k-gram that ends at token i.
struct Block {
    std::array<std::array<std::uint32_t, kBlock + 1>, 2> id;
    std::array<std::array<float, kBlock + 1>, 2> weight;    // back-off weight of that n-gram
    std::array<double, kBlock + 1> probability;
    std::array<std::uint8_t, kBlock + 1> matched;           // order of the longest n-gram that is an event of the model
    std::array<std::uint8_t, kBlock + 1> context;           // full_context: order the context allows
    // The n-grams to look for: the line where each search begins, the key it has there, and the token it belongs to.
    std::array<std::uint32_t, kBlock + 1> line, key, position;
};

// What the last token of a block leaves for the next one: its n-gram of each order.
struct Carry {
    std::vector<std::uint32_t> id;
    std::vector<float> weight;
    std::size_t context = 0;
};

// `kFull`: no back-off, an n-gram counts with its full context only.
template <bool kFull>
class Scorer {
  public:
    Scorer(const ModelView& model, bool contexts) : model_(model), order_(model.tables.size() + 1) {
        carry_.id.assign(order_ + 1, kNone);
        carry_.weight.assign(order_ + 1, 1.0f);
        if (contexts) contexts_.resize((order_ - 1) * kBlock);
    }

    // Probabilities of block_ids, given what went before. After it, block.probability[i + 1] belongs to block_ids[i].
    const Block& score(View<std::uint32_t> block_ids) {
        const std::size_t n = block_ids.size();
        start(block_ids);
        for (std::size_t k = 2; k <= order_; ++k) level(k, block_ids);
        if (order_ > 1) {
            carry_.context = block_.context[n];
        }
        return block_;
    }

    // The context of token i of the block.
    void write_context(std::size_t i, MutableView<std::uint32_t> slots) const {
        for (std::size_t k = 0; k < slots.size(); ++k) slots[k] = contexts_[k * kBlock + i];
        const std::size_t words = block_.context[i + 1] - std::size_t{1};
        if (kFull && words > 0 && slots[words - 1] == kNone) slots[0] = kUnseenContext;
    }

  private:
    void start(View<std::uint32_t> ids) {
        auto& id = block_.id[1];
        auto& weight = block_.weight[1];
        id[0] = carry_.id[1];
        weight[0] = carry_.weight[1];
        std::size_t context = carry_.context;
        block_.context[0] = static_cast<std::uint8_t>(context);
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const std::uint32_t word = ids[i];
            id[i + 1] = word;
            weight[i + 1] = model_.unigrams[2 * word + 1];
            block_.probability[i + 1] = model_.unigrams[2 * word];
            block_.matched[i + 1] = 1;
            context = word == kBos ? 1 : std::min(context + 1, order_);
            block_.context[i + 1] = static_cast<std::uint8_t>(context);
            if (kFull && context > 1) block_.probability[i + 1] = model_.unseen;
        }
        carry_.id[1] = id[ids.size()];
        carry_.weight[1] = weight[ids.size()];
    }

    void level(std::size_t k, View<std::uint32_t> ids) {
        const auto& shorter = block_.id[(k - 1) % 2];
        block_.id[k % 2][0] = carry_.id[k];
        block_.weight[k % 2][0] = carry_.weight[k];
        const TableView table = model_.tables[k - 2];  // a copy: the stores below cannot alias it
        const std::size_t n = ids.size();
        if (!contexts_.empty()) std::copy_n(shorter.begin(), n, contexts_.begin() + static_cast<std::ptrdiff_t>((k - 2) * kBlock));
        // The probes of one group travel from memory while those of the group before are compared.
        const std::size_t pending = pending_of(k, ids);
        request(k, table, ids, 0, std::min(kGroup, pending));
        for (std::size_t begin = 0; begin < pending; begin += kGroup) {
            const std::size_t end = std::min(begin + kGroup, pending);
            request(k, table, ids, end, std::min(end + kGroup, pending));
            table.last ? compare<LastLine>(k, table, begin, end) : compare<MiddleLine>(k, table, begin, end);
        }
        carry_.id[k] = block_.id[k % 2][n];
        carry_.weight[k] = block_.weight[k % 2][n];
    }

    // Which k-grams to look for; the others are settled. Tables are closed under suffixes: where the shorter n-gram is
    // missing, so is this one. Returns how many, the tokens being in block.position.
    std::size_t pending_of(std::size_t k, View<std::uint32_t> ids) {
        const auto& shorter = block_.id[(k - 1) % 2];
        const auto& shorter_weight = block_.weight[(k - 1) % 2];
        std::uint32_t* const id = block_.id[k % 2].data();
        float* const weight = block_.weight[k % 2].data();
        std::size_t pending = 0;
        for (std::size_t i = 1; i <= ids.size(); ++i) {
            const bool context = shorter[i - 1] != kNone;
            const bool probe = context & (shorter[i] != kNone) & (ids[i - 1] != kBos);
            block_.position[pending] = static_cast<std::uint32_t>(i);
            pending += probe;
            id[i] = kNone;
            weight[i] = 1.0f;
            settle(k, i, !probe & context, shorter_weight[i - 1]);
        }
        return pending;
    }

    void request(std::size_t k, const TableView& table, View<std::uint32_t> ids, std::size_t begin, std::size_t end) {
        const std::uint32_t* const shorter = block_.id[(k - 1) % 2].data();
        for (std::size_t j = begin; j < end; ++j) {
            const std::size_t i = block_.position[j];
            const Place place = table.place(shorter[i - 1], ids[i - 1]);
            prefetch(&table.lines[place.line]);
            block_.line[j] = static_cast<std::uint32_t>(place.line);
            block_.key[j] = place.key;
        }
    }

    // Both ways are computed and one is chosen. Compilers make branches of some of it, which costs no more than masks
    // would: measured with 31 M n-grams on an AMD EPYC, where the time is that of memory.
    template <class LineType>
    void compare(std::size_t k, const TableView& table, std::size_t begin, std::size_t end) {
        constexpr std::uint32_t kWidth = LineType::kWidth;
        const float* const shorter_weight = block_.weight[(k - 1) % 2].data();
        std::uint32_t* const id = block_.id[k % 2].data();
        float* const weight = block_.weight[k % 2].data();
        for (std::size_t j = begin; j < end; ++j) {
            const std::size_t i = block_.position[j];
            std::size_t row = block_.line[j];
            const std::uint32_t key = block_.key[j];
            unsigned hits = LineType::hits(table.lines[row], key);
            if ((hits == 0) & LineType::passed(table.lines[row], key)) hits = further<LineType>(table, key, row);
            const Line& line = table.lines[row];
            const auto place = static_cast<std::uint32_t>(std::countr_zero(hits | 1u << kWidth));
            const bool found = hits != 0;
            const float p = as_float(line.words[LineType::kProbability + place]);
            id[i] = found ? static_cast<std::uint32_t>(row) * kWidth + place : kNone;
            if constexpr (kWidth == MiddleLine::kWidth) weight[i] = found ? std::fabs(as_float(line.words[(LineType::kWeight + place) & 15])) : 1.0f;
            settle(k, i, !found, shorter_weight[i - 1]);
            const bool holds = found & (!kFull | (k == block_.context[i]));
            block_.probability[i] = holds ? static_cast<double>(std::fabs(p)) : block_.probability[i];
            block_.matched[i] = found & !std::signbit(p) ? static_cast<std::uint8_t>(k) : block_.matched[i];
        }
    }

    // The lines behind the home line; `row` becomes the one with the hit.
    template <class LineType>
    static unsigned further(const TableView& table, std::uint32_t key, std::size_t& row) {
        for (std::uint32_t distance = 1; distance <= kFarthest; ++distance) {
            const Line& line = table.lines[++row];
            const unsigned hits = LineType::hits(line, key + distance);
            if (hits != 0 || !LineType::passed(line, key)) return hits;
        }
        return 0;
    }

    // What the context says of a word that was not seen after it.
    void settle(std::size_t k, std::size_t i, bool missing, float context_weight) {
        const double p = block_.probability[i];
        if constexpr (!kFull) {
            block_.probability[i] = p * (missing ? context_weight : 1.0f);
        } else {
            block_.probability[i] = missing & (k == block_.context[i]) ? static_cast<double>(context_weight) : p;
        }
    }

    const ModelView& model_;
    std::size_t order_;
    Carry carry_;
    Block block_;
    std::vector<std::uint32_t> contexts_;    // if asked for: the contexts of 1, 2, ... words of each token
};

template <bool kFull>
std::size_t score_all(const ModelView& model, View<std::uint32_t> ids, std::size_t skip, const EventRows& rows) {
    const std::size_t width = rows.contexts.empty() ? 0 : model.tables.size();
    Scorer<kFull> scorer(model, width > 0);
    std::size_t written = 0;
    for (std::size_t begin = 0; begin < ids.size(); begin += kBlock) {
        const View<std::uint32_t> block_ids = ids.subspan(begin, std::min(kBlock, ids.size() - begin));
        const Block& block = scorer.score(block_ids);
        for (std::size_t i = 0; i < block_ids.size(); ++i) {
            if (block_ids[i] == kBos || begin + i < skip) continue;
            // Where <unk> is no event as a unigram, it is none after any context.
            const bool impossible = kFull && block_ids[i] == kUnk && model.unigrams[2 * kUnk] == 0;
            rows.logprob[written] = impossible ? -INFINITY : std::log(block.probability[i + 1]);
            rows.matched[written] = block.matched[i + 1];
            rows.ids[written] = block_ids[i];
            rows.kind[written] = static_cast<std::uint8_t>((block_ids[i] == kUnk) + 2 * (block_ids[i] == kEos));
            if (width > 0) scorer.write_context(i, rows.contexts.subspan(written * width, width));
            ++written;
        }
    }
    return written;
}

}  // namespace

std::size_t score_ids(const ModelView& model, View<std::uint32_t> ids, std::size_t skip, const EventRows& rows) {
    return model.full_context ? score_all<true>(model, ids, skip, rows) : score_all<false>(model, ids, skip, rows);
}

void find_context(const ModelView& model, View<std::uint32_t> context, MutableView<std::uint32_t> slots) {
    // It does not reach back over <s>.
    std::size_t first = context.size();
    while (first > 0 && context.size() - first < slots.size()) {
        --first;
        if (context[first] == kBos) break;
    }
    const View<std::uint32_t> used = context.subspan(first);
    std::fill(slots.begin(), slots.end(), kNone);
    for (std::size_t k = 1; k <= used.size(); ++k) {
        const View<std::uint32_t> words_of = used.subspan(used.size() - k);
        std::uint32_t slot = words_of[0];
        for (std::size_t j = 1; j < k && slot != kNone; ++j) slot = model.tables[j - 1].find(slot, words_of[j]);
        if (slot == kNone) break;
        slots[k - 1] = slot;
    }
    if (model.full_context && !used.empty() && slots[used.size() - 1] == kNone) slots[0] = kUnseenContext;
}

void find_ngrams(const TableView& table, View<std::uint32_t> parents, View<std::uint32_t> words, MutableView<std::uint32_t> slots) {
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (i + kAhead < slots.size()) table.fetch(parents[i + kAhead], words[i + kAhead]);
        slots[i] = parents[i] == kNone ? kNone : table.find(parents[i], words[i]);
    }
}

}  // namespace lmgauge
