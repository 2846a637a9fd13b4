// Edits between references and hypotheses: the counts behind word and character error rates, and the alignments.
#pragma once

#include <functional>
#include <vector>

#include "texts.hpp"

namespace lmgauge {

enum class EditUnit : int { word = 0, character = 1 };  // characters: of the text without white space at its ends

// For segments `begin` to `end`: hits, substitutions, deletions, insertions, into `out` [segments, 4]. Of several references
// the one with the fewest edits, the first of equals; without one the row is left as it is. `pause` is called now and then
// and may throw.
void edit_counts(const ReferencesView& references, const TextsView& hypotheses, EditUnit unit, std::size_t begin,
                 std::size_t end, MutableView<std::int64_t> out, const std::function<void()>& pause);

// The operations of segments `begin` to `end`, one after the other (0 equal, 1 substitute, 2 delete, 3 insert), and where
// those of each end.
struct EditOperations {
    std::vector<std::uint8_t> operations;
    std::vector<std::int64_t> ends;
};
EditOperations edit_operations(const TextsView& references, const TextsView& hypotheses, EditUnit unit, std::size_t begin,
                               std::size_t end, const std::function<void()>& pause);

}  // namespace lmgauge
