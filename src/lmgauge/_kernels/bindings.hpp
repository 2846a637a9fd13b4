// What the bindings of all kernels share: array types, views of them, vectors as NumPy arrays.
#pragma once

#include <Python.h>

#include <cstdio>  // nanobind writes to stderr, and its own headers do not all bring this one

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "arguments.hpp"
#include "kernels.hpp"
#include "texts.hpp"

namespace nb = nanobind;
using namespace lmgauge;

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using MutableArray = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// Tables of counting travel as uint64 [slots, 2]: the key, and the two 32-bit values packed (low half first).
using Table = nb::ndarray<const std::uint64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
using MutableTable = nb::ndarray<std::uint64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
using MutableSums = nb::ndarray<std::uint64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

static_assert(std::endian::native == std::endian::little, "lmgauge's files are little-endian");

static_assert(sizeof(void*) == 8, "lmgauge needs a 64-bit machine: tables of n-grams are larger than 4 GiB");

template <class T>
View<T> view(const Array<T>& a) { return {a.data(), a.size()}; }
template <class T>
MutableView<T> view(const MutableArray<T>& a) { return {a.data(), a.size()}; }
inline View<Entry> view(const Table& t) {
    require(t.shape(0) % kLine == 0 && t.shape(0) > 0 && t.shape(0) < kNone / 2, "slots: a positive multiple of 4 below 2^31");
    return {reinterpret_cast<const Entry*>(t.data()), t.shape(0)};
}
inline MutableView<Entry> view(const MutableTable& t) {
    require(t.shape(0) % kLine == 0 && t.shape(0) > 0 && t.shape(0) < kNone / 2, "slots: a positive multiple of 4 below 2^31");
    return {reinterpret_cast<Entry*>(t.data()), t.shape(0)};
}
// A number for each slot before `end` (those behind it may be padding), or none at all.
inline void check_marks(std::size_t marks, std::size_t end) { require(marks == 0 || marks >= end, "a mark for each slot"); }

inline void check_range(std::size_t begin, std::size_t end, std::size_t size) { require(begin <= end && end <= size, "range"); }

template <class T>
nb::object to_numpy(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

// Texts travel as (data, starts, ends); every span is checked here, so that kernels need not.
using TextsArrays = std::tuple<Array<std::uint8_t>, Array<std::int64_t>, Array<std::int64_t>>;
inline TextsView view(const TextsArrays& texts) {
    const auto& [data, starts, ends] = texts;
    require(starts.size() == ends.size(), "a start and an end for each text");
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const std::int64_t start = starts.data()[i], end = ends.data()[i];
        require(0 <= start && start <= end && static_cast<std::size_t>(end) <= data.size(), "a text outside the data");
    }
    const TextsView all{view(data), view(starts), view(ends)};
    for (std::size_t i = 0; i < all.size(); ++i) require(!ends_within(all[i]), "a text that ends within a character");
    return all;
}
inline ReferencesView view(const TextsArrays& texts, const Array<std::int64_t>& offsets) {
    const TextsView all = view(texts);
    require(offsets.size() > 0 && offsets.data()[0] == 0 && static_cast<std::size_t>(offsets.data()[offsets.size() - 1]) == all.size(),
            "offsets from 0 to the number of references");
    for (std::size_t i = 1; i < offsets.size(); ++i) require(offsets.data()[i - 1] <= offsets.data()[i], "rising offsets");
    return {all, view(offsets)};
}

// Packed tables travel as (lines, uint32 [rows, 16]; bounds of parents and words; whether it is the highest order).
using LinesArray = nb::ndarray<const std::uint32_t, nb::shape<-1, 16>, nb::c_contig, nb::device::cpu>;
using MutableLines = nb::ndarray<std::uint32_t, nb::shape<-1, 16>, nb::c_contig, nb::device::cpu>;
using PackedTable = std::tuple<LinesArray, std::uint64_t, std::uint64_t, bool>;
inline void check_aligned(const std::uint32_t* lines) {
    require(reinterpret_cast<std::uintptr_t>(lines) % alignof(Line) == 0, "lines at a multiple of 16 bytes");
}
// Slots of parents and words that keys can tell apart.
inline Scatter scatter_of(std::uint64_t parents, std::uint64_t words) {
    require(parents < kNone && words < kNone, "slots of parents, and words: fewer than 2^32");
    const Scatter scatter(parents, words);
    require(scatter.bits() <= kMostBits, "slots of parents, and words: too many for keys");
    return scatter;
}
inline TableView view(const PackedTable& t) {
    const auto& [lines, parents, words, last] = t;
    require(parents < kNone && words < kNone && TableView::fits(lines.shape(0), parents, words), "a table too small for its keys");
    require(lines.shape(0) < kNone / 2 / 7, "slots: fewer than 2^31");
    check_aligned(lines.data());
    return {reinterpret_cast<const Line*>(lines.data()), lines.shape(0), parents, words, last};
}

using ModelArrays = std::tuple<Array<float>, std::vector<PackedTable>, std::tuple<bool, float>>;
inline ModelView model_view(const ModelArrays& m) {
    const auto& [unigrams, tables, mode] = m;
    require(tables.size() < 250 && unigrams.size() >= 6 && unigrams.size() % 2 == 0 && unigrams.size() < kNone, "model");
    ModelView model{view(unigrams), {}, std::get<0>(mode), std::get<1>(mode)};
    for (std::size_t k = 0; k < tables.size(); ++k) {
        model.tables.push_back(view(tables[k]));
        // Every slot of a table is a parent that the next may name.
        const std::uint64_t below = k == 0 ? model.words() : model.tables[k - 1].size();
        require(std::get<1>(tables[k]) == below && std::get<2>(tables[k]) == model.words(), "tables that belong together");
        require(std::get<3>(tables[k]) == (k + 1 == tables.size()), "the highest order comes last");
    }
    return model;
}

// Sums by segment travel as (high, low, events, zeros, unseen, ends).
using SumArrays = std::tuple<MutableArray<std::int64_t>, MutableArray<std::uint64_t>, MutableArray<std::int64_t>,
                                   MutableArray<std::int64_t>, MutableArray<std::int64_t>, MutableArray<std::int64_t>>;
// For the segments that begin where an id is <s>, the first of them with the first id.
inline SegmentColumns segment_columns(const SumArrays& arrays, View<std::uint32_t> ids) {
    const auto& [high, low, events, zeros, unseen, ends] = arrays;
    const std::size_t n = high.size();
    require(low.size() == n && events.size() == n && zeros.size() == n && unseen.size() == n && ends.size() == n, "output");
    require(ids.empty() || ids[0] == kBos, "a segment that begins with <s>");
    require(static_cast<std::size_t>(std::count(ids.begin(), ids.end(), kBos)) == n, "a column for each segment");
    return {view(high), view(low), view(events), view(zeros), view(unseen), view(ends)};
}

void bind_reader(nb::module_& m);
void bind_tables(nb::module_& m);
void bind_partition_pack(nb::module_& m);
void bind_distributions(nb::module_& m);
void bind_resampling(nb::module_& m);
void bind_overlap(nb::module_& m);
void bind_bleu(nb::module_& m);
void bind_chrf(nb::module_& m);
void bind_edit_distance(nb::module_& m);
void bind_ter(nb::module_& m);
void bind_kenlm(nb::module_& m);
void bind_partition(nb::module_& m);
void bind_separators(nb::module_& m);
