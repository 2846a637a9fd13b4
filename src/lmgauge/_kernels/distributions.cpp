// Whole distributions of an n-gram model: rows over the vocabulary, and sums that look at the words seen after a context only.
#include "distributions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace lmgauge {
namespace {

constexpr std::size_t kAhead = 8;
// A back-off weight above one makes the rounding of the shorter context's sums larger. Where it could have grown this much,
// the whole distribution is added up instead.
constexpr double kLargestError = 256;
constexpr double kRoundedMass = 1 + 1e-6;

// One context of a model as levels: level 0 is the distribution that the recursion ends with, level k changes the words seen
// after a longer context and multiplies all others by its weight. A model without back-off has one level: its words are
// those seen after the full context, and all others have its weight.
class Chain {
  public:
    Chain(const DistributionSource& source, const std::uint32_t* slots) : source_(source), slots_(slots) {
        if (source.width() > 0 && slots[0] == kUnseenContext) {
            unseen_ = true;
            levels_ = 1;
            return;
        }
        while (length_ < source.width() && slots[length_] != kNone) ++length_;
        levels_ = source.model.full_context ? std::min<std::size_t>(length_, 1) : length_;
    }

    std::size_t levels() const { return levels_; }
    std::size_t words(std::size_t level) const { return source_.model.full_context ? length_ : level; }  // of the context
    std::uint32_t slot(std::size_t level) const { return unseen_ ? kUnseenContext : slots_[words(level) - 1]; }
    bool unseen() const { return unseen_; }
    bool uniform() const { return source_.model.full_context && levels_ > 0; }    // level 0 is 1 for each word
    const DistributionSource& source() const { return source_; }
    const std::uint32_t* slots() const { return slots_; }

    double weight(std::size_t level) const {
        if (unseen_) return source_.model.unseen;
        const std::size_t n = words(level);
        return n == 1 ? source_.model.unigrams[2 * slots_[0] + 1] : source_.model.tables[n - 2].weight(slots_[n - 1]);
    }
    // The table with the words seen after the context of a level.
    const TableView& table(std::size_t level) const { return source_.model.tables[words(level) - 1]; }

    double base(std::uint32_t word) const {
        if (!source_.possible(word)) return 0;
        return uniform() ? 1.0 : static_cast<double>(source_.model.unigrams[2 * word]);
    }
    // The probability of a word at a level. Tables are closed under suffixes: after a miss there are misses only.
    double value(std::size_t level, std::uint32_t word) const {
        if (!source_.possible(word)) return 0;
        double p = base(word);
        bool missing = unseen_;
        for (std::size_t k = 1; k <= level; ++k) {
            const std::uint32_t found = missing ? kNone : table(k).find(slot(k), word);
            missing = found == kNone;
            p = missing ? p * weight(k) : static_cast<double>(std::fabs(table(k).probability(found)));
        }
        return p;
    }
    // The same where the word is known to have been seen after the context of level + 1: at this level it was as well.
    double lower_value(std::size_t level, std::uint32_t word) const {
        if (level == 0) return base(word);
        const std::uint32_t found = table(level).find(slot(level), word);
        return found == kNone ? value(level, word) : static_cast<double>(std::fabs(table(level).probability(found)));
    }
    void prefetch_lower(std::size_t level, std::uint32_t word) const {
        if (level > 0) table(level).fetch(slot(level), word);
    }

  private:
    const DistributionSource& source_;
    const std::uint32_t* slots_;
    std::size_t length_ = 0, levels_ = 0;
    bool unseen_ = false;
};

// The words seen after a context. Without an index, every word is looked for, and after longer contexts those of the shorter
// one; they come in the same order, so that no sum depends on the way.
class ChildFinder {
  public:
    View<Child> of(const Chain& chain, std::size_t level) {
        if (level == 0 || chain.unseen()) return {};
        if (!chain.source().children.empty()) return chain.source().children[chain.words(level) - 1].of(chain.slot(level));
        if (chain.slots() != slots_) probe(chain);
        return levels_[level];
    }

