// Translation edit rate: the kernel's face.
#pragma once

#include "texts.hpp"

namespace lmgauge {

constexpr std::size_t kMaxTerReferences = 16;

// For each segment from `begin` to `end` (excluded) two numbers into `out` [segments, 2]: the fewest edits over the
// references, and the average length of the references in words, times kLengthScale. Words are what white space separates.
void ter_statistics(const TextsView& hypotheses, const ReferencesView& references, std::size_t begin, std::size_t end,
                    MutableView<std::int64_t> out);

}  // namespace lmgauge
