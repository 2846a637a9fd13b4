// Python's face of pack.hpp, partition.hpp and partition_pack.hpp.
#include "bindings.hpp"

namespace lmgauge {

template <class Record>
void check(const PartsOf<Record>& parts) { require(!parts.sizes.empty() && parts.staged.size() % parts.sizes.size() == 0, "parts"); }
template <>
struct From<EntryColumns> : FromFields<EntryColumns, MutableView<std::uint32_t>, MutableView<std::uint32_t>, MutableView<std::uint32_t>,
                                       MutableView<float>, MutableView<float>> {};
// Lines of the table, bounds of parents and words, whether it is the highest order, first home, homes.
template <>
struct From<Bucket> {
    using Python = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, bool, std::uint64_t, std::uint64_t>;
    static Bucket view(const Python& given) {
        const auto& [rows, parents, words, last, first, homes] = given;
        require(parents < kNone && words < kNone && TableView::fits(rows, parents, words) && rows < kNone / 2 / 7, "a table");
        require(homes > 0 && homes <= rows - kSpareLines && first <= rows - kSpareLines - homes, "homes of the table");
        return {TableView(nullptr, rows, parents, words, last), first, homes};
    }
};
template <>
struct From<View<MiddleNgram>> : FromRows<const MiddleNgram, const std::uint32_t, 4> {};

namespace {

const auto in_lines = [](const TableView& table, std::size_t begin, std::size_t end, const auto&...) { check_range(begin, end, table.rows()); };

void bind_packing(nb::module_& m) {
    m.attr("SPARE_LINES") = kSpareLines;
    m.attr("LEAST_HOME_BITS") = kLeastHomeBits;
    def(m, "mark_parents", mark_parents);
    def(m, "count_entries", count_entries, in_lines);
    def(m, "list_entries", list_entries, [](const TableView& table, std::size_t begin, std::size_t end, const EntryColumns& out) {
        check_range(begin, end, table.rows());
        check_same_size(out.slots, out.parents, out.words, out.probabilities, out.weights);
        require(out.slots.size() == count_entries(table, begin, end).entries, "columns");
    });
    def(m, "check_lines", [](const BoundedTable& table, std::size_t begin, std::size_t end) {
        check_range(begin, end, table.rows());
        return check_lines(table, begin, end, table.parents, table.words);
    });
    def(m, "digest_lines", digest_lines);
    def(m, "find_ngrams", find_ngrams, [](const TableView&, Ids parents, Ids words, Ids slots) { check_same_size(slots, parents, words); });
    def(m, "entry_values", [](const TableView& table, Ids slots, MutableView<float> probabilities, MutableView<float> weights) {
        check_same_size(slots, probabilities, weights);
        for (std::size_t i = 0; i < slots.size(); ++i) {
            require(slots[i] < table.size(), "a slot outside the table");
            probabilities[i] = table.probability(slots[i]);
            weights[i] = table.weight(slots[i]);
        }
    });
}

// ---- partitions of n-grams

void check_streams(std::size_t streams) { require(0 < streams && streams < kNone, "a stream for each partition"); }

template <class T>
void bind_route(nb::module_& m) {
    const auto checks = [](Ids ids, std::size_t order, std::size_t lower, Bytes8 fresh, const Streams<T>& values, bool) {
        require(2 <= lower && lower < order && order < kNothingNew, "orders");
        require(ids.size() == fresh.size() + order + 1, "a chunk as long as its marks");
        check_streams(values.size());
    };
    def(m, "route_values", route_values<T>, checks);
}

void bind_partitions(nb::module_& m) {
    nb::class_<PartitionCounter>(m, "PartitionCounter")
        .def("__init__", [](PartitionCounter* self, std::size_t order, std::uint32_t partitions, std::uint32_t partition,
                            const std::vector<std::uint64_t>& expected) {
            require(2 <= order && order < kNothingNew && expected.size() == order - 1, "an order, and an estimate for each from 2");
            require(partition < partitions, "a partition");
            new (self) PartitionCounter(order, partitions, partition, expected);
        })
        .def("add", bound(+[](PartitionCounter& self, Ids ids, bool linked) {
            std::tuple<std::vector<std::uint32_t>, std::vector<std::uint8_t>> made;
            self.add(ids, linked, std::get<0>(made), std::get<1>(made));
            return made;
        }))
        .def("rows", [](const PartitionCounter& self, std::size_t order) {
            require(2 <= order && order <= self.order(), "order");
            return self.rows(order);
        })
        .def("take", bound(+[](PartitionCounter& self, std::size_t order, MutableView<std::uint32_t> parents,
                               MutableView<std::uint32_t> words, MutableView<std::uint32_t> counts) {
            require(2 <= order && order <= self.order() && parents.size() == self.rows(order), "order, shapes");
            check_same_size(parents, words, counts);
            self.take(order, parents, words, counts);
        }));
    def(m, "sketch_distinct", sketch_distinct, [](Ids ids, std::size_t begin, std::size_t end, int order, Bytes8 registers, int bits) {
        check_range(begin, end, ids.size());
        require(order >= 2 && order <= 256 && bits >= 1 && bits <= 32, "order, bits");
        require(registers.size() == static_cast<std::size_t>(order - 1) << bits, "registers");
    });
    def(m, "route_requests", route_requests, [](Ids, std::size_t order, const Streams<std::uint8_t>& fresh, const Streams<std::uint32_t>& rows) {
        require(2 <= order && order < kNothingNew && fresh.size() == rows.size(), "streams");
        check_streams(rows.size());
    });
    bind_route<std::uint8_t>(m);
    bind_route<std::uint32_t>(m);
    bind_route<std::uint64_t>(m);
    def(m, "count_rows", count_rows, [](Ids rows, Ids counts) {
        for (const std::uint32_t row : rows) require(row < counts.size(), "a row out of range");
    });
}

// ---- n-grams of partitions to buckets of lines

template <class Record>
constexpr std::size_t kColumns = sizeof(Record) / sizeof(std::uint32_t);
using RecordsArray = Matrix<const std::uint32_t>;
template <class Record>
View<Record> records(const RecordsArray& ngrams) {
    require(ngrams.shape(1) == kColumns<Record>, "n-grams of this order");
    return {reinterpret_cast<const Record*>(ngrams.data()), ngrams.shape(0)};
}
using Columns = std::tuple<Ids, Ids, View<float>, View<float>>;    // parents, words, probabilities, weights
using Marks = std::tuple<Bytes8, Bytes8, Ids>;                     // dropped, longer, slots of parents
using Staging = std::tuple<Matrix<std::uint32_t>, MutableView<std::uint64_t>>;    // n-grams, sizes of the parts
template <class Record>
PartsOf<Record> parts_of(const Staging& staging) {
    const auto& [staged, sizes] = staging;
    const PartsOf<Record> parts{{reinterpret_cast<Record*>(staged.data()), staged.shape(0)}, sizes};
    check(parts);
    require(sizes.size() <= kMostBuckets, "parts");
    return parts;
}

void check_lines_of(const Bucket& bucket, std::size_t cursors, std::size_t lines) {
    require(cursors == bucket.homes, "a number for each home");
    require(lines == bucket.lines(), "lines of the bucket");
}

void bind_buckets(nb::module_& m) {
    m.attr("MOST_BUCKETS") = kMostBuckets;
    def(m, "mark_longer", mark_longer, [](Ids parents, Bytes8 dropped, const auto&) { check_empty_or(dropped, parents.size(), "dropped"); });
    def(m, "stage_rows", [](const Columns& columns, const Marks& marks, const BoundedScatter& bounds, const Staging& staging,
                            MutableView<std::uint8_t> buckets) {
        const auto& [parents, words, probabilities, weights] = columns;
        const auto& [dropped, longer, slots] = marks;
        check_same_size(parents, words, probabilities);
        check_empty_or(dropped, parents.size(), "dropped");
        check_empty_or(buckets, parents.size(), "buckets");
        const PartitionRows rows{parents, words, probabilities, weights, dropped, longer, slots};
        const std::size_t width = std::get<0>(staging).shape(1);
        if (width == kColumns<LastNgram>) {
            stage_rows(rows, bounds, bounds.parents, bounds.words, parts_of<LastNgram>(staging), buckets);
            return;
        }
        require(width == kColumns<MiddleNgram>, "n-grams of this order");
        check_same_size(parents, weights, longer);
        stage_rows(rows, bounds, bounds.parents, bounds.words, parts_of<MiddleNgram>(staging), buckets);
    });
    def(m, "replay_slots", replay_slots, [](Bytes8 buckets, const auto&, Ids slots) { check_same_size(slots, buckets); });
    def(m, "count_homes", [](const Bucket& bucket, const RecordsArray& ngrams, MutableView<std::uint8_t> counts) {
        require(counts.size() == bucket.homes, "a number for each home");
        bucket.table.last ? count_homes(bucket, records<LastNgram>(ngrams), counts) : count_homes(bucket, records<MiddleNgram>(ngrams), counts);
    });
    def(m, "measure_homes", measure_homes, [](const Bucket& bucket, Bytes8 counts) { require(counts.size() == bucket.homes, "a number for each home"); });
    def(m, "open_homes", open_homes, [](const Bucket& bucket, Bytes8 counts, std::uint64_t, Ids cursors) {
        require(counts.size() == bucket.homes && cursors.size() == bucket.homes, "a number for each home");
    });
    def(m, "write_ngrams", [](const Bucket& bucket, const RecordsArray& ngrams, MutableView<std::uint32_t> cursors, MutableView<Line> lines) {
        check_lines_of(bucket, cursors.size(), lines.size());
        bucket.table.last ? write_ngrams(bucket, records<LastNgram>(ngrams), cursors, lines)
                          : write_ngrams(bucket, records<MiddleNgram>(ngrams), cursors, lines);
    });
    def(m, "sort_homes", sort_homes, [](const Bucket& bucket, Bytes8 counts, Ids cursors, View<Line> lines, View<std::int8_t> shifts) {
        check_lines_of(bucket, cursors.size(), lines.size());
        check_same_size(counts, cursors);
        check_empty_or(shifts, bucket.lines() * bucket.table.width, "shifts");
    });
    def(m, "list_slots", list_slots, [](const Bucket& bucket, const auto& ngrams, Ids cursors, View<std::int8_t>, Ids slots) {
        require(cursors.size() == bucket.homes, "a number for each home");
        check_same_size(slots, ngrams);
    });
}

}  // namespace

void bind_tables(nb::module_& m) {
    bind_packing(m);
    bind_partitions(m);
    bind_buckets(m);
}

}  // namespace lmgauge