  private:
    void probe(const Chain& chain) {
        slots_ = chain.slots();
        levels_.assign(chain.levels() + 1, {});
        for (std::uint32_t word = 0; word < chain.source().model.words(); ++word) levels_[0].push_back({word, 0});
        for (std::size_t level = 1; level <= chain.levels(); ++level) {
            const TableView& table = chain.table(level);
            const std::vector<Child>& candidates = levels_[level - 1];
            const std::uint32_t context = chain.slot(level);
            found_.clear();
            for (std::size_t i = 0; i < candidates.size(); ++i) {
                if (i + kAhead < candidates.size()) table.fetch(context, candidates[i + kAhead].word);
                const std::uint32_t slot = table.find(context, candidates[i].word);
                if (slot != kNone) found_.push_back({slot, candidates[i].word});
            }
            std::sort(found_.begin(), found_.end());
            for (const auto& [slot, word] : found_) levels_[level].push_back({word, table.probability(slot)});
        }
    }

    const std::uint32_t* slots_ = nullptr;
    std::vector<std::vector<Child>> levels_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found_;    // slots and words
};

// The distribution at a level of a context in two parts: words that were seen after its last word (of the full context, where
// there is no back-off), with their probabilities, and all others, whose probability is a product of what level 0 gives them
// and the weights. Products are made in the order of the levels, as scoring makes them.
class Parts {
  public:
    explicit Parts(const DistributionSource& source) : source_(source), probability_(source.model.words()) {}

    void take(const Chain& chain, std::size_t levels) {
        weights_.clear();
        for (std::size_t k = 1; k <= levels; ++k) weights_.push_back(chain.weight(k));
        for (std::size_t level = 1; level <= levels; ++level) {
            for (const Child& child : children_.of(chain, level)) {
                double p = std::fabs(child.probability);
                for (std::size_t k = level; k < levels; ++k) p *= weights_[k];
                probability_[source_.word_of(child)] = source_.possible(child.word) ? p : 0;
            }
        }
        // What was seen after a longer context was seen after the last word.
        seen_ = levels > 0 ? children_.of(chain, 1) : View<Child>{};
    }
    View<Child> seen() const { return seen_; }
    double of_seen(std::uint32_t word) const { return probability_[word]; }
    double of_other(double base) const {
        for (const double weight : weights_) base *= weight;
        return base;
    }

  private:
    const DistributionSource& source_;
    ChildFinder children_;
    View<Child> seen_;
    std::vector<double> weights_, probability_;
};

// Rows over the vocabulary.
class Rows {
  public:
    explicit Rows(const DistributionSource& source) : source_(source), parts_(source), scaled_(source.values.size()) {}

    // Probabilities at a level of a context; logarithms if `logarithms`.
    void fill(const Chain& chain, std::size_t levels, bool logarithms, MutableView<double> row) {
        double largest = 0;
        const auto finished = [&](double p) {
            largest = std::max(largest, p);
            return !logarithms ? p : p > 0 ? std::log(p) : kLowest;
        };
        parts_.take(chain, levels);
        if (chain.uniform() && levels > 0) {
            const double other = finished(parts_.of_other(1)), never = logarithms ? kLowest : 0.0;
            std::fill(row.begin(), row.end(), other);
            for (std::uint32_t word = 0; word <= kEos; ++word) row[word] = source_.possible(word) ? other : never;
        } else {
            for (std::size_t i = 0; i < scaled_.size(); ++i) scaled_[i] = finished(parts_.of_other(source_.values[i]));
            for (std::size_t word = 0; word < row.size(); ++word) row[word] = scaled_[source_.value_of[word]];
        }
        for (const Child& child : parts_.seen()) row[child.word] = finished(parts_.of_seen(child.word));
        if (largest > 1) clip(logarithms, row);    // unless it was of words whose probability a longer context changed
    }
    double largest() const { return largest_; }

