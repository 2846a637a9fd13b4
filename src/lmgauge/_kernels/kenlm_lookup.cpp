// Scoring with a KenLM binary file: all n-grams that end at each event, order by order over a block of events, so that the
// lookups of one order are in flight together.
#include <algorithm>

#include "kenlm_search.hpp"

namespace lmgauge {
namespace {

constexpr std::size_t kBlock = 256;    // events handled together
constexpr std::size_t kUnigramsAhead = 16;
constexpr double kLn10 = 2.302585092994045684;

// The longest n-gram of the model that ends at each event, found by adding words before it.
template <class Search>
class Chains {
  public:
    explicit Chains(const Search& search) : search_(search) {}

    std::array<float, kBlock> probability;
    std::array<std::uint8_t, kBlock> matched;
    std::array<std::uint8_t, kBlock> open;     // whether it may be found with a word more
    std::array<std::uint8_t, kBlock> hit;      // whether the last `lengthen` found it
    std::array<float, kBlock> backoff;         // of the n-gram of the last order looked at, -0.0 where it is missing

    void start(View<std::uint32_t> words) {
        for (std::size_t i = 0; i < std::min(words.size(), kUnigramsAhead); ++i) search_.prefetch_unigram(words[i]);
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (i + kUnigramsAhead < words.size()) search_.prefetch_unigram(words[i + kUnigramsAhead]);
            const KenlmValue value = search_.unigram(words[i], node_[i]);
            probability[i] = value.probability;
            backoff[i] = value.backoff;
            open[i] = value.ends_longer;
            matched[i] = 1;
            hit[i] = 1;
        }
    }

    // `before(i)` is the word to add at event i; only where `wanted(i)`.
    template <class Before, class Wanted>
    void lengthen(unsigned order, std::size_t n, Before before, Wanted wanted) {
        std::size_t pending = 0;
        for (std::size_t i = 0; i < n; ++i) {
            hit[i] = 0;
            backoff[i] = -0.0f;
            const bool look = open[i] & wanted(i);
            open[i] = 0;
            if (look) pending += search_.extend(order, node_[i], before(i), static_cast<std::uint32_t>(i), pending_[pending]);
        }
        while (pending > 0) {
            std::size_t left = 0;
            for (std::size_t j = 0; j < pending; ++j) {
                typename Search::Pending& p = pending_[j];
                const std::uint32_t i = p.position;
                KenlmValue value;
                const Look look = search_.advance(order, p, value, node_[i]);
                if (look == Look::again) {
                    pending_[left++] = p;
                } else if (look == Look::found) {
                    probability[i] = value.probability;
                    backoff[i] = value.backoff;
                    open[i] = value.ends_longer;
                    matched[i] = static_cast<std::uint8_t>(order);
                    hit[i] = 1;
                }
            }
            pending = left;
        }
    }

  private:
    const Search& search_;
    std::array<typename Search::Node, kBlock> node_;
    std::array<typename Search::Pending, kBlock> pending_;
};

// A running text, block after block.
template <class Search>
class TextScorer {
  public:
    TextScorer(const KenlmFile& file, const Search& search)
        : file_(file), order_(file.order()), chains_(search), words_(order_ - 1 + kBlock, 0),
          backoff_((order_ - 1) * (kBlock + 1), -0.0f), begins_((order_ - 1) * (kBlock + 1), 0) {}

    // log10 of the probability of each event, and the longest n-gram.
    void score(View<std::uint32_t> ids, float* log10, std::uint8_t* matched) {
        const std::size_t n = ids.size(), history = order_ - 1;
        for (std::size_t i = 0; i < n; ++i) words_[history + i] = file_.theirs(ids[i]);
        chains_.start({words_.data() + history, n});
        for (std::size_t i = 0; i < n; ++i) {
            if (ids[i] == kBos) chains_.open[i] = 0;    // a sentence begins: nothing reaches back over it
        }
        store(1, n);
        for (std::size_t i = 0; i < n; ++i) {
            if (ids[i] == kBos) begins_[i + 1] = 1;
        }
        for (unsigned k = 2; k <= order_; ++k) {
            const std::uint8_t* const context = begins_.data() + (k - 2) * (kBlock + 1);
            const std::uint32_t* const words = words_.data() + history + 1 - k;
            // An n-gram is in the model only if it begins with one that says so.
            chains_.lengthen(k, n, [&](std::size_t i) { return words[i]; }, [&](std::size_t i) { return context[i] != 0; });
            if (k < order_) store(k, n);
        }
        std::copy_n(chains_.probability.begin(), n, log10);
        std::copy_n(chains_.matched.begin(), n, matched);
        for (unsigned length = 1; length < order_; ++length) {    // what contexts cost, the shortest first
            const float* const weight = backoff_.data() + (length - 1) * (kBlock + 1);
            for (std::size_t i = 0; i < n; ++i) log10[i] += length >= matched[i] ? weight[i] : -0.0f;
        }
        carry(n);
    }

