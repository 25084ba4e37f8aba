// Loops of the program whose iterations are counted before they begin.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lower/loop_program.h"

namespace relay {

// A loop that ends at its condition only, and whose state `counter` is greater by `step` in each iteration:
//   if (less(%i, bound)) { ...; %loop(add(%i, step), ...) } else { ... }
struct LoopCount {
  size_t counter = 0;
  Expr bound;
  bool inclusive = false;
  // 1 or -1 where `by` is what the counter grows or shrinks by.
  int64_t step = 0;
  // A number that is at least 0 and does not change in the loop; null: `step` says all.
  Expr by{};
  // State that grows by a number which does not change in the loop.
  struct Other {
    size_t state;
    Expr by;
    bool down;
  };
  std::vector<Other> others{};
};

// Nothing where the loop does not count. Whether `bound`, `by` and what other state grows by are known before the loop is left
// to the caller.
std::optional<LoopCount> count_of(const LoopProgram& program, const LoopItem& loop);

// Numbers that are computed without branches, and may be computed once more.
bool is_plain(const LoopItem& item);

}  // namespace relay