  private:
    void clip(bool logarithms, MutableView<double> row) {
        for (double& value : row) {
            largest_ = std::max(largest_, logarithms ? std::exp(value) : value);
            value = std::min(value, logarithms ? 0.0 : 1.0);
        }
    }

    const DistributionSource& source_;
    Parts parts_;
    std::vector<double> scaled_;
    double largest_ = 0;
};

// Ranks and most probable words from the words seen after the last word of a context, and the unigrams in order.
class Ranks {
  public:
    Ranks(const DistributionSource& source, const UnigramOrder& order)
        : source_(source), order_(order), parts_(source), rows_(source), row_(source.model.words()), taken_(source.model.words()) {}

    std::int64_t rank(const Chain& chain, std::uint32_t target) {
        parts_.take(chain, chain.levels());
        if (odd(chain)) {
            rows_.fill(chain, chain.levels(), false, row_);
            return 1 + std::count_if(row_.begin(), row_.end(), [&](double p) { return p > row_[target]; });
        }
        const double own = chain.value(chain.levels(), target);
        // Of the values of unigrams, those from `first` on are more probable now; then the words seen change sides.
        const std::size_t first = first_above(chain, own);
        std::int64_t above = chain.uniform() ? (first == 0 ? words_that_come() : 0) : order_.above[first];
        for (const Child& child : parts_.seen()) {
            const bool before = chain.uniform() ? first == 0 && source_.possible(child.word) : source_.value_of[child.word] >= first;
            above += (parts_.of_seen(child.word) > own) - before;
        }
        return 1 + above;
    }

    // The most probable words, falling, equal ones by id; their logarithms.
    void top(const Chain& chain, MutableView<std::uint32_t> words, MutableView<double> logarithms) {
        parts_.take(chain, chain.levels());
        candidates_.clear();
        if (!odd(chain)) {
            ++turn_;
            for (const Child& child : parts_.seen()) {
                taken_[child.word] = turn_;
                candidates_.push_back({parts_.of_seen(child.word), child.word});
            }
            const std::size_t enough = candidates_.size() + words.size();
            for (std::uint32_t i = 0; i < row_.size() && candidates_.size() < enough; ++i) {
                const std::uint32_t word = chain.uniform() ? i : order_.words[i];
                if (taken_[word] != turn_ && source_.possible(word)) candidates_.push_back({parts_.of_other(chain.base(word)), word});
            }
            choose(words.size());
        }
        if (candidates_.size() < words.size() || candidates_[words.size() - 1].p == 0) {    // what cannot come, by id
            rows_.fill(chain, chain.levels(), false, row_);
            candidates_.clear();
            for (std::uint32_t word = 0; word < row_.size(); ++word) candidates_.push_back({row_[word], word});
            choose(words.size());
        }
        for (std::size_t i = 0; i < words.size(); ++i) {
            words[i] = candidates_[i].word;
            logarithms[i] = candidates_[i].p > 0 ? std::log(candidates_[i].p) : -std::numeric_limits<double>::infinity();
        }
    }
    double largest() const { return rows_.largest(); }

  private:
    struct Candidate {
        double p;
        std::uint32_t word;
        bool operator<(const Candidate& other) const { return p != other.p ? p > other.p : word < other.word; }
    };

    // Whether a probability may be above one: then the row says, and is clipped.
    bool odd(const Chain& chain) const {
        double largest = parts_.of_other(chain.uniform() ? 1.0 : source_.values.back());
        for (const Child& child : parts_.seen()) largest = std::max(largest, parts_.of_seen(child.word));
        return largest > 1;
    }
    std::int64_t words_that_come() const {
        std::int64_t words = row_.size() > kEos ? static_cast<std::int64_t>(row_.size()) - kEos - 1 : 0;
        for (std::uint32_t word = 0; word <= kEos; ++word) words += source_.possible(word);
        return words;
    }
    std::size_t first_above(const Chain& chain, double own) const {
        if (chain.uniform()) return parts_.of_other(1) > own ? 0 : 1;
        const auto above = [&](double value) { return parts_.of_other(value) <= own; };
        return static_cast<std::size_t>(std::partition_point(source_.values.begin(), source_.values.end(), above) - source_.values.begin());
    }
    void choose(std::size_t n) {
        n = std::min(n, candidates_.size());
        std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(n), candidates_.end());
    }

