// Python's face of distributions.hpp.
#include "bindings.hpp"

namespace lmgauge {

template <>
struct From<View<Child>> : FromRows<const Child, const std::uint64_t, 1> {};
template <>
struct From<MutableView<Child>> : FromRows<Child, std::uint64_t, 1> {};
template <>
struct From<MutableView<DistributionSums>> : FromRows<DistributionSums, double, 4> {};
template <>
struct From<ChildrenView> : FromFields<ChildrenView, Ids, View<Child>> {};
template <>
struct From<UnigramOrder> : FromFields<UnigramOrder, Ids, Places> {};

namespace {

using Contexts = Matrix<const std::uint32_t>;
using Memo = std::tuple<std::vector<MutableView<std::uint32_t>>, MutableView<DistributionSums>>;    // numbers, sums

std::size_t contexts_of(const ModelView& model, std::size_t order) {    // slots for contexts of `order` words, from 1
    return order == 1 ? model.words() : model.tables[order - 2].size();
}

Ids contexts_view(const Contexts& contexts, const DistributionSource& source, std::size_t rows) {
    require(contexts.shape(0) == rows && contexts.shape(1) == source.width(), "contexts");
    const Ids slots{contexts.data(), rows * source.width()};
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const std::size_t k = i % source.width();
        require(slots[i] < contexts_of(source.model, k + 1) || slots[i] == kNone ||
                    (slots[i] == kUnseenContext && k == 0 && source.model.full_context), "a context outside its table");
    }
    return slots;
}

void check_order(const UnigramOrder& order, const DistributionSource& source) {
    require(order.words.size() == source.model.words() && order.above.size() == source.values.size() + 1, "order of words");
    check_below(order.words, order.words.size());
}

}  // namespace

// A model, the children of its contexts, the unigrams as values and the value of each word, whether </s> is an event.
template <>
struct From<DistributionSource> {
    using Parts = From<std::tuple<ModelView, std::vector<ChildrenView>, std::tuple<View<double>, Ids>, bool>>;
    using Python = Parts::Python;
    static DistributionSource view(const Python& given) {
        auto [model, children, unigrams, eos] = Parts::view(given);
        const DistributionSource s{std::move(model), std::move(children), std::get<0>(unigrams), std::get<1>(unigrams), eos};
        require((s.children.empty() || s.children.size() == s.width()) && s.value_of.size() == s.model.words(), "a model and its children");
        for (const std::uint32_t value : s.value_of) require(value < s.values.size(), "values of words");
        for (std::size_t k = 0; k < s.children.size(); ++k) {
            const auto& [offsets, packed] = s.children[k];
            require(offsets.size() == contexts_of(s.model, k + 1) + 1 && offsets.back() == packed.size(), "children");
        }
        return s;
    }
};

void bind_distributions(nb::module_& m) {
    def(m, "index_children", index_children, [](const BoundedTable& table, Ids offsets, View<Child> children) {
        require(offsets.size() == table.parents + 1, "offsets");
        require(count_entries(table, 0, table.rows()).entries == children.size(), "children");
    });
    def(m, "find_context", find_context, [](const ModelView& model, Ids context, Ids slots) {
        require(slots.size() == model.tables.size(), "slots");
        check_below(context, model.words());
    });
    def(m, "fill_distributions", [](const DistributionSource& source, const Contexts& contexts, bool logarithms, MutableView<double> rows) {
        require(rows.size() == contexts.shape(0) * source.model.words(), "output");
        return fill_distributions(source, contexts_view(contexts, source, contexts.shape(0)), logarithms, rows);
    });
    def(m, "rank_words", [](const DistributionSource& source, const UnigramOrder& order, const Contexts& contexts, Ids targets,
                            MutableView<std::int64_t> ranks) {
        check_order(order, source);
        check_same_size(ranks, targets);
        check_below(targets, source.model.words());
        return rank_words(source, order, contexts_view(contexts, source, ranks.size()), targets, ranks);
    });
    def(m, "top_words", [](const DistributionSource& source, const UnigramOrder& order, const Contexts& contexts, std::size_t k,
                           MutableView<std::uint32_t> words, MutableView<double> logarithms) {
        check_order(order, source);
        require(0 < k && k <= source.model.words() && words.size() == contexts.shape(0) * k, "output");
        check_same_size(words, logarithms);
        return top_words(source, order, contexts_view(contexts, source, contexts.shape(0)), k, words, logarithms);
    });
    def(m, "sum_distributions", [](const DistributionSource& source, const Contexts& contexts, const Memo& memo, std::size_t used,
                                   MutableView<DistributionSums> rows) {
        SumsMemo known{std::get<0>(memo), std::get<1>(memo), used};
        require(known.numbers.size() == source.width() + 1 && known.numbers[0].size() == 2 && used <= known.sums.size(), "memo");
        for (std::size_t k = 1; k < known.numbers.size(); ++k) {
            require(known.numbers[k].size() == contexts_of(source.model, k), "memo");
        }
        const SumsResult result = sum_distributions(source, contexts_view(contexts, source, rows.size()), known, rows);
        return std::tuple(result.done, known.used, result.largest);
    });
    def(m, "divergences", [](const DistributionSource& a, const Contexts& contexts_a, const DistributionSource& b, const Contexts& contexts_b,
                             MutableView<double> out) {
        require(a.model.words() == b.model.words(), "one vocabulary");
        divergences(a, contexts_view(contexts_a, a, out.size()), b, contexts_view(contexts_b, b, out.size()), out);
    });
}

}  // namespace lmgauge
