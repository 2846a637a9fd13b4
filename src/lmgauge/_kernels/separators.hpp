// White space between the tokens of a text: where it is, what it is predicted from, and what it costs.
#pragma once

#include "kernels.hpp"

namespace lmgauge {

constexpr int kPlaces = 4, kSides = 64, kBefore = 8;  // of a context: where it is, what is on each side, the one before
constexpr std::size_t kSeparatorContexts = std::size_t{kPlaces} * kSides * kSides * 2 * kBefore;  // 2: outside and within quotes
constexpr std::size_t kClasses = (1 << 16) + 1;  // by code point; the last is for all beyond

// Rows of a score table and their text. Segment j begins at data[starts[j]], behind given[j] bytes of given text (or none
// anywhere: empty), and has segment_events[j] rows; a row's span ends at ends[row], counted from the segment's start, and
// begins where the last one ends. `crossing` (or empty): the first token of segment j begins in the given text.
struct SpanRows {
    View<std::uint8_t> data;
    View<std::int64_t> starts, given;
    View<std::uint8_t> crossing;
    View<std::int64_t> segment_events, ends;
    View<std::uint8_t> kind;
};

// How separators are told apart. `divided`: ASCII white space alone divides tokens, and what follows is not looked at.
// Known separator k is texts[offsets[k], offsets[k + 1]); classes[code point] is that of a character on a side.
struct SeparatorRules {
    bool divided;
    View<std::uint8_t> texts;
    View<std::int64_t> offsets;
    View<std::int64_t> classes;
};

// One after another: (row, first byte, length, context) of the separators that are not known, and (row, first byte, length)
// of the words of kind `oov`.
struct SeparatorsFound {
    std::vector<std::int64_t> unknown, unseen;
    std::int64_t fault = -1;  // the first row whose span is outside the data
};

// logprob[row] is the table's entry for the row's context and separator; the last column is for those that are not known.
SeparatorsFound score_separators(const SpanRows& rows, const SeparatorRules& rules, View<std::int32_t> row_of_context,
                                 View<double> table, MutableView<double> logprob);
// context[row]: place, sides and quotes; which[row]: the number of the separator, -1 for one that is not known.
SeparatorsFound find_separators(const SpanRows& rows, const SeparatorRules& rules, MutableView<std::int32_t> context,
                                MutableView<std::int32_t> which);

}  // namespace lmgauge