  private:
    // Row i + 1 of an order is event i of the block; row 0 the event before it.
    void store(unsigned order, std::size_t n) {
        const std::size_t row = (order - 1) * (kBlock + 1);
        std::copy_n(chains_.backoff.begin(), n, backoff_.begin() + static_cast<std::ptrdiff_t>(row + 1));
        for (std::size_t i = 0; i < n; ++i) begins_[row + 1 + i] = chains_.hit[i] & begins_longer(chains_.backoff[i]);
    }
    void carry(std::size_t n) {
        for (unsigned k = 1; k < order_; ++k) {
            const std::size_t row = (k - 1) * (kBlock + 1);
            backoff_[row] = backoff_[row + n];
            begins_[row] = begins_[row + n];
        }
        std::copy_n(words_.begin() + static_cast<std::ptrdiff_t>(n), order_ - 1, words_.begin());
    }

    const KenlmFile& file_;
    unsigned order_;
    Chains<Search> chains_;
    std::vector<std::uint32_t> words_;    // theirs: of the order - 1 events before the block, and of the block
    std::vector<float> backoff_;
    std::vector<std::uint8_t> begins_;    // whether longer n-grams begin with it
};

template <class Search>
std::size_t score_all(const KenlmFile& file, const Search& search, View<std::uint32_t> ids, std::size_t skip,
                      const EventRows& rows) {
    TextScorer<Search> scorer(file, search);
    const std::size_t width = rows.contexts.empty() ? 0 : file.order() - 1;
    std::array<float, kBlock> log10;
    std::array<std::uint8_t, kBlock> matched;
    std::size_t written = 0;
    for (std::size_t begin = 0; begin < ids.size(); begin += kBlock) {
        const View<std::uint32_t> block = ids.subspan(begin, std::min(kBlock, ids.size() - begin));
        scorer.score(block, log10.data(), matched.data());
        for (std::size_t i = 0; i < block.size(); ++i) {
            const std::uint32_t id = block[i];
            if (id == kBos || begin + i < skip) continue;
            rows.logprob[written] = static_cast<double>(log10[i]) * kLn10;
            rows.matched[written] = matched[i];
            rows.ids[written] = id;
            rows.kind[written] = static_cast<std::uint8_t>((id == kUnk) + 2 * (id == kEos));
            for (std::size_t k = 0, at = begin + i; k < width; ++k) {
                const bool more = at > 0 && (k == 0 || ids[at] != kBos);
                at -= more;
                rows.contexts[written * width + k] = more ? ids[at] : kNone;
                if (!more) at = 0;
            }
            ++written;
        }
    }
    return written;
}

template <class Search>
double sum_all(const KenlmFile& file, const Search& search, View<std::uint32_t> ids, const SegmentColumns& columns) {
    TextScorer<Search> scorer(file, search);
    SegmentAdder adder(columns);
    std::array<float, kBlock> log10;
    std::array<std::uint8_t, kBlock> matched;
    for (std::size_t begin = 0; begin < ids.size(); begin += kBlock) {
        const View<std::uint32_t> block = ids.subspan(begin, std::min(kBlock, ids.size() - begin));
        scorer.score(block, log10.data(), matched.data());
        for (std::size_t i = 0; i < block.size(); ++i) {
            if (block[i] == kBos) {
                adder.begin();
            } else {
                adder.add(block[i], static_cast<double>(log10[i]) * kLn10);
            }
        }
    }
    return adder.finish();
}

// What a context costs, by its length, and how much of it longer n-grams may begin with.
struct Context {
    std::vector<std::uint32_t> words;     // theirs, the last first
    std::vector<float> backoff;
    unsigned length = 0;
};

template <class Search>
Context read_context(const KenlmFile& file, const Search& search, View<std::uint32_t> ours) {
    Context context;
    for (const std::uint32_t word : ours) {
        if (word == kNone) break;
        context.words.push_back(file.theirs(word));
    }
    context.backoff.assign(context.words.size(), -0.0f);
    typename Search::Node node{};
    for (unsigned k = 1; k <= context.words.size(); ++k) {
        KenlmValue value;
        if (k == 1) {
            value = search.unigram(context.words[0], node);
        } else {
            typename Search::Pending pending;
            if (!search.extend(k, node, context.words[k - 1], 0, pending)) break;
            Look look = Look::again;
            while (look == Look::again) look = search.advance(k, pending, value, node);
            if (look == Look::missing) break;
        }
        context.backoff[k - 1] = value.backoff;
        if (begins_longer(value.backoff) || (k == 1 && ours[0] == kBos)) context.length = k;
        if (!value.ends_longer || ours[k - 1] == kBos) break;
    }
    return context;
}

template <class Search>
void fill_row(const KenlmFile& file, const Search& search, View<std::uint32_t> ours, double lowest, MutableView<double> row) {
    const Context context = read_context(file, search, ours);
    Chains<Search> chains(search);
    std::array<std::uint32_t, kBlock> words;
    for (std::size_t begin = 0; begin < row.size(); begin += kBlock) {
        const std::size_t n = std::min(kBlock, row.size() - begin);
        for (std::size_t i = 0; i < n; ++i) words[i] = file.theirs(static_cast<std::uint32_t>(begin + i));
        chains.start({words.data(), n});
        std::array<float, kBlock> log10;
        for (unsigned k = 2; k <= context.length + 1; ++k) {
            const std::uint32_t before = context.words[k - 2];
            chains.lengthen(k, n, [&](std::size_t) { return before; }, [](std::size_t) { return true; });
        }
        std::copy_n(chains.probability.begin(), n, log10.begin());
        for (unsigned length = 1; length <= context.length; ++length) {
            const float weight = context.backoff[length - 1];
            for (std::size_t i = 0; i < n; ++i) log10[i] += length >= chains.matched[i] ? weight : -0.0f;
        }
        for (std::size_t i = 0; i < n; ++i) row[begin + i] = static_cast<double>(log10[i]) * kLn10;
    }
    row[kBos] = lowest;
}

template <class Search>
void list_all(const KenlmFile& file, const Search& search, unsigned order, MutableView<std::uint32_t> words,
              MutableView<float> probability, MutableView<float> backoff) {
    // The path to the first entry of each order; the entries of an order are the children of those of the order below, in turn.
    const auto entries = [&](unsigned k) { return k == 1 ? file.bound : file.layout.levels[k - 2].entries; };
    std::vector<std::uint32_t> path, longer;    // of all n-grams of one order, the last word first
    std::vector<std::uint64_t> ends, next;      // where the children of each end
    for (std::uint64_t word = 0; word < entries(1); ++word) {
        typename Search::Node node{};
        const KenlmValue value = search.unigram(static_cast<std::uint32_t>(word), node);
        if (order == 1) {
            words[word] = file.ours(static_cast<std::uint32_t>(word));
            probability[word] = value.probability;
            backoff[word] = value.backoff;
        }
        path.push_back(static_cast<std::uint32_t>(word));
        ends.push_back(node.end);
    }
    for (unsigned k = 2; k <= order; ++k) {
        const std::uint64_t n = entries(k);
        require(n == 0 || !ends.empty(), "its header promises n-grams of an order, and none of the order below: damaged");
        longer.assign(n * k, 0);
        next.clear();
        std::uint64_t parent = 0;
        for (std::uint64_t i = 0; i < n; ++i) {
            while (parent + 1 < ends.size() && ends[parent] <= i) ++parent;
            std::copy_n(path.begin() + static_cast<std::ptrdiff_t>(parent * (k - 1)), k - 1, longer.begin() + static_cast<std::ptrdiff_t>(i * k));
            longer[i * k + k - 1] = static_cast<std::uint32_t>(std::min<std::uint64_t>(search.word(k, i), file.bound - 1));
            typename Search::Node node{};
            const KenlmValue value = search.entry(k, i, node);
            next.push_back(node.end);
            if (k == order) {
                probability[i] = value.probability;
                backoff[i] = value.backoff;
                for (unsigned j = 0; j < k; ++j) words[i * k + j] = file.ours(longer[i * k + k - 1 - j]);
            }
        }
        path.swap(longer);
        ends.swap(next);
    }
}

}  // namespace

