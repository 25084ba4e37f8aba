// What a dimension is in a sum of products. Operators say it of their operands' axes (ir/contraction.h) and blocks of the
// tensor IR of their iterations (tir/stmt.h); schedule rules read the latter.
#pragma once

#include <cstdint>
#include <string_view>

namespace relay {

enum class ContractionRole : int64_t {
  None,   // no part of a sum of products
  Batch,  // of every operand and of the result: a sum of its own for each index
  Group,  // the same, along an axis that other dimensions share: the groups of a convolution's channels
  Row,      // of the first operand and of the result
  Column,   // of another operand and of the result
  Reduced,  // summed over
  Window,   // summed over, and moves along an axis together with a row: a kernel's element
};

// "row".
constexpr std::string_view to_string(ContractionRole role) {
  constexpr std::string_view names[] = {"none",   "batch",   "group", "row",
                                        "column", "reduced", "window"};
  return names[static_cast<size_t>(role)];
}

constexpr bool is_summed(ContractionRole role) {
  return role == ContractionRole::Reduced || role == ContractionRole::Window;
}

}  // namespace relay