    const DistributionSource& source_;
    const UnigramOrder& order_;
    Parts parts_;
    Rows rows_;
    std::vector<double> row_;
    std::vector<std::uint64_t> taken_;
    std::uint64_t turn_ = 0;
    std::vector<Candidate> candidates_;
};

double logarithm(double p) { return p > 0 ? std::log(p) : 0.0; }    // wherever it is multiplied by p

// A sum that also adds up what its roundings lost (Neumaier 1974): for long ones.
class LongSum {
  public:
    void add(double term) {
        const double next = sum_ + term;
        lost_ += std::fabs(sum_) >= std::fabs(term) ? (sum_ - next) + term : (term - next) + sum_;
        sum_ = next;
    }
    double value() const { return sum_ + lost_; }

  private:
    double sum_ = 0, lost_ = 0;
};

class Sums {
  public:
    Sums(const DistributionSource& source, SumsMemo& memo) : rows_(source), row_(source.model.words()), memo_(memo) {}

    DistributionSums of(const Chain& chain, std::size_t level) {
        if (level > 0 && chain.unseen()) return step(chain, level);    // it has no slot, and nothing to add up
        std::uint32_t& number = level == 0 ? memo_.numbers[0][chain.uniform()] : memo_.numbers[chain.words(level)][chain.slot(level)];
        if (number == 0) {
            const DistributionSums sums = level == 0 ? whole(chain, 0) : step(chain, level);
            memo_.sums[memo_.used] = sums;
            number = static_cast<std::uint32_t>(++memo_.used);
        }
        require(number <= memo_.used, "a number of sums that are not known");
        return memo_.sums[number - 1];
    }
    double largest() const { return rows_.largest(); }

  private:
    struct Term {
        double p, log, lower, log_lower;
    };

    // Sums after a context from those after the shorter one: what was seen changes, the rest is multiplied by the weight.
    DistributionSums step(const Chain& chain, std::size_t level) {
        const DistributionSums lower = of(chain, level - 1);
        const double weight = chain.weight(level);
        const double error = 1 + weight * lower.error;
        if (error > kLargestError && !chain.uniform()) return whole(chain, level);
        collect(chain, level);
        double mass = 0, sum = 0, rest_mass = lower.mass, rest_sum = lower.sum;
        for (const Term& term : terms_) {
            mass += term.p;
            sum += term.p * term.log;
            rest_mass -= term.lower;
            rest_sum -= term.lower * term.log_lower;
        }
        const double log_weight = logarithm(weight);
        mass += weight * rest_mass;
        sum += weight * (rest_sum + log_weight * rest_mass);
        // Squares around the mean; `shift` is by how much ln p of the rest is further from it than before.
        const double shift = log_weight + lower.sum - sum;
        double centered = 0, rest_squares = lower.centered, rest_moment = lower.sum * (1 - lower.mass);
        for (const Term& term : terms_) {
            const double apart = term.log - sum, lower_apart = term.log_lower - lower.sum;
            centered += term.p * apart * apart;
            rest_squares -= term.lower * lower_apart * lower_apart;
            rest_moment -= term.lower * lower_apart;
        }
        centered += weight * (rest_squares + shift * (2 * rest_moment + shift * rest_mass));
        if (mass > kRoundedMass && weight > 1) return whole(chain, level);    // to see whether a probability is above one
        return {mass, sum, std::max(centered, 0.0), error};
    }

