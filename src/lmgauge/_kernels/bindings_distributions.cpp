// Python's face of distributions.hpp.
#include "bindings.hpp"
#include "distributions.hpp"
#include "pack.hpp"

namespace {

using Children = std::tuple<Array<std::uint32_t>, Array<std::uint64_t>>;    // offsets, children
using Unigrams = std::tuple<Array<double>, Array<std::uint32_t>>;           // values, the value of each word
using Source = std::tuple<ModelArrays, std::vector<Children>, Unigrams, bool>;
using MutableRows = nb::ndarray<double, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;
using Order = std::tuple<Array<std::uint32_t>, Array<std::int64_t>>;                         // words, above
using Memo = std::tuple<std::vector<MutableArray<std::uint32_t>>, MutableRows>;      // numbers, sums
using Contexts = nb::ndarray<const std::uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::size_t contexts_of(const ModelView& model, std::size_t order) {    // slots for contexts of `order` words, from 1
    return order == 1 ? model.words() : model.tables[order - 2].size();
}

DistributionSource view_of(const Source& s) {
    const auto& [model, children, unigrams, eos] = s;
    DistributionSource source{model_view(model), {}, view(std::get<0>(unigrams)), view(std::get<1>(unigrams)), eos};
    require((children.empty() || children.size() == source.width()) && source.value_of.size() == source.model.words(), "a model and its children");
    for (const std::uint32_t value : source.value_of) require(value < source.values.size(), "values of words");
    for (std::size_t k = 0; k < children.size(); ++k) {
        const auto offsets = view(std::get<0>(children[k]));
        const auto& packed = std::get<1>(children[k]);
        require(offsets.size() == contexts_of(source.model, k + 1) + 1 && offsets.back() == packed.size(), "children");
        source.children.push_back({offsets, {reinterpret_cast<const Child*>(packed.data()), packed.size()}});
    }
    return source;
}

View<std::uint32_t> contexts_view(const Contexts& contexts, const DistributionSource& source, std::size_t rows) {
    require(contexts.shape(0) == rows && contexts.shape(1) == source.width(), "contexts");
    const View<std::uint32_t> slots{contexts.data(), rows * source.width()};
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const std::size_t k = i % source.width();
        require(slots[i] < contexts_of(source.model, k + 1) || slots[i] == kNone ||
                    (slots[i] == kUnseenContext && k == 0 && source.model.full_context), "a context outside its table");
    }
    return slots;
}

UnigramOrder order_view(const Order& order, const DistributionSource& source) {
    const UnigramOrder known{view(std::get<0>(order)), view(std::get<1>(order))};
    require(known.words.size() == source.model.words() && known.above.size() == source.values.size() + 1, "order of words");
    for (const std::uint32_t word : known.words) require(word < known.words.size(), "order of words");
    return known;
}

MutableView<DistributionSums> sums_view(const MutableRows& rows) {
    static_assert(sizeof(DistributionSums) == 4 * sizeof(double));
    return {reinterpret_cast<DistributionSums*>(rows.data()), rows.shape(0)};
}

}  // namespace

void bind_distributions(nb::module_& m) {
    def(m, "index_children", [](const PackedTable& table, MutableArray<std::uint32_t> offsets, MutableArray<std::uint64_t> children) {
        const TableView packed = view(table);
        require(offsets.size() == std::get<1>(table) + 1, "offsets");
        nb::gil_scoped_release release;
        require(count_entries(packed, 0, packed.rows()).entries == children.size(), "children");
        index_children(packed, view(offsets), {reinterpret_cast<Child*>(children.data()), children.size()});
    });
    def(m, "find_context", [](const ModelArrays& model, Array<std::uint32_t> context, MutableArray<std::uint32_t> slots) {
        const ModelView v = model_view(model);
        require(slots.size() == v.tables.size(), "slots");
        for (const std::uint32_t id : view(context)) require(id < v.words(), "a token id outside the vocabulary");
        find_context(v, view(context), view(slots));
    });
    def(m, "fill_distributions", [](const Source& source, Contexts contexts, bool logarithms, MutableArray<double> rows) {
        const DistributionSource s = view_of(source);
        require(rows.size() == contexts.shape(0) * s.model.words(), "output");
        nb::gil_scoped_release release;
        return fill_distributions(s, contexts_view(contexts, s, contexts.shape(0)), logarithms, view(rows));
    });
    def(m, "rank_words", [](const Source& source, const Order& order, Contexts contexts, Array<std::uint32_t> targets,
                           MutableArray<std::int64_t> ranks) {
        const DistributionSource s = view_of(source);
        require(targets.size() == ranks.size(), "targets");
        nb::gil_scoped_release release;
        for (const std::uint32_t id : view(targets)) require(id < s.model.words(), "a token id outside the vocabulary");
        return rank_words(s, order_view(order, s), contexts_view(contexts, s, ranks.size()), view(targets), view(ranks));
    });
    def(m, "top_words", [](const Source& source, const Order& order, Contexts contexts, std::size_t k,
                          MutableArray<std::uint32_t> words, MutableArray<double> logarithms) {
        const DistributionSource s = view_of(source);
        require(0 < k && k <= s.model.words() && words.size() == contexts.shape(0) * k && logarithms.size() == words.size(), "output");
        nb::gil_scoped_release release;
        const auto rows = contexts_view(contexts, s, contexts.shape(0));
        return top_words(s, order_view(order, s), rows, k, view(words), view(logarithms));
    });
    def(m, "sum_distributions", [](const Source& source, Contexts contexts, const Memo& memo, std::size_t used, MutableRows rows) {
        const DistributionSource s = view_of(source);
        const auto& [numbers, sums] = memo;
        require(numbers.size() == s.width() + 1 && numbers[0].size() == 2 && used <= sums.shape(0), "memo");
        SumsMemo known{{}, sums_view(sums), used};
        for (std::size_t k = 0; k < numbers.size(); ++k) {
            require(k == 0 || numbers[k].size() == contexts_of(s.model, k), "memo");
            known.numbers.push_back(view(numbers[k]));
        }
        nb::gil_scoped_release release;
        const SumsResult result = sum_distributions(s, contexts_view(contexts, s, rows.shape(0)), known, sums_view(rows));
        return std::make_tuple(result.done, known.used, result.largest);
    });
    def(m, "divergences", [](const Source& a, Contexts contexts_a, const Source& b, Contexts contexts_b, MutableArray<double> out) {
        const DistributionSource one = view_of(a), other = view_of(b);
        require(one.model.words() == other.model.words(), "one vocabulary");
        nb::gil_scoped_release release;
        divergences(one, contexts_view(contexts_a, one, out.size()), other, contexts_view(contexts_b, other, out.size()), view(out));
    });
}
