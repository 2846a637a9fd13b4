// Python's face of partition.hpp.
#include "bindings.hpp"
#include "partition.hpp"

namespace {

template <class T>
Streams<T> views(const std::vector<Array<T>>& arrays) {
    require(!arrays.empty() && arrays.size() < kNone, "a stream for each partition");
    Streams<T> streams;
    for (const auto& array : arrays) streams.push_back(view(array));
    return streams;
}

template <class T>
nb::list lists(std::vector<std::vector<T>>&& streams) {
    nb::list out;
    for (auto& stream : streams) out.append(to_numpy(std::move(stream)));
    return out;
}

template <class T>
void bind_route(nb::module_& m) {
    def(m, "route_values", [](Array<std::uint32_t> ids, std::size_t order, std::size_t lower, Array<std::uint8_t> fresh,
                             const std::vector<Array<T>>& values, bool back) {
        require(2 <= lower && lower < order && order < kNothingNew && ids.size() == fresh.size() + order + 1, "orders, and a chunk as long as its marks");
        const Streams<T> streams = views(values);
        std::vector<std::vector<T>> routed;
        {
            nb::gil_scoped_release release;
            routed = route_values(view(ids), order, lower, view(fresh), streams, back);
        }
        return lists(std::move(routed));
    });
}

}  // namespace

void bind_partition(nb::module_& m) {
    nb::class_<PartitionCounter>(m, "PartitionCounter")
        .def("__init__", [](PartitionCounter* self, std::size_t order, std::uint32_t partitions, std::uint32_t partition,
                            const std::vector<std::uint64_t>& expected) {
            require(2 <= order && order < kNothingNew && expected.size() == order - 1, "an order, and an estimate for each from 2");
            require(partition < partitions, "a partition");
            new (self) PartitionCounter(order, partitions, partition, expected);
        })
        .def("add", [](PartitionCounter& self, Array<std::uint32_t> ids) {
            std::vector<std::uint32_t> rows;
            std::vector<std::uint8_t> fresh;
            {
                nb::gil_scoped_release release;
                self.add(view(ids), rows, fresh);
            }
            return nb::make_tuple(to_numpy(std::move(rows)), to_numpy(std::move(fresh)));
        })
        .def("rows", [](const PartitionCounter& self, std::size_t order) {
            require(2 <= order && order <= self.order(), "order");
            return self.rows(order);
        })
        .def("take", checked([](PartitionCounter& self, std::size_t order, MutableArray<std::uint32_t> parents,
                        MutableArray<std::uint32_t> words, MutableArray<std::uint32_t> counts) {
            require(2 <= order && order <= self.order(), "order");
            const std::size_t n = self.rows(order);
            require(parents.size() == n && words.size() == n && counts.size() == n, "shapes");
            nb::gil_scoped_release release;
            self.take(order, view(parents), view(words), view(counts));
        }));
    def(m, "route_requests", [](Array<std::uint32_t> ids, std::size_t order, const std::vector<Array<std::uint8_t>>& fresh,
                               const std::vector<Array<std::uint32_t>>& rows) {
        require(2 <= order && order < kNothingNew && fresh.size() == rows.size(), "streams");
        const Streams<std::uint8_t> news = views(fresh);
        const Streams<std::uint32_t> suffixes = views(rows);
        Requests requests;
        {
            nb::gil_scoped_release release;
            requests = route_requests(view(ids), order, news, suffixes);
        }
        nb::list out;
        for (auto& streams : requests.rows) out.append(lists(std::move(streams)));
        return nb::make_tuple(to_numpy(std::move(requests.fresh)), out);
    });
    bind_route<std::uint8_t>(m);
    bind_route<std::uint32_t>(m);
    bind_route<std::uint64_t>(m);
    def(m, "count_rows", [](Array<std::uint32_t> rows, MutableArray<std::uint32_t> counts) {
        nb::gil_scoped_release release;
        for (const std::uint32_t row : view(rows)) require(row < counts.size(), "a row out of range");
        count_rows(view(rows), view(counts));
    });
}
