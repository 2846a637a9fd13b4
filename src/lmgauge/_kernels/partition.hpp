// Counting in partitions: n-grams that begin with the same two words are counted together, and what one partition has to
// tell another travels in the order of the text, without keys.
//
// The text comes in chunks. A chunk of T tokens is ids[0 .. T + n]: the token before its first, its tokens, and the n after
// its last; <s> stands before and behind the text. A window begins at each token and has up to n tokens, up to the next <s>.
// It belongs to the partition that a hash of its first two tokens gives; one token alone belongs to none.
//
// An n-gram that is new at token s has its suffix at token s + 1. So a walk over the ids that takes the next number from
// the stream of the one partition and adds it to the stream of the other joins every n-gram with its suffix.
#pragma once

#include <cstdlib>
#include <memory>

#include "kernels.hpp"

namespace lmgauge {

constexpr std::uint8_t kNothingNew = 255;

// Counts the n-grams of one partition. Those of each order are numbered (rows) as they first occur.
class PartitionCounter {
  public:
    // expected[k - 2]: about how many different k-grams there will be; too few costs time and memory, nothing else.
    PartitionCounter(std::size_t order, std::uint32_t partitions, std::uint32_t partition, const std::vector<std::uint64_t>& expected);
    PartitionCounter(const PartitionCounter&) = delete;
    PartitionCounter& operator=(const PartitionCounter&) = delete;

    // For each window of the partition that begins in the chunk: rows of its k-grams, k = 2 .. n - 1 (kNone where it is
    // shorter), are appended to `rows`; and for each that begins one token earlier, the smallest order whose n-gram was new
    // there (kNothingNew) to `fresh`; nothing where n-grams need not be linked with their suffixes.
    void add(View<std::uint32_t> ids, bool linked, std::vector<std::uint32_t>& rows, std::vector<std::uint8_t>& fresh);

    std::size_t order() const { return tables_.size() + 1; }
    std::size_t rows(std::size_t order) const { return tables_[order - 2].rows; }
    // The row of the n-gram without its last word (order 2: the first word), the last word, and how often it occurred. The
    // memory of this order's table is free afterwards.
    void take(std::size_t order, MutableView<std::uint32_t> parents, MutableView<std::uint32_t> words,
              MutableView<std::uint32_t> counts);

  private:
    struct Free {
        void operator()(void* p) const { std::free(p); }
    };
    struct Table {
        std::unique_ptr<Entry[], Free> entries;    // first: count, second: row
        std::uint64_t slots = 0;
        std::size_t rows = 0;
        void reserve(std::size_t more);
        std::size_t home(std::uint64_t key) const { return static_cast<std::size_t>(multiply_high(mix(key), slots)); }
        Entry& at(std::uint64_t key, std::size_t slot);
    };
    std::uint32_t partitions_, partition_;
    std::vector<Table> tables_;
    int held_ = -1;    // of the window that begins with the last token of the chunk before
};

// One array for each partition, as they are read, or as they grow.
template <class T>
using Streams = std::vector<View<T>>;

struct Requests {
    std::vector<std::uint8_t> fresh;                               // [T], of the window that begins one token earlier
    std::vector<std::vector<std::vector<std::uint32_t>>> rows;     // [k - 2][partition]: of suffixes of order k
};
// One request for each n-gram of order 3 and more that is new: the row of its suffix, to the partition of the suffix.
Requests route_requests(View<std::uint32_t> ids, std::size_t order, const Streams<std::uint8_t>& fresh, const Streams<std::uint32_t>& rows);

// Deals values, one for each request for an n-gram of `lower` words, to the partitions of the longer n-grams that asked, in
// the order of their rows; or, `back`, from these to the partitions of the suffixes, in the order of the requests.
template <class T>
std::vector<std::vector<T>> route_values(View<std::uint32_t> ids, std::size_t order, std::size_t lower, View<std::uint8_t> fresh,
                                         const Streams<T>& values, bool back);

// HyperLogLog registers (Flajolet et al. 2007) of the k-grams ending in [begin, end), for k = 2 .. order: a row of
// 2^index_bits per order. They say how large tables are to be before anything is counted.
void sketch_distinct(View<std::uint32_t> ids, std::size_t begin, std::size_t end, int order, MutableView<std::uint8_t> registers,
                     int index_bits);
void count_rows(View<std::uint32_t> rows, MutableView<std::uint32_t> counts);

}  // namespace lmgauge
