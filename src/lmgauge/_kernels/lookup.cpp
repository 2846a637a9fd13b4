// Scoring: all n-grams that end at each token, level by level over a block, so that the probes of a level can be prefetched.
#include <algorithm>
#include <cmath>

#include "kernels.hpp"

namespace lmgauge {
namespace {

constexpr std::size_t kBlock = 512;  // tokens handled together: their state stays in the first cache

constexpr std::size_t kGroup = 32;   // probes in flight

struct Pending {
    std::uint64_t key;
    std::size_t line;          // first slot of the line to look at
    std::uint32_t position;
    bool second;               // the home line was looked at already
};

// The state of a block. Index 0 is the token before the block; id[k % 2][i] is the slot of the k-gram that ends at token i.
struct Block {
    std::array<std::array<std::uint32_t, kBlock + 1>, 2> id;
    std::array<std::array<float, kBlock + 1>, 2> weight;    // back-off weight of that n-gram
    std::array<double, kBlock + 1> probability;
    std::array<std::uint8_t, kBlock + 1> matched;           // order of the longest n-gram that is an event of the model
    std::array<std::uint8_t, kBlock + 1> context;           // full_context: order the context allows
    std::array<Pending, 2 * kBlock> pending;
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

    // Branches that depend on the text are mispredicted half of the time and then cost more than the work they save, so
    // both ways are computed and one is chosen; what stays are loops.
    void level(std::size_t k, View<std::uint32_t> ids) {
        const auto& shorter = block_.id[(k - 1) % 2];
        const auto& shorter_weight = block_.weight[(k - 1) % 2];
        auto& id = block_.id[k % 2];
        auto& weight = block_.weight[k % 2];
        id[0] = carry_.id[k];
        weight[0] = carry_.weight[k];
        const TableView table = model_.tables[k - 2];  // a copy: the stores below cannot alias it
        const std::size_t n = ids.size();
        if (!contexts_.empty()) std::copy_n(shorter.begin(), n, contexts_.begin() + static_cast<std::ptrdiff_t>((k - 2) * kBlock));
        // The probes of one group travel from memory while those of the group before are compared.
        std::size_t pending = 0, ready = 0, done = 0;
        for (std::size_t begin = 1; begin <= n || done < pending; begin += kGroup) {
            ready = pending;
            for (std::size_t i = begin, end = std::min(begin + kGroup, n + 1); i < end; ++i) {
                const std::uint32_t parent = shorter[i - 1];
                // Tables are closed under suffixes: where the shorter n-gram is missing, so is this one.
                const bool probe = (parent != kNone) & (shorter[i] != kNone) & (ids[i - 1] != kBos);
                const std::uint64_t key = make_key(parent, ids[i - 1]);
                const std::size_t home = probe ? table.home(key) : 0;
                prefetch(&table.entries[home]);
                block_.pending[pending] = Pending{key, home, static_cast<std::uint32_t>(i), false};
                pending += probe;
                id[i] = kNone;
                weight[i] = 1.0f;
                settle(k, i, !probe & (parent != kNone), shorter_weight[i - 1]);
            }
            for (; done < ready; ++done) {
                const Pending probe = block_.pending[done];
                const std::size_t i = probe.position;
                const unsigned hits = table.hits(probe.key, probe.line);
                std::uint32_t slot = static_cast<std::uint32_t>(probe.line + std::countr_zero(hits | 16u));
                slot = hits != 0 ? slot : kNone;
                if ((hits == 0) & table.overflowed(probe.line)) {
                    const std::size_t line = table.next_line(probe.line);
                    if (!probe.second) {
                        // The next line has to come from memory as well: meanwhile, others can be looked at.
                        prefetch(&table.entries[line]);
                        block_.pending[pending++] = Pending{probe.key, line, probe.position, true};
                        continue;
                    }
                    slot = table.search(probe.key, line);
                }
                const bool found = slot != kNone;
                const Entry& entry = table.entries[found ? slot : probe.line];
                const float p = as_float(entry.first);
                id[i] = slot;
                weight[i] = found ? as_float(entry.second) : 1.0f;
                settle(k, i, !found, shorter_weight[i - 1]);
                const bool holds = found & (!kFull | (k == block_.context[i]));
                block_.probability[i] = holds ? static_cast<double>(std::fabs(p)) : block_.probability[i];
                block_.matched[i] = found & (p >= 0) ? static_cast<std::uint8_t>(k) : block_.matched[i];
            }
        }
        carry_.id[k] = id[n];
        carry_.weight[k] = weight[n];
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
        for (std::size_t j = 1; j < k && slot != kNone; ++j) slot = model.tables[j - 1].find(make_key(slot, words_of[j]));
        if (slot == kNone) break;
        slots[k - 1] = slot;
    }
    if (model.full_context && !used.empty() && slots[used.size() - 1] == kNone) slots[0] = kUnseenContext;
}

// `keys` are parent << 32 | word; kNone where there is no such entry.
void find_entries(const TableView& table, View<std::uint64_t> keys, MutableView<std::uint32_t> slots) {
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i + kAhead < keys.size()) prefetch(&table.entries[table.home(keys[i + kAhead] + 1)]);
        slots[i] = table.find(keys[i] + 1);
    }
}