    void collect(const Chain& chain, std::size_t level) {
        const View<Child> children = children_.of(chain, level);
        terms_.clear();
        for (std::size_t i = 0; i < children.size(); ++i) {
            if (i + kAhead < children.size()) chain.prefetch_lower(level - 1, children[i + kAhead].word);
            const std::uint32_t word = chain.source().word_of(children[i]);
            if (!chain.source().possible(word)) continue;
            const double p = std::fabs(children[i].probability), lower = chain.lower_value(level - 1, word);
            terms_.push_back({p, logarithm(p), lower, logarithm(lower)});
        }
    }

    DistributionSums whole(const Chain& chain, std::size_t level) {
        if (level == 0 && chain.uniform()) {
            double words = 0;
            for (std::uint32_t word = 0; word < row_.size(); ++word) words += chain.base(word);
            return {words, 0, 0, 1};
        }
        rows_.fill(chain, level, false, row_);
        LongSum mass, sum, centered;
        for (const double p : row_) {
            mass.add(p);
            sum.add(p * logarithm(p));
        }
        const double mean = sum.value();
        for (const double p : row_) centered.add(p * (logarithm(p) - mean) * (logarithm(p) - mean));
        return {mass.value(), mean, centered.value(), 1};
    }

    Rows rows_;
    ChildFinder children_;
    std::vector<double> row_;
    std::vector<Term> terms_;
    SumsMemo& memo_;
};

// What the divergence of a pair of contexts is made of; sums over words that `b` holds possible are finite.
struct PairSums {
    double divergence = 0;               // of p_a ln (p_a / p_b), over what both hold possible
    double mass_a = 0, mass_b = 0;
    double shared = 0;                   // of p_a, over what both hold possible
    std::int64_t possible = 0;           // words with p_a > 0
    std::int64_t ruled_out = 0;          // of these, words with p_b = 0
    double error = 1;

    void add(double a, double b) {
        mass_a += a;
        mass_b += b;
        if (a > 0) {
            ++possible;
            if (b > 0) {
                divergence += a * std::log(a / b);
                shared += a;
            } else {
                ++ruled_out;
            }
        }
    }
};

struct PairKey {
    std::uint32_t a, b;
    std::uint32_t words;    // of the two contexts

    bool operator==(const PairKey&) const = default;
};

struct PairHash {
    std::size_t operator()(const PairKey& key) const {
        return static_cast<std::size_t>(mix(make_key(key.a, key.b) + (static_cast<std::uint64_t>(key.words) << 21)));
    }
};

class Pairs {
  public:
    Pairs(const DistributionSource& a, const DistributionSource& b)
        : rows_a_(a), rows_b_(b), row_a_(a.model.words()), row_b_(b.model.words()) {}

    PairSums of(const Chain& a, std::size_t i, const Chain& b, std::size_t j) {
        const PairKey key{of_level(a, i), of_level(b, j),
                          static_cast<std::uint32_t>((i > 0 ? a.words(i) : 0) << 8 | (j > 0 ? b.words(j) : 0))};
        if (const auto known = memo_.find(key); known != memo_.end()) return known->second;
        const PairSums sums = i + j == 0 ? whole(a, 0, b, 0) : step(a, i, b, j);
        memo_.emplace(key, sums);
        return sums;
    }

  private:
    static std::uint32_t of_level(const Chain& chain, std::size_t level) {
        return level > 0 ? chain.slot(level) : static_cast<std::uint32_t>(chain.uniform());
    }
    // Contexts are shortened from the longer one, so that pairs meet again; full contexts first, as they have one level.
    static std::size_t length(const Chain& chain, std::size_t level) {
        return level > 0 && chain.uniform() ? std::numeric_limits<std::size_t>::max() : level;
    }

