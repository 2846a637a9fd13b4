// Scoring: all n-grams that end at each token, level by level over a block, so that the probes of a level can be prefetched.
#include <algorithm>
#include <cmath>

#include "kernels.hpp"

namespace lmgauge {
namespace {

constexpr std::size_t kBlock = 512;  // tokens handled together: their state stays in the first cache

constexpr std::size_t kAhead = 32;   // probes in flight

// The state of a block. Index 0 is the token before the block; id[k % 2][i] is the slot of the k-gram that ends at token i.
struct Block {
    std::array<std::array<std::uint32_t, kBlock + 1>, 2> id;
    std::array<std::array<float, kBlock + 1>, 2> weight;    // back-off weight of that n-gram
    std::array<double, kBlock + 1> probability;
    std::array<std::uint8_t, kBlock + 1> matched;           // order of the longest n-gram that is an event of the model
    std::array<std::uint8_t, kBlock + 1> context;           // full_context: order the context allows
    // The n-grams to look for: the line where each search begins, the key it has there, and the token it belongs to.
    std::array<std::uint32_t, kBlock + 1> line, key, position;
    std::array<std::uint32_t, kBlock + 1> further;          // which of these are not decided by that line
    std::array<std::uint32_t, kBlock + 2> hit;              // tokens whose n-gram of the level was found
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
        const TableView table = model_.tables[k - 2];  // a copy: the stores below cannot alias it
        const std::size_t n = ids.size();
        auto& id = block_.id[k % 2];
        const auto& shorter = block_.id[(k - 1) % 2];
        if (!contexts_.empty()) std::copy_n(shorter.begin(), n, contexts_.begin() + static_cast<std::ptrdiff_t>((k - 2) * kBlock));
        std::fill_n(id.begin(), n + 1, kNone);
        id[0] = carry_.id[k];
        block_.weight[k % 2][0] = carry_.weight[k];
        const std::size_t pending = k == 2 ? pending_bigrams(ids) : pending_of(k, n);
        block_.hit[0] = 0;
        hits_ = id[0] != kNone;
        table.last ? probe_all<LastLine>(k, table, ids, pending) : probe_all<MiddleLine>(k, table, ids, pending);
        table.last ? search_on<LastLine>(k, table) : search_on<MiddleLine>(k, table);
        carry_.id[k] = id[n];
        carry_.weight[k] = block_.weight[k % 2][n];
    }

    // Which bigrams to look for: all but those that end in <s>. Returns how many, the tokens being in block.position.
    std::size_t pending_bigrams(View<std::uint32_t> ids) {
        std::size_t pending = 0;
        for (std::size_t i = block_.id[1][0] == kNone ? 2 : 1; i <= ids.size(); ++i) {
            block_.position[pending] = static_cast<std::uint32_t>(i);
            pending += ids[i - 1] != kBos;
        }
        return pending;
    }

    // Which k-grams to look for: those whose beginning was found, and whose end was, too, as tables are closed under
    // suffixes. Where only the beginning was, its weight is due. Returns how many, the tokens being in block.position.
    std::size_t pending_of(std::size_t k, std::size_t n) {
        const std::uint32_t* const shorter = block_.id[(k - 1) % 2].data();
        const float* const shorter_weight = block_.weight[(k - 1) % 2].data();
        std::size_t pending = 0;
        for (std::size_t j = 0; j < hits_; ++j) {
            const std::size_t i = block_.hit[j] + std::size_t{1};
            if (i > n) continue;
            const bool probe = shorter[i] != kNone;
            block_.position[pending] = static_cast<std::uint32_t>(i);
            pending += probe;
            settle(k, i, !probe, shorter_weight[i - 1]);
        }
        return pending;
    }

    void request(std::size_t k, const TableView& table, View<std::uint32_t> ids, std::size_t j) {
        const std::size_t i = block_.position[j];
        const Place place = table.place(block_.id[(k - 1) % 2][i - 1], ids[i - 1]);
        prefetch(&table.lines[place.line]);
        block_.line[j] = static_cast<std::uint32_t>(place.line);
        block_.key[j] = place.key;
    }

    // While a line is looked at, those of the next probes travel from memory. What has to be searched for in the lines
    // behind waits in `further`, for these to come near, too.
    template <class LineType>
    void probe_all(std::size_t k, const TableView& table, View<std::uint32_t> ids, std::size_t pending) {
        for (std::size_t j = 0; j < std::min(kAhead, pending); ++j) request(k, table, ids, j);
        for (std::size_t j = 0; j < pending; ++j) {
            if (j + kAhead < pending) request(k, table, ids, j + kAhead);
            const std::size_t row = block_.line[j];
            const std::uint32_t key = block_.key[j];
            const unsigned hits = LineType::hits(table.lines[row], key);
            if ((hits == 0) & LineType::passed(table.lines[row], key)) {
                prefetch(&table.lines[row + 1]);
                block_.further[further_++] = static_cast<std::uint32_t>(j);
            } else {
                conclude<LineType>(k, table, block_.position[j], row, hits);
            }
        }
    }

    template <class LineType>
    void search_on(std::size_t k, const TableView& table) {
        for (std::size_t f = 0; f < further_; ++f) {
            const std::size_t j = block_.further[f];
            std::size_t row = block_.line[j];
            const unsigned hits = further<LineType>(table, block_.key[j], row);
            conclude<LineType>(k, table, block_.position[j], row, hits);
        }
        further_ = 0;
    }