std::size_t score_kenlm(const KenlmFile& file, View<std::uint32_t> ids, std::size_t skip, const EventRows& rows) {
    return with_search(file, [&](const auto& search) { return score_all(file, search, ids, skip, rows); });
}

double sum_kenlm(const KenlmFile& file, View<std::uint32_t> ids, const SegmentColumns& columns) {
    return with_search(file, [&](const auto& search) { return sum_all(file, search, ids, columns); });
}

void fill_kenlm(const KenlmFile& file, View<std::uint32_t> contexts, double lowest, MutableView<double> rows) {
    const std::size_t width = file.order() - 1, words = file.our_words();
    with_search(file, [&](const auto& search) {
        for (std::size_t i = 0; i < rows.size() / words; ++i) {
            fill_row(file, search, contexts.subspan(i * width, width), lowest, rows.subspan(i * words, words));
        }
        return 0;
    });
}

void list_kenlm(const KenlmFile& file, unsigned order, MutableView<std::uint32_t> words, MutableView<float> probability,
                MutableView<float> backoff) {
    with_search(file, [&](const auto& search) {
        if constexpr (requires { search.word(2u, std::uint64_t{0}); }) {
            list_all(file, search, order, words, probability, backoff);
        }
        return 0;
    });
}

}  // namespace lmgauge
