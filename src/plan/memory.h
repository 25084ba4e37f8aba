// Where in the arena buffers are.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace relay::plan {

// Bytes: where buffers begin.
inline constexpr int64_t kAlignment = 64;

constexpr int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Sets the position of every buffer, the arena's size and its lower bound. Lifetimes are found.
void place_buffers(PlanFunction& f);

// A buffer that must exist from step `first` to step `last`, both included.
struct BufferLifetime {
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
};

struct ArenaLayout {
  std::vector<int64_t> offsets;  // multiples of kAlignment, in the order of the buffers
  int64_t arena_bytes = 0;
  // The most bytes alive at any step: no layout can be smaller.
  int64_t lower_bound = 0;
};

// Greedy by size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
// 2020): larger buffers first, each at the lowest offset free during its whole life.
// Deterministic. O(n * k) for n buffers of which k overlap in time; where that is more than some millions, as in a
// gradient of thousands of operators, in the order of time instead, each in the smallest piece free then: O(n log n).
ArenaLayout lay_out(const std::vector<BufferLifetime>& buffers);

}  // namespace relay::plan