    // Both ways are computed and one is chosen.
    template <class LineType>
    void conclude(std::size_t k, const TableView& table, std::size_t i, std::size_t row, unsigned hits) {
        constexpr std::uint32_t kWidth = LineType::kWidth;
        const Line& line = table.lines[row];
        const auto place = static_cast<std::uint32_t>(std::countr_zero(hits | 1u << kWidth));
        const bool found = hits != 0;
        const float p = as_float(line.words[LineType::kProbability + place]);
        settle(k, i, !found, block_.weight[(k - 1) % 2][i - 1]);
        const bool holds = found & (!kFull | (k == block_.context[i]));
        block_.probability[i] = holds ? static_cast<double>(std::fabs(p)) : block_.probability[i];
        block_.matched[i] = (found & !std::signbit(p)) ? static_cast<std::uint8_t>(k) : block_.matched[i];
        if constexpr (kWidth == MiddleLine::kWidth) {
            block_.id[k % 2][i] = found ? static_cast<std::uint32_t>(row) * kWidth + place : kNone;
            block_.weight[k % 2][i] = std::fabs(as_float(line.words[(LineType::kWeight + place) & 15]));
            block_.hit[hits_] = static_cast<std::uint32_t>(i);
            hits_ += found;
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
            // A mask, as half of them are missing: a branch would be guessed wrong about once a token.
            const std::uint32_t mask = -static_cast<std::uint32_t>(missing);
            block_.probability[i] = p * as_float((as_bits(context_weight) & mask) | (as_bits(1.0f) & ~mask));
        } else {
            block_.probability[i] = (missing & (k == block_.context[i])) ? static_cast<double>(context_weight) : p;
        }
    }

    const ModelView& model_;
    std::size_t order_;
    Carry carry_;
    Block block_;
    std::size_t hits_ = 0, further_ = 0;
    std::vector<std::uint32_t> contexts_;    // if asked for: the contexts of 1, 2, ... words of each token
};

// Calls take(place in ids, place in its block, id, probability, matched, scorer) for each id, in order.
template <bool kFull, class Take>
void for_each_event(const ModelView& model, View<std::uint32_t> ids, bool contexts, Take take) {
    Scorer<kFull> scorer(model, contexts);
    for (std::size_t begin = 0; begin < ids.size(); begin += kBlock) {
        const View<std::uint32_t> block_ids = ids.subspan(begin, std::min(kBlock, ids.size() - begin));
        const Block& block = scorer.score(block_ids);
        for (std::size_t i = 0; i < block_ids.size(); ++i) {
            const std::uint32_t id = block_ids[i];
            // Where <unk> is no event as a unigram, it is none after any context.
            const bool impossible = kFull && id == kUnk && model.unigrams[2 * kUnk] == 0;
            take(begin + i, i, id, impossible ? 0.0 : block.probability[i + 1], block.matched[i + 1], scorer);
        }
    }
}

template <bool kFull>
std::size_t score_all(const ModelView& model, View<std::uint32_t> ids, std::size_t skip, const EventRows& rows) {
    const std::size_t width = rows.contexts.empty() ? 0 : model.tables.size();
    std::size_t written = 0;
    for_each_event<kFull>(model, ids, width > 0, [&](std::size_t at, std::size_t i, std::uint32_t id, double probability,
                                                     std::uint8_t matched, const Scorer<kFull>& scorer) {
        if (id == kBos || at < skip) return;
        rows.logprob[written] = std::log(probability);
        rows.matched[written] = matched;
        rows.ids[written] = id;
        rows.kind[written] = static_cast<std::uint8_t>((id == kUnk) + 2 * (id == kEos));
        if (width > 0) scorer.write_context(i, rows.contexts.subspan(written * width, width));
        ++written;
    });
    return written;
}

template <bool kFull>
double sum_all(const ModelView& model, View<std::uint32_t> ids, const SegmentColumns& columns) {
    SegmentAdder adder(columns);
    for_each_event<kFull>(model, ids, false, [&](std::size_t, std::size_t, std::uint32_t id, double probability, std::uint8_t,
                                                 const Scorer<kFull>&) {
        if (id == kBos) {
            adder.begin();
        } else {
            adder.add(id, std::log(probability));
        }
    });
    return adder.finish();
}

}  // namespace

std::size_t score_ids(const ModelView& model, View<std::uint32_t> ids, std::size_t skip, const EventRows& rows) {
    return model.full_context ? score_all<true>(model, ids, skip, rows) : score_all<false>(model, ids, skip, rows);
}

double sum_ids(const ModelView& model, View<std::uint32_t> ids, const SegmentColumns& columns) {
    return model.full_context ? sum_all<true>(model, ids, columns) : sum_all<false>(model, ids, columns);
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
    constexpr std::size_t kNgramsAhead = 16;
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (i + kNgramsAhead < slots.size()) table.fetch(parents[i + kNgramsAhead], words[i + kNgramsAhead]);
        slots[i] = parents[i] == kNone ? kNone : table.find(parents[i], words[i]);
    }
}

}  // namespace lmgauge