    PairSums step(const Chain& a, std::size_t i, const Chain& b, std::size_t j) {
        const bool shorten_a = i > 0 && length(a, i) >= length(b, j), shorten_b = j > 0 && length(b, j) >= length(a, i);
        const std::size_t lower_i = i - shorten_a, lower_j = j - shorten_b;
        PairSums rest = of(a, lower_i, b, lower_j);
        const double weight_a = shorten_a ? a.weight(i) : 1, weight_b = shorten_b ? b.weight(j) : 1;
        const double error = 1 + std::max(weight_a, weight_b) * rest.error;
        if (error > kLargestError && !(a.uniform() && b.uniform())) return whole(a, i, b, j);

        PairSums sums, before;
        const auto change = [&](double p_a, double lower_a, double p_b, double lower_b) {
            sums.add(p_a, p_b);
            before.add(lower_a, lower_b);
        };
        if (shorten_a) {
            for (const Child& child : children_a_.of(a, i)) {
                if (!either(a, b, a.source().word_of(child))) continue;
                const double p_b = b.value(j, child.word);
                change(seen(a, child), lower(a, i, child.word), p_b, shorten_b ? b.value(lower_j, child.word) : p_b);
            }
        }
        if (shorten_b) {
            for (const Child& child : children_b_.of(b, j)) {
                if (!either(a, b, b.source().word_of(child))) continue;
                if (shorten_a && !a.unseen() && a.table(i).find(a.slot(i), child.word) != kNone) continue;
                const double p_a = a.value(i, child.word);
                change(p_a, shorten_a ? a.value(lower_i, child.word) : p_a, seen(b, child), lower(b, j, child.word));
            }
        }
        finish(sums, rest, before, weight_a, weight_b);
        sums.error = error;
        return sums;
    }

    static bool either(const Chain& a, const Chain& b, std::uint32_t word) {
        return a.source().possible(word) || b.source().possible(word);
    }
    static double seen(const Chain& chain, const Child& child) {
        return chain.source().possible(child.word) ? static_cast<double>(std::fabs(child.probability)) : 0.0;
    }
    static double lower(const Chain& chain, std::size_t level, std::uint32_t word) {
        return chain.source().possible(word) ? chain.lower_value(level - 1, word) : 0.0;
    }

    // Adds the words that were seen after neither context: their probabilities are those of before times the weights.
    static void finish(PairSums& sums, const PairSums& lower, const PairSums& before, double weight_a, double weight_b) {
        sums.mass_a += weight_a * (lower.mass_a - before.mass_a);
        sums.mass_b += weight_b * (lower.mass_b - before.mass_b);
        if (weight_a == 0) return;
        const std::int64_t possible = lower.possible - before.possible, ruled_out = lower.ruled_out - before.ruled_out;
        sums.possible += possible;
        if (weight_b == 0 || possible == ruled_out) {
            sums.ruled_out += possible;
            return;
        }
        sums.ruled_out += ruled_out;
        const double shared = lower.shared - before.shared;
        sums.shared += weight_a * shared;
        sums.divergence += weight_a * (lower.divergence - before.divergence + std::log(weight_a / weight_b) * shared);
    }

    PairSums whole(const Chain& a, std::size_t i, const Chain& b, std::size_t j) {
        PairSums sums;
        level_row(rows_a_, a, i, row_a_);
        level_row(rows_b_, b, j, row_b_);
        for (std::size_t word = 0; word < row_a_.size(); ++word) sums.add(row_a_[word], row_b_[word]);
        return sums;
    }
    static void level_row(Rows& rows, const Chain& chain, std::size_t level, std::vector<double>& row) {
        if (level > 0 || !chain.uniform()) {
            rows.fill(chain, level, false, row);
        } else {
            for (std::uint32_t word = 0; word < row.size(); ++word) row[word] = chain.base(word);
        }
    }

    Rows rows_a_, rows_b_;
    ChildFinder children_a_, children_b_;
    std::vector<double> row_a_, row_b_;
    std::unordered_map<PairKey, PairSums, PairHash> memo_;
};

}  // namespace

