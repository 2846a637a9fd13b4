// Python's face of partition_pack.hpp.
#include "bindings.hpp"
#include "partition_pack.hpp"

namespace {

using RecordsArray = nb::ndarray<const std::uint32_t, nb::shape<-1, -1>, nb::c_contig, nb::device::cpu>;
using MutableRecords = nb::ndarray<std::uint32_t, nb::shape<-1, -1>, nb::c_contig, nb::device::cpu>;
using PartsArrays = std::tuple<MutableRecords, MutableArray<std::uint64_t>>;    // n-grams, sizes of the parts
using Columns = std::tuple<Array<std::uint32_t>, Array<std::uint32_t>, Array<float>, Array<float>>;
using Marks = std::tuple<Array<std::uint8_t>, Array<std::uint8_t>, Array<std::uint32_t>>;    // dropped, longer, slots of parents
using Bounds = std::tuple<std::uint64_t, std::uint64_t>;                                     // slots of parents, words
// Lines of the table, bounds of parents and words, whether it is the highest order, first home, homes.
using BucketArrays = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, bool, std::uint64_t, std::uint64_t>;

Bucket bucket_view(const BucketArrays& arrays) {
    const auto& [rows, parents, words, last, first, homes] = arrays;
    require(parents < kNone && words < kNone && TableView::fits(rows, parents, words) && rows < kNone / 2 / 7, "a table");
    require(homes > 0 && homes <= rows - kSpareLines && first <= rows - kSpareLines - homes, "homes of the table");
    return {TableView(nullptr, rows, parents, words, last), first, homes};
}

template <class Record>
constexpr std::size_t kColumns = sizeof(Record) / sizeof(std::uint32_t);

template <class Record>
View<Record> records(const RecordsArray& ngrams) {
    require(ngrams.shape(1) == kColumns<Record>, "n-grams of this order");
    return {reinterpret_cast<const Record*>(ngrams.data()), ngrams.shape(0)};
}

template <class Record>
void stage_rows_into(const PartitionRows& rows, Bounds bounds, const PartsArrays& parts, MutableView<std::uint8_t> buckets) {
    const auto& [staged, sizes] = parts;
    require(sizes.size() > 0 && sizes.size() <= kMostBuckets && staged.shape(0) % sizes.size() == 0, "parts");
    const PartsOf<Record> view_of{{reinterpret_cast<Record*>(staged.data()), staged.shape(0)}, view(sizes)};
    const auto [parents, words] = bounds;
    const Scatter scatter = scatter_of(parents, words);
    nb::gil_scoped_release release;
    stage_rows(rows, scatter, parents, words, view_of, buckets);
}

MutableView<Line> lines_of(const Bucket& bucket, const MutableLines& lines) {
    require(lines.shape(0) == bucket.lines(), "lines of the bucket");
    check_aligned(lines.data());
    return {reinterpret_cast<Line*>(lines.data()), lines.shape(0)};
}

void check_homes(const Bucket& bucket, std::size_t counts, std::size_t cursors) {
    require(counts == bucket.homes && cursors == bucket.homes, "a number for each home");
}

void bind_rows(nb::module_& m) {
    m.attr("MOST_BUCKETS") = kMostBuckets;
    def(m, "mark_longer", [](Array<std::uint32_t> parents, Array<std::uint8_t> dropped, MutableArray<std::uint8_t> longer) {
        require(dropped.size() == 0 || dropped.size() == parents.size(), "dropped");
        nb::gil_scoped_release release;
        mark_longer(view(parents), view(dropped), view(longer));
    });
    def(m, "stage_rows", [](const Columns& columns, const Marks& marks, Bounds bounds, const PartsArrays& parts,
                           MutableArray<std::uint8_t> buckets) {
        const PartitionRows rows{view(std::get<0>(columns)), view(std::get<1>(columns)), view(std::get<2>(columns)),
                                 view(std::get<3>(columns)), view(std::get<0>(marks)), view(std::get<1>(marks)),
                                 view(std::get<2>(marks))};
        const std::size_t n = rows.parents.size(), columns_wanted = std::get<0>(parts).shape(1);
        const bool last = columns_wanted == kColumns<LastNgram>;
        require(rows.words.size() == n && rows.probabilities.size() == n, "columns");
        require(last || (columns_wanted == kColumns<MiddleNgram> && rows.weights.size() == n && rows.longer.size() == n), "weights");
        require(rows.dropped.empty() || rows.dropped.size() == n, "dropped");
        require(buckets.size() == 0 || buckets.size() == n, "buckets");
        (last ? stage_rows_into<LastNgram> : stage_rows_into<MiddleNgram>)(rows, bounds, parts, view(buckets));
    });
    def(m, "replay_slots", [](Array<std::uint8_t> buckets, const std::vector<Array<std::uint32_t>>& streams,
                             MutableArray<std::uint32_t> slots) {
        require(slots.size() == buckets.size(), "slots");
        std::vector<View<std::uint32_t>> views;
        for (const auto& stream : streams) views.push_back(view(stream));
        nb::gil_scoped_release release;
        replay_slots(view(buckets), views, view(slots));
    });
}

}  // namespace

