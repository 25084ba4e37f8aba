// What later stages are told about a loop, a block or a kernel beside its statements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "node/node.h"
#include "node/record.h"
#include "node/scalar_fields.h"

namespace relay::tir {

// The order in which a loop runs: Backward starts at its last iteration.
enum class LoopOrder : int64_t { Forward, Backward };
std::string_view to_string(LoopOrder order);

// Loops that code generation takes as a whole: a perfect nest for a matrix unit (tir/matrix_nest.h), for the instructions of a
// warp (tir/warp_nest.h), or of blocks of elements that shuffles transpose (tir/transposed_nest.h); and a loop over the items
// of a group whose stores to shared memory arrive later, while the items go on: wait_copies (tir/intrinsics.cc) waits for them;
// or whose items combine what they have with one element (tir/lane_reduction.h).
enum class LoopNest : int64_t { None, Matrix, Transposed, Copy, Lanes };
std::string_view to_string(LoopNest nest);

// The operand of a matrix nest that passes by while tiles read the other one again and again.
enum class StreamedOperand : int64_t { Neither, A, B };
std::string_view to_string(StreamedOperand operand);

// What the iterations of a loop prefetch, a part each (tir/passes/insert_prefetches.h): the rows that the loop
// reads itself in the next iteration of the loop around that moves them, or what the copies in front of it read in the next
// iteration of the loop directly around.
enum class NextOperand : int64_t { None, Read, Copied };
std::string_view to_string(NextOperand next);

// How a loop is to be turned into code. Hints never change what it computes.
struct LoopHints {
  int64_t unroll = 0;    // iterations that one turn of the loop holds; 0: as the loop stands
  int64_t prefetch = 0;  // bytes between what an iteration reads and what it asks for; 0: nothing
  NextOperand next = NextOperand::None;
  int64_t next_rows = 0;  // those that are read
  LoopOrder order = LoopOrder::Forward;
  LoopNest nest = LoopNest::None;
  StreamedOperand streamed = StreamedOperand::Neither;  // of a matrix nest
  // Buffers of shared memory that take turns, so that the copies of later iterations run beside an iteration
  // (tir/passes/pipeline_loops.h); 0: as the loop stands.
  int64_t pipeline = 0;
  // A loop that the program wrote: no schedule has placed it, and its length may be any.
  bool program = false;

  static constexpr auto members() {
    return std::tuple{
        member("nest", &LoopHints::nest),           member("next", &LoopHints::next),
        member("next_rows", &LoopHints::next_rows), member("order", &LoopHints::order),
        member("pipeline", &LoopHints::pipeline),   member("prefetch", &LoopHints::prefetch),
        member("program", &LoopHints::program),     member("streamed", &LoopHints::streamed),
        member("unroll", &LoopHints::unroll)};
  }
  friend bool operator==(const LoopHints&, const LoopHints&) = default;
};

// The part of a block in an algorithm of several blocks, which the schedule rule of that algorithm places:
// {"winograd", "product"}. Algorithms are an open set. A block with a role is not inlined.
struct BlockRole {
  std::string algorithm;
  std::string part;
  int64_t number = 0;  // what the algorithm counts: an axis, or the elements of a word

  bool empty() const { return algorithm.empty(); }
  static constexpr auto members() {
    return std::tuple{member("algorithm", &BlockRole::algorithm), member("part", &BlockRole::part),
                      member("number", &BlockRole::number)};
  }
  friend bool operator==(const BlockRole&, const BlockRole&) = default;
};

}  // namespace relay::tir