void index_children(const TableView& table, MutableView<std::uint32_t> offsets, MutableView<Child> children) {
    constexpr std::size_t kTogether = 64;    // entries whose counters are requested before any of them is used
    std::array<std::uint32_t, kTogether> parents;
    std::array<Child, kTogether> held;
    // Twice over the table: offsets[p + 1] counts the children of p, then it is where the next of them goes.
    const auto for_each = [&](const auto& work) {
        std::size_t n = 0;
        const auto flush = [&] {
            for (std::size_t i = 0; i < n; ++i) work(parents[i], held[i]);
            n = 0;
        };
        table.for_each(0, table.rows(), [&](std::uint32_t slot, const Line& line, std::uint32_t i) {
            const Ngram ngram = table.ngram(slot / table.width, line.words[i]);
            require(ngram.parent + std::size_t{1} < offsets.size(), "a parent outside the table below");
            prefetch_for_write(&offsets[ngram.parent + std::size_t{1}]);
            parents[n] = ngram.parent;
            held[n++] = {ngram.word, as_float(line.words[table.width + 1 + i])};
            if (n == kTogether) flush();
        });
        flush();
    };
    std::fill(offsets.begin(), offsets.end(), 0u);
    for_each([&](std::uint32_t parent, const Child&) { ++offsets[parent + std::size_t{1}]; });
    for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
    std::rotate(offsets.begin(), offsets.end() - 1, offsets.end());
    offsets[0] = 0;
    for_each([&](std::uint32_t parent, const Child& child) { children[offsets[parent + std::size_t{1}]++] = child; });
}

double fill_distributions(const DistributionSource& source, View<std::uint32_t> contexts, bool logarithms,
                          MutableView<double> rows) {
    Rows filler(source);
    const std::size_t words = source.model.words(), width = source.width();
    for (std::size_t i = 0; i * words < rows.size(); ++i) {
        const Chain chain(source, contexts.data() + i * width);
        filler.fill(chain, chain.levels(), logarithms, rows.subspan(i * words, words));
    }
    return filler.largest();
}

double rank_words(const DistributionSource& source, const UnigramOrder& order, View<std::uint32_t> contexts,
                  View<std::uint32_t> targets, MutableView<std::int64_t> ranks) {
    Ranks finder(source, order);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        ranks[i] = finder.rank(Chain(source, contexts.data() + i * source.width()), targets[i]);
    }
    return finder.largest();
}

double top_words(const DistributionSource& source, const UnigramOrder& order, View<std::uint32_t> contexts, std::size_t k,
                 MutableView<std::uint32_t> words, MutableView<double> logarithms) {
    Ranks finder(source, order);
    for (std::size_t i = 0; i * k < words.size(); ++i) {
        finder.top(Chain(source, contexts.data() + i * source.width()), words.subspan(i * k, k), logarithms.subspan(i * k, k));
    }
    return finder.largest();
}

SumsResult sum_distributions(const DistributionSource& source, View<std::uint32_t> contexts, SumsMemo& memo,
                             MutableView<DistributionSums> rows) {
    Sums sums(source, memo);
    std::size_t done = 0;
    for (; done < rows.size() && memo.used + source.width() + 1 <= memo.sums.size(); ++done) {
        const Chain chain(source, contexts.data() + done * source.width());
        rows[done] = sums.of(chain, chain.levels());
    }
    return {done, sums.largest()};
}

void divergences(const DistributionSource& a, View<std::uint32_t> contexts_a, const DistributionSource& b,
                 View<std::uint32_t> contexts_b, MutableView<double> divergence) {
    Pairs pairs(a, b);
    for (std::size_t i = 0; i < divergence.size(); ++i) {
        const Chain chain_a(a, contexts_a.data() + i * a.width()), chain_b(b, contexts_b.data() + i * b.width());
        const PairSums sums = pairs.of(chain_a, chain_a.levels(), chain_b, chain_b.levels());
        if (!(sums.mass_a > 0) || !(sums.mass_b > 0)) {
            divergence[i] = std::numeric_limits<double>::quiet_NaN();
        } else if (sums.ruled_out > 0) {
            divergence[i] = std::numeric_limits<double>::infinity();
        } else {
            divergence[i] = std::max(0.0, sums.divergence / sums.mass_a + std::log(sums.mass_b / sums.mass_a));
        }
    }
}

}  // namespace lmgauge