void bind_partition_pack(nb::module_& m) {
    bind_rows(m);
    def(m, "count_homes", [](const BucketArrays& arrays, const RecordsArray& ngrams, MutableArray<std::uint8_t> counts) {
        const Bucket bucket = bucket_view(arrays);
        check_homes(bucket, counts.size(), bucket.homes);
        nb::gil_scoped_release release;
        bucket.table.last ? count_homes(bucket, records<LastNgram>(ngrams), view(counts))
                          : count_homes(bucket, records<MiddleNgram>(ngrams), view(counts));
    });
    def(m, "measure_homes", [](const BucketArrays& arrays, Array<std::uint8_t> counts) {
        const Bucket bucket = bucket_view(arrays);
        check_homes(bucket, counts.size(), bucket.homes);
        const Measured r = measure_homes(bucket, view(counts));
        return std::make_tuple(r.free, r.limit);
    });
    def(m, "open_homes", [](const BucketArrays& arrays, Array<std::uint8_t> counts, std::uint64_t start,
                           MutableArray<std::uint32_t> cursors) {
        const Bucket bucket = bucket_view(arrays);
        check_homes(bucket, counts.size(), cursors.size());
        nb::gil_scoped_release release;
        open_homes(bucket, view(counts), start, view(cursors));
    });
    def(m, "write_ngrams", [](const BucketArrays& arrays, const RecordsArray& ngrams, MutableArray<std::uint32_t> cursors,
                             const MutableLines& lines) {
        const Bucket bucket = bucket_view(arrays);
        check_homes(bucket, bucket.homes, cursors.size());
        const MutableView<Line> all = lines_of(bucket, lines);
        nb::gil_scoped_release release;
        bucket.table.last ? write_ngrams(bucket, records<LastNgram>(ngrams), view(cursors), all)
                          : write_ngrams(bucket, records<MiddleNgram>(ngrams), view(cursors), all);
    });
    def(m, "sort_homes", [](const BucketArrays& arrays, Array<std::uint8_t> counts, MutableArray<std::uint32_t> cursors,
                           const MutableLines& lines, MutableArray<std::int8_t> shifts) {
        const Bucket bucket = bucket_view(arrays);
        check_homes(bucket, counts.size(), cursors.size());
        require(shifts.size() == 0 || shifts.size() == bucket.lines() * bucket.table.width, "shifts");
        const MutableView<Line> all = lines_of(bucket, lines);
        nb::gil_scoped_release release;
        const Sorted r = sort_homes(bucket, view(counts), view(cursors), all, view(shifts));
        return std::make_tuple(r.twice, r.blanks);
    });
    def(m, "list_slots", [](const BucketArrays& arrays, const RecordsArray& ngrams, MutableArray<std::uint32_t> cursors,
                           Array<std::int8_t> shifts, MutableArray<std::uint32_t> slots) {
        const Bucket bucket = bucket_view(arrays);
        check_homes(bucket, bucket.homes, cursors.size());
        require(slots.size() == ngrams.shape(0), "slots");
        nb::gil_scoped_release release;
        list_slots(bucket, records<MiddleNgram>(ngrams), view(cursors), view(shifts), view(slots));
    });
    def(m, "digest_lines", [](const LinesArray& lines, std::uint64_t row) {
        check_aligned(lines.data());
        nb::gil_scoped_release release;
        return digest_lines({reinterpret_cast<const Line*>(lines.data()), lines.shape(0)}, row);
    });
}
