// BLEU: tokens of a text as mteval and sacreBLEU make them, and clipped n-gram matches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "texts.hpp"

namespace lmgauge {

// ---- metric_tokens.cpp --------------------------------------------------------------------------------------------

enum class MetricTokens : int { mteval13a = 0, chinese = 1, characters = 2, international = 3 };

// Bytes that grow; what is not written yet is never touched.
class Bytes {
  public:
    std::uint8_t* room(std::size_t more);    // where to write up to `more` bytes
    void written_to(const std::uint8_t* end) { size_ = static_cast<std::size_t>(end - bytes_.get()); }
    std::size_t size() const { return size_; }
    std::uint8_t* release() { return bytes_.release(); }    // to be given to std::free

  private:
    struct Free {
        void operator()(std::uint8_t* bytes) const { std::free(bytes); }
    };
    std::unique_ptr<std::uint8_t, Free> bytes_;
    std::size_t size_ = 0, capacity_ = 0;
};

struct TokenTexts {
    Bytes data;
    std::vector<std::int64_t> starts, ends;
};

// Texts `begin` to `end`, without white space at their end, with white space around every token. `classes`, for
// `international` only, has what each of the 0x110000 code points is: 0 nothing special, 1 a symbol, 2 a number,
// 3 punctuation.
TokenTexts separate_tokens(const TextsView& texts, MetricTokens kind, View<std::uint8_t> classes, std::size_t begin,
                           std::size_t end);

// ---- ngram_matches.cpp --------------------------------------------------------------------------------------------

enum class ReferenceLength : int { closest = 0, shortest = 1, average = 2 };

// For each segment from `begin` to `end` a row of 2 + 2 `order` numbers: words of the hypothesis, length of the reference,
// n-grams of order 1, 2, ... that match (each at most as often as the reference that has it most often), and n-grams of
// order 1, 2, ... of the hypothesis. Words are what Python's str.split() finds.
void bleu_statistics(const TextsView& hypotheses, const ReferencesView& references, std::size_t order,
                     ReferenceLength length, std::size_t begin, std::size_t end, MutableView<std::int64_t> out);

}  // namespace lmgauge