// suffixes[slot]: where the entry without its first word is in the table below (`lower` null: the word itself). kNone where
// it is missing. `lower_suffixes` is the result for the table below.
void link_suffixes(View<Entry> table, const TableView* lower, View<std::uint32_t> lower_suffixes,
                   MutableView<std::uint32_t> suffixes) {
    for (std::size_t slot = 0; slot < table.size(); ++slot) {
        suffixes[slot] = kNone;
        if (table[slot].key == 0) continue;
        const std::uint32_t parent = key_parent(table[slot].key), word = key_word(table[slot].key);
        if (lower == nullptr) {
            suffixes[slot] = word;
            continue;
        }
        const std::uint32_t parent_suffix = lower_suffixes[parent];
        if (parent_suffix != kNone) suffixes[slot] = lower->find(make_key(parent_suffix, word));
    }
}

// Parents and words in range, probabilities in [-1, 1], weights finite and not negative; and a checksum over all of it.
TableCheck check_table(View<Entry> table, std::size_t begin, std::size_t end, std::uint64_t parents, std::uint64_t words) {
    TableCheck result;
    const std::uint64_t lines = table.size() / kLine;
    for (std::size_t slot = begin; slot < end; ++slot) {
        const Entry& entry = table[slot];
        if (entry.key == 0) {
            if ((entry.first | entry.second) != 0 && result.bad < 0) result.bad = static_cast<std::int64_t>(slot);
            continue;
        }
        const float p = as_float(entry.first), weight = as_float(entry.second);
        const bool sound = key_parent(entry.key) < parents && key_word(entry.key) < words && std::fabs(p) <= 1.0f &&
                           weight >= 0.0f && weight <= 3.4e38f;
        if (!sound && result.bad < 0) result.bad = static_cast<std::int64_t>(slot);
        const std::uint64_t hash = mix(plain(entry.key));
        const std::size_t home = static_cast<std::size_t>(((hash >> 32) * lines) >> 32) * kLine;
        const std::size_t distance = slot >= home ? slot - home : slot + table.size() - home;
        result.longest = std::max(result.longest, static_cast<std::uint32_t>(std::min<std::size_t>(distance, kNone - 1)));
        const std::uint64_t values = ((static_cast<std::uint64_t>(entry.first) << 32) | entry.second) + (entry.key >> 63);
        result.checksum += (hash ^ values) * 0xD6E8FEB86659FD93ull + slot;
        ++result.entries;
    }
    return result;
}

}  // namespace lmgauge
